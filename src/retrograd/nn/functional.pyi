# Made from the registry of operators by tools/stubs.py: change those, then run `python tools/stubs.py`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd.core.user import Tensor as Tensor

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

def binary_cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean') -> Tensor:
    """-(target log x + (1 - target) log(1 - x)) times weight, of probabilities x, logarithms at least -100."""

def binary_cross_entropy_with_logits(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean', pos_weight: _Operand | None = None) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow; pos_weight weighs the positive part."""

def cosine_similarity(a: _Operand, b: _Operand, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """sum(a * b) / (norm(a) * norm(b)) along dim, each norm at least eps; a and b broadcast."""

def cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean', label_smoothing: _float = 0.0) -> Tensor:
    """-sum(p * log softmax(x)) over the classes: x any numbers, p the wanted probabilities."""

def dropout(x: _Operand, p: _float = 0.5, training: _bool = True) -> Tensor:
    """Each element 0 with probability p, else divided by 1 - p; x itself when not training."""

def embedding(ids: _Operand, weight: _Operand, padding_idx: _int | None = None) -> Tensor:
    """The rows of weight (rows, size) that the integers `ids` name: (*ids.shape, size)."""

def gelu(x: _Operand, *, approximate: _str = 'none') -> Tensor:
    """x times the normal distribution function: exact, or with approximate="tanh" by that formula."""

def huber_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', delta: _float = 1.0) -> Tensor:
    """With d = abs(x - target): d^2 / 2 where d < delta, delta * (d - delta / 2) elsewhere."""

def kl_div(x: _Operand, target: _Operand, reduction: _str = 'mean', log_target: _bool = False) -> Tensor:
    """target * (log(target) - x), 0 where target is 0: x holds logarithms of probabilities."""

def l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean') -> Tensor:
    """abs(x - target), averaged, added up or as it is."""

def layer_norm(x: _Operand, normalized_shape: _Ints, weight: _Operand | None = None, bias: _Operand | None = None, eps: _float = 1e-05) -> Tensor:
    """x with mean 0 and variance 1 over its last dimensions, `normalized_shape`; times weight, plus bias."""

def leaky_relu(x: _Operand, negative_slope: _Number = 0.01) -> Tensor:
    """x where positive, negative_slope * x elsewhere."""

def linear(x: _Operand, weight: _Operand, bias: _Operand | None = None) -> Tensor:
    """x @ weight.T + bias: x (..., in), weight (out, in), bias (out,) to (..., out), as one matrix product."""

def log_softmax(x: _Operand, dim: _int) -> Tensor:
    """log(softmax(x)) along dim, exact where the softmax is small."""

def mse_loss(x: _Operand, target: _Operand, reduction: _str = 'mean') -> Tensor:
    """(x - target)^2, averaged, added up or as it is."""

def nll_loss(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean') -> Tensor:
    """-x at the target class, times that class's weight: x holds logarithms of probabilities."""

def normalize(x: _Operand, p: _Number = 2, dim: _int = 1, eps: _float = 1e-12) -> Tensor:
    """x divided by its p-norm along dim, or by eps where the norm is less."""

def one_hot(x: _Operand, num_classes: _int = -1) -> Tensor:
    """Integer classes as rows of zeros with a single one, in a new last dimension of int64."""

def relu(x: _Operand) -> Tensor:
    """max(x, 0); its derivative at 0 is 0."""

def scaled_dot_product_attention(q: _Operand, k: _Operand, v: _Operand, attn_mask: _Operand | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, *, scale: _float | None = None) -> Tensor:
    """softmax(scale * q k^T + mask) v: q (..., l, e), k (..., s, e), v (..., s, d) to (..., l, d)."""

def sigmoid(x: _Operand) -> Tensor:
    """1 / (1 + exp(-x))."""

def silu(x: _Operand) -> Tensor:
    """x * sigmoid(x), also called swish."""

def smooth_l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', beta: _float = 1.0) -> Tensor:
    """With d = abs(x - target): d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere."""

def softmax(x: _Operand, dim: _int) -> Tensor:
    """exp(x) / sum(exp(x)) along dim, shifted so that it cannot overflow."""

def softplus(x: _Operand) -> Tensor:
    """log(1 + exp(x)), without overflow."""

def tanh(x: _Operand) -> Tensor:
    """The hyperbolic tangent."""
