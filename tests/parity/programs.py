"""Run programs of a library, `rg` or `torch`: results and kinds of errors agree, except for listed deviations."""

import traceback
import warnings

import numpy as np
import pytest
import torch

import retrograd as rg


def cases(tables):
    """Return the programs of all tables by "table: name"."""
    return {f"{table}: {name}": program for table, programs in tables.items() for name, program in programs.items()}


def assert_agreement(program, deviation=None):
    """Assert that both libraries agree; or that ours deviates as listed: a kind of error or "answers", and why."""
    mine, peer = ending(program, rg), ending(program, torch)
    if deviation is None:
        assert_same(mine, peer)
        return
    expected, _ = deviation
    found = [kind.__name__ for kind in mine] if isinstance(mine, frozenset) else ["answers"]
    assert expected in found, f"ours: {mine}, expected: {expected}"
    with pytest.raises(AssertionError):
        assert_same(mine, peer)


def ending(program, m):
    """Return the result of a program as data, or the classes of its error."""
    with warnings.catch_warnings():
        if m is torch:
            warnings.simplefilter("ignore")
        try:
            return data(program(m))
        except Exception as error:
            return ErrorClasses(error)


class ErrorClasses(frozenset):
    """The built-in classes of an error that are below Exception: ours may have several.

    Its text is the error's, with those that caused it, so that a failed comparison shows why a library refused.
    """

    def __new__(cls, error):
        classes = type(error).__mro__
        return super().__new__(cls, (c for c in classes if c.__module__ == "builtins" and c not in Exception.__mro__))

    def __init__(self, error):
        self.text = "".join(traceback.format_exception(error, limit=-3))

    def __repr__(self):
        return f"{sorted(c.__name__ for c in self)}: {self.text}"


def state_after(program, m, plain):
    """Return x, y and z after a program, given as text, and the strides of x, or that it is refused."""
    names = {"m": m}
    try:
        exec(program, names)
    except (IndexError, RuntimeError, TypeError, ValueError):
        return "refused"
    found = [names.get(name) for name in "xyz"]
    return [plain(v)[1].tolist() if hasattr(v, "dtype") else v for v in found], names["x"].stride()


def data(value):
    """Return tensors as (dtype, array), containers with their type, in order."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch."), value.numpy(force=True)
    if isinstance(value, rg.Tensor):
        return value.dtype.name, value.detach().numpy()
    if isinstance(value, dict):
        return dict, [(k, data(v)) for k, v in value.items()]
    if isinstance(value, (tuple, list)):
        return tuple if isinstance(value, tuple) else list, [data(v) for v in value]
    return value


def assert_same(mine, peer):
    """Assert that two outcomes agree: containers, shapes and values, or that ours is caught as PyTorch's error is."""
    if isinstance(mine, frozenset) and isinstance(peer, frozenset):
        assert mine >= peer, f"ours: {mine}, theirs: {peer}"
    elif isinstance(peer, (tuple, list)):
        assert type(mine) is type(peer), f"ours: {mine}, theirs: {peer}"
        assert len(mine) == len(peer), f"ours: {mine}, theirs: {peer}"
        for a, b in zip(mine, peer, strict=True):
            assert_same(a, b)
    elif isinstance(peer, np.ndarray):
        assert isinstance(mine, np.ndarray), f"ours: {mine}, theirs: {peer}"
        assert mine.shape == peer.shape, f"ours: {mine.shape}, theirs: {peer.shape}"
        np.testing.assert_allclose(mine, peer, rtol=1e-5 if peer.dtype.itemsize < 8 else 1e-9, atol=1e-7)
    else:
        assert mine == peer, f"ours: {mine!r}, theirs: {peer!r}"
