"""Parity cases of the older API: prototype, kernel, and the pair of save and backward."""

from .common import hooked, leaf, of_numpy, older, plain, twice, with_pair

ONE = "(Tensor x) -> Tensor"
MIXED = "(Tensor x, Tensor[] ys, Tensor? w, int n, float[] s) -> Tensor"
THREE = "(Tensor x) -> (Tensor, Tensor, int)"


def gradient(schema, kernel, backward, args, save=lambda inputs, output: None, marks=None, weight=3):
    """Return the results of a call, and the gradients of the leaves among its arguments."""

    def case(m):
        op = with_pair(m, schema, lambda *a: kernel(m, *a), lambda ctx, s, *g: backward(m, s, *g), save, marks)
        given = args(m)
        out = op(*given)
        tensors = [t for t in _leaves(m, out) if t.requires_grad]
        sum([(t * (weight + i)).sum() for i, t in enumerate(tensors)]).backward()
        leaves = [t for t in _leaves(m, given) if t.requires_grad]
        return out, [t.requires_grad for t in _leaves(m, out)], [t.grad for t in leaves]

    return case


def _leaves(m, value):
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _leaves(m, v)]
    return [value] if isinstance(value, m.Tensor) else []


def cube(m):
    return with_pair(
        m,
        ONE,
        lambda x: of_numpy(m, x.numpy() ** 3),
        lambda ctx, saved, g: {"x": g * 3 * saved**2},
        lambda inputs, output: inputs.x,
    )


def second(m):
    x = leaf(m, 2.0)
    (g,) = m.autograd.grad(cube(m)(x).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x)
    return g, h


def written(m):
    x, y = leaf(m, 2.0), plain(m, 3.0)
    op = with_pair(
        m,
        "(Tensor x, Tensor y) -> Tensor",
        lambda x, y: x * y,
        lambda ctx, saved, g: {"x": g * saved, "y": None},
        lambda inputs, output: inputs.y,
    )
    out = op(x, y)
    y.add_(1)
    out.sum().backward()


def returning(returned, schema="(Tensor x, Tensor[] ys, int n) -> Tensor", args=None):
    """Run a backward pass whose formula returns that value."""

    def case(m):
        op = with_pair(m, schema, lambda x, *rest: x * 2, lambda ctx, saved, g: returned(m, g))
        x, y, z = leaf(m, 1.0, 2.0), leaf(m, 3.0, 4.0), leaf(m, 5.0, 6.0)
        op(*((x, [y, z], 2) if args is None else args(m, x))).sum().backward()
        return x.grad, y.grad, z.grad

    return case


def seen_by_save(m):
    seen = []

    def save(inputs, output):
        seen.append((inputs._fields, inputs.x, list(inputs.ys), inputs.w, inputs.n, inputs.s, output))

    op = with_pair(
        m, MIXED, lambda x, ys, w, n, s: x * n, lambda ctx, saved, g: {"x": g, "ys": [None], "w": None}, save
    )
    op(leaf(m, 1.0), [plain(m, 2.0)], None, 3, [0.5])
    return seen


def saved_value(value):
    def case(m):
        seen = []

        def backward(ctx, saved, g):
            seen.append(saved)
            return {"x": g}

        op = with_pair(m, ONE, lambda x: x * 2, backward, lambda inputs, output: value(inputs, output))
        x = leaf(m, 2.0)
        op(x).sum().backward()
        return seen, x.grad

    return case


def zeros(pick):
    """Return the cotangents of unused outputs."""

    def case(m):
        seen = []

        def backward(ctx, saved, g, h, n):
            seen.append((g, h, n))
            return {"x": g + h}

        op = with_pair(m, THREE, lambda x: (x * 1, x * 2, 3), backward)
        op(leaf(m, 1.0, 2.0))[pick].sum().backward()
        return seen

    return case


def formula_missing(call):
    def case(m):
        return call(m, older(m, "(Tensor x, Tensor[] ys) -> Tensor", lambda x, ys: x * 2))

    return case


def without(m, x):
    with m.no_grad():
        return x()


def half(register):
    def case(m):
        op = older(m, ONE, lambda x: x * 2)
        register(op)
        return op(leaf(m, 1.0))

    return case


def later(m):
    op = older(m, ONE, lambda x: x * 2)
    x = leaf(m, 1.0)
    try:
        op(x)
    except RuntimeError:
        op.impl_save_for_backward()(lambda inputs, output: None)
        op.impl_backward()(lambda ctx, saved, g: {"x": g * 5})
    op(x).sum().backward()
    return x.grad


def again(register):
    def case(m):
        op = older(m, ONE)
        register(op)
        register(op)

    return case


def redefined(m):
    older(m, ONE, name=f"redefined_{m.__name__}")
    older(m, ONE, name=f"redefined_{m.__name__}")


def identity(m, *args):
    return [a.clone() if isinstance(a, m.Tensor) else a for a in args]


LIST = "(Tensor[] xs) -> Tensor[]"
PAIRS = {
    "one tensor": gradient(ONE, lambda m, x: x * 2, lambda m, s, g: {"x": g * 2}, lambda m: (leaf(m, 1.0, 2.0),)),
    "all kinds of arguments": gradient(
        MIXED,
        lambda m, x, ys, w, n, s: x * n + ys[0] * s[0] + w,
        lambda m, s, g: {"x": g * 2, "ys": [g * 3, None], "w": g},
        lambda m: (leaf(m, 1.0), [leaf(m, 2.0), plain(m, 3.0)], leaf(m, 4.0), 2, [3.0]),
    ),
    "an optional tensor that is None": gradient(
        MIXED,
        lambda m, x, ys, w, n, s: x * n,
        lambda m, s, g: {"x": g * 2, "ys": [], "w": None},
        lambda m: (leaf(m, 1.0), [], None, 2, []),
    ),
    "a list in, a list out": gradient(
        LIST,
        lambda m, xs: [x * 2 for x in xs],
        lambda m, s, gs: {"xs": [g * 2 for g in gs]},
        lambda m: ([leaf(m, 1.0), leaf(m, 2.0, 3.0)],),
    ),
    "a gradient left out of a list": gradient(
        LIST,
        lambda m, xs: [x * 2 for x in xs],
        lambda m, s, gs: {"xs": [gs[0], None]},
        lambda m: ([leaf(m, 1.0), leaf(m, 2.0)],),
    ),
    "gradients of a list in a tuple": gradient(
        LIST,
        lambda m, xs: [x * 2 for x in xs],
        lambda m, s, gs: {"xs": tuple(gs)},
        lambda m: ([leaf(m, 1.0), leaf(m, 2.0)],),
    ),
    "several outputs": gradient(
        "(Tensor x) -> (Tensor, Tensor)",
        lambda m, x: (x * 2, x * 3),
        lambda m, s, g, h: {"x": g * 2 + h * 3},
        lambda m: (leaf(m, 1.0, 2.0),),
    ),
    "a number among the outputs": gradient(
        THREE, lambda m, x: (x * 2, x * 3, 7), lambda m, s, g, h, n: {"x": g * 2 + h * 3}, lambda m: (leaf(m, 1.0),)
    ),
    "a list among the outputs": gradient(
        "(Tensor x) -> (Tensor, Tensor[])",
        lambda m, x: (x * 2, [x * 3, x * 4]),
        lambda m, s, g, gs: {"x": g * 2 + gs[0] * 3 + gs[1] * 4},
        lambda m: (leaf(m, 1.0),),
    ),
    "an output marked off": gradient(
        THREE,
        lambda m, x: (x * 2, x * 3, 7),
        lambda m, s, g, h, n: {"x": g * 2 + h * 3},
        lambda m: (leaf(m, 1.0),),
        marks=[True, False, False],
    ),
    "a list marked off": gradient(
        "(Tensor x) -> (Tensor, Tensor[])",
        lambda m, x: (x * 2, [x * 3, x * 4]),
        lambda m, s, g, gs: {"x": g * 2},
        lambda m: (leaf(m, 1.0),),
        marks=[True, False],
    ),
    "an integer output": gradient(
        "(Tensor x) -> (Tensor, Tensor)",
        lambda m, x: (x * 2, x.to(m.int64)),
        lambda m, s, g, h: {"x": g * 2},
        lambda m: (leaf(m, 1.0),),
    ),
    "a number marked on": gradient(
        THREE,
        lambda m, x: (x * 2, x * 3, 7),
        lambda m, s, g, h, n: {"x": g},
        lambda m: (leaf(m, 1.0),),
        marks=[True, True, True],
    ),
    "too few marks": gradient(
        THREE, lambda m, x: (x, x, 7), lambda m, s, *g: {}, lambda m: (leaf(m, 1.0),), marks=[True, True]
    ),
    "marks that are no bools": gradient(
        THREE, lambda m, x: (x, x, 7), lambda m, s, *g: {}, lambda m: (leaf(m, 1.0),), marks=[1, 1, 0]
    ),
    "marks that are no list": gradient(ONE, lambda m, x: x, lambda m, s, *g: {}, lambda m: (leaf(m, 1.0),), marks=True),
    "zeros for the first": zeros(1),
    "zeros for the second": zeros(0),
    "what save gets": seen_by_save,
    "keeping a tensor": saved_value(lambda inputs, output: inputs.x),
    "keeping the output": saved_value(lambda inputs, output: output),
    "keeping numbers": saved_value(lambda inputs, output: (3, "a", None)),
    "keeping a nest": saved_value(lambda inputs, output: {"x": [inputs.x, 3], "y": (output, None)}),
    "keeping nothing": saved_value(lambda inputs, output: None),
    "a second derivative": second,
    "two passes": twice(cube, retain=True),
    "two passes of a graph that is freed": twice(cube, retain=False),
    "a saved tensor written to": written,
    "hooks of saved tensors": hooked(cube),
    "all gradients": returning(lambda m, g: {"x": g, "ys": [g * 2, g * 3]}),
    "no gradients": returning(lambda m, g: {"x": g, "ys": [None, None]}),
    "no dict": returning(lambda m, g: (g, [g, g])),
    "None for the dict": returning(lambda m, g: None),
    "a key missing": returning(lambda m, g: {"x": g}),
    "a key too many": returning(lambda m, g: {"x": g, "ys": [g, g], "z": g}),
    "a key that is no tensor's": returning(lambda m, g: {"x": g, "ys": [g, g], "n": None}),
    "no list for a list": returning(lambda m, g: {"x": g, "ys": g}),
    "None for a list": returning(lambda m, g: {"x": g, "ys": None}),
    "too short a list": returning(lambda m, g: {"x": g, "ys": [g]}),
    "too long a list": returning(lambda m, g: {"x": g, "ys": [g, g, g]}),
    "a number in a list": returning(lambda m, g: {"x": g, "ys": [g, 3.0]}),
    "a number for a tensor": returning(lambda m, g: {"x": 3.0, "ys": [g, g]}),
    "a list for a tensor": returning(lambda m, g: {"x": [g], "ys": [g, g]}),
    "another shape": returning(lambda m, g: {"x": m.ones(3), "ys": [g, g]}),
    "a shape to be summed": returning(lambda m, g: {"x": m.ones(4, 2, dtype=m.float64), "ys": [g, g]}),
    "another dtype": returning(lambda m, g: {"x": m.ones(2, dtype=m.float32), "ys": [g, g]}),
    "a gradient for what was None": returning(
        lambda m, g: {"x": g, "w": g}, "(Tensor x, Tensor? w) -> Tensor", lambda m, x: (x, None)
    ),
    "no formula": formula_missing(lambda m, op: op(leaf(m, 1.0), [])),
    "no formula, a list member": formula_missing(lambda m, op: op(plain(m, 1.0), [leaf(m, 1.0)])),
    "no formula, none needed": formula_missing(lambda m, op: op(plain(m, 1.0), [plain(m, 1.0)])),
    "no formula, no_grad": formula_missing(lambda m, op: without(m, lambda: op(leaf(m, 1.0), []))),
    "no formula, detached": formula_missing(lambda m, op: op(leaf(m, 1.0).detach(), [])),
    "the saving half alone": half(lambda op: op.impl_save_for_backward()(lambda inputs, output: None)),
    "the formula alone": half(lambda op: op.impl_backward()(lambda ctx, saved, g: {"x": g})),
    "a formula registered later": later,
    "two kernels": again(lambda op: op.impl("cpu")(lambda x: x)),
    "two abstract functions": again(lambda op: op.impl_abstract()(lambda x: x)),
    "two saving halves": again(lambda op: op.impl_save_for_backward()(lambda inputs, output: None)),
    "two formulas": again(lambda op: op.impl_backward()(lambda ctx, saved, g: {"x": g})),
    "two definitions": redefined,
    "no kernel": lambda m: older(m, ONE)(plain(m, 1.0)),
    "a kernel for nothing known": lambda m: older(m, ONE).impl("toaster")(lambda x: x),
    "one kernel for two kinds": lambda m: _for_both(m),
    "a name without namespace": lambda m: _custom_op(m)("nothing", ONE)(lambda x: None),
    "a prototype of other names": lambda m: _custom_op(m)("parity_library::other", ONE)(other),
    "arguments by name": lambda m: older(m, "(Tensor x, int n) -> Tensor", lambda x, n: x * n)(n=3, x=plain(m, 2.0)),
    "an argument missing": lambda m: older(m, "(Tensor x, int n) -> Tensor", lambda x, n: x * n)(plain(m, 2.0)),
    "a formula for what returns nothing": lambda m: older(m, "(Tensor x) -> ()").impl_backward()(lambda *a: None),
}


def other(y): ...


def _for_both(m):
    op = older(m, ONE)
    op.impl(["cpu", "cuda"])(lambda x: x * 2)
    return op(plain(m, 1.0))


def _custom_op(m):
    return m.library.custom_op if m.__name__ == "retrograd" else m._custom_op.impl.custom_op
