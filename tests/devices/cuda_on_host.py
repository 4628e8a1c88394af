"""CuPy's RawModule for tests: CUDA C++ compiled for the CPU by g++, so that the kernels' own text runs."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

SHIM = Path(__file__).with_name("cuda_on_host.hpp")
BUILT = Path(__file__).parents[2] / "build" / "cuda_on_host"
COMPILER = shutil.which("g++")
# The names of C++ types that an argument of a dtype may have; int64 is `long long` on NumPy's side too.
CODES = {"l": "q", "L": "Q"}


def build(code, names):
    """Return the shared library of some CUDA C++ with a function for each kernel; it is compiled once."""
    launchers = "\n".join(
        f'extern "C" int run_{i}(unsigned blocks, unsigned threads, void** args) '
        f"{{ return Launch<&{name}>::run(blocks, threads, args); }}\n"
        f'extern "C" void codes_{i}(char* to) {{ write_codes(&{name}, to); }}'
        for i, name in enumerate(names)
    )
    text = "\n".join((SHIM.read_text(), code, launchers))
    path = BUILT / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.so"
    if not path.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILT) as folder:
            source, made = Path(folder, "kernels.cpp"), Path(folder, "kernels.so")
            source.write_text(text)
            options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-w", "-ffp-contract=off"]
            subprocess.run([COMPILER, *options, str(source), "-o", str(made)], check=True, capture_output=True)
            os.replace(made, path)
    return ctypes.CDLL(str(path))


class RawKernel:
    """A kernel, called with a grid, a block and arguments, which must have exactly the types of its parameters."""

    def __init__(self, library, number, name, ndarray):
        self.name, self._ndarray = name, ndarray
        self._run = getattr(library, f"run_{number}")
        text = ctypes.create_string_buffer(256)
        getattr(library, f"codes_{number}")(text)
        self.codes = text.value.decode()

    def __call__(self, grid, block, args, *, shared_mem=0):
        if len(grid) != 1 or len(block) != 1 or not 1 <= block[0] <= 1024 or not 1 <= grid[0] < 2**31:
            raise ValueError(f"{self.name}: no launch of grid {grid} and block {block}")
        given = "".join(map(self._code, args))
        if given != self.codes:
            raise TypeError(f"{self.name}: arguments of the types {given} for parameters {self.codes}")
        values = [
            np.array(a._host.ctypes.data, np.uintp) if isinstance(a, self._ndarray) else np.asarray(a) for a in args
        ]
        pointers = (ctypes.c_void_p * len(values))(*[v.ctypes.data for v in values])
        if self._run(ctypes.c_uint(grid[0]), ctypes.c_uint(block[0]), pointers):
            raise RuntimeError(f"{self.name}: __syncthreads after some threads of the block have returned")

    def _code(self, a):
        if isinstance(a, self._ndarray):
            if not a.flags.c_contiguous:
                raise ValueError(f"{self.name}: an array that is not contiguous")
            return "*" + CODES.get(a.dtype.char, a.dtype.char)
        if not isinstance(a, np.generic):
            raise TypeError(f"{self.name}: a {type(a).__name__} as an argument, whose size depends on CuPy")
        return CODES.get(a.dtype.char, a.dtype.char)


class RawModule:
    """Kernels by their names: those of templates are listed in `name_expressions`."""

    ndarray = None  # the type of the library's arrays, in subclasses

    def __init__(self, code=None, *, options=(), backend="nvrtc", name_expressions=None):
        self._names = list(name_expressions or ())
        self._library = build(code, self._names)

    def get_function(self, name):
        return RawKernel(self._library, self._names.index(name), name, self.ndarray)
