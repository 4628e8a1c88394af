"""Nodes show what they saved under PyTorch's names: `_saved_self`, `_saved_other`, `_saved_result`, params."""

import pytest

import retrograd as rg


def leaf():
    return rg.tensor([1.0, 2.0], requires_grad=True)


def test_saved_inputs_have_the_names_of_pytorch():
    x, y = leaf(), rg.tensor([3.0, 4.0], requires_grad=True)
    node = (x * y).grad_fn
    assert node._saved_self is x
    assert node._saved_other is y


def test_a_saved_result_belongs_to_its_node():
    y = leaf().exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn


def test_params_and_unsaved_inputs():
    x = leaf()
    assert x.softmax(0).grad_fn._saved_dim == 0
    assert (x * 2).grad_fn._saved_self is None


def test_freed_values_and_unknown_names_are_refused():
    y = leaf().exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        y.grad_fn._saved_result  # noqa: B018
    with pytest.raises(AttributeError, match="saves no '_saved_mat2'"):
        leaf().exp().grad_fn._saved_mat2  # noqa: B018
    with pytest.raises(AttributeError, match="saves nothing"):
        (leaf() + leaf()).grad_fn._saved_self  # noqa: B018


def test_sequence_numbers_order_nodes():
    first = leaf() * 2
    assert (first * 2).grad_fn._sequence_nr() > first.grad_fn._sequence_nr()
