"""Quantities of pint and arrays of xarray: they carry tensors with gradients, or are refused by name."""

import numpy as np
import pytest

import retrograd as rg


def leaf():
    return rg.tensor([1.0, 2.0], dtype=rg.float64, requires_grad=True)


def test_a_quantity_of_pint_times_a_tensor_has_the_unit_and_the_gradient():
    meter = pytest.importorskip("pint").UnitRegistry().meter
    x = leaf()
    length = (np.array([3.0, 4.0]) * meter) * x
    assert str(length.units) == "meter"
    (slope,) = rg.autograd.grad(length.magnitude.sum(), x)
    assert slope.tolist() == [3, 4]
    with pytest.raises(TypeError, match="mul: expected a Tensor, an array or a number, got Quantity"):
        x * (np.ones(2) * meter)


def test_an_array_of_xarray_times_a_tensor_has_the_labels_and_the_gradient():
    xarray = pytest.importorskip("xarray")
    x, labelled = leaf(), xarray.DataArray(np.array([3.0, 4.0]), dims="time")
    for product in (labelled * x, np.multiply(x, labelled)):
        assert product.dims == ("time",)
        (slope,) = rg.autograd.grad(product.data.sum(), x)
        assert slope.tolist() == [3, 4]
    with pytest.raises(TypeError, match="mul: expected a Tensor, an array or a number, got DataArray"):
        x * labelled
    assert rg.tensor(labelled).tolist() == [3, 4]
