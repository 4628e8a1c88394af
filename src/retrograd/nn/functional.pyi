# Made from the registry of operators by tools/stubs.py: change those, then run `make stubs`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd import return_types as return_types
from retrograd.core.tensor_class import Tensor as Tensor

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

from retrograd.ops.scaled_products import ScalingType as ScalingType

from retrograd.ops.scaled_products import SwizzleType as SwizzleType

def adaptive_avg_pool1d(x: _Operand, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that cover images with 1 spatial dimensions."""

def adaptive_avg_pool2d(x: _Operand, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that cover images with 2 spatial dimensions."""

def adaptive_avg_pool3d(x: _Operand, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that cover images with 3 spatial dimensions."""

@overload
def adaptive_max_pool1d(x: _Operand, output_size: Any, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(x: _Operand, output_size: Any, return_indices: Literal[False] = False) -> Tensor:
    """The largest element of each of `output_size` windows that cover images with 1 spatial dimensions."""

def adaptive_max_pool1d_with_indices(x: Tensor, output_size: Any, return_indices: _bool = False) -> tuple[Tensor, Tensor]:
    """Return `adaptive_max_pool1d` as a tuple (values, indices)."""

@overload
def adaptive_max_pool2d(x: _Operand, output_size: Any, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(x: _Operand, output_size: Any, return_indices: Literal[False] = False) -> Tensor:
    """The largest element of each of `output_size` windows that cover images with 2 spatial dimensions."""

def adaptive_max_pool2d_with_indices(x: Tensor, output_size: Any, return_indices: _bool = False) -> tuple[Tensor, Tensor]:
    """Return `adaptive_max_pool2d` as a tuple (values, indices)."""

@overload
def adaptive_max_pool3d(x: _Operand, output_size: Any, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(x: _Operand, output_size: Any, return_indices: Literal[False] = False) -> Tensor:
    """The largest element of each of `output_size` windows that cover images with 3 spatial dimensions."""

def adaptive_max_pool3d_with_indices(x: Tensor, output_size: Any, return_indices: _bool = False) -> tuple[Tensor, Tensor]:
    """Return `adaptive_max_pool3d` as a tuple (values, indices)."""

def affine_grid(theta: _Operand, size: _Ints, align_corners: _bool | None = None) -> Tensor:
    """Return the grid for `grid_sample` of an affine map: theta (n, d, d + 1) to (n, *out, d), size being (n, c, *out)."""

def alpha_dropout(x: _Operand, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> Tensor:
    """Set elements to the saturation value of `selu` with probability p, then rescale to keep mean 0 and variance 1."""

def avg_pool1d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean of each window of images (n, c, *sizes) or (c, *sizes) with 1 spatial dimensions."""

def avg_pool2d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None) -> Tensor:
    """The mean of each window of images (n, c, *sizes) or (c, *sizes) with 2 spatial dimensions."""

def avg_pool3d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None) -> Tensor:
    """The mean of each window of images (n, c, *sizes) or (c, *sizes) with 3 spatial dimensions."""

def batch_norm(x: _Operand, running_mean: _Operand | None, running_var: _Operand | None, weight: _Operand | None = None, bias: _Operand | None = None, training: _bool = False, momentum: _float = 0.1, eps: _float = 1e-05) -> Tensor:
    """Batch normalization: (x - mean) / sqrt(variance + eps) * weight + bias for each channel."""

def bilinear(input1: _Operand, input2: _Operand, weight: _Operand, bias: _Operand | None = None) -> Tensor:
    """input1^T weight[k] input2 + bias[k] for each k: (..., m), (..., n), (k, m, n), (k,) to (..., k)."""

def binary_cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean') -> Tensor:
    """Binary cross entropy of probabilities: -(target log x + (1 - target) log(1 - x)) times weight."""

def binary_cross_entropy_with_logits(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean', pos_weight: _Operand | None = None) -> Tensor:
    """Binary cross entropy of logits: that of sigmoid(x), without overflow; pos_weight scales the positive part."""

def celu(x: _Operand, alpha: _float = 1.0, inplace: _bool = False) -> Tensor:
    """Exponential linear unit with slope 1 at 0: x where positive, alpha * expm1(x / alpha) elsewhere; alpha is not 0."""

def celu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`celu`, written into the tensor; returns it."""

def channel_shuffle(x: _Operand, groups: _int) -> Tensor:
    """Interleave `groups` consecutive groups of channels (n, c, *sizes): the first of each, the second of each, ..."""

def conv1d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: Any = 0, dilation: _Ints = 1, groups: _int = 1) -> Tensor:
    """Convolution of images with 1 spatial dimensions: (n, c, *sizes) to (n, o, *size)."""

def conv2d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: Any = 0, dilation: _Ints = 1, groups: _int = 1) -> Tensor:
    """Convolution of images with 2 spatial dimensions: (n, c, *sizes) to (n, o, *size)."""

def conv3d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: Any = 0, dilation: _Ints = 1, groups: _int = 1) -> Tensor:
    """Convolution of images with 3 spatial dimensions: (n, c, *sizes) to (n, o, *size)."""

def conv_tbc(input: Any, weight: Any, bias: Any, pad: Any = 0) -> Tensor:
    """Return the convolution of (time, batch, channels in) with weights (kernel, channels in, channels out)."""

def conv_transpose1d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: _Ints = 0, output_padding: _Ints = 0, groups: _int = 1, dilation: _Ints = 1) -> Tensor:
    """Transposed convolution, the transpose of `conv1d`: (n, o, *sizes) to (n, c, *size)."""

def conv_transpose2d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: _Ints = 0, output_padding: _Ints = 0, groups: _int = 1, dilation: _Ints = 1) -> Tensor:
    """Transposed convolution, the transpose of `conv2d`: (n, o, *sizes) to (n, c, *size)."""

def conv_transpose3d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: _Ints = 0, output_padding: _Ints = 0, groups: _int = 1, dilation: _Ints = 1) -> Tensor:
    """Transposed convolution, the transpose of `conv3d`: (n, o, *sizes) to (n, c, *size)."""

def cosine_embedding_loss(input1: _Operand, input2: _Operand, target: _Operand, margin: _float = 0.0, reduction: _str = 'mean') -> Tensor:
    """1 - c where the target is 1, max(0, c - margin) where it is -1, with c the cosine similarity."""

def cosine_similarity(x1: _Operand, x2: _Operand, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """The cosine similarity sum(x1 * x2) / (norm(x1) * norm(x2)) along dim, each norm at least eps; x1, x2 broadcast."""

def cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean', label_smoothing: _float = 0.0) -> Tensor:
    """Cross entropy of logits x: -sum(p * log softmax(x)) over the classes, for target probabilities p."""

def ctc_loss(log_probs: _Operand, targets: _Operand, input_lengths: Any, target_lengths: Any, blank: _int = 0, reduction: _str = 'mean', zero_infinity: _bool = False) -> Tensor:
    """The CTC loss: -log of the probability of the target after repeated labels are merged and blanks dropped."""

def dropout(x: _Operand, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Zero each element with probability p and divide the others by 1 - p; x itself when not training."""

def dropout1d(x: _Operand, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Zero whole channels at random: `feature_dropout` of x (n, channels, l), or (channels, l)."""

def dropout2d(x: _Operand, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Zero whole channels at random: `feature_dropout` of x (n, channels, h, w); (n, channels, l) also, as in PyTorch."""

def dropout3d(x: _Operand, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Zero whole channels at random: `feature_dropout` of x (n, channels, d, h, w), or (channels, d, h, w)."""

def elu(x: _Operand, alpha: _float = 1.0, inplace: _bool = False) -> Tensor:
    """Exponential linear unit: x where positive, alpha * expm1(x) elsewhere; the derivative at 0 is alpha."""

def elu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`elu`, written into the tensor; returns it."""

def embedding(ids: _Operand, weight: _Operand, padding_idx: _int | None = None, max_norm: _float | None = None, norm_type: _float = 2.0, scale_grad_by_freq: _bool = False, sparse: _bool = False) -> Tensor:
    """Return the rows of weight (rows, size) at the integer indices `ids`: (*ids.shape, size)."""

def embedding_bag(ids: _Operand, weight: _Operand, offsets: _Operand | None = None, max_norm: _float | None = None, norm_type: _float = 2.0, scale_grad_by_freq: _bool = False, mode: _str = 'mean', sparse: _bool = False, per_sample_weights: _Operand | None = None, include_last_offset: _bool = False, padding_idx: _int | None = None) -> Tensor:
    """Return the sum, mean or maximum ("sum", "mean", "max") of the rows of weight in each bag of ids: (bags, size)."""

def feature_alpha_dropout(x: _Operand, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> Tensor:
    """Set whole channels to the saturation value of `selu` at random: `alpha_dropout` of x (n, channels, ...)."""

def fold(x: _Operand, output_size: _Ints, kernel_size: _Ints, dilation: _Ints = 1, padding: _Ints = 0, stride: _Ints = 1) -> Tensor:
    """Sum columns (n, c * kernel_h * kernel_w, windows) into images (n, c, *output_size), where windows may overlap."""

@overload
def fractional_max_pool2d(x: _Operand, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, *, return_indices: Literal[True], _random_samples: _Operand | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool2d(x: _Operand, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: Literal[False] = False, _random_samples: _Operand | None = None) -> Tensor:
    """Fractional max pooling of images (n, channels, h, w), or without n: maxima of `output_size` windows."""

def fractional_max_pool2d_with_indices(x: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: _bool = False, _random_samples: Any = None) -> tuple[Tensor, Tensor]:
    """Return `fractional_max_pool2d` as a tuple (values, indices)."""

@overload
def fractional_max_pool3d(x: _Operand, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, *, return_indices: Literal[True], _random_samples: _Operand | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d(x: _Operand, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: Literal[False] = False, _random_samples: _Operand | None = None) -> Tensor:
    """Fractional max pooling of images (n, channels, d, h, w), or without n: maxima of `output_size` windows."""

def fractional_max_pool3d_with_indices(x: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: _bool = False, _random_samples: Any = None) -> tuple[Tensor, Tensor]:
    """Return `fractional_max_pool3d` as a tuple (values, indices)."""

def gaussian_nll_loss(x: _Operand, target: _Operand, var: _Operand, full: _bool = False, eps: _float = 1e-06, reduction: _str = 'mean') -> Tensor:
    """The Gaussian loss (log(var) + (x - target)^2 / var) / 2, with mean x and variance var."""

def gelu(x: _Operand, *, approximate: _str = 'none') -> Tensor:
    """x times the normal CDF of x; approximate="tanh" uses the approximation with tanh."""

def glu(x: _Operand, dim: _int = -1) -> Tensor:
    """Gated linear unit: the first half of x along dim, times the sigmoid of the second half."""

def grid_sample(x: _Operand, grid: _Operand, mode: _str = 'bilinear', padding_mode: _str = 'zeros', align_corners: _bool | None = None) -> Tensor:
    """Sample images (n, c, *sizes) at the positions in grid (n, *out, d), d = 2 or 3: (n, c, *out)."""

def group_norm(x: _Operand, num_groups: _int, weight: _Operand | None = None, bias: _Operand | None = None, eps: _float = 1e-05) -> Tensor:
    """Group normalization: each of `num_groups` groups of channels standardized per sample, times weight, plus bias."""

def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Tensor:
    """Return the matrix product of each group: of experts that get different numbers of tokens, for example."""

def gumbel_softmax(logits: _Operand, tau: _float = 1.0, hard: _bool = False, eps: _float = 1e-10, dim: _int = -1) -> Tensor:
    """Sample from the Gumbel-softmax distribution along dim: softmax((logits + Gumbel noise) / tau)."""

def hardshrink(x: _Operand, lambd: _float = 0.5) -> Tensor:
    """Return 0 where abs(x) is at most lambd, with derivative 0, and x elsewhere."""

def hardsigmoid(x: _Operand, inplace: _bool = False) -> Tensor:
    """Piecewise linear sigmoid: x / 6 + 1 / 2, clamped to the range from 0 to 1; the derivative at the bounds is 0."""

def hardswish(x: _Operand, inplace: _bool = False) -> Tensor:
    """x * hardsigmoid(x); the derivative is 0 at -3 and 1 at 3.  A. Howard et al., MobileNetV3, arXiv 1905.02244."""

def hardtanh(x: _Operand, min_val: _Number = -1.0, max_val: _Number = 1.0, inplace: _bool = False) -> Tensor:
    """Clamp x to the range from min_val to max_val; the derivative at the bounds is 0."""

def hardtanh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`hardtanh`, written into the tensor; returns it."""

def hinge_embedding_loss(x: _Operand, target: _Operand, margin: _float = 1.0, reduction: _str = 'mean') -> Tensor:
    """The distance x where the target is 1, max(0, margin - x) where it is -1."""

def huber_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', delta: _float = 1.0, weight: _Operand | None = None) -> Tensor:
    """Huber loss: with d = abs(x - target), d^2 / 2 where d < delta, delta * (d - delta / 2) elsewhere; times weight."""

def instance_norm(x: _Operand, running_mean: _Operand | None = None, running_var: _Operand | None = None, weight: _Operand | None = None, bias: _Operand | None = None, use_input_stats: _bool = True, momentum: _float = 0.1, eps: _float = 1e-05) -> Tensor:
    """Instance normalization: `batch_norm` of each sample; running statistics follow the means over the samples."""

def interpolate(x: _Operand, size: Any = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: _bool | None = None, recompute_scale_factor: _bool | None = None, antialias: _bool = False) -> Tensor:
    """Resize images (n, c, *sizes) with one to three spatial dimensions."""

def kl_div(x: _Operand, target: _Operand, reduction: _str = 'mean', log_target: _bool = False) -> Tensor:
    """Kullback-Leibler divergence: target * (log(target) - x), 0 where target is 0; x holds log-probabilities."""

def l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', weight: _Operand | None = None) -> Tensor:
    """Mean absolute error: abs(x - target) times weight, reduced by mean, sum or none; the mean is weighted."""

def layer_norm(x: _Operand, normalized_shape: _Ints, weight: _Operand | None = None, bias: _Operand | None = None, eps: _float = 1e-05) -> Tensor:
    """Layer normalization: x standardized over its last dimensions, `normalized_shape`, times weight, plus bias."""

def leaky_relu(x: _Operand, negative_slope: _Number = 0.01, inplace: _bool = False) -> Tensor:
    """x where it is positive, negative_slope * x elsewhere."""

def leaky_relu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`leaky_relu`, written into the tensor; returns it."""

def linear(x: _Operand, weight: _Operand, bias: _Operand | None = None) -> Tensor:
    """Affine map x @ weight.T + bias: x (..., in), weight (out, in), bias (out,) to (..., out), as one matrix product."""

def linear_cross_entropy(x: _Operand, linear_weight: _Operand, target: _Operand, *, linear_bias: _Operand | None = None, weight: _Operand | None = None, reduction: _str = 'mean', ignore_index: _int | None = None, label_smoothing: _float = 0.0, options: Any = None) -> Tensor:
    """Return `cross_entropy` of a linear map of x (n, features) or (features,)."""

def local_response_norm(x: _Operand, size: _int, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0) -> Tensor:
    """x / (k + alpha * mean of x^2 over `size` neighbouring channels, zero-padded) ^ beta."""

def log_softmax(x: _Operand, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
    """The logarithm of the softmax along dim, accurate for small values; computed in `dtype` (None: that of x)."""

def logsigmoid(x: _Operand) -> Tensor:
    """Logarithm of the sigmoid: log(1 / (1 + exp(-x))), without overflow."""

def lp_pool1d(x: _Operand, norm_type: _Number, kernel_size: _Ints, stride: _Ints | None = None, ceil_mode: _bool = False) -> Tensor:
    """The p-norm of each window, sum(x^p)^(1/p), p being norm_type, of images with 1 spatial dimensions."""

def lp_pool2d(x: _Operand, norm_type: _Number, kernel_size: _Ints, stride: _Ints | None = None, ceil_mode: _bool = False) -> Tensor:
    """The p-norm of each window, sum(x^p)^(1/p), p being norm_type, of images with 2 spatial dimensions."""

def lp_pool3d(x: _Operand, norm_type: _Number, kernel_size: _Ints, stride: _Ints | None = None, ceil_mode: _bool = False) -> Tensor:
    """The p-norm of each window, sum(x^p)^(1/p), p being norm_type, of images with 3 spatial dimensions."""

def margin_ranking_loss(input1: _Operand, input2: _Operand, target: _Operand, margin: _float = 0.0, reduction: _str = 'mean') -> Tensor:
    """max(0, margin - target * (input1 - input2)); target 1 ranks input1 higher, -1 input2."""

@overload
def max_pool1d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The largest element of each window of images (n, c, *sizes) or (c, *sizes) with 1 spatial dimensions."""

def max_pool1d_with_indices(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> tuple[Tensor, Tensor]:
    """Return `max_pool1d` as a tuple (values, indices)."""

@overload
def max_pool2d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The largest element of each window of images (n, c, *sizes) or (c, *sizes) with 2 spatial dimensions."""

def max_pool2d_with_indices(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> tuple[Tensor, Tensor]:
    """Return `max_pool2d` as a tuple (values, indices)."""

@overload
def max_pool3d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The largest element of each window of images (n, c, *sizes) or (c, *sizes) with 3 spatial dimensions."""

def max_pool3d_with_indices(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> tuple[Tensor, Tensor]:
    """Return `max_pool3d` as a tuple (values, indices)."""

def max_unpool1d(x: _Operand, indices: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, output_size: _Ints | None = None) -> Tensor:
    """`max_pool1d` undone as far as it can be: the values at `indices` of larger images of zeros."""

def max_unpool2d(x: _Operand, indices: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, output_size: _Ints | None = None) -> Tensor:
    """`max_pool2d` undone as far as it can be: the values at `indices` of larger images of zeros."""

def max_unpool3d(x: _Operand, indices: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, output_size: _Ints | None = None) -> Tensor:
    """`max_pool3d` undone as far as it can be: the values at `indices` of larger images of zeros."""

def mish(x: _Operand, inplace: _bool = False) -> Tensor:
    """Mish: x * tanh(softplus(x)).  D. Misra, Mish, arXiv 1908.08681."""

def mse_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', weight: _Operand | None = None) -> Tensor:
    """Mean squared error: (x - target)^2 times weight, reduced by mean, sum or none; the mean is weighted."""

def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: _int, num_heads: _int, in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: _bool, dropout_p: _float, out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: Any = True, key_padding_mask: Any = None, need_weights: Any = True, attn_mask: Any = None, use_separate_proj_weight: Any = False, q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None, average_attn_weights: Any = True, is_causal: Any = False) -> Any:
    """Return the output of multi-head attention and its weights, None unless `need_weights`."""

def multi_margin_loss(x: _Operand, target: _Operand, p: _int = 1, margin: _float = 1.0, weight: _Operand | None = None, reduction: _str = 'mean') -> Tensor:
    """The mean over classes i other than the target y of max(0, margin - x[y] + x[i])^p, times weight[y]."""

def multilabel_margin_loss(x: _Operand, target: _Operand, reduction: _str = 'mean') -> Tensor:
    """The sum over labels y and other classes i of max(0, 1 - x[y] + x[i]), divided by the number of classes."""

def multilabel_soft_margin_loss(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean') -> Tensor:
    """The mean over the classes, the last dimension, of `binary_cross_entropy_with_logits`, times weight."""

def native_channel_shuffle(input: Any, groups: Any) -> Tensor:
    """Return `channel_shuffle`."""

def nll_loss(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean') -> Tensor:
    """Negative log likelihood: -x at the target class, times the weight of the class; x are log-probabilities."""

def normalize(x: _Operand, p: _Number = 2, dim: _Ints = 1, eps: _float = 1e-12) -> Tensor:
    """x divided by its p-norm over dim, or by eps where the norm is smaller."""

def one_hot(tensor: _Operand, num_classes: _int = -1) -> Tensor:
    """One-hot encode integer classes in a new last dimension, in int64."""

def pad(x: _Operand, pad: _Ints, mode: _str = 'constant', value: _Number | None = None) -> Tensor:
    """x padded before and after, from the last dimension on, by `pad` elements; negative amounts crop."""

def pairwise_distance(x1: _Operand, x2: _Operand, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension; the two broadcast."""

def pdist(x: _Operand, p: _float = 2.0) -> Tensor:
    """The p-norm distance between each row of a matrix and each later one: the upper triangle of `cdist`, row by row."""

def pixel_shuffle(x: _Operand, upscale_factor: _int) -> Tensor:
    """Rearrange channels into pixels: (..., c * r^2, h, w) to (..., c, h * r, w * r), r being upscale_factor."""

def pixel_unshuffle(x: _Operand, downscale_factor: _int) -> Tensor:
    """Undo `pixel_shuffle`: (..., c, h * r, w * r) to (..., c * r^2, h, w), r being downscale_factor."""

def poisson_nll_loss(x: _Operand, target: _Operand, log_input: _bool = True, full: _bool = False, eps: _float = 1e-08, reduction: _str = 'mean') -> Tensor:
    """The Poisson loss exp(x) - target * x, with x the log of the mean; else x - target * log(x + eps)."""

def prelu(x: _Operand, weight: _Operand) -> Tensor:
    """Return x where positive and weight * x elsewhere: one weight, or one per channel, which is dimension 1 of x."""

def relu(x: _Operand, inplace: _bool = False) -> Tensor:
    """The rectified linear unit max(x, 0).  Its derivative is 0 at 0, and 1 at NaN."""

def relu6(x: _Operand, inplace: _bool = False) -> Tensor:
    """Clamp x to the range from 0 to 6; the derivative at the bounds is 0."""

def relu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`relu`, written into the tensor; returns it."""

def rms_norm(x: _Operand, normalized_shape: _Ints, weight: _Operand | None = None, eps: _float | None = None) -> Tensor:
    """RMS normalization: x / sqrt(mean(x^2) + eps) over its last dimensions, `normalized_shape`, times weight."""

def rrelu(x: _Operand, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, inplace: _bool = False) -> Tensor:
    """Randomized leaky ReLU: x where positive, slope * x elsewhere; in training, slopes are drawn from [lower, upper]."""

def rrelu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`rrelu`, written into the tensor; returns it."""

def scaled_dot_product_attention(query: _Operand, key: _Operand, value: _Operand, attn_mask: _Operand | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, *, scale: _float | None = None, enable_gqa: _bool = False) -> Tensor:
    """Attention, softmax(scale * query key^T + mask) value: (..., l, e), (..., s, e), (..., s, d) to (..., l, d)."""

def scaled_mm(mat_a: Any, mat_b: Any, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any, swizzle_a: Any = None, swizzle_b: Any = None, bias: Any = None, output_dtype: Any = 'bfloat16', contraction_dim: Any = (), use_fast_accum: Any = False) -> Tensor:
    """Return (mat_a * its scales) @ (mat_b * its scales) + bias, computed in float32, in `output_dtype`; no gradients."""

def selu(x: _Operand, inplace: _bool = False) -> Tensor:
    """Scaled exponential linear unit: 1.0507 * elu(x, 1.6733); a stack of such layers keeps mean 0 and variance 1."""

def selu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`selu`, written into the tensor; returns it."""

def sigmoid(x: _Operand) -> Tensor:
    """The logistic sigmoid 1 / (1 + exp(-x))."""

def silu(x: _Operand, inplace: _bool = False) -> Tensor:
    """The sigmoid linear unit x * sigmoid(x), also called swish."""

def smooth_l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', beta: _float = 1.0) -> Tensor:
    """Smooth L1 loss: with d = abs(x - target), d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere."""

def soft_margin_loss(x: _Operand, target: _Operand, reduction: _str = 'mean') -> Tensor:
    """The logistic loss log(1 + exp(-target * x)), without overflow; each target is -1 or 1."""

def softmax(x: _Operand, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
    """The softmax exp(x) / sum(exp(x)) along dim, without overflow; computed in `dtype` (None: that of x)."""

def softmin(x: _Operand, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
    """Softmax of -x along dim."""

def softplus(x: _Operand, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x exceeds the threshold."""

def softshrink(x: _Operand, lambd: _float = 0.5) -> Tensor:
    """Move x towards 0 by lambd; where abs(x) is at most lambd, the result and the derivative are 0."""

def softsign(x: _Operand) -> Tensor:
    """Softsign: x / (1 + abs(x))."""

def tanh(x: _Operand) -> Tensor:
    """The hyperbolic tangent of x."""

def tanhshrink(x: _Operand) -> Tensor:
    """x - tanh(x)."""

def threshold(x: _Operand, threshold: _Number, value: _Number, inplace: _bool = False) -> Tensor:
    """Return x where it is greater than the threshold, and `value`, with derivative 0, elsewhere."""

def threshold_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`threshold`, written into the tensor; returns it."""

def triplet_margin_loss(anchor: _Operand, positive: _Operand, negative: _Operand, margin: _float = 1.0, p: _Number = 2, eps: _float = 1e-06, swap: _bool = False, reduction: _str = 'mean') -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), with d the p-norm of the difference plus eps."""

def triplet_margin_with_distance_loss(anchor: _Operand, positive: _Operand, negative: _Operand, *, distance_function: Any = None, margin: _float = 1.0, swap: _bool = False, reduction: _str = 'mean') -> Tensor:
    """`triplet_margin_loss` with any distance, a function of two tensors; None for the Euclidean one."""

def unfold(x: _Operand, kernel_size: _Ints, dilation: _Ints = 1, padding: _Ints = 0, stride: _Ints = 1) -> Tensor:
    """Extract windows of images (n, c, h, w) as columns (n, c * kernel_h * kernel_w, windows)."""

def upsample(x: _Operand, size: Any = None, scale_factor: Any = None, mode: _str = 'nearest', align_corners: _bool | None = None) -> Tensor:
    """Resize images: an earlier name of `interpolate`."""

def upsample_bilinear(x: _Operand, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize images: `interpolate` with mode 'bilinear' and align_corners."""

def upsample_nearest(x: _Operand, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize images: `interpolate` with mode 'nearest'."""
