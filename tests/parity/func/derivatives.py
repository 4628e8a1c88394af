"""Parity cases of grad, grad_and_value, vjp, jvp, linearize."""

from .common import cube, integers, mixing, x


def product(a, b):
    return (a * b * b).sum()


def with_aux(v):
    return (v**2).sum(), {"twice": v * 2, "list": [v.sum()]}


def of_trees(m):
    return lambda d: (d["a"] * d["b"][0]).sum() + m.cos(d["b"][1]).sum()


def tree(m):
    return {"a": x(m, 3), "b": (x(m, 3, seed=2), x(m, 2, seed=3))}


class Scaled:
    """A callable object without a name."""

    def __call__(self, v):
        return (v * v).sum()


GRAD = {
    "grad": lambda m: m.func.grad(cube)(x(m, 3)),
    "of float32": lambda m: m.func.grad(cube)(x(m, 3, dtype="float32")),
    "of a number without dimensions": lambda m: m.func.grad(m.sin)(x(m)),
    "of a tree": lambda m: m.func.grad(of_trees(m))(tree(m)),
    "of a list": lambda m: m.func.grad(lambda s: (s[0] * s[1]).sum())([x(m, 2), x(m, 2, seed=2)]),
    "of an empty tree": lambda m: m.func.grad(lambda d: m.ones(()))({}),
    "of a tree with None": lambda m: m.func.grad(lambda d: (d["a"] ** 2).sum())({"a": x(m, 2), "b": None}),
    "argnums 1": lambda m: m.func.grad(product, 1)(x(m, 3), x(m, 3, seed=2)),
    "argnums -1": lambda m: m.func.grad(product, -1)(x(m, 3), x(m, 3, seed=2)),
    "argnums -2": lambda m: m.func.grad(product, -2)(x(m, 3), x(m, 3, seed=2)),
    "argnums (0, 1)": lambda m: m.func.grad(product, (0, 1))(x(m, 3), x(m, 3, seed=2)),
    "argnums (1, 0)": lambda m: m.func.grad(product, (1, 0))(x(m, 3), x(m, 3, seed=2)),
    "argnums (0,)": lambda m: m.func.grad(product, (0,))(x(m, 3), x(m, 3, seed=2)),
    "argnums (-1, 0)": lambda m: m.func.grad(product, (-1, 0))(x(m, 3), x(m, 3, seed=2)),
    "argnums 2 of 2": lambda m: m.func.grad(product, 2)(x(m, 3), x(m, 3)),
    "argnums -3 of 2": lambda m: m.func.grad(product, -3)(x(m, 3), x(m, 3)),
    "argnums (0, 2) of 2": lambda m: m.func.grad(product, (0, 2))(x(m, 3), x(m, 3)),
    "argnums (0, 0)": lambda m: m.func.grad(product, (0, 0))(x(m, 3), x(m, 3)),
    "argnums (0, -2)": lambda m: m.func.grad(product, (0, -2))(x(m, 3), x(m, 3)),
    "argnums ()": lambda m: m.func.grad(product, ())(x(m, 3), x(m, 3)),
    "argnums 0.0": lambda m: m.func.grad(product, 0.0)(x(m, 3), x(m, 3)),
    "argnums (0.0,)": lambda m: m.func.grad(product, (0.0,))(x(m, 3), x(m, 3)),
    "argnums [0]": lambda m: m.func.grad(product, [0])(x(m, 3), x(m, 3)),
    "argnums None": lambda m: m.func.grad(product, None)(x(m, 3), x(m, 3)),
    "argnums True": lambda m: m.func.grad(product, True)(x(m, 3), x(m, 3, seed=2)),
    "no arguments": lambda m: m.func.grad(lambda: m.ones(()))(),
    "keywords are constants": lambda m: m.func.grad(product)(x(m, 3), b=x(m, 3, seed=2)),
    "has_aux": lambda m: m.func.grad(with_aux, has_aux=True)(x(m, 3)),
    "has_aux of two arguments": lambda m: m.func.grad(lambda a, b: (product(a, b), a + b), (0, 1), has_aux=True)(
        x(m, 3), x(m, 3, seed=2)
    ),
    "has_aux of anything": lambda m: m.func.grad(lambda v: (cube(v), {"n": 3, "s": "a"}), has_aux=True)(x(m, 3)),
    "has_aux without aux": lambda m: m.func.grad(cube, has_aux=True)(x(m, 3)),
    "has_aux of three": lambda m: m.func.grad(lambda v: (cube(v), 1, 2), has_aux=True)(x(m, 3)),
    "has_aux of a list": lambda m: m.func.grad(lambda v: [cube(v), 1], has_aux=True)(x(m, 3)),
    "a tuple without has_aux": lambda m: m.func.grad(with_aux)(x(m, 3)),
    "an output that is no scalar": lambda m: m.func.grad(m.sin)(x(m, 3)),
    "an output of shape (1,)": lambda m: m.func.grad(lambda v: v.sum().reshape(1))(x(m, 3)),
    "an output that is no tensor": lambda m: m.func.grad(lambda v: 3.0)(x(m, 3)),
    "an output None": lambda m: m.func.grad(lambda v: None)(x(m, 3)),
    "an integer output": lambda m: m.func.grad(lambda v: m.tensor(3))(x(m, 3)),
    "a constant output": lambda m: m.func.grad(lambda v: m.ones(()))(x(m, 3)),
    "the argument itself": lambda m: m.func.grad(lambda v: v)(x(m)),
    "a captured output": lambda m: (lambda c: m.func.grad(lambda v: c)(x(m, 3)))(x(m)),
    "an integer argument": lambda m: m.func.grad(lambda v: (v * 2).sum())(integers(m, 3)),
    "an integer argument aside": lambda m: m.func.grad(lambda v, n: (v * n).sum())(x(m, 3), integers(m, 3)),
    "a bool argument aside": lambda m: m.func.grad(lambda v, c: m.where(c, v, v * v).sum())(
        x(m, 3), m.tensor([True, False, True])
    ),
    "a float argument": lambda m: m.func.grad(lambda v: v * 2)(3.0),
    "a string argument": lambda m: m.func.grad(lambda v: v)("a"),
    "a string argument aside": lambda m: m.func.grad(lambda v, s: cube(v))(x(m, 3), "a"),
    "a complex argument": lambda m: m.func.grad(lambda v: (v * v.conj()).abs().sum())(x(m, 3, dtype="complex128")),
    "a complex output": lambda m: m.func.grad(lambda v: v.sum())(x(m, 3, dtype="complex128")),
    "complex inside": lambda m: m.func.grad(lambda v: (v * (1 + 2j)).abs().sum())(x(m, 3)),
    "no elements": lambda m: m.func.grad(cube)(x(m, 0)),
    "in no_grad": lambda m: in_mode(m.no_grad, lambda: m.func.grad(cube)(x(m, 3))),
    "with no_grad inside": lambda m: m.func.grad(lambda v: (in_mode(m.no_grad, lambda: v**3) + v).sum())(x(m, 3)),
    "with detach inside": lambda m: m.func.grad(lambda v: (v.detach() * v).sum())(x(m, 3)),
    "with enable_grad in no_grad": lambda m: in_mode(
        m.no_grad, lambda: m.func.grad(lambda v: in_mode(m.enable_grad, lambda: cube(v)))(x(m, 3))
    ),
    "nested in no_grad": lambda m: m.func.grad(
        lambda v: in_mode(m.no_grad, lambda: m.func.grad(cube)(v).sum()) + v.sum()
    )(x(m, 3)),
    "with no_grad in the inner of two": lambda m: m.func.grad(
        lambda v: m.func.grad(lambda w: (in_mode(m.no_grad, lambda: w**2) * w).sum())(v).sum()
    )(x(m, 3)),
    "of a callable object": lambda m: m.func.grad(Scaled())(x(m, 3)),
    "of an operator": lambda m: m.func.grad(m.sum)(x(m, 3)),
    "a closure over a leaf": lambda m: graph_of_closure(m),
    "recorded outside": lambda m: recorded_outside(m),
    "backward through it": lambda m: backward_through(m),
    "a graph below stays alive": lambda m: (lambda w: m.func.grad(lambda v: (v * w * w).sum())(x(m, 3)).requires_grad)(
        x(m, 3).requires_grad_()
    ),
    "requires_grad inside": lambda m: requires_inside(m),
    "written inside": lambda m: m.func.grad(lambda v: v.clone().mul_(v).add_(v).sum())(x(m, 3)),
    "a fresh tensor filled": lambda m: m.func.grad(lambda v: filled(m, v).prod())(x(m, 3)),
    "a view written": lambda m: m.func.grad(lambda v: view_written(v).pow(2).sum())(x(m, 3)),
    "an item written": lambda m: m.func.grad(lambda v: item_written(m, v).pow(2).sum())(x(m, 3)),
    "the argument written": lambda m: argument_written(m),
    "another argument written": lambda m: m.func.grad(lambda v, w: w.mul_(v).sum())(x(m, 3), x(m, 3, seed=2)),
    "a captured tensor written": lambda m: captured_written(m),
    "the gradient of a captured view": lambda m: m.func.grad(lambda v: (stale_view(m, v) ** 2).sum())(x(m, 3)),
    "grad_and_value": lambda m: m.func.grad_and_value(cube)(x(m, 3)),
    "grad_and_value has_aux": lambda m: m.func.grad_and_value(with_aux, has_aux=True)(x(m, 3)),
    "grad_and_value argnums": lambda m: m.func.grad_and_value(product, (1, 0))(x(m, 3), x(m, 3, seed=2)),
    "grad_and_value of no scalar": lambda m: m.func.grad_and_value(m.sin)(x(m, 3)),
    "a name kept": lambda m: (m.func.grad(cube).__name__, m.func.grad_and_value(cube).__name__),
}


def in_mode(mode, action):
    with mode():
        return action()


def graph_of_closure(m):
    w = x(m, 3, seed=2).requires_grad_()
    found = m.func.grad(lambda v: (v**2 * w).sum())(x(m, 3))
    found.sum().backward()
    return found, w.grad


def recorded_outside(m):
    v = x(m, 3).requires_grad_()
    return m.autograd.grad(m.func.grad(cube)(v).sum(), v)


def backward_through(m):
    v = x(m, 3).requires_grad_()
    m.func.grad_and_value(cube)(v)[1].backward()
    return v.grad


def requires_inside(m):
    seen = []
    m.func.grad(lambda v, w: seen.extend([v.requires_grad, w.requires_grad, (v * w).requires_grad]) or cube(v))(
        x(m, 3), x(m, 3)
    )
    return seen


def filled(m, v):
    out = m.zeros(3, dtype=m.float64)
    for i in range(3):
        out[i] = v[i] * (i + 1)
    return out


def view_written(v):
    out = v * 1
    out[:2].mul_(3)
    out[1:].add_(v[:2])
    return out


def item_written(m, v):
    out = v.clone()
    out[m.tensor([0, 2])] = v[:2] * 2
    return out


def stale_view(m, v):
    """A view taken before its base is written to."""
    base = m.zeros(3, dtype=m.float64)
    view = base[:2]
    base.add_(v)
    return view


def argument_written(m):
    v = x(m, 3)
    return m.func.grad(lambda v: v.mul_(2).sum())(v), v


def captured_written(m):
    kept = x(m, 3)
    return m.func.grad(lambda v: kept.mul_(v).sum())(x(m, 3))


def random_vjp(m, f, *primals, seed=5):
    """Return the output and the vjp of random cotangents."""
    out, pull = m.func.vjp(f, *primals)
    return out, pull(x(m, *out.shape, seed=seed, dtype=str(out.dtype).removeprefix("torch.")))


VJP = {
    "vjp": lambda m: random_vjp(m, mixing(m), x(m, 3)),
    "of two arguments": lambda m: random_vjp(m, lambda a, b: a * b[:, None], x(m, 3), x(m, 3, seed=2)),
    "called twice": lambda m: (lambda pull: [pull(m.ones(3, dtype=m.float64)) for _ in range(2)])(
        m.func.vjp(mixing(m), x(m, 3))[1]
    ),
    "of trees": lambda m: (lambda out, pull: (out, pull({"s": out["s"], "t": [out["t"][0]]})))(
        *m.func.vjp(lambda d: {"s": d["a"] * 2, "t": [d["b"][0].sum()]}, tree(m))
    ),
    "has_aux": lambda m: (lambda out, pull, aux: (out, pull(out), aux))(
        *m.func.vjp(lambda v: (v**2, {"aux": v * 2}), x(m, 3), has_aux=True)
    ),
    "has_aux of anything": lambda m: m.func.vjp(lambda v: (v**2, "aux"), x(m, 3), has_aux=True)[2],
    "has_aux without aux": lambda m: m.func.vjp(cube, x(m, 3), has_aux=True),
    "complex": lambda m: random_vjp(m, lambda v: v * v, x(m, 3, dtype="complex128")),
    "complex of a real argument": lambda m: random_vjp(m, lambda v: v * (1 + 2j), x(m, 3)),
    "real of a complex argument": lambda m: random_vjp(m, lambda v: v.real * v.imag, x(m, 3, dtype="complex128")),
    "an output that does not depend": lambda m: random_vjp(m, lambda v: m.ones(2, dtype=m.float64), x(m, 3)),
    "an argument without effect": lambda m: random_vjp(m, lambda a, b: a * 2, x(m, 3), x(m, 2)),
    "the argument itself": lambda m: random_vjp(m, lambda v: v, x(m, 3)),
    "one output twice": lambda m: (lambda out, pull: pull(out))(*m.func.vjp(lambda v: (v, v), x(m, 3))),
    "no elements": lambda m: random_vjp(m, m.sin, x(m, 0)),
    "no primals": lambda m: m.func.vjp(lambda: m.ones(3))[0],
    "an output that is no tensor": lambda m: m.func.vjp(lambda v: 3.0, x(m, 3)),
    "an output with None": lambda m: m.func.vjp(lambda v: (v, None), x(m, 3)),
    "an empty output": lambda m: m.func.vjp(lambda v: (), x(m, 3)),
    "a cotangent of another shape": lambda m: m.func.vjp(m.sin, x(m, 3))[1](x(m, 2)),
    "a cotangent that would broadcast": lambda m: m.func.vjp(m.sin, x(m, 3))[1](x(m, 1)),
    "a cotangent of another dtype": lambda m: m.func.vjp(m.sin, x(m, 3))[1](x(m, 3, dtype="float32")),
    "a cotangent of another structure": lambda m: m.func.vjp(m.sin, x(m, 3))[1]((x(m, 3),)),
    "a list for a tuple": lambda m: m.func.vjp(lambda v: (v, v), x(m, 3))[1]([x(m, 3), x(m, 3)]),
    "a number as cotangent": lambda m: m.func.vjp(m.sum, x(m, 3))[1](1.0),
    "a cotangent too many": lambda m: m.func.vjp(m.sin, x(m, 3))[1](x(m, 3), x(m, 3), x(m, 3), x(m, 3)),
    "an integer output": lambda m: m.func.vjp(lambda v: m.argmax(v), x(m, 3))[0],
    "an integer argument": lambda m: m.func.vjp(lambda v: v * 2, integers(m, 3)),
    "vmap over the pull": lambda m: m.func.vmap(m.func.vjp(mixing(m), x(m, 3))[1])(x(m, 4, 3, seed=9)),
    "in no_grad": lambda m: in_mode(m.no_grad, lambda: random_vjp(m, m.sin, x(m, 3))),
    "pulled in no_grad": lambda m: (lambda pull: in_mode(m.no_grad, lambda: pull(m.ones(3, dtype=m.float64))))(
        m.func.vjp(m.sin, x(m, 3))[1]
    ),
    "graph of the cotangent": lambda m: graph_of_cotangent(m),
    "second derivative by the pull": lambda m: m.func.vjp(
        lambda v: m.func.vjp(mixing(m), v)[1](m.ones(3, dtype=m.float64))[0], x(m, 3)
    )[1](x(m, 3, seed=4)),
    "a stale view": lambda m: random_vjp(m, lambda v: stale_view(m, v), x(m, 3)),
}


def graph_of_cotangent(m):
    g = x(m, 3, seed=4).requires_grad_()
    (found,) = m.func.vjp(m.sin, x(m, 3))[1](g)
    return m.autograd.grad(found.sum(), g)


def random_jvp(m, f, *primals, **kwargs):
    tangents = tuple(x(m, *p.shape, seed=7 + i, dtype=str(p.dtype).removeprefix("torch."))
                     for i, p in enumerate(primals))  # fmt: skip
    return m.func.jvp(f, primals, tangents, **kwargs)


JVP = {
    "jvp": lambda m: random_jvp(m, mixing(m), x(m, 3)),
    "of float32": lambda m: random_jvp(m, mixing(m), x(m, 3, dtype="float32")),
    "of two arguments": lambda m: random_jvp(m, lambda a, b: a * b[:, None], x(m, 3), x(m, 3, seed=2)),
    "of trees": lambda m: m.func.jvp(lambda d: {"s": d["a"] * 2, "t": [d["b"][0].sum()]}, (tree(m),), (tree(m),)),
    "has_aux": lambda m: random_jvp(m, lambda v: (v**2, {"aux": v * 2}), x(m, 3), has_aux=True),
    "has_aux of anything": lambda m: random_jvp(m, lambda v: (v**2, 3), x(m, 3), has_aux=True),
    "has_aux without aux": lambda m: random_jvp(m, cube, x(m, 3), has_aux=True),
    "complex": lambda m: random_jvp(m, lambda v: v * v, x(m, 3, dtype="complex128")),
    "complex of a real argument": lambda m: random_jvp(m, lambda v: v * (1 + 2j), x(m, 3)),
    "real of a complex argument": lambda m: random_jvp(m, lambda v: v.abs(), x(m, 3, dtype="complex128")),
    "an output that does not depend": lambda m: random_jvp(m, lambda v: m.ones(2, dtype=m.float64), x(m, 3)),
    "strict": lambda m: random_jvp(m, lambda v: m.ones(2, dtype=m.float64), x(m, 3), strict=True),
    "strict and dependent": lambda m: random_jvp(m, m.sin, x(m, 3), strict=True),
    "strict and partly dependent": lambda m: random_jvp(m, lambda v: (v, m.ones(2)), x(m, 3), strict=True),
    "the argument itself": lambda m: random_jvp(m, lambda v: v, x(m, 3)),
    "a comparison as output": lambda m: random_jvp(m, lambda v: v > 0, x(m, 3)),
    "a rounding as output": lambda m: random_jvp(m, lambda v: v.round(), x(m, 3)),
    "a detached output": lambda m: random_jvp(m, lambda v: v.detach() * v, x(m, 3)),
    "no elements": lambda m: random_jvp(m, m.sin, x(m, 0)),
    "no primals": lambda m: m.func.jvp(lambda: m.ones(3), (), ()),
    "primals that are no tuple": lambda m: m.func.jvp(m.sin, x(m, 3), x(m, 3)),
    "primals in a list": lambda m: m.func.jvp(m.sin, [x(m, 3)], [x(m, 3)]),
    "tangents in a list": lambda m: m.func.jvp(m.sin, (x(m, 3),), [x(m, 3)]),
    "a tangent missing": lambda m: m.func.jvp(m.mul, (x(m, 3), x(m, 3)), (x(m, 3),)),
    "a tangent of another shape": lambda m: m.func.jvp(m.sin, (x(m, 3),), (x(m, 2),)),
    "a tangent that would broadcast": lambda m: m.func.jvp(m.sin, (x(m, 3),), (x(m, 1),)),
    "a tangent of another dtype": lambda m: m.func.jvp(m.sin, (x(m, 3),), (x(m, 3, dtype="float32"),)),
    "a number as tangent": lambda m: m.func.jvp(m.sin, (x(m),), (1.0,)),
    "a number as primal": lambda m: m.func.jvp(m.sin, (1.0,), (m.ones(()),)),
    "an output that is no tensor": lambda m: random_jvp(m, lambda v: 3.0, x(m, 3)),
    "an output with None": lambda m: random_jvp(m, lambda v: (v, None), x(m, 3)),
    "an integer argument": lambda m: m.func.jvp(lambda v: v * 2, (integers(m, 3),), (integers(m, 3),)),
    "in no_grad": lambda m: in_mode(m.no_grad, lambda: random_jvp(m, m.sin, x(m, 3))),
    "no_grad inside": lambda m: random_jvp(m, lambda v: in_mode(m.no_grad, lambda: v * v), x(m, 3)),
    "written inside": lambda m: random_jvp(m, lambda v: v.clone().mul_(v).add_(v), x(m, 3)),
    "a fresh tensor filled": lambda m: random_jvp(m, lambda v: filled(m, v), x(m, 3)),
    "a view written": lambda m: random_jvp(m, view_written, x(m, 3)),
    "a stale view": lambda m: random_jvp(m, lambda v: stale_view(m, v), x(m, 3)),
    "vmap over tangents": lambda m: m.func.vmap(lambda t: m.func.jvp(mixing(m), (x(m, 3),), (t,))[1])(x(m, 4, 3)),
    "an argument written": lambda m: random_jvp(m, lambda v: v.mul_(2).sum(), x(m, 3)),
    "an argument written with itself": lambda m: random_jvp(m, lambda v: v.mul_(v).sum(), x(m, 3)),
    "the argument after a write": lambda m: (lambda v: (random_jvp(m, lambda v: v.mul_(2), v), v))(x(m, 3)),
    "perturbations are not confused": lambda m: m.func.jvp(
        lambda a: a * m.func.jvp(lambda b: a + b, (m.ones(()),), (m.ones(()),))[1], (m.ones(()),), (m.ones(()),)
    ),
    "a graph below": lambda m: graph_of_tangent(m),
}


def graph_of_tangent(m):
    v, t = x(m, 3).requires_grad_(), x(m, 3, seed=4).requires_grad_()
    _, along = m.func.jvp(m.sin, (v,), (t,))
    return m.autograd.grad(along.sum(), (v, t))


def linear(m, f, *primals, seed=8):
    out, push = m.func.linearize(f, *primals)
    return out, push(*[x(m, *p.shape, seed=seed + i) for i, p in enumerate(primals)])


LINEARIZE = {
    "linearize": lambda m: linear(m, mixing(m), x(m, 3)),
    "of two arguments": lambda m: linear(m, lambda a, b: a * b[:, None], x(m, 3), x(m, 3, seed=2)),
    "of trees": lambda m: (lambda out, push: (out, push(tree(m))))(
        *m.func.linearize(lambda d: {"s": d["a"] * 2, "t": [d["b"][0].sum()]}, tree(m))
    ),
    "called twice": lambda m: (lambda push: [push(x(m, 3, seed=s)) for s in (4, 5)])(
        m.func.linearize(mixing(m), x(m, 3))[1]
    ),
    "vmap over the push": lambda m: m.func.vmap(m.func.linearize(mixing(m), x(m, 3))[1])(x(m, 4, 3)),
    "a tangent of another shape": lambda m: m.func.linearize(m.sin, x(m, 3))[1](x(m, 2)),
    "a tangent of another dtype": lambda m: m.func.linearize(m.sin, x(m, 3))[1](x(m, 3, dtype="float32")),
    "a tangent too many": lambda m: m.func.linearize(m.sin, x(m, 3))[1](x(m, 3), x(m, 3)),
    "a tangent of another structure": lambda m: m.func.linearize(m.sin, x(m, 3))[1]((x(m, 3),)),
    "an output that is no tensor": lambda m: m.func.linearize(lambda v: 3.0, x(m, 3))[0],
    "no primals": lambda m: m.func.linearize(lambda: m.ones(3))[0],
    "an integer primal": lambda m: m.func.linearize(lambda v: v * 2, integers(m, 3))[0],
}
