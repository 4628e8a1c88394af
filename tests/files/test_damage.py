"""Damaged files: every loader refuses them with one kind of error that names the file, in little memory."""

import os
import random

import pytest

import retrograd as rg
from retrograd.interop import pytorch

from .damage import LOADERS, STATE, Trial, damaged, mutated, text


@pytest.mark.parametrize("name", LOADERS)
def test_a_damaged_file_is_refused_by_name_or_loads(name, tmp_path):
    trial = Trial(name, tmp_path)
    ends = [trial.run(seed) for seed in range(8 if name == "demo" or "large" in name else 25)]
    assert "refused" in ends


def test_a_trial_finds_what_a_loader_must_not_do(tmp_path, monkeypatch):
    def wrong(instead):
        with monkeypatch.context() as patched:
            trial = Trial("rg.load", tmp_path)
            patched.setitem(LOADERS, "rg.load", LOADERS["rg.load"]._replace(load=instead))
            trial.loader = LOADERS["rg.load"]
            for seed in range(3):
                trial.run(seed)

    def raises(error):
        raise error

    path = tmp_path / "a.pt"
    for instead, message in (
        (lambda _: raises(EOFError(str(path))), "EOFError"),
        (lambda _: raises(ValueError("damaged")), "does not name the file"),
        (lambda _: raises(ValueError(f"{path} {'x' * 3000}")), "characters"),
        (lambda _: bytes(2**26) and "", "bytes for a file"),
        (lambda _: "something else", "loads something else"),
    ):
        with pytest.raises(AssertionError, match=message):
            wrong(instead)


def test_faults_are_many_and_the_same_for_a_seed():
    data = bytes(range(256)) * 4
    made = [damaged(data, random.Random(seed)) for seed in range(200)]
    assert len({*made}) > 150
    assert made[7] == damaged(data, random.Random(7))
    document = {"a": [1, {"b": None}], "c": "x"}
    assert sum(mutated(document, random.Random(seed)) != document for seed in range(100)) > 80


@pytest.mark.parametrize("mmap", [False, True])
def test_an_entry_that_asks_for_more_than_the_file_has_is_refused(tmp_path, mmap):
    path = tmp_path / "a.pt"
    rg.save({"x": rg.ones(100)}, path)
    whole = path.read_bytes()
    at = whole.rfind(b"archive/data/0") - 46
    assert whole[at:].startswith(b"PK\1\2")
    for value in (b"\xf0\xff\xff\x7f", b"\0\0\0\x10"):
        for fields in ((20,), (24,), (20, 24)):
            made = bytearray(whole)
            for field in fields:
                made[at + field : at + field + 4] = value
            path.write_bytes(made)
            with pytest.raises(ValueError, match=r"a\.pt.* damaged"):
                rg.load(path, mmap=mmap)


def test_a_pipe_is_not_waited_for(tmp_path):
    for name in ("a.pt", "a.safetensors"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(ValueError, match=f"{name} is no file"):
            rg.load(tmp_path / name)


def test_errors_of_the_disk_stay_what_they_are(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    rg.save(STATE, path)
    assert text(rg.load(path)) == text(rg.load(path, mmap=True))
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        rg.load(tmp_path)

    def broken(data, allowed, persistent, restore):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(pytorch, "read", broken)
    with pytest.raises(OSError, match=r"Input/output error.*a\.pt"):
        rg.load(path)
