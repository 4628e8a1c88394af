"""Floats of 8 bits: conversions, limits, files and refusals are PyTorch's; integers of 2 and 4 bits: their names."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file as load_in_torch
from safetensors.torch import save_file as save_in_torch

import retrograd as rg
from retrograd.core.dtype import TABLE
from retrograd.interop.safetensors import load_file, save_file

STORED = [name for name, facts in TABLE.items() if facts.stores]
FLOATS = [name for name in STORED if TABLE[name].stores == 2]

HALVES = np.arange(65536, dtype=np.uint16).view(np.float16)
# Each value of bfloat16, the ties halfway to the next one, and their neighbors.
BITS = [np.arange(65536, dtype=np.uint32) << 16 | low for low in (0, 0x8000, 0x8001)]
SINGLES = np.concatenate(BITS).view(np.float32)
SINGLES = SINGLES[~np.isnan(SINGLES)]
NUMBERS = {
    "float16": HALVES,
    "float32": SINGLES,
    "float64": np.concatenate([SINGLES.astype(np.float64), SINGLES.astype(np.float64) * (1 + 2**-40)]),
    "int64": np.arange(-1000, 1000),
}


def test_they_are_pytorchs():
    for name in STORED:
        theirs, ours = getattr(torch, name), getattr(rg, name)
        assert theirs.itemsize == ours.itemsize
        assert theirs.is_floating_point == (name in FLOATS)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("source", NUMBERS)
@pytest.mark.filterwarnings("ignore:.*cast:RuntimeWarning")
def test_conversions_give_the_same_bits(name, source):
    numbers = NUMBERS[source]
    with np.errstate(all="ignore"):
        found = rg.tensor(numbers).to(name)
    expected = torch.tensor(numbers).to(getattr(torch, name))
    assert np.array_equal(found.float().numpy(), expected.float().numpy(), equal_nan=True)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64", "int64", "bool", "complex64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_conversions_of_each_value_to_another_dtype(name, target):
    every = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))
    if target == "int64":
        every = every[every.float().abs() < 2**31]  # others are undefined in C
    found = rg.tensor(every.view(torch.uint8).numpy()).view(getattr(rg, name)).to(target)
    expected = every.to(getattr(torch, target))
    as_numbers = (lambda x: x.float()) if target == "bfloat16" else (lambda x: x)
    assert np.array_equal(as_numbers(found).numpy(), as_numbers(expected).numpy(), equal_nan=True)


@pytest.mark.parametrize("name", FLOATS)
def test_limits_are_the_same(name):
    found, expected = rg.finfo(name), torch.finfo(getattr(torch, name))
    if name == "float8_e5m2fnuz":  # PyTorch's eps is half of it: the next number after 1 is 1.25
        assert torch.tensor([1.125, 1.2]).to(torch.float8_e5m2fnuz).tolist() == [1.0, 1.25]
        assert (found.eps, expected.eps) == (0.25, 0.125)
    else:
        assert found.eps == expected.eps
    for limit in ("bits", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(found, limit) == getattr(expected, limit), limit
    assert rg.is_signed(rg.ones(1, dtype=name)) == getattr(torch, name).is_signed


REFUSED = {
    "add": lambda L, x: x + x,
    "mixed": lambda L, x: x + L.ones(2),
    "mixed integers": lambda L, x: x + L.arange(2),
    "neg": lambda L, x: -x,
    "sum": lambda L, x: x.sum(),
    "sort": lambda L, x: x.sort(),
    "promote": lambda L, x: L.promote_types(x.dtype, L.float32),
    "rand": lambda L, x: L.rand(2, dtype=x.dtype),
    "default": lambda L, x: L.set_default_dtype(x.dtype),
}


@pytest.mark.parametrize("case", REFUSED)
def test_both_refuse(case):
    def refusal(L):
        with pytest.raises((NotImplementedError, RuntimeError, TypeError)) as caught:
            REFUSED[case](L, L.ones(2).to(L.float8_e4m3fn))
        return caught

    ours, theirs = refusal(rg), refusal(torch)
    if theirs.type is not TypeError:
        assert theirs.type is ours.type
    if theirs.type is RuntimeError:
        assert str(theirs.value) in str(ours.value)


SHARED = {
    "eq": lambda L, x: x == x,
    "isnan": lambda L, x: x.isnan(),
    "cat": lambda L, x: L.cat([x, x]).float(),
    "where": lambda L, x: L.where(L.tensor([True, False]), x, x.clone()).float(),
    "select": lambda L, x: x[L.tensor([1])].float(),
    "full": lambda L, x: L.full((2,), 100.0, dtype=x.dtype).float(),
    "fill": lambda L, x: x.clone().fill_(100.0).float(),
    "ones_like": lambda L, x: L.ones_like(x).float(),
    "copy": lambda L, x: L.empty(2).copy_(x),
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("case", SHARED)
def test_both_give(case, name):
    found, expected = (SHARED[case](L, L.tensor([1.0, 2.0]).to(getattr(L, name))) for L in (rg, torch))
    assert np.array_equal(found.numpy(), expected.numpy(), equal_nan=True)


@pytest.mark.parametrize("name", FLOATS)
def test_files_cross(name, tmp_path):
    bits = np.arange(256, dtype=np.uint8)
    ours, theirs = rg.tensor(bits).view(getattr(rg, name)), torch.tensor(bits).view(getattr(torch, name))
    rg.save({"x": ours}, tmp_path / "ours.pt")
    assert torch.equal(torch.load(tmp_path / "ours.pt")["x"].view(torch.uint8), theirs.view(torch.uint8))
    torch.save({"x": theirs}, tmp_path / "theirs.pt")
    assert np.array_equal(rg.load(tmp_path / "theirs.pt")["x"].numpy().view(np.uint8), bits)
    save_file({"x": ours}, tmp_path / "ours.safetensors")
    assert torch.equal(load_in_torch(tmp_path / "ours.safetensors")["x"].view(torch.uint8), theirs.view(torch.uint8))
    save_in_torch({"x": theirs}, tmp_path / "theirs.safetensors")
    assert np.array_equal(load_file(tmp_path / "theirs.safetensors")["x"].numpy().view(np.uint8), bits)
