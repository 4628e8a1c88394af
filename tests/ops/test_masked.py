"""Masked operators: dtypes, values with gradients, positions, and the three forms of `where`."""

import pytest

import retrograd as rg

MASK = [True, False, True]


def test_the_value_of_masked_fill_keeps_the_dtype_of_the_tensor():
    mask = rg.tensor(MASK)
    assert rg.ones(3, dtype=rg.int64).masked_fill(mask, 2.9).tolist() == [2, 1, 2]
    assert rg.ones(3).masked_fill(mask, rg.tensor(0.5, dtype=rg.float64)).dtype == rg.float32
    x = rg.ones(3, dtype=rg.float64).masked_fill(mask, 0.1)
    assert x.tolist() == [0.1, 1.0, 0.1]


def test_a_tensor_as_the_value_of_masked_fill_gets_a_gradient():
    value = rg.tensor(2.0, requires_grad=True)
    rg.zeros(2, 3).masked_fill(rg.tensor(MASK), value).sum().backward()
    assert value.grad.item() == 4.0


def test_masked_scatter_leaves_elements_that_the_mask_excludes():
    x = rg.zeros(2, 3, requires_grad=True)
    source = rg.arange(6.0).requires_grad_()
    out = x.masked_scatter(rg.tensor(MASK), source)
    assert out.tolist() == [[0.0, 0.0, 1.0], [2.0, 0.0, 3.0]]
    out.sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0, 0.0]] * 2
    assert source.grad.tolist() == [1.0] * 4 + [0.0] * 2


def test_masked_operators_take_tensors_without_dimensions():
    yes, no = rg.tensor(True), rg.tensor(False)
    assert rg.masked_select(rg.tensor(3.0), yes).tolist() == [3.0]
    assert rg.masked_select(rg.tensor(3.0), no).tolist() == []
    assert rg.masked_scatter(rg.tensor(3.0), yes, rg.tensor([5.0])).item() == 5.0
    assert rg.masked_fill(rg.tensor(3.0), no, 1.0).item() == 3.0


def test_where_of_a_condition_alone_returns_indices():
    condition = rg.tensor([[True, False], [True, True]])
    assert [x.tolist() for x in rg.where(condition)] == [[0, 1, 1], [0, 0, 1]]
    assert [x.tolist() for x in rg.nonzero(rg.tensor(7), as_tuple=True)] == [[0]]
    assert rg.argwhere(condition).tolist() == [[0, 0], [1, 0], [1, 1]]
    with pytest.raises(TypeError, match="where: expected a condition alone"):
        rg.where(condition, 1.0)


def test_the_method_where_keeps_its_own_elements_where_the_condition_holds():
    x = rg.tensor([1.0, 2.0, 3.0])
    assert x.where(rg.tensor(MASK), -1.0).tolist() == [1.0, -1.0, 3.0]
    assert rg.where(rg.tensor(MASK), input=x, other=0.0).tolist() == [1.0, 0.0, 3.0]
