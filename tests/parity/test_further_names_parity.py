"""Functions of further names give PyTorch's results."""

import warnings

import numpy as np
import pytest
import torch

import retrograd as rg

NUMBERS = [
    "m.sym_max(3, 2.5)", "m.sym_max(3, 2)", "m.sym_min(3, 2.5)", "m.sym_min(3.0, 4)", "m.sym_int(2.7)",
    "m.sym_int(-2.7)", "m.sym_float(3)", "m.sym_not(True)", "m.sym_ite(False, 1, 2)", "m.sym_sum([1, 2, 3])",
    "m.sym_sum(1, 2)", "m.sym_sqrt(4)", "m.is_storage(m.ones(2))", "m.ones(2).dense_dim()", "m.ones(2).sparse_dim()",
    "m.arange(12.0).reshape(3, 4)[1:, 2:].untyped_storage().nbytes()", "m.arange(12.0)[3:].storage()[3]",
    "m.ones(3)[1:].is_set_to(m.ones(3)[1:])", "m.nn.factory_kwargs({'device': 'cpu'})", "m.nn.factory_kwargs(None)",
    "m.cpu.is_available(), m.cpu.device_count(), m.cpu.current_device()", "m.nn.attention.SDPBackend.MATH.name",
    "m.get_device_module('cpu') is m.cpu", "m.thread_safe_generator()", "m.cuda.OutOfMemoryError is m.OutOfMemoryError",
]  # fmt: skip
TENSORS = [
    "m.range(1, 4)", "m.range(0, 1, 0.3)", "m.range(5, 1, -2, dtype=m.int64)", "m.range(2, 2)",
    "x.new_empty(0).set_(x.untyped_storage(), 1, (2, 2), (1, 2))", "x.new_empty(0).set_(x)", "x.new_empty(3).set_()",
    "x.to_dense(m.float64)", "m.dequantize(x.half())", "m.dequantize(x.to(m.int32))",
    "x.lu()[0]", "x.lu()[1]", "x.lu(get_infos=True)[2]", "x.module_load(x + 1)", "x.module_load(x + 1, assign=True)",
    "m.fake_quantize_per_tensor_affine(x, 0.1, 2, -4, 7)",
    "m.fake_quantize_per_tensor_affine(x, m.tensor(0.25), m.tensor(0, dtype=m.int32), 0, 15)",
    "m.fake_quantize_per_channel_affine(x, m.tensor([0.1, 0.2, 0.3]), m.tensor([0, 1, 2], dtype=m.int32), 0, -8, 7)",
    "m.fake_quantize_per_channel_affine(x, m.tensor([0.1, 0.2, 0.3]), m.zeros(3), 1, -8, 7)",
]  # fmt: skip


@pytest.mark.parametrize("expression", NUMBERS)
def test_numbers_and_objects_are_pytorchs(expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # typed storages are deprecated
        theirs, ours = eval(expression, {"m": torch}), eval(expression, {"m": rg})
    assert ours == theirs
    assert type(ours) is type(theirs)


@pytest.mark.parametrize("expression", TENSORS)
def test_tensors_are_pytorchs(expression):
    data = np.array([[1.0, -0.26, 0.25], [0.7, 3.0, -9.0], [0.34, 0.01, 2.0]], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # range is deprecated
        theirs = eval(expression, {"m": torch, "x": torch.from_numpy(data.copy())})
        ours = eval(expression, {"m": rg, "x": rg.from_numpy(data.copy())})
    assert str(theirs.dtype) == f"torch.{ours.dtype}"
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize("call", TENSORS[-4:])
def test_gradients_of_fake_quantisation_are_pytorchs(call):
    data = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32) * 2
    grads = []
    for m in (torch, rg):
        x = m.from_numpy(data.copy()).requires_grad_()
        (eval(call, {"m": m, "x": x}) ** 2).sum().backward()
        grads.append(x.grad.numpy())
    assert (grads[0] != 0).any()
    np.testing.assert_allclose(grads[1], grads[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "offs"),
    [
        ((12, 8), (2, 8, 4), [4, 12]),
        ((2, 4, 8), (2, 8, 4), None),
        ((4, 8), (8, 4), [4, 8]),
        ((2, 4, 8), (8, 16), [8, 16]),
    ],
)
def test_products_of_groups_are_pytorchs(a, b, offs):
    values = [np.random.default_rng(i).standard_normal(shape).astype(np.float32) for i, shape in enumerate((a, b))]
    results = []
    for m in (torch, rg):
        ends = None if offs is None else m.tensor(offs, dtype=m.int32)
        left, right = (m.from_numpy(v.copy()).requires_grad_() for v in values)
        out = m.nn.functional.grouped_mm(left, right, offs=ends)
        (out * out).sum().backward()
        results.append([part.detach().numpy() for part in (out, left.grad, right.grad)])
    for theirs, ours in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
