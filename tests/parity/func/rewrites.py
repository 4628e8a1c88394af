"""Parity cases of functionalize and debug_unwrap."""

from .common import x


def rewritten(m, f, *args, **kwargs):
    """Return the results of a functionalized function, and its arguments afterwards."""
    return m.func.functionalize(f, **kwargs)(*args), args


def on_views(v):
    view = v[:2]
    view.mul_(3)
    v.add_(1)
    return v * 2, view + 0


FUNCTIONALIZED = {
    "functionalize": lambda m: rewritten(m, bent_in_place(m), x(m, 3)),
    "an argument written": lambda m: rewritten(m, on_views, x(m, 3)),
    "mutations and views": lambda m: rewritten(m, on_views, x(m, 3), remove="mutations_and_views"),
    "remove wrong": lambda m: rewritten(m, on_views, x(m, 3), remove="views"),
    "a tree written": lambda m: rewritten(m, lambda d: d["a"].add_(d["b"][0]), {"a": x(m, 3), "b": [x(m, 3)]}),
    "keywords written": lambda m: (lambda k: (m.func.functionalize(lambda v, k: k.mul_(v))(x(m, 3), k=k), k))(x(m, 3)),
    "what is no tensor": lambda m: rewritten(m, lambda v, n, s: (v * n, s, None), x(m, 3), 2, "s"),
    "a failure": lambda m: failing(m),
    "a leaf written": lambda m: rewritten(m, on_views, x(m, 3).requires_grad_()),
    "a captured tensor written": lambda m: (lambda w: rewritten(m, lambda v: w.add_(v), x(m, 3)))(x(m, 3)),
    "a graph below": lambda m: graph_below(m),
    "in grad": lambda m: m.func.grad(m.func.functionalize(lambda v: bent_in_place(m)(v).sum()))(x(m, 3)),
    "of grad": lambda m: m.func.functionalize(m.func.grad(lambda v: bent_in_place(m)(v).sum()))(x(m, 3)),
    "of vmap": lambda m: rewritten(m, m.func.vmap(on_views), x(m, 4, 3)),
    "in vmap": lambda m: m.func.vmap(m.func.functionalize(on_views))(x(m, 4, 3)),
    "in jvp": lambda m: m.func.jvp(m.func.functionalize(bent_in_place(m)), (x(m, 3),), (x(m, 3),)),
    "of jacrev": lambda m: m.func.functionalize(m.func.jacrev(bent_in_place(m)))(x(m, 3)),
    "of functionalize": lambda m: rewritten(m, m.func.functionalize(on_views), x(m, 3)),
}


def bent_in_place(m):
    def f(v):
        out = m.zeros(3, dtype=m.float64)
        out[1:] = v[1:] * v[0]
        out[0].add_(v.sum())
        return out.sin_()

    return f


def failing(m):
    v = x(m, 3)
    try:
        m.func.functionalize(lambda v: (v.add_(1), {}["a"]))(v)
    except KeyError:
        return bool((v == x(m, 3)).all())


def graph_below(m):
    leaf = x(m, 3).requires_grad_()
    v = leaf * 1
    out = m.func.functionalize(on_views)(v)[0]
    return m.autograd.grad((out * out).sum() + v.sum(), leaf)


def unwrapped(m, transform, recurse):
    seen = []
    transform(lambda v: seen.append(m.func.debug_unwrap(v, recurse=recurse)) or v.sum())(x(m, 2, 3))
    return seen if recurse else [tuple(s.shape) for s in seen]


UNWRAPPED = {
    "a tensor outside": lambda m: m.func.debug_unwrap(x(m, 3)),
    "what is no tensor": lambda m: m.func.debug_unwrap(3),
    "in grad": lambda m: unwrapped(m, m.func.grad, True),
    "in vmap": lambda m: unwrapped(m, m.func.vmap, True),
    "in vmap of vmap": lambda m: unwrapped(m, lambda f: m.func.vmap(m.func.vmap(f)), True),
    "one level": lambda m: unwrapped(m, lambda f: m.func.vmap(m.func.vmap(f)), False),
}
