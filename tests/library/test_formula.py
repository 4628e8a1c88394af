"""impl_save_for_backward and impl_backward: arguments, permitted results, and errors for others."""

import re

import pytest

import retrograd as rg
from retrograd.library import custom_op

Tensor = rg.Tensor
HERE = re.escape(__file__)


def older(schema, kernel, name="test_formula::op"):
    """Return an operator of the older API with a kernel."""
    names = [p.split("=")[0].split()[-1] for p in schema[1 : schema.index(") ->")].split(", ")]
    op = custom_op(name, schema)(eval(f"lambda {', '.join(names)}: None"))
    op.impl("cpu")(kernel)
    return op


def with_pair(schema, kernel, backward, save=lambda inputs, output: None, marks=None):
    op = older(schema, kernel)
    op.impl_save_for_backward()(save)
    op.impl_backward(output_differentiability=marks)(backward)
    return op


def leaf(*shape):
    return rg.ones(*shape, requires_grad=True)


# ----------------------------------------------------------------------------------------------------- arguments


def test_the_saving_half_gets_the_arguments_by_name_and_the_output():
    seen = []

    def save(inputs, output):
        seen.append((inputs._fields, inputs.x.tolist(), [y.tolist() for y in inputs.ys], inputs.w, inputs.n, inputs.s))
        seen.append(output.tolist())

    op = with_pair(
        "(Tensor x, Tensor[] ys, Tensor? w, int n=2, float[] s=[1.5]) -> Tensor",
        lambda x, ys, w, n, s: x * n,
        lambda ctx, saved, g: {"x": g, "ys": [None], "w": None},
        save,
    )
    op(leaf(1), [rg.zeros(1)], None)
    assert seen == [(("x", "ys", "w", "n", "s"), [1], [[0]], None, 2, [1.5]), [2]]


def test_the_saving_half_runs_only_where_a_gradient_may_be_requested():
    seen = []
    op = with_pair("(Tensor x) -> Tensor", lambda x: x * 1, lambda ctx, saved, g: {"x": g}, lambda *a: seen.append(a))
    op(rg.ones(1))
    with rg.no_grad():
        op(leaf(1))
    assert seen == []
    op(leaf(1))
    assert len(seen) == 1


def test_anything_can_be_saved_in_any_nesting():
    marker = object()
    kept = []

    def save(inputs, output):
        return {"x": inputs.x, "more": [output, (3, marker, None)], "text": "abc"}

    def backward(ctx, saved, g):
        kept.append(saved)
        return {"x": g * saved["x"]}

    op = with_pair("(Tensor x) -> Tensor", lambda x: x * 2, backward, save)
    x = rg.tensor([3.0], requires_grad=True)
    out = op(x)
    out.sum().backward()
    (saved,) = kept
    assert saved["x"] is x
    assert saved["more"][0].tolist() == out.tolist()
    assert saved["more"][0].grad_fn is out.grad_fn
    assert saved["more"][1] == (3, marker, None)
    assert saved["text"] == "abc"
    assert x.grad.tolist() == [3]


@pytest.mark.parametrize("kept", [None, 3, "x", [], {}, ()])
def test_no_tensor_needs_to_be_saved(kept):
    seen = []

    def backward(ctx, saved, g):
        seen.append(saved)
        return {"x": g}

    op = with_pair("(Tensor x) -> Tensor", lambda x: x * 2, backward, lambda inputs, output: kept)
    op(leaf(1)).sum().backward()
    assert seen == [kept]


def test_saved_tensors_are_the_graphs_saved_values():
    op = with_pair(
        "(Tensor x, Tensor y) -> Tensor",
        lambda x, y: x * y,
        lambda ctx, saved, g: {"x": g * saved[1], "y": g * saved[0]},
        lambda inputs, output: (inputs.x, inputs.y),
    )
    x, y = leaf(2), rg.ones(2)
    out = op(x, y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    out = op(x, y)
    out.sum().backward()
    with pytest.raises(RuntimeError, match=r"a second time .*: the values that test_formula::op saved are freed"):
        out.sum().backward()
    packed = []
    with rg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or len(packed) - 1, lambda i: packed[i]):
        out = op(x, y)
    out.sum().backward()
    assert len(packed) == 2
    assert x.grad.tolist() == [4, 4]


def test_missing_output_gradients_arrive_as_zeros():
    seen = []

    def backward(ctx, saved, g, gs, h):
        seen.append((g.tolist(), [x.tolist() for x in gs], h.tolist(), h.dtype))
        return {"x": g}

    def kernel(x):
        return x * 2, [x * 3, (x * 4).to(rg.float64)], x.to(rg.float64)

    op = with_pair("(Tensor x) -> (Tensor, Tensor[], Tensor)", kernel, backward)
    op(leaf(2))[1][0].sum().backward()
    op(leaf(2))[0].sum().backward()
    assert seen == [
        ([0, 0], [[1, 1], [0, 0]], [0, 0], rg.float64),
        ([1, 1], [[0, 0], [0, 0]], [0, 0], rg.float64),
    ]


def test_outputs_that_are_no_tensors_have_none_for_a_gradient():
    seen = []

    def backward(ctx, saved, g, n, gs):
        seen.append((n, gs))
        return {"x": g}

    op = with_pair("(Tensor x) -> (Tensor, int, float[])", lambda x: (x * 2, 3, [1.0, 2.0]), backward)
    out, n, s = op(leaf(2))
    assert (n, s) == (3, [1.0, 2.0])
    out.sum().backward()
    assert seen == [(None, [None, None])]


def test_gradients_go_to_arguments_by_name():
    def backward(ctx, saved, g):
        return {"w": g * 5, "ys": [g * 2, None, g * 3], "x": g}

    op = with_pair("(Tensor x, Tensor?[] ys, Tensor? w, int n) -> Tensor", lambda x, ys, w, n: x * n, backward)
    x, y, z, w = leaf(1), leaf(1), leaf(1), leaf(1)
    op(x, [y, None, z], w, 2).backward()
    assert [t.grad.item() for t in (x, y, z, w)] == [1, 2, 3, 5]


def test_a_list_may_be_a_tuple_and_a_gradient_none():
    op = with_pair(
        "(Tensor[] xs, Tensor y) -> Tensor", lambda xs, y: y * 1, lambda ctx, saved, g: {"xs": (g, None), "y": None}
    )
    x, z, y = leaf(1), leaf(1), leaf(1)
    op([x, z], y).backward()
    assert (x.grad.item(), z.grad, y.grad) == (1, None, None)


def test_a_gradient_is_summed_to_the_shape_of_its_argument():
    op = with_pair(
        "(Tensor x, Tensor[] ys) -> Tensor", lambda x, ys: x + ys[0], lambda ctx, saved, g: {"x": g, "ys": [g]}
    )
    x, y = leaf(1), leaf(3)
    op(x, [y]).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([3], [1, 1, 1])


# ------------------------------------------------------------------------------------------- one without the other


def test_without_a_formula_the_call_fails_where_a_gradient_is_requested():
    op = older("(Tensor x, Tensor[] ys) -> Tensor", lambda x, ys: x * 1)
    message = (
        f"test_formula::op: no gradient formula is registered for this operator, defined at {HERE}:.*register_autograd"
    )
    with pytest.raises(RuntimeError, match=message):
        op(leaf(1), [])
    with pytest.raises(RuntimeError, match=message):
        op(rg.ones(1), [leaf(1)])
    with pytest.raises(RuntimeError, match=message):
        rg.func.grad(op)(rg.tensor(1.0), [])
    with pytest.raises(RuntimeError, match=message):
        op(leaf(1) * 2, [])
    assert op(rg.ones(1), [rg.ones(1)]).item() == 1
    with rg.no_grad():
        assert op(leaf(1), []).item() == 1
    with rg.inference_mode():
        assert op(leaf(1), []).item() == 1


def test_the_saving_half_alone_is_named_with_its_line_and_the_missing_one():
    op = older("(Tensor x) -> Tensor", lambda x: x * 1)

    @op.impl_save_for_backward()
    def save(inputs, output): ...

    line = save.__code__.co_firstlineno
    message = (
        f"op: impl_save_for_backward is registered, at {HERE}:{line} in .*, but impl_backward is not: .*'backward'"
    )
    with pytest.raises(RuntimeError, match=message):
        op(leaf(1))
    assert op(rg.ones(1)).item() == 1


def test_the_formula_alone_is_named_with_its_line_and_the_missing_half():
    op = older("(Tensor x) -> Tensor", lambda x: x * 1)

    @op.impl_backward()
    def backward(ctx, saved, g): ...

    line = backward.__code__.co_firstlineno
    message = f"op: impl_backward is registered, at {HERE}:{line} in .*, but impl_save_for_backward is not: .* needed"
    with pytest.raises(RuntimeError, match=message):
        op(leaf(1))


def test_in_the_newer_face_one_half_fails_in_the_backward_pass():
    op = custom_op("test_formula::new", lambda x: x * 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.impl_backward()(lambda ctx, saved, g: {"x": g})
    out = op(leaf(1))
    with pytest.raises(RuntimeError, match=r"impl_backward is registered, at .*, but impl_save_for_backward is not"):
        out.backward()


def test_a_formula_that_is_registered_later_takes_effect():
    op = older("(Tensor x) -> Tensor", lambda x: x * 2)
    x = leaf(1)
    with pytest.raises(RuntimeError, match="no gradient formula"):
        op(x)
    op.impl_save_for_backward()(lambda inputs, output: None)
    op.impl_backward()(lambda ctx, saved, g: {"x": g * 2})
    op(x).backward()
    assert x.grad.item() == 2


def test_the_direct_way_goes_before_the_pair():
    op = with_pair("(Tensor x) -> Tensor", lambda x: x * 2, lambda ctx, saved, g: {"x": g * 2})
    ran = []

    @op.impl_autograd()
    def direct(x):
        ran.append(x.requires_grad)
        return x * 7

    x = leaf(1)
    op(x).backward()
    assert (x.grad.item(), ran) == (7, [True])
    assert op(rg.ones(1)).item() == 2
    with rg.no_grad():
        assert op(x).item() == 2
    assert ran == [True]


def test_the_direct_way_may_call_the_operator_in_a_function():
    op = older("(Tensor x) -> Tensor", lambda x: rg.as_tensor(x.numpy() ** 3))

    class Cube(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return op(x)

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

    op.impl_autograd()(Cube.apply)
    x = rg.tensor([2.0], requires_grad=True)
    op(x).backward()
    assert x.grad.tolist() == [12]


def test_the_direct_way_serves_every_level():
    op = older("(Tensor x) -> Tensor", lambda x: x * 0)
    op.impl_autograd()(lambda x: x**3)
    x = rg.tensor([1.0, 2.0])
    assert rg.func.grad(lambda x: rg.func.vmap(op)(x).sum())(x).tolist() == [3, 12]
    assert rg.func.vmap(rg.func.grad(op))(x).tolist() == [3, 12]
    assert rg.func.vmap(rg.func.hessian(op))(x).tolist() == [6, 12]
    assert rg.func.jvp(op, (x,), (rg.ones(2),))[1].tolist() == [3, 12]


# ---------------------------------------------------------------------------------------------- permitted results

BOTH = "(Tensor x, Tensor[] ys, int n=1) -> Tensor"


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "to be a dict from names of arguments to gradients, got NoneType"),
        ((None, []), "to be a dict from names of arguments to gradients, got tuple"),
        (rg.ones(2), "to be a dict from names of arguments to gradients, got Tensor"),
        ({}, r"to have keys \{'x', 'ys'\}, one for each tensor argument, .* it has no key 'x', no key 'ys'"),
        ({"x": None}, r"one for each tensor argument, .*; it has no key 'ys'"),
        ({"x": None, "ys": [None, None], "n": None}, "it has a key 'n'"),
        ({"x": None, "ys": [None, None], "z": None, 3: None}, "it has a key '3', a key 'z'"),
        ({"x": 1.0, "ys": [None, None]}, "a float as the gradient of 'x': expected .* either None or a Tensor"),
        ({"x": [rg.ones(2)], "ys": [None, None]}, "a list as the gradient of 'x': expected .* either None or a Tensor"),
        ({"x": None, "ys": None}, "for the list 'ys' .* must return a list of gradients, got NoneType"),
        ({"x": None, "ys": rg.ones(2)}, "for the list 'ys' .* must return a list of gradients, got Tensor"),
        ({"x": None, "ys": [None]}, "for the list 'ys' .* must return a list of 2 gradients but got 1"),
        ({"x": None, "ys": [None] * 3}, "for the list 'ys' .* must return a list of 2 gradients but got 3"),
        ({"x": None, "ys": [None, "a"]}, r"a str as the gradient of 'ys\[1\]': expected .* None or Tensor"),
        ({"x": rg.ones(3), "ys": [None, None]}, r"invalid gradient at index x - got \[3\] but .* \[2\]"),
        ({"x": None, "ys": [None, rg.ones(5)]}, r"invalid gradient at index ys\[1\] - got \[5\]"),
        ({"x": rg.ones(2, dtype=rg.complex64), "ys": [None] * 2}, "index x: expected float32 but got complex64"),
    ],
)
def test_invalid_results_of_formulas_are_reported_with_operator_line_and_argument(returned, message):
    op = older(BOTH, lambda x, ys, n: x * n)
    op.impl_save_for_backward()(lambda inputs, output: None)

    @op.impl_backward()
    def backward(ctx, saved, g):
        return returned

    place = f"{HERE}:{backward.__code__.co_firstlineno} in "
    out = op(leaf(2), [leaf(2), leaf(2)]).sum()
    with pytest.raises(RuntimeError, match=f"^test_formula::op: .*{place}.*") as caught:
        out.backward()
    assert re.search(message, str(caught.value))


@pytest.mark.parametrize(
    ("schema", "args", "returned", "message"),
    [
        ("(Tensor x, Tensor? w) -> Tensor", (None,), {"w": rg.ones(1)}, "of 'w', which was no tensor: expected None"),
        (
            "(Tensor x, Tensor?[] ys) -> Tensor",
            ([rg.ones(1), None],),
            {"ys": [None, rg.ones(1)]},
            r"of 'ys\[1\]', which was no tensor",
        ),
        (
            "(Tensor x, Tensor[]? ys) -> Tensor",
            (None,),
            {"ys": [rg.ones(1)]},
            "for the list 'ys' .* list of 0 gradients but got 1",
        ),
    ],
)
def test_arguments_that_are_no_tensors_have_no_gradient(schema, args, returned, message):
    op = with_pair(schema, lambda x, *rest: x * 1, lambda ctx, saved, g: {"x": g, **returned})
    out = op(leaf(1), *args)
    with pytest.raises(RuntimeError, match=message):
        out.backward()


@pytest.mark.parametrize("given", [None, []])
def test_an_optional_list_that_was_not_given_has_none_or_an_empty_list(given):
    op = with_pair(
        "(Tensor x, Tensor[]? ys) -> Tensor", lambda x, ys: x * 1, lambda ctx, saved, g: {"x": g, "ys": given}
    )
    x = leaf(1)
    op(x, None).backward()
    assert x.grad.item() == 1


# --------------------------------------------------------------------------------------------------------- outputs

THREE = "(Tensor x) -> (Tensor, Tensor, int)"


def test_outputs_can_be_marked_as_without_a_derivative():
    op = with_pair(
        THREE, lambda x: (x * 2, x * 3, 4), lambda ctx, saved, g, h, n: {"x": g * 2 + h * 3}, marks=[True, False, False]
    )
    x = leaf(1)
    a, b, _ = op(x)
    assert (a.requires_grad, b.requires_grad) == (True, False)
    a.backward()
    assert x.grad.item() == 2


def test_without_marks_every_floating_output_has_a_derivative():
    op = with_pair(
        "(Tensor x) -> (Tensor, Tensor[], Tensor)",
        lambda x: (x * 2, [x * 3, x.to(rg.int64)], x.to(rg.complex64)),
        lambda ctx, saved, g, gs, h: {"x": g},
    )
    a, (b, c), d = op(leaf(1))
    assert [t.requires_grad for t in (a, b, c, d)] == [True, True, False, True]


def test_a_mark_is_for_a_whole_list():
    op = with_pair(
        "(Tensor x) -> (Tensor[], Tensor)",
        lambda x: ([x * 2, x * 3], x * 4),
        lambda ctx, saved, gs, h: {"x": h},
        marks=[False, True],
    )
    (a, b), c = op(leaf(1))
    assert [t.requires_grad for t in (a, b, c)] == [False, False, True]


def test_all_marked_off_leaves_no_graph():
    op = with_pair("(Tensor x) -> Tensor", lambda x: x * 2, lambda ctx, saved, g: {"x": g}, marks=[False])
    assert not op(leaf(1)).requires_grad


@pytest.mark.parametrize(
    ("schema", "kernel", "index", "kind"),
    [
        (THREE, lambda x: (x * 2, x * 3, 4), 2, "int"),
        ("(Tensor x) -> (Tensor, int, Tensor)", lambda x: (x * 2, 4, x * 3), 1, "int"),
        ("(Tensor x) -> (float[], Tensor, Tensor)", lambda x: ([1.0], x * 2, x * 3), 0, "float"),
    ],
)
def test_an_output_that_is_no_tensor_has_no_derivative_to_mark(schema, kernel, index, kind):
    op = older(schema, kernel)
    op.impl_save_for_backward()(lambda inputs, output: None)

    @op.impl_backward(output_differentiability=[True, True, True])
    def backward(ctx, saved, *grads): ...

    place = f"{HERE}:{backward.__code__.co_firstlineno} in "
    with pytest.raises(
        RuntimeError, match=f"op: output {index} is not a Tensor, but a {kind}; .* registered at {place}"
    ):
        op(leaf(1))
    op(rg.ones(1))


def test_an_optional_output_that_is_missing_may_be_marked():
    op = with_pair(
        "(Tensor x) -> (Tensor, Tensor?)",
        lambda x: (x * 2, None),
        lambda ctx, saved, g, h: {"x": g if h is None else None},
        marks=[True, True],
    )
    x = leaf(1)
    op(x)[0].backward()
    assert x.grad.item() == 1


@pytest.mark.parametrize("marks", [[True], [True] * 4, [1, 0, 0], "yes", True, {True: 1}])
def test_marks_are_bools_one_for_each_output(marks):
    op = older(THREE, lambda x: (x, x, 4))
    with pytest.raises(
        RuntimeError, match="output_differentiability must be a list of bools, one for each output, so 3; got"
    ):
        op.impl_backward(output_differentiability=marks)


@pytest.mark.parametrize("what", ["impl_save_for_backward", "impl_backward", "impl_autograd", "impl_vmap", "impl_jvp"])
def test_operators_without_results_have_no_formula(what):
    op = older("(Tensor x) -> ()", lambda x: None)
    with pytest.raises(RuntimeError, match=f"{what}: not for an operator with no returns"):
        getattr(op, what)()


def test_a_list_as_the_only_result():
    op = with_pair(
        "(Tensor[] xs) -> Tensor[]",
        lambda xs: [x * 2 for x in xs],
        lambda ctx, saved, gs: {"xs": [g * 2 for g in gs]},
    )
    x, y = leaf(1), leaf(2)
    a, b = op([x, y])
    (a.sum() + b.sum() * 3).backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([2], [6, 6])


def test_a_formula_of_differentiable_operators_is_differentiated_again():
    op = with_pair(
        "(Tensor x) -> Tensor",
        lambda x: rg.as_tensor(x.numpy() ** 3),
        lambda ctx, saved, g: {"x": g * 3 * saved**2},
        lambda inputs, output: inputs.x,
    )
    x = rg.tensor(2.0, requires_grad=True)
    (g,) = rg.autograd.grad(op(x), x, create_graph=True)
    (h,) = rg.autograd.grad(g, x, create_graph=True)
    (k,) = rg.autograd.grad(h, x)
    assert (g.item(), h.item(), k.item()) == (12, 12, 6)


def test_the_graph_may_be_retained_for_another_pass():
    op = with_pair(
        "(Tensor x) -> Tensor", lambda x: x * 2, lambda ctx, saved, g: {"x": g * saved}, lambda inputs, output: inputs.x
    )
    x = leaf(1)
    out = op(x)
    out.backward(retain_graph=True)
    out.backward()
    assert x.grad.item() == 2


def test_inputs_that_need_no_gradient_get_none():
    op = with_pair("(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y, lambda ctx, saved, g: {"x": g, "y": g})
    x, y = leaf(1), rg.ones(1)
    op(x, y).backward()
    assert (x.grad.item(), y.grad) == (1, None)


def test_integer_tensors_have_no_gradient_to_keep():
    op = with_pair("(Tensor x, Tensor i) -> Tensor", lambda x, i: x[i], lambda ctx, saved, g: {"x": g * 2, "i": None})
    x = leaf(2)
    op(x, rg.tensor([0, 1])).sum().backward()
    assert x.grad.tolist() == [2, 2]
