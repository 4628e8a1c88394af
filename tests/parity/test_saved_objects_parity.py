"""PyTorch and retrograd read each other's files with NumPy arrays, scalars, paths and objects of allowed classes."""

import argparse
import io
import pathlib

import numpy as np
import pytest
import torch

import retrograd as rg

ARRAYS = {
    "f": np.arange(6.0).reshape(2, 3), "t": np.arange(6, dtype=np.float32).reshape(2, 3).T, "i": np.arange(3),
    "b": np.array([True]), "c": np.array([1 + 2j]), "s": np.array(["ab", "c"]), "z": np.zeros((0, 2)), "0": np.array(4),
}  # fmt: skip
OTHERS = {"path": pathlib.Path("/a/b"), "args": argparse.Namespace(lr=0.1, sizes=[1, 2])}


def check(found):
    for key, array in ARRAYS.items():
        np.testing.assert_array_equal(found[key], array, strict=True)
    assert {key: found[key] for key in OTHERS} == OTHERS


def test_devices_cross_both_ways(tmp_path):
    names = ["cpu", "cuda:1", "meta"]
    rg.save([rg.device(name) for name in names], tmp_path / "x")
    assert torch.load(tmp_path / "x") == [torch.device(name) for name in names]
    torch.save([torch.device(name) for name in names], tmp_path / "x")
    assert rg.load(tmp_path / "x") == [rg.device(name) for name in names]


def test_a_whole_module_is_refused_with_the_way_out(tmp_path):
    torch.save(torch.nn.Linear(2, 1), tmp_path / "x")
    with pytest.raises(
        ValueError, match=r"asks for torch.nn.modules.linear.Linear, .*; in PyTorch, save the state_dict"
    ):
        rg.load(tmp_path / "x")


def test_pytorch_reads_our_files(tmp_path):
    with rg.serialization.safe_globals([argparse.Namespace]):
        rg.save({**ARRAYS, **OTHERS}, tmp_path / "x")
    check(torch.load(tmp_path / "x", weights_only=False))


def test_we_read_pytorchs_files(tmp_path):
    torch.save({**ARRAYS, **OTHERS, "scalar": np.float32(1.5), "count": np.int64(3)}, tmp_path / "x")
    with rg.serialization.safe_globals([argparse.Namespace]):
        found = rg.load(tmp_path / "x")
    check(found)
    assert (found["scalar"], found["count"]) == (np.float32(1.5), np.int64(3))
    assert found["scalar"].dtype == np.float32
    with pytest.raises(ValueError, match=r"asks for argparse\.Namespace"):
        rg.load(tmp_path / "x")


@pytest.mark.parametrize(
    "map_location",
    [{}, {"cuda:0": "cuda:1"}, {"cuda:0": "cpu"}, {"cpu": "meta"}, {"cpu": "cpu", "cuda": "meta"}, "meta", "cpu", 3],
    ids=str,
)
def test_a_location_leads_to_the_same_device(map_location):
    found = []
    for library in (torch, rg):
        file = io.BytesIO()
        library.save({"w": library.ones(2)}, file)
        file.seek(0)
        try:
            found.append(str(library.load(file, map_location=map_location)["w"].device))
        except TypeError:
            found.append("TypeError")
    assert found[0] == found[1]
