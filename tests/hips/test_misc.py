"""What HIPS autograd keeps beside its derivatives: trees as vectors, descent, checks."""

import numpy as np
import pytest

import retrograd.hips as hips
import retrograd.numpy as rnp
from retrograd.autograd.differences import GradcheckError
from retrograd.hips.misc import flatten, optimizers
from retrograd.hips.misc.flatten import flatten_func
from retrograd.hips.test_util import check_grads

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


def test_checks_pass_right_derivatives_and_refuse_wrong_ones():
    check_grads(lambda x, y: rnp.sin(x) * y, (0, 1))(np.array([0.5, 1.0]), 2.0)

    @hips.primitive
    def wrong(x):
        return x**2

    hips.extend.defvjp(wrong, lambda ans, x: lambda g: g * x)
    with pytest.raises(GradcheckError):
        check_grads(wrong, modes=["rev"])(np.array([0.5]))
    with pytest.raises(ValueError, match="check_grads: modes are 'fwd' and 'rev'"):
        check_grads(wrong, modes=["both"])


def test_checkpointed_functions_compute_again_on_the_way_back():
    calls = []

    def cube(x):
        calls.append(x)
        return x**3

    assert hips.grad(hips.checkpoint(cube))(2.0) == 12.0
    assert len(calls) == 2
