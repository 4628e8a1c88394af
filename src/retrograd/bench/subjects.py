"""The measured libraries: their modules, versions, threads, and conversion of results to NumPy arrays."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module, metadata
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
CPU_LEVELS = ("avx512", "avx2", "sse")  # of vectors, as `RETROGRAD_CPU` names them
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


def cpu_limits(level: str) -> dict[str, str]:
    """Return the environment that limits NumPy and all libraries to the instructions of "avx512", "avx2" or "sse".

    NumPy's BLAS, PyTorch's kernels, oneDNN, MKL and XLA have a variable each.

    >>> cpu_limits("avx2")["OPENBLAS_CORETYPE"], cpu_limits("avx512")
    ('Haswell', {'RETROGRAD_CPU': 'avx512'})
    """
    if level not in CPU_LEVELS:
        raise ValueError(f"a level must be one of {', '.join(CPU_LEVELS)}, got {level!r}")
    if level == "avx512":  # what these libraries use by themselves, where the processor has it
        return {"RETROGRAD_CPU": level}
    names = ("AVX512", "X86_V4", *(() if level == "avx2" else ("AVX", "FMA", "F16C", "X86_V3")))
    features = import_module("numpy._core._multiarray_umath").__cpu_dispatch__
    blas, torch, onednn, mkl, xla = _VARIABLES[level]
    return {
        "RETROGRAD_CPU": level,
        "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in features if name.startswith(names)),
        "OPENBLAS_CORETYPE": blas,
        "ATEN_CPU_CAPABILITY": torch,
        "ONEDNN_MAX_CPU_ISA": onednn,
        "MKL_ENABLE_INSTRUCTIONS": mkl,
        "XLA_FLAGS": f"--xla_cpu_max_isa={xla}",
    }


_VARIABLES = {  # of OpenBLAS, PyTorch, oneDNN, MKL and XLA
    "avx2": ("Haswell", "avx2", "AVX2", "AVX2", "AVX2"),
    "sse": ("Nehalem", "default", "SSE41", "SSE4_2", "SSE4_2"),
}


def library(name: str, threads: int) -> ModuleType:
    """Return a subject's module, limited to this many threads; ImportError if it is not installed.

    A library without such a setting is restricted to that many processors, from which it derives its threads.
    """
    package = KNOWN[name.partition(",")[0]].package
    if package not in ("retrograd", "torch") and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    module = import_module("mlx.core" if package == "mlx" else package)
    if package in ("retrograd", "torch"):
        module.set_num_threads(threads)
    return module


def converter(module: ModuleType) -> Callable[[Any], Any]:
    """Return the function from a library's arrays to NumPy's."""
    if hasattr(module, "from_numpy"):  # retrograd and PyTorch
        return lambda x: x.detach().numpy()
    if module.__name__ == "tinygrad":
        return lambda x: x.numpy()
    return import_module("numpy").asarray


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
