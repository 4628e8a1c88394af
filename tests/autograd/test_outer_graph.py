"""A backward pass inside a transform continues in the graph around it, as a loop over the examples would."""

import pytest

import retrograd as rg
from retrograd.func import vmap


def backward_of_each(outside):
    """Pull back from the product of a tensor with each example of a batch."""

    def step(x):
        (outside * x).sum().backward()
        return x

    vmap(step)(rg.tensor([[1.0, 2.0], [3.0, 4.0]]))


def test_leaves_outside_get_the_sum_over_the_examples():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    backward_of_each(w)
    assert w.grad.tolist() == [4.0, 6.0]


def test_the_graph_outside_is_freed_afterwards():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    outside = w * w
    backward_of_each(outside)
    assert w.grad.tolist() == [16.0, 36.0]
    with pytest.raises(RuntimeError, match="second time"):
        outside.sum().backward()


def test_results_outside_that_retain_gradients_get_theirs():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    outside = w * 1
    outside.retain_grad()
    backward_of_each(outside)
    assert outside.grad.tolist() == [4.0, 6.0]


def test_a_gradient_that_is_read_inside_is_computed_from_saved_values_that_the_pass_freed():
    w = rg.tensor([2.0, 3.0], requires_grad=True)
    outside = w * w

    def step(x):
        (outside * x).sum().backward()
        return w.grad

    found = vmap(step)(rg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert found.tolist() == [[4.0, 12.0], [12.0, 24.0]]
