"""HIPS autograd's utilities: flattening of trees, optimizers, derivative checks."""

import numpy as np
import pytest

import retrograd.hips as hips
import retrograd.numpy as rnp
from retrograd.autograd.gradcheck import GradcheckError
from retrograd.hips.misc import flatten, optimizers
from retrograd.hips.misc.flatten import flatten_func
from retrograd.hips.test_util import check_equivalent, check_grads, combo_check

TREE = {"b": [np.arange(4.0).reshape(2, 2), 7.0], "a": (np.array([5.0]), {})}


def test_trees_become_vectors_in_the_order_of_their_keys_and_trees_again():
    vector, unflatten = flatten(TREE)
    assert vector.tolist() == [5.0, 0.0, 1.0, 2.0, 3.0, 7.0]
    again = unflatten(2 * vector)
    assert again["b"][0].tolist() == [[0.0, 2.0], [4.0, 6.0]]
    assert again["b"][1] == 14.0
    assert again["a"] == (np.array([10.0]), {})


def test_an_empty_tree_is_an_empty_vector():
    vector, unflatten = flatten({})
    assert vector.shape == (0,)
    assert unflatten(vector) == {}


def test_flattening_differentiates_both_ways():
    weights = np.arange(1.0, 7.0)
    slopes = hips.grad(lambda tree: rnp.sum(weights * flatten(tree)[0]))(TREE)
    assert slopes["b"][0].tolist() == [[2.0, 3.0], [4.0, 5.0]]
    unflatten = flatten(TREE)[1]
    assert hips.grad(lambda x: rnp.sum(unflatten(x)["b"][0] ** 2))(weights).tolist() == [0, 4, 6, 8, 10, 0]


def test_functions_of_trees_become_functions_of_vectors():
    double, unflatten, start = flatten_func(
        lambda tree, k: {name: k * x for name, x in tree.items()}, {"x": np.ones(2)}
    )
    assert double(start, 3).tolist() == [3.0, 3.0]
    assert unflatten(start)["x"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("descent", [optimizers.sgd, optimizers.rmsprop, optimizers.adam])
def test_descent_reaches_the_minimum_of_a_tree(descent):
    slope = hips.grad(lambda tree: rnp.sum((tree["x"] - 3.0) ** 2) + tree["y"] ** 2)
    seen = []
    end = descent(
        lambda tree, i: slope(tree),
        {"x": np.ones(2), "y": np.array(1.0)},
        callback=lambda tree, i, g: seen.append((i, sorted(tree), sorted(g))),
        num_iters=400,
        step_size=0.05,
    )
    assert np.allclose(end["x"], 3.0, atol=0.05)
    assert np.allclose(end["y"], 0.0, atol=0.05)
    assert seen[-1] == (399, ["x", "y"], ["x", "y"])


def power_with_slopes(*factors):
    """Return x**4 as a primitive whose k-th derivative is wrong by the k-th factor, in both modes."""

    def primitive_of(k, coefficient, exponent):
        @hips.primitive
        def power(x):
            return coefficient * x**exponent

        if k < 4:
            slope = primitive_of(k + 1, coefficient * exponent * (factors[k] if k < len(factors) else 1), exponent - 1)
            hips.extend.defvjp(power, lambda ans, x: lambda g: g * slope(x))
            hips.extend.defjvp(power, lambda g, ans, x: g * slope(x))
        return power

    return primitive_of(0, 1.0, 4)


@pytest.mark.parametrize("modes", [["fwd"], ["rev"], ["fwd", "rev"]])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_checks_find_derivatives_that_are_wrong_by_half_a_thousandth(order, modes):
    wrong = power_with_slopes(*[1] * (order - 1), 1.0005)
    x = np.array([0.5, 1.0])
    if order > 1:
        check_grads(wrong, modes=modes, order=order - 1)(x)
    with pytest.raises(GradcheckError):
        check_grads(wrong, modes=modes, order=order)(x)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_checks_pass_right_derivatives(order):
    check_grads(lambda x, y: rnp.sin(x) * y, (0, 1), order=order)(np.array([0.5, 1.0]), 2.0)
    check_grads(lambda tree: tree["x"] ** 3 / tree["y"][0], order=order)({"x": np.ones(2), "y": [np.array(3.0)]})
    check_grads(lambda z: rnp.abs(z * z), order=order, modes=["rev"])(0.5 + 1j)
    check_grads(lambda k, x: (rnp.sum(x**k), x[0]), -1, order=order)(3, np.array([0.5, -1.0]))


def test_checks_of_combinations_take_every_one():
    seen = []

    def scaled(x, k, axis):
        seen.append((k, axis))
        return rnp.sum(x * k, axis=axis)

    combo_check(scaled, modes=["rev"], order=1)([np.ones((1, 2))], [1, 2], axis=[0, None])
    assert {*seen} == {(1, 0), (1, None), (2, 0), (2, None)}


@pytest.mark.parametrize("options", [{"modes": ["both"]}, {"order": 0}, {"order": 1.5}])
def test_checks_refuse_modes_and_orders_that_are_none(options):
    with pytest.raises(ValueError, match="check_grads: modes are 'fwd' and 'rev', order is a number from 1 on"):
        check_grads(np.sin, **options)


def test_checkpointed_functions_compute_again_on_the_way_back():
    calls = []

    def cube(x):
        calls.append(x)
        return x**3

    assert hips.grad(hips.checkpoint(cube))(2.0) == 12.0
    assert len(calls) == 2


def test_errors_of_checks_name_the_mode_and_the_function_and_are_those_of_both_worlds():
    wrong = power_with_slopes(1, 1.1)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of vjp_power failed: Jacobian mismatch"):
        check_grads(wrong, modes=["rev"])(0.5)


def test_constant_functions_pass_checks():
    check_grads(lambda x: np.ones(2), order=3)(1.0)
    check_grads(lambda x: rnp.floor(x) * 2.0)(np.array([0.5]))


@pytest.mark.parametrize(
    "other", [{"a": [1.1], "b": 2}, {"a": [1.0]}, {"a": [np.ones(1)], "b": 2}, {"a": [1.0 + 0j], "b": 2}]
)
def test_trees_are_equivalent_where_structure_shapes_kinds_and_values_are_the_same(other):
    tree = {"a": [1.0], "b": 2}
    check_equivalent(tree, {"a": [1.0 + 1e-9], "b": 2.0})
    with pytest.raises(AssertionError, match=r"differ|only one is complex"):
        check_equivalent(tree, other)


def test_isinstance_is_that_of_the_values():
    seen = []

    def look(x, y):
        seen.append((hips.isinstance(x, np.ndarray), hips.isinstance(y, float), hips.type(x) is np.ndarray))
        return rnp.sum(x) * y

    hips.grad(look, (0, 1))(np.ones(2), 2.0)
    assert hips.isinstance([], (list, tuple))
    assert not hips.isinstance([], np.ndarray)
    assert seen == [(True, True, True)]
