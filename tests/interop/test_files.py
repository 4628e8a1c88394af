"""`rg.save` and `rg.load`: plain data with tensors is restored unchanged, and other objects are refused."""

import collections
import io
import os

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.core.dtype import TABLE
from retrograd.interop import safetensors
from retrograd.pipelining import read_csv

from ..case_groups import group_cases

PLAIN = {
    "none": None, "truths": [True, False], "integers": [0, -1, 2**31 - 1, 2**31, -(2**31), 2**70, -(2**70)],
    "float": 0.1, "infinite": float("-inf"), "complex": 1 - 2j, "text": "ünï\n", "raw": bytes(range(256)),
    "pair": (1, (2, [])), "set": {1, "a"}, "dict": {1: "one", (2, 3): {}}, "dtype": rg.float16,
}  # fmt: skip


def again(obj):
    rg.save(obj, file := io.BytesIO())
    return rg.load(file)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_data_comes_back(name):
    found = again(PLAIN[name])
    assert found == PLAIN[name]
    assert type(found) is type(PLAIN[name])


def test_numpys_scalars_become_pythons_and_named_tuples_tuples():
    Point = collections.namedtuple("Point", "x y")
    found = again([np.float32(0.5), np.int8(3), np.bool_(True), Point(1, 2), collections.OrderedDict(a=1)])
    assert found == [0.5, 3, True, (1, 2), {"a": 1}]
    assert [type(value) for value in found] == [float, int, bool, tuple, collections.OrderedDict]


def test_an_object_that_cannot_be_written_is_named_and_not_the_open_file():
    with pytest.raises(TypeError, match=r"^save: obj\['x'\] is of type builtins\.object"):
        rg.save({"x": object()}, io.BytesIO())


def test_counters_come_back():
    found = again(
        {
            "milestones": collections.Counter([2, 5, 5]),
            "words": collections.Counter("aab"),
            "none": collections.Counter(),
        }
    )
    assert found == {"milestones": {2: 1, 5: 2}, "words": {"a": 2, "b": 1}, "none": {}}
    assert {type(value) for value in found.values()} == {collections.Counter}


@group_cases
@pytest.mark.parametrize("dtype", TABLE)
def test_tensors_of_each_dtype_come_back(dtype):
    array = np.array([[0, 1, 2], [3, 0, 200]]).astype(TABLE[dtype].dtype)
    found = again(rg.from_numpy(array)).numpy()
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_shapes_without_dimensions_or_elements_come_back(shape):
    assert again(rg.ones(shape)).shape == shape


def test_views_of_one_memory_are_that_again_and_what_they_do_not_show_is_not_written():
    base = rg.arange(10000.0)
    turned = base[:12].reshape(3, 4).T
    one, two, column, wide, back = again(
        [turned, base[2:5], base[::3][1:3], base[7].expand(5), rg.flip(base[:3], (0,))]
    )
    assert one.tolist() == turned.tolist()
    assert two.tolist() == [2.0, 3.0, 4.0]
    assert column.tolist() == [3.0, 6.0]
    assert wide.tolist() == [7.0] * 5
    assert back.tolist() == [2.0, 1.0, 0.0]
    two[1] = 50.0
    assert one[3, 0].item() == 50.0
    assert column[0].item() == 50.0
    rg.save(base[2:5], small := io.BytesIO())
    assert len(small.getvalue()) < 2000


def test_an_object_with_two_references_is_one_again_and_may_contain_itself():
    x, row = rg.ones(2), [1]
    row.append(row)
    found = again({"a": x, "b": x, "row": row})
    assert found["a"] is found["b"]
    assert found["row"][1] is found["row"]


def test_arrays_backwards_and_in_foreign_byte_order_come_back():
    array = np.arange(6.0).reshape(2, 3)
    assert again(rg.from_numpy(array[::-1, ::2])).tolist() == [[3.0, 5.0], [0.0, 2.0]]


def test_a_training_run_continues_from_its_saved_state(tmp_path):
    def trained(model, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            (model(rg.ones(4, 3)) ** 2).sum().backward()
            optimizer.step()

    rg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    trained(model, optimizer, 3)
    rg.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, tmp_path / "run.pt")
    trained(model, optimizer, 2)
    other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    second = optim.Adam(other.parameters(), lr=0.5)
    saved = rg.load(tmp_path / "run.pt", map_location="cpu", weights_only=True, mmap=True)
    other.load_state_dict(saved["model"])
    second.load_state_dict(saved["optimizer"])
    assert saved["epoch"] == 3
    trained(other, second, 2)
    for name, value in model.state_dict().items():
        assert np.array_equal(other.state_dict()[name], value), name


def test_safetensors_go_by_the_name_of_the_file(tmp_path):
    rg.save({"w": rg.ones(2)}, tmp_path / "a.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes()[8:9] == b"{"
    assert rg.load(tmp_path / "a.safetensors")["w"].tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="'epoch' must be a Tensor"):
        rg.save({"epoch": 3}, tmp_path / "a.safetensors")


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"model": nn.Linear(1, 1)}, r"save: obj\['model'\] is of type retrograd.nn.linear.Linear, which a file of"),
        ([1, (2, np.array([object()]))], r"save: obj\[1\]\[1\] is an array of dtype object"),
        ({len: 1}, r"save: obj \(a key\) is of type builtins.builtin_function_or_method"),
    ],
    ids=["module", "array", "key"],
)
def test_objects_other_than_plain_data_are_refused_before_anything_is_written(obj, message, tmp_path):
    path = tmp_path / "a.pt"
    rg.save("old", path)
    with pytest.raises(TypeError, match=message):
        rg.save(obj, path)
    assert rg.load(path) == "old"
    assert os.listdir(tmp_path) == ["a.pt"]


def test_nested_tensors_come_back_and_safetensors_have_none(tmp_path):
    x = rg.nested.nested_tensor([[1.0], [1.0, 2.0]])
    rg.save({"x": x}, tmp_path / "a.pt")
    assert rg.load(tmp_path / "a.pt")["x"].tolist() == x.tolist()
    with pytest.raises(TypeError, match="is a nested or sparse tensor"):
        rg.save({"x": x}, tmp_path / "a.safetensors")


@pytest.mark.parametrize(
    ("map_location", "expected"),
    [
        ({}, "cpu"),
        ({"cuda:0": "cuda:1"}, "cpu"),
        ({"cuda:0": "cpu", "cuda:1": "cpu"}, "cpu"),
        ({"cpu": "meta"}, "meta"),
        ({rg.device("cpu"): rg.device("meta")}, "meta"),
        ({"cpu": "cpu", "cuda": "meta"}, "cpu"),
        ("meta", "meta"),
        (lambda storage, location: storage, "cpu"),
    ],
)
@pytest.mark.parametrize("name", ["a.pt", "a.safetensors"])
def test_the_entry_of_the_cpu_counts_in_a_dict_of_devices(tmp_path, name, map_location, expected):
    rg.save({"w": rg.ones(2)}, tmp_path / name)
    loaded = rg.load(tmp_path / name, map_location)["w"]
    assert (loaded.device, loaded.shape) == (expected, (2,))


LOADERS = [rg.load, safetensors.load_file, safetensors.load_metadata, read_csv]
LOADERS += [lambda path: safetensors.load_slices(path, {}), lambda path: safetensors.load_ranges(path, "x", [])]


@pytest.mark.parametrize("load", LOADERS)
def test_the_number_of_an_open_file_is_no_path_and_the_file_stays_open(load, tmp_path):
    with open(tmp_path / "a", "w+b") as file:
        with pytest.raises(TypeError, match="str"):
            load(file.fileno())
        assert os.fstat(file.fileno()).st_size == 0


def test_loading_runs_no_code_and_goes_to_no_device(tmp_path):
    rg.save(1, tmp_path / "a.pt")
    with pytest.raises(ValueError, match="weights_only=False would run code"):
        rg.load(tmp_path / "a.pt", weights_only=False)
    with pytest.raises(ValueError, match="map_location must be 'cpu' or None, got 'cuda'"):
        rg.load(tmp_path / "a.pt", "cuda")
    with pytest.raises(ValueError, match=r"map_location must be 'cpu' or None, got \{'cpu': 'cuda'\}"):
        rg.load(tmp_path / "a.pt", {"cpu": "cuda"})
    for map_location in (3, {"cpu": 3}, {"cpu": len}):
        with pytest.raises(TypeError, match="map_location must be a device, its name, a dict or a function, got"):
            rg.load(tmp_path / "a.pt", map_location)
    with pytest.raises(FileNotFoundError):
        rg.load(tmp_path / "b.pt")
    with pytest.raises(TypeError, match="mmap=True needs the path of a file"):
        rg.load(io.BytesIO((tmp_path / "a.pt").read_bytes()), mmap=True)
    with pytest.raises(ValueError, match=r"BytesIO.*no checkpoint"):
        rg.load(io.BytesIO(b"nothing"))
