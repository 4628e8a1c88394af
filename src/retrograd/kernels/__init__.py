"""Kernels for what NumPy makes in many passes, in C++ where that was compiled, else their twins in NumPy.

They take arrays of float32 or float64, all of one dtype.
"""

import os
from contextlib import suppress
from importlib import import_module

from retrograd.kernels import memory, twins

chosen = twins
if os.environ.get("RETROGRAD_PURE", "") in ("", "0"):
    with suppress(ImportError):  # there was no C++ compiler
        chosen = import_module("retrograd.kernels.native")

compiled = chosen is not twins
memory.keep(memory.asked_for())
erf, gelu, gelu_slope = chosen.erf, chosen.gelu, chosen.gelu_slope
standardize_rows, mix_rows, affine_rows = chosen.standardize_rows, chosen.mix_rows, chosen.affine_rows

__all__ = ["affine_rows", "compiled", "erf", "gelu", "gelu_slope", "mix_rows", "standardize_rows"]
