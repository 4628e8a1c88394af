"""Parity with PyTorch: the same calls give the same results in both.  Run by `make parity`."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import retrograd as rg

torch.set_num_threads(1)
for accelerator in (torch.cuda, torch.xpu):
    # Each seed would be queued for an absent device with the text of its stack: a fifth of the time of small samples.
    if not accelerator.is_available():
        accelerator.random._lazy_call = lambda callable, **kwargs: None

collect_ignore = ["downstream"]  # programs for processes of their own
MEMORY = 3 << 30  # of a test process, in bytes; close to its limit, PyTorch's errors are called differences


@pytest.fixture(scope="module", autouse=True)
def bounded_memory():
    """Drop what JAX has compiled for a module's tests, and fail if what tests have left takes too much memory."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    status = Path("/proc/self/status")
    if status.exists():  # on Linux
        held = int(re.search(r"VmData:\s+(\d+) kB", status.read_text())[1]) << 10
        assert held < MEMORY, f"the test process holds {held >> 20} MiB: something keeps the operands of its tests"


def to_torch(value):
    """Return a retrograd value as PyTorch's: tensors (copied), dtypes, and containers of them."""
    if isinstance(value, rg.Tensor):
        return torch.from_numpy(np.array(value.detach().numpy()))
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    if isinstance(value, (tuple, list)):
        return type(value)(to_torch(v) for v in value)
    return value


def plain(value):
    """Return a result of either library as comparable data: (dtype, array) of a tensor, containers as tuples."""
    if isinstance(value, torch.Tensor):
        array = value.numpy(force=True)
        return str(array.dtype), array
    if isinstance(value, rg.Tensor):
        return str(value.dtype), value.detach().numpy()
    if isinstance(value, (tuple, list)):
        return tuple(plain(v) for v in value)
    return value


@pytest.fixture(name="to_torch")
def to_torch_fixture():
    """Return the function `to_torch`."""
    return to_torch


@pytest.fixture(name="plain")
def plain_fixture():
    """Return the function `plain`."""
    return plain
