"""Files written by torch.save load without PyTorch to the same objects as by torch.load."""

import collections
from fractions import Fraction

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
        assert ours.detach().numpy().tolist() == expected.tolist()
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
def test_saved_objects_load_equal(name, protocol, mmap, tmp_path):
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


def test_bfloat16_and_smaller_floats_are_read(tmp_path):
    numbers = torch.tensor([1.5, -3e38, float("inf"), float("nan"), 1e-40], dtype=torch.bfloat16)
    torch.save(numbers, tmp_path / "a.pt")
    found = load_file(tmp_path / "a.pt")
    assert found.dtype == rg.bfloat16
    np.testing.assert_array_equal(found.float().numpy(), numbers.float().numpy())
    torch.save(numbers.to(torch.float8_e5m2), tmp_path / "b.pt")
    found = load_file(tmp_path / "b.pt")
    assert found.dtype == rg.float8_e5m2
    np.testing.assert_array_equal(found.float().numpy(), numbers.to(torch.float8_e5m2).float().numpy())


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
        (Fraction(1, 2), "fractions.Fraction"),
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


def test_arguments_about_pickle_are_taken_and_either_library_reads_the_file(tmp_path):
    for m in (rg, torch):
        m.save({"a": m.ones(2)}, tmp_path / "a.pt", pickle_protocol=2, _use_new_zipfile_serialization=True)
        assert load_file(tmp_path / "a.pt")["a"].tolist() == torch.load(tmp_path / "a.pt")["a"].tolist() == [1, 1]
    rg.save(rg.ones(2), tmp_path / "a.pt", None, 4, _use_new_zipfile_serialization=False)
    assert torch.load(tmp_path / "a.pt").tolist() == [1, 1]


def test_torch_load_reads_files_of_rg_save(tmp_path):
    base = rg.arange(12.0)
    dtypes = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
    saved = {
        "views": [base, base.reshape(3, 4).T, base[5], base[::2], base[3].expand(4), rg.zeros(2, 0)],
        "dtypes": {name: rg.from_numpy(np.array([0, 1, 3]).astype(name)) for name in dtypes.split()},
        "plain": {"epoch": 3, "big": 2**70, "text": "é", "none": None, "raw": b"\xff\x00", "pair": (0.5, [True])},
        "more": {"set": {1, 2}, "complex": 1j, "ordered": collections.OrderedDict(a=1), "scalar": np.float64(0.5)},
        "parameter": rg.nn.Parameter(rg.ones(2)),
    }
    rg.save(saved, tmp_path / "a.pt")
    for mmap in (False, True):
        found = torch.load(tmp_path / "a.pt", weights_only=True, mmap=mmap)
        for mine, theirs in zip(saved["views"], found["views"], strict=True):
            assert (theirs.tolist(), tuple(theirs.shape)) == (mine.tolist(), mine.shape)
        assert len({t.untyped_storage().data_ptr() for t in found["views"][:-1]}) == 1
        assert {name: (str(t.dtype), t.tolist()) for name, t in found["dtypes"].items()} == {
            name: (f"torch.{name}", t.tolist()) for name, t in saved["dtypes"].items()
        }
        assert found["plain"] == saved["plain"]
        assert found["more"] == saved["more"]
        assert type(found["more"]["ordered"]) is collections.OrderedDict
        assert found["parameter"].requires_grad


def test_a_state_dict_goes_there_and_back(tmp_path):
    mine, theirs = rg.nn.GRU(3, 4, 2), torch.nn.GRU(3, 4, 2)
    rg.save(mine.state_dict(), tmp_path / "a.pt")
    theirs.load_state_dict(torch.load(tmp_path / "a.pt", weights_only=True))
    torch.save(theirs.state_dict(), tmp_path / "b.pt")
    back = rg.load(tmp_path / "b.pt")
    for name, value in mine.state_dict().items():
        assert np.array_equal(back[name], value), name


def test_bfloat16_of_safetensors_has_pytorchs_values(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    x = torch.randn(3, 5).to(torch.bfloat16)
    safetensors.save_file({"x": x}, tmp_path / "a.safetensors")
    assert np.array_equal(rg.load(tmp_path / "a.safetensors")["x"].float(), x.float().numpy())


def test_pytorch_reads_our_bfloat16(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    x = rg.randn(3, 5).bfloat16()
    rg.save({"x": x, "turned": x.T, "dtype": rg.bfloat16}, tmp_path / "a.pt")
    rg.save({"x": x}, tmp_path / "a.safetensors")
    found = torch.load(tmp_path / "a.pt", weights_only=True)
    assert found["x"].dtype == found["dtype"] == torch.bfloat16
    assert found["turned"].data_ptr() == found["x"].data_ptr()
    for theirs in (found["x"], safetensors.load_file(tmp_path / "a.safetensors")["x"]):
        assert theirs.dtype == torch.bfloat16
        assert theirs.tolist() == x.tolist()
    assert torch.from_dlpack(x.view(rg.uint16)).view(torch.bfloat16).tolist() == x.tolist()


# ---------------------------------------------------------------------------------------------------- nested tensors


def components(m):
    return [m.arange(6.0).reshape(2, 3), m.arange(3.0).reshape(1, 3)]


NESTED = {
    "jagged": lambda m: m.nested.nested_tensor(components(m), layout=m.jagged),
    "transposed": lambda m: m.nested.nested_tensor(components(m), layout=m.jagged).transpose(1, 2),
    "strided": lambda m: m.nested.nested_tensor([m.ones(2, 3), m.ones(1, 4)]),
    "one ragged dimension of several": lambda m: m.nested.nested_tensor(components(m)),
    "holes": lambda m: m.nested.narrow(
        m.arange(12.0).reshape(2, 6), 1, m.tensor([0, 2]), m.tensor([2, 3]), layout=m.jagged
    ),
    "leaf": lambda m: m.nested.nested_tensor(components(m), layout=m.jagged, requires_grad=True),
}


def parts(x):
    return [part.detach().tolist() for part in x.unbind()]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", NESTED)
def test_nested_tensors_go_both_ways(name, tmp_path):
    for write, read, m in ((torch.save, rg.load, torch), (rg.save, torch.load, rg)):
        x = NESTED[name](m)
        write({"x": x, "again": [x]}, tmp_path / "a.pt")
        y = read(tmp_path / "a.pt")
        assert y["again"][0] is y["x"]
        assert y["x"].is_nested
        assert parts(y["x"]) == parts(x)


def test_sets_of_sets_are_a_mapping_there(tmp_path):
    x = rg.nested.nested_tensor([rg.nested.nested_tensor([[1.0, 2.0], [3.0]]), rg.nested.nested_tensor([[4.0]])])
    rg.save(x, tmp_path / "a.pt")
    found = torch.load(tmp_path / "a.pt")
    assert list(found) == ["retrograd.nested", "values", "sizes", "axis", "lead"]
    assert parts(found["values"]) == [[1.0, 2.0], [3.0], [4.0]]


def old_states():
    norm = {"weight": [2.0, 3.0], "bias": [0.0, 1.0], "running_mean": [1.0, 2.0], "running_var": [3.0, 4.0]}
    yield lambda m: m.nn.BatchNorm1d(2), norm
    yield lambda m: m.nn.Sequential(m.nn.BatchNorm1d(2)), {f"0.{key}": value for key, value in norm.items()}
    yield lambda m: m.nn.InstanceNorm1d(2, affine=True, track_running_stats=True), norm
    directions = {"bias": [0.0], "weight_g": [[2.0]], "weight_v": [[3.0, 4.0]]}
    yield lambda m: m.nn.utils.parametrizations.weight_norm(m.nn.Linear(2, 1)), directions
    layers = {f"layers.0.{key}": value for key, value in directions.items()}
    yield lambda m: m.nn.ModuleDict({"layers": m.nn.Sequential(weight_normed(m))}), layers


def weight_normed(m):
    return m.nn.utils.parametrizations.weight_norm(m.nn.Linear(2, 1))


@pytest.mark.parametrize(("make", "state"), [*old_states()])
def test_states_of_earlier_versions_load(make, state):
    loaded = []
    for m in (rg, torch):
        module = make(m)
        given = {key: m.tensor(value) for key, value in state.items()}
        assert str(module.load_state_dict(given)) == "<All keys matched successfully>"
        assert list(given) == list(state)  # the caller's dict stays as it is
        loaded.append({key: value.tolist() for key, value in module.state_dict().items()})
    assert loaded[0] == loaded[1]
