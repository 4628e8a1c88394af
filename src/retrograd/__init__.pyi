# Made from the registry of operators by tools/stubs.py: change those, then run `python tools/stubs.py`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd import autograd as autograd
from retrograd import ops as ops
from retrograd.autograd import enable_grad as enable_grad
from retrograd.autograd import explain as explain
from retrograd.autograd import inference_mode as inference_mode
from retrograd.autograd import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from retrograd.autograd import is_anomaly_enabled as is_anomaly_enabled
from retrograd.autograd import is_grad_enabled as is_grad_enabled
from retrograd.autograd import is_inference_mode_enabled as is_inference_mode_enabled
from retrograd.autograd import no_grad as no_grad
from retrograd.autograd import set_grad_enabled as set_grad_enabled
from retrograd.core import Tensor as Tensor
from retrograd.core.build import show_config as show_config
from retrograd.core.dtype import bool_ as bool
from retrograd.core.dtype import complex64 as complex64
from retrograd.core.dtype import complex128 as complex128
from retrograd.core.dtype import float16 as float16
from retrograd.core.dtype import float32 as float32
from retrograd.core.dtype import float64 as float64
from retrograd.core.dtype import get_default_dtype as get_default_dtype
from retrograd.core.dtype import int8 as int8
from retrograd.core.dtype import int16 as int16
from retrograd.core.dtype import int32 as int32
from retrograd.core.dtype import int64 as int64
from retrograd.core.dtype import set_default_dtype as set_default_dtype
from retrograd.core.dtype import uint8 as uint8
from retrograd.ops.create import arange as arange
from retrograd.ops.create import as_tensor as as_tensor
from retrograd.ops.create import empty as empty
from retrograd.ops.create import eye as eye
from retrograd.ops.create import from_numpy as from_numpy
from retrograd.ops.create import full as full
from retrograd.ops.create import linspace as linspace
from retrograd.ops.create import ones as ones
from retrograd.ops.create import tensor as tensor
from retrograd.ops.create import zeros as zeros
from retrograd.ops.methods import is_complex as is_complex
from retrograd.ops.random import Generator as Generator
from retrograd.ops.random import default_generator as default_generator
from retrograd.ops.random import get_rng_state as get_rng_state
from retrograd.ops.random import manual_seed as manual_seed
from retrograd.ops.random import normal as normal
from retrograd.ops.random import rand as rand
from retrograd.ops.random import rand_like as rand_like
from retrograd.ops.random import randint as randint
from retrograd.ops.random import randn as randn
from retrograd.ops.random import randn_like as randn_like
from retrograd.ops.random import randperm as randperm
from retrograd.ops.random import set_rng_state as set_rng_state
from retrograd import cli as cli
from retrograd import fft as fft
from retrograd import func as func
from retrograd import fx as fx
from retrograd import interop as interop
from retrograd import linalg as linalg
from retrograd import nn as nn
from retrograd import optim as optim
from retrograd import pipelining as pipelining
from retrograd import special as special
from retrograd import testing as testing
from retrograd import utils as utils

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

__version__: _str

def abs(x: _Operand) -> Tensor:
    """The absolute value; its derivative at 0 is 0."""

def acos(x: _Operand) -> Tensor:
    """The angle in radians whose cosine is x."""

def acosh(x: _Operand) -> Tensor:
    """The inverse hyperbolic cosine, for x of at least 1."""

def add(a: _Operand, b: _Operand) -> Tensor:
    """Elementwise sum; operands broadcast."""

def addmm(x: _Operand, a: _Operand, b: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * (a @ b), of matrices a (m, k) and b (k, n); x broadcasts to (m, n)."""

def adjoint(x: _Operand) -> Tensor:
    """The conjugate transpose of matrices, the last two dimensions; of real ones a view."""

def all(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """Whether every element over `dim` (None or (): all) is true (not zero)."""

def amax(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """The largest element over `dim` (None or (): all); equals share the gradient.  NaN wins."""

def amin(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """The smallest element over `dim` (None or (): all); equals share the gradient.  NaN wins."""

def angle(x: _Operand) -> Tensor:
    """The angle in radians between -pi and pi; of real numbers 0, or pi where negative.  At 0 its derivative is 0."""

def any(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """Whether some element over `dim` (None or (): all) is true (not zero)."""

def argmax(x: _Operand, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """Where the largest element along `dim` is, the first of equals; None: in the flattened tensor."""

def argmin(x: _Operand, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """Where the smallest element along `dim` is, the first of equals; None: in the flattened tensor."""

def asin(x: _Operand) -> Tensor:
    """The angle in radians whose sine is x."""

def asinh(x: _Operand) -> Tensor:
    """The inverse hyperbolic sine."""

def atan(x: _Operand) -> Tensor:
    """The angle in radians whose tangent is x."""

def atan2(a: _Operand, b: _Operand) -> Tensor:
    """The angle in radians of the point (b, a)."""

def atanh(x: _Operand) -> Tensor:
    """The inverse hyperbolic tangent, for x between -1 and 1."""

def bernoulli(p: _Operand, *, generator: Any = None) -> Tensor:
    """Ones with probability p, zeros otherwise, in the shape and dtype of p."""

def binary_cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean') -> Tensor:
    """-(target log x + (1 - target) log(1 - x)) times weight, of probabilities x, logarithms at least -100."""

def binary_cross_entropy_with_logits(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean', pos_weight: _Operand | None = None) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow; pos_weight weighs the positive part."""

def bitwise_and(a: _Operand, b: _Operand) -> Tensor:
    """The bits that both have; of booleans, whether both are true."""

def bitwise_not(x: _Operand) -> Tensor:
    """The bits turned round; of booleans, their opposite."""

def bitwise_or(a: _Operand, b: _Operand) -> Tensor:
    """The bits that one has; of booleans, whether one is true."""

def bitwise_xor(a: _Operand, b: _Operand) -> Tensor:
    """The bits that exactly one has; of booleans, whether they differ."""

def bmm(a: _Operand, b: _Operand) -> Tensor:
    """The products of two stacks of as many matrices, (b, m, k) and (b, k, n)."""

def broadcast_tensors(tensors: Sequence[_Operand]) -> tuple[Tensor, ...]:
    """The tensors as views of their common shape."""

def broadcast_to(x: _Operand, *shape: _Ints) -> Tensor:
    """`expand`, by NumPy's name."""

def cat(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """The tensors one after the other along an existing dimension; their other sizes agree."""

def ceil(x: _Operand) -> Tensor:
    """The smallest integer not below x; its derivative is 0."""

def chunk(x: _Operand, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal size along `dim`, the last one possibly smaller."""

def clamp(x: _Operand, min: _Number | None = None, max: _Number | None = None) -> Tensor:
    """x, but at least min and at most max; the derivative is 1 within the bounds, the bounds included."""

def clip(x: _Operand, min: _Number | None = None, max: _Number | None = None) -> Tensor:
    """NumPy's name of `clamp`."""

def clone(x: _Operand) -> Tensor:
    """A copy that gradients pass through."""

def complex(real: _Operand, imag: _Operand) -> Tensor:
    """Complex numbers of real and imaginary parts, which broadcast; both float32, or both float64."""

def conj(x: _Operand) -> Tensor:
    """The complex conjugate; of real numbers, a copy."""

def conj_physical(x: _Operand) -> Tensor:
    """`conj`, by PyTorch's name for the one that computes at once, as `conj` always does here."""

def cos(x: _Operand) -> Tensor:
    """The cosine of x radians."""

def cosh(x: _Operand) -> Tensor:
    """The hyperbolic cosine."""

def cosine_similarity(a: _Operand, b: _Operand, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """sum(a * b) / (norm(a) * norm(b)) along dim, each norm at least eps; a and b broadcast."""

def count_nonzero(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """How many elements over `dim` (None or (): all) are not zero, in int64."""

def cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean', label_smoothing: _float = 0.0) -> Tensor:
    """-sum(p * log softmax(x)) over the classes: x any numbers, p the wanted probabilities."""

def cumprod(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The products of the elements up to each place along `dim`; derivatives hold where factors are 0."""

def cumsum(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sums of the elements up to each place along `dim`.  Integers and booleans add up in int64."""

def detach(x: _Operand) -> Tensor:
    """The same memory outside every graph: an operator, so that each level it passes cuts its own."""

def diagonal(x: _Operand, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """The elements whose index along dim2 is `offset` more than along dim1, as the last dimension: a view."""

def div(a: _Operand, b: _Operand) -> Tensor:
    """Elementwise quotient a / b, of floating dtype."""

def dot(a: _Operand, b: _Operand) -> Tensor:
    """The sum of the products of two vectors of one size; nothing is conjugated."""

def dropout(x: _Operand, p: _float = 0.5, training: _bool = True) -> Tensor:
    """Each element 0 with probability p, else divided by 1 - p; x itself when not training."""

def einsum(equation: _str, operands: Sequence[_Operand]) -> Tensor:
    """Sums of products by Einstein's convention: letters name dimensions, those not in the result are summed."""

def embedding(ids: _Operand, weight: _Operand, padding_idx: _int | None = None) -> Tensor:
    """The rows of weight (rows, size) that the integers `ids` name: (*ids.shape, size)."""

def eq(a: _Operand, b: _Operand) -> Tensor:
    """Whether a equals b, element by element."""

def erf(x: _Operand) -> Tensor:
    """The error function."""

def exp(x: _Operand) -> Tensor:
    """e to the power x."""

def exp2(x: _Operand) -> Tensor:
    """2 to the power x."""

def expand(x: _Operand, *shape: _Ints) -> Tensor:
    """Dimensions of size 1 repeated, and new ones in front, without copying; -1 keeps a size."""

def expm1(x: _Operand) -> Tensor:
    """exp(x) - 1, exact for small x."""

def flatten(x: _Operand, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """Dimensions start_dim to end_dim, both included, as one."""

def flip(x: _Operand, *dims: _Ints) -> Tensor:
    """The elements in reverse order along the given dimensions; a copy, as in PyTorch."""

def floor(x: _Operand) -> Tensor:
    """The largest integer not above x; its derivative is 0."""

def floor_divide(a: _Operand, b: _Operand) -> Tensor:
    """The quotient rounded down; it has no derivative."""

def full_like(x: _Operand, fill_value: _Number, *, dtype: DTypeLike | None = None) -> Tensor:
    """One value in the shape of x."""

def gather(x: _Operand, dim: _int, index: _Operand) -> Tensor:
    """`take_along_dim` with PyTorch's order of arguments; `index` may be smaller than x in the other dimensions."""

def ge(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at least b, element by element."""

def gelu(x: _Operand, *, approximate: _str = 'none') -> Tensor:
    """x times the normal distribution function: exact, or with approximate="tanh" by that formula."""

def gt(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is greater than b, element by element."""

def huber_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', delta: _float = 1.0) -> Tensor:
    """With d = abs(x - target): d^2 / 2 where d < delta, delta * (d - delta / 2) elsewhere."""

def imag(x: _Operand) -> Tensor:
    """The imaginary parts, as a view; RuntimeError if the dtype is not complex."""

def index_add(x: _Operand, dim: _int, index: _Operand, source: _Operand) -> Tensor:
    """x with the slices of `source` added at the places along `dim` that a 1-d integer tensor names."""

def index_select(x: _Operand, dim: _int, index: _Operand) -> Tensor:
    """The slices along `dim` that a 1-d integer tensor names, in its order."""

def isfinite(x: _Operand) -> Tensor:
    """Whether x is neither infinite nor NaN."""

def isinf(x: _Operand) -> Tensor:
    """Whether x is infinite, of either sign."""

def isnan(x: _Operand) -> Tensor:
    """Whether x is not a number."""

def isreal(x: _Operand) -> Tensor:
    """Whether the imaginary part is 0; true for all real numbers, NaN included."""

def kl_div(x: _Operand, target: _Operand, reduction: _str = 'mean', log_target: _bool = False) -> Tensor:
    """target * (log(target) - x), 0 where target is 0: x holds logarithms of probabilities."""

def l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean') -> Tensor:
    """abs(x - target), averaged, added up or as it is."""

def layer_norm(x: _Operand, normalized_shape: _Ints, weight: _Operand | None = None, bias: _Operand | None = None, eps: _float = 1e-05) -> Tensor:
    """x with mean 0 and variance 1 over its last dimensions, `normalized_shape`; times weight, plus bias."""

def le(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at most b, element by element."""

def leaky_relu(x: _Operand, negative_slope: _Number = 0.01) -> Tensor:
    """x where positive, negative_slope * x elsewhere."""

def linear(x: _Operand, weight: _Operand, bias: _Operand | None = None) -> Tensor:
    """x @ weight.T + bias: x (..., in), weight (out, in), bias (out,) to (..., out), as one matrix product."""

def log(x: _Operand) -> Tensor:
    """The natural logarithm."""

def log10(x: _Operand) -> Tensor:
    """The logarithm to base 10."""

def log1p(x: _Operand) -> Tensor:
    """log(1 + x), exact for small x."""

def log2(x: _Operand) -> Tensor:
    """The logarithm to base 2."""

def log_softmax(x: _Operand, dim: _int) -> Tensor:
    """log(softmax(x)) along dim, exact where the softmax is small."""

def logaddexp(a: _Operand, b: _Operand) -> Tensor:
    """log(exp(a) + exp(b)), without overflow."""

def logical_and(a: _Operand, b: _Operand) -> Tensor:
    """Whether both are true (not zero)."""

def logical_not(x: _Operand) -> Tensor:
    """Whether x is false (zero)."""

def logical_or(a: _Operand, b: _Operand) -> Tensor:
    """Whether at least one is true (not zero)."""

def logical_xor(a: _Operand, b: _Operand) -> Tensor:
    """Whether exactly one is true (not zero)."""

def logsumexp(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """log(sum(exp(x))) over `dim` (None or (): all), without overflow; -inf where there is nothing."""

def lt(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is less than b, element by element."""

def masked_fill(x: _Operand, mask: _Operand, value: _Number) -> Tensor:
    """`value` where the mask is true, x elsewhere."""

def masked_select(x: _Operand, mask: _Operand) -> Tensor:
    """The elements of x where the mask is true, as a 1-d tensor; the two broadcast."""

def matmul(a: _Operand, b: _Operand) -> Tensor:
    """The matrix product: (..., m, k) times (..., k, n) is (..., m, n); the dimensions in front broadcast."""

def max(x: _Operand, dim: Any = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
    """The largest of all; along `dim`, a named tuple (values, indices); with a second tensor, `maximum`."""

def maximum(a: _Operand, b: _Operand) -> Tensor:
    """The larger of the two; equals share the gradient."""

def mean(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum over `dim` (None or (): all) divided by the number of elements; NaN where there are none."""

def min(x: _Operand, dim: Any = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
    """The smallest of all; along `dim`, a named tuple (values, indices); with a second tensor, `minimum`."""

def minimum(a: _Operand, b: _Operand) -> Tensor:
    """The smaller of the two; equals share the gradient."""

def mm(a: _Operand, b: _Operand) -> Tensor:
    """The product of two matrices, (m, k) and (k, n)."""

def movedim(x: _Operand, source: _Ints, destination: _Ints) -> Tensor:
    """Dimensions moved to other places, the rest in their old order."""

def mse_loss(x: _Operand, target: _Operand, reduction: _str = 'mean') -> Tensor:
    """(x - target)^2, averaged, added up or as it is."""

def mul(a: _Operand, b: _Operand) -> Tensor:
    """Elementwise product; operands broadcast."""

def mv(a: _Operand, b: _Operand) -> Tensor:
    """The product of a matrix (m, k) and a vector (k,)."""

def narrow(x: _Operand, dim: _int, start: _int, length: _int) -> Tensor:
    """`length` places from `start` on, along `dim`."""

def ne(a: _Operand, b: _Operand) -> Tensor:
    """Whether a differs from b, element by element."""

def neg(x: _Operand) -> Tensor:
    """Elementwise negation."""

def nll_loss(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean') -> Tensor:
    """-x at the target class, times that class's weight: x holds logarithms of probabilities."""

def nonzero(x: _Operand, *, as_tuple: _bool = False) -> Tensor:
    """The places of the elements that are not zero, as one (n, ndim) tensor or as one tensor per dimension."""

def norm(x: _Operand, p: Any = 2, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """The p-norm of vectors, sum(abs(x)^p)^(1/p) over `dim` (None: all elements as one vector)."""

def normalize(x: _Operand, p: _Number = 2, dim: _int = 1, eps: _float = 1e-12) -> Tensor:
    """x divided by its p-norm along dim, or by eps where the norm is less."""

def one_hot(x: _Operand, num_classes: _int = -1) -> Tensor:
    """Integer classes as rows of zeros with a single one, in a new last dimension of int64."""

def ones_like(x: _Operand, *, dtype: DTypeLike | None = None) -> Tensor:
    """Ones in the shape of x."""

def outer(a: _Operand, b: _Operand) -> Tensor:
    """Every product of an element of one vector and one of another: (m,) and (n,) to (m, n)."""

def permute(x: _Operand, *dims: _Ints) -> Tensor:
    """Dimensions in another order: dimension i of the result is dimension dims[i] of x."""

def polar(abs: _Operand, angle: _Operand) -> Tensor:
    """Complex numbers of absolute values and angles in radians, which broadcast; both float32, or both float64."""

def pow(a: _Operand, b: _Operand) -> Tensor:
    """a to the power b."""

def prod(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The product over `dim` (None or (): all); derivatives of every order hold where factors are 0."""

def real(x: _Operand) -> Tensor:
    """The real parts, as a view; a real tensor is its own."""

def reciprocal(x: _Operand) -> Tensor:
    """1 / x."""

def relu(x: _Operand) -> Tensor:
    """max(x, 0); its derivative at 0 is 0."""

def remainder(a: _Operand, b: _Operand) -> Tensor:
    """a - floor(a / b) * b: what is left, with the sign of b."""

def repeat(x: _Operand, *sizes: _Ints) -> Tensor:
    """The whole tensor repeated sizes[i] times along dimension i; new dimensions come in front."""

def reshape(x: _Operand, *shape: _Ints) -> Tensor:
    """The same elements in row-major order in another shape; one size may be -1.  A view where strides allow."""

def resolve_conj(x: _Operand) -> Tensor:
    """x itself: here no conjugate is ever pending, as it may be in PyTorch."""

def roll(x: _Operand, shifts: _int, dim: _int | None = None) -> Tensor:
    """The elements shifted along `dim` (None: in row-major order), those pushed out coming in at the front."""

def round(x: _Operand) -> Tensor:
    """The nearest integer, halves to even; its derivative is 0."""

def rows_dot(a: _Operand, b: _Operand) -> Tensor:
    """The sum over all rows of their outer products: (..., k) and (..., n) to (k, n), as one matrix product."""

def rsqrt(x: _Operand) -> Tensor:
    """1 / sqrt(x)."""

def scaled_dot_product_attention(q: _Operand, k: _Operand, v: _Operand, attn_mask: _Operand | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, *, scale: _float | None = None) -> Tensor:
    """softmax(scale * q k^T + mask) v: q (..., l, e), k (..., s, e), v (..., s, d) to (..., l, d)."""

def select(x: _Operand, dim: _int, index: _int) -> Tensor:
    """The slice at `index` along `dim`, without that dimension; a view."""

def sgn(x: _Operand) -> Tensor:
    """x / |x|, and 0 at 0, where its derivative is 0 too; of real numbers `sign`."""

def sigmoid(x: _Operand) -> Tensor:
    """1 / (1 + exp(-x))."""

def sign(x: _Operand) -> Tensor:
    """-1, 0 or 1; its derivative is 0.  Of complex numbers there is `sgn`."""

def silu(x: _Operand) -> Tensor:
    """x * sigmoid(x), also called swish."""

def sin(x: _Operand) -> Tensor:
    """The sine of x radians."""

def sinh(x: _Operand) -> Tensor:
    """The hyperbolic sine."""

def smooth_l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', beta: _float = 1.0) -> Tensor:
    """With d = abs(x - target): d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere."""

def softmax(x: _Operand, dim: _int) -> Tensor:
    """exp(x) / sum(exp(x)) along dim, shifted so that it cannot overflow."""

def softplus(x: _Operand) -> Tensor:
    """log(1 + exp(x)), without overflow."""

def split(x: _Operand, split_size_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of views along `dim`: of one size (the last may be smaller), or of the sizes listed."""

def sqrt(x: _Operand) -> Tensor:
    """The square root; NaN for negative numbers."""

def square(x: _Operand) -> Tensor:
    """x times x."""

def squeeze(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """Without the dimensions of size 1, or without those of them that `dim` names."""

def stack(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """The tensors, all of one shape, side by side along a new dimension."""

def standardize(x: _Operand, ndim: _int = 1, *, eps: _float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(variance + eps) over the last `ndim` dimensions; the variance is that over n."""

def std(x: _Operand, dim: _Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number = 1) -> Tensor:
    """The square root of `var`; where that is 0, the derivative is taken as 0."""

def sub(a: _Operand, b: _Operand) -> Tensor:
    """Elementwise difference a - b."""

def sum(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum over `dim` (None or (): all).  Integers and booleans add up in int64."""

def take_along_dim(x: _Operand, indices: _Operand, dim: _int) -> Tensor:
    """Per position of `indices`, the element of x at that place along `dim`; other dimensions match one to one."""

def tan(x: _Operand) -> Tensor:
    """The tangent of x radians."""

def tanh(x: _Operand) -> Tensor:
    """The hyperbolic tangent."""

def to(x: _Operand, dtype: DTypeLike) -> Tensor:
    """x in another dtype; from complex to real, its real part."""

def trace(x: _Operand) -> Tensor:
    """The sum of the diagonal of a matrix."""

def transpose(x: _Operand, dim0: _int, dim1: _int) -> Tensor:
    """Two dimensions swapped."""

def tril(x: _Operand, diagonal: _int = 0) -> Tensor:
    """The lower triangle of the last two dimensions, zeros above the given diagonal."""

def triu(x: _Operand, diagonal: _int = 0) -> Tensor:
    """The upper triangle of the last two dimensions, zeros below the given diagonal."""

def trunc(x: _Operand) -> Tensor:
    """x without its fraction; its derivative is 0."""

def unbind(x: _Operand, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of the slices along `dim`, without that dimension."""

def unflatten(x: _Operand, dim: _int, sizes: _Ints) -> Tensor:
    """One dimension as several; one of the sizes may be -1."""

def unsqueeze(x: _Operand, dim: _int) -> Tensor:
    """A new dimension of size 1 at `dim`."""

def var(x: _Operand, dim: _Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number = 1) -> Tensor:
    """sum((x - mean(x))^2) / (n - correction) over `dim` (None: all)."""

def var_mean(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, correction: _Number = 1) -> tuple[Tensor, Tensor]:
    """`var` and `mean` over the same dimensions, as a named tuple (var, mean)."""

def vdot(a: _Operand, b: _Operand) -> Tensor:
    """The sum of the products of two vectors of one size, the first conjugated."""

def view(x: _Operand, *shape: _Ints) -> Tensor:
    """The same memory in another shape; where strides do not allow that, `reshape` makes a copy."""

def view_as_complex(x: _Operand) -> Tensor:
    """A view of pairs of real numbers as complex ones: shape (..., 2) becomes (...)."""

def view_as_real(x: _Operand) -> Tensor:
    """A view of complex numbers as pairs of real ones: shape (...) becomes (..., 2).  RuntimeError for other dtypes."""

def where(condition: _Operand, a: _Operand, b: _Operand) -> Tensor:
    """a where the condition holds, b elsewhere; all three broadcast."""

def zeros_like(x: _Operand, *, dtype: DTypeLike | None = None) -> Tensor:
    """Zeros in the shape of x."""
