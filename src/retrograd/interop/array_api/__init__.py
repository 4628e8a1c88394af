"""The namespace of `Tensor.__array_namespace__()`: the Python array API standard, version 2024.12.

Names, signatures, dtypes and promotion are the standard's, also where PyTorch's differ; gradients flow as usual. The
remaining deviations are those of tensors themselves; docs/array_api.md lists them. The standard:
https://data-apis.org/array-api/2024.12
"""

import math

from retrograd.interop.array_api import fft, linalg
from retrograd.interop.array_api.creation import arange, asarray, eye, from_dlpack, full, linspace
from retrograd.interop.array_api.data_types import DTYPES, Info, astype, can_cast, finfo, iinfo, isdtype, result_type
from retrograd.interop.array_api.elementwise import FUNCTIONS
from retrograd.interop.array_api.generated import GENERATED
from retrograd.interop.array_api.linalg import vecdot
from retrograd.interop.array_api.manipulation import broadcast_shapes, concat, flip, reshape, roll, squeeze, stack, take
from retrograd.interop.array_api.reductions import (
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    isin,
    nonzero,
    prod,
    searchsorted,
    sum,
)  # fmt: skip

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

for _members in (DTYPES, FUNCTIONS, GENERATED[""]):
    globals().update(_members)


def __array_namespace_info__() -> Info:
    """Return the object that describes the namespace: dtypes, devices, capabilities."""
    return Info()


__all__ = [
    *DTYPES, *FUNCTIONS, *GENERATED[""],
    "__array_api_version__", "__array_namespace_info__", "e", "fft", "inf", "linalg", "nan", "newaxis", "pi",
    "arange", "asarray", "eye", "from_dlpack", "full", "linspace",
    "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type",
    "broadcast_shapes", "concat", "flip", "reshape", "roll", "squeeze", "stack", "take", "vecdot",
    "count_nonzero", "cumulative_prod", "cumulative_sum", "isin", "nonzero", "prod", "searchsorted", "sum",
]  # fmt: skip
