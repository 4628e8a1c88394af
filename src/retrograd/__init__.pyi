# Made from the registry of operators by tools/stubs.py: change those, then run `make stubs`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from retrograd import autograd as autograd
from retrograd import ops as ops
from retrograd.autograd import enable_grad as enable_grad
from retrograd.autograd import inference_mode as inference_mode
from retrograd.autograd import is_grad_enabled as is_grad_enabled
from retrograd.autograd import is_inference_mode_enabled as is_inference_mode_enabled
from retrograd.autograd import no_grad as no_grad
from retrograd.autograd import set_grad_enabled as set_grad_enabled
from retrograd.backend.type_info import finfo as finfo
from retrograd.backend.type_info import iinfo as iinfo
from retrograd.core import Tensor as Tensor
from retrograd.core.device import device as device
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
from retrograd.core.dtype import uint16 as uint16
from retrograd.core.dtype import uint32 as uint32
from retrograd.core.dtype import uint64 as uint64
from retrograd.core.errors import AcceleratorError as AcceleratorError
from retrograd.core.errors import OutOfMemoryError as OutOfMemoryError
from retrograd.foundation import alias_modules as _aliases
from retrograd.foundation import lazy_imports as _lazy
from retrograd.interop import numpy_protocol as _numpy_protocol
from retrograd.ops import batch_loop as _examples
from retrograd.ops import pickling as _pickling
from retrograd.ops.dtype_aliases import SymInt as SymInt
from retrograd.ops.dtype_aliases import bool as bool
from retrograd.ops.dtype_aliases import cdouble as cdouble
from retrograd.ops.dtype_aliases import cfloat as cfloat
from retrograd.ops.dtype_aliases import double as double
from retrograd.ops.dtype_aliases import dtype as dtype
from retrograd.ops.dtype_aliases import float as float
from retrograd.ops.dtype_aliases import half as half
from retrograd.ops.dtype_aliases import int as int
from retrograd.ops.dtype_aliases import long as long
from retrograd.ops.dtype_aliases import short as short
from retrograd.ops.generator import Generator as Generator
from retrograd.ops.generator import default_generator as default_generator
from retrograd.ops.layout import Size as Size
from retrograd.ops.layout import channels_last as channels_last
from retrograd.ops.layout import channels_last_3d as channels_last_3d
from retrograd.ops.layout import contiguous_format as contiguous_format
from retrograd.ops.layout import jagged as jagged
from retrograd.ops.layout import layout as layout
from retrograd.ops.layout import legacy_contiguous_format as legacy_contiguous_format
from retrograd.ops.layout import memory_format as memory_format
from retrograd.ops.layout import preserve_format as preserve_format
from retrograd.ops.layout import sparse_bsc as sparse_bsc
from retrograd.ops.layout import sparse_bsr as sparse_bsr
from retrograd.ops.layout import sparse_coo as sparse_coo
from retrograd.ops.layout import sparse_csc as sparse_csc
from retrograd.ops.layout import sparse_csr as sparse_csr
from retrograd.ops.layout import strided as strided
from retrograd.ops.legacy import BFloat16Tensor as BFloat16Tensor
from retrograd.ops.legacy import BoolTensor as BoolTensor
from retrograd.ops.legacy import ByteTensor as ByteTensor
from retrograd.ops.legacy import CharTensor as CharTensor
from retrograd.ops.legacy import DoubleTensor as DoubleTensor
from retrograd.ops.legacy import FloatTensor as FloatTensor
from retrograd.ops.legacy import HalfTensor as HalfTensor
from retrograd.ops.legacy import IntTensor as IntTensor
from retrograd.ops.legacy import LongTensor as LongTensor
from retrograd.ops.legacy import ShortTensor as ShortTensor
from retrograd.ops.legacy import has_lapack as has_lapack
from retrograd.ops.legacy import has_mkl as has_mkl
from retrograd.ops.legacy import has_openmp as has_openmp
from retrograd.ops.legacy import has_spectral as has_spectral
from retrograd.ops.storage import BFloat16Storage as BFloat16Storage
from retrograd.ops.storage import BoolStorage as BoolStorage
from retrograd.ops.storage import ByteStorage as ByteStorage
from retrograd.ops.storage import CharStorage as CharStorage
from retrograd.ops.storage import ComplexDoubleStorage as ComplexDoubleStorage
from retrograd.ops.storage import ComplexFloatStorage as ComplexFloatStorage
from retrograd.ops.storage import DoubleStorage as DoubleStorage
from retrograd.ops.storage import FloatStorage as FloatStorage
from retrograd.futures import Future as Future
from retrograd.amp.grad_scaler import GradScaler as GradScaler
from retrograd.ops.storage import HalfStorage as HalfStorage
from retrograd.ops.storage import IntStorage as IntStorage
from retrograd.ops.storage import LongStorage as LongStorage
from retrograd.ops.storage import ShortStorage as ShortStorage
from retrograd.ops.symbolic import SymBool as SymBool
from retrograd.ops.symbolic import SymFloat as SymFloat
from retrograd.library.tags import Tag as Tag
from retrograd.ops.storage import TypedStorage as TypedStorage
from retrograd.ops.storage import UntypedStorage as UntypedStorage
from retrograd import _C as _C
from retrograd import _custom_ops as _custom_ops
from retrograd.nested.padded_constructors import _nested_from_padded as _nested_from_padded
from retrograd.nested.padded_constructors import _nested_from_padded_and_nested_example as _nested_from_padded_and_nested_example
from retrograd.nested.padded_constructors import _nested_tensor_from_mask as _nested_tensor_from_mask
from retrograd.nested.padded_constructors import _nested_tensor_from_mask_left_aligned as _nested_tensor_from_mask_left_aligned
from retrograd.nested.padded_constructors import _nested_view_from_buffer as _nested_view_from_buffer
from retrograd import accelerator as accelerator
from retrograd import amp as amp
from retrograd.amp.autocast_mode import autocast as autocast
from retrograd import backends as backends
from retrograd.core.extension_dtypes import bfloat16 as bfloat16
from retrograd.amp.autocast_mode import clear_autocast_cache as clear_autocast_cache
from retrograd import cli as cli
from retrograd.compiler.api import compile as compile
from retrograd import compiler as compiler
from retrograd.higher_order.branches import cond as cond
from retrograd import cpu as cpu
from retrograd import cuda as cuda
from retrograd.func.autograd_api import deriv as deriv
from retrograd import distributed as distributed
from retrograd import distributions as distributions
from retrograd.func.autograd_api import elementwise_grad as elementwise_grad
from retrograd.autograd.explain import explain as explain
from retrograd import export as export
from retrograd import fft as fft
from retrograd.core.extension_dtypes import float8_e4m3fn as float8_e4m3fn
from retrograd.core.extension_dtypes import float8_e4m3fnuz as float8_e4m3fnuz
from retrograd.core.extension_dtypes import float8_e5m2 as float8_e5m2
from retrograd.core.extension_dtypes import float8_e5m2fnuz as float8_e5m2fnuz
from retrograd.core.extension_dtypes import float8_e8m0fnu as float8_e8m0fnu
from retrograd import func as func
from retrograd import futures as futures
from retrograd import fx as fx
from retrograd.amp.autocast_mode import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from retrograd.amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from retrograd.amp.autocast_mode import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from retrograd.cuda import get_device_module as get_device_module
from retrograd.utils.threads import get_num_interop_threads as get_num_interop_threads
from retrograd.utils.threads import get_num_threads as get_num_threads
from retrograd.func.autograd_api import grad as grad
from retrograd.func.autograd_api import grad_and_aux as grad_and_aux
from retrograd.func.autograd_api import grad_named as grad_named
from retrograd.func.autograd_api import hessian as hessian
from retrograd.func.autograd_api import hessian_tensor_product as hessian_tensor_product
from retrograd.func.autograd_api import hessian_vector_product as hessian_vector_product
from retrograd import higher_order as higher_order
from retrograd import hips as hips
from retrograd.func.autograd_api import holomorphic_grad as holomorphic_grad
from retrograd import hub as hub
from retrograd import implicit as implicit
from retrograd.utils.threads import init_num_threads as init_num_threads
from retrograd.core.extension_dtypes import int2 as int2
from retrograd.core.extension_dtypes import int4 as int4
from retrograd import interop as interop
from retrograd.autograd.anomaly_mode import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from retrograd.autograd.anomaly_mode import is_anomaly_enabled as is_anomaly_enabled
from retrograd.amp.autocast_mode import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from retrograd.amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from retrograd.func.autograd_api import jacobian as jacobian
from retrograd import library as library
from retrograd import linalg as linalg
from retrograd.interop.files import load as load
from retrograd.func.autograd_api import make_ggnvp as make_ggnvp
from retrograd.func.autograd_api import make_hvp as make_hvp
from retrograd.func.autograd_api import make_jvp as make_jvp
from retrograd.func.autograd_api import make_vjp as make_vjp
from retrograd import masked as masked
from retrograd import mps as mps
from retrograd import mtia as mtia
from retrograd.func.autograd_api import multigrad_dict as multigrad_dict
from retrograd import multiprocessing as multiprocessing
from retrograd import nested as nested
from retrograd import nn as nn
from retrograd import numpy as numpy
from retrograd import ode as ode
from retrograd import optim as optim
from retrograd import overrides as overrides
from retrograd import pipelining as pipelining
from retrograd import profiler as profiler
from retrograd import quasirandom as quasirandom
from retrograd import random as random
from retrograd import return_types as return_types
from retrograd.interop.files import save as save
from retrograd import scipy as scipy
from retrograd import serialization as serialization
from retrograd.amp.autocast_mode import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from retrograd.amp.autocast_mode import set_autocast_dtype as set_autocast_dtype
from retrograd.amp.autocast_mode import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from retrograd.utils.threads import set_num_interop_threads as set_num_interop_threads
from retrograd.utils.threads import set_num_threads as set_num_threads
from retrograd.kernels.build_report import show_config as show_config
from retrograd import signal as signal
from retrograd import sklearn as sklearn
from retrograd import sparse as sparse
from retrograd import special as special
from retrograd.func.autograd_api import tensor_jacobian_product as tensor_jacobian_product
from retrograd import testing as testing
from retrograd.utils.data.worker import thread_safe_generator as thread_safe_generator
from retrograd import types as types
from retrograd.core.extension_dtypes import uint2 as uint2
from retrograd.core.extension_dtypes import uint4 as uint4
from retrograd import utils as utils
from retrograd.func.autograd_api import value_and_grad as value_and_grad
from retrograd.func.autograd_api import vector_jacobian_product as vector_jacobian_product
from retrograd import version as version
from retrograd.func.batch import vmap as vmap
from retrograd import xpu as xpu

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

__version__: _str

def _assert(condition: Any, message: Any) -> None:
    """Raise AssertionError unless the condition is true; a symbolic trace records the call."""

def _assert_async(input: Any, assert_msg: Any = 'Expected Tensor with single nonzero value, but got zero') -> None:
    """Raise RuntimeError unless the only element of a tensor is nonzero."""

def _check(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError unless a boolean is True; the function `message` returns the text."""

def _check_index(cond: Any, message: Any = None) -> None:
    """Raise IndexError unless a boolean is True, as `_check`."""

def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """Raise RuntimeError unless an integer is a size, 0 or larger; `max` is not looked at."""

def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """Raise NotImplementedError unless a boolean is True, as `_check`."""

def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError unless all elements of a boolean tensor are True, as `_check`."""

def _check_type(cond: Any, message: Any = None) -> None:
    """Raise TypeError unless a boolean is True, as `_check`."""

def _check_value(cond: Any, message: Any = None) -> None:
    """Raise ValueError unless a boolean is True, as `_check`."""

def _sample_dirichlet(concentration: _Operand, *, generator: Any = None) -> Tensor:
    """Sample from Dirichlet distributions along the last dimension: positive values with sum 1."""

def _standard_gamma(alpha: _Operand, *, generator: Any = None) -> Tensor:
    """Sample from gamma distributions with shape alpha and scale 1."""

def _standard_gamma_grad(alpha: _Operand, sample: _Operand) -> Tensor:
    """Return the derivative of a sample of `standard_gamma` with respect to alpha."""

def abs(x: _Operand) -> Tensor:
    """The elementwise absolute value.  Its derivative at 0 is 0."""

def abs_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`abs`, written into the tensor; returns it."""

def absolute(x: _Operand) -> Tensor:
    """The elementwise absolute value.  Its derivative at 0 is 0."""

def absolute_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`abs`, written into the tensor; returns it."""

def acos(x: _Operand) -> Tensor:
    """The inverse cosine of x, in radians."""

def acos_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`acos`, written into the tensor; returns it."""

def acosh(x: _Operand) -> Tensor:
    """The inverse hyperbolic cosine of x, for x >= 1."""

def acosh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`acosh`, written into the tensor; returns it."""

def adaptive_avg_pool1d(x: _Operand, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that cover images with 1 spatial dimensions."""

def adaptive_max_pool1d(x: Tensor, output_size: Any, return_indices: _bool = False) -> tuple[Tensor, Tensor]:
    """Return `adaptive_max_pool1d` as a tuple (values, indices)."""

def add(a: _Operand, b: _Operand, *, alpha: _Number = 1) -> Tensor:
    """The elementwise sum a + b; a and b broadcast."""

def addbmm(x: _Operand, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * sum of bmm(batch1, batch2) over the batch; x broadcasts."""

def addcdiv(x: _Operand, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
    """Add a scaled quotient: x + value * tensor1 / tensor2; all three broadcast."""

def addcmul(x: _Operand, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
    """Add a scaled product: x + value * tensor1 * tensor2; all three broadcast."""

def addmm(x: _Operand, mat1: _Operand, mat2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """Add a matrix product: beta * x + alpha * (mat1 @ mat2), for (m, k) and (k, n); x broadcasts to (m, n)."""

def addmv(x: _Operand, mat: _Operand, vec: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * mv(mat, vec); x broadcasts."""

def addmv_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`addmv`, written into the tensor; returns it."""

def addr(x: _Operand, vec1: _Operand, vec2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * outer(vec1, vec2); x broadcasts."""

def adjoint(x: _Operand) -> Tensor:
    """Return the conjugate transpose of the last two dimensions: a view if real, else a synced copy, as in `conj`."""

def affine_grid_generator(theta: Any, size: Any, align_corners: Any) -> Tensor:
    """Return `nn.functional.affine_grid`."""

def alias_copy(input: Any, *, out: Any = None) -> Tensor:
    """Return a copy of what `alias` shows, in memory of its own."""

def all(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """Whether all elements over `dim` (None: all, (): elementwise) are nonzero, as bool; as uint8 for uint8."""

def allclose(input: Tensor, other: Tensor, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> _bool:
    """Whether all elements are close, by the rule of `isclose`."""

def alpha_dropout(x: _Operand, p: _float = 0.5, training: _bool = False) -> Tensor:
    """Set elements to the saturation value of `selu` with probability p, then rescale to keep mean 0 and variance 1."""

def alpha_dropout_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`alpha_dropout`, written into the tensor; returns it."""

def amax(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """The maximum over `dim` (None or (): all).  Tied elements share the gradient.  NaN wins."""

def amin(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """The minimum over `dim` (None or (): all).  Tied elements share the gradient.  NaN wins."""

def aminmax(x: _Operand, *, dim: _int | None = None, keepdim: _bool = False) -> return_types.aminmax:
    """The minimum and the maximum along `dim` (None: of all), as a named tuple (min, max)."""

def angle(x: _Operand) -> Tensor:
    """Return the angle in radians, from -pi to pi; a real value has 0, or pi if negative.  The derivative at 0 is 0."""

def any(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """Whether any element over `dim` (None: all, (): elementwise) is nonzero, as bool; as uint8 for uint8."""

def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return values from start (0 if only end is given) up to, but not including, end."""

def arccos(x: _Operand) -> Tensor:
    """The inverse cosine of x, in radians."""

def arccos_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`acos`, written into the tensor; returns it."""

def arccosh(x: _Operand) -> Tensor:
    """The inverse hyperbolic cosine of x, for x >= 1."""

def arccosh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`acosh`, written into the tensor; returns it."""

def arcsin(x: _Operand) -> Tensor:
    """The inverse sine of x, in radians."""

def arcsin_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`asin`, written into the tensor; returns it."""

def arcsinh(x: _Operand) -> Tensor:
    """The inverse hyperbolic sine of x."""

def arcsinh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`asinh`, written into the tensor; returns it."""

def arctan(x: _Operand) -> Tensor:
    """The inverse tangent of x, in radians."""

def arctan2(a: _Operand, b: _Operand) -> Tensor:
    """The inverse tangent of a / b in the quadrant of the point (b, a), in radians."""

def arctan_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`atan`, written into the tensor; returns it."""

def arctanh(x: _Operand) -> Tensor:
    """The inverse hyperbolic tangent of x, for -1 < x < 1."""

def arctanh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`atanh`, written into the tensor; returns it."""

def are_deterministic_algorithms_enabled() -> Any:
    """Whether `use_deterministic_algorithms(True)` was called last."""

def argmax(x: _Operand, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """The index of the maximum along `dim`, the first if tied; None: in the flattened tensor."""

def argmin(x: _Operand, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
    """The index of the minimum along `dim`, the first if tied; None: in the flattened tensor."""

def argsort(x: _Operand, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
    """The indices that sort x along `dim`.  The sort is stable; NaN is the largest value."""

@overload
def argwhere(x: _Operand, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@overload
def argwhere(x: _Operand, *, as_tuple: Literal[False] = False) -> Tensor:
    """Return the indices of the nonzero elements, as one (n, ndim) tensor or as one tensor per dimension."""

def as_strided(x: _Operand, size: _Ints, stride: _Ints, storage_offset: _int | None = None) -> Tensor:
    """View the memory of x in another shape with other strides, in elements, from an offset on."""

def as_strided_copy(x: Tensor, size: Any, stride: Any, storage_offset: Any = None, *, out: Any = None) -> Tensor:
    """Return a copy of what `as_strided` shows, in memory of its own."""

def as_strided_scatter(x: _Operand, src: _Operand, size: _Ints, stride: _Ints, storage_offset: _int | None = None) -> Tensor:
    """Return x with src in place of x.as_strided(size, stride, storage_offset)."""

def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the data as a tensor, without a copy if its memory can be shared."""

def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None, requires_grad: Any = None) -> Tensor:
    """Convert numeric data to a tensor: data as for `tensor`, an object with DLPack, or a Python buffer."""

def asin(x: _Operand) -> Tensor:
    """The inverse sine of x, in radians."""

def asin_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`asin`, written into the tensor; returns it."""

def asinh(x: _Operand) -> Tensor:
    """The inverse hyperbolic sine of x."""

def asinh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`asinh`, written into the tensor; returns it."""

def atan(x: _Operand) -> Tensor:
    """The inverse tangent of x, in radians."""

def atan2(a: _Operand, b: _Operand) -> Tensor:
    """The inverse tangent of a / b in the quadrant of the point (b, a), in radians."""

def atan_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`atan`, written into the tensor; returns it."""

def atanh(x: _Operand) -> Tensor:
    """The inverse hyperbolic tangent of x, for -1 < x < 1."""

def atanh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`atanh`, written into the tensor; returns it."""

def atleast_1d(tensors: Sequence[_Operand] = ()) -> tuple[Tensor, ...]:
    """Turn tensors without dimensions into vectors; return one tensor, or a tuple of several."""

def atleast_2d(tensors: Sequence[_Operand] = ()) -> tuple[Tensor, ...]:
    """Turn vectors into matrices with one row; return one tensor, or a tuple of several."""

def atleast_3d(tensors: Sequence[_Operand] = ()) -> tuple[Tensor, ...]:
    """Turn vectors into (1, n, 1) and matrices into (m, n, 1); return one tensor, or a tuple of several."""

def avg_pool1d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean of each window of images (n, c, *sizes) or (c, *sizes) with 1 spatial dimensions."""

def baddbmm(x: _Operand, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
    """beta * x + alpha * bmm(batch1, batch2); x broadcasts."""

def bartlett_window(window_length: _int, periodic: Any = True, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Bartlett window: a triangle, from 0 up to 1 in the middle and back to 0."""

def batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: Any, momentum: Any, eps: Any, cudnn_enabled: Any = False) -> Tensor:
    """Return `nn.functional.batch_norm`, with the arguments in another order."""

def bernoulli(x: _Operand, p: _float | None = None, *, generator: Any = None) -> Tensor:
    """Random ones with probability x, zeros otherwise, in the shape and dtype of x."""

def bilinear(input1: _Operand, input2: _Operand, weight: _Operand, bias: _Operand | None = None) -> Tensor:
    """input1^T weight[k] input2 + bias[k] for each k: (..., m), (..., n), (k, m, n), (k,) to (..., k)."""

def binary_cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, reduction: _str = 'mean') -> Tensor:
    """Binary cross entropy of probabilities: -(target log x + (1 - target) log(1 - x)) times weight."""

def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: Any = 'mean') -> Tensor:
    """Return `nn.functional.binary_cross_entropy_with_logits`; reduction may be 0, 1 or 2: none, mean or sum."""

def bincount(x: _Operand, weights: _Operand | None = None, minlength: _int = 0) -> Tensor:
    """Count each integer from 0 to the largest in x, or add up its weights; the size is at least `minlength`."""

def binomial(count: _Operand, prob: _Operand, generator: Any = None) -> Tensor:
    """Sample the number of successes in `count` trials of probability `prob`; in the dtype of count, a floating one."""

def bitwise_and(a: _Operand, b: _Operand) -> Tensor:
    """Bitwise AND; of booleans, whether both are true."""

def bitwise_count(x: _Operand) -> Tensor:
    """Count the bits of |x| that are 1, in uint8."""

def bitwise_left_shift(a: _Operand, b: _Operand) -> Tensor:
    """Shift the bits of a left by b: a times 2 to the power b."""

def bitwise_not(x: _Operand) -> Tensor:
    """Bitwise NOT; of booleans, their negation."""

def bitwise_not_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`bitwise_not`, written into the tensor; returns it."""

def bitwise_or(a: _Operand, b: _Operand) -> Tensor:
    """Bitwise OR; of booleans, whether one is true."""

def bitwise_right_shift(a: _Operand, b: _Operand) -> Tensor:
    """Shift the bits of a right by b, preserving the sign: a divided by 2 to the power b, rounded down."""

def bitwise_xor(a: _Operand, b: _Operand) -> Tensor:
    """Bitwise XOR; of booleans, whether they differ."""

def blackman_window(window_length: _int, periodic: Any = True, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Blackman window: 0.42 - 0.5 cos of one period + 0.08 cos of two periods."""

def block_diag(tensors: Sequence[_Operand] = ()) -> Tensor:
    """Put matrices on the diagonal of a larger one, with zeros elsewhere; vectors are rows."""

def bmm(a: _Operand, b: _Operand) -> Tensor:
    """Products of the matrices of two equal stacks, (b, m, k) and (b, k, n)."""

def broadcast_shapes(*shapes: Any) -> Any:
    """Return the common shape of tensors of these shapes (a number is a 1-d shape); a ValueError if there is none."""

def broadcast_tensors(tensors: Sequence[_Operand] = ()) -> tuple[Tensor, ...]:
    """The tensors as views, broadcast to their common shape."""

def broadcast_to(x: _Operand, *shape: _Ints) -> Tensor:
    """x broadcast to `shape`, as a view: `expand` under NumPy's name."""

def bucketize(x: _Operand, boundaries: _Operand, *, out_int32: _bool = False, right: _bool = False) -> Tensor:
    """The index of the bucket between sorted boundaries for each element of x: `searchsorted` with arguments swapped."""

def can_cast(from_: Any, to: Any) -> _bool:
    """Whether a dtype can be cast to another in results: complex not to real, floats not to integers."""

def cartesian_prod(tensors: Sequence[_Operand] = ()) -> Tensor:
    """Return the Cartesian product of vectors, one row each, the last varying fastest; a single vector itself."""

def cat(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """The concatenation of tensors along an existing dimension; their other sizes must be equal."""

def cbrt(x: _Operand) -> Tensor:
    """Cube root, with the sign of x."""

def cbrt_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cbrt`, written into the tensor; returns it."""

def ccol_indices_copy(input: Tensor) -> Tensor:
    """Return a copy of `input.ccol_indices()`."""

def cdist(x1: _Operand, x2: _Operand, p: _float = 2.0, compute_mode: _str | None = None) -> Tensor:
    """The p-norm distance between each row of x1, (..., m, d), and each row of x2, (..., n, d): (..., m, n)."""

def ceil(x: _Operand) -> Tensor:
    """x rounded up to an integer.  Its derivative is 0."""

def ceil_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`ceil`, written into the tensor; returns it."""

def celu(x: _Operand, alpha: _float = 1.0) -> Tensor:
    """Exponential linear unit with slope 1 at 0: x where positive, alpha * expm1(x / alpha) elsewhere; alpha is not 0."""

def celu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`celu`, written into the tensor; returns it."""

def chain_matmul(matrices: Sequence[_Operand]) -> Tensor:
    """The product `linalg.multi_dot` of matrices, passed as separate arguments."""

def channel_shuffle(x: _Operand, groups: _int) -> Tensor:
    """Interleave `groups` consecutive groups of channels (n, c, *sizes): the first of each, the second of each, ..."""

def cholesky(A: _Operand, upper: _bool = False) -> Tensor:
    """Cholesky factor: lower triangular L with A = L L^H, or upper U with A = U^H U, of positive definite matrices."""

def cholesky_inverse(L: _Operand, upper: _bool = False) -> Tensor:
    """The inverse of L L^H, or with `upper` of L^H L, for triangular L."""

def cholesky_solve(x: _Operand, L: _Operand, upper: _bool = False) -> Tensor:
    """The solution of L L^H X = x, or with `upper` of L^H L X = x, for triangular L."""

def chunk(x: _Operand, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of at most `chunks` views of equal size along `dim`; the last may be smaller."""

def clamp(x: _Operand, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
    """x limited to the range from min to max: numbers, or tensors that broadcast.  If min > max, the result is max."""

def clamp_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`clamp`, written into the tensor; returns it."""

def clamp_max(x: _Operand, max: _Operand) -> Tensor:
    """Clamp x to at most max, a number or a tensor: `clamp` with one bound."""

def clamp_max_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`clamp_max`, written into the tensor; returns it."""

def clamp_min(x: _Operand, min: _Operand) -> Tensor:
    """Clamp x to at least min, a number or a tensor: `clamp` with one bound."""

def clamp_min_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`clamp_min`, written into the tensor; returns it."""

def clip(x: _Operand, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
    """x limited to the range from min to max: numbers, or tensors that broadcast.  If min > max, the result is max."""

def clip_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`clamp`, written into the tensor; returns it."""

def clone(input: Any, *, memory_format: Any = ...) -> Tensor:
    """Return a differentiable copy, with the same strides unless a memory format is given."""

def col_indices_copy(input: Tensor) -> Tensor:
    """Return a copy of `input.col_indices()`."""

def column_stack(tensors: Sequence[_Operand]) -> Tensor:
    """Concatenate tensors along the second dimension; vectors are columns."""

def combinations(x: _Operand, r: _int = 2, with_replacement: _bool = False) -> Tensor:
    """Return all ways to choose r elements of a vector, in order, one per row; with replacement, repeats are allowed."""

def complex(real: _Operand, imag: _Operand) -> Tensor:
    """Return real + 1j * imag; the two broadcast, and are both float32 or both float64."""

def concat(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """The concatenation of tensors along an existing dimension; their other sizes must be equal."""

def concatenate(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """The concatenation of tensors along an existing dimension; their other sizes must be equal."""

def conj(input: Any) -> Tensor:
    """Return the complex conjugate; a real tensor is returned itself."""

def conj_physical(x: _Operand) -> Tensor:
    """Return the complex conjugate as a new tensor; a real tensor is returned itself."""

def conj_physical_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`conj_physical`, written into the tensor; returns it."""

def constant_pad_nd(x: _Operand, pad: _Ints, value: _Number = 0) -> Tensor:
    """x padded with `value`, from the last dimension on; negative amounts crop."""

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

def convolution(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: Any, output_padding: Any, groups: Any) -> Tensor:
    """Return `conv1d`, `conv2d` or `conv3d`, whichever takes a weight of these dimensions, or their transposes."""

def copysign(a: _Operand, b: _Operand) -> Tensor:
    """|a| with the sign of b, also of -0.0; the derivative by a is 0 where a is 0, that by b is 0."""

def corrcoef(x: _Operand) -> Tensor:
    """Pearson's correlation coefficients of variables, the rows of x."""

def cos(x: _Operand) -> Tensor:
    """The cosine of x radians."""

def cos_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cos`, written into the tensor; returns it."""

def cosh(x: _Operand) -> Tensor:
    """The hyperbolic cosine of x."""

def cosh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cosh`, written into the tensor; returns it."""

def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: Any = 0.0, reduction: Any = 'mean') -> Tensor:
    """Return `nn.functional.cosine_embedding_loss`; reduction may be 0, 1 or 2: none, mean or sum."""

def cosine_similarity(x1: _Operand, x2: _Operand, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """The cosine similarity sum(x1 * x2) / (norm(x1) * norm(x2)) along dim, each norm at least eps; x1, x2 broadcast."""

def count_nonzero(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """The number of nonzero elements over `dim` (None or (): all), in int64."""

def cov(x: _Operand, *, correction: _int = 1, fweights: _Operand | None = None, aweights: _Operand | None = None) -> Tensor:
    """The covariance matrix of variables, the rows of x, observed in its columns; the variance if there is one row."""

def cross(x: _Operand, other: _Operand, dim: _int | None = None) -> Tensor:
    """The cross product `linalg.cross`; without `dim`, along the first dimension of size 3."""

def cross_entropy(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean', label_smoothing: _float = 0.0) -> Tensor:
    """Cross entropy of logits x: -sum(p * log softmax(x)) over the classes, for target probabilities p."""

def crow_indices_copy(input: Tensor) -> Tensor:
    """Return a copy of `input.crow_indices()`."""

def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any = 0, reduction: Any = 'mean', zero_infinity: Any = False) -> Tensor:
    """Return `nn.functional.ctc_loss`; reduction may be 0, 1 or 2: none, mean or sum."""

def cummax(x: _Operand, dim: _int) -> return_types.cummax:
    """The cumulative maximum of x along `dim`, and the index of its last occurrence so far.  NaN wins."""

def cummin(x: _Operand, dim: _int) -> return_types.cummin:
    """The cumulative minimum of x along `dim`, and the index of its last occurrence so far.  NaN wins."""

def cumprod(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The cumulative product of x along `dim`; derivatives of every order hold where factors are 0."""

def cumprod_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cumprod`, written into the tensor; returns it."""

def cumsum(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The cumulative sum of x along `dim`.  Integers and booleans are summed in int64."""

def cumsum_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`cumsum`, written into the tensor; returns it."""

def cumulative_trapezoid(y: _Operand, x: _Operand | None = None, *, dx: _Number | None = None, dim: _int = -1) -> Tensor:
    """The cumulative integral of y along `dim` by the trapezoidal rule, from the second point on."""

def deg2rad(x: _Operand) -> Tensor:
    """Convert degrees to radians."""

def deg2rad_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`deg2rad`, written into the tensor; returns it."""

def dequantize(tensor: Any) -> Any:
    """Return a tensor, or each of a list, in float32: no tensor here is quantised."""

def det(A: _Operand) -> Tensor:
    """The determinants of square matrices; the derivative holds for singular ones, too."""

def detach(x: _Operand) -> Tensor:
    """A view of x outside every graph.  It is an operator, so that each level detaches its own value."""

def detach_(x: Any) -> Tensor:
    """Detach the tensor from its graph in place, so that it becomes a leaf without gradient; return it."""

def detach_copy(x: Tensor, *, out: Any = None) -> Tensor:
    """Return a copy of what `detach` shows, in memory of its own."""

def diag(x: _Operand, diagonal: _int = 0) -> Tensor:
    """A matrix with a vector on its diagonal; of a matrix, a copy of its diagonal."""

def diag_embed(x: _Operand, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """Zeros with the last dimension of x on the diagonal of two dimensions, at `offset` from the main one."""

def diagflat(x: _Operand, offset: _int = 0) -> Tensor:
    """A matrix with all elements of x, in row-major order, on its diagonal."""

def diagonal(x: _Operand, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """View a diagonal as the last dimension: the elements whose index along dim2 is `offset` more than along dim1."""

def diagonal_copy(x: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Any = None) -> Tensor:
    """Return a copy of what `diagonal` shows, in memory of its own."""

def diagonal_scatter(x: _Operand, src: _Operand, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """Return x with src in place of x.diagonal(offset, dim1, dim2)."""

def diff(x: _Operand, n: _int = 1, dim: _int = -1, prepend: _Operand | None = None, append: _Operand | None = None) -> Tensor:
    """The n-th difference of adjacent elements along `dim`, after x is extended by `prepend` and `append`."""

def digamma(x: _Operand) -> Tensor:
    """Derivative of `lgamma`; NaN at the negative integers, infinite at 0."""

def digamma_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`digamma`, written into the tensor; returns it."""

def dist(x: _Operand, other: _Operand, p: _Number = 2) -> Tensor:
    """The p-norm of x - other over all elements; the derivative where they are equal is 0."""

def div(a: _Operand, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
    """The elementwise quotient a / b, in a floating dtype."""

def divide(a: _Operand, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
    """Divide: a / b; rounding_mode="floor" rounds down, "trunc" towards 0, in the operands' dtype with derivative 0."""

def dot(a: _Operand, b: _Operand) -> Tensor:
    """Dot product of two vectors of equal size; nothing is conjugated."""

def dropout(x: _Operand, p: _float = 0.5, training: _bool = True) -> Tensor:
    """Zero each element with probability p and divide the others by 1 - p; x itself when not training."""

def dropout_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`dropout`, written into the tensor; returns it."""

def dsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense one, as `rg.sparse.mm`."""

def dsplit(x: _Operand, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the third of three or more dimensions; a number of parts must divide its size."""

def dstack(tensors: Sequence[_Operand]) -> Tensor:
    """Concatenate tensors along the third dimension, which matrices and vectors get as a last one."""

def einsum(equation: _str, operands: Sequence[_Operand]) -> Tensor:
    """Sum of products in Einstein's notation: letters name dimensions; those not in the result are summed over."""

def embedding(weight: Any, indices: Any, padding_idx: Any = -1, scale_grad_by_freq: Any = False, sparse: Any = False) -> Tensor:
    """Return `nn.functional.embedding`, with weight first; a negative padding_idx is none."""

def embedding_renorm_(input: Any, indices: Any, max_norm: Any, norm_type: Any) -> Tensor:
    """Scale down, in place, the rows of a table (rows, size) at indices to a norm_type-norm of at most max_norm."""

def empty(*shape: Any, size: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return an uninitialized tensor of the given shape (its values are zeros, which is not guaranteed)."""

def empty_like(input: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return an uninitialized tensor with the shape of the input (its values are zeros, which is not guaranteed)."""

def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return an uninitialized tensor whose dimensions are in memory in the given order, slowest first."""

def empty_strided(size: Any, stride: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return an uninitialized tensor with these strides, in elements (its values are zeros, which is not guaranteed)."""

def eq(a: _Operand, b: _Operand) -> Tensor:
    """Whether a == b, elementwise."""

def equal(input: Any, other: Any) -> _bool:
    """Whether two tensors have the same shape and equal elements; NaN is not equal to itself."""

def erf(x: _Operand) -> Tensor:
    """The error function of x."""

def erf_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`erf`, written into the tensor; returns it."""

def erfc(x: _Operand) -> Tensor:
    """The complementary error function 1 - erf(x), accurate where erf(x) is near 1."""

def erfc_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`erfc`, written into the tensor; returns it."""

def erfinv(x: _Operand) -> Tensor:
    """The inverse of `erf` on (-1, 1); infinite at the ends, NaN outside."""

def erfinv_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`erfinv`, written into the tensor; returns it."""

def exp(x: _Operand) -> Tensor:
    """The exponential e**x."""

def exp2(x: _Operand) -> Tensor:
    """The power 2**x."""

def exp2_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`exp2`, written into the tensor; returns it."""

def exp_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`exp`, written into the tensor; returns it."""

def expand(x: _Operand, *shape: _Ints) -> Tensor:
    """A view of x with dimensions of size 1 repeated, and new dimensions in front; -1 keeps a size."""

def expand_copy(input: Any, size: Any, *, implicit: Any = False, out: Any = None) -> Tensor:
    """Return a copy of what `expand` shows, in memory of its own."""

def expm1(x: _Operand) -> Tensor:
    """exp(x) - 1, accurate for small x."""

def expm1_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`expm1`, written into the tensor; returns it."""

def eye(n: _int, m: Any = None, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return an n x m matrix (m defaults to n) with ones on the diagonal and zeros elsewhere."""

def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: _int, quant_min: _int, quant_max: _int) -> Tensor:
    """Return `fake_quantize_per_tensor_affine` of each slice along dimension `axis`, with its own scale and zero point."""

def fake_quantize_per_tensor_affine(input: Tensor, scale: Tensor | _float, zero_point: Tensor | _int, quant_min: _int, quant_max: _int) -> Tensor:
    """Return the value of each element after rounding to an integer q = input / scale + zero_point and back."""

def feature_alpha_dropout(x: _Operand, p: _float = 0.5, training: _bool = False) -> Tensor:
    """Set whole channels to the saturation value of `selu` at random: `alpha_dropout` of x (n, channels, ...)."""

def feature_alpha_dropout_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`feature_alpha_dropout`, written into the tensor; returns it."""

def feature_dropout(x: _Operand, p: _float, train: _bool) -> Tensor:
    """Zero each channel of x (n, channels, ...) with probability p, divide the others by 1 - p; x when not training."""

def feature_dropout_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`feature_dropout`, written into the tensor; returns it."""

def fill(x: _Operand, value: _Operand) -> Tensor:
    """A number, or a tensor without dimensions, in the shape and dtype of x."""

def fill_(x: Any, value: Any) -> Tensor:
    """Fill x with one value in place; return x."""

def fix(x: _Operand) -> Tensor:
    """x rounded towards 0 to an integer.  Its derivative is 0."""

def fix_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`trunc`, written into the tensor; returns it."""

def flatten(x: _Operand, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """x with the dimensions start_dim to end_dim, inclusive, merged into one."""

def flip(x: _Operand, *dims: _Ints) -> Tensor:
    """x with the order of elements reversed along the given dimensions; a copy, as in PyTorch."""

def fliplr(x: _Operand) -> Tensor:
    """x with the second dimension reversed; a copy."""

def flipud(x: _Operand) -> Tensor:
    """x with the first dimension reversed; a copy."""

def float_power(x: _Operand, exponent: _Operand) -> Tensor:
    """Raise x to the power exponent in double precision, for all dtypes of the operands."""

def floor(x: _Operand) -> Tensor:
    """x rounded down to an integer.  Its derivative is 0."""

def floor_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`floor`, written into the tensor; returns it."""

def floor_divide(a: _Operand, b: _Operand) -> Tensor:
    """The quotient a / b rounded down.  Its derivative is 0.  Integer division by 0 raises ZeroDivisionError."""

def fmax(a: _Operand, b: _Operand) -> Tensor:
    """Maximum of a and b, ignoring NaN if only one is; of equals, a has the gradient."""

def fmin(a: _Operand, b: _Operand) -> Tensor:
    """Minimum of a and b, ignoring NaN if only one is; of equals, a has the gradient."""

def fmod(a: _Operand, b: _Operand) -> Tensor:
    """Remainder with the sign of a: a - trunc(a / b) * b."""

def frac(x: _Operand) -> Tensor:
    """Fractional part with the sign of x: x - trunc(x); its derivative is 1."""

def frac_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`frac`, written into the tensor; returns it."""

def frexp(x: _Operand) -> return_types.frexp:
    """Decompose x into mantissa * 2**exponent, a named tuple: |mantissa| is in [0.5, 1), or 0; the exponent is int32."""

def frobenius_norm(x: _Operand, dim: _Ints, keepdim: _bool = False) -> Tensor:
    """The Frobenius norm, the square root of the sum of squares, over `dim`."""

def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: Any = None) -> Tensor:
    """Return the memory of another library's array, or of a capsule of `to_dlpack`, as a tensor, by DLPack."""

def from_file(filename: Any, shared: Any = None, size: Any = 0, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False) -> Tensor:
    """Return a vector of the first `size` elements of a file, which is mapped into memory."""

def from_numpy(array: Any) -> Tensor:
    """Return a tensor that shares the array's memory, on any current device: writes to one change the other."""

def frombuffer(buffer: Any, *, dtype: Any, count: Any = -1, offset: Any = 0, requires_grad: Any = False) -> Tensor:
    """Return the memory of a Python object as a 1-d tensor, without a copy; read-only if the object is."""

def full(size: Any, fill_value: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return a tensor of the given shape, filled with one value; without dtype, in the dtype of the value."""

def full_like(x: Tensor, fill_value: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return a tensor filled with one value, with the shape of x, and its dtype unless another is given."""

def gather(x: _Operand, dim: _int, index: _Operand, *, sparse_grad: _bool = False) -> Tensor:
    """Gather elements of x along `dim`: for each position of `index`, the element at that index; not negative."""

def gcd(a: _Operand, b: _Operand) -> Tensor:
    """Greatest common divisor of |a| and |b|; gcd(0, b) is |b|."""

def gcd_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`gcd`, written into the tensor; returns it."""

def ge(a: _Operand, b: _Operand) -> Tensor:
    """Whether a >= b, elementwise."""

def gelu(x: _Operand, *, approximate: _str = 'none') -> Tensor:
    """x times the normal CDF of x; approximate="tanh" uses the approximation with tanh."""

def gelu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`gelu`, written into the tensor; returns it."""

def geqrf(x: _Operand) -> return_types.geqrf:
    """Return the QR factorisation of matrices (..., m, n) as LAPACK stores it, for `ormqr` and `orgqr`."""

def ger(a: _Operand, b: _Operand) -> Tensor:
    """Outer product of two vectors, (m,) and (n,) to (m, n)."""

def get_default_device() -> Any:
    """Return the device of new tensors: the CPU, unless `set_default_device` was called in this thread."""

def get_deterministic_debug_mode() -> Any:
    """Return 0 if operators need not be deterministic, 1 if a violation would be a warning, 2 if an error."""

def get_device(input: Any) -> _int:
    """Return the index of the accelerator with the tensor; -1 means the CPU."""

def get_float32_matmul_precision() -> Any:
    """Return what `set_float32_matmul_precision` was last called with, "highest" at the start."""

def get_rng_state() -> Any:
    """Return the default generator's state as a tensor of bytes, for `set_rng_state`."""

def gradient(x: _Operand, *, spacing: Any = 1, dim: _Ints | None = None, edge_order: _int = 1) -> tuple[Tensor, ...]:
    """The numerical derivative of a sampled function along each dimension, as a tuple; second order in the interior."""

def greater(a: _Operand, b: _Operand) -> Tensor:
    """Whether a > b, elementwise."""

def greater_equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a >= b, elementwise."""

def grid_sampler(input: Any, grid: Any, interpolation_mode: Any, padding_mode: Any, align_corners: Any) -> Tensor:
    """Return `nn.functional.grid_sample`, with 0, 1 and 2 for the modes, in PyTorch's order."""

def grid_sampler_2d(input: Any, grid: Any, interpolation_mode: Any, padding_mode: Any, align_corners: Any) -> Tensor:
    """Return `nn.functional.grid_sample`, with 0, 1 and 2 for the modes, in PyTorch's order."""

def grid_sampler_3d(input: Any, grid: Any, interpolation_mode: Any, padding_mode: Any, align_corners: Any) -> Tensor:
    """Return `nn.functional.grid_sample`, with 0, 1 and 2 for the modes, in PyTorch's order."""

def group_norm(x: _Operand, num_groups: _int, weight: _Operand | None = None, bias: _Operand | None = None, eps: _float = 1e-05) -> Tensor:
    """Group normalization: each of `num_groups` groups of channels standardized per sample, times weight, plus bias."""

def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """Return the next state of a GRU, as `nn.GRUCell` computes it."""

def gt(a: _Operand, b: _Operand) -> Tensor:
    """Whether a > b, elementwise."""

def hamming_window(window_length: _int, periodic: Any = True, alpha: Any = 0.54, beta: Any = 0.46, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Hamming window: alpha - beta cos over one period."""

def hann_window(window_length: _int, periodic: Any = True, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Hann window: 0.5 - 0.5 cos over one period."""

def hardshrink(x: _Operand, lambd: _float = 0.5) -> Tensor:
    """Return 0 where abs(x) is at most lambd, with derivative 0, and x elsewhere."""

def hash_tensor(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, mode: _int = 0) -> Tensor:
    """The exclusive or, over `dim` (None or (): all), of the bits of the elements in 64 bits, as uint64."""

def heaviside(x: _Operand, values: _Operand) -> Tensor:
    """Heaviside step: 0 where x is negative, 1 where it is positive, `values` where it is 0; derivative 0 by x."""

def hinge_embedding_loss(input: Any, target: Any, margin: Any = 1.0, reduction: Any = 'mean') -> Tensor:
    """Return `nn.functional.hinge_embedding_loss`; reduction may be 0, 1 or 2: none, mean or sum."""

def histc(x: _Operand, bins: _int = 100, min: _Number = 0, max: _Number = 0) -> Tensor:
    """Count elements in `bins` equal bins from min to max; if these are equal, from the extremes of x."""

def histogram(x: _Operand, bins: Any = 100, *, range: Any = None, weight: _Operand | None = None, density: _bool = False) -> return_types.histogram:
    """Count elements in bins; return the counts and the edges of the bins, as a named tuple (hist, bin_edges)."""

def histogramdd(input: Tensor, bins: Any, *, range: Any = None, weight: Any = None, density: Any = False) -> return_types.histogramdd:
    """Count points, the rows of matrices, in multidimensional bins, as a named tuple (hist, bin_edges)."""

def hsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense one as a hybrid tensor: of its nonempty rows."""

def hsplit(x: _Operand, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the second dimension, or the only one; a number of parts must divide its size."""

def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense one as a hybrid tensor: of its nonempty rows."""

def hstack(tensors: Sequence[_Operand]) -> Tensor:
    """Concatenate tensors along the second dimension, or along the only one."""

def huber_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', delta: _float = 1.0, weight: _Operand | None = None) -> Tensor:
    """Huber loss: with d = abs(x - target), d^2 / 2 where d < delta, delta * (d - delta / 2) elsewhere; times weight."""

def hypot(a: _Operand, b: _Operand) -> Tensor:
    """sqrt(a^2 + b^2), without overflow; at the origin the derivative does not exist, and is NaN."""

def i0(x: _Operand) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""

def i0_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`i0`, written into the tensor; returns it."""

def igamma(a: _Operand, x: _Operand) -> Tensor:
    """Regularized lower incomplete gamma function: the gamma distribution function of shape a at x."""

def igammac(a: _Operand, x: _Operand) -> Tensor:
    """Regularized upper incomplete gamma function: 1 - igamma(a, x), accurate where that is small."""

def imag(x: _Operand) -> Tensor:
    """Return the imaginary part as a view; RuntimeError if the dtype is not complex."""

def index_add(x: _Operand, dim: _int, index: _Operand, source: _Operand, *, alpha: _Number = 1) -> Tensor:
    """x with the slices of source, times alpha, added at the indices along `dim` in a 1-d integer tensor."""

def index_copy(x: _Operand, dim: _int, index: _Operand, source: _Operand) -> Tensor:
    """x with the slices of source written at the indices along `dim` in a 1-d integer tensor, which are unique."""

def index_fill(x: _Operand, dim: _int, index: _Operand, value: _Operand) -> Tensor:
    """x with a number, or a tensor without dimensions, written at the indices along `dim`; -1 is the last."""

def index_put(input: Tensor, indices: Any, values: Tensor | _float, accumulate: Any = False) -> Any:
    """`input` with values, which broadcast, written to or added to input[indices], a tuple of index tensors."""

def index_put_(x: Any, indices: Any, values: Any, accumulate: Any = False) -> Tensor:
    """Write values to, or add them to, x[indices], a tuple of index tensors; return x."""

def index_reduce(x: _Operand, dim: _int, index: _Operand, source: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
    """x with the slices of source reduced into indices along `dim`: "prod", "mean", "amax", "amin"."""

def index_select(x: _Operand, dim: _int, index: _Operand) -> Tensor:
    """Select slices along `dim` by a 1-d integer tensor, in its order; negative indices are errors."""

def indices_copy(input: Tensor) -> Tensor:
    """Return a copy of `input.indices()`."""

def initial_seed() -> Any:
    """Return the seed that the default generator was started from."""

def inner(a: _Operand, b: _Operand) -> Tensor:
    """The sum of products over the last dimensions of a and b; a tensor without dimensions multiplies elementwise."""

def instance_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: Any, momentum: Any, eps: Any, cudnn_enabled: Any = False) -> Tensor:
    """Return `nn.functional.instance_norm`, with the arguments in another order."""

def inverse(A: _Operand) -> Tensor:
    """The inverse of square matrices; LinAlgError if one is singular.  To solve A X = B, prefer `linalg.solve`."""

def is_complex(input: Any) -> _bool:
    """Whether the dtype is complex."""

def is_conj(input: Any) -> _bool:
    """Whether a lazy conjugation is pending: always False, since `conj` computes eagerly."""

def is_deterministic_algorithms_warn_only_enabled() -> Any:
    """Whether the last call of `use_deterministic_algorithms` had `warn_only=True`."""

def is_floating_point(input: Any) -> _bool:
    """Whether the dtype is a real floating dtype."""

def is_inference(input: Any) -> _bool:
    """Whether the tensor was created in inference mode, so that it can't be recorded in a graph."""

def is_neg(input: Any) -> _bool:
    """Whether a lazy negation is pending: always False, since `imag` of a conjugate is computed eagerly."""

def is_nonzero(input: Any) -> _bool:
    """Whether the only element of the tensor is nonzero; RuntimeError unless it has exactly one."""

def is_same_size(input: Any, other: Any) -> _bool:
    """Whether two tensors have the same shape."""

def is_signed(input: Any) -> _bool:
    """Whether the dtype can represent negative values."""

def is_storage(obj: Any) -> _bool:
    """Return whether an object is a storage."""

def is_tensor(obj: Any) -> _bool:
    """Whether an object is a tensor."""

def is_warn_always_enabled() -> _bool:
    """Return the last value of `set_warn_always`, which has no effect."""

def isclose(a: _Operand, b: _Operand, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
    """Whether |a - b| <= atol + rtol * |b|; equal infinities are close, and NaN is close to NaN if equal_nan is set."""

def isfinite(x: _Operand) -> Tensor:
    """Whether each element is finite: neither infinite nor NaN."""

def isin(elements: _Operand, test_elements: _Operand, *, assume_unique: _bool = False, invert: _bool = False) -> Tensor:
    """Whether each of `elements` is (`invert`: is not) in `test_elements`; one of the two may be a number."""

def isinf(x: _Operand) -> Tensor:
    """Whether each element is infinite, of either sign."""

def isnan(x: _Operand) -> Tensor:
    """Whether each element is NaN."""

def isneginf(x: _Operand) -> Tensor:
    """Whether x is infinite and negative."""

def isposinf(x: _Operand) -> Tensor:
    """Whether x is infinite and positive."""

def isreal(x: _Operand) -> Tensor:
    """Whether the imaginary part is 0; True for all real values, NaN included."""

def istft(x: _Operand, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: _Operand | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
    """Return the signals whose `stft` is closest to spectra x (..., frequencies, frames), in the least-squares sense."""

def kaiser_window(window_length: _int, periodic: Any = True, beta: Any = 12.0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Kaiser window: I0(beta sqrt(1 - t^2)) / I0(beta) for t from -1 to 1, with I0 the modified Bessel function."""

def kl_div(input: Any, target: Any, reduction: Any = 'mean', *, log_target: Any = False) -> Tensor:
    """Return `nn.functional.kl_div`; reduction may be 0, 1 or 2: none, mean or sum."""

def kron(a: _Operand, b: _Operand) -> Tensor:
    """The Kronecker product: blocks of b, each multiplied by an element of a."""

def kthvalue(x: _Operand, k: _int, dim: _int | None = None, keepdim: _bool = False) -> return_types.kthvalue:
    """The k-th smallest element (k from 1) along `dim` (None: the last), and its index."""

def l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', weight: _Operand | None = None) -> Tensor:
    """Mean absolute error: abs(x - target) times weight, reduced by mean, sum or none; the mean is weighted."""

def layer_norm(x: _Operand, normalized_shape: _Ints, weight: _Operand | None = None, bias: _Operand | None = None, eps: _float = 1e-05) -> Tensor:
    """Layer normalization: x standardized over its last dimensions, `normalized_shape`, times weight, plus bias."""

def lcm(a: _Operand, b: _Operand) -> Tensor:
    """Least common multiple of |a| and |b|; 0 where one is 0."""

def lcm_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`lcm`, written into the tensor; returns it."""

def ldexp(x: _Operand, exponent: _Operand) -> Tensor:
    """Multiply x by 2 to the power exponent."""

def ldexp_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`ldexp`, written into the tensor; returns it."""

def le(a: _Operand, b: _Operand) -> Tensor:
    """Whether a <= b, elementwise."""

def leaky_relu(x: _Operand, negative_slope: _Number = 0.01) -> Tensor:
    """x where it is positive, negative_slope * x elsewhere."""

def leaky_relu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`leaky_relu`, written into the tensor; returns it."""

def lerp(x: _Operand, end: _Operand, weight: _Operand) -> Tensor:
    """Interpolate linearly: x + weight * (end - x), which is x where weight is 0, and exactly `end` where it is 1."""

def less(a: _Operand, b: _Operand) -> Tensor:
    """Whether a < b, elementwise."""

def less_equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a <= b, elementwise."""

def lgamma(x: _Operand) -> Tensor:
    """Logarithm of |gamma(x)|; infinite at 0 and the negative integers."""

def lgamma_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`lgamma`, written into the tensor; returns it."""

def linear(x: _Operand, weight: _Operand, bias: _Operand | None = None) -> Tensor:
    """Affine map x @ weight.T + bias: x (..., in), weight (out, in), bias (out,) to (..., out), as one matrix product."""

def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return `steps` evenly spaced values from start to end, both included; integers are truncated towards 0."""

def lobpcg(A: Any, k: Any = None, B: Any = None, X: Any = None, n: Any = None, iK: Any = None, niter: Any = None, tol: Any = None, largest: Any = None, method: Any = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None) -> tuple[Tensor, Tensor]:
    """Return the k largest eigenvalues e of A x = e B x, (..., k), and their vectors x, (..., m, k), by LOBPCG."""

def log(x: _Operand) -> Tensor:
    """The natural logarithm of x."""

def log10(x: _Operand) -> Tensor:
    """The logarithm of x to base 10."""

def log10_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`log10`, written into the tensor; returns it."""

def log1p(x: _Operand) -> Tensor:
    """log(1 + x), accurate for small x."""

def log1p_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`log1p`, written into the tensor; returns it."""

def log2(x: _Operand) -> Tensor:
    """The logarithm of x to base 2."""

def log2_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`log2`, written into the tensor; returns it."""

def log_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`log`, written into the tensor; returns it."""

def log_softmax(x: _Operand, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
    """The logarithm of the softmax along dim, accurate for small values; computed in `dtype` (None: that of x)."""

def logaddexp(a: _Operand, b: _Operand) -> Tensor:
    """log(exp(a) + exp(b)), without overflow."""

def logaddexp2(a: _Operand, b: _Operand) -> Tensor:
    """log2(2^a + 2^b), without overflow."""

def logcumsumexp(x: _Operand, dim: _int) -> Tensor:
    """log(cumsum(exp(x))) along `dim`; neither values nor derivatives overflow."""

def logdet(A: _Operand) -> Tensor:
    """The logarithm of the determinants of square matrices; NaN where they are negative, -inf where 0."""

def logical_and(a: _Operand, b: _Operand) -> Tensor:
    """Whether both elements are nonzero."""

def logical_not(x: _Operand) -> Tensor:
    """Whether each element is zero."""

def logical_not_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`logical_not`, written into the tensor; returns it."""

def logical_or(a: _Operand, b: _Operand) -> Tensor:
    """Whether at least one of the elements is nonzero."""

def logical_xor(a: _Operand, b: _Operand) -> Tensor:
    """Whether exactly one of the elements is nonzero."""

def logit(x: _Operand, eps: _float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first clamped to [eps, 1 - eps]."""

def logit_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`logit`, written into the tensor; returns it."""

def logspace(start: Any, end: Any, steps: Any, base: Any = 10.0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return `steps` powers of the base, with evenly spaced exponents from start to end."""

def logsumexp(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """log(sum(exp(x))) over `dim` (None or (): all), without overflow; -inf for empty slices."""

def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Tensor, Tensor]:
    """Return the next (h, c) of an LSTM, from hx = (h, c), as `nn.LSTMCell` computes it."""

def lt(a: _Operand, b: _Operand) -> Tensor:
    """Whether a < b, elementwise."""

def lu_solve(x: _Operand, LU_data: _Operand, LU_pivots: _Operand) -> Tensor:
    """`linalg.lu_solve`, with the right side as first argument."""

def lu_unpack(LU_data: _Operand, LU_pivots: _Operand, unpack_data: _bool = True, unpack_pivots: _bool = True) -> return_types.lu_unpack:
    """Unpack the results of `linalg.lu_factor` into P, L and U; empty if not requested."""

def manual_seed(seed: Any) -> Any:
    """Seed the default generator with an integer, or a value that `int` turns into one, and return it."""

def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: Any = 0.0, reduction: Any = 'mean') -> Tensor:
    """Return `nn.functional.margin_ranking_loss`; reduction may be 0, 1 or 2: none, mean or sum."""

def masked_fill(x: _Operand, mask: _Operand, value: _Operand) -> Tensor:
    """x with `value`, a number or a tensor without dimensions, where the mask is true; x and the mask broadcast."""

def masked_scatter(x: _Operand, mask: _Operand, source: _Operand) -> Tensor:
    """x with the elements of `source`, in order, where the mask is true; x and the mask broadcast."""

def masked_select(x: _Operand, mask: _Operand) -> Tensor:
    """The elements of x where the mask is true, as a 1-d tensor; x and the mask broadcast."""

def matmul(a: _Operand, b: _Operand) -> Tensor:
    """Matrix product: (..., m, k) times (..., k, n) is (..., m, n); the leading dimensions broadcast."""

def matrix_exp(A: _Operand) -> Tensor:
    """The matrix exponential, the sum of A^n / n!, of square matrices.  Needs SciPy."""

def matrix_power(A: _Operand, n: _int) -> Tensor:
    """The n-th power of square matrices, by repeated squaring; of the inverses for negative n."""

def matrix_transpose(A: _Operand) -> Tensor:
    """A view of matrices, the last two dimensions, with rows and columns swapped, as in NumPy."""

@overload
def max(x: _Operand, dim: _int, keepdim: _bool = False, *, other: _Operand | None = None) -> return_types.max: ...
@overload
def max(x: _Operand, dim: Tensor | None = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
    """The maximum of all elements; along `dim`, a named tuple (values, indices); with a second tensor, `maximum`."""

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

@overload
def max_pool3d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(x: _Operand, kernel_size: _Ints, stride: _Ints | None = None, padding: _Ints = 0, dilation: _Ints = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The largest element of each window of images (n, c, *sizes) or (c, *sizes) with 3 spatial dimensions."""

def maximum(a: _Operand, b: _Operand) -> Tensor:
    """The elementwise maximum of a and b.  Equal elements share the gradient."""

def mean(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The mean of elements over `dim` (None or (): all); NaN for empty slices."""

@overload
def median(x: _Operand, dim: _int, keepdim: _bool = False) -> return_types.median: ...
@overload
def median(x: _Operand, dim: None = None, keepdim: _bool = False) -> Tensor:
    """The median, the lower of two in the middle; along `dim`, a named tuple (values, indices).  NaN wins."""

def meshgrid(tensors: Sequence[_Operand] = (), *, indexing: _str = 'ij') -> tuple[Tensor, ...]:
    """Return one tensor per vector, with one dimension per vector: the i-th varies along dimension i."""

@overload
def min(x: _Operand, dim: _int, keepdim: _bool = False, *, other: _Operand | None = None) -> return_types.min: ...
@overload
def min(x: _Operand, dim: Tensor | None = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
    """The minimum of all elements; along `dim`, a named tuple (values, indices); with a second tensor, `minimum`."""

def minimum(a: _Operand, b: _Operand) -> Tensor:
    """The elementwise minimum of a and b.  Equal elements share the gradient."""

def mm(a: _Operand, b: _Operand) -> Tensor:
    """Product of two matrices, (m, k) and (k, n)."""

def mode(x: _Operand, dim: _int = -1, keepdim: _bool = False) -> return_types.mode:
    """The most frequent value along `dim`, the smallest if tied, and its last index.  NaN equals nothing."""

def moveaxis(x: _Operand, source: _Ints, destination: _Ints) -> Tensor:
    """A view of x with dimensions moved to new positions; the others keep their order."""

def movedim(x: _Operand, source: _Ints, destination: _Ints) -> Tensor:
    """A view of x with dimensions moved to new positions; the others keep their order."""

def mse_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', weight: _Operand | None = None) -> Tensor:
    """Mean squared error: (x - target)^2 times weight, reduced by mean, sum or none; the mean is weighted."""

def msort(x: _Operand) -> Tensor:
    """x sorted along the first dimension."""

def mul(a: _Operand, b: _Operand) -> Tensor:
    """The elementwise product a * b; a and b broadcast."""

def multinomial(x: _Operand, num_samples: _int, replacement: _bool = False, *, generator: Any = None) -> Tensor:
    """Sample `num_samples` indices per row of x, with probabilities proportional to its values."""

def multiply(a: _Operand, b: _Operand) -> Tensor:
    """The elementwise product a * b; a and b broadcast."""

def mv(a: _Operand, b: _Operand) -> Tensor:
    """Product of a matrix (m, k) and a vector (k,)."""

def mvlgamma(x: _Operand, p: _int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p at x, which is (degrees of freedom) / 2."""

def mvlgamma_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`mvlgamma`, written into the tensor; returns it."""

def nan_to_num(x: _Operand, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """Replace NaN (default 0) and infinities (default the dtype's largest) by numbers; there the derivative is 0."""

def nan_to_num_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`nan_to_num`, written into the tensor; returns it."""

def nanmean(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The mean over `dim` (None or (): all) of the elements that are not NaN; NaN if there are none."""

@overload
def nanmedian(x: _Operand, dim: _int, keepdim: _bool = False) -> return_types.nanmedian: ...
@overload
def nanmedian(x: _Operand, dim: None = None, keepdim: _bool = False) -> Tensor:
    """The `median` of the elements that are not NaN; NaN if there are none."""

def nanquantile(x: _Operand, q: _Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
    """The `quantile` of the elements that are not NaN; NaN if there are none."""

def nansum(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum over `dim` (None or (): all) of the elements that are not NaN; real dtypes only."""

def narrow(x: _Operand, dim: _int, start: _int, length: _int) -> Tensor:
    """A view of x at the indices start to start + length along `dim`; a negative start counts from the end."""

def narrow_copy(x: _Operand, dim: _int, start: _int, length: _int) -> Tensor:
    """A copy of `narrow`."""

def native_batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: Any, momentum: Any, eps: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return `nn.functional.batch_norm`, and when training means and inverse deviations, without gradients."""

def native_channel_shuffle(input: Any, groups: Any) -> Tensor:
    """Return `channel_shuffle`."""

def native_dropout(input: Any, p: Any, train: Any) -> tuple[Tensor, Tensor]:
    """Return `nn.functional.dropout`, and the mask of the elements that are not dropped."""

def native_group_norm(input: Any, weight: Any, bias: Any, N: Any, C: Any, HxW: Any, group: Any, eps: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return `group_norm` of N samples of C channels of HxW elements, means and inverse deviations (N, group)."""

def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return `layer_norm`, and, without gradients, its means and inverse standard deviations."""

def ne(a: _Operand, b: _Operand) -> Tensor:
    """Whether a != b, elementwise."""

def neg(x: _Operand) -> Tensor:
    """The elementwise negation -x."""

def neg_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`neg`, written into the tensor; returns it."""

def negative(x: _Operand) -> Tensor:
    """The elementwise negation -x."""

def negative_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`neg`, written into the tensor; returns it."""

def nextafter(a: _Operand, b: _Operand) -> Tensor:
    """Next representable value after a towards b; b where they are equal, with derivative 0; by b it is always 0."""

def nll_loss(x: _Operand, target: _Operand, weight: _Operand | None = None, ignore_index: _int = -100, reduction: _str = 'mean') -> Tensor:
    """Negative log likelihood: -x at the target class, times the weight of the class; x are log-probabilities."""

@overload
def nonzero(x: _Operand, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@overload
def nonzero(x: _Operand, *, as_tuple: Literal[False] = False) -> Tensor:
    """Return the indices of the nonzero elements, as one (n, ndim) tensor or as one tensor per dimension."""

def nonzero_static(x: _Operand, *, size: _int, fill_value: _int = -1) -> Tensor:
    """The first `size` indices of nonzero elements, one per row, padded with `fill_value`."""

def norm(x: _Operand, p: Any = 'fro', dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The p-norm `linalg.vector_norm` over `dim` (None: all elements as one vector)."""

def norm_except_dim(v: _Operand, pow: _int = 2, dim: _int = 0) -> Tensor:
    """The norm of order `pow` over all dimensions except `dim`, with keepdim; over all dimensions for dim -1."""

def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Normal random values: of the given size, or one per element of tensors mean and std, which broadcast."""

def normalize(x: _Operand, p: _Number = 2, dim: _Ints = 1, eps: _float = 1e-12) -> Tensor:
    """x divided by its p-norm over dim, or by eps where the norm is smaller."""

def not_equal(a: _Operand, b: _Operand) -> Tensor:
    """Whether a != b, elementwise."""

def nuclear_norm(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """The nuclear norm, the sum of singular values, of a matrix or over two dimensions."""

def numel(input: Any) -> _int:
    """The number of elements."""

def one_hot(tensor: _Operand, num_classes: _int = -1) -> Tensor:
    """One-hot encode integer classes in a new last dimension, in int64."""

def ones(*size: _int, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Ones of the given shape, in the default dtype unless another is given."""

def ones_like(x: Tensor, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return ones with the shape of x, and its dtype unless another is given."""

def orgqr(A: _Operand, tau: _Operand) -> Tensor:
    """First n columns of the product of reflections 1 - tau_i v_i v_i^H, with v_i stored below the diagonal of A."""

def ormqr(x: _Operand, tau: _Operand, other: _Operand, left: _bool = True, transpose: _bool = False) -> Tensor:
    """Multiply `other` by Q (m, m), the product of reflections from `geqrf`: Q other, or, with left=False, other Q."""

def outer(a: _Operand, b: _Operand) -> Tensor:
    """Outer product of two vectors, (m,) and (n,) to (m, n)."""

def pairwise_distance(x1: _Operand, x2: _Operand, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension; the two broadcast."""

def pca_lowrank(A: _Operand, q: _int | None = None, center: _bool = True, niter: _int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components: `svd_lowrank` of A (..., m, n), m samples of n features, minus their mean if `center`."""

def pdist(x: _Operand, p: _float = 2.0) -> Tensor:
    """The p-norm distance between each row of a matrix and each later one: the upper triangle of `cdist`, row by row."""

def permute(x: _Operand, *dims: _Ints) -> Tensor:
    """A view of x with dimensions reordered: dimension i of the result is dimension dims[i] of x."""

def permute_copy(input: Any, dims: Any, *, out: Any = None) -> Tensor:
    """Return a copy of what `permute` shows, in memory of its own."""

def pinverse(x: _Operand, rcond: _Number = 1e-15) -> Tensor:
    """The pseudo-inverse `linalg.pinv`, under its older name."""

def pixel_shuffle(x: _Operand, upscale_factor: _int) -> Tensor:
    """Rearrange channels into pixels: (..., c * r^2, h, w) to (..., c, h * r, w * r), r being upscale_factor."""

def pixel_unshuffle(x: _Operand, downscale_factor: _int) -> Tensor:
    """Undo `pixel_shuffle`: (..., c, h * r, w * r) to (..., c * r^2, h, w), r being downscale_factor."""

def poisson(x: _Operand, generator: Any = None) -> Tensor:
    """Sample from Poisson distributions with means x, in the dtype of x."""

def poisson_nll_loss(input: Any, target: Any, log_input: Any = True, full: Any = False, eps: Any = 1e-08, reduction: Any = 'mean') -> Tensor:
    """Return `nn.functional.poisson_nll_loss`; reduction may be 0, 1 or 2: none, mean or sum."""

def polar(abs: _Operand, angle: _Operand) -> Tensor:
    """Return abs * exp(1j * angle), angle in radians; the two broadcast, and are both float32 or both float64."""

def polygamma(n: _int, x: _Operand) -> Tensor:
    """Derivative of `digamma` of order n, at least 0."""

def positive(x: _Operand) -> Tensor:
    """Return x itself; TypeError for booleans, which have no sign."""

def pow(a: _Operand, exponent: _Operand) -> Tensor:
    """a raised elementwise to the power `exponent`."""

def prelu(x: _Operand, weight: _Operand) -> Tensor:
    """Return x where positive and weight * x elsewhere: one weight, or one per channel, which is dimension 1 of x."""

def prod(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The product of elements over `dim` (None or (): all); derivatives of every order hold where factors are 0."""

def promote_types(type1: Any, type2: Any) -> Any:
    """The common dtype to which two dtypes are promoted."""

def put(x: _Operand, index: _Operand, source: _Operand, accumulate: _bool = False) -> Tensor:
    """x with the elements of source written, or added, at the indices of x in row-major order."""

def qr(x: _Operand, some: _bool = True) -> return_types.qr:
    """QR factorisation: `linalg.qr`, with mode "complete" if not `some`."""

def quantile(x: _Operand, q: _Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
    """The quantiles of x at q (from 0 to 1) along `dim` (None: of all)."""

def rad2deg(x: _Operand) -> Tensor:
    """Convert radians to degrees."""

def rad2deg_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`rad2deg`, written into the tensor; returns it."""

def rand(*size: _int, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Uniform random values in [0, 1) of the given shape; for complex dtypes both parts."""

def rand_like(input: Any, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Uniform random values in [0, 1) in the shape of the input, and in its dtype unless another is given."""

def randint(low: Any = 0, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Uniform random integers from low (default 0) to high - 1, of the given shape."""

def randint_like(input: Tensor, low: Any = 0, high: Any = None, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Uniform random integers from low (default 0) to high - 1 in the shape and dtype of the input."""

def randn(*size: _int, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Standard normal random values of the given shape; complex ones have variance 1, too."""

def randn_like(input: Any, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Standard normal random values in the shape of the input, and in its dtype unless another is given."""

def randperm(n: _int, *, generator: Any = None, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """A random permutation of the integers 0 to n - 1."""

def range(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return the values from start up to and including end, in the default dtype; `arange` excludes its end."""

def ravel(x: _Operand) -> Tensor:
    """Flatten into one dimension in row-major order: a view of a contiguous tensor, else a copy."""

def real(x: _Operand) -> Tensor:
    """Return the real part as a view; a real tensor is returned itself."""

def reciprocal(x: _Operand) -> Tensor:
    """The elementwise reciprocal 1 / x."""

def reciprocal_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`reciprocal`, written into the tensor; returns it."""

def relu(x: _Operand) -> Tensor:
    """The rectified linear unit max(x, 0).  Its derivative is 0 at 0, and 1 at NaN."""

def relu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`relu`, written into the tensor; returns it."""

def remainder(a: _Operand, b: _Operand) -> Tensor:
    """The remainder a - floor(a / b) * b, with the sign of b.  Integer division by 0 raises ZeroDivisionError."""

def renorm(x: _Operand, p: _Number, dim: _int, maxnorm: _Number) -> Tensor:
    """x with each slice along `dim` scaled down to the p-norm maxnorm if its norm is larger."""

def renorm_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`renorm`, written into the tensor; returns it."""

def repeat(x: _Operand, *repeats: _Ints) -> Tensor:
    """Repeat the tensor repeats[i] times along dimension i, as a copy; new dimensions are in front."""

def repeat_interleave(x: _Operand, repeats: _Operand | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
    """Repeat each slice along `dim` (None: each element, in row-major order) by `repeats`, one number or one per slice."""

def reshape(x: _Operand, *shape: _Ints) -> Tensor:
    """x with the same elements, in row-major order, in another shape; one size may be -1.  A view if strides allow."""

def resize_as_(input: Any, the_template: Any, *, memory_format: Any = ...) -> Tensor:
    """Resize this tensor in place to the shape of another one, as `resize_` does; `preserve_format` is that one's."""

def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Give a COO tensor the size of another one, in place; return it."""

def resolve_conj(x: _Operand) -> Tensor:
    """Return x itself: no lazy conjugation exists here, unlike in PyTorch."""

def resolve_neg(input: Any) -> Tensor:
    """The tensor itself: unlike in PyTorch, no negation is ever pending."""

def result_type(tensor1: Tensor | _float, tensor2: Tensor | _float) -> Any:
    """The common dtype of two tensors or numbers; numbers and tensors without dimensions give way to tensors."""

def rms_norm(x: _Operand, normalized_shape: _Ints, weight: _Operand | None = None, eps: _float | None = None) -> Tensor:
    """RMS normalization: x / sqrt(mean(x^2) + eps) over its last dimensions, `normalized_shape`, times weight."""

def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """Return the next state of a recurrence with relu, as `nn.RNNCell` computes it."""

def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """Return the next state of a recurrence with tanh, as `nn.RNNCell` computes it."""

def roll(x: _Operand, shifts: _Ints, dim: _Ints | None = None) -> Tensor:
    """x shifted cyclically along each of `dim` (None: in row-major order)."""

def rot90(x: _Operand, k: _int = 1, dims: _Ints = (0, 1)) -> Tensor:
    """x rotated k times by 90 degrees in the plane of two dimensions, from the first towards the second; a copy."""

def round(x: _Operand, *, decimals: _int = 0) -> Tensor:
    """x rounded to `decimals` decimals, halves to even; negative decimals round to tens.  Its derivative is 0."""

def round_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`round`, written into the tensor; returns it."""

def row_indices_copy(input: Tensor) -> Tensor:
    """Return a copy of `input.row_indices()`."""

def row_stack(tensors: Sequence[_Operand]) -> Tensor:
    """Concatenate tensors along the first dimension; vectors are rows."""

def rows_dot(a: _Operand, b: _Operand) -> Tensor:
    """The sum over all rows of their outer products: (..., k) and (..., n) to (k, n), as one matrix product."""

def rrelu(x: _Operand, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False) -> Tensor:
    """Randomized leaky ReLU: x where positive, slope * x elsewhere; in training, slopes are drawn from [lower, upper]."""

def rrelu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`rrelu`, written into the tensor; returns it."""

def rsqrt(x: _Operand) -> Tensor:
    """The reciprocal of the square root, 1 / sqrt(x)."""

def rsqrt_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`rsqrt`, written into the tensor; returns it."""

def rsub(a: _Operand, b: _Operand, *, alpha: _Number = 1) -> Tensor:
    """Subtract with swapped operands: b - alpha * a."""

def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
    """Return beta · input + alpha · (mat1 @ mat2) for a sparse mat1 and dense others."""

def sample_beta(a: _Operand, b: _Operand, *, generator: Any = None) -> Tensor:
    """Sample from beta distributions; gradients reach the parameters, as in `standard_gamma`."""

def sample_chi2(df: _Operand, *, generator: Any = None) -> Tensor:
    """Sample from chi-squared distributions with `df` degrees of freedom; gradients reach these."""

def sample_dirichlet(concentration: _Operand, *, generator: Any = None) -> Tensor:
    """Sample from Dirichlet distributions along the last dimension: positive values with sum 1."""

def sample_student_t(df: _Operand, *, generator: Any = None) -> Tensor:
    """Sample from Student's t distributions with `df` degrees of freedom; gradients reach these."""

def sample_von_mises(loc: _Operand, concentration: _Operand, *, generator: Any = None) -> Tensor:
    """Sample angles between -pi and pi from von Mises distributions; a concentration of 0 is the uniform one."""

def scalar_tensor(s: Any, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return a number as a tensor without dimensions, in the default dtype unless another is given."""

def scaled_dot_product_attention(query: _Operand, key: _Operand, value: _Operand, attn_mask: _Operand | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, *, scale: _float | None = None, enable_gqa: _bool = False) -> Tensor:
    """Attention, softmax(scale * query key^T + mask) value: (..., l, e), (..., s, e), (..., s, d) to (..., l, d)."""

def scatter(x: _Operand, dim: _int, index: _Operand, src: _Operand | None = None, *, value: _Number | None = None, reduce: _str | None = None) -> Tensor:
    """x with the elements of src, or one value, written at `index` along `dim`; the counterpart of gather."""

def scatter_add(x: _Operand, dim: _int, index: _Operand, src: _Operand) -> Tensor:
    """x with the elements of src added at `index` along `dim`; sizes as in `scatter`."""

def scatter_reduce(x: _Operand, dim: _int, index: _Operand, src: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
    """x with the elements of src reduced into `index` along `dim`: "sum", "prod", "mean", "amax" or "amin"."""

def searchsorted(sorted_sequence: _Operand, input: _Operand, *, out_int32: _bool = False, right: _bool = False, side: _str | None = None, sorter: _Operand | None = None) -> Tensor:
    """The index at which each value is inserted into a sorted sequence; `right`, or side="right": after equal elements."""

def seed() -> Any:
    """Seed the default generator from the operating system, and return the seed."""

def segment_reduce(data: Any, reduce: _str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: _int = 0, unsafe: _bool = False, initial: Any = None) -> Tensor:
    """Return the "sum", "mean", "max", "min" or "prod" of each segment of `data` along a dimension."""

def select(x: _Operand, dim: _int, index: _int) -> Tensor:
    """Return the slice at `index` along `dim`, without that dimension; a view."""

def select_copy(x: Tensor, dim: _int, index: _int, *, out: Any = None) -> Tensor:
    """Return a copy of what `select` shows, in memory of its own."""

def select_scatter(x: _Operand, src: _Operand, dim: _int, index: _int) -> Tensor:
    """Return x with src in place of x.select(dim, index)."""

def selu(x: _Operand) -> Tensor:
    """Scaled exponential linear unit: 1.0507 * elu(x, 1.6733); a stack of such layers keeps mean 0 and variance 1."""

def selu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`selu`, written into the tensor; returns it."""

def set_default_device(device: Any) -> Any:
    """Set the device of new tensors in this thread; None is the CPU. RuntimeError for one that has no tensors."""

def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a tensor class such as `FloatTensor`, or its name; `set_default_dtype` is the newer way."""

def set_deterministic_debug_mode(debug_mode: Any) -> Any:
    """Set `use_deterministic_algorithms` by a name or number: "default" or 0, "warn" or 1, "error" or 2."""

def set_float32_matmul_precision(precision: Any) -> Any:
    """Set how precise products of float32 matrices need to be: "highest", "high" or "medium"."""

def set_flush_denormal(mode: _bool) -> Any:
    """Return False: numbers below the smallest normal one are never replaced by 0."""

def set_printoptions(precision: Any = None, threshold: Any = None, edgeitems: Any = None, linewidth: Any = None, profile: Any = None, sci_mode: Any = None) -> None:
    """Set how tensors are printed; options that are not given stay unchanged, but `sci_mode` becomes None."""

def set_rng_state(new_state: Any) -> Any:
    """Restore a state of the default generator that `get_rng_state` returned."""

def set_warn_always(b: _bool) -> None:
    """Accept the setting without effect: Python's filters decide how often warnings are shown."""

def sgn(x: _Operand) -> Tensor:
    """Return the sign of x, x / |x|, and 0 with derivative 0 at 0; `sign` for real values."""

def sgn_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sgn`, written into the tensor; returns it."""

def sigmoid(x: _Operand) -> Tensor:
    """The logistic sigmoid 1 / (1 + exp(-x))."""

def sigmoid_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sigmoid`, written into the tensor; returns it."""

def sign(x: _Operand) -> Tensor:
    """The sign of x: -1, 0 or 1.  Its derivative is 0.  For complex tensors use `sgn`."""

def sign_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sign`, written into the tensor; returns it."""

def signbit(x: _Operand) -> Tensor:
    """Whether the sign bit is set, as in -0.0."""

def silu(x: _Operand) -> Tensor:
    """The sigmoid linear unit x * sigmoid(x), also called swish."""

def silu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`silu`, written into the tensor; returns it."""

def sin(x: _Operand) -> Tensor:
    """The sine of x radians."""

def sin_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sin`, written into the tensor; returns it."""

def sinc(x: _Operand) -> Tensor:
    """The normalized sinc sin(pi x) / (pi x), 1 at 0; derivatives of every order hold there, too."""

def sinc_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sinc`, written into the tensor; returns it."""

def sinh(x: _Operand) -> Tensor:
    """The hyperbolic sine of x."""

def sinh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sinh`, written into the tensor; returns it."""

def slice_copy(input: Any, dim: Any = 0, start: Any = None, end: Any = None, step: Any = 1, *, out: Any = None) -> Tensor:
    """Return a copy of what `slice` shows, in memory of its own."""

def slice_scatter(x: _Operand, src: _Operand, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """Return x with src in place of x[start:end:step] along `dim`."""

def sliding_window_view(x: _Operand, window_shape: _Ints, dim: _Ints | None = None) -> Tensor:
    """View all windows of a shape over the dimensions `dim` (None: all), in new last dimensions, as in NumPy."""

def slogdet(A: _Operand) -> return_types.linalg_slogdet:
    """The sign, and the log of the absolute value, of determinants of square matrices, which can't overflow."""

def smm(input: Tensor, mat: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense one as a sparse matrix, with all elements of nonempty rows."""

def smooth_l1_loss(x: _Operand, target: _Operand, reduction: _str = 'mean', beta: _float = 1.0) -> Tensor:
    """Smooth L1 loss: with d = abs(x - target), d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere."""

def softmax(x: _Operand, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
    """The softmax exp(x) / sum(exp(x)) along dim, without overflow; computed in `dtype` (None: that of x)."""

def softplus(x: _Operand, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x exceeds the threshold."""

def softplus_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`softplus`, written into the tensor; returns it."""

def sort(x: _Operand, dim: _int = -1, descending: _bool = False, *, stable: _bool = False) -> return_types.sort:
    """x sorted along `dim` and the indices that sort it, as a named tuple (values, indices)."""

def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """Return a sparse tensor in the layout `rg.sparse_bsc`: see `sparse_compressed_tensor`."""

def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """Return a sparse tensor in the layout `rg.sparse_bsr`: see `sparse_compressed_tensor`."""

def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """Return a sparse tensor compressed by rows or by columns, in a layout such as `rg.sparse_csr`."""

def sparse_coo_tensor(indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None, is_coalesced: _bool | None = None) -> Tensor:
    """Return a sparse tensor in COO format: the sum of `values` at the coordinates `indices`, and zeros elsewhere."""

def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """Return a sparse tensor in the layout `rg.sparse_csc`: see `sparse_compressed_tensor`."""

def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """Return a sparse tensor in the layout `rg.sparse_csr`: see `sparse_compressed_tensor`."""

def split(tensor: _Operand, split_size_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of views along `dim`: of one size (the last may be smaller), or of the sizes listed."""

def split_copy(tensor: Tensor, split_size_or_sections: Any, dim: _int = 0, *, out: Any = None) -> tuple[Tensor, ...]:
    """Return a copy of what `split` shows, in memory of its own."""

def split_with_sizes(x: _Operand, split_sizes: _Ints, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of views of the sizes listed along `dim`."""

def split_with_sizes_copy(x: Tensor, split_sizes: Any, dim: _int = 0, *, out: Any = None) -> tuple[Tensor, ...]:
    """Return a copy of what `split_with_sizes` shows, in memory of its own."""

def spmm(mat1: Tensor, mat2: Tensor, reduce: _str = 'sum') -> Tensor:
    """Return the product of two matrices, of which the first is sparse, or both are."""

def sqrt(x: _Operand) -> Tensor:
    """The elementwise square root; NaN for negative values."""

def sqrt_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`sqrt`, written into the tensor; returns it."""

def square(x: _Operand) -> Tensor:
    """The elementwise square x * x; int64 for booleans."""

def square_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`square`, written into the tensor; returns it."""

def squeeze(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """A view of x without its dimensions of size 1, or without those of them listed in `dim`."""

def squeeze_copy(x: Tensor, dim: Any = None, *, out: Any = None) -> Tensor:
    """Return a copy of what `squeeze` shows, in memory of its own."""

def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
    """Return beta · input + alpha · (mat1 @ mat2) for sparse input and mat1 and a dense mat2; the result is sparse."""

def stack(tensors: Sequence[_Operand], dim: _int = 0) -> Tensor:
    """Tensors of equal shape stacked along a new dimension."""

def standard_gamma(alpha: _Operand, *, generator: Any = None) -> Tensor:
    """Sample from gamma distributions with shape alpha and scale 1."""

def standardize(x: _Operand, ndim: _int = 1, *, eps: _float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(variance + eps) over the last `ndim` dimensions, with the biased variance."""

def std(x: _Operand, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> Tensor:
    """The standard deviation over `dim`, the square root of `var`.  Its derivative where it is 0 is taken as 0."""

def std_mean(x: _Operand, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over `dim`, as a tuple."""

def stft(x: _Operand, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: _Operand | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
    """Return the short-time Fourier transform: spectra of overlapping windows of signals (..., length)."""

def sub(a: _Operand, b: _Operand, *, alpha: _Number = 1) -> Tensor:
    """The elementwise difference a - b; a and b broadcast."""

def subtract(a: _Operand, b: _Operand, *, alpha: _Number = 1) -> Tensor:
    """Subtract: a - alpha * b."""

def sum(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of elements over `dim` (None or (): all).  Integers and booleans are summed in int64."""

def sum_to_size(x: _Operand, *shape: _Ints) -> Tensor:
    """Sum x over the dimensions along which a tensor of `shape` would be broadcast to the shape of x."""

def svd(x: _Operand, some: _bool = True, compute_uv: _bool = True) -> return_types.svd:
    """The SVD x = U diag(S) V^H: `linalg.svd` with V in place of V^H; zeros for U and V without compute_uv."""

def svd_lowrank(A: _Operand, q: _int | None = 6, niter: _int | None = 2, M: _Operand | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Approximate the SVD of rank q: U, S, V with A - M about U diag(S) V^H; A (..., m, n), M (None: 0) a mean."""

def swapaxes(x: _Operand, axis0: _int, axis1: _int) -> Tensor:
    """A view with two dimensions swapped: `transpose` under NumPy's name."""

def swapdims(x: _Operand, dim0: _int, dim1: _int) -> Tensor:
    """A view of x with two dimensions swapped."""

def sym_float(a: Any) -> Any:
    """Return a number as a float."""

def sym_int(a: _float) -> Any:
    """Return a number as an integer, truncated towards 0; a symbolic size as it is."""

def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return t if b is true, else f; TypeError unless b is a boolean, and t and f have the same type."""

def sym_max(a: _float, b: _float) -> Any:
    """Return the larger number, as a float if one of them is a float."""

def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller number, as a float if one of them is a float."""

def sym_not(a: Any) -> Any:
    """Return the negation of a boolean."""

def sym_sqrt(a: Any) -> Any:
    """Return the square root of a number."""

def sym_sum(*args: Any) -> Any:
    """Return the sum of numbers, given as arguments or as one sequence."""

def t(x: _Operand) -> Tensor:
    """A view of a matrix transposed; of tensors with fewer dimensions, a view unchanged."""

def t_copy(x: Tensor, *, out: Any = None) -> Tensor:
    """Return a copy of what `t` shows, in memory of its own."""

def take(x: _Operand, index: _Operand) -> Tensor:
    """Return the elements of x at flat indices, in the shape of `index`; -1 is the last element."""

def take_along_dim(x: _Operand, indices: _Operand, dim: _int | None = None) -> Tensor:
    """Gather elements along `dim`: for each position of `indices`, the element of x there; other dimensions broadcast."""

def tan(x: _Operand) -> Tensor:
    """The tangent of x radians."""

def tan_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`tan`, written into the tensor; returns it."""

def tanh(x: _Operand) -> Tensor:
    """The hyperbolic tangent of x."""

def tanh_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`tanh`, written into the tensor; returns it."""

def tensor(data: Any, dtype: Any = None, requires_grad: Any = False, *, device: Any = None, pin_memory: Any = False) -> Tensor:
    """Return a tensor with a copy of the data: a number, nested lists of numbers, an array, a tensor or a storage."""

def tensor_split(x: _Operand, indices_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of views along `dim`: a number of nearly equal parts, or the parts between the indices listed."""

def tensordot(a: _Operand, b: _Operand, dims: Any = 2) -> Tensor:
    """The contraction of a and b: the sum of products over some dimensions of a and as many of b."""

def threshold(x: _Operand, threshold: _Number, value: _Number) -> Tensor:
    """Return x where it is greater than the threshold, and `value`, with derivative 0, elsewhere."""

def threshold_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`threshold`, written into the tensor; returns it."""

def tile(x: _Operand, *dims: _Ints) -> Tensor:
    """Repeat the tensor as `repeat` does, with 1 for each leading dimension that `dims` leaves out."""

def to_dlpack(tensor: Tensor) -> Any:
    """Return a capsule for the memory of a tensor on the CPU, which `from_dlpack` of any library takes once."""

def topk(x: _Operand, k: _int, dim: _int | None = None, largest: _bool = True, sorted: _bool = True) -> return_types.topk:
    """The k largest (or smallest) elements along `dim` (None: the last), and their indices, sorted by rank."""

def trace(x: _Operand) -> Tensor:
    """Sum of the diagonal of a matrix."""

def transpose(x: _Operand, dim0: _int, dim1: _int) -> Tensor:
    """A view of x with two dimensions swapped."""

def transpose_copy(x: Tensor, dim0: _int, dim1: _int, *, out: Any = None) -> Tensor:
    """Return a copy of what `transpose` shows, in memory of its own."""

def trapezoid(y: _Operand, x: _Operand | None = None, *, dx: _Number | None = None, dim: _int = -1) -> Tensor:
    """The integral of y along `dim` by the trapezoidal rule, at the points x or with spacing dx (default 1)."""

def trapz(y: _Operand, x: _Operand | None = None, *, dx: _Number | None = None, dim: _int = -1) -> Tensor:
    """The integral of y along `dim` by the trapezoidal rule, at the points x or with spacing dx (default 1)."""

def triangular_solve(b: _Operand, A: _Operand, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> return_types.triangular_solve:
    """The solution X of A X = b, or with `transpose` of A^T X = b, and a copy of A: older `linalg.solve_triangular`."""

def tril(x: _Operand, diagonal: _int = 0) -> Tensor:
    """The lower triangle of the last two dimensions; elements above the given diagonal become 0."""

def tril_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`tril`, written into the tensor; returns it."""

def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The row and column indices of the lower triangle of a matrix, up to a diagonal: shape (2, n)."""

def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: Any = 1.0, p: Any = 2, eps: Any = 1e-06, swap: Any = False, reduction: Any = 'mean') -> Tensor:
    """Return `nn.functional.triplet_margin_loss`; reduction may be 0, 1 or 2: none, mean or sum."""

def triu(x: _Operand, diagonal: _int = 0) -> Tensor:
    """The upper triangle of the last two dimensions; elements below the given diagonal become 0."""

def triu_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`triu`, written into the tensor; returns it."""

def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The row and column indices of the upper triangle of a matrix, from a diagonal on: shape (2, n)."""

def true_divide(a: _Operand, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
    """The elementwise quotient a / b, in a floating dtype."""

def trunc(x: _Operand) -> Tensor:
    """x rounded towards 0 to an integer.  Its derivative is 0."""

def trunc_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`trunc`, written into the tensor; returns it."""

def typename(obj: Any) -> _str:
    """Return the name of a class or function with its module; for other objects, of their class; for tensors by dtype."""

def unbind(x: _Operand, dim: _int = 0) -> tuple[Tensor, ...]:
    """A tuple of views, the slices along `dim`, without that dimension."""

def unbind_copy(x: Tensor, dim: _int = 0, *, out: Any = None) -> tuple[Tensor, ...]:
    """Return a copy of what `unbind` shows, in memory of its own."""

def unflatten(x: _Operand, dim: _int, sizes: _Ints) -> Tensor:
    """x with one dimension split into several; one of the sizes may be -1."""

def unfold(x: _Operand, dimension: _int, size: _int, step: _int) -> Tensor:
    """View windows of `size` elements at every `step` along a dimension, each window in a new last dimension."""

def unfold_copy(input: Any, dimension: Any, size: Any, step: Any, *, out: Any = None) -> Tensor:
    """Return a copy of what `unfold` shows, in memory of its own."""

def unfold_dim(x: _Operand, dimension: _int, size: _int, step: _int) -> Tensor:
    """View windows of `size` elements at every `step` along a dimension, each window in a new last dimension."""

@overload
def unique(x: _Operand, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: _bool = False, dim: _int | None = None) -> tuple[Tensor, ...]: ...
@overload
def unique(x: _Operand, sorted: _bool = True, return_inverse: _bool = False, *, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, ...]: ...
@overload
def unique(x: _Operand, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
    """The unique elements of x, sorted; with `dim`, the unique slices along it."""

@overload
def unique_consecutive(x: _Operand, return_inverse: Literal[True], return_counts: _bool = False, dim: _int | None = None) -> tuple[Tensor, ...]: ...
@overload
def unique_consecutive(x: _Operand, return_inverse: _bool = False, *, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, ...]: ...
@overload
def unique_consecutive(x: _Operand, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
    """The elements of x without consecutive duplicates; with `dim`, the slices along it."""

def unravel_index(indices: _Operand, shape: _Ints) -> tuple[Tensor, ...]:
    """Convert flat indices in a tensor of `shape` to a tuple of coordinates; indices wrap around."""

def unsafe_chunk(x: _Operand, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """`chunk` into views that may be written to individually; here their histories stay correct."""

def unsafe_split(x: _Operand, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """`split` into equal views that may be written to individually; here their histories stay correct."""

def unsafe_split_with_sizes(x: _Operand, split_sizes: _Ints, dim: _int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes` into views that may be written to individually; here their histories stay correct."""

def unsqueeze(x: _Operand, dim: _int) -> Tensor:
    """A view of x with a new dimension of size 1 at `dim`."""

def unsqueeze_copy(x: Tensor, dim: _int, *, out: Any = None) -> Tensor:
    """Return a copy of what `unsqueeze` shows, in memory of its own."""

def use_deterministic_algorithms(mode: _bool, *, warn_only: _bool = False) -> Any:
    """Accept whether operators must be deterministic.  All are, so the setting has no effect."""

def values_copy(input: Tensor) -> Tensor:
    """Return a copy of `input.values()`."""

def vander(x: _Operand, N: _int | None = None, increasing: _bool = False) -> Tensor:
    """The Vandermonde matrix: powers of the elements of a vector, one row each, from N - 1 (size - 1) down to 0."""

def var(x: _Operand, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> Tensor:
    """The variance over `dim` (None: all): sum(|x - mean(x)|^2) / (n - correction)."""

def var_mean(x: _Operand, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> tuple[Tensor, Tensor]:
    """The variance and the mean over `dim`, as a tuple."""

def vdot(a: _Operand, b: _Operand) -> Tensor:
    """Return the dot product of two vectors of equal size, with the first conjugated."""

def vecdot(x: _Operand, y: _Operand, *, dim: _int = -1) -> Tensor:
    """The dot product of vectors, the sum of conj(x) * y along `dim`; x and y broadcast."""

def view(x: _Operand, *shape: _Ints) -> Tensor:
    """A view of x with another shape; if the strides do not allow one, `reshape` copies instead."""

def view_as(x: _Operand, other: _Operand) -> Tensor:
    """View the memory in the shape of another tensor."""

def view_as_complex(x: _Operand) -> Tensor:
    """View pairs of real values as complex ones: shape (..., 2) becomes (...)."""

def view_as_complex_copy(x: Tensor, *, out: Any = None) -> Tensor:
    """Return a copy of what `view_as_complex` shows, in memory of its own."""

def view_as_real(x: _Operand) -> Tensor:
    """View complex values as pairs of real ones: shape (...) becomes (..., 2).  RuntimeError for other dtypes."""

def view_as_real_copy(x: Tensor, *, out: Any = None) -> Tensor:
    """Return a copy of what `view_as_real` shows, in memory of its own."""

def view_copy(input: Any, size: Any = None, dtype: Any = None, *, out: Any = None) -> Tensor:
    """Return a copy of what `view` shows, in memory of its own."""

def vsplit(x: _Operand, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the first of two or more dimensions; a number of parts must divide its size."""

def vstack(tensors: Sequence[_Operand]) -> Tensor:
    """Concatenate tensors along the first dimension; vectors are rows."""

@overload
def where(condition: Any, input: None = None, other: None = None) -> tuple[Tensor, ...]:
    """Elements of `input` where the condition is true, of `other` elsewhere; of a condition alone, its nonzero indices."""
@overload
def where(condition: Any, input: Any, other: Any, *, out: Any = None) -> Tensor:
    """Elements of `input` where the condition is true, of `other` elsewhere; of a condition alone, its nonzero indices."""

def xlogy(a: _Operand, b: _Operand) -> Tensor:
    """a * log(b), and 0 where a is 0, unless b is NaN."""

def xlogy_(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`xlogy`, written into the tensor; returns it."""

def zero_(x: Any) -> Tensor:
    """Fill x with zeros in place; return x."""

def zeros(*size: _int, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Zeros of the given shape, in the default dtype unless another is given."""

def zeros_like(x: Tensor, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return zeros with the shape of x, and its dtype unless another is given."""
