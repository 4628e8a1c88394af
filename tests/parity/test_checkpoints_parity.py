"""What torch.save writes comes back as what torch.load gives, without PyTorch."""

import collections

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd.interop.pytorch import load_file

BASE = torch.arange(12.0)
VALUES = {
    "shared": [BASE, BASE.reshape(3, 4).t(), BASE[5:6].squeeze(), BASE[::2], BASE.expand(2, 12)],
    "dtypes": {
        str(dtype): torch.tensor([0, 1, 3]).to(dtype)
        for dtype in (
            torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32,
            torch.uint64, torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128,
        )
    },
    "flags": [torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag],
    "empty": [torch.empty(0), torch.empty(2, 0, 3), torch.tensor(3.5)],
    "plain": {"epoch": 3, "big": 2**70, "name": "é", "none": None, "flag": True, "raw": b"\xff", "loss": 0.5,
              "pair": (1, [2.0]), "set": {1, 2}, "complex": 1j, "ordered": collections.OrderedDict(a=1)},
    "parameter": torch.nn.Parameter(torch.ones(2)),
}  # fmt: skip


def same(ours, theirs):
    if isinstance(theirs, torch.Tensor):
        expected = theirs.detach().resolve_conj().resolve_neg().numpy()
        assert ours.dtype == expected.dtype
        assert ours.numpy().tolist() == expected.tolist()
        assert ours.shape == tuple(theirs.shape)
        return
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, (list, tuple)) and theirs:
        assert type(ours) is type(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
        return
    assert (type(ours), ours) == (type(theirs), theirs)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("name", VALUES)
def test_what_was_saved_comes_back(name, protocol, mmap, tmp_path):
    torch.save(VALUES[name], tmp_path / "a.pt", pickle_protocol=protocol)
    same(load_file(tmp_path / "a.pt", mmap=mmap), VALUES[name])


@pytest.mark.parametrize("mmap", [False, True])
def test_views_share_memory_and_the_file_stays(mmap, tmp_path):
    torch.save(VALUES["shared"], tmp_path / "a.pt")
    before = (tmp_path / "a.pt").read_bytes()
    base, turned, *_ = load_file(tmp_path / "a.pt", mmap=mmap)
    base[1] = 100.0
    assert turned[1, 0] == 100
    assert (tmp_path / "a.pt").read_bytes() == before


def test_bfloat16_becomes_float32_and_smaller_floats_are_refused(tmp_path):
    numbers = torch.tensor([1.5, -3e38, float("inf"), float("nan"), 1e-40], dtype=torch.bfloat16)
    torch.save(numbers, tmp_path / "a.pt")
    np.testing.assert_array_equal(load_file(tmp_path / "a.pt").numpy(), numbers.float().numpy())
    torch.save(torch.ones(2).to(torch.float8_e5m2), tmp_path / "b.pt")
    with pytest.raises(TypeError, match="float8_e5m2, which NumPy does not have"):
        load_file(tmp_path / "b.pt")


def test_the_state_of_a_model_is_loaded_by_name(tmp_path):
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(theirs.parameters())
    theirs(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    torch.save({"model": theirs.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a.pt")
    saved = load_file(tmp_path / "a.pt")
    ours = rg.nn.Sequential(rg.nn.Linear(3, 4), rg.nn.BatchNorm1d(4), rg.nn.Linear(4, 2))
    ours.load_state_dict(saved["model"])
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    got = ours.eval()(rg.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(got, theirs.eval()(torch.from_numpy(x)).detach().numpy(), rtol=1e-5, atol=1e-6)
    same(saved["optimizer"], optimizer.state_dict())


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (torch.nn.Linear(1, 1), "torch.nn.modules.linear.Linear"),
        (torch.ones(2, 2).to_sparse(), "torch._utils._rebuild_sparse_tensor"),
        (np.float64(1), "numpy"),
        (print, "print"),
    ],
)
def test_anything_else_is_named(value, name, tmp_path):
    torch.save({"value": value}, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=f"a.pt: it asks for .*{name}"):
        load_file(tmp_path / "a.pt")


def test_an_older_format_and_a_program_are_refused(tmp_path):
    torch.save(BASE, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match=r"before 1\.6"):
        load_file(tmp_path / "a.pt")
