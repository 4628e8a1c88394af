# Made from the registry of operators by tools/stubs.py: change those, then run `make stubs`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd.core.tensor_class import Tensor as Tensor

class adaptive_max_pool1d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class adaptive_max_pool2d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class adaptive_max_pool3d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class aminmax(NamedTuple):
    """The results of `aminmax`."""
    min: Tensor
    max: Tensor

class cummax(NamedTuple):
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class cummin(NamedTuple):
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class frexp(NamedTuple):
    """The two results of `frexp`."""
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
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class linalg_cholesky_ex(NamedTuple):
    """The results of `linalg.cholesky_ex`."""
    L: Tensor
    info: Tensor

class linalg_eig(NamedTuple):
    """The results of `linalg.eig`."""
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_eigh(NamedTuple):
    """The results of `linalg.eigh`."""
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_inv_ex(NamedTuple):
    """The results of `linalg.inv_ex`."""
    inverse: Tensor
    info: Tensor

class linalg_ldl_factor(NamedTuple):
    """The results of `linalg.ldl_factor`."""
    LD: Tensor
    pivots: Tensor

class linalg_ldl_factor_ex(NamedTuple):
    """The results of `linalg.ldl_factor_ex`."""
    LD: Tensor
    pivots: Tensor
    info: Tensor

class linalg_lstsq(NamedTuple):
    """The results of `linalg.lstsq`."""
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

class linalg_lu(NamedTuple):
    """The results of `linalg.lu`."""
    P: Tensor
    L: Tensor
    U: Tensor

class linalg_lu_factor(NamedTuple):
    """The results of `linalg.lu_factor`."""
    LU: Tensor
    pivots: Tensor

class linalg_lu_factor_ex(NamedTuple):
    """The results of `linalg.lu_factor_ex`."""
    LU: Tensor
    pivots: Tensor
    info: Tensor

class linalg_qr(NamedTuple):
    """The results of `linalg.qr`."""
    Q: Tensor
    R: Tensor

class linalg_slogdet(NamedTuple):
    """The results of `linalg.slogdet`."""
    sign: Tensor
    logabsdet: Tensor

class linalg_solve_ex(NamedTuple):
    """The results of `linalg.solve_ex`."""
    result: Tensor
    info: Tensor

class linalg_svd(NamedTuple):
    """The results of `linalg.svd`."""
    U: Tensor
    S: Tensor
    Vh: Tensor

class lobpcg(NamedTuple):
    """The results of `lobpcg`."""
    E: Tensor
    X: Tensor

class lu_unpack(NamedTuple):
    """The results of `linalg.lu`."""
    P: Tensor
    L: Tensor
    U: Tensor

class max(NamedTuple):
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class max_pool1d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class max_pool1d_with_indices(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class max_pool2d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class max_pool3d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class median(NamedTuple):
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class min(NamedTuple):
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class mode(NamedTuple):
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class nanmedian(NamedTuple):
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class nn_functional_adaptive_max_pool1d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_adaptive_max_pool1d_with_indices(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_adaptive_max_pool2d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_adaptive_max_pool2d_with_indices(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_adaptive_max_pool3d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_adaptive_max_pool3d_with_indices(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_fractional_max_pool2d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_fractional_max_pool2d_with_indices(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_fractional_max_pool3d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_fractional_max_pool3d_with_indices(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_max_pool1d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_max_pool1d_with_indices(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_max_pool2d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_max_pool2d_with_indices(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_max_pool3d(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class nn_functional_max_pool3d_with_indices(NamedTuple):
    """The maxima, and their indices in the flattened image."""
    values: Tensor
    indices: Tensor

class pca_lowrank(NamedTuple):
    """The results of `svd_lowrank` and `pca_lowrank`."""
    U: Tensor
    S: Tensor
    V: Tensor

class qr(NamedTuple):
    """The results of `linalg.qr`."""
    Q: Tensor
    R: Tensor

class slogdet(NamedTuple):
    """The results of `linalg.slogdet`."""
    sign: Tensor
    logabsdet: Tensor

class sort(NamedTuple):
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class special_sici(NamedTuple):
    """The results of `sici`."""
    si: Tensor
    ci: Tensor

class std_mean(NamedTuple):
    """The results of `std_mean`."""
    std: Tensor
    mean: Tensor

class svd(NamedTuple):
    """The results of `svd`."""
    U: Tensor
    S: Tensor
    V: Tensor

class svd_lowrank(NamedTuple):
    """The results of `svd_lowrank` and `pca_lowrank`."""
    U: Tensor
    S: Tensor
    V: Tensor

class topk(NamedTuple):
    """Values and indices: the results of `max` along a dimension, `sort`, `topk` and others."""
    values: Tensor
    indices: Tensor

class triangular_solve(NamedTuple):
    """The results of `triangular_solve`."""
    solution: Tensor
    cloned_coefficient: Tensor

class var_mean(NamedTuple):
    """The results of `var_mean`."""
    var: Tensor
    mean: Tensor
