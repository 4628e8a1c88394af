"""Parity cases of the newer API: register_autograd, its ctx, and calls of operators."""

from .common import hooked, keep, leaf, newer, of_numpy, plain, twice, with_formula

ONE = "(Tensor x) -> Tensor"
TWO = "(Tensor x, Tensor[] ys, int n) -> Tensor"


def cube(m):
    return with_formula(
        m, ONE, lambda x: of_numpy(m, x.numpy() ** 3), lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2, keep(m)
    )


def first(m):
    x = leaf(m, 2.0, 3.0)
    out = cube(m)(x)
    out.sum().backward()
    return out, x.grad


def second(m):
    x = leaf(m, 2.0)
    (g,) = m.autograd.grad(cube(m)(x).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = m.autograd.grad(h.sum(), x)
    return g, h, k


def written(m):
    op = with_formula(
        m,
        "(Tensor x, Tensor y) -> Tensor",
        lambda x, y: x * y,
        lambda ctx, g: (g * ctx.saved_tensors[1], None),
        keep(m),
    )
    y = plain(m, 2.0)
    out = op(leaf(m, 1.0), y)
    y.add_(1)
    out.sum().backward()


def needs(schema, args, count):
    def case(m):
        seen = []

        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return (g, *[None] * (count - 1)) if "[]" not in schema else (g, [None, None], None)

        op = with_formula(m, schema, lambda x, *rest, **named: x * 1, backward)
        op(*args(m)).sum().backward()
        return seen

    return case


def missing(materialize):
    def case(m):
        seen = []

        def setup_context(ctx, inputs, output):
            ctx.set_materialize_grads(materialize)

        def backward(ctx, g, h):
            seen.append((g, h))
            return h

        op = with_formula(m, "(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, x * 3), backward, setup_context)
        op(leaf(m, 1.0))[1].sum().backward()
        return seen

    return case


def marked(m):
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])

    op = with_formula(
        m, "(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h, setup_context
    )
    x = leaf(m, 1.0)
    a, b = op(x)
    a.sum().backward()
    return a.requires_grad, b.requires_grad, x.grad


def named_inputs(m):
    seen = []

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        seen.append((inputs[1], keyword_only_inputs))
        ctx.by = keyword_only_inputs["by"]

    op = with_formula(
        m,
        "(Tensor x, int n, *, float by=3.0, int k=1) -> Tensor",
        lambda x, n, *, by=3.0, k=1: x * by,
        lambda ctx, g: (g * ctx.by, None),
        setup_context,
    )
    x = leaf(m, 1.0)
    op(x, 2, by=4.0).sum().backward()
    op(x, 2).sum().backward()
    return seen, x.grad


def named_tensor(m):
    op = newer(m, "(Tensor x, *, Tensor y) -> Tensor", lambda x, *, y: x * y)
    op.register_autograd(lambda ctx, g: g)


def attributes(m):
    def setup_context(ctx, inputs, output):
        ctx.n = inputs[1]

    op = with_formula(
        m, "(Tensor x, int n) -> Tensor", lambda x, n: x * n, lambda ctx, g: (g * ctx.n, None), setup_context
    )
    x = leaf(m, 1.0)
    op(x, 7).sum().backward()
    return x.grad


def saved_output(m):
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    op = with_formula(m, ONE, lambda x: x.exp(), lambda ctx, g: g * ctx.saved_tensors[0], setup_context)
    x = leaf(m, 0.5)
    (g,) = m.autograd.grad(op(x).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x)
    return g, h


def saved_number(m):
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(3)

    with_formula(m, ONE, lambda x: x * 1, lambda ctx, g: g, setup_context)(leaf(m, 1.0))


def returning(returned, args=None):
    def case(m):
        op = with_formula(m, TWO, lambda x, ys, n: x * n, lambda ctx, g: returned(m, g))
        x, y, z = leaf(m, 1.0, 2.0), leaf(m, 3.0, 4.0), leaf(m, 5.0, 6.0)
        op(x, [y, z], 2).sum().backward()
        return x.grad, y.grad, z.grad

    return case


def no_formula(backward):
    def case(m):
        op = newer(m, ONE, lambda x: x * 2)
        out = op(leaf(m, 1.0))
        if backward:
            out.sum().backward()
        return out, out.requires_grad

    return case


def registered_later(m):
    op = newer(m, ONE, lambda x: x * 2)
    x = leaf(m, 1.0)
    out = op(x)
    op.register_autograd(lambda ctx, g: g * 2)
    out.sum().backward()
    return x.grad


def replaced(m):
    op = with_formula(m, ONE, lambda x: x * 2, lambda ctx, g: g * 2)
    op.register_autograd(lambda ctx, g: g * 5)
    x = leaf(m, 1.0)
    op(x).sum().backward()
    return x.grad


def redefined(m):
    name = f"parity_library::newer_{m.__name__}"
    m.library.custom_op(name, lambda x: x * 2, mutates_args=(), schema=ONE)
    op = m.library.custom_op(name, lambda x: x * 3, mutates_args=(), schema=ONE)
    return op(plain(m, 1.0)), getattr(m.ops.parity_library, f"newer_{m.__name__}")(plain(m, 1.0))


def complex_gradient(m):
    op = with_formula(m, ONE, lambda x: x * 2j, lambda ctx, g: g * -2j)
    x = m.tensor([1 + 1j, 2 - 1j], requires_grad=True)
    op(x).abs().sum().backward()
    return x.grad


def lists(m):
    op = with_formula(
        m,
        "(Tensor[] xs, float by) -> Tensor[]",
        lambda xs, by: [x * by for x in xs],
        lambda ctx, gs: ([g * 3 for g in gs], None),
    )
    x, y = leaf(m, 1.0), leaf(m, 2.0)
    a, b = op([x, y], 3.0)
    (a + b * 10).sum().backward()
    return a, b, x.grad, y.grad


def numbers(m):
    op = with_formula(m, "(Tensor x) -> (Tensor, int)", lambda x: (x * 2, 7), lambda ctx, g, n: g * 2)
    x = leaf(m, 1.0)
    out, n = op(x)
    out.sum().backward()
    return n, x.grad


FORMULAS = {
    "first": first,
    "to the third": second,
    "two passes": twice(cube, retain=True),
    "two passes of a graph that is freed": twice(cube, retain=False),
    "a saved tensor written to": written,
    "hooks of saved tensors": hooked(cube),
    "needs_input_grad of two": needs("(Tensor x, Tensor y) -> Tensor", lambda m: (leaf(m, 1.0), plain(m, 1.0)), 2),
    "needs_input_grad of a number": needs("(Tensor x, int n) -> Tensor", lambda m: (leaf(m, 1.0), 2), 2),
    "needs_input_grad of None": needs("(Tensor x, Tensor? w) -> Tensor", lambda m: (leaf(m, 1.0), None), 2),
    "needs_input_grad of a list": needs(TWO, lambda m: (leaf(m, 1.0), [plain(m, 1.0), leaf(m, 2.0)], 3), 3),
    "missing gradients": missing(materialize=True),
    "missing gradients that are not wanted": missing(materialize=False),
    "an output marked off": marked,
    "keyword_only_inputs": named_inputs,
    "a tensor that must be named": named_tensor,
    "attributes of the ctx": attributes,
    "a saved output": saved_output,
    "a number saved": saved_number,
    "all gradients": returning(lambda m, g: (g, [g * 2, g * 3], None)),
    "one gradient left out": returning(lambda m, g: (g, [None, g], None)),
    "too few gradients": returning(lambda m, g: (g, [g, g])),
    "too many gradients": returning(lambda m, g: (g, [g, g], None, g)),
    "a gradient of a number": returning(lambda m, g: (g, [g, g], g)),
    "a number as gradient": returning(lambda m, g: (3.0, [g, g], None)),
    "no list for a list": returning(lambda m, g: (g, g, None)),
    "None for a list": returning(lambda m, g: (g, None, None)),
    "too short a list": returning(lambda m, g: (g, [g], None)),
    "another shape": returning(lambda m, g: (m.ones(3), [g, g], None)),
    "no formula, the call": no_formula(backward=False),
    "no formula, the backward pass": no_formula(backward=True),
    "a formula registered later": registered_later,
    "a formula replaced": replaced,
    "a second definition": redefined,
    "a complex gradient": complex_gradient,
    "lists in and out": lists,
    "a number among the outputs": numbers,
}


def calling(schema, *args, **kwargs):
    """Return the arguments of a kernel for a call."""

    def case(m):
        seen = []

        def kernel(*a, **k):
            seen.append(([v for v in a if not isinstance(v, m.Tensor)], k))
            return m.ones(1)

        given = [plain(m, 1.0) if a is TENSOR else [plain(m, 1.0)] * 2 if a is LIST else a for a in args]
        op = newer(m, schema, kernel)
        return op(*given, **kwargs), [[len(v) if isinstance(v, (list, tuple)) else v for v in a] for a, _ in seen]

    return case


TENSOR, LIST = object(), object()
MISFITS = {
    "a float for an int": calling("(Tensor x, int n) -> Tensor", TENSOR, 2.5),
    "a string for an int": calling("(Tensor x, int n) -> Tensor", TENSOR, "a"),
    "a number for a tensor": calling("(Tensor x) -> Tensor", 2.0),
    "a tensor for a list": calling("(Tensor[] xs) -> Tensor", TENSOR),
    "a list for a tensor": calling("(Tensor x) -> Tensor", LIST),
    "an argument missing": calling("(Tensor x, int n) -> Tensor", TENSOR),
    "an argument too many": calling("(Tensor x) -> Tensor", TENSOR, 2),
    "an unknown argument": calling("(Tensor x) -> Tensor", TENSOR, z=2),
    "a named argument by position": calling("(Tensor x, *, int n) -> Tensor", TENSOR, 2),
    "an argument twice": calling("(Tensor x, int n) -> Tensor", TENSOR, 2, n=3),
}
CALLS = {
    **MISFITS,
    "numbers": calling("(Tensor x, int n, float a, bool b, str s) -> Tensor", TENSOR, 1, 2.0, True, "a"),
    "an int for a float": calling("(Tensor x, float a) -> Tensor", TENSOR, 2),
    "None for a tensor": calling("(Tensor x) -> Tensor", None),
    "None for an optional": calling("(Tensor x, Tensor? w, int? n) -> Tensor", TENSOR, None, None),
    "a list": calling("(Tensor[] xs) -> Tensor", LIST),
    "numbers in a list": calling("(Tensor x, int[] n, float[] a) -> Tensor", TENSOR, [1, 2], [0.5]),
    "the input as result": lambda m: newer(m, ONE, lambda x: x)(plain(m, 1.0)),
    "a view as result": lambda m: newer(m, ONE, lambda x: x[:1])(plain(m, 1.0)),
    "one result twice": lambda m: newer(m, "(Tensor x) -> (Tensor, Tensor)", lambda x: (lambda y: (y, y))(x + 1))(
        plain(m, 1.0)
    ),
    "a number for a tensor result": lambda m: newer(m, ONE, lambda x: 3.0)(plain(m, 1.0)),
    "too few results": lambda m: newer(m, "(Tensor x) -> (Tensor, Tensor)", lambda x: (x + 1,))(plain(m, 1.0)),
    "no result": lambda m: newer(m, "(Tensor x) -> ()", lambda x: None)(plain(m, 1.0)),
    "a number as result": lambda m: newer(m, "(Tensor x) -> int", lambda x: 3)(plain(m, 1.0)),
    "a kernel for another kind": lambda m: newer(m, ONE, lambda x: x + 1, device_types="cuda")(plain(m, 1.0)),
    "kernels for two kinds": lambda m: newer(m, ONE, lambda x: x + 1, device_types=["cpu", "cuda"])(plain(m, 1.0)),
    "a name without namespace": lambda m: m.library.custom_op("nothing", lambda x: x, mutates_args=(), schema=ONE),
    "vmap by a rule": lambda m: _vmapped(m),
}


def _vmapped(m):
    op = newer(m, ONE, lambda x: of_numpy(m, x.numpy() * 2))

    @op.register_vmap
    def _(info, in_dims, x):
        return op(x) + info.batch_size, in_dims[0]

    vmap = (m.func if hasattr(m, "func") else m).vmap
    return vmap(op)(m.ones(3, 2, dtype=m.float64)), vmap(op, in_dims=1)(m.ones(3, 2, dtype=m.float64))
