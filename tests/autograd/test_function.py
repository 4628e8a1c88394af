"""User-defined Functions: forward, backward, saved tensors, marks, and errors that name the class and argument."""

import weakref

import pytest

import retrograd as rg
from retrograd.autograd import Function, NestedIOFunction
from retrograd.autograd.function import once_differentiable
from retrograd.testing import assert_close

from ..functions import cube, underived


def leaf(*values):
    return rg.tensor(list(values), requires_grad=True)


Cube = cube(rg)


def function(forward, backward=lambda ctx, *gs: gs[0], name="Mine", **more):
    """Return a Function of two plain functions."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (Function,), members | {key: staticmethod(value) for key, value in more.items()})


# ------------------------------------------------------------------------------------------ the plain course


def test_a_function_gives_its_forward_and_differentiates_by_its_backward():
    x = leaf(2.0, 3.0)
    y = Cube.apply(x)
    assert y.tolist() == [8.0, 27.0]
    assert y.grad_fn.name().startswith("CubeBackward")
    y.backward(rg.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [12.0, 270.0]


def test_a_backward_of_operators_is_differentiated_again():
    x = leaf(2.0)
    (first,) = rg.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = rg.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = rg.autograd.grad(second.sum(), x)
    assert [t.tolist() for t in (first, second, third)] == [[12.0], [12.0], [6.0]]


def test_forward_is_not_recorded_and_backward_only_with_create_graph():
    seen = []

    def forward(ctx, x):
        seen.append(rg.is_grad_enabled())
        return x * 2

    def backward(ctx, g):
        seen.append(rg.is_grad_enabled())
        return g * 2

    mine, x = function(forward, backward), leaf(1.0)
    rg.autograd.grad(mine.apply(x).sum(), x)
    rg.autograd.grad(mine.apply(x).sum(), x, create_graph=True)
    assert seen == [False, False, False, True]


def test_forward_and_setup_context_may_be_two_functions():
    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.factor = inputs[1]

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * ctx.factor * y / x, None

    mine = function(lambda x, factor: x * factor, backward, setup_context=setup)
    x = leaf(2.0)
    mine.apply(x, 5.0).sum().backward()
    assert x.grad.tolist() == [25.0]


class Power(Function):
    """x ** n * scale, with defaults."""

    @staticmethod
    def forward(x, n=2, scale=3.0):
        return x**n * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.n, ctx.scale = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, g):
        assert ctx.needs_input_grad == (True, False, False)
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1) * ctx.scale, None, None

    @staticmethod
    def jvp(ctx, t, *others):
        assert others == (None, None)
        (x,) = ctx.saved_tensors
        return t * ctx.n * x ** (ctx.n - 1) * ctx.scale

    generate_vmap_rule = True


@pytest.mark.parametrize(
    ("call", "factor", "n"),
    [
        (lambda x: Power.apply(x), 3, 2),
        (lambda x: Power.apply(x, 3), 3, 3),
        (lambda x: Power.apply(x, scale=5.0), 5, 2),
        (lambda x: Power.apply(x=x, n=4), 3, 4),
    ],
)
def test_setup_context_gets_defaults_and_arguments_by_name(call, factor, n):
    x = rg.tensor([2.0, 3.0], dtype=rg.float64)
    slope = factor * n * x ** (n - 1)
    leaf = x.clone().requires_grad_()
    call(leaf).sum().backward()
    assert_close(leaf.grad, slope)
    assert_close(rg.func.grad(lambda x: call(x).sum())(x), slope)
    assert_close(rg.func.jvp(call, (x,), (rg.ones_like(x),))[1], slope)
    assert_close(rg.func.vmap(rg.func.grad(call))(x), slope)


def test_arguments_that_do_not_fit_are_errors():
    class Named(Power):
        @staticmethod
        def forward(x, *, n=2):
            return x**n

    x = rg.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=r"Power\.forward: .*'m'"):
        Power.apply(x, m=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Power.apply()
    with pytest.raises(TypeError, match="Named: forward takes n by name only"):
        Named.apply(x, n=3)


def test_a_forward_with_ctx_takes_values_by_name_but_no_tensors():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, n=2):
            ctx.n = n
            return x * n

        @staticmethod
        def backward(ctx, g):
            return g * ctx.n

    x = rg.ones(2, requires_grad=True)
    Scaled.apply(x, n=5).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    with pytest.raises(TypeError, match="Scaled: apply takes tensors by position only, but x was given by name"):
        Scaled.apply(x=x)


def test_vjp_is_another_name_of_backward_and_both_together_are_refused():
    class ByVjp(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    x = leaf(1.0)
    ByVjp.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0]
    both = function(lambda ctx, x: x * 2, vjp=lambda ctx, g: g, name="BothWays")
    with pytest.raises(RuntimeError, match=r"BothWays.*'backward' and 'vjp'"):
        both.apply(x).sum().backward()


def test_a_function_under_no_grad_or_of_constants_is_not_recorded():
    x = leaf(1.0)
    with rg.no_grad():
        assert not Cube.apply(x).requires_grad
    assert not Cube.apply(rg.ones(1)).requires_grad


def test_needs_input_grad_shows_which_arguments_need_a_gradient():
    seen = []

    def forward(ctx, *args):
        seen.append(ctx.needs_input_grad)
        return args[0] * args[1]

    mine = function(forward, lambda ctx, g: (seen.append(ctx.needs_input_grad), None, g, None)[1:])
    mine.apply(rg.ones(1), leaf(1.0), 3.0).sum().backward()
    assert seen == [(False, True, False)] * 2


def test_non_tensor_arguments_and_outputs_pass_through():
    mine = function(lambda ctx, x, n: (x * n, "note"), lambda ctx, g, note: (g * 3, None))
    x = leaf(1.0)
    y, note = mine.apply(x, 3)
    assert note == "note"
    y.sum().backward()
    assert x.grad.tolist() == [3.0]


def test_gradients_for_arguments_that_do_not_need_them_are_ignored_and_broadcast_ones_are_summed():
    mine = function(lambda ctx, a, b: a + b, lambda ctx, g: (g, g, None, None))
    a, b = leaf(1.0), rg.ones(3, requires_grad=True)
    mine.apply(a, b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([3.0], [1.0] * 3)
    assert rg.autograd.grad(mine.apply(a, rg.ones(3)).sum(), a)[0].tolist() == [3.0]


def test_complex_gradients_arrive_and_leave_as_users_know_them():
    seen = []
    mine = function(lambda ctx, z: z * (3 - 4j), lambda ctx, g: (seen.append(g.tolist()), g * (3 + 4j))[1])
    z = leaf(1 + 1j)
    mine.apply(z).backward(rg.tensor([1 + 2j]))
    assert seen == [[1 + 2j]]
    assert z.grad.tolist() == [(1 + 2j) * (3 + 4j)]


# --------------------------------------------------------------------------------------------------- saving


def test_saved_inputs_are_returned_unchanged_and_saved_outputs_with_their_history():
    seen = []

    def forward(ctx, x):
        first, second = x * 2, x * 3
        ctx.save_for_backward(x, None, second, first)
        return first, second

    def backward(ctx, g, h):
        x, none, second, first = ctx.saved_tensors
        seen.append((x is given, none, second.grad_fn is node, second.output_nr, first.output_nr))
        return 2 * g + 3 * h

    given = leaf(1.0)
    first, second = function(forward, backward).apply(given)
    node = second.grad_fn
    (first + second).sum().backward()
    assert seen == [(True, None, True, 1, 0)]


def test_a_saved_output_is_differentiated_through():
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    exp = function(forward, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(0.5)
    (first,) = rg.autograd.grad(exp.apply(x).sum(), x, create_graph=True)
    (second,) = rg.autograd.grad(first.sum(), x)
    assert second.tolist() == pytest.approx([rg.exp(rg.tensor(0.5)).item()])


def test_a_saved_tensor_that_was_written_to_names_function_versions_and_line():
    x, w = leaf(1.0, 2.0), rg.tensor([3.0, 4.0])

    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w

    y = function(forward, lambda ctx, g: (g * ctx.saved_tensors[0], None), name="Weigh").apply(x, w)
    w.mul_(2)
    with pytest.raises(
        RuntimeError,
        match=r"Weigh.*float32.*\(2,\).*version 1; expected version 0.*test_function.py:\d+ in test_a_saved",
    ):
        y.sum().backward()


def test_a_tensor_that_was_written_to_before_it_was_saved_is_fine():
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w

    x, w = leaf(1.0), rg.tensor([3.0])
    w.mul_(2)
    function(forward, lambda ctx, g: (g * ctx.saved_tensors[0], None)).apply(x, w).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_saved_tensors_are_freed_by_the_pass_and_a_second_one_reports_it():
    x = leaf(1.0)
    y = Cube.apply(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert x.grad.tolist() == [6.0]
    with pytest.raises(RuntimeError, match=r"second time.*Cube.*retain_graph=True"):
        y.sum().backward()


def test_saved_tensors_pass_the_hooks_of_saved_tensors_and_attributes_do_not():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.hidden = x
        return x * x

    mine = function(forward, lambda ctx, g: 2 * g * ctx.saved_tensors[0])
    x, packed = leaf(2.0), []
    with rg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t * 10):
        y = mine.apply(x)
    y.sum().backward()
    assert [t.tolist() for t in packed] == [[2.0]]
    assert x.grad.tolist() == [40.0]


def test_only_tensors_can_be_saved():
    mine = function(lambda ctx, x: ctx.save_for_backward(x, 3.0))
    with pytest.raises(TypeError, match="argument 1 is of type float"):
        mine.apply(leaf(1.0))


# ---------------------------------------------------------------------------------------------------- marks


def test_an_input_that_is_returned_becomes_a_tensor_of_its_own_in_the_same_memory():
    x = leaf(1.0)
    y = function(lambda ctx, x: x).apply(x)
    assert y is not x
    assert y.grad_fn is not None
    assert y.detach().numpy().ctypes.data == x.detach().numpy().ctypes.data
    (y * 3).sum().backward()
    assert x.grad.tolist() == [3.0]


def test_a_dirty_input_comes_back_itself_with_a_new_history_and_version():
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    x = leaf(1.0)
    y = x * 1
    before = y._version
    z = function(forward, lambda ctx, g: g * 2, name="Twice").apply(y)
    assert z is y
    assert "Twice" in z.grad_fn.name()
    assert z._version > before
    z.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_a_dirty_mark_counts_as_a_write():
    def forward(ctx, x):
        x.detach().numpy()[...] *= 2  # without autograd's knowledge
        ctx.mark_dirty(x)
        return x

    y = leaf(1.0) * 1
    function(forward, lambda ctx, g: g * 2).apply(y)
    assert y._version == 1


def test_a_dirty_view_changes_the_history_of_its_base():
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    x = leaf(1.0, 2.0)
    base = x * 1
    function(forward, lambda ctx, g: g * 2).apply(base[:1])
    (base * 5).sum().backward()
    assert base.tolist() == [2.0, 2.0]
    assert x.grad.tolist() == [10.0, 5.0]


def test_marks_that_make_no_sense_are_refused_by_name():
    def dirty(returned):
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return returned(x)

        return function(forward, name="Dirty")

    with pytest.raises(RuntimeError, match=r"Dirty.*marked as dirty.*not returned"):
        dirty(lambda x: x.clone()).apply(leaf(1.0) * 1)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        dirty(lambda x: x).apply(leaf(1.0))
    with pytest.raises(RuntimeError, match=r"Dirty.*view of another Tensor.*more than one"):
        dirty(lambda x: (x, x.clone())).apply((leaf(1.0, 2.0) * 1)[:1])


def test_a_dirty_tensor_that_is_no_input_warns():
    def forward(ctx, x):
        y = x.clone()
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match=r"Wrong.*Only input Tensors"):
        function(forward, name="Wrong").apply(leaf(1.0))


def test_outputs_marked_non_differentiable_have_no_gradient():
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return x * 3, y

    x = leaf(1.0)
    first, second = function(forward, lambda ctx, g, h: g * 3 + h).apply(x)
    assert (first.requires_grad, second.requires_grad) == (True, False)
    first.sum().backward()
    assert x.grad.tolist() == [3.0]


@pytest.mark.parametrize("materialized", [True, False])
def test_the_gradient_of_an_unused_output_is_zeros_or_none_as_requested(materialized):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(materialized)
        return x * 2, x * 3

    def backward(ctx, g, h):
        seen.append(h if h is None else h.tolist())
        return g * 2

    first, _ = function(forward, backward).apply(leaf(1.0))
    first.sum().backward()
    assert seen == [[0.0] if materialized else None]


def test_a_once_differentiable_backward_runs_unrecorded_and_refuses_a_second_derivative():
    seen = []

    @once_differentiable
    def backward(ctx, g):
        seen.append(rg.is_grad_enabled())
        return g * 2

    mine, x = function(lambda ctx, x: x * 2, backward), leaf(1.0, 2.0)
    (first,) = rg.autograd.grad((mine.apply(x) ** 2).sum(), x, create_graph=True)
    assert first.tolist() == [8.0, 16.0]
    assert seen == [False]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


# --------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("returned", "error", "facts"),
    [
        (lambda g: g, RuntimeError, "Wrong.*incorrect number.*expected 2, got 1"),
        (lambda g: (g, g, g), RuntimeError, "Wrong.*incorrect number.*expected 2, got 3"),
        (lambda g: (g, 3.0), TypeError, "Wrong.*position 1.*float"),
        (lambda g: (g, rg.ones(4)), RuntimeError, r"Wrong.*index 1.*\[4\].*\[2\]"),
    ],
)
def test_gradients_that_do_not_fit_name_the_class_and_the_position(returned, error, facts):
    wrong = function(lambda ctx, a, b: a * b, lambda ctx, g: returned(g), name="Wrong")
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with pytest.raises(error, match=facts):
        wrong.apply(a, b).sum().backward()
    assert (a.grad, b.grad) == (None, None)


def test_a_gradient_for_what_is_no_tensor_names_the_class_and_the_position():
    wrong = function(lambda ctx, a, n: a * n, lambda ctx, g: (g, g), name="Wrong")
    with pytest.raises(RuntimeError, match=r"Wrong.*position 2.*not a Variable"):
        wrong.apply(leaf(1.0), 3).sum().backward()


def test_missing_methods_are_reported_when_they_are_needed():
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    y = Half.apply(leaf(1.0))
    assert y.tolist() == [2.0]
    with pytest.raises(NotImplementedError, match="backward or vjp"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="forward"):
        type("Empty", (Function,), {}).apply(leaf(1.0))
    with pytest.raises(RuntimeError, match=r"Half\.apply"):
        Half()(leaf(1.0))


def test_an_error_in_forward_or_backward_reaches_the_caller_and_leaves_the_grad_mode():
    def fails(ctx, *args):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        function(fails).apply(leaf(1.0))
    with pytest.raises(KeyError, match="mine"):
        function(lambda ctx, x: x * 2, fails).apply(leaf(1.0)).sum().backward()
    assert rg.is_grad_enabled()


# --------------------------------------------------------------------------------------------------- nested


class Statistics(NestedIOFunction):
    @staticmethod
    def forward_extended(ctx, pair, factor):
        ctx.factor = factor
        return {"sum": pair["a"] + pair["b"][0], "rest": [pair["a"] * factor, "text"]}

    @staticmethod
    def backward_extended(ctx, grads):
        return {"a": grads["sum"] + ctx.factor * grads["rest"][0], "b": (grads["sum"],)}, None


def test_a_nested_function_takes_and_gives_pytrees():
    a, b = leaf(1.0), leaf(2.0)
    result = Statistics.apply({"a": a, "b": (b,)}, 3.0)
    assert result["rest"][1] == "text"
    (result["sum"] * 5 + result["rest"][0] * 7).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([5 + 21.0], [5.0])


def test_a_nested_function_that_returns_too_few_gradients_is_named():
    class OneGradient(Statistics):
        @staticmethod
        def backward_extended(ctx, grads):
            return {"a": grads["sum"], "b": (grads["sum"],)}

    with pytest.raises(RuntimeError, match=r"OneGradient.*expected 2, got 1"):
        OneGradient.apply({"a": leaf(1.0), "b": (leaf(2.0),)}, 3.0)["sum"].sum().backward()


# ------------------------------------------------------------------------------------------- in-place, views


def test_the_result_of_a_function_may_be_written_to():
    x = leaf(2.0)
    y = Cube.apply(x)
    y.mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [60.0]


def test_a_view_that_a_function_returns_refuses_recorded_writes():
    mine = function(lambda ctx, x: x[:1], lambda ctx, g: rg.cat([g, 0 * g]))
    x = leaf(1.0, 2.0)
    y = mine.apply(x * 1)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    with pytest.raises(RuntimeError, match="custom Function"):
        y.mul_(2)


def test_a_function_in_the_middle_of_a_chain_of_views_and_writes():
    x = leaf(1.0, 2.0)
    y = x * 1
    y[:1].copy_(Cube.apply(y[1:].clone()))
    (y * rg.tensor([1.0, 10.0])).sum().backward()
    assert y.tolist() == [8.0, 2.0]
    assert x.grad.tolist() == [0.0, 12.0 + 10.0]


def test_objects_stored_on_the_context_die_with_the_graph():
    kept = []

    def forward(ctx, x):
        ctx.note = leaf(0.0)
        kept.append(weakref.ref(ctx.note))
        return x * 2

    y = function(forward).apply(leaf(1.0))
    assert kept[0]() is not None
    del y
    assert kept[0]() is None


class Surrogate(rg.autograd.Function):
    """k x^2, whose derivatives are deliberately other functions, so that a test detects which of them ran."""

    @staticmethod
    def forward(x, k):
        return k * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.k * x**3, None

    @staticmethod
    def jvp(ctx, tangent, k):
        assert k is None
        (x,) = ctx.saved_tensors
        return tangent * 7 * x


def test_every_transform_uses_the_derivatives_of_a_function_that_has_setup_context():
    def f(x):
        return Surrogate.apply(x, 2.0)

    x, one = rg.tensor(3.0), rg.tensor(1.0)
    assert rg.func.grad(f)(x).item() == 54.0
    assert rg.func.grad(rg.func.grad(f))(x).item() == 54.0  # of 2 x^3, not of 4 x
    assert [t.item() for t in rg.func.jvp(f, (x,), (one,))] == [18.0, 21.0]
    assert [t.item() for t in rg.func.jvp(rg.func.grad(f), (x,), (one,))] == [54.0, 54.0]
    assert rg.func.grad(lambda x: rg.func.jvp(f, (x,), (one,))[1])(x).item() == 7.0


def test_a_gradient_taken_by_a_transform_may_be_differentiated_by_backward():
    x = rg.tensor(3.0, requires_grad=True)
    rg.func.grad(lambda x: Surrogate.apply(x, 2.0))(x).backward()
    assert x.grad.item() == 54.0


def test_forward_mode_without_jvp_is_refused_by_the_name_of_the_class():
    with pytest.raises(NotImplementedError, match=r"Blind: .* jvp"):
        rg.func.jvp(underived("Blind").apply, (rg.ones(1),), (rg.ones(1),))


class Doubled(rg.autograd.Function):
    """Write to the argument, and save it."""

    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


def test_a_function_that_writes_follows_the_rules_of_writes_to_views():
    x = rg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="view of a leaf"):
        Doubled.apply(x[1:])
    assert x.is_leaf


def test_a_view_that_was_written_to_and_saved_is_freed_without_the_collector(no_collector):
    y = rg.ones(3, requires_grad=True) * 1
    v = y[1:]
    out = Doubled.apply(v)
    node = weakref.ref(y._grad_fn)
    del y, v, out
    assert node() is None


class OldSquare(rg.autograd.Function):
    """x^2 with a deliberately different derivative; forward takes ctx."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 10 * g * x

    @staticmethod
    def jvp(ctx, t):
        return 7 * t


def test_a_forward_that_takes_ctx_has_its_gradient_at_the_innermost_transform():
    x = rg.tensor([1.0, 2.0])
    assert rg.func.grad(lambda x: OldSquare.apply(x).sum())(x).tolist() == [10.0, 20.0]
    assert rg.func.vmap(rg.func.grad(OldSquare.apply))(x).tolist() == [10.0, 20.0]
    assert rg.func.vmap(OldSquare.apply)(x).tolist() == [1.0, 4.0]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: rg.func.jvp(OldSquare.apply, (x,), (x,)),
        lambda x: rg.func.vmap(OldSquare.apply)(x.clone().requires_grad_()),
        lambda x: rg.func.grad(lambda x: rg.func.vmap(OldSquare.apply)(x).sum())(x),
        lambda x: rg.func.grad(lambda x: OldSquare.apply(x).sum())(x.clone().requires_grad_()),
    ],
)
def test_a_derivative_that_would_be_taken_for_what_forward_does_is_refused(program):
    with pytest.raises(RuntimeError, match=r"OldSquare: .*must override the setup_context staticmethod"):
        program(rg.tensor([1.0, 2.0]))


@pytest.mark.parametrize("transform", [lambda f: f, rg.func.vmap, lambda f: lambda x: rg.func.vjp(f, x)[0]])
def test_an_argument_that_forward_writes_to_is_written_to_under_transforms(transform):
    class Doubled(rg.autograd.Function):
        generate_vmap_rule = False

        @staticmethod
        def forward(x):
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * g

        @staticmethod
        def vmap(info, in_dims, x):
            return Doubled.apply(x), 0

    def f(x):
        y = x * 1
        assert Doubled.apply(y) is y
        return y + x

    assert transform(f)(rg.ones(2, 3)).tolist() == [[3.0] * 3] * 2


def test_saved_tensors_that_are_cleared_on_access_can_be_read_once_and_die_then(no_collector):
    died = []

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        reference = weakref.ref(x)
        del x
        died.append(reference() is None)
        return g

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    once = function(forward, backward)
    once.clear_saved_tensors_on_access = True
    y = once.apply(leaf(1.0).clone()).sum()
    y.backward(retain_graph=True)
    assert died == [True]
    with pytest.raises(RuntimeError, match="can only be accessed once"):
        y.backward()


def test_backward_may_take_all_gradients_in_one_list():
    seen = []

    def backward(ctx, gs):
        seen.append(list(gs))
        g = gs.pop(0)
        gs.clear()
        return g * 5

    boxed = function(lambda ctx, x: (x * 1, 3), backward)
    boxed.boxed_grads_call = True
    x = leaf(1.0)
    boxed.apply(x)[0].backward()
    assert x.grad.tolist() == [5.0]
    assert [g is None for g in seen[0]] == [False, True]


def test_a_boxed_backward_runs_once_differentiable_and_in_a_generated_batch_rule():
    class Double(Function):
        boxed_grads_call = generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, gs):
            return gs.pop() * 2

    gradients = rg.func.vmap(rg.func.grad(lambda x: Double.apply(x)))(rg.ones(3))
    assert gradients.tolist() == [2.0, 2.0, 2.0]
    once = function(lambda ctx, x: x * 2, once_differentiable(lambda ctx, gs: gs[0] * 2))
    once.boxed_grads_call = True
    (slope,) = rg.autograd.grad(once.apply(x := leaf(1.0)) ** 2, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.backward()


@pytest.mark.parametrize("name", ["clear_saved_tensors_on_access", "boxed_grads_call"])
def test_flags_of_a_function_must_be_bools(name):
    def backward(ctx, g):
        return ctx.saved_tensors

    wrong = function(lambda ctx, x: x * 2, backward)
    setattr(wrong, name, 1)
    with pytest.raises(RuntimeError, match=f"{name} must be a bool, got int"):
        wrong.apply(leaf(1.0)).backward()


@pytest.mark.parametrize("dtype", [None, rg.float64])
def test_the_gradient_of_a_function_keeps_the_precision_that_a_leaf_allows(dtype):
    x = leaf(1.0)
    x.grad_dtype = dtype
    function(lambda ctx, x: x * 2, lambda ctx, g: g.to(rg.float64) / 3).apply(x).backward()
    assert x.grad.dtype == rg.float64
    assert x.grad.item() == 1 / 3
