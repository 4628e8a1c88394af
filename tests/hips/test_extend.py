"""HIPS autograd's primitives: functions of arrays with user-defined derivatives."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.hips as hips
import retrograd.numpy as rnp
from retrograd.hips.extend import def_linear, defjvp, defjvp_argnum, defvjp, defvjp_argnum, notrace_primitive, primitive


def make_scaled():
    """Return x**k * y as a primitive that accepts plain arrays only."""

    @primitive
    def scaled(x, y, k=2):
        assert not isinstance(x, rg.Tensor)
        assert not isinstance(y, rg.Tensor)
        return x**k * y

    defvjp(scaled, lambda ans, x, y, k=2: lambda g: g * k * x ** (k - 1) * y, lambda ans, x, y, k=2: lambda g: g * x**k)
    defjvp(scaled, lambda g, ans, x, y, k=2: g * k * x ** (k - 1) * y, lambda g, ans, x, y, k=2: g * x**k)
    return scaled


X, Y = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])


def test_a_primitive_of_arrays_is_the_function_itself():
    answer = make_scaled()(X, Y, k=3)
    assert type(answer) is np.ndarray
    assert (answer == X**3 * Y).all()


def test_each_argument_is_pulled_back_by_its_rule():
    slopes = hips.elementwise_grad(lambda x, y: make_scaled()(x, y, k=3), (0, 1))(X, Y)
    assert np.allclose(slopes[0], 3 * X**2 * Y)
    assert np.allclose(slopes[1], X**3)


def test_rules_differentiate_to_any_order():
    scaled = make_scaled()
    assert hips.grad(hips.grad(hips.grad(lambda x: scaled(x, 2.0, k=3))))(5.0) == 12.0
    hips.test_util.check_grads(lambda x, y: scaled(x, y, k=3), (0, 1))(X, Y)


def test_tangents_are_pushed_by_their_rules():
    value, along = hips.make_jvp(make_scaled(), (0, 1))(X, Y)((np.ones(3), 2 * np.ones(3)))
    assert np.allclose(value, X**2 * Y)
    assert np.allclose(along, 2 * X * Y + 2 * X**2)


def test_reverse_mode_alone_pushes_forward_where_there_is_no_forward_rule():
    @primitive
    def square(x):
        return x**2

    defvjp(square, lambda ans, x: lambda g: 2 * g * x)
    assert np.allclose(hips.make_jvp_reversemode(square)(X)(Y), 2 * X * Y)
    with pytest.raises(NotImplementedError, match=r"square: has no derivative in forward mode.*defjvp"):
        hips.make_jvp(square)(X)(Y)


def test_a_batch_runs_example_by_example():
    scaled = make_scaled()
    rows = rg.vmap(rg.func.grad(lambda x, y: scaled(x, y).sum()), (0, None))(rg.tensor([X, Y]), rg.tensor(Y))
    assert np.allclose(rows.numpy(), [2 * X * Y, 2 * Y * Y])


def test_broadcast_arguments_get_gradients_of_their_shapes():
    slope = hips.grad(lambda x: rnp.sum(make_scaled()(x, Y)))(2.0)
    assert np.isclose(slope, 4 * Y.sum())


def test_the_answer_that_a_rule_is_given_belongs_to_the_graph():
    @primitive
    def exponential(x):
        return np.exp(x)

    defvjp(exponential, lambda ans, x: lambda g: g * ans)
    assert np.isclose(hips.grad(hips.grad(exponential))(0.5), np.exp(0.5))


def test_all_rules_may_come_from_one_function():
    @primitive
    def total(*xs):
        return sum(xs)

    defvjp_argnum(total, lambda argnum, ans, args, kwargs: lambda g: g * (argnum + 1))
    defjvp_argnum(total, lambda argnum, g, ans, args, kwargs: g * (argnum + 1))
    assert hips.grad(total, (0, 2))(1.0, 2.0, 3.0) == (1.0, 3.0)
    assert hips.make_jvp(total, 1)(1.0, 2.0, 3.0)(10.0) == (6.0, 20.0)


def test_a_linear_primitive_pushes_tangents_through_itself():
    @primitive
    def twice(x):
        return 2 * x

    def_linear(twice)
    assert hips.make_jvp(twice)(3.0)(10.0) == (6.0, 20.0)
    defjvp(twice, "same")
    assert hips.make_jvp(twice)(3.0)(10.0) == (6.0, 20.0)


def test_rules_may_be_given_for_some_arguments():
    scaled = make_scaled()
    defvjp(scaled, lambda ans, x, y: lambda g: g * x**2, argnums=(1,))
    assert hips.grad(scaled, 1)(3.0, 1.0) == 9.0
    with pytest.raises(NotImplementedError, match="scaled: no derivative with respect to argument 0; see defvjp"):
        hips.grad(scaled, 0)(3.0, 1.0)


def test_none_stands_for_a_derivative_of_zero():
    scaled = make_scaled()
    defvjp(scaled, None, lambda ans, x, y: lambda g: g * x**2)
    defjvp(scaled, None, None)
    assert hips.grad(scaled, (0, 1))(3.0, 1.0) == (0.0, 9.0)
    assert hips.make_jvp(scaled)(3.0, 1.0)(1.0) == (9.0, 0.0)


def test_a_function_without_trace_is_a_constant():
    @notrace_primitive
    def rounded(x):
        assert not isinstance(x, rg.Tensor)
        return round(float(x))

    assert hips.grad(lambda x: x * rounded(x))(2.75) == 3.0


def test_mistakes_are_named():
    def plain(x):
        return x

    bare = primitive(plain)
    with pytest.raises(TypeError, match="defvjp: 'plain' is no primitive; decorate it with @primitive"):
        defvjp(plain, lambda ans, x: lambda g: g)
    with pytest.raises(NotImplementedError, match=r"plain: has no derivative; give it one by defvjp\(plain"):
        hips.grad(bare)(1.0)
    with pytest.raises(TypeError, match="defjvp: a rule is a function, 'same' or None, got 'equal'"):
        defjvp(bare, "equal")
    with pytest.raises(TypeError, match="pair: a primitive returns one number or array, got a tuple"):
        hips.grad(_pair())(1.0)


def _pair():
    @primitive
    def pair(x):
        return x, x

    return pair
