"""Checkpoints hold NumPy arrays, paths and objects of allowed classes; hostile states of them are refused."""

import argparse
import dataclasses
import enum
import io
import pathlib
import pickle
import zipfile

import numpy as np
import pytest

import retrograd as rg


def round_trip(value):
    rg.save(value, file := io.BytesIO())
    file.seek(0)
    return rg.load(file)


@dataclasses.dataclass
class Config:
    lr: float
    layers: list


class Mode(enum.Enum):
    TRAIN = "train"


class Slots:
    __slots__ = ("x",)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3), np.arange(6, dtype=np.int8).reshape(2, 3).T[::-1], np.float32([1, np.nan])[:0],
        np.array(5), np.array([True, False]), np.array([1 + 2j]), np.arange(3, dtype=">i4"), np.array(["ab", "c"]),
        np.array([b"ab", b"c"]), np.zeros((0, 3)), np.arange(4, dtype=np.uint64),
    ],
    ids=str,
)  # fmt: skip
def test_arrays_come_back_with_their_values_and_dtype(array):
    found = round_trip({"a": array, "again": array})
    np.testing.assert_array_equal(found["a"], array)
    assert found["a"].dtype == array.dtype.newbyteorder("=")
    assert found["again"] is found["a"]
    assert found["a"].flags.writeable


@pytest.mark.parametrize(
    "array", [np.array([object()]), np.zeros(2, "i4,f8"), np.zeros(1, "M8[s]")], ids=lambda array: str(array.dtype)
)
def test_arrays_that_are_no_plain_memory_are_refused(array):
    with pytest.raises(TypeError, match=r"save: obj\['a'\] is an array of dtype"):
        round_trip({"a": array})


@pytest.mark.parametrize("path", [pathlib.Path("/a/b"), pathlib.PurePosixPath("x"), pathlib.PureWindowsPath("c:/x")])
def test_paths_come_back(path):
    assert round_trip([path]) == [path]


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:1", "meta"])
def test_devices_come_back(name):
    (found,) = round_trip([rg.device(name)])
    assert (type(found), found) == (rg.device, rg.device(name))


def test_a_module_is_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"nn.linear.Linear, .* save its state_dict\(\), and load it by load_state"):
        round_trip(rg.nn.Linear(1, 1))


def test_objects_of_classes_that_are_allowed_come_back():
    slots = Slots()
    slots.x = 3
    value = {"args": argparse.Namespace(lr=0.1), "config": Config(1.0, [1, 2]), "mode": Mode.TRAIN, "slots": slots}
    with pytest.raises(TypeError, match=r"argparse.Namespace, .* rg.serialization.add_safe_globals"):
        round_trip(value)
    with rg.serialization.safe_globals([argparse.Namespace, Config, Mode, Slots]):
        found = round_trip(value)
        rg.save(value, file := io.BytesIO())
        assert Config in rg.serialization.get_safe_globals()
    assert found.pop("slots").x == 3
    assert found == {key: value[key] for key in found}
    assert rg.serialization.get_safe_globals() == []
    file.seek(0)
    with pytest.raises(ValueError, match=r"asks for argparse.Namespace, .*add_safe_globals"):
        rg.load(file)


def test_allowed_classes_are_cleared_and_must_be_classes():
    rg.serialization.add_safe_globals([(Config, "elsewhere.Config")])
    rg.serialization.clear_safe_globals()
    assert rg.serialization.get_safe_globals() == []
    with pytest.raises(TypeError, match="expected classes or functions, got 3"):
        rg.serialization.add_safe_globals([3])


class Call:
    def __init__(self, name, arguments, state=None):
        self.name, self.arguments, self.state = name, arguments, state


def pickled(call):
    """Return the pickle of a call of a global with a state."""

    def put(value):
        if isinstance(value, Call):
            built = b"" if value.state is None else put(value.state) + b"b"
            return f"c{value.name}\n".replace(" ", "\n").encode() + put(value.arguments) + b"R" + built
        if isinstance(value, tuple):
            return b"(" + b"".join(map(put, value)) + b"t"
        if isinstance(value, str) and value.startswith("global "):
            return f"c{value[7:]}\n".replace(" ", "\n").encode()
        return pickle.dumps(value, 3)[2:-1]

    return b"\x80\x03" + put(call) + b"."


DOUBLE = Call("numpy dtype", ("f8", False, True), (3, "<", None, None, None, -1, -1, 0))
EMPTY = ("global numpy ndarray", (0,), b"b")


@pytest.mark.parametrize(
    "call",
    [
        Call("numpy._core.multiarray _reconstruct", EMPTY, (1, (2,), DOUBLE, False, b"12345678")),
        Call("numpy._core.multiarray _reconstruct", EMPTY, (1, (-1,), DOUBLE, False, b"")),
        Call("numpy._core.multiarray _reconstruct", EMPTY, (1, (0, 2**70), DOUBLE, False, b"")),
        Call("numpy._core.multiarray _reconstruct", EMPTY, (1, [1], DOUBLE, False, b"12345678")),
        Call("numpy._core.multiarray _reconstruct", EMPTY, (1, (1,), "f8", False, b"12345678")),
        Call("numpy._core.multiarray _reconstruct", EMPTY, (1, (1,), DOUBLE, False, [1])),
        Call("numpy._core.multiarray _reconstruct", EMPTY, 3),
        Call("numpy._core.multiarray _reconstruct", ("global numpy dtype", (0,), b"b"), None),
        Call("numpy dtype", ("O", False, True)),
        Call("numpy dtype", ("V8", False, True)),
        Call("numpy dtype", ("f8", False, True), (3, ">", None, None, None, -1, -1, 0)),
        Call("numpy dtype", ("f8", False, True), (3, "<", "f8", None, None, -1, -1, 0)),
        Call("numpy._core.multiarray scalar", (DOUBLE, b"1234")),
        Call("numpy._core.multiarray scalar", ("f8", b"12345678")),
        Call("pathlib PosixPath", (3,)),
    ],
)
def test_hostile_states_are_refused(call, tmp_path):
    path = tmp_path / "hostile.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled(call))
    with pytest.raises(ValueError, match=r"hostile\.pt"):
        rg.load(path)


@pytest.mark.parametrize("where", ["cpu", rg.device("cpu"), None, lambda storage, location: storage, {"cuda:0": "cpu"}])
def test_a_location_that_means_the_cpu_is_accepted(where, tmp_path):
    rg.save(rg.ones(2), tmp_path / "x")
    assert rg.load(tmp_path / "x", map_location=where).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="map_location must be 'cpu' or None"):
        rg.load(tmp_path / "x", map_location={"cpu": "cuda:0"})
