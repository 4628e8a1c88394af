"""Helpers of distributions: broadcasting of parameters, probabilities and logits, triangles of matrices."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.autograd import enable_grad
from retrograd.backend.type_info import finfo
from retrograd.core import Tensor
from retrograd.core.dtype import get_default_dtype, is_floating
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.create import zeros
from retrograd.ops.matrices import tril_indices
from retrograd.ops.random import randn
from retrograd.ops.view import broadcast_tensors

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060  # Euler's and Mascheroni's


def broadcast_all(*values: Any) -> list[Tensor]:
    """Return tensors and numbers as tensors of one shape; numbers get the dtype of the first tensor.

    Raises ValueError for a value that is neither.

    >>> import retrograd as rg
    >>> from retrograd.distributions.utils import broadcast_all
    >>> broadcast_all(rg.zeros(2), 1.0)
    [tensor([0., 0.]), tensor([1., 1.])]
    """
    for value in values:
        if not isinstance(value, (Tensor, int, float)):
            raise ValueError(f"expected tensors and numbers as parameters, got {type(value).__name__}")
    dtype = next((value.dtype for value in values if isinstance(value, Tensor)), get_default_dtype())
    return list(broadcast_tensors(*(v if isinstance(v, Tensor) else as_tensor(v, dtype=dtype) for v in values)))


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities limited to the range in which their logarithms are finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logarithms of probabilities; if `is_binary`, their log-odds log(p / (1 - p))."""
    limited = clamp_probs(probs)
    return limited.log() - (-limited).log1p() if is_binary else limited.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the softmax over the last dimension; if `is_binary`, the sigmoid of log-odds."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


class lazy_property:
    """A property that is computed on first use, with gradients, and then is an attribute of the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped, self.__doc__ = wrapped, wrapped.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.name, value)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangles of matrices (..., n, n) as vectors, row by row; `diag` is the last diagonal in it."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return lower triangular matrices from vectors of their elements: the inverse of `tril_matrix_to_vec`."""
    n = round((-(1 + 2 * diag) + math.sqrt((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1))) / 2)
    rows, columns = tril_indices(n, n, diag)
    if len(rows) != vec.shape[-1]:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of"
            " a square D x D matrix."
        )
    flat = zeros((*vec.shape[:-1], n * n), dtype=vec.dtype)
    return flat.index_copy(-1, rows * n + columns, vec).unflatten(-1, (n, n))


def at_least_float(value: Tensor) -> Tensor:
    """Return a tensor of integers or booleans in the default dtype; others as they are."""
    return value if is_floating(value.dtype) else value.to(get_default_dtype())


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Return the sum over the last `dims` dimensions."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


def standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Return standard normal random values of the given shape and dtype."""
    return randn(shape, dtype=dtype, device=device)


_sum_rightmost, _standard_normal = sum_rightmost, standard_normal  # PyTorch's names, which libraries import
