"""Floats of 8 bits and integers of 2 and 4: they are stored, moved, compared and converted, and nothing else."""

import pickle

import ml_dtypes
import numpy as np
import pytest

import retrograd as rg
from retrograd.core import dtype as dtypes
from retrograd.interop.safetensors import load_file, save_file

STORED = {name: facts for name, facts in dtypes.TABLE.items() if facts.stores}
FLOATS = [name for name, facts in STORED.items() if facts.stores == 2]
INTEGERS = [name for name, facts in STORED.items() if facts.stores == 1]


def every_number(name: str) -> np.ndarray:
    """Return an array with each bit pattern of the dtype."""
    limits = None if name in FLOATS else ml_dtypes.iinfo(getattr(ml_dtypes, name))
    if limits is None:
        return np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name))
    return np.arange(int(limits.min), int(limits.max) + 1).astype(getattr(ml_dtypes, name))


@pytest.mark.parametrize("name", STORED)
def test_it_is_the_dtype_of_ml_dtypes(name):
    dtype = getattr(rg, name)
    assert dtype == np.dtype(getattr(ml_dtypes, name))
    assert dtype is dtypes.as_dtype(name)
    assert pickle.loads(pickle.dumps(dtype)) == dtype
    assert rg.zeros(3, dtype=name).element_size() == 1


@pytest.mark.parametrize("name", STORED)
def test_every_number_survives_a_conversion_to_float32_and_back(name):
    array = every_number(name)
    x = rg.tensor(array)
    assert np.array_equal(x.float().numpy(), array.astype(np.float32), equal_nan=True)
    back = x.float().to(name) if name in FLOATS else x.long().to(name)
    kept = ~np.isnan(array.astype(np.float32))
    assert np.array_equal(back.numpy().view(np.uint8)[kept], array.view(np.uint8)[kept])


@pytest.mark.parametrize("name", FLOATS)
def test_queries_count_it_as_real_and_floating(name):
    x = rg.ones(2, dtype=name)
    assert x.is_floating_point()
    assert not x.is_complex()
    assert rg.is_signed(x) == (name != "float8_e8m0fnu")
    assert rg.finfo(name).bits == 8
    assert rg.zeros(2, dtype=name, requires_grad=True).requires_grad


@pytest.mark.parametrize("name", INTEGERS)
def test_queries_count_it_as_an_integer(name):
    x = rg.ones(2, dtype=name)
    assert not x.is_floating_point()
    assert rg.is_signed(x) == (name[0] == "i")
    assert rg.iinfo(name).bits == int(name[-1])
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        rg.zeros(2, dtype=name, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"can't be converted to {name} without overflow"):
        rg.tensor([100], dtype=name)


@pytest.mark.parametrize("write", [
    lambda d: rg.tensor([1e9, -1e9], dtype=d),
    lambda d: rg.tensor([1e9, -1e9]).to(d),
    lambda d: rg.zeros(2, dtype=d).copy_(rg.tensor([1e9, -1e9], dtype=rg.float64)),
    lambda d: rg.stack([rg.full((), 1e9, dtype=d), rg.full_like(rg.zeros((), dtype=d), -1e9)]),
    lambda d: rg.stack([rg.zeros((), dtype=d).fill_(1e9), rg.tensor(-1e9).to(d)]),
])  # fmt: skip
def test_numbers_beyond_the_largest_become_the_largest_where_there_is_no_infinity(write):
    assert write(rg.float8_e4m3fn).tolist() == [448.0, -448.0]
    assert write(rg.float8_e5m2).tolist() == [float("inf"), -float("inf")]


def test_the_format_without_a_sign_ignores_it_and_holds_no_zero():
    x = rg.tensor([-4.0, 0.0, 3.0]).to(rg.float8_e8m0fnu)
    assert x.tolist() == [4.0, 2.0**-127, 4.0]


@pytest.mark.parametrize("name", STORED)
def test_elements_move_and_compare(name):
    x = rg.tensor([[1, 0], [1, 1]]).to(name)
    rows = x.tolist()
    assert x[0].tolist() == rows[0]
    assert x[rg.tensor([1, 0])].tolist() == rows[::-1]
    assert x.T.contiguous().tolist() == [list(row) for row in zip(*rows, strict=True)]
    assert rg.cat([x, x]).tolist() == rows * 2
    assert rg.where(x == x, x, x).tolist() == x.clone().tolist() == x.flip(0).flip(0).tolist() == rows
    assert rg.equal(x, x.clone())
    assert not rg.equal(x, x.flip(0))
    assert x.view(rg.uint8).view(getattr(rg, name)).tolist() == rows
    assert f"dtype={name}" in repr(x)
    rg.testing.assert_close(x, x.clone())


REFUSED = {
    "add": lambda x: x + x,
    "mul": lambda x: x * 2,
    "neg": lambda x: -x,
    "sum": lambda x: x.sum(),
    "matmul": lambda x: x @ x,
    "exp": lambda x: x.exp_(),
    "argsort": lambda x: x.sort(),
    "linear": lambda x: rg.nn.functional.linear(x, x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arithmetic_is_refused_with_the_way_out(name):
    REFUSED[name](rg.ones(2, 2))  # the kernel for NumPy's dtypes is known after its first use
    x = rg.ones(2, 2, dtype=rg.float8_e5m2)
    with pytest.raises(NotImplementedError, match=rf'"{name}" not implemented for \'Float8_e5m2\': convert with .to\('):
        REFUSED[name](x)


def test_promotion_with_another_dtype_is_refused():
    words = "Promotion for Float8 Types is not supported, attempted to promote Float8_e5m2 and Float: convert one"
    with pytest.raises(RuntimeError, match=words):
        rg.ones(2, dtype=rg.float8_e5m2) + rg.ones(2)
    with pytest.raises(RuntimeError, match=words):
        rg.promote_types(rg.float8_e5m2, rg.float32)
    with pytest.raises(RuntimeError, match="Promotion for int2, int4, uint2 and uint4 Types is not supported"):
        rg.promote_types(rg.int64, rg.int4)
    assert rg.promote_types(rg.int4, rg.int4) == rg.int4


def test_none_of_them_can_be_the_default_or_be_drawn():
    for name in STORED:
        with pytest.raises(TypeError, match="set_default_dtype"):
            rg.set_default_dtype(name)
    with pytest.raises(NotImplementedError, match="\"rand\" not implemented for 'Float8_e5m2': draw float32"):
        rg.rand(2, dtype="float8_e5m2")


@pytest.mark.parametrize("name", FLOATS)
def test_gradients_pass_through_conversions(name):
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    (x.to(name).float() * 4).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("name", FLOATS)
def test_safetensors_files_hold_them_in_order(name, tmp_path):
    tensors = {"z": rg.tensor(every_number(name)), "a": rg.ones(2), "empty": rg.zeros(0, 3, dtype=name)}
    tensors["scalar"] = rg.tensor(1.0).to(name)
    save_file(tensors, tmp_path / "a.safetensors")
    found = load_file(tmp_path / "a.safetensors")
    assert sorted(found) == sorted(tensors)
    for key, x in tensors.items():
        assert (found[key].dtype, found[key].shape) == (x.dtype, x.shape)
        assert found[key].numpy().tobytes() == x.numpy().tobytes()


@pytest.mark.parametrize("name", STORED)
def test_files_of_save_hold_them(name, tmp_path):
    x = rg.tensor(every_number(name))
    rg.save({"x": x, "dtype": x.dtype}, tmp_path / "a.pt")
    found = rg.load(tmp_path / "a.pt")
    assert found["dtype"] == x.dtype == found["x"].dtype
    assert found["x"].numpy().tobytes() == x.numpy().tobytes()


def test_dlpack_names_the_way_out():
    with pytest.raises(BufferError, match=r"NumPy exports no float8_e5m2; x.view\(rg.uint8\) is the same memory"):
        rg.ones(2, dtype=rg.float8_e5m2).__dlpack__()
