"""PyTorch's aliases of dtypes, in a module of their own because they shadow Python's builtins."""

from retrograd.core.aval import SymbolicSize
from retrograd.core.dtype import ALIASES, DType

dtype = DType
bool = ALIASES["bool"]
half, float, double = ALIASES["half"], ALIASES["float"], ALIASES["double"]
short, int, long = ALIASES["short"], ALIASES["int"], ALIASES["long"]
cfloat, cdouble = ALIASES["cfloat"], ALIASES["cdouble"]
SymInt = SymbolicSize
