"""register_autograd and its ctx: setup_context, saved tensors, marks, replacement, and refused uses."""

import re
import weakref

import pytest

import retrograd as rg
from retrograd.library import custom_op

Tensor = rg.Tensor
HERE = re.escape(__file__)


@pytest.fixture(autouse=True, params=[True, False])
def sanitized(request):
    """Run each test with the checks of kernels that our tests enable, and without: calls take another path there."""
    with rg.library.sanitize(request.param):
        yield


def defined(schema, kernel, backward=None, setup=None):
    """Return an operator of the newer API, defined separately for each test."""
    op = custom_op("test_newer::op", kernel, mutates_args=(), schema=schema)
    if backward is not None:
        op.register_autograd(backward, setup_context=setup)
    return op


def leaf(*values):
    return rg.tensor(values, requires_grad=True)


def keep(ctx, inputs, output):
    ctx.save_for_backward(*[x for x in inputs if isinstance(x, Tensor)])


# ------------------------------------------------------------------------------------------------- without a formula


def test_without_a_formula_the_call_runs_and_the_backward_pass_fails():
    op = defined("(Tensor x) -> Tensor", lambda x: x * 2)
    out = op(leaf(1.0))
    assert out.requires_grad
    with pytest.raises(RuntimeError, match=f"test_newer::op: no gradient formula is registered .*, defined at {HERE}"):
        out.sum().backward()


@pytest.mark.parametrize("grad", [True, False])
def test_a_kernel_gets_tensors_without_a_graph_also_where_the_call_is_recorded(grad):
    seen = []

    def kernel(x):
        with rg.enable_grad():
            seen.append((x.requires_grad, x.is_leaf, (x * 2).requires_grad))
        return x * 2

    op = defined("(Tensor x) -> Tensor", kernel, lambda ctx, g: g * 2)
    x = rg.ones(2, requires_grad=grad) * 1
    for _ in range(2):  # the first call binds the kernel
        out = op(x)
        assert out.requires_grad == grad
    assert seen == [(False, True, False)] * 2


def test_a_formula_without_setup_serves_calls_from_before():
    op = defined("(Tensor x) -> Tensor", lambda x: x * 2)
    x = leaf(1.0)
    out = op(x)
    op.register_autograd(lambda ctx, g: g * 2)
    out.sum().backward()
    assert x.grad.tolist() == [2]


def test_a_call_from_before_has_saved_nothing_for_a_formula_that_needs_it():
    op = defined("(Tensor x) -> Tensor", lambda x: x * 2)
    out = op(leaf(1.0))
    op.register_autograd(lambda ctx, g: g * 2, setup_context=keep)
    with pytest.raises(RuntimeError, match=f"was called before its gradient formula was registered, at {HERE}:"):
        out.sum().backward()


def test_a_call_is_differentiated_by_the_formula_that_it_was_made_under():
    op = defined(
        "(Tensor x) -> Tensor",
        lambda x: x * 2,
        lambda ctx, g: g * ctx.factor,
        lambda ctx, inputs, output: setattr(ctx, "factor", 2),
    )
    x, y = leaf(1.0), leaf(1.0)
    before = op(x)
    op.register_autograd(
        lambda ctx, g: g * ctx.other, setup_context=lambda ctx, inputs, output: setattr(ctx, "other", 5)
    )
    op(y).sum().backward()
    before.sum().backward()
    assert (x.grad.item(), y.grad.item()) == (2, 5)


def test_a_formula_replaced_without_a_setup_forgets_the_old_one():
    op = defined("(Tensor x) -> Tensor", lambda x: x * 2, lambda ctx, g: g * 2, keep)
    seen = []
    op.register_autograd(lambda ctx, g: (seen.append(ctx.saved_tensors), g)[1])
    op(leaf(1.0)).sum().backward()
    assert seen == [()]


def test_it_goes_before_the_pair():
    op = defined("(Tensor x) -> Tensor", lambda x: x * 2, lambda ctx, g: g * 3)
    op.impl_save_for_backward()(lambda inputs, output: None)
    op.impl_backward(output_differentiability=[False])(lambda ctx, saved, g: {"x": g * 5})
    x = leaf(1.0)
    op(x).sum().backward()
    assert x.grad.item() == 3


def test_it_serves_the_older_face_too():
    op = custom_op("test_newer::older", "(Tensor x) -> Tensor")(lambda x: None)
    op.impl("cpu")(lambda x: x * 2)
    op.register_autograd(lambda ctx, g: g * 2)
    x = leaf(1.0)
    op(x).sum().backward()
    assert x.grad.item() == 2
    with pytest.raises(RuntimeError, match="register_autograd: registered already"):
        op.register_autograd(lambda ctx, g: g * 3)


# ------------------------------------------------------------------------------------------------- setup_context


def test_setup_gets_the_arguments_by_position_and_the_output():
    seen = []

    def setup(ctx, inputs, output):
        seen.append(([type(v).__name__ for v in inputs], inputs[2], inputs[3], output.tolist()))

    op = defined(
        "(Tensor x, Tensor[] ys, Tensor? w, int n=2) -> Tensor", lambda x, ys, w, n: x * n, lambda ctx, g: g, setup
    )
    op(leaf(1.0), [rg.ones(1)], None)
    assert seen == [(["Tensor", "list", "NoneType", "int"], None, 2, [2])]


def test_arguments_that_must_be_named_come_alone():
    seen = []

    def setup(ctx, inputs, keyword_only_inputs, output):
        seen.append((len(inputs), keyword_only_inputs))
        ctx.by = keyword_only_inputs["by"]

    op = defined(
        "(Tensor x, int n, *, float by=3, float[] s=[1.0]) -> Tensor",
        lambda x, n, *, by, s: x * by,
        lambda ctx, g: (g * ctx.by, None),
        setup,
    )
    x = leaf(1.0)
    op(x, 2, by=4).sum().backward()
    assert (x.grad.item(), seen) == (4, [(2, {"by": 4.0, "s": [1.0]})])


def test_tensors_that_must_be_named_are_refused():
    with pytest.raises(NotImplementedError, match=r"custom_op with kwarg-only Tensor args. .* by rg.library.define"):
        defined("(Tensor x, *, Tensor y) -> Tensor", lambda x, *, y: x * y)
    with rg.library.Library("test_newer", "FRAGMENT") as lib:
        lib.define("named(Tensor x, *, Tensor y) -> Tensor")
        for register in (rg.library.register_autograd, rg.library.register_vmap):
            with pytest.raises(NotImplementedError, match=f"{register.__name__} with kwarg-only Tensor args: .* make "):
                register("test_newer::named", lambda ctx, g: g)


def test_attributes_of_the_ctx_stay_until_the_backward_pass():
    def setup(ctx, inputs, output):
        ctx.n, ctx.shape = inputs[1], output.shape

    def backward(ctx, g):
        assert ctx.shape == (2,)
        return g * ctx.n, None

    op = defined("(Tensor x, int n) -> Tensor", lambda x, n: x * n, backward, setup)
    x = leaf(1.0, 2.0)
    op(x, 7).sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_nothing_in_setup_is_recorded():
    seen = []

    def setup(ctx, inputs, output):
        seen.append((inputs[0] * 2).requires_grad)

    defined("(Tensor x) -> Tensor", lambda x: x * 1, lambda ctx, g: g, setup)(leaf(1.0))
    assert seen == [False]


def test_an_error_in_setup_comes_through():
    def setup(ctx, inputs, output):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        defined("(Tensor x) -> Tensor", lambda x: x * 1, lambda ctx, g: g, setup)(leaf(1.0))


# ---------------------------------------------------------------------------------------------- the ctx in backward


@pytest.mark.parametrize(
    ("schema", "args", "expected"),
    [
        ("(Tensor x, Tensor y) -> Tensor", lambda a, b: (a, b), (True, False)),
        ("(Tensor x, Tensor y) -> Tensor", lambda a, b: (a * 2, a), (True, True)),
        ("(Tensor x, int n) -> Tensor", lambda a, b: (a, 3), (True, False)),
        ("(Tensor x, Tensor? w) -> Tensor", lambda a, b: (a, None), (True, False)),
        ("(Tensor x, Tensor[] ys) -> Tensor", lambda a, b: (a, [b, a]), (True, [False, True])),
        ("(Tensor x, Tensor[] ys) -> Tensor", lambda a, b: (a, []), (True, [])),
        ("(Tensor x, Tensor?[] ys, int[] n) -> Tensor", lambda a, b: (a, [None, a], [1]), (True, [False, True], False)),
        ("(Tensor x, Tensor[]? ys) -> Tensor", lambda a, b: (a, None), (True, False)),
        ("(Tensor x, *, int n=1) -> Tensor", lambda a, b: (a,), (True,)),
    ],
)
def test_needs_input_grad_is_one_for_each_argument(schema, args, expected):
    seen = []
    count = schema.split("*")[0].count(",") + ("*" not in schema)

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return (g, *[None] * (count - 1))

    op = defined(schema, lambda x, *rest, **named: x * 1, backward)
    op(*args(leaf(1.0), rg.ones(1))).sum().backward()
    assert seen == [expected]


def test_needs_input_grad_is_there_in_setup():
    seen = []
    op = defined(
        "(Tensor x, Tensor y) -> Tensor",
        lambda x, y: x * y,
        lambda ctx, g: (g, g),
        lambda ctx, inputs, output: seen.append(ctx.needs_input_grad),
    )
    op(rg.ones(1), leaf(1.0))
    assert seen == [(False, True)]


def test_a_formula_that_skips_what_is_not_needed_works_in_forward_mode():
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y if ctx.needs_input_grad[0] else None, g * x if ctx.needs_input_grad[1] else None

    op = defined("(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y, backward, keep)
    x, y = rg.tensor([2.0]), rg.tensor([3.0])
    assert rg.func.jvp(op, (x, y), (rg.ones(1), rg.ones(1)))[1].tolist() == [5]
    assert rg.func.jvp(lambda y: op(x, y), (y,), (rg.ones(1),))[1].tolist() == [2]


def test_missing_gradients_are_zeros_unless_they_are_not_needed():
    seen = []

    def kernel(x):
        return x * 2, x * 3

    def backward(ctx, g, h):
        seen.append((g is None, h is None))
        return h * 3 if g is None else h * 3 + g * 2

    op = defined("(Tensor x) -> (Tensor, Tensor)", kernel, backward)
    x = leaf(1.0)
    op(x)[1].sum().backward()
    op.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.set_materialize_grads(False))
    op(x)[1].sum().backward()
    assert seen == [(False, False), (True, False)]
    assert x.grad.item() == 6


def test_outputs_can_be_marked_as_without_a_derivative():
    def setup(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])

    op = defined("(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 100, setup)
    x = leaf(1.0)
    a, b = op(x)
    assert (a.requires_grad, b.requires_grad) == (True, False)
    a.sum().backward()
    assert x.grad.item() == 2
    assert rg.func.jvp(op, (rg.ones(1),), (rg.ones(1),))[1][1].tolist() == [0]


def test_outputs_in_lists_can_be_marked():
    def setup(ctx, inputs, output):
        ctx.mark_non_differentiable(output[0])

    op = defined("(Tensor x) -> Tensor[]", lambda x: [x * 2, x * 3], lambda ctx, gs: gs[1] * 3, setup)
    x = leaf(1.0)
    a, b = op(x)
    assert (a.requires_grad, b.requires_grad) == (False, True)
    b.sum().backward()
    assert x.grad.item() == 3


def exponential():
    """Return an operator that saves its output."""
    return defined(
        "(Tensor x) -> Tensor",
        lambda x: x.exp(),
        lambda ctx, g: g * ctx.saved_tensors[0],
        lambda ctx, inputs, output: ctx.save_for_backward(output),
    )


def test_outputs_can_be_saved():
    op = exponential()
    x = rg.tensor(0.5, requires_grad=True)
    (g,) = rg.autograd.grad(op(x), x, create_graph=True)
    (h,) = rg.autograd.grad(g, x)
    assert (g.item(), h.item()) == pytest.approx((1.6487213, 1.6487213))


def test_the_graph_dies_with_its_output(no_collector):
    op = exponential()
    out = op(leaf(1.0))
    node = weakref.ref(out._grad_fn)
    del out
    assert node() is None


def test_a_saved_tensor_that_was_written_to_is_refused():
    op = defined(
        "(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y, lambda ctx, g: (g * ctx.saved_tensors[1], None), keep
    )
    y = rg.ones(1)
    out = op(leaf(1.0), y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match=r"is at version 1; expected version 0 instead\. It was written to at"):
        out.sum().backward()


def test_saved_tensors_are_freed_and_retained_as_in_other_graphs():
    op = defined("(Tensor x) -> Tensor", lambda x: x * x, lambda ctx, g: g * 2 * ctx.saved_tensors[0], keep)
    x = leaf(3.0)
    out = op(x).sum()
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()
    assert x.grad.item() == 12


def test_hooks_of_saved_tensors_see_them():
    op = defined("(Tensor x) -> Tensor", lambda x: x * x, lambda ctx, g: g * 2 * ctx.saved_tensors[0], keep)
    x = leaf(3.0)
    seen = []

    def pack(t):
        seen.append(t.tolist())
        return t.numpy(force=True)

    with rg.autograd.graph.saved_tensors_hooks(pack, lambda a: rg.as_tensor(a)):
        out = op(x).sum()
    out.backward()
    assert (x.grad.item(), seen) == (6, [[3]])


def test_saving_what_is_no_tensor_is_refused():
    def setup(ctx, inputs, output):
        ctx.save_for_backward(3)

    with pytest.raises(TypeError, match=r"save_for_backward can only save variables, but argument 0 is of type int"):
        defined("(Tensor x) -> Tensor", lambda x: x * 1, lambda ctx, g: g, setup)(leaf(1.0))


def test_a_formula_of_operators_is_differentiated_again():
    op = defined(
        "(Tensor x) -> Tensor",
        lambda x: rg.as_tensor(x.numpy() ** 3),
        lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
        keep,
    )
    x = rg.tensor(2.0, requires_grad=True)
    (g,) = rg.autograd.grad(op(x), x, create_graph=True)
    g.backward()
    assert (g.item(), x.grad.item()) == (12, 12)
    assert rg.autograd.gradcheck(op, rg.tensor([0.5, 1.5], dtype=rg.float64, requires_grad=True))
    assert rg.autograd.gradgradcheck(op, rg.tensor([0.5, 1.5], dtype=rg.float64, requires_grad=True))


def test_a_formula_for_once_refuses_a_second_time():
    op = defined(
        "(Tensor x) -> Tensor", lambda x: x * x, rg.autograd.function.once_differentiable(lambda ctx, g: g * 2), keep
    )
    x = leaf(1.0)
    (g,) = rg.autograd.grad((op(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_gradients_under_no_grad_are_not_recorded():
    seen = []

    def backward(ctx, g):
        seen.append(rg.is_grad_enabled())
        return g

    op = defined("(Tensor x) -> Tensor", lambda x: x * 1, backward)
    x = leaf(1.0)
    op(x).sum().backward()
    rg.autograd.grad(op(x).sum(), x, create_graph=True)
    assert seen[:2] == [False, True]


def test_complex_gradients_have_pytorchs_sign():
    op = defined("(Tensor x) -> Tensor", lambda x: x * 2j, lambda ctx, g: g * -2j)
    x = rg.tensor([1 + 1j], requires_grad=True)
    op(x).abs().sum().backward()
    y = rg.tensor([1 + 1j], requires_grad=True)
    (y * 2j).abs().sum().backward()
    assert x.grad.tolist() == pytest.approx(y.grad.tolist())


# -------------------------------------------------------------------------------------------------------- results

TWO = "(Tensor x, Tensor[] ys, int n=1) -> Tensor"


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda g: g, r"incorrect number of gradients \(expected 2 or 3, got 1\): one for each of x, ys, n"),
        (lambda g: (g, [g]), "must return a list of 2 gradients but got 1"),
        (lambda g: (g, [g, g], None, g), r"incorrect number of gradients \(expected 2 or 3, got 4\)"),
        (lambda g: (1.0, [g, g], None), "a float as the gradient of 'x': expected it to be either None or a Tensor"),
        (lambda g: (g, g, None), "for the list 'ys' .* must return a list of gradients, got Tensor"),
        (lambda g: (g, [g], None), "for the list 'ys' .* must return a list of 2 gradients but got 1"),
        (lambda g: (g, [g, 3], None), r"a int as the gradient of 'ys\[1\]'"),
        (lambda g: (g, [g, g], g), "a gradient for 'n', which is no tensor: expected None, got Tensor"),
        (lambda g: (g.sum().expand(3), [g, g], None), r"invalid gradient at index x - got \[3\]"),
        (
            lambda g: (g, [g, rg.stack([g, g]).T.expand(2, 2)[:, :1].expand(2, 3)], None),
            r"invalid gradient at index ys\[1\]",
        ),
    ],
)
def test_a_violation_is_said_with_operator_line_and_argument(returned, message):
    op = defined(TWO, lambda x, ys, n: x * n)

    def backward(ctx, g):
        return returned(g)

    op.register_autograd(backward)
    out = op(leaf(1.0, 1.0), [leaf(1.0, 1.0), leaf(1.0, 1.0)]).sum()
    with pytest.raises(RuntimeError, match=f"test_newer::op: .*{HERE}:") as caught:
        out.backward()
    assert re.search(message, str(caught.value))


@pytest.mark.parametrize(
    "returned", [lambda g: (g, None, None), lambda g: (g, [None, g], None), lambda g: (g, (None, g), None, None)]
)
def test_a_gradient_may_be_left_out(returned):
    op = defined(TWO, lambda x, ys, n: x * n, lambda ctx, g: returned(g))
    x = leaf(1.0)
    op(x, [rg.ones(1), rg.ones(1)]).sum().backward()
    assert x.grad.item() == 1


def test_lists_of_gradients_go_to_lists_of_tensors():
    op = defined(
        "(Tensor[] xs, float by) -> Tensor[]",
        lambda xs, by: [x * by for x in xs],
        lambda ctx, gs: ([g * 3 for g in gs], None),
    )
    x, y = leaf(1.0), leaf(2.0)
    a, b = op([x, y], 3.0)
    (a + b * 10).sum().backward()
    assert (x.grad.item(), y.grad.item()) == (3, 30)


def test_nested_outputs_have_nested_gradients():
    seen = []

    def backward(ctx, g, gs, n):
        seen.append((g.item(), gs[0].item(), [h.item() for h in gs[1]], n))
        return g

    op = defined("(Tensor x) -> (Tensor, (Tensor, Tensor[]), int)", lambda x: (x * 1, (x * 2, [x * 3]), 5), backward)
    a, (b, (c,)), n = op(leaf(1.0))
    (a + b * 10 + c * 100).sum().backward()
    assert (n, seen) == (5, [(1, 10, [100], None)])
