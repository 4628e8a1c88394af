# Made from the registry of operators by tools/stubs.py: change those, then run `make stubs`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd.core.tensor_class import Tensor as Tensor

class aminmax(NamedTuple):
    """The results of `aminmax`."""
    min: Tensor
    max: Tensor

class cummax(NamedTuple):
    """The results of `cummax`."""
    values: Tensor
    indices: Tensor

class cummin(NamedTuple):
    """The results of `cummin`."""
    values: Tensor
    indices: Tensor

class frexp(NamedTuple):
    """The results of `frexp`."""
    mantissa: Tensor
    exponent: Tensor

class geqrf(NamedTuple):
    """The results of `geqrf`."""
    a: Tensor
    tau: Tensor

class histogram(NamedTuple):
    """The results of `histogram`."""
    hist: Tensor
    bin_edges: Tensor

class histogramdd(NamedTuple):
    """The results of `histogramdd`."""
    hist: Tensor
    bin_edges: tuple[Tensor, ...]

class kthvalue(NamedTuple):
    """The results of `kthvalue`."""
    values: Tensor
    indices: Tensor

class linalg_cholesky_ex(NamedTuple):
    """The results of `linalg_cholesky_ex`."""
    L: Tensor
    info: Tensor

class linalg_eig(NamedTuple):
    """The results of `linalg_eig`."""
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_eigh(NamedTuple):
    """The results of `linalg_eigh`."""
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_inv_ex(NamedTuple):
    """The results of `linalg_inv_ex`."""
    inverse: Tensor
    info: Tensor

class linalg_ldl_factor(NamedTuple):
    """The results of `linalg_ldl_factor`."""
    LD: Tensor
    pivots: Tensor

class linalg_ldl_factor_ex(NamedTuple):
    """The results of `linalg_ldl_factor_ex`."""
    LD: Tensor
    pivots: Tensor
    info: Tensor

class linalg_lstsq(NamedTuple):
    """The results of `linalg_lstsq`."""
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

class linalg_lu(NamedTuple):
    """The results of `linalg_lu`."""
    P: Tensor
    L: Tensor
    U: Tensor

class linalg_lu_factor(NamedTuple):
    """The results of `linalg_lu_factor`."""
    LU: Tensor
    pivots: Tensor

class linalg_lu_factor_ex(NamedTuple):
    """The results of `linalg_lu_factor_ex`."""
    LU: Tensor
    pivots: Tensor
    info: Tensor

class linalg_qr(NamedTuple):
    """The results of `linalg_qr`."""
    Q: Tensor
    R: Tensor

class linalg_slogdet(NamedTuple):
    """The results of `linalg_slogdet`."""
    sign: Tensor
    logabsdet: Tensor

class linalg_solve_ex(NamedTuple):
    """The results of `linalg_solve_ex`."""
    result: Tensor
    info: Tensor

class linalg_svd(NamedTuple):
    """The results of `linalg_svd`."""
    U: Tensor
    S: Tensor
    Vh: Tensor

class lu_unpack(NamedTuple):
    """The results of `lu_unpack`."""
    P: Tensor
    L: Tensor
    U: Tensor

class max(NamedTuple):
    """The results of `max`."""
    values: Tensor
    indices: Tensor

class median(NamedTuple):
    """The results of `median`."""
    values: Tensor
    indices: Tensor

class min(NamedTuple):
    """The results of `min`."""
    values: Tensor
    indices: Tensor

class mode(NamedTuple):
    """The results of `mode`."""
    values: Tensor
    indices: Tensor

class nanmedian(NamedTuple):
    """The results of `nanmedian`."""
    values: Tensor
    indices: Tensor

class qr(NamedTuple):
    """The results of `qr`."""
    Q: Tensor
    R: Tensor

class slogdet(NamedTuple):
    """The results of `linalg_slogdet`."""
    sign: Tensor
    logabsdet: Tensor

class sort(NamedTuple):
    """The results of `sort`."""
    values: Tensor
    indices: Tensor

class special_sici(NamedTuple):
    """The results of `special_sici`."""
    si: Tensor
    ci: Tensor

class svd(NamedTuple):
    """The results of `svd`."""
    U: Tensor
    S: Tensor
    V: Tensor

class topk(NamedTuple):
    """The results of `topk`."""
    values: Tensor
    indices: Tensor

class triangular_solve(NamedTuple):
    """The results of `triangular_solve`."""
    solution: Tensor
    cloned_coefficient: Tensor
