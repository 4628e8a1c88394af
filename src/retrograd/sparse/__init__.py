"""Sparse tensors: values at the positions of a pattern, zeros elsewhere; PyTorch's `torch.sparse`."""

from retrograd.sparse import lookup as lookup
from retrograd.sparse import methods as methods
from retrograd.sparse import rules as rules
from retrograd.sparse.construct import from_scipy, spdiags, to_scipy
from retrograd.sparse.functions import addmm, log_softmax, mm, sampled_addmm, softmax, sum
from retrograd.sparse.invariants import check_sparse_tensor_invariants
from retrograd.sparse.legacy import (
    BFloat16Tensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)

__all__ = [
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "from_scipy",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
    "to_scipy",
]
