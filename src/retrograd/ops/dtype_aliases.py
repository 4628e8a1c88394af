"""PyTorch's aliases of dtypes, in a module of their own because they shadow Python's builtins."""

from retrograd.core.aval import SymbolicSize
from retrograd.core.dtype import DType, bool_, complex64, complex128, float16, float32, float64, int16, int32, int64

dtype = DType
bool = bool_
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128
SymInt = SymbolicSize
