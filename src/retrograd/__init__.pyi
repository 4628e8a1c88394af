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
from retrograd.core import batch_loop as _examples
from retrograd.core.build_config import show_config as show_config
from retrograd.core.dtype import complex64 as complex64
from retrograd.core.dtype import complex128 as complex128
from retrograd.core.dtype import finfo as finfo
from retrograd.core.dtype import float16 as float16
from retrograd.core.dtype import float32 as float32
from retrograd.core.dtype import float64 as float64
from retrograd.core.dtype import get_default_dtype as get_default_dtype
from retrograd.core.dtype import iinfo as iinfo
from retrograd.core.dtype import int8 as int8
from retrograd.core.dtype import int16 as int16
from retrograd.core.dtype import int32 as int32
from retrograd.core.dtype import int64 as int64
from retrograd.core.dtype import set_default_dtype as set_default_dtype
from retrograd.core.dtype import uint8 as uint8
from retrograd.core.dtype import uint16 as uint16
from retrograd.core.dtype import uint32 as uint32
from retrograd.core.dtype import uint64 as uint64
from retrograd.core.dtype_aliases import SymInt as SymInt
from retrograd.core.dtype_aliases import bool as bool
from retrograd.core.dtype_aliases import cdouble as cdouble
from retrograd.core.dtype_aliases import cfloat as cfloat
from retrograd.core.dtype_aliases import double as double
from retrograd.core.dtype_aliases import dtype as dtype
from retrograd.core.dtype_aliases import float as float
from retrograd.core.dtype_aliases import half as half
from retrograd.core.dtype_aliases import int as int
from retrograd.core.dtype_aliases import long as long
from retrograd.core.dtype_aliases import short as short
from retrograd.interop import array_namespace as _array_namespace
from retrograd.interop import notebooks as _notebooks
from retrograd.interop import numpy_protocol as _numpy_protocol
from retrograd.ops.generator import Generator as Generator
from retrograd.ops.generator import default_generator as default_generator
from retrograd.ops.layout import Size as Size
from retrograd.ops.layout import channels_last as channels_last
from retrograd.ops.layout import channels_last_3d as channels_last_3d
from retrograd.ops.layout import contiguous_format as contiguous_format
from retrograd.ops.layout import device as device
from retrograd.ops.layout import jagged as jagged
from retrograd.ops.layout import layout as layout
from retrograd.ops.layout import memory_format as memory_format
from retrograd.ops.layout import preserve_format as preserve_format
from retrograd.ops.layout import strided as strided
from retrograd.ops.legacy import BoolTensor as BoolTensor
from retrograd.ops.legacy import ByteTensor as ByteTensor
from retrograd.ops.legacy import CharTensor as CharTensor
from retrograd.ops.legacy import DoubleTensor as DoubleTensor
from retrograd.ops.legacy import FloatTensor as FloatTensor
from retrograd.ops.legacy import HalfTensor as HalfTensor
from retrograd.ops.legacy import IntTensor as IntTensor
from retrograd.ops.legacy import LongTensor as LongTensor
from retrograd.ops.legacy import ShortTensor as ShortTensor
from retrograd import cli as cli
from retrograd.func.autograd_api import deriv as deriv
from retrograd.func.autograd_api import elementwise_grad as elementwise_grad
from retrograd import fft as fft
from retrograd.utils.threads import get_num_threads as get_num_threads
from retrograd.func.autograd_api import grad as grad
from retrograd.func.autograd_api import grad_and_aux as grad_and_aux
from retrograd.func.autograd_api import grad_named as grad_named
from retrograd.func.autograd_api import hessian as hessian
from retrograd.func.autograd_api import hessian_tensor_product as hessian_tensor_product
from retrograd.func.autograd_api import hessian_vector_product as hessian_vector_product
from retrograd import hips as hips
from retrograd.func.autograd_api import holomorphic_grad as holomorphic_grad
from retrograd.func.autograd_api import jacobian as jacobian
from retrograd import linalg as linalg
from retrograd.interop.files import load as load
from retrograd.func.autograd_api import make_ggnvp as make_ggnvp
from retrograd.func.autograd_api import make_hvp as make_hvp
from retrograd.func.autograd_api import make_jvp as make_jvp
from retrograd.func.autograd_api import make_vjp as make_vjp
from retrograd import masked as masked
from retrograd.func.autograd_api import multigrad_dict as multigrad_dict
from retrograd import nested as nested
from retrograd import random as random
from retrograd.interop.files import save as save
from retrograd.utils.threads import set_num_threads as set_num_threads
from retrograd import signal as signal
from retrograd import sklearn as sklearn
from retrograd import special as special
from retrograd.func.autograd_api import tensor_jacobian_product as tensor_jacobian_product
from retrograd import testing as testing
from retrograd.func.autograd_api import value_and_grad as value_and_grad
from retrograd.func.autograd_api import vector_jacobian_product as vector_jacobian_product
from retrograd.func.batch import vmap as vmap

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

__version__: _str

def _sample_dirichlet(concentration: _Operand, *, generator: Any = None) -> Tensor:
    """Draws from Dirichlet distributions, along the last dimension: positive numbers whose sum is 1."""

def _standard_gamma(alpha: _Operand, *, generator: Any = None) -> Tensor:
    """Draws from gamma distributions of shape alpha and scale 1."""

def _standard_gamma_grad(alpha: _Operand, sample: _Operand) -> Tensor:
    """How fast a draw of `standard_gamma` moves with alpha."""

def abs(x: _Operand) -> Tensor:
    """The absolute value; its derivative at 0 is 0."""

def abs_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`abs`, written into the tensor; returns it."""

def absolute(x: _Operand) -> Tensor:
    """The absolute value; its derivative at 0 is 0."""

def absolute_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`abs`, written into the tensor; returns it."""

def acos(x: _Operand) -> Tensor:
    """The angle in radians whose cosine is x."""

def acos_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`acos`, written into the tensor; returns it."""

def acosh(x: _Operand) -> Tensor:
    """The inverse hyperbolic cosine, for x of at least 1."""

def acosh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`acosh`, written into the tensor; returns it."""

def adaptive_avg_pool1d(x: _Operand, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that cover images with 1 spatial dimensions."""

def adaptive_max_pool1d(x: _Operand, output_size: Any, return_indices: _bool = False) -> Tensor:
    """The largest element of each of `output_size` windows that cover images with 1 spatial dimensions."""

def adaptive_max_pool2d(x: _Operand, output_size: Any, return_indices: _bool = False) -> Tensor:
    """The largest element of each of `output_size` windows that cover images with 2 spatial dimensions."""

def adaptive_max_pool3d(x: _Operand, output_size: Any, return_indices: _bool = False) -> Tensor:
    """The largest element of each of `output_size` windows that cover images with 3 spatial dimensions."""

def add(a: _Operand, b: _Operand, *, alpha: _Number = 1) -> Tensor:
    """Elementwise sum; operands broadcast."""

def addbmm(x: _Operand, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * the sum of the products of two stacks of matrices; x broadcasts."""

def addcdiv(x: _Operand, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
    """x + value * tensor1 / tensor2; all three broadcast."""

def addcmul(x: _Operand, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
    """x + value * tensor1 * tensor2; all three broadcast."""

def addmm(x: _Operand, mat1: _Operand, mat2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * (mat1 @ mat2), of matrices (m, k) and (k, n); x broadcasts to (m, n)."""

def addmv(x: _Operand, mat: _Operand, vec: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * mv(mat, vec); x broadcasts."""

def addmv_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`addmv`, written into the tensor; returns it."""

def addr(x: _Operand, vec1: _Operand, vec2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * outer(vec1, vec2); x broadcasts."""

def adjoint(x: _Operand) -> Tensor:
    """The conjugate transpose of matrices, the last two dimensions: of real ones a view, else a copy as of `conj`."""

def affine_grid_generator(theta: Any, size: Any, align_corners: Any) -> Tensor:
    """Return `nn.functional.affine_grid`."""

def alias_copy(input: Any, *, out: Any = None) -> Tensor:
    """Return a copy of what `alias` shows, in memory of its own."""

def all(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """Whether every element over `dim` (None: all, (): each on its own) is true (not zero)."""

def allclose(input: Any, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> _bool:
    """Whether all elements are close, as `isclose` says."""

def alpha_dropout(x: _Operand, p: _float = 0.5, training: _bool = False) -> Tensor:
    """Each element where `selu` saturates with probability p; scaled and moved so that mean 0 and variance 1 stay."""

def alpha_dropout_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`alpha_dropout`, written into the tensor; returns it."""

def amax(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """The largest element over `dim` (None or (): all); equals share the gradient.  NaN wins."""

def amin(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """The smallest element over `dim` (None or (): all); equals share the gradient.  NaN wins."""

def aminmax(x: _Operand, *, dim: _int | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
    """`amin` and `amax` along `dim` (None: of all), as a named tuple (min, max)."""

def angle(x: _Operand) -> Tensor:
    """The angle in radians between -pi and pi; of real numbers 0, or pi where negative.  At 0 its derivative is 0."""

def any(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """Whether some element over `dim` (None: all, (): each on its own) is true (not zero)."""

def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Numbers from start (0 if only one is given) up to but not including end."""

def arccos(x: _Operand) -> Tensor:
    """The angle in radians whose cosine is x."""

def arccos_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`acos`, written into the tensor; returns it."""

def arccosh(x: _Operand) -> Tensor:
    """The inverse hyperbolic cosine, for x of at least 1."""

def arccosh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`acosh`, written into the tensor; returns it."""

def arcsin(x: _Operand) -> Tensor:
    """The angle in radians whose sine is x."""

def arcsin_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`asin`, written into the tensor; returns it."""

def arcsinh(x: _Operand) -> Tensor:
    """The inverse hyperbolic sine."""

def arcsinh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`asinh`, written into the tensor; returns it."""

def arctan(x: _Operand) -> Tensor:
    """The angle in radians whose tangent is x."""

def arctan2(a: _Operand, b: _Operand) -> Tensor:
    """The angle in radians of the point (b, a)."""

def arctan_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`atan`, written into the tensor; returns it."""

def arctanh(x: _Operand) -> Tensor:
    """The inverse hyperbolic tangent, for x between -1 and 1."""

def arctanh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`atanh`, written into the tensor; returns it."""

def argmax(x: _Operand, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """Where the largest element along `dim` is, the first of equals; None: in the flattened tensor."""

def argmin(x: _Operand, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """Where the smallest element along `dim` is, the first of equals; None: in the flattened tensor."""

def argsort(x: _Operand, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
    """Where the elements of x, sorted along `dim`, come from; equal ones keep their order, NaN counts as the largest."""

def argwhere(x: _Operand, *, as_tuple: _bool = False) -> Tensor:
    """The places of the elements that are not zero, as one (n, ndim) tensor or as one tensor per dimension."""

def as_strided(x: _Operand, size: _Ints, stride: _Ints, storage_offset: _int | None = None) -> Tensor:
    """The memory of x in another shape and other strides, counted in elements, from an offset on: a view."""

def as_strided_copy(x: Tensor, size: Any, stride: Any, storage_offset: Any = None, *, out: Any = None) -> Any:
    """Return a copy of what `as_strided` shows, in memory of its own."""

def as_strided_scatter(x: _Operand, src: _Operand, size: _Ints, stride: _Ints, storage_offset: _int | None = None) -> Tensor:
    """x with src in the place of x.as_strided(size, stride, storage_offset)."""

def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor, without copying where its memory can be shared."""

def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None, requires_grad: Any = None) -> Tensor:
    """Anything with numbers as a tensor: data as for `tensor`, what knows DLPack, or a buffer of Python's."""

def asin(x: _Operand) -> Tensor:
    """The angle in radians whose sine is x."""

def asin_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`asin`, written into the tensor; returns it."""

def asinh(x: _Operand) -> Tensor:
    """The inverse hyperbolic sine."""

def asinh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`asinh`, written into the tensor; returns it."""

def atan(x: _Operand) -> Tensor:
    """The angle in radians whose tangent is x."""

def atan2(a: _Operand, b: _Operand) -> Tensor:
    """The angle in radians of the point (b, a)."""

def atan_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`atan`, written into the tensor; returns it."""

def atanh(x: _Operand) -> Tensor:
    """The inverse hyperbolic tangent, for x between -1 and 1."""

def atanh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`atanh`, written into the tensor; returns it."""

def atleast_1d(tensors: Sequence[_Operand]) -> tuple[Tensor, ...]:
    """Tensors without dimensions as vectors, others as they are; one, or a tuple of several."""

def atleast_2d(tensors: Sequence[_Operand]) -> tuple[Tensor, ...]:
    """Vectors as matrices of one row, matrices as they are; one, or a tuple of several."""

def atleast_3d(tensors: Sequence[_Operand]) -> tuple[Tensor, ...]:
    """Vectors as the middle one of three dimensions, matrices as the first two; one, or a tuple of several."""

def avg_pool1d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean of each window of images (n, c, *sizes) or (c, *sizes) with 1 spatial dimensions."""

def baddbmm(x: _Operand, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * bmm(batch1, batch2); x broadcasts."""

def bartlett_window(window_length: Any, periodic: Any = True, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Up from 0 to 1 in the middle, and down again."""

def batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: Any, momentum: Any, eps: Any, cudnn_enabled: Any = False) -> Tensor:
    """Return `nn.functional.batch_norm`, whose arguments come in another order."""

def bernoulli(x: _Operand, p: _float | None = None, *, generator: Any = None) -> Tensor:
    """Ones with probability x, zeros otherwise, in the shape and dtype of x."""

def bilinear(input1: _Operand, input2: _Operand, weight: _Operand, bias: _Operand | None = None) -> Tensor:
    """input1^T weight[k] input2 + bias[k] for each k: (..., m), (..., n), (k, m, n), (k,) to (..., k)."""

def binary_cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean') -> Tensor:
    """-(target log x + (1 - target) log(1 - x)) times weight, of probabilities x, logarithms at least -100."""

def binary_cross_entropy_with_logits(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean', pos_weight: _Operand | None = None) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow; pos_weight weighs the positive part."""

def bincount(x: _Operand, weights: _Operand | None = None, minlength: _int = 0) -> Tensor:
    """How often each integer from 0 to the largest in x comes, or how much it weighs; `minlength` places at least."""

def binomial(count: _Operand, prob: _Operand, generator: Any = None) -> Tensor:
    """How many of `count` coins, each with probability `prob`, show heads; in the dtype of count, a floating one."""

def bitwise_and(a: _Operand, b: _Operand) -> Tensor:
    """The bits that both have; of booleans, whether both are true."""

def bitwise_count(x: _Operand) -> Tensor:
    """How many bits of |x| are 1, in uint8."""

def bitwise_left_shift(a: _Operand, b: _Operand) -> Tensor:
    """The bits of a moved up b places: a times 2 to the power b."""

def bitwise_not(x: _Operand) -> Tensor:
    """The bits turned round; of booleans, their opposite."""

def bitwise_not_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`bitwise_not`, written into the tensor; returns it."""

def bitwise_or(a: _Operand, b: _Operand) -> Tensor:
    """The bits that one has; of booleans, whether one is true."""

def bitwise_right_shift(a: _Operand, b: _Operand) -> Tensor:
    """The bits of a moved down b places, the sign kept: a divided by 2 to the power b, rounded down."""

def bitwise_xor(a: _Operand, b: _Operand) -> Tensor:
    """The bits that exactly one has; of booleans, whether they differ."""

def blackman_window(window_length: Any, periodic: Any = True, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """0.42 - 0.5 cos + 0.08 cos of two periods."""

def block_diag(tensors: Sequence[_Operand]) -> Tensor:
    """Matrices along the diagonal of a larger one, zeros elsewhere; vectors are rows."""

def bmm(a: _Operand, b: _Operand) -> Tensor:
    """The products of two stacks of as many matrices, (b, m, k) and (b, k, n)."""

def broadcast_shapes(*shapes: Any) -> Any:
    """The common shape of tensors of these shapes (a number is a shape of one dimension); a ValueError if none."""

def broadcast_tensors(tensors: Sequence[_Operand]) -> tuple[Tensor, ...]:
    """The tensors as views of their common shape."""

def broadcast_to(x: _Operand, *shape: _Ints) -> Tensor:
    """`expand`, by NumPy's name."""

def bucketize(x: _Operand, boundaries: _Operand, *, out_int32: _bool = False, right: _bool = False) -> Tensor:
    """In which of the buckets between sorted boundaries each element of x is: `searchsorted` the other way round."""

def can_cast(from_: Any, to: Any) -> _bool:
    """Whether a dtype may become another where results are written: not complex numbers real, nor floats integers."""

def cartesian_prod(tensors: Sequence[_Operand]) -> Tensor:
    """All choices of one element from each vector, a row for each, the last varying fastest; of one vector, itself."""

def cat(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """The tensors one after the other along an existing dimension; their other sizes agree."""

def cbrt(x: _Operand) -> Tensor:
    """The cube root, of the sign of x."""

def cbrt_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cbrt`, written into the tensor; returns it."""

def cdist(x1: _Operand, x2: _Operand, p: _float = 2.0, compute_mode: _str | None = None) -> Tensor:
    """The p-norm distance of each row of x1, (..., m, d), from each row of x2, (..., n, d): (..., m, n)."""

def ceil(x: _Operand) -> Tensor:
    """The smallest integer not below x; its derivative is 0."""

def ceil_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`ceil`, written into the tensor; returns it."""

def celu(x: _Operand, alpha: _float = 1.0) -> Tensor:
    """x where positive, alpha * expm1(x / alpha) elsewhere: `elu` with slope 1 at 0 for every alpha but 0."""

def celu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`celu`, written into the tensor; returns it."""

def chain_matmul(matrices: Sequence[_Operand]) -> Tensor:
    """`linalg.multi_dot` of matrices, given one by one."""

def channel_shuffle(x: _Operand, groups: _int) -> Tensor:
    """Channels (n, c, *sizes), in so many groups one after the other, interleaved: the first of each, the second, ..."""

def cholesky(A: _Operand, upper: _bool = False) -> Tensor:
    """The lower triangular L with A = L L^H, or the upper with A = U^H U, of Hermitian positive definite matrices."""

def cholesky_inverse(L: _Operand, upper: _bool = False) -> Tensor:
    """The inverse of L L^H, or with `upper` of L^H L, for triangular L."""

def cholesky_solve(x: _Operand, L: _Operand, upper: _bool = False) -> Tensor:
    """The solution of L L^H X = x, or with `upper` of L^H L X = x, for triangular L."""

def chunk(x: _Operand, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal size along `dim`, the last one possibly smaller."""

def clamp(x: _Operand, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
    """x, but at least min and at most max (which wins over min): numbers, or tensors that broadcast."""

def clamp_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`clamp`, written into the tensor; returns it."""

def clamp_max(x: _Operand, max: _Operand) -> Tensor:
    """x, but at most max, a number or a tensor: `clamp` with one bound."""

def clamp_max_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`clamp_max`, written into the tensor; returns it."""

def clamp_min(x: _Operand, min: _Operand) -> Tensor:
    """x, but at least min, a number or a tensor: `clamp` with one bound."""

def clamp_min_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`clamp_min`, written into the tensor; returns it."""

def clip(x: _Operand, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
    """x, but at least min and at most max (which wins over min): numbers, or tensors that broadcast."""

def clip_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`clamp`, written into the tensor; returns it."""

def clone(input: Any, *, memory_format: Any = ...) -> Tensor:
    """A copy that gradients pass through; it keeps the order in memory unless a format is given."""

def column_stack(tensors: Sequence[_Operand]) -> Tensor:
    """Tensors one beside the other; those of one dimension are columns."""

def combinations(x: _Operand, r: _int = 2, with_replacement: _bool = False) -> Tensor:
    """The ways to choose r elements of a vector, in order, one per row; with replacement, the same ones again too."""

def complex(real: _Operand, imag: _Operand) -> Tensor:
    """Complex numbers of real and imaginary parts, which broadcast; both float32, or both float64."""

def concat(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """The tensors one after the other along an existing dimension; their other sizes agree."""

def concatenate(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """The tensors one after the other along an existing dimension; their other sizes agree."""

def conj(input: Any) -> Tensor:
    """Return the complex conjugate, or a real tensor itself."""

def conj_physical(x: _Operand) -> Tensor:
    """The complex conjugate as a tensor of its own; a real tensor itself."""

def conj_physical_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`conj_physical`, written into the tensor; returns it."""

def constant_pad_nd(x: _Operand, pad: _Ints, value: _Number = 0) -> Tensor:
    """x with places of `value` before and after, from the last dimension on; negative numbers cut off."""

def conv1d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: Any = 0, dilation: _Ints = 1, groups: _int = 1) -> Tensor:
    """Slides a kernel over images with 1 spatial dimensions: (n, c, *sizes) to (n, o, *size)."""

def conv2d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: Any = 0, dilation: _Ints = 1, groups: _int = 1) -> Tensor:
    """Slides a kernel over images with 2 spatial dimensions: (n, c, *sizes) to (n, o, *size)."""

def conv3d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: Any = 0, dilation: _Ints = 1, groups: _int = 1) -> Tensor:
    """Slides a kernel over images with 3 spatial dimensions: (n, c, *sizes) to (n, o, *size)."""

def conv_tbc(input: Any, weight: Any, bias: Any, pad: Any = 0) -> Tensor:
    """Return the convolution of (time, batch, channels in) with weights (kernel, channels in, channels out)."""

def conv_transpose1d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: _Ints = 0, output_padding: _Ints = 0, groups: _int = 1, dilation: _Ints = 1) -> Tensor:
    """`conv1d` transposed: (n, o, *sizes) to (n, c, *size), every place spread through the kernel."""

def conv_transpose2d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: _Ints = 0, output_padding: _Ints = 0, groups: _int = 1, dilation: _Ints = 1) -> Tensor:
    """`conv2d` transposed: (n, o, *sizes) to (n, c, *size), every place spread through the kernel."""

def conv_transpose3d(x: _Operand, weight: _Operand, bias: _Operand | None = None, stride: _Ints = 1, padding: _Ints = 0, output_padding: _Ints = 0, groups: _int = 1, dilation: _Ints = 1) -> Tensor:
    """`conv3d` transposed: (n, o, *sizes) to (n, c, *size), every place spread through the kernel."""

def copysign(a: _Operand, b: _Operand) -> Tensor:
    """|a| with the sign of b, that of -0.0 too; its derivative by a is 0 where a is 0, that by b is 0."""

def corrcoef(x: _Operand) -> Tensor:
    """Pearson's coefficients of correlation of variables, one per row of x: their covariances, divided by the"""

def cos(x: _Operand) -> Tensor:
    """The cosine of x radians."""

def cos_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cos`, written into the tensor; returns it."""

def cosh(x: _Operand) -> Tensor:
    """The hyperbolic cosine."""

def cosh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cosh`, written into the tensor; returns it."""

def cosine_embedding_loss(input1: _Operand, input2: _Operand, target: _Operand, margin: _float = 0.0, reduction: _str = 'mean') -> Tensor:
    """With c the cosine of the angle between vectors: 1 - c where the target is 1, max(0, c - margin) where it is -1."""

def cosine_similarity(x1: _Operand, x2: _Operand, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """sum(x1 * x2) / (norm(x1) * norm(x2)) along dim, each norm at least eps; x1 and x2 broadcast."""

def count_nonzero(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """How many elements over `dim` (None or (): all) are not zero, in int64."""

def cov(x: _Operand, *, correction: _int = 1, fweights: _Operand | None = None, aweights: _Operand | None = None) -> Tensor:
    """The covariances of variables, one per row of x, observed in its columns; of one row, the variance."""

def cross(x: _Operand, other: _Operand, dim: _int | None = None) -> Tensor:
    """`linalg.cross`; without `dim`, along the first dimension of size 3."""

def cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean', label_smoothing: _float = 0.0) -> Tensor:
    """-sum(p * log softmax(x)) over the classes: x any numbers, p the wanted probabilities."""

def ctc_loss(log_probs: _Operand, targets: _Operand, input_lengths: Any, target_lengths: Any, blank: _int = 0, reduction: _str = 'mean', zero_infinity: _bool = False) -> Tensor:
    """-log of the probability that the steps spell the target, once repeated labels are merged and blanks dropped."""

def cummax(x: _Operand, dim: _int) -> tuple[Tensor, Tensor]:
    """The largest elements up to each place along `dim` and where they are, the last of equals.  NaN wins."""

def cummin(x: _Operand, dim: _int) -> tuple[Tensor, Tensor]:
    """The smallest elements up to each place along `dim` and where they are, the last of equals.  NaN wins."""

def cumprod(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The products of the elements up to each place along `dim`; derivatives of every order hold where factors are 0."""

def cumprod_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cumprod`, written into the tensor; returns it."""

def cumsum(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sums of the elements up to each place along `dim`.  Integers and booleans add up in int64."""

def cumsum_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cumsum`, written into the tensor; returns it."""

def cumulative_trapezoid(y: _Operand, x: _Operand | None = None, *, dx: _Number | None = None, dim: _int = -1) -> Tensor:
    """The integrals of y up to each place but the first, as `trapezoid` takes them."""

def deg2rad(x: _Operand) -> Tensor:
    """Degrees in radians."""

def deg2rad_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`deg2rad`, written into the tensor; returns it."""

def det(A: _Operand) -> Tensor:
    """The determinants of square matrices; the derivative holds for singular ones too."""

def detach(x: _Operand) -> Tensor:
    """The same memory outside every graph: an operator, so that each level it passes cuts its own."""

def detach_(x: Any) -> Tensor:
    """Take the tensor out of its graph, as if it were a leaf without gradient; returns it."""

def detach_copy(x: Tensor, *, out: Any = None) -> Any:
    """Return a copy of what `detach` shows, in memory of its own."""

def diag(x: _Operand, diagonal: _int = 0) -> Tensor:
    """A vector on the diagonal of a matrix of zeros; of a matrix, the diagonal as a vector, a copy."""

def diag_embed(x: _Operand, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """Zeros with the last dimension of x on the diagonal of two dimensions of the result, `offset` beside the main one."""

def diagflat(x: _Operand, offset: _int = 0) -> Tensor:
    """All elements, in row-major order, on the diagonal of a matrix of zeros."""

def diagonal(x: _Operand, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """The elements whose index along dim2 is `offset` more than along dim1, as the last dimension: a view."""

def diagonal_copy(x: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Any = None) -> Any:
    """Return a copy of what `diagonal` shows, in memory of its own."""

def diagonal_scatter(x: _Operand, src: _Operand, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """x with src on the diagonal that x.diagonal(offset, dim1, dim2) shows."""

def diff(x: _Operand, n: _int = 1, dim: _int = -1, prepend: _Operand | None = None, append: _Operand | None = None) -> Tensor:
    """The differences of neighbours along `dim`, taken n times; before that, x may be lengthened at both ends."""

def digamma(x: _Operand) -> Tensor:
    """The derivative of `lgamma`; NaN at the negative integers, infinite at 0."""

def digamma_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`digamma`, written into the tensor; returns it."""

def dist(x: _Operand, other: _Operand, p: _Number = 2) -> Tensor:
    """The p-norm of x - other, as `norm` takes it of all elements; its derivative where they agree is 0."""

def div(a: _Operand, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
    """Elementwise quotient a / b, of floating dtype."""

def divide(a: _Operand, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
    """a / b; with rounding_mode="floor" rounded down, with "trunc" towards 0, of the operands' dtype and derivative 0."""

def dot(a: _Operand, b: _Operand) -> Tensor:
    """The sum of the products of two vectors of one size; nothing is conjugated."""

def dropout(x: _Operand, p: _float = 0.5, training: _bool = True) -> Tensor:
    """Each element 0 with probability p, else divided by 1 - p; x itself when not training."""

def dropout_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`dropout`, written into the tensor; returns it."""

def dsplit(x: _Operand, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the third of three dimensions or more; a number must divide it."""

def dstack(tensors: Sequence[_Operand]) -> Tensor:
    """Tensors one after the other along the third dimension, which matrices and vectors get as a last one."""

def einsum(equation: _str, operands: Sequence[_Operand]) -> Tensor:
    """Sums of products by Einstein's convention: letters name dimensions, those not in the result are summed."""

def embedding(ids: _Operand, weight: _Operand, padding_idx: _int | None = None, max_norm: _float | None = None, norm_type: _float = 2.0, scale_grad_by_freq: _bool = False, sparse: _bool = False) -> Tensor:
    """The rows of weight (rows, size) that the integers `ids` name: (*ids.shape, size)."""

def empty(*size: Any, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """A tensor of the given shape whose values nobody promises (they are zeros)."""

def empty_like(input: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """A tensor in the shape of the input whose values nobody promises (they are zeros)."""

def empty_strided(size: Any, stride: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """A tensor of these strides, counted in elements, whose values nobody promises (they are zeros)."""

def eq(a: _Operand, b: _Operand) -> Tensor:
    """Whether a equals b, element by element."""

def equal(input: Any, other: Any) -> _bool:
    """Whether two tensors have the same shape and the same elements, NaN being equal to nothing."""

def erf(x: _Operand) -> Tensor:
    """The error function."""

def erf_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`erf`, written into the tensor; returns it."""

def erfc(x: _Operand) -> Tensor:
    """1 - erf(x), exact where erf(x) is near 1."""

def erfc_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`erfc`, written into the tensor; returns it."""

def erfinv(x: _Operand) -> Tensor:
    """The inverse of erf, from (-1, 1): infinite at the ends, NaN beyond."""

def erfinv_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`erfinv`, written into the tensor; returns it."""

def exp(x: _Operand) -> Tensor:
    """e to the power x."""

def exp2(x: _Operand) -> Tensor:
    """2 to the power x."""

def exp2_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`exp2`, written into the tensor; returns it."""

def exp_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`exp`, written into the tensor; returns it."""

def expand(x: _Operand, *shape: _Ints) -> Tensor:
    """Dimensions of size 1 repeated, and new ones in front, without copying; -1 keeps a size."""

def expand_copy(input: Any, size: Any, *, implicit: Any = False, out: Any = None) -> Tensor:
    """Return a copy of what `expand` shows, in memory of its own."""

def expm1(x: _Operand) -> Tensor:
    """exp(x) - 1, exact for small x."""

def expm1_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`expm1`, written into the tensor; returns it."""

def eye(n: _int, m: Any = None, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Ones on the diagonal of an n x m matrix (m: n), zeros elsewhere."""

def feature_alpha_dropout(x: _Operand, p: _float = 0.5, training: _bool = False) -> Tensor:
    """`alpha_dropout` of whole channels of x (n, channels, ...)."""

def feature_alpha_dropout_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`feature_alpha_dropout`, written into the tensor; returns it."""

def feature_dropout(x: _Operand, p: _float, train: _bool) -> Tensor:
    """Each channel of x (n, channels, ...) 0 with probability p, else divided by 1 - p; x itself when not training."""

def feature_dropout_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`feature_dropout`, written into the tensor; returns it."""

def fill(x: _Operand, value: _Operand) -> Tensor:
    """A number, or a tensor without dimensions, in the shape and dtype of x."""

def fill_(x: Any, value: Any) -> Tensor:
    """Write one value everywhere; returns x."""

def fix(x: _Operand) -> Tensor:
    """x without its fraction; its derivative is 0."""

def fix_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`trunc`, written into the tensor; returns it."""

def flatten(x: _Operand, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """Dimensions start_dim to end_dim, both included, as one."""

def flip(x: _Operand, *dims: _Ints) -> Tensor:
    """The elements in reverse order along the given dimensions; a copy, as in PyTorch."""

def fliplr(x: _Operand) -> Tensor:
    """The second dimension in reverse order; a copy."""

def flipud(x: _Operand) -> Tensor:
    """The first dimension in reverse order; a copy."""

def float_power(x: _Operand, exponent: _Operand) -> Tensor:
    """x to the power exponent in double precision, whatever the operands' dtypes."""

def floor(x: _Operand) -> Tensor:
    """The largest integer not above x; its derivative is 0."""

def floor_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`floor`, written into the tensor; returns it."""

def floor_divide(a: _Operand, b: _Operand) -> Tensor:
    """The quotient rounded down; its derivative is 0.  ZeroDivisionError if an integer is divided by 0."""

def fmax(a: _Operand, b: _Operand) -> Tensor:
    """The larger of the two, the other where one is NaN; of equals, a has the gradient."""

def fmin(a: _Operand, b: _Operand) -> Tensor:
    """The smaller of the two, the other where one is NaN; of equals, a has the gradient."""

def fmod(a: _Operand, b: _Operand) -> Tensor:
    """a - trunc(a / b) * b: what is left, with the sign of a."""

def frac(x: _Operand) -> Tensor:
    """The fraction of x, of its sign: x - trunc(x); its derivative is 1."""

def frac_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`frac`, written into the tensor; returns it."""

def frexp(x: _Operand) -> tuple[Tensor, Tensor]:
    """x as mantissa * 2**exponent, a named tuple: |mantissa| is in [0.5, 1), or 0; the exponent is int32."""

def frobenius_norm(x: _Operand, dim: _Ints, keepdim: _bool = False) -> Tensor:
    """The square root of the sum of squares over `dim`."""

def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: Any = None) -> Tensor:
    """The memory of another library's array as a tensor, by the protocol DLPack."""

def from_numpy(array: Any) -> Tensor:
    """A tensor that shares the array's memory: what is written to one shows in the other."""

def frombuffer(buffer: Any, *, dtype: Any, count: Any = -1, offset: Any = 0, requires_grad: Any = False) -> Tensor:
    """The memory of a Python object as a tensor of one dimension, not copied; read-only where the object is."""

def full(size: Any, fill_value: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """One value in the given shape; without dtype, of the dtype that the value has."""

def full_like(x: Tensor, fill_value: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """One value in the shape of x, and in its dtype unless another is given."""

def gather(x: _Operand, dim: _int, index: _Operand, *, sparse_grad: _bool = False) -> Tensor:
    """Per position of `index`, the element of x at that place along `dim`; places count from 0."""

def gcd(a: _Operand, b: _Operand) -> Tensor:
    """The greatest common divisor of |a| and |b|; gcd(0, b) is |b|."""

def gcd_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`gcd`, written into the tensor; returns it."""

def ge(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at least b, element by element."""

def gelu(x: _Operand, *, approximate: _str = 'none') -> Tensor:
    """x times the normal distribution function: exact, or with approximate="tanh" by that formula."""

def gelu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`gelu`, written into the tensor; returns it."""

def geqrf(x: _Operand) -> tuple[Tensor, Tensor]:
    """Return the QR factorisation of matrices (..., m, n) as LAPACK stores it, for `ormqr` and `orgqr`."""

def ger(a: _Operand, b: _Operand) -> Tensor:
    """Every product of an element of one vector and one of another: (m,) and (n,) to (m, n)."""

def get_default_device() -> Any:
    """Where new tensors are made: on the CPU."""

def get_device(input: Any) -> _int:
    """The number of the accelerator that the tensor is on: -1, which stands for the CPU."""

def get_rng_state() -> Any:
    """The default generator's state, for `set_rng_state`."""

def gradient(x: _Operand, *, spacing: Any = 1, dim: _Ints | None = None, edge_order: _int = 1) -> tuple[Tensor, ...]:
    """The slopes of sampled functions along each of the dimensions, as a tuple: second order inside."""

def greater(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is greater than b, element by element."""

def greater_equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at least b, element by element."""

def grid_sampler(input: Any, grid: Any, interpolation_mode: Any, padding_mode: Any, align_corners: Any) -> Tensor:
    """Return `nn.functional.grid_sample`, with 0, 1 and 2 for the modes, in PyTorch's order."""

def grid_sampler_2d(input: Any, grid: Any, interpolation_mode: Any, padding_mode: Any, align_corners: Any) -> Tensor:
    """Return `nn.functional.grid_sample`, with 0, 1 and 2 for the modes, in PyTorch's order."""

def grid_sampler_3d(input: Any, grid: Any, interpolation_mode: Any, padding_mode: Any, align_corners: Any) -> Tensor:
    """Return `nn.functional.grid_sample`, with 0, 1 and 2 for the modes, in PyTorch's order."""

def group_norm(x: _Operand, num_groups: _int, weight: _Operand | None = None, bias: _Operand | None = None, eps: _float = 1e-05) -> Tensor:
    """Each sample with mean 0 and variance 1 in each of `num_groups` groups of its channels; times weight, plus bias."""

def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """Return the next state of a GRU, as `nn.GRUCell` computes it."""

def gt(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is greater than b, element by element."""

def hamming_window(window_length: Any, periodic: Any = True, alpha: Any = 0.54, beta: Any = 0.46, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """alpha - beta cos, over one period."""

def hann_window(window_length: Any, periodic: Any = True, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """0.5 - 0.5 cos, over one period."""

def hardshrink(x: _Operand, lambd: _float = 0.5) -> Tensor:
    """x, but 0 from -lambd to lambd, the ends included, where the derivative is 0."""

def heaviside(x: _Operand, values: _Operand) -> Tensor:
    """0 where x is negative, 1 where it is positive, `values` where it is 0.  The derivative by x is 0."""

def hinge_embedding_loss(x: _Operand, target: _Operand, margin: _float = 1.0, reduction: _str = 'mean') -> Tensor:
    """x, a distance, where the target is 1; max(0, margin - x) where it is -1."""

def histc(x: _Operand, bins: _int = 100, min: _Number = 0, max: _Number = 0) -> Tensor:
    """How many elements are in each of `bins` equal bins from min to max; if these are equal, from the extremes of x."""

def histogram(x: _Operand, bins: Any, *, range: Any = None, weight: _Operand | None = None, density: _bool = False) -> tuple[Tensor, Tensor]:
    """How many elements are in each bin, and the edges of the bins, as a named tuple (hist, bin_edges)."""

def histogramdd(input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: Any = False) -> Any:
    """`histogram` of points, the rows of a matrix or of a stack of them, as a named tuple (hist, bin_edges)."""

def hsplit(x: _Operand, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the second dimension, or the only one; a number must divide it."""

def hstack(tensors: Sequence[_Operand]) -> Tensor:
    """Tensors one after the other along the second dimension, or the only one."""

def huber_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', delta: _float = 1.0, weight: _Operand | None = None) -> Tensor:
    """With d = abs(x - target): d^2 / 2 where d < delta, delta * (d - delta / 2) elsewhere; times weight."""

def hypot(a: _Operand, b: _Operand) -> Tensor:
    """sqrt(a^2 + b^2), without overflow; at the origin, where there is none, the derivative is NaN."""

def i0(x: _Operand) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""

def i0_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`i0`, written into the tensor; returns it."""

def igamma(a: _Operand, x: _Operand) -> Tensor:
    """The regularized lower incomplete gamma function: a gamma number of shape a is below x with this probability."""

def igammac(a: _Operand, x: _Operand) -> Tensor:
    """The regularized upper incomplete gamma function: 1 - igamma(a, x), exact where that is small."""

def imag(x: _Operand) -> Tensor:
    """The imaginary parts, as a view; RuntimeError if the dtype is not complex."""

def index_add(x: _Operand, dim: _int, index: _Operand, source: _Operand, *, alpha: _Number = 1) -> Tensor:
    """x with the slices of source, times alpha, added at the places along `dim` that a 1-d integer tensor names."""

def index_copy(x: _Operand, dim: _int, index: _Operand, source: _Operand) -> Tensor:
    """x with the slices of source in the places along `dim` that a 1-d integer tensor names, each once."""

def index_fill(x: _Operand, dim: _int, index: _Operand, value: _Operand) -> Tensor:
    """x with a number, or a tensor without dimensions, in the places along `dim` that `index` names; -1 is the last."""

def index_put(input: Any, indices: Any, values: Any, accumulate: Any = False) -> Any:
    """`input` with values, which broadcast, written or added at input[indices], a tuple of index tensors."""

def index_put_(x: Any, indices: Any, values: Any, accumulate: Any = False) -> Tensor:
    """Write or add values at x[indices], a tuple of index tensors; returns x."""

def index_reduce(x: _Operand, dim: _int, index: _Operand, source: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
    """x with the slices of source merged into places along `dim`: "prod", "mean", "amax", "amin" as in scatter_reduce."""

def index_select(x: _Operand, dim: _int, index: _Operand) -> Tensor:
    """The slices along `dim` that a 1-d integer tensor names, in its order; places count from 0."""

def initial_seed() -> Any:
    """The seed that the default generator was started from."""

def inner(a: _Operand, b: _Operand) -> Tensor:
    """The sum of products over the last dimension of each; a tensor without dimensions multiplies."""

def instance_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: Any, momentum: Any, eps: Any, cudnn_enabled: Any = False) -> Tensor:
    """Return `nn.functional.instance_norm`, whose arguments come in another order."""

def inverse(A: _Operand) -> Tensor:
    """The inverse of square matrices; LinAlgError if one is singular.  To solve A X = B, `linalg.solve` does better."""

def is_complex(input: Any) -> _bool:
    """Whether the dtype is complex."""

def is_conj(input: Any) -> _bool:
    """Whether a conjugation is pending: never here, where `conj` computes at once."""

def is_floating_point(input: Any) -> _bool:
    """Whether the dtype is a real floating one."""

def is_inference(input: Any) -> _bool:
    """Whether the tensor was made in inference mode, so that it can't take part in a graph."""

def is_neg(input: Any) -> _bool:
    """Whether a negation is pending: never here, where `imag` of a conjugate is computed at once."""

def is_nonzero(input: Any) -> _bool:
    """Whether the one element of the tensor is not 0; RuntimeError if it has none or several."""

def is_same_size(input: Any, other: Any) -> _bool:
    """Whether two tensors have one shape."""

def is_signed(input: Any) -> _bool:
    """Whether the dtype has negative numbers."""

def is_tensor(obj: Any) -> _bool:
    """Whether an object is a tensor."""

def is_warn_always_enabled() -> _bool:
    """What `set_warn_always` was last told; it changes nothing."""

def isclose(a: _Operand, b: _Operand, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
    """Whether |a - b| <= atol + rtol * |b|; equal infinities are close, and NaN is close to NaN if equal_nan is set."""

def isfinite(x: _Operand) -> Tensor:
    """Whether x is neither infinite nor NaN."""

def isin(elements: _Operand, test_elements: _Operand, *, assume_unique: _bool = False, invert: _bool = False) -> Tensor:
    """Whether each of `elements` is (`invert`: is not) among `test_elements`; one of the two may be a number."""

def isinf(x: _Operand) -> Tensor:
    """Whether x is infinite, of either sign."""

def isnan(x: _Operand) -> Tensor:
    """Whether x is not a number."""

def isneginf(x: _Operand) -> Tensor:
    """Whether x is infinite and negative."""

def isposinf(x: _Operand) -> Tensor:
    """Whether x is infinite and positive."""

def isreal(x: _Operand) -> Tensor:
    """Whether the imaginary part is 0; true for all real numbers, NaN included."""

def istft(x: _Operand, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: _Operand | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
    """Return the signals whose `stft` is closest to spectra x (..., frequencies, frames), by least squares."""

def kaiser_window(window_length: Any, periodic: Any = True, beta: Any = 12.0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """I0(beta sqrt(1 - t^2)) / I0(beta) for t from -1 to 1, where I0 is the modified Bessel function of order 0."""

def kl_div(x: _Operand, target: _Operand, reduction: _str = 'mean', log_target: _bool = False) -> Tensor:
    """target * (log(target) - x), 0 where target is 0: x holds logarithms of probabilities."""

def kron(a: _Operand, b: _Operand) -> Tensor:
    """The Kronecker product: each element of a times the whole of b, in a's order."""

def kthvalue(x: _Operand, k: _int, dim: _int | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element (from 1) along `dim` (None: the last), and where it is."""

def l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', weight: _Operand | None = None) -> Tensor:
    """abs(x - target) times weight, averaged, added up or as it is; the mean is over the weights."""

def layer_norm(x: _Operand, normalized_shape: _Ints, weight: _Operand | None = None, bias: _Operand | None = None, eps: _float = 1e-05) -> Tensor:
    """x with mean 0 and variance 1 over its last dimensions, `normalized_shape`; times weight, plus bias."""

def lcm(a: _Operand, b: _Operand) -> Tensor:
    """The least common multiple of |a| and |b|; 0 where one is 0."""

def lcm_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`lcm`, written into the tensor; returns it."""

def ldexp(x: _Operand, exponent: _Operand) -> Tensor:
    """x times 2 to the power exponent."""

def ldexp_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`ldexp`, written into the tensor; returns it."""

def le(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at most b, element by element."""

def leaky_relu(x: _Operand, negative_slope: _Number = 0.01) -> Tensor:
    """x where positive, negative_slope * x elsewhere."""

def leaky_relu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`leaky_relu`, written into the tensor; returns it."""

def lerp(x: _Operand, end: _Operand, weight: _Operand) -> Tensor:
    """x + weight * (end - x): x where weight is 0, and exactly `end` where it is 1."""

def less(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is less than b, element by element."""

def less_equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is at most b, element by element."""

def lgamma(x: _Operand) -> Tensor:
    """The logarithm of |gamma(x)|; infinite at 0 and the negative integers."""

def lgamma_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`lgamma`, written into the tensor; returns it."""

def linear(x: _Operand, weight: _Operand, bias: _Operand | None = None) -> Tensor:
    """x @ weight.T + bias: x (..., in), weight (out, in), bias (out,) to (..., out), as one matrix product."""

def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """`steps` numbers at equal distances from start to end, both included; integers are cut off towards 0."""

def lobpcg(A: Any, k: Any = None, B: Any = None, X: Any = None, n: Any = None, iK: Any = None, niter: Any = None, tol: Any = None, largest: Any = None, method: Any = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None) -> Any:
    """Return the k largest eigenvalues e of A x = e B x, (..., k), and their vectors x, (..., m, k), by LOBPCG."""

def log(x: _Operand) -> Tensor:
    """The natural logarithm."""

def log10(x: _Operand) -> Tensor:
    """The logarithm to base 10."""

def log10_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`log10`, written into the tensor; returns it."""

def log1p(x: _Operand) -> Tensor:
    """log(1 + x), exact for small x."""

def log1p_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`log1p`, written into the tensor; returns it."""

def log2(x: _Operand) -> Tensor:
    """The logarithm to base 2."""

def log2_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`log2`, written into the tensor; returns it."""

def log_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`log`, written into the tensor; returns it."""

def log_softmax(x: _Operand, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
    """log(softmax(x)) along dim, exact where the softmax is small; computed in `dtype`, None for that of x."""

def logaddexp(a: _Operand, b: _Operand) -> Tensor:
    """log(exp(a) + exp(b)), without overflow."""

def logaddexp2(a: _Operand, b: _Operand) -> Tensor:
    """log2(2^a + 2^b), without overflow."""

def logcumsumexp(x: _Operand, dim: _int) -> Tensor:
    """log(cumsum(exp(x))) along `dim`, without overflow, in values and in derivatives."""

def logdet(A: _Operand) -> Tensor:
    """The logarithms of the determinants of square matrices: NaN where negative, -inf where 0."""

def logical_and(a: _Operand, b: _Operand) -> Tensor:
    """Whether both are true (not zero)."""

def logical_not(x: _Operand) -> Tensor:
    """Whether x is false (zero)."""

def logical_not_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`logical_not`, written into the tensor; returns it."""

def logical_or(a: _Operand, b: _Operand) -> Tensor:
    """Whether at least one is true (not zero)."""

def logical_xor(a: _Operand, b: _Operand) -> Tensor:
    """Whether exactly one is true (not zero)."""

def logit(x: _Operand, eps: _float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first clamped to [eps, 1 - eps]."""

def logit_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`logit`, written into the tensor; returns it."""

def logspace(start: Any, end: Any, steps: Any, base: Any = 10.0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """`steps` powers of the base, whose exponents are at equal distances from start to end."""

def logsumexp(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """log(sum(exp(x))) over `dim` (None or (): all), without overflow; -inf where there is nothing."""

def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Return the next (h, c) of an LSTM, from hx = (h, c), as `nn.LSTMCell` computes it."""

def lt(a: _Operand, b: _Operand) -> Tensor:
    """Whether a is less than b, element by element."""

def lu_solve(x: _Operand, LU_data: _Operand, LU_pivots: _Operand) -> Tensor:
    """`linalg.lu_solve`, with the right side first."""

def lu_unpack(LU_data: _Operand, LU_pivots: _Operand, unpack_data: _bool = True, unpack_pivots: _bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U of what `linalg.lu_factor` gives; empty where not asked for."""

def manual_seed(seed: Any) -> Any:
    """Seed the default generator, and return it."""

def margin_ranking_loss(input1: _Operand, input2: _Operand, target: _Operand, margin: _float = 0.0, reduction: _str = 'mean') -> Tensor:
    """max(0, margin - target * (input1 - input2)): target is 1 where input1 should be the larger, -1 where not."""

def masked_fill(x: _Operand, mask: _Operand, value: _Operand) -> Tensor:
    """`value`, a number or a tensor without dimensions, where the mask is true, x elsewhere; the two broadcast."""

def masked_scatter(x: _Operand, mask: _Operand, source: _Operand) -> Tensor:
    """x with the elements of `source`, in their order, where the mask is true; x and the mask broadcast."""

def masked_select(x: _Operand, mask: _Operand) -> Tensor:
    """The elements of x where the mask is true, as a 1-d tensor; the two broadcast."""

def matmul(a: _Operand, b: _Operand) -> Tensor:
    """The matrix product: (..., m, k) times (..., k, n) is (..., m, n); the dimensions in front broadcast."""

def matrix_exp(A: _Operand) -> Tensor:
    """The exponential of square matrices, the sum of A^n / n!.  Needs SciPy."""

def matrix_power(A: _Operand, n: _int) -> Tensor:
    """Square matrices to the power n, by squaring; of a negative n, their inverses."""

def matrix_transpose(A: _Operand) -> Tensor:
    """Matrices, the last two dimensions, with rows and columns exchanged, as in NumPy: a view."""

def max(x: _Operand, dim: Any = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
    """The largest of all; along `dim`, a named tuple (values, indices); with a second tensor, `maximum`."""

def max_pool1d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Tensor:
    """The largest element of each window of images (n, c, *sizes) or (c, *sizes) with 1 spatial dimensions."""

def max_pool1d_with_indices(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
    """Return `max_pool1d` as a named tuple (values, indices)."""

def max_pool2d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Tensor:
    """The largest element of each window of images (n, c, *sizes) or (c, *sizes) with 2 spatial dimensions."""

def max_pool3d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Tensor:
    """The largest element of each window of images (n, c, *sizes) or (c, *sizes) with 3 spatial dimensions."""

def maximum(a: _Operand, b: _Operand) -> Tensor:
    """The larger of the two; equals share the gradient."""

def mean(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum over `dim` (None or (): all) divided by the number of elements; NaN where there are none."""

def median(x: _Operand, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """The median, the lower of two in the middle; along `dim`, a named tuple (values, indices).  NaN wins."""

def meshgrid(tensors: Sequence[_Operand], *, indexing: _str = 'ij') -> tuple[Tensor, ...]:
    """Of vectors, as many tensors with a dimension for each: the i-th varies along dimension i, as its vector does."""

def min(x: _Operand, dim: Any = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
    """The smallest of all; along `dim`, a named tuple (values, indices); with a second tensor, `minimum`."""

def minimum(a: _Operand, b: _Operand) -> Tensor:
    """The smaller of the two; equals share the gradient."""

def mm(a: _Operand, b: _Operand) -> Tensor:
    """The product of two matrices, (m, k) and (k, n)."""

def mode(x: _Operand, dim: _int = -1, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent value along `dim`, the smallest of several, and where it comes last.  NaN equals nothing."""

def moveaxis(x: _Operand, source: _Ints, destination: _Ints) -> Tensor:
    """Dimensions moved to other places, the rest in their old order."""

def movedim(x: _Operand, source: _Ints, destination: _Ints) -> Tensor:
    """Dimensions moved to other places, the rest in their old order."""

def mse_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', weight: _Operand | None = None) -> Tensor:
    """(x - target)^2 times weight, averaged, added up or as it is; the mean is over the weights."""

def msort(x: _Operand) -> Tensor:
    """The elements in order along the first dimension."""

def mul(a: _Operand, b: _Operand) -> Tensor:
    """Elementwise product; operands broadcast."""

def multinomial(x: _Operand, num_samples: _int, replacement: _bool = False, *, generator: Any = None) -> Tensor:
    """Draws the places of `num_samples` entries of each row of x, an entry as often as it is large."""

def multiply(a: _Operand, b: _Operand) -> Tensor:
    """Elementwise product; operands broadcast."""

def mv(a: _Operand, b: _Operand) -> Tensor:
    """The product of a matrix (m, k) and a vector (k,)."""

def mvlgamma(x: _Operand, p: _int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p: of x in place of (degrees of freedom) / 2."""

def mvlgamma_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`mvlgamma`, written into the tensor; returns it."""

def nan_to_num(x: _Operand, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """x with numbers for NaN (default 0) and for infinities (default the dtype's largest); there the derivative is 0."""

def nan_to_num_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`nan_to_num`, written into the tensor; returns it."""

def nanmean(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The mean over `dim` (None or (): all) of what is not NaN; NaN where nothing else is."""

def nanmedian(x: _Operand, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """`median` of what is not NaN; NaN where nothing else is."""

def nanquantile(x: _Operand, q: _Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
    """`quantile` of what is not NaN; NaN where nothing else is."""

def nansum(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum over `dim` (None or (): all) of what is not NaN; real numbers only."""

def narrow(x: _Operand, dim: _int, start: _int, length: _int) -> Tensor:
    """`length` places from `start` on, which may be counted from the end, along `dim`."""

def narrow_copy(x: _Operand, dim: _int, start: _int, length: _int) -> Tensor:
    """`narrow`, as a copy."""

def native_batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: Any, momentum: Any, eps: Any) -> Any:
    """Return `nn.functional.batch_norm`, and when training means and inverse deviations, without gradients."""

def native_channel_shuffle(input: Any, groups: Any) -> Tensor:
    """Return `channel_shuffle`."""

def native_dropout(input: Any, p: Any, train: Any) -> Any:
    """Return `nn.functional.dropout`, and where it kept elements."""

def native_group_norm(input: Any, weight: Any, bias: Any, N: Any, C: Any, HxW: Any, group: Any, eps: Any) -> Any:
    """Return `group_norm` of N samples of C channels of HxW elements, and means and inverse deviations (N, group)."""

def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: Any) -> Any:
    """Return `layer_norm`, and, without gradients, the means and inverse deviations that it divides by."""

def ne(a: _Operand, b: _Operand) -> Tensor:
    """Whether a differs from b, element by element."""

def neg(x: _Operand) -> Tensor:
    """Elementwise negation."""

def neg_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`neg`, written into the tensor; returns it."""

def negative(x: _Operand) -> Tensor:
    """Elementwise negation."""

def negative_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`neg`, written into the tensor; returns it."""

def nextafter(a: _Operand, b: _Operand) -> Tensor:
    """The number next to a in the direction of b; b where they are equal: there the derivative is 0, and by b always."""

def nll_loss(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean') -> Tensor:
    """-x at the target class, times that class's weight: x holds logarithms of probabilities."""

def nonzero(x: _Operand, *, as_tuple: _bool = False) -> Tensor:
    """The places of the elements that are not zero, as one (n, ndim) tensor or as one tensor per dimension."""

def nonzero_static(x: _Operand, *, size: _int, fill_value: _int = -1) -> Tensor:
    """The first `size` places of elements that are not zero, one row each, as if filled up with `fill_value`."""

def norm(x: _Operand, p: Any = 'fro', dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The p-norm of vectors, `linalg.vector_norm`, over `dim` (None: all elements as one vector)."""

def norm_except_dim(v: _Operand, pow: _int = 2, dim: _int = 0) -> Tensor:
    """The norm of order `pow` over all dimensions but `dim`, which are kept as size 1; with dim -1 over all."""

def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Numbers from a normal distribution, in the given size; or one from each of those that tensors describe."""

def normalize(x: _Operand, p: _Number = 2, dim: _Ints = 1, eps: _float = 1e-12) -> Tensor:
    """x divided by its p-norm over dim, or by eps where the norm is less."""

def not_equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a differs from b, element by element."""

def nuclear_norm(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """The sum of singular values of a matrix, or of those that two dimensions make up."""

def numel(input: Any) -> _int:
    """Number of elements."""

def one_hot(tensor: _Operand, num_classes: _int = -1) -> Tensor:
    """Integer classes as rows of zeros with a single one, in a new last dimension of int64."""

def ones(*size: _int, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Ones of the given shape, in the default dtype unless another is given."""

def ones_like(x: Tensor, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Ones in the shape of x, and in its dtype unless another is given."""

def orgqr(A: _Operand, tau: _Operand) -> Tensor:
    """The first n columns of the product of reflections 1 - tau_i v_i v_i^H, v_i being below the diagonal in A."""

def ormqr(x: _Operand, tau: _Operand, other: _Operand, left: _bool = True, transpose: _bool = False) -> Tensor:
    """Return Q other, or, with left=False, other Q, where Q (m, m) is the product of reflections that `geqrf` gives."""

def outer(a: _Operand, b: _Operand) -> Tensor:
    """Every product of an element of one vector and one of another: (m,) and (n,) to (m, n)."""

def pairwise_distance(x1: _Operand, x2: _Operand, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension; the two broadcast."""

def pca_lowrank(A: _Operand, q: _int | None = None, center: _bool = True, niter: _int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Return `svd_lowrank` of samples A (..., m, n), m of them with n features, less their mean if `center`."""

def pdist(x: _Operand, p: _float = 2.0) -> Tensor:
    """The p-norm distance of each row of a matrix from each later one: the upper triangle of `cdist`, row by row."""

def permute(x: _Operand, *dims: _Ints) -> Tensor:
    """Dimensions in another order: dimension i of the result is dimension dims[i] of x."""

def permute_copy(input: Any, dims: Any, *, out: Any = None) -> Tensor:
    """Return a copy of what `permute` shows, in memory of its own."""

def pinverse(x: _Operand, rcond: _Number = 1e-15) -> Tensor:
    """`linalg.pinv`, under its older name."""

def pixel_shuffle(x: _Operand, upscale_factor: _int) -> Tensor:
    """Channels become places: (..., c * r^2, h, w) to (..., c, h * r, w * r), r being upscale_factor."""

def pixel_unshuffle(x: _Operand, downscale_factor: _int) -> Tensor:
    """`pixel_shuffle` undone: (..., c, h * r, w * r) to (..., c * r^2, h, w), r being downscale_factor."""

def poisson(x: _Operand, generator: Any = None) -> Tensor:
    """How many events there are where x are expected: draws from Poisson distributions, in the dtype of x."""

def poisson_nll_loss(x: _Operand, target: _Operand, log_input: _bool = True, full: _bool = False, eps: _float = 1e-08, reduction: _str = 'mean') -> Tensor:
    """exp(x) - target * x, of counts with the logarithm x of their mean; of the mean itself x - target * log(x + eps)."""

def polar(abs: _Operand, angle: _Operand) -> Tensor:
    """Complex numbers of absolute values and angles in radians, which broadcast; both float32, or both float64."""

def polygamma(n: _int, x: _Operand) -> Tensor:
    """The derivative of `digamma` of order n, at least 0."""

def positive(x: _Operand) -> Tensor:
    """x itself; TypeError for booleans, which have no sign."""

def pow(a: _Operand, exponent: _Operand) -> Tensor:
    """a to the power exponent."""

def prelu(x: _Operand, weight: _Operand) -> Tensor:
    """x where positive, weight * x elsewhere: one weight, or one for each channel, which are dimension 1 of x."""

def prod(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The product over `dim` (None or (): all); derivatives of every order hold where factors are 0."""

def promote_types(type1: Any, type2: Any) -> Any:
    """The dtype in which tensors of two dtypes meet."""

def put(x: _Operand, index: _Operand, source: _Operand, accumulate: _bool = False) -> Tensor:
    """x with the elements of source written, or added, at the places that `index` names in x as one row."""

def qr(x: _Operand, some: _bool = True) -> tuple[Tensor, Tensor]:
    """`linalg.qr`, with mode "complete" if not `some`."""

def quantile(x: _Operand, q: _Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
    """The values below which the parts `q` (from 0 to 1) of the elements along `dim` (None: of all) lie."""

def rad2deg(x: _Operand) -> Tensor:
    """Radians in degrees."""

def rad2deg_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`rad2deg`, written into the tensor; returns it."""

def rand(*size: _int, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Numbers uniform in [0, 1), of the given shape; of complex ones both parts are."""

def rand_like(input: Any, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """`rand` in the shape of the input, and in its dtype unless another is given."""

def randint(low: Any = 0, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Integers uniform from low (0 if left out) up to but not including high, of the given shape."""

def randint_like(input: Any, low: Any, high: Any = None, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Integers from low (0 if left out) to below high, in the shape and dtype of the input."""

def randn(*size: _int, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Numbers from the standard normal distribution, of the given shape; complex ones have variance 1 too."""

def randn_like(input: Any, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """`randn` in the shape of the input, and in its dtype unless another is given."""

def randperm(n: _int, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The integers from 0 up to but not including n, in random order."""

def ravel(x: _Operand) -> Tensor:
    """The elements in row-major order as one dimension: a view of a contiguous tensor, else a copy."""

def real(x: _Operand) -> Tensor:
    """The real parts, as a view; a real tensor is its own."""

def reciprocal(x: _Operand) -> Tensor:
    """1 / x."""

def reciprocal_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`reciprocal`, written into the tensor; returns it."""

def relu(x: _Operand) -> Tensor:
    """max(x, 0); its derivative at 0 is 0, and at NaN 1."""

def relu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`relu`, written into the tensor; returns it."""

def remainder(a: _Operand, b: _Operand) -> Tensor:
    """a - floor(a / b) * b: what is left, with the sign of b.  ZeroDivisionError if an integer is divided by 0."""

def renorm(x: _Operand, p: _Number, dim: _int, maxnorm: _Number) -> Tensor:
    """x with each slice at an index of `dim` shrunk to the p-norm maxnorm, where its own is larger."""

def renorm_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`renorm`, written into the tensor; returns it."""

def repeat(x: _Operand, *repeats: _Ints) -> Tensor:
    """A copy of the whole tensor repeats[i] times along dimension i; new dimensions come in front."""

def repeat_interleave(x: _Operand, repeats: _Operand | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
    """Each slice along `dim` (None: each element, in row-major order) as often as `repeats`, one or several, says."""

def reshape(x: _Operand, *shape: _Ints) -> Tensor:
    """The same elements in row-major order in another shape; one size may be -1.  A view where strides allow."""

def resize_as_(input: Any, the_template: Any, *, memory_format: Any = ...) -> Tensor:
    """Give this tensor the shape of another one, by `resize_`."""

def resolve_conj(x: _Operand) -> Tensor:
    """x itself: here no conjugate is ever pending, as it may be in PyTorch."""

def resolve_neg(input: Any) -> Tensor:
    """The tensor itself: here no negation is ever pending, as it may be in PyTorch."""

def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype in which two tensors or numbers meet; numbers, and tensors without dimensions, give way."""

def rms_norm(x: _Operand, normalized_shape: _Ints, weight: _Operand | None = None, eps: _float | None = None) -> Tensor:
    """x / sqrt(mean(x^2) + eps) over its last dimensions, `normalized_shape`; times weight.  x may be complex."""

def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """Return the next state of a recurrence with relu, as `nn.RNNCell` computes it."""

def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """Return the next state of a recurrence with tanh, as `nn.RNNCell` computes it."""

def roll(x: _Operand, shifts: _Ints, dim: _Ints | None = None) -> Tensor:
    """The elements shifted along each of `dim` (None: in row-major order); those pushed out come in at the front."""

def rot90(x: _Operand, k: _int = 1, dims: _Ints = (0, 1)) -> Tensor:
    """Turned k times by 90 degrees in the plane of two dimensions, from the first towards the second; a copy."""

def round(x: _Operand, *, decimals: _int = 0) -> Tensor:
    """The nearest number of so many decimals, halves to even; negative decimals round to tens.  Its derivative is 0."""

def round_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`round`, written into the tensor; returns it."""

def row_stack(tensors: Sequence[_Operand]) -> Tensor:
    """Tensors one below the other; those of one dimension are rows."""

def rows_dot(a: _Operand, b: _Operand) -> Tensor:
    """The sum over all rows of their outer products: (..., k) and (..., n) to (k, n), as one matrix product."""

def rrelu(x: _Operand, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False) -> Tensor:
    """x where positive, slope * x elsewhere; in training each slope is drawn anew between lower and upper."""

def rrelu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`rrelu`, written into the tensor; returns it."""

def rsqrt(x: _Operand) -> Tensor:
    """1 / sqrt(x)."""

def rsqrt_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`rsqrt`, written into the tensor; returns it."""

def rsub(a: _Operand, b: _Operand, *, alpha: _Number = 1) -> Tensor:
    """b - alpha * a: `subtract` with the operands swapped."""

def sample_beta(a: _Operand, b: _Operand, *, generator: Any = None) -> Tensor:
    """Draws from beta distributions, which gradients reach the parameters of, as those of `standard_gamma` do."""

def sample_chi2(df: _Operand, *, generator: Any = None) -> Tensor:
    """Draws from chi-squared distributions of `df` degrees of freedom; gradients reach these."""

def sample_dirichlet(concentration: _Operand, *, generator: Any = None) -> Tensor:
    """Draws from Dirichlet distributions, along the last dimension: positive numbers whose sum is 1."""

def sample_student_t(df: _Operand, *, generator: Any = None) -> Tensor:
    """Draws from Student's t distributions of `df` degrees of freedom; gradients reach these."""

def scalar_tensor(s: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """A number as a tensor without dimensions, in the default dtype unless another is given."""

def scaled_dot_product_attention(query: _Operand, key: _Operand, value: _Operand, attn_mask: _Operand | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, *, scale: _float | None = None, enable_gqa: _bool = False) -> Tensor:
    """softmax(scale * query key^T + mask) value: (..., l, e), (..., s, e) and (..., s, d) to (..., l, d)."""

def scatter(x: _Operand, dim: _int, index: _Operand, src: _Operand | None = None, *, value: _Number | None = None, reduce: _str | None = None) -> Tensor:
    """x with the elements of src, or one value, written where `index` says along `dim`: the opposite of gather."""

def scatter_add(x: _Operand, dim: _int, index: _Operand, src: _Operand) -> Tensor:
    """x with the elements of src added where `index` says along `dim`; sizes as in `scatter`."""

def scatter_reduce(x: _Operand, dim: _int, index: _Operand, src: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
    """x with the elements of src merged into the places along `dim`: "sum", "prod", "mean", "amax" or "amin"."""

def searchsorted(sorted_sequence: _Operand, input: _Operand, *, out_int32: _bool = False, right: _bool = False, side: _str | None = None, sorter: _Operand | None = None) -> Tensor:
    """Before which element of a sorted sequence each value belongs; `right`, or side="right": after its equals."""

def seed() -> Any:
    """Seed the default generator with a number that the operating system draws, and return that."""

def select(x: _Operand, dim: _int, index: _int) -> Tensor:
    """The slice at `index` along `dim`, without that dimension; a view."""

def select_copy(x: Tensor, dim: _int, index: _int, *, out: Any = None) -> Any:
    """Return a copy of what `select` shows, in memory of its own."""

def select_scatter(x: _Operand, src: _Operand, dim: _int, index: _int) -> Tensor:
    """x with src in the place of x.select(dim, index)."""

def selu(x: _Operand) -> Tensor:
    """1.0507 * elu(x, 1.6733): layers of it keep mean 0 and variance 1."""

def selu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`selu`, written into the tensor; returns it."""

def set_default_device(device: Any) -> Any:
    """Accepts the CPU, where new tensors are made anyway; RuntimeError for other devices."""

def set_printoptions(precision: Any = None, threshold: Any = None, edgeitems: Any = None, linewidth: Any = None, profile: Any = None, sci_mode: Any = None) -> None:
    """Choose how tensors print from now on; what is not given stays as it is."""

def set_rng_state(new_state: Any) -> Any:
    """Put the default generator into a state that `get_rng_state` gave."""

def set_warn_always(b: Any) -> None:
    """Kept for programs that call it: warnings here are Python's, shown as its filters say."""

def sgn(x: _Operand) -> Tensor:
    """x / |x|, and 0 at 0, where its derivative is 0 too; of real numbers `sign`."""

def sgn_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sgn`, written into the tensor; returns it."""

def sigmoid(x: _Operand) -> Tensor:
    """1 / (1 + exp(-x))."""

def sigmoid_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sigmoid`, written into the tensor; returns it."""

def sign(x: _Operand) -> Tensor:
    """-1, 0 or 1; its derivative is 0.  Of complex numbers there is `sgn`."""

def sign_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sign`, written into the tensor; returns it."""

def signbit(x: _Operand) -> Tensor:
    """Whether the sign is minus, as that of -0.0 is."""

def silu(x: _Operand) -> Tensor:
    """x * sigmoid(x), also called swish."""

def silu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`silu`, written into the tensor; returns it."""

def sin(x: _Operand) -> Tensor:
    """The sine of x radians."""

def sin_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sin`, written into the tensor; returns it."""

def sinc(x: _Operand) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0; derivatives of every order hold there too."""

def sinc_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sinc`, written into the tensor; returns it."""

def sinh(x: _Operand) -> Tensor:
    """The hyperbolic sine."""

def sinh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sinh`, written into the tensor; returns it."""

def slice_copy(input: Any, dim: Any = 0, start: Any = None, end: Any = None, step: Any = 1, *, out: Any = None) -> Tensor:
    """Return a copy of what `slice` shows, in memory of its own."""

def slice_scatter(x: _Operand, src: _Operand, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """x with src in the place of x[start:end:step] along `dim`."""

def sliding_window_view(x: _Operand, window_shape: _Ints, dim: _Ints | None = None) -> Tensor:
    """A view of all windows of a shape, whose dimensions come last, over the dimensions `dim` (None: all), as in NumPy."""

def slogdet(A: _Operand) -> tuple[Tensor, Tensor]:
    """The determinants of square matrices as sign and logarithm of the absolute value, which can't overflow."""

def smooth_l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', beta: _float = 1.0) -> Tensor:
    """With d = abs(x - target): d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere."""

def softmax(x: _Operand, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along dim, shifted so that it cannot overflow; computed in `dtype`, None for that of x."""

def softplus(x: _Operand, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x is more than the threshold."""

def softplus_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`softplus`, written into the tensor; returns it."""

def sort(x: _Operand, dim: _int = -1, descending: _bool = False, *, stable: _bool = False) -> tuple[Tensor, Tensor]:
    """The elements in order along `dim`, and where they come from, as a named tuple (values, indices)."""

def split(tensor: _Operand, split_size_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of views along `dim`: of one size (the last may be smaller), or of the sizes listed."""

def split_copy(tensor: Tensor, split_size_or_sections: Any, dim: _int = 0, *, out: Any = None) -> Any:
    """Return a copy of what `split` shows, in memory of its own."""

def split_with_sizes(x: _Operand, split_sizes: _Ints, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of views of the sizes listed along `dim`."""

def split_with_sizes_copy(x: Tensor, split_sizes: Any, dim: _int = 0, *, out: Any = None) -> Any:
    """Return a copy of what `split_with_sizes` shows, in memory of its own."""

def sqrt(x: _Operand) -> Tensor:
    """The square root; NaN for negative numbers."""

def sqrt_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sqrt`, written into the tensor; returns it."""

def square(x: _Operand) -> Tensor:
    """x times x; of booleans in int64."""

def square_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`square`, written into the tensor; returns it."""

def squeeze(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """Without the dimensions of size 1, or without those of them that `dim` names."""

def squeeze_copy(x: Tensor, dim: Any = None, *, out: Any = None) -> Any:
    """Return a copy of what `squeeze` shows, in memory of its own."""

def stack(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """The tensors, all of one shape, side by side along a new dimension."""

def standard_gamma(alpha: _Operand, *, generator: Any = None) -> Tensor:
    """Draws from gamma distributions of shape alpha and scale 1."""

def standardize(x: _Operand, ndim: _int = 1, *, eps: _float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(variance + eps) over the last `ndim` dimensions; the variance is that over n."""

def std(x: _Operand, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> Tensor:
    """The square root of `var`; where that is 0, the derivative is taken as 0."""

def std_mean(x: _Operand, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> tuple[Tensor, Tensor]:
    """`std` and `mean` over the same dimensions, as a named tuple (std, mean)."""

def stft(x: _Operand, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: _Operand | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
    """Return the short-time Fourier transform: the spectra of windows of signals (..., length), one or several."""

def sub(a: _Operand, b: _Operand, *, alpha: _Number = 1) -> Tensor:
    """Elementwise difference a - b."""

def subtract(a: _Operand, b: _Operand, *, alpha: _Number = 1) -> Tensor:
    """a - alpha * b."""

def sum(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum over `dim` (None or (): all).  Integers and booleans add up in int64."""

def sum_to_size(x: _Operand, *shape: _Ints) -> Tensor:
    """The sum over the dimensions along which a tensor of `shape` would be repeated to have the shape of x."""

def svd(x: _Operand, some: _bool = True, compute_uv: _bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """x = U diag(S) V^H, as `linalg.svd`, with V in place of its conjugate transpose; without compute_uv zeros."""

def svd_lowrank(A: _Operand, q: _int | None = 6, niter: _int | None = 2, M: _Operand | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S, V with A - M about U diag(S) V^H, of rank q: matrices (..., m, n), of which M (None: 0) is a mean."""

def swapaxes(x: _Operand, axis0: _int, axis1: _int) -> Tensor:
    """`transpose`, by NumPy's name."""

def swapdims(x: _Operand, dim0: _int, dim1: _int) -> Tensor:
    """Two dimensions swapped."""

def t(x: _Operand) -> Tensor:
    """A matrix transposed, a view; of vectors and tensors without dimensions a view as they are."""

def t_copy(x: Tensor, *, out: Any = None) -> Any:
    """Return a copy of what `t` shows, in memory of its own."""

def take(x: _Operand, index: _Operand) -> Tensor:
    """The elements at the places that `index` names in x as one row, in the shape of index; -1 is the last."""

def take_along_dim(x: _Operand, indices: _Operand, dim: _int | None = None) -> Tensor:
    """Per position of `indices`, the element of x at that place along `dim`; the other dimensions broadcast."""

def tan(x: _Operand) -> Tensor:
    """The tangent of x radians."""

def tan_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`tan`, written into the tensor; returns it."""

def tanh(x: _Operand) -> Tensor:
    """The hyperbolic tangent."""

def tanh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`tanh`, written into the tensor; returns it."""

def tensor(data: Any, dtype: Any = None, requires_grad: Any = False, *, device: Any = None, pin_memory: Any = False) -> Tensor:
    """A tensor with a copy of the data: a number, nested lists of numbers, an array or a tensor."""

def tensor_split(x: _Operand, indices_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of views along `dim`: so many, of nearly equal size, or those between the places listed, as slices go."""

def tensordot(a: _Operand, b: _Operand, dims: Any = 2) -> Tensor:
    """The sum of products over some dimensions of a and as many of b; those that are left come in order."""

def threshold(x: _Operand, threshold: _Number, value: _Number) -> Tensor:
    """x where it is more than the threshold, the value elsewhere, where the derivative is 0."""

def threshold_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`threshold`, written into the tensor; returns it."""

def tile(x: _Operand, *dims: _Ints) -> Tensor:
    """`repeat`, with a size of 1 for each dimension in front that `dims` leaves out."""

def topk(x: _Operand, k: _int, dim: _int | None = None, largest: _bool = True, sorted: _bool = True) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along `dim` (None: the last), and where they are, in their order."""

def trace(x: _Operand) -> Tensor:
    """The sum of the diagonal of a matrix."""

def transpose(x: _Operand, dim0: _int, dim1: _int) -> Tensor:
    """Two dimensions swapped."""

def transpose_copy(x: Tensor, dim0: _int, dim1: _int, *, out: Any = None) -> Any:
    """Return a copy of what `transpose` shows, in memory of its own."""

def trapezoid(y: _Operand, x: _Operand | None = None, *, dx: _Number | None = None, dim: _int = -1) -> Tensor:
    """The integral of y along `dim` by the trapezoidal rule, at the places x or at distances dx (default 1)."""

def trapz(y: _Operand, x: _Operand | None = None, *, dx: _Number | None = None, dim: _int = -1) -> Tensor:
    """The integral of y along `dim` by the trapezoidal rule, at the places x or at distances dx (default 1)."""

def triangular_solve(b: _Operand, A: _Operand, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> tuple[Tensor, Tensor]:
    """Return X with A X = b, or with `transpose` A^T X = b, and a copy of A: the older `linalg.solve_triangular`."""

def tril(x: _Operand, diagonal: _int = 0) -> Tensor:
    """The lower triangle of the last two dimensions, zeros above the given diagonal."""

def tril_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`tril`, written into the tensor; returns it."""

def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The rows and the columns of the places in the lower triangle of a matrix, up to a diagonal: shape (2, n)."""

def triplet_margin_loss(anchor: _Operand, positive: _Operand, negative: _Operand, margin: _float = 1.0, p: _Number = 2, eps: _float = 1e-06, swap: _bool = False, reduction: _str = 'mean') -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), with d the p-norm of the difference plus eps."""

def triu(x: _Operand, diagonal: _int = 0) -> Tensor:
    """The upper triangle of the last two dimensions, zeros below the given diagonal."""

def triu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`triu`, written into the tensor; returns it."""

def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The rows and the columns of the places in the upper triangle of a matrix, from a diagonal on: shape (2, n)."""

def true_divide(a: _Operand, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
    """Elementwise quotient a / b, of floating dtype."""

def trunc(x: _Operand) -> Tensor:
    """x without its fraction; its derivative is 0."""

def trunc_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`trunc`, written into the tensor; returns it."""

def typename(obj: Any) -> _str:
    """The name of an object's class with its module, of tensors that by dtype."""

def unbind(x: _Operand, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of the slices along `dim`, without that dimension."""

def unbind_copy(x: Tensor, dim: _int = 0, *, out: Any = None) -> Any:
    """Return a copy of what `unbind` shows, in memory of its own."""

def unflatten(x: _Operand, dim: _int, sizes: _Ints) -> Tensor:
    """One dimension as several; one of the sizes may be -1."""

def unfold(x: _Operand, dimension: _int, size: _int, step: _int) -> Tensor:
    """A view of the windows of `size` elements at every `step` along a dimension; their elements are the last one."""

def unfold_copy(input: Any, dimension: Any, size: Any, step: Any, *, out: Any = None) -> Tensor:
    """Return a copy of what `unfold` shows, in memory of its own."""

def unfold_dim(x: _Operand, dimension: _int, size: _int, step: _int) -> Tensor:
    """A view of the windows of `size` elements at every `step` along a dimension; their elements are the last one."""

def unique(x: _Operand, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Tensor:
    """The different elements in order; with `dim`, the different slices along it."""

def unique_consecutive(x: _Operand, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Tensor:
    """The elements without those that equal the one before; with `dim`, the slices along it."""

def unravel_index(indices: _Operand, shape: _Ints) -> tuple[Tensor, ...]:
    """Places in a tensor of `shape` as one row, as a tuple of their coordinates; what is beyond begins anew."""

def unsafe_chunk(x: _Operand, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """`chunk` into views that may be written to one by one; here their histories stay right."""

def unsafe_split(x: _Operand, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """`split` into views of one size that may be written to one by one; here their histories stay right."""

def unsafe_split_with_sizes(x: _Operand, split_sizes: _Ints, dim: _int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes` into views that may be written to one by one; here their histories stay right."""

def unsqueeze(x: _Operand, dim: _int) -> Tensor:
    """A new dimension of size 1 at `dim`."""

def unsqueeze_copy(x: Tensor, dim: _int, *, out: Any = None) -> Any:
    """Return a copy of what `unsqueeze` shows, in memory of its own."""

def vander(x: _Operand, N: _int | None = None, increasing: _bool = False) -> Tensor:
    """Vandermonde's matrix: the powers of the elements of a vector, a row for each, from N - 1 (size - 1) down to 0."""

def var(x: _Operand, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> Tensor:
    """sum((x - mean(x))^2) / (n - correction) over `dim` (None: all)."""

def var_mean(x: _Operand, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> tuple[Tensor, Tensor]:
    """`var` and `mean` over the same dimensions, as a named tuple (var, mean)."""

def vdot(a: _Operand, b: _Operand) -> Tensor:
    """The sum of the products of two vectors of one size, the first conjugated."""

def vecdot(x: _Operand, y: _Operand, *, dim: _int = -1) -> Tensor:
    """The sum of conj(x) * y along `dim`; the two broadcast."""

def view(x: _Operand, *shape: _Ints) -> Tensor:
    """The same memory in another shape; where strides do not allow that, `reshape` makes a copy."""

def view_as(x: _Operand, other: _Operand) -> Tensor:
    """The same memory in the shape of another tensor."""

def view_as_complex(x: _Operand) -> Tensor:
    """A view of pairs of real numbers as complex ones: shape (..., 2) becomes (...)."""

def view_as_complex_copy(x: Tensor, *, out: Any = None) -> Any:
    """Return a copy of what `view_as_complex` shows, in memory of its own."""

def view_as_real(x: _Operand) -> Tensor:
    """A view of complex numbers as pairs of real ones: shape (...) becomes (..., 2).  RuntimeError for other dtypes."""

def view_as_real_copy(x: Tensor, *, out: Any = None) -> Any:
    """Return a copy of what `view_as_real` shows, in memory of its own."""

def view_copy(input: Any, size: Any = None, dtype: Any = None, *, out: Any = None) -> Tensor:
    """Return a copy of what `view` shows, in memory of its own."""

def vsplit(x: _Operand, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the first of two dimensions or more; a number must divide it."""

def vstack(tensors: Sequence[_Operand]) -> Tensor:
    """Tensors one below the other; those of one dimension are rows."""

def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where the condition holds, `other` elsewhere; all three broadcast.  Of a condition alone, its places."""

def xlogy(a: _Operand, b: _Operand) -> Tensor:
    """a log(b), and 0 where a is 0, whatever b is but NaN."""

def xlogy_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`xlogy`, written into the tensor; returns it."""

def zero_(x: Any) -> Tensor:
    """Write zeros; returns x."""

def zeros(*size: _int, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Zeros of the given shape, in the default dtype unless another is given."""

def zeros_like(x: Tensor, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Zeros in the shape of x, and in its dtype unless another is given."""
