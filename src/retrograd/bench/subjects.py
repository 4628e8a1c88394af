"""The measured libraries: their modules, versions, threads, and conversion of results to NumPy arrays."""

import importlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import metadata
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Subject:
    """A library, and the environment of its process."""

    package: str  # the name of its distribution; "" for none
    environment: dict[str, str] = field(default_factory=dict)


KNOWN = {
    "retrograd": Subject("retrograd"),
    "PyTorch": Subject("torch"),
    "JAX jit": Subject("jax", {"JAX_PLATFORMS": "cpu"}),
    "JAX eager": Subject("jax", {"JAX_PLATFORMS": "cpu"}),
    "HIPS autograd": Subject("autograd"),
    "tinygrad": Subject("tinygrad", {"DEV": "CPU"}),
    "MLX": Subject("mlx"),
    "NumPy": Subject("numpy"),
}
OURS = "retrograd"
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def subjects(*names: str) -> dict[str, Subject]:
    """Return known subjects by name; text after a comma distinguishes ways of using one.

    >>> list(subjects("retrograd", "PyTorch, padded"))
    ['retrograd', 'PyTorch, padded']
    """
    return {name: KNOWN[name.partition(",")[0]] for name in names}


def thread_limits(threads: int) -> dict[str, str]:
    """Return the environment of a process limited to this many threads."""
    return dict.fromkeys(LIMITS, str(threads))


def library(name: str, threads: int) -> ModuleType:
    """Return a subject's module, limited to this many threads; ImportError if it is not installed.

    A library without such a setting is restricted to that many processors, from which it derives its threads.
    """
    package = KNOWN[name.partition(",")[0]].package
    if package not in ("retrograd", "torch") and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    module = importlib.import_module("mlx.core" if package == "mlx" else package)
    if package in ("retrograd", "torch"):
        module.set_num_threads(threads)
    return module


def converter(module: ModuleType) -> Callable[[Any], Any]:
    """Return the function from a library's arrays to NumPy's."""
    if hasattr(module, "from_numpy"):  # retrograd and PyTorch
        return lambda x: x.detach().numpy()
    if module.__name__ == "tinygrad":
        return lambda x: x.numpy()
    return importlib.import_module("numpy").asarray


def versions(names: Iterable[str]) -> dict[str, str]:
    """Return versions of installed packages, by package.

    >>> list(versions(["retrograd", "no-such-package"]))
    ['retrograd']
    """
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
