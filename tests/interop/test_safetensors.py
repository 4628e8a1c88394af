"""Tensors are restored exactly from safetensors files, and damaged or unsuitable files are refused."""

import json
import os

import numpy as np
import pytest

import retrograd as rg
from retrograd.core.dtype import as_dtype
from retrograd.interop.safetensors import DTYPES, load_file, load_metadata, save_file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tensors.safetensors"


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_dtype_comes_back_bit_for_bit(dtype, path, rng):
    numbers = rng.standard_normal((2, 3)) * 50 if dtype[0] != "u" else np.arange(6)
    array = numbers.astype(as_dtype(dtype))
    save_file({"x": rg.from_numpy(array)}, path)
    back = load_file(path)["x"].numpy()
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_shapes_come_back_also_those_without_dimensions_or_elements(shape, path):
    save_file({"x": rg.ones(shape)}, path)
    assert load_file(path)["x"].shape == shape


def test_a_view_is_written_as_what_it_shows(path):
    x = rg.arange(6.0).reshape(2, 3)
    save_file({"turned": x.transpose(0, 1), "every other": x.reshape(6)[::2]}, path)
    back = load_file(path)
    assert back["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert back["every other"].tolist() == [0, 2, 4]


def test_tensors_that_require_grad_are_saved_without_their_graph(path):
    save_file({"x": rg.ones(2, requires_grad=True) * 2}, path)
    assert not load_file(path)["x"].requires_grad


def test_loaded_tensors_can_be_written_to_and_leave_the_file_alone(path):
    save_file({"x": rg.zeros(2)}, path)
    load_file(path)["x"].add_(1.0)
    assert load_file(path)["x"].tolist() == [0, 0]


def test_metadata_comes_back(path):
    save_file({}, path, {"state": json.dumps({"step": 3}), "ünï": "✓"})
    assert load_metadata(path) == {"state": '{"step": 3}', "ünï": "✓"}
    save_file({}, path)
    assert load_metadata(path) == {}


@pytest.mark.parametrize(
    ("tensors", "metadata", "message"),
    [
        ({"z": rg.zeros(1, dtype=rg.complex128)}, None, "'z' is of dtype complex128"),
        ({"a": np.zeros(1)}, None, "'a' must be a Tensor, got ndarray"),
        ({3: rg.zeros(1)}, None, "names of tensors must be strings, got 3"),
        ({}, {"step": 3}, "metadata must be text by name, got 'step': 3"),
    ],
)
def test_unsupported_tensors_and_metadata_are_refused_before_anything_is_written(tensors, metadata, message, path):
    save_file({"old": rg.ones(1)}, path)
    with pytest.raises(TypeError, match=message):
        save_file(tensors, path, metadata)
    assert list(load_file(path)) == ["old"]
    assert os.listdir(path.parent) == [path.name]


def test_a_failing_write_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    save_file({"old": rg.ones(1)}, path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_file({"new": rg.ones(1)}, path)
    assert list(load_file(path)) == ["old"]
    assert os.listdir(path.parent) == [path.name]


def test_a_file_torn_anywhere_is_refused_by_name(path):
    save_file({"x": rg.ones(3), "y": rg.zeros(2, 2)}, path, {"a": "b"})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"tensors\.safetensors is damaged"):
            load_file(path)


@pytest.mark.parametrize("damage", [b"\xff" * 8, b"\x02" + b"\0" * 7 + b"{]"])
def test_a_file_of_something_else_is_refused_by_name(damage, path):
    path.write_bytes(damage)
    for load in (load_file, load_metadata):
        with pytest.raises(ValueError, match=r"tensors\.safetensors is damaged or no safetensors file"):
            load(path)


def test_files_of_the_other_format_are_named_as_such(path):
    rg.save({"x": rg.ones(1)}, path.with_name("x.pt"))
    os.rename(path.with_name("x.pt"), path)
    with pytest.raises(ValueError, match=r"but one of rg\.save or torch\.save: name it \.pt"):
        rg.load(path)
    save_file({"x": rg.ones(1)}, path)
    os.rename(path, path.with_name("x.pt"))
    with pytest.raises(ValueError, match=r"x\.pt: a safetensors file by its content"):
        rg.load(path.with_name("x.pt"))


WITHOUT_NAMES = {
    "nested dict": ({"model": {"weight": rg.ones(1)}}, "save the inner dict, or name its tensors 'model.weight'"),
    "number": ({"w": rg.ones(1), "epoch": 3}, "'epoch' must be a Tensor, got int; .* without .safetensors saves more"),
    "array": ({"w": np.ones(1)}, r"got ndarray; rg.tensor\(...\) makes one"),
    "module": (rg.nn.Linear(1, 1), r"got Linear; save its state_dict\(\)"),
    "tensor": (rg.ones(1), "got Tensor; give each tensor a name"),
    "list": ([rg.ones(1)], "got list; give each tensor a name"),
    "nested tensor": ({"w": rg.nested.nested_tensor([[1.0], [1.0, 2.0]])}, "'w' is a nested or sparse tensor"),
    "sparse tensor": ({"w": rg.eye(2).to_sparse()}, "'w' is a nested or sparse tensor"),
    "sparse rows": ({"w": rg.eye(2).to_sparse_csr()}, "'w' is a nested or sparse tensor"),
}


@pytest.mark.parametrize("case", WITHOUT_NAMES)
def test_what_the_format_cannot_hold_is_refused_with_a_way_out(case, path):
    value, message = WITHOUT_NAMES[case]
    with pytest.raises(TypeError, match=message):
        rg.save(value, path)
    assert not path.exists()


def test_a_dtype_that_numpy_lacks_is_refused_by_name(path):
    header = json.dumps({"w": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    with pytest.raises(TypeError, match="'w' is of type F4"):
        load_file(path)


def test_a_missing_file_is_a_missing_file(path):
    with pytest.raises(FileNotFoundError):
        load_file(path)


def test_files_of_the_package_itself_are_read_and_written(path):
    from safetensors import numpy as theirs

    theirs.save_file({"x": np.arange(3)}, path)
    assert load_file(path)["x"].tolist() == [0, 1, 2]
    save_file({"y": rg.arange(3)}, path)
    assert theirs.load_file(path)["y"].tolist() == [0, 1, 2]


def with_halves(path):
    """Write a file with a tensor of bfloat16 between others, as other libraries do."""
    numbers = np.array([[1.5, -2.0], [np.inf, 3e38]], "<f4")
    halves = (numbers.view("<u4") >> 16).astype("<u2")
    header = {
        "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "half": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [4, 12]},
        "one": {"dtype": "BF16", "shape": [], "data_offsets": [12, 14]},
    }
    text = json.dumps(header).encode()
    data = np.float32(7).tobytes() + halves.tobytes() + halves[0, 0].tobytes()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return (halves.astype("<u4") << 16).view("<f4")


def test_bfloat16_is_read_with_all_its_values(path):
    expected = with_halves(path)
    found = load_file(path)
    assert list(found) == ["a", "half", "one"]
    assert found["half"].dtype == found["one"].dtype == rg.bfloat16
    assert np.array_equal(found["half"].float(), expected)
    assert found["one"].shape == ()
    assert found["one"].item() == 1.5
    assert found["a"].tolist() == [7.0]


def test_bfloat16_is_written_and_read_again(path):
    x = rg.tensor([[1.5, -2.0], [float("inf"), 3e38]], dtype=rg.bfloat16)
    save_file({"x": x, "turned": x.T, "one": x[0, 0]}, path)
    found = load_file(path)
    assert all(t.dtype == rg.bfloat16 for t in found.values())
    assert found["x"].tolist() == x.tolist()
    assert found["turned"].tolist() == x.T.tolist()
    assert found["one"].item() == 1.5


def test_a_cut_file_with_bfloat16_is_damaged(path):
    with_halves(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        load_file(path)
