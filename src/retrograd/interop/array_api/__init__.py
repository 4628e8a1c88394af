"""The namespace of `Tensor.__array_namespace__()`: the Python array API standard, version 2024.12.

Names, signatures, dtypes and promotion are the standard's, also where PyTorch's differ; gradients flow as usual. The
remaining deviations are those of tensors themselves; docs/array_api.md lists them. The standard:
https://data-apis.org/array-api/2024.12
"""

import math

from retrograd.interop.array_api import fft, linalg
from retrograd.interop.array_api.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)  # fmt: skip
from retrograd.interop.array_api.data_types import DTYPES, Info, astype, can_cast, finfo, iinfo, isdtype, result_type
from retrograd.interop.array_api.elementwise import FUNCTIONS
from retrograd.interop.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from retrograd.interop.array_api.manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
)  # fmt: skip
from retrograd.interop.array_api.reductions import (
    all,
    any,
    argmax,
    argmin,
    argsort,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    isin,
    max,
    mean,
    min,
    nonzero,
    prod,
    searchsorted,
    sort,
    std,
    sum,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    var,
    where,
)  # fmt: skip

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

globals().update(DTYPES)
globals().update(FUNCTIONS)


def __array_namespace_info__() -> Info:
    """Return the object that describes the namespace: dtypes, devices, capabilities."""
    return Info()


__all__ = [
    *DTYPES, *FUNCTIONS,
    "__array_api_version__", "__array_namespace_info__", "e", "fft", "inf", "linalg", "nan", "newaxis", "pi",
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
    "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type",
    "matmul", "matrix_transpose", "tensordot", "vecdot",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis",
    "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "take", "take_along_axis", "tile", "unstack",
    "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "isin",
    "max", "mean", "min", "nonzero", "prod", "searchsorted", "sort", "std", "sum", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "var", "where",
]  # fmt: skip
