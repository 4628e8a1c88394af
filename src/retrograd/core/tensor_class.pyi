# Made from the registry of operators by tools/stubs.py: change those, then run `make stubs`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd import return_types as return_types

class Tensor:
    """An array with a position in the autograd graph."""

    def __new__(cls, value: Any = ..., level: Any = None, tag: Any = None, requires_grad: Any = ..., *sizes: _int) -> Self: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    _grad: Tensor | None
    _grad_fn: Any
    _hooks: Any
    _overrides: _bool
    _requires_grad: _bool
    _saved: _bool
    _view: Any
    level: Any
    _output_nr: _int
    tag: Any
    value: Any
    version: Any
    def __add__(self, other: _Operand) -> Tensor: ...
    def __sub__(self, other: _Operand) -> Tensor: ...
    def __mul__(self, other: _Operand) -> Tensor: ...
    def __truediv__(self, other: _Operand) -> Tensor: ...
    def __floordiv__(self, other: _Operand) -> Tensor: ...
    def __mod__(self, other: _Operand) -> Tensor: ...
    def __matmul__(self, other: _Operand) -> Tensor: ...
    def __pow__(self, other: _Operand) -> Tensor: ...
    def __radd__(self, other: _Operand) -> Tensor: ...
    def __rsub__(self, other: _Operand) -> Tensor: ...
    def __rmul__(self, other: _Operand) -> Tensor: ...
    def __rtruediv__(self, other: _Operand) -> Tensor: ...
    def __rfloordiv__(self, other: _Operand) -> Tensor: ...
    def __rmod__(self, other: _Operand) -> Tensor: ...
    def __rmatmul__(self, other: _Operand) -> Tensor: ...
    def __rpow__(self, other: _Operand) -> Tensor: ...
    def __iadd__(self, other: _Operand) -> Tensor: ...
    def __isub__(self, other: _Operand) -> Tensor: ...
    def __imul__(self, other: _Operand) -> Tensor: ...
    def __itruediv__(self, other: _Operand) -> Tensor: ...
    def __ifloordiv__(self, other: _Operand) -> Tensor: ...
    def __imod__(self, other: _Operand) -> Tensor: ...
    def __ipow__(self, other: _Operand) -> Tensor: ...
    def __lt__(self, other: _Operand) -> Tensor: ...
    def __le__(self, other: _Operand) -> Tensor: ...
    def __gt__(self, other: _Operand) -> Tensor: ...
    def __ge__(self, other: _Operand) -> Tensor: ...
    def __eq__(self, other: _Operand) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: _Operand) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __hash__(self) -> _int: ...
    @property
    def H(self) -> Tensor:
        """Return the conjugate transpose of a matrix or the conjugate of a number; RuntimeError for other dimensions."""
    @property
    def T(self) -> Tensor:
        """A view with the dimensions in reverse order."""
    def __abs__(self) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> NDArray[Any]: ...
    def __bool__(self) -> _bool: ...
    def __complex__(self) -> _complex: ...
    def __contains__(self, value: Any) -> _bool: ...
    def __deepcopy__(self, memo: Any) -> Any: ...
    def __delitem__(self, index: Any) -> None: ...
    def __divmod__(self, other: Any) -> Any: ...
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any: ...
    def __dlpack_device__(self) -> Any: ...
    def __float__(self) -> _float: ...
    def __format__(self, spec: Any) -> _str: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __iand__(self, other: Any) -> Tensor: ...
    def __ilshift__(self, other: Any) -> Tensor: ...
    def __index__(self) -> _int: ...
    def __int__(self) -> _int: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: Any) -> Tensor: ...
    def __irshift__(self, other: Any) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __ixor__(self, other: Any) -> Tensor: ...
    def __len__(self) -> _int: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __rdivmod__(self, other: Any) -> Any: ...
    def __reduce_ex__(self, protocol: Any) -> Any: ...
    def __repr__(self) -> _str: ...
    def __reversed__(self) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __round__(self, ndigits: Any = 0) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None:
        """Assign x[key] = value."""
    def __xor__(self, other: Any) -> Tensor: ...
    @property
    def _backward_hooks(self) -> Any:
        """The hooks of `register_hook` by the ids of their handles; None before the first. Can be set, as old code does."""
    @_backward_hooks.setter
    def _backward_hooks(self, value: Any) -> None: ...
    @property
    def _base(self) -> Any: ...
    @property
    def _version(self) -> Any: ...
    def abs(self) -> Tensor:
        """The elementwise absolute value.  Its derivative at 0 is 0."""
    def abs_(self) -> Tensor:
        """`abs`, written into the tensor; returns it."""
    def absolute(self) -> Tensor:
        """The elementwise absolute value.  Its derivative at 0 is 0."""
    def absolute_(self) -> Tensor:
        """`abs`, written into the tensor; returns it."""
    def acos(self) -> Tensor:
        """The inverse cosine of x, in radians."""
    def acos_(self) -> Tensor:
        """`acos`, written into the tensor; returns it."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine of x, for x >= 1."""
    def acosh_(self) -> Tensor:
        """`acosh`, written into the tensor; returns it."""
    def add(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """The elementwise sum a + b; a and b broadcast."""
    def add_(self, other: Any, *further: Any, alpha: Any = 1) -> Tensor:
        """Add alpha * other to x in place."""
    def addbmm(self, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """beta * x + alpha * sum of bmm(batch1, batch2) over the batch; x broadcasts."""
    def addbmm_(self, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`addbmm`, written into the tensor; returns it."""
    def addcdiv(self, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
        """Add a scaled quotient: x + value * tensor1 / tensor2; all three broadcast."""
    def addcdiv_(self, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
        """`addcdiv`, written into the tensor; returns it."""
    def addcmul(self, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
        """Add a scaled product: x + value * tensor1 * tensor2; all three broadcast."""
    def addcmul_(self, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
        """`addcmul`, written into the tensor; returns it."""
    def addmm(self, mat1: _Operand, mat2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """Add a matrix product: beta * x + alpha * (mat1 @ mat2), for (m, k) and (k, n); x broadcasts to (m, n)."""
    def addmm_(self, mat1: _Operand, mat2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`addmm`, written into the tensor; returns it."""
    def addmv(self, mat: _Operand, vec: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """beta * x + alpha * mv(mat, vec); x broadcasts."""
    def addmv_(self, mat: _Operand, vec: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`addmv`, written into the tensor; returns it."""
    def addr(self, vec1: _Operand, vec2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """beta * x + alpha * outer(vec1, vec2); x broadcasts."""
    def addr_(self, vec1: _Operand, vec2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`addr`, written into the tensor; returns it."""
    def adjoint(self) -> Tensor:
        """Return the conjugate transpose of the last two dimensions: a view if real, else a synced copy, as in `conj`."""
    def all(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """Whether all elements over `dim` (None: all, (): elementwise) are nonzero, as bool; as uint8 for uint8."""
    def allclose(self, other: Tensor, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> _bool:
        """Whether all elements are close, by the rule of `isclose`."""
    def amax(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """The maximum over `dim` (None or (): all).  Tied elements share the gradient.  NaN wins."""
    def amin(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """The minimum over `dim` (None or (): all).  Tied elements share the gradient.  NaN wins."""
    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False) -> return_types.aminmax:
        """The minimum and the maximum along `dim` (None: of all), as a named tuple (min, max)."""
    def angle(self) -> Tensor:
        """Return the angle in radians, from -pi to pi; a real value has 0, or pi if negative.  The derivative at 0 is 0."""
    def any(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """Whether any element over `dim` (None: all, (): elementwise) is nonzero, as bool; as uint8 for uint8."""
    def apply_(self, callable: Any) -> Tensor:
        """Replace each element by the result of a Python function; slow, and only for tensors outside graphs."""
    def arccos(self) -> Tensor:
        """The inverse cosine of x, in radians."""
    def arccos_(self) -> Tensor:
        """`acos`, written into the tensor; returns it."""
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine of x, for x >= 1."""
    def arccosh_(self) -> Tensor:
        """`acosh`, written into the tensor; returns it."""
    def arcsin(self) -> Tensor:
        """The inverse sine of x, in radians."""
    def arcsin_(self) -> Tensor:
        """`asin`, written into the tensor; returns it."""
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine of x."""
    def arcsinh_(self) -> Tensor:
        """`asinh`, written into the tensor; returns it."""
    def arctan(self) -> Tensor:
        """The inverse tangent of x, in radians."""
    def arctan2(self, b: _Operand) -> Tensor:
        """The inverse tangent of a / b in the quadrant of the point (b, a), in radians."""
    def arctan2_(self, b: _Operand) -> Tensor:
        """`atan2`, written into the tensor; returns it."""
    def arctan_(self) -> Tensor:
        """`atan`, written into the tensor; returns it."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent of x, for -1 < x < 1."""
    def arctanh_(self) -> Tensor:
        """`atanh`, written into the tensor; returns it."""
    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the maximum along `dim`, the first if tied; None: in the flattened tensor."""
    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the minimum along `dim`, the first if tied; None: in the flattened tensor."""
    def argsort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        """The indices that sort x along `dim`.  The sort is stable; NaN is the largest value."""
    @overload
    def argwhere(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    @overload
    def argwhere(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """Return the indices of the nonzero elements, as one (n, ndim) tensor or as one tensor per dimension."""
    def as_strided(self, size: _Ints, stride: _Ints, storage_offset: _int | None = None) -> Tensor:
        """View the memory of x in another shape with other strides, in elements, from an offset on."""
    def as_strided_(self, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
        """Give this tensor another shape and other strides over the same memory; returns it."""
    def as_strided_scatter(self, src: _Operand, size: _Ints, stride: _Ints, storage_offset: _int | None = None) -> Tensor:
        """Return x with src in place of x.as_strided(size, stride, storage_offset)."""
    def as_subclass(self, cls: Any) -> Any:
        """Return a tensor of a subclass that shares the memory and the history of this one."""
    def asin(self) -> Tensor:
        """The inverse sine of x, in radians."""
    def asin_(self) -> Tensor:
        """`asin`, written into the tensor; returns it."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine of x."""
    def asinh_(self) -> Tensor:
        """`asinh`, written into the tensor; returns it."""
    def astype(self, dtype: Any, order: Any = 'K', casting: Any = 'unsafe', subok: Any = True, copy: Any = True) -> Tensor:
        """A copy in another dtype; with copy=False the tensor itself if it has that dtype."""
    def atan(self) -> Tensor:
        """The inverse tangent of x, in radians."""
    def atan2(self, b: _Operand) -> Tensor:
        """The inverse tangent of a / b in the quadrant of the point (b, a), in radians."""
    def atan2_(self, b: _Operand) -> Tensor:
        """`atan2`, written into the tensor; returns it."""
    def atan_(self) -> Tensor:
        """`atan`, written into the tensor; returns it."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent of x, for -1 < x < 1."""
    def atanh_(self) -> Tensor:
        """`atanh`, written into the tensor; returns it."""
    @property
    def aval(self) -> Any:
        """Shape and dtype, without the values."""
    def backward(self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Any = None) -> None:
        """Add the gradients of this tensor to `.grad` of the leaves that it depends on; see `autograd.backward`."""
    def baddbmm(self, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """beta * x + alpha * bmm(batch1, batch2); x broadcasts."""
    def baddbmm_(self, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`baddbmm`, written into the tensor; returns it."""
    def bernoulli(self, p: _float | None = None, *, generator: Any = None) -> Tensor:
        """Random ones with probability x, zeros otherwise, in the shape and dtype of x."""
    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Fill x with ones with probability p, a number or a tensor that broadcasts, and zeros otherwise."""
    def bfloat16(self, memory_format: Any = ...) -> Tensor:
        """Return the tensor in bfloat16; itself if it is so already."""
    def bincount(self, weights: _Operand | None = None, minlength: _int = 0) -> Tensor:
        """Count each integer from 0 to the largest in x, or add up its weights; the size is at least `minlength`."""
    def bitwise_and(self, b: _Operand) -> Tensor:
        """Bitwise AND; of booleans, whether both are true."""
    def bitwise_and_(self, b: _Operand) -> Tensor:
        """`bitwise_and`, written into the tensor; returns it."""
    def bitwise_count(self) -> Tensor:
        """Count the bits of |x| that are 1, in uint8."""
    def bitwise_left_shift(self, b: _Operand) -> Tensor:
        """Shift the bits of a left by b: a times 2 to the power b."""
    def bitwise_left_shift_(self, b: _Operand) -> Tensor:
        """`bitwise_left_shift`, written into the tensor; returns it."""
    def bitwise_not(self) -> Tensor:
        """Bitwise NOT; of booleans, their negation."""
    def bitwise_not_(self) -> Tensor:
        """`bitwise_not`, written into the tensor; returns it."""
    def bitwise_or(self, b: _Operand) -> Tensor:
        """Bitwise OR; of booleans, whether one is true."""
    def bitwise_or_(self, b: _Operand) -> Tensor:
        """`bitwise_or`, written into the tensor; returns it."""
    def bitwise_right_shift(self, b: _Operand) -> Tensor:
        """Shift the bits of a right by b, preserving the sign: a divided by 2 to the power b, rounded down."""
    def bitwise_right_shift_(self, b: _Operand) -> Tensor:
        """`bitwise_right_shift`, written into the tensor; returns it."""
    def bitwise_xor(self, b: _Operand) -> Tensor:
        """Bitwise XOR; of booleans, whether they differ."""
    def bitwise_xor_(self, b: _Operand) -> Tensor:
        """`bitwise_xor`, written into the tensor; returns it."""
    def bmm(self, b: _Operand) -> Tensor:
        """Products of the matrices of two equal stacks, (b, m, k) and (b, k, n)."""
    def bool(self, memory_format: Any = ...) -> Tensor:
        """The tensor in bool; itself if it is so already."""
    def broadcast_to(self, *shape: _Ints) -> Tensor:
        """x broadcast to `shape`, as a view: `expand` under NumPy's name."""
    def byte(self, memory_format: Any = ...) -> Tensor:
        """The tensor in uint8; itself if it is so already."""
    def cauchy_(self, median: Any = 0.0, sigma: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Fill x with samples from the Cauchy distribution with that median and scale."""
    def cbrt(self) -> Tensor:
        """Cube root, with the sign of x."""
    def cbrt_(self) -> Tensor:
        """`cbrt`, written into the tensor; returns it."""
    def ccol_indices(self) -> Tensor:
        """Return where the entries of each column begin, of a tensor compressed by columns, not copied; RuntimeError for other layouts."""
    def cdouble(self, memory_format: Any = ...) -> Tensor:
        """The tensor in complex128; itself if it is so already."""
    def ceil(self) -> Tensor:
        """x rounded up to an integer.  Its derivative is 0."""
    def ceil_(self) -> Tensor:
        """`ceil`, written into the tensor; returns it."""
    def cfloat(self, memory_format: Any = ...) -> Tensor:
        """The tensor in complex64; itself if it is so already."""
    def char(self, memory_format: Any = ...) -> Tensor:
        """The tensor in int8; itself if it is so already."""
    def cholesky(self, upper: _bool = False) -> Tensor:
        """Cholesky factor: lower triangular L with A = L L^H, or upper U with A = U^H U, of positive definite matrices."""
    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """The inverse of L L^H, or with `upper` of L^H L, for triangular L."""
    def cholesky_solve(self, L: _Operand, upper: _bool = False) -> Tensor:
        """The solution of L L^H X = x, or with `upper` of L^H L X = x, for triangular L."""
    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of at most `chunks` views of equal size along `dim`; the last may be smaller."""
    def clamp(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """x limited to the range from min to max: numbers, or tensors that broadcast.  If min > max, the result is max."""
    def clamp_(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """`clamp`, written into the tensor; returns it."""
    def clamp_max(self, max: _Operand) -> Tensor:
        """Clamp x to at most max, a number or a tensor: `clamp` with one bound."""
    def clamp_max_(self, max: _Operand) -> Tensor:
        """`clamp_max`, written into the tensor; returns it."""
    def clamp_min(self, min: _Operand) -> Tensor:
        """Clamp x to at least min, a number or a tensor: `clamp` with one bound."""
    def clamp_min_(self, min: _Operand) -> Tensor:
        """`clamp_min`, written into the tensor; returns it."""
    def clip(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """x limited to the range from min to max: numbers, or tensors that broadcast.  If min > max, the result is max."""
    def clip_(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """`clamp`, written into the tensor; returns it."""
    def clone(self, *, memory_format: Any = ...) -> Tensor:
        """Return a differentiable copy, with the same strides unless a memory format is given."""
    def coalesce(self) -> Tensor:
        """Return a COO tensor with sorted, unique entries, the sums of those at the same position; x if it is marked so."""
    def col_indices(self) -> Tensor:
        """Return the column of each entry, of a tensor compressed by rows, not copied; RuntimeError for other layouts."""
    def conj(self) -> Tensor:
        """Return the complex conjugate; a real tensor is returned itself."""
    def conj_physical(self) -> Tensor:
        """Return the complex conjugate as a new tensor; a real tensor is returned itself."""
    def conj_physical_(self) -> Tensor:
        """`conj_physical`, written into the tensor; returns it."""
    def conjugate(self) -> Tensor:
        """The complex conjugate."""
    def const_data_ptr(self) -> _int:
        """Return the address of the first element, through which nobody may write."""
    def contiguous(self, memory_format: Any = ...) -> Tensor:
        """Return the tensor itself if it is contiguous in that format (default: row-major), else a contiguous copy."""
    def copy(self, order: Any = 'C') -> Tensor:
        """Return a copy, in the same graph."""
    def copy_(self, src: Any, non_blocking: Any = False) -> Tensor:
        """Copy `src`, broadcast and converted, into x in place, and return x."""
    def copysign(self, b: _Operand) -> Tensor:
        """|a| with the sign of b, also of -0.0; the derivative by a is 0 where a is 0, that by b is 0."""
    def copysign_(self, b: _Operand) -> Tensor:
        """`copysign`, written into the tensor; returns it."""
    def corrcoef(self) -> Tensor:
        """Pearson's correlation coefficients of variables, the rows of x."""
    def cos(self) -> Tensor:
        """The cosine of x radians."""
    def cos_(self) -> Tensor:
        """`cos`, written into the tensor; returns it."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine of x."""
    def cosh_(self) -> Tensor:
        """`cosh`, written into the tensor; returns it."""
    def count_nonzero(self, dim: _Ints | None = None) -> Tensor:
        """The number of nonzero elements over `dim` (None or (): all), in int64."""
    def cov(self, *, correction: _int = 1, fweights: _Operand | None = None, aweights: _Operand | None = None) -> Tensor:
        """The covariance matrix of variables, the rows of x, observed in its columns; the variance if there is one row."""
    def cpu(self, memory_format: Any = ...) -> Tensor:
        """Return the tensor in host memory: itself if it is there."""
    def cross(self, other: _Operand, dim: _int | None = None) -> Tensor:
        """The cross product `linalg.cross`; without `dim`, along the first dimension of size 3."""
    def crow_indices(self) -> Tensor:
        """Return where the entries of each row begin, of a tensor compressed by rows, not copied; RuntimeError for other layouts."""
    def cuda(self, device: Any = None, non_blocking: Any = False, memory_format: Any = ...) -> Tensor:
        """Return the tensor on a CUDA device; RuntimeError without one."""
    def cummax(self, dim: _int) -> return_types.cummax:
        """The cumulative maximum of x along `dim`, and the index of its last occurrence so far.  NaN wins."""
    def cummin(self, dim: _int) -> return_types.cummin:
        """The cumulative minimum of x along `dim`, and the index of its last occurrence so far.  NaN wins."""
    def cumprod(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The cumulative product of x along `dim`; derivatives of every order hold where factors are 0."""
    def cumprod_(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """`cumprod`, written into the tensor; returns it."""
    def cumsum(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The cumulative sum of x along `dim`.  Integers and booleans are summed in int64."""
    def cumsum_(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """`cumsum`, written into the tensor; returns it."""
    @property
    def data(self) -> Tensor:
        """The same memory outside every graph, with its own version counter; can be set to another tensor's memory."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    def data_ptr(self) -> _int:
        """Return the address of the first element; NotImplementedError for a sparse tensor."""
    def deg2rad(self) -> Tensor:
        """Convert degrees to radians."""
    def deg2rad_(self) -> Tensor:
        """`deg2rad`, written into the tensor; returns it."""
    def dense_dim(self) -> _int:
        """Return the number of dimensions that are dense: all but those of entries of a sparse tensor."""
    def dequantize(self) -> Any:
        """Return a tensor, or each of a list, in float32: no tensor here is quantised."""
    def det(self) -> Tensor:
        """The determinants of square matrices; the derivative holds for singular ones, too."""
    def detach(self) -> Tensor:
        """A view of x outside every graph.  It is an operator, so that each level detaches its own value."""
    def detach_(self) -> Tensor:
        """Detach the tensor from its graph in place, so that it becomes a leaf without gradient; return it."""
    @property
    def device(self) -> Any:
        """The device.  It equals its name, such as "cpu"."""
    def diag(self, diagonal: _int = 0) -> Tensor:
        """A matrix with a vector on its diagonal; of a matrix, a copy of its diagonal."""
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Zeros with the last dimension of x on the diagonal of two dimensions, at `offset` from the main one."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """A matrix with all elements of x, in row-major order, on its diagonal."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """View a diagonal as the last dimension: the elements whose index along dim2 is `offset` more than along dim1."""
    def diagonal_scatter(self, src: _Operand, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """Return x with src in place of x.diagonal(offset, dim1, dim2)."""
    def diff(self, n: _int = 1, dim: _int = -1, prepend: _Operand | None = None, append: _Operand | None = None) -> Tensor:
        """The n-th difference of adjacent elements along `dim`, after x is extended by `prepend` and `append`."""
    def digamma(self) -> Tensor:
        """Derivative of `lgamma`; NaN at the negative integers, infinite at 0."""
    def digamma_(self) -> Tensor:
        """`digamma`, written into the tensor; returns it."""
    def dim(self) -> _int:
        """The number of dimensions."""
    def dim_order(self, *, ambiguity_check: Any = False) -> Any:
        """Return the dimensions in the order of their strides in memory, the outermost first."""
    def dist(self, other: _Operand, p: _Number = 2) -> Tensor:
        """The p-norm of x - other over all elements; the derivative where they are equal is 0."""
    def div(self, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """The elementwise quotient a / b, in a floating dtype."""
    def div_(self, other: Any, *, rounding_mode: Any = None) -> Tensor:
        """Divide x by other in place, rounded as in `div`."""
    def divide(self, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """Divide: a / b; rounding_mode="floor" rounds down, "trunc" towards 0, in the operands' dtype with derivative 0."""
    def divide_(self, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """`divide`, written into the tensor; returns it."""
    def dot(self, b: _Operand) -> Tensor:
        """Dot product of two vectors of equal size; nothing is conjugated."""
    def double(self, memory_format: Any = ...) -> Tensor:
        """The tensor in float64; itself if it is so already."""
    def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """`tensor_split` along the third of three or more dimensions; a number of parts must divide its size."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
    def element_size(self) -> _int:
        """Return the size of one element in bytes."""
    def eq(self, b: _Operand) -> Tensor:
        """Whether a == b, elementwise."""
    def eq_(self, b: _Operand) -> Tensor:
        """`eq`, written into the tensor; returns it."""
    def equal(self, other: Any) -> _bool:
        """Whether two tensors have the same shape and equal elements; NaN is not equal to itself."""
    def erf(self) -> Tensor:
        """The error function of x."""
    def erf_(self) -> Tensor:
        """`erf`, written into the tensor; returns it."""
    def erfc(self) -> Tensor:
        """The complementary error function 1 - erf(x), accurate where erf(x) is near 1."""
    def erfc_(self) -> Tensor:
        """`erfc`, written into the tensor; returns it."""
    def erfinv(self) -> Tensor:
        """The inverse of `erf` on (-1, 1); infinite at the ends, NaN outside."""
    def erfinv_(self) -> Tensor:
        """`erfinv`, written into the tensor; returns it."""
    def exp(self) -> Tensor:
        """The exponential e**x."""
    def exp2(self) -> Tensor:
        """The power 2**x."""
    def exp2_(self) -> Tensor:
        """`exp2`, written into the tensor; returns it."""
    def exp_(self) -> Tensor:
        """`exp`, written into the tensor; returns it."""
    def expand(self, *shape: _Ints) -> Tensor:
        """A view of x with dimensions of size 1 repeated, and new dimensions in front; -1 keeps a size."""
    def expand_as(self, other: Any) -> Tensor:
        """x expanded to the shape of the other tensor."""
    def expm1(self) -> Tensor:
        """exp(x) - 1, accurate for small x."""
    def expm1_(self) -> Tensor:
        """`expm1`, written into the tensor; returns it."""
    def exponential_(self, lambd: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Fill x with samples from the exponential distribution with that rate."""
    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
    def fill_(self, value: Any) -> Tensor:
        """Fill x with one value in place; return x."""
    def fill_diagonal_(self, fill_value: Any, wrap: Any = False) -> Tensor:
        """Write a number on the main diagonal in place, where all indices are equal; return the tensor."""
    def fix(self) -> Tensor:
        """x rounded towards 0 to an integer.  Its derivative is 0."""
    def fix_(self) -> Tensor:
        """`trunc`, written into the tensor; returns it."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """x with the dimensions start_dim to end_dim, inclusive, merged into one."""
    def flip(self, *dims: _Ints) -> Tensor:
        """x with the order of elements reversed along the given dimensions; a copy, as in PyTorch."""
    def fliplr(self) -> Tensor:
        """x with the second dimension reversed; a copy."""
    def flipud(self) -> Tensor:
        """x with the first dimension reversed; a copy."""
    def float(self, memory_format: Any = ...) -> Tensor:
        """The tensor in float32; itself if it is so already."""
    def float_power(self, exponent: _Operand) -> Tensor:
        """Raise x to the power exponent in double precision, for all dtypes of the operands."""
    def float_power_(self, exponent: Any) -> Tensor:
        """Write `float_power(x, exponent)` into the tensor, which must have that dtype; return it."""
    def floor(self) -> Tensor:
        """x rounded down to an integer.  Its derivative is 0."""
    def floor_(self) -> Tensor:
        """`floor`, written into the tensor; returns it."""
    def floor_divide(self, b: _Operand) -> Tensor:
        """The quotient a / b rounded down.  Its derivative is 0.  Integer division by 0 raises ZeroDivisionError."""
    def floor_divide_(self, b: _Operand) -> Tensor:
        """`floor_divide`, written into the tensor; returns it."""
    def fmax(self, b: _Operand) -> Tensor:
        """Maximum of a and b, ignoring NaN if only one is; of equals, a has the gradient."""
    def fmax_(self, b: _Operand) -> Tensor:
        """`fmax`, written into the tensor; returns it."""
    def fmin(self, b: _Operand) -> Tensor:
        """Minimum of a and b, ignoring NaN if only one is; of equals, a has the gradient."""
    def fmin_(self, b: _Operand) -> Tensor:
        """`fmin`, written into the tensor; returns it."""
    def fmod(self, b: _Operand) -> Tensor:
        """Remainder with the sign of a: a - trunc(a / b) * b."""
    def fmod_(self, b: _Operand) -> Tensor:
        """`fmod`, written into the tensor; returns it."""
    def frac(self) -> Tensor:
        """Fractional part with the sign of x: x - trunc(x); its derivative is 1."""
    def frac_(self) -> Tensor:
        """`frac`, written into the tensor; returns it."""
    def frexp(self) -> return_types.frexp:
        """Decompose x into mantissa * 2**exponent, a named tuple: |mantissa| is in [0.5, 1), or 0; the exponent is int32."""
    def gather(self, dim: _int, index: _Operand, *, sparse_grad: _bool = False) -> Tensor:
        """Gather elements of x along `dim`: for each position of `index`, the element at that index; not negative."""
    def gcd(self, b: _Operand) -> Tensor:
        """Greatest common divisor of |a| and |b|; gcd(0, b) is |b|."""
    def gcd_(self, b: _Operand) -> Tensor:
        """`gcd`, written into the tensor; returns it."""
    def ge(self, b: _Operand) -> Tensor:
        """Whether a >= b, elementwise."""
    def ge_(self, b: _Operand) -> Tensor:
        """`ge`, written into the tensor; returns it."""
    def gelu(self, *, approximate: _str = 'none') -> Tensor:
        """x times the normal CDF of x; approximate="tanh" uses the approximation with tanh."""
    def gelu_(self, *, approximate: _str = 'none') -> Tensor:
        """`gelu`, written into the tensor; returns it."""
    def geometric_(self, p: Any, *, generator: Any = None) -> Tensor:
        """Fill x with the number of trials up to the first success, each of probability p."""
    def geqrf(self) -> return_types.geqrf:
        """Return the QR factorisation of matrices (..., m, n) as LAPACK stores it, for `ormqr` and `orgqr`."""
    def ger(self, b: _Operand) -> Tensor:
        """Outer product of two vectors, (m,) and (n,) to (m, n)."""
    def get_device(self) -> _int:
        """Return the index of the accelerator with the tensor; -1 means the CPU."""
    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward()` accumulated, or None; results show one after `retain_grad()` only."""
    @grad.setter
    def grad(self, value: Tensor | None) -> None: ...
    @property
    def grad_dtype(self) -> Any:
        """The dtype that `.grad` of this leaf must have, by default that of the leaf; None allows any."""
    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None: ...
    @property
    def grad_fn(self) -> Any:
        """The graph node that made this tensor; None for leaves."""
    def greater(self, b: _Operand) -> Tensor:
        """Whether a > b, elementwise."""
    def greater_(self, b: _Operand) -> Tensor:
        """`gt`, written into the tensor; returns it."""
    def greater_equal(self, b: _Operand) -> Tensor:
        """Whether a >= b, elementwise."""
    def greater_equal_(self, b: _Operand) -> Tensor:
        """`ge`, written into the tensor; returns it."""
    def gt(self, b: _Operand) -> Tensor:
        """Whether a > b, elementwise."""
    def gt_(self, b: _Operand) -> Tensor:
        """`gt`, written into the tensor; returns it."""
    def half(self, memory_format: Any = ...) -> Tensor:
        """The tensor in float16; itself if it is so already."""
    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """Return 0 where abs(x) is at most lambd, with derivative 0, and x elsewhere."""
    def hash_tensor(self, dim: _Ints | None = None, keepdim: _bool = False, *, mode: _int = 0) -> Tensor:
        """The exclusive or, over `dim` (None or (): all), of the bits of the elements in 64 bits, as uint64."""
    def heaviside(self, values: _Operand) -> Tensor:
        """Heaviside step: 0 where x is negative, 1 where it is positive, `values` where it is 0; derivative 0 by x."""
    def heaviside_(self, values: _Operand) -> Tensor:
        """`heaviside`, written into the tensor; returns it."""
    def histc(self, bins: _int = 100, min: _Number = 0, max: _Number = 0) -> Tensor:
        """Count elements in `bins` equal bins from min to max; if these are equal, from the extremes of x."""
    def histogram(self, bins: Any = 100, *, range: Any = None, weight: _Operand | None = None, density: _bool = False) -> return_types.histogram:
        """Count elements in bins; return the counts and the edges of the bins, as a named tuple (hist, bin_edges)."""
    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """`tensor_split` along the second dimension, or the only one; a number of parts must divide its size."""
    def hypot(self, b: _Operand) -> Tensor:
        """sqrt(a^2 + b^2), without overflow; at the origin the derivative does not exist, and is NaN."""
    def hypot_(self, b: _Operand) -> Tensor:
        """`hypot`, written into the tensor; returns it."""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind, of order 0."""
    def i0_(self) -> Tensor:
        """`i0`, written into the tensor; returns it."""
    def igamma(self, x: _Operand) -> Tensor:
        """Regularized lower incomplete gamma function: the gamma distribution function of shape a at x."""
    def igamma_(self, x: _Operand) -> Tensor:
        """`igamma`, written into the tensor; returns it."""
    def igammac(self, x: _Operand) -> Tensor:
        """Regularized upper incomplete gamma function: 1 - igamma(a, x), accurate where that is small."""
    def igammac_(self, x: _Operand) -> Tensor:
        """`igammac`, written into the tensor; returns it."""
    @property
    def imag(self) -> Tensor:
        """The imaginary part, as a view that may be assigned to; RuntimeError if the dtype is not complex."""
    @imag.setter
    def imag(self, value: Tensor) -> None: ...
    def index_add(self, dim: _int, index: _Operand, source: _Operand, *, alpha: _Number = 1) -> Tensor:
        """x with the slices of source, times alpha, added at the indices along `dim` in a 1-d integer tensor."""
    def index_add_(self, dim: _int, index: _Operand, source: _Operand, *, alpha: _Number = 1) -> Tensor:
        """`index_add`, written into the tensor; returns it."""
    def index_copy(self, dim: _int, index: _Operand, source: _Operand) -> Tensor:
        """x with the slices of source written at the indices along `dim` in a 1-d integer tensor, which are unique."""
    def index_copy_(self, dim: _int, index: _Operand, source: _Operand) -> Tensor:
        """`index_copy`, written into the tensor; returns it."""
    def index_fill(self, dim: _int, index: _Operand, value: _Operand) -> Tensor:
        """x with a number, or a tensor without dimensions, written at the indices along `dim`; -1 is the last."""
    def index_fill_(self, dim: _int, index: _Operand, value: _Operand) -> Tensor:
        """`index_fill`, written into the tensor; returns it."""
    def index_put(self, indices: Any, values: Tensor | _float, accumulate: Any = False) -> Any:
        """`input` with values, which broadcast, written to or added to input[indices], a tuple of index tensors."""
    def index_put_(self, indices: Any, values: Any, accumulate: Any = False) -> Tensor:
        """Write values to, or add them to, x[indices], a tuple of index tensors; return x."""
    def index_reduce(self, dim: _int, index: _Operand, source: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """x with the slices of source reduced into indices along `dim`: "prod", "mean", "amax", "amin"."""
    def index_reduce_(self, dim: _int, index: _Operand, source: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """`index_reduce`, written into the tensor; returns it."""
    def index_select(self, dim: _int, index: _Operand) -> Tensor:
        """Select slices along `dim` by a 1-d integer tensor, in its order; negative indices are errors."""
    def indices(self) -> Tensor:
        """Return the indices of a coalesced COO tensor, (sparse_dim, nnz), not copied."""
    def inner(self, b: _Operand) -> Tensor:
        """The sum of products over the last dimensions of a and b; a tensor without dimensions multiplies elementwise."""
    def int(self, memory_format: Any = ...) -> Tensor:
        """The tensor in int32; itself if it is so already."""
    def inverse(self) -> Tensor:
        """The inverse of square matrices; LinAlgError if one is singular.  To solve A X = B, prefer `linalg.solve`."""
    def ipu(self, device: Any = None, non_blocking: Any = False, memory_format: Any = ...) -> Tensor:
        """Raise a RuntimeError: tensors are on the CPU."""
    def is_coalesced(self) -> _bool:
        """Return whether a COO tensor is known to have sorted, unique entries."""
    def is_complex(self) -> _bool:
        """Whether the dtype is complex."""
    def is_conj(self) -> _bool:
        """Whether a lazy conjugation is pending: always False, since `conj` computes eagerly."""
    def is_contiguous(self, memory_format: Any = ...) -> _bool:
        """Whether the tensor is contiguous in that format, row-major unless another is given."""
    @property
    def is_cpu(self) -> Any:
        """Whether the tensor is on a device of the type cpu."""
    @property
    def is_cuda(self) -> Any:
        """Whether the tensor is on a device of the type cuda."""
    def is_floating_point(self) -> _bool:
        """Whether the dtype is a real floating dtype."""
    def is_inference(self) -> Any:
        """Return whether the tensor was made in inference mode, so that it can't join a graph."""
    @property
    def is_ipu(self) -> Any:
        """Whether the tensor is on a device of the type ipu."""
    @property
    def is_leaf(self) -> _bool:
        """Whether no recorded operator made this tensor."""
    @property
    def is_maia(self) -> Any:
        """Whether the tensor is on a device of the type maia."""
    @property
    def is_meta(self) -> Any:
        """Whether the tensor is on a device of the type meta."""
    @property
    def is_mkldnn(self) -> Any:
        """Whether the array is one of the device mkldnn: never."""
    @property
    def is_mps(self) -> Any:
        """Whether the tensor is on a device of the type mps."""
    @property
    def is_mtia(self) -> Any:
        """Whether the tensor is on a device of the type mtia."""
    def is_neg(self) -> _bool:
        """Whether a lazy negation is pending: always False, since `imag` of a conjugate is computed eagerly."""
    @property
    def is_nested(self) -> Any:
        """Whether the tensor is nested: never."""
    def is_nonzero(self) -> _bool:
        """Whether the only element of the tensor is nonzero; RuntimeError unless it has exactly one."""
    def is_pinned(self, device: Any = None) -> _bool:
        """Whether the memory is pinned for a GPU, as that of `pin_memory` is."""
    @property
    def is_quantized(self) -> Any:
        """Whether the tensor is quantized: never."""
    def is_same_size(self, other: Any) -> _bool:
        """Whether two tensors have the same shape."""
    def is_set_to(self, tensor: Any) -> _bool:
        """Return whether two tensors are the same view of the same memory."""
    def is_shared(self) -> _bool:
        """Whether other processes can share the memory, by `share_memory_`; that of a GPU always is."""
    def is_signed(self) -> _bool:
        """Whether the dtype can represent negative values."""
    @property
    def is_sparse(self) -> Any:
        """Whether the tensor is sparse, in the layout `rg.sparse_coo`."""
    @property
    def is_sparse_csr(self) -> Any:
        """Whether the tensor is sparse, in the layout `rg.sparse_csr`."""
    @property
    def is_vulkan(self) -> Any:
        """Whether the array is one of the device vulkan: never."""
    @property
    def is_xla(self) -> Any:
        """Whether the tensor is on a device of the type xla."""
    @property
    def is_xpu(self) -> Any:
        """Whether the tensor is on a device of the type xpu."""
    def isclose(self, b: _Operand, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Whether |a - b| <= atol + rtol * |b|; equal infinities are close, and NaN is close to NaN if equal_nan is set."""
    def isfinite(self) -> Tensor:
        """Whether each element is finite: neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Whether each element is infinite, of either sign."""
    def isnan(self) -> Tensor:
        """Whether each element is NaN."""
    def isneginf(self) -> Tensor:
        """Whether x is infinite and negative."""
    def isposinf(self) -> Tensor:
        """Whether x is infinite and positive."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0; True for all real values, NaN included."""
    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: _Operand | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
        """Return the signals whose `stft` is closest to spectra x (..., frequencies, frames), in the least-squares sense."""
    def item(self) -> Any:
        """The value of a tensor with one element, as a Python number."""
    @property
    def itemsize(self) -> Any:
        """The size of one element in bytes."""
    def kron(self, b: _Operand) -> Tensor:
        """The Kronecker product: blocks of b, each multiplied by an element of a."""
    def kthvalue(self, k: _int, dim: _int | None = None, keepdim: _bool = False) -> return_types.kthvalue:
        """The k-th smallest element (k from 1) along `dim` (None: the last), and its index."""
    @property
    def layout(self) -> Any:
        """The layout: `rg.strided`, that of sparse tensors, or `rg.jagged` of nested ones."""
    def lcm(self, b: _Operand) -> Tensor:
        """Least common multiple of |a| and |b|; 0 where one is 0."""
    def lcm_(self, b: _Operand) -> Tensor:
        """`lcm`, written into the tensor; returns it."""
    def ldexp(self, exponent: _Operand) -> Tensor:
        """Multiply x by 2 to the power exponent."""
    def ldexp_(self, exponent: _Operand) -> Tensor:
        """`ldexp`, written into the tensor; returns it."""
    def le(self, b: _Operand) -> Tensor:
        """Whether a <= b, elementwise."""
    def le_(self, b: _Operand) -> Tensor:
        """`le`, written into the tensor; returns it."""
    def leaky_relu(self, negative_slope: _Number = 0.01) -> Tensor:
        """x where it is positive, negative_slope * x elsewhere."""
    def leaky_relu_(self, negative_slope: _Number = 0.01) -> Tensor:
        """`leaky_relu`, written into the tensor; returns it."""
    def lerp(self, end: _Operand, weight: _Operand) -> Tensor:
        """Interpolate linearly: x + weight * (end - x), which is x where weight is 0, and exactly `end` where it is 1."""
    def lerp_(self, end: _Operand, weight: _Operand) -> Tensor:
        """`lerp`, written into the tensor; returns it."""
    def less(self, b: _Operand) -> Tensor:
        """Whether a < b, elementwise."""
    def less_(self, b: _Operand) -> Tensor:
        """`lt`, written into the tensor; returns it."""
    def less_equal(self, b: _Operand) -> Tensor:
        """Whether a <= b, elementwise."""
    def less_equal_(self, b: _Operand) -> Tensor:
        """`le`, written into the tensor; returns it."""
    def lgamma(self) -> Tensor:
        """Logarithm of |gamma(x)|; infinite at 0 and the negative integers."""
    def lgamma_(self) -> Tensor:
        """`lgamma`, written into the tensor; returns it."""
    def log(self) -> Tensor:
        """The natural logarithm of x."""
    def log10(self) -> Tensor:
        """The logarithm of x to base 10."""
    def log10_(self) -> Tensor:
        """`log10`, written into the tensor; returns it."""
    def log1p(self) -> Tensor:
        """log(1 + x), accurate for small x."""
    def log1p_(self) -> Tensor:
        """`log1p`, written into the tensor; returns it."""
    def log2(self) -> Tensor:
        """The logarithm of x to base 2."""
    def log2_(self) -> Tensor:
        """`log2`, written into the tensor; returns it."""
    def log_(self) -> Tensor:
        """`log`, written into the tensor; returns it."""
    def log_normal_(self, mean: Any = 1.0, std: Any = 2.0, *, generator: Any = None) -> Tensor:
        """Fill x with samples whose logarithm is normal, with that mean and standard deviation."""
    def log_softmax(self, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
        """The logarithm of the softmax along dim, accurate for small values; computed in `dtype` (None: that of x)."""
    def logaddexp(self, b: _Operand) -> Tensor:
        """log(exp(a) + exp(b)), without overflow."""
    def logaddexp2(self, b: _Operand) -> Tensor:
        """log2(2^a + 2^b), without overflow."""
    def logaddexp2_(self, b: _Operand) -> Tensor:
        """`logaddexp2`, written into the tensor; returns it."""
    def logaddexp_(self, b: _Operand) -> Tensor:
        """`logaddexp`, written into the tensor; returns it."""
    def logcumsumexp(self, dim: _int) -> Tensor:
        """log(cumsum(exp(x))) along `dim`; neither values nor derivatives overflow."""
    def logdet(self) -> Tensor:
        """The logarithm of the determinants of square matrices; NaN where they are negative, -inf where 0."""
    def logical_and(self, b: _Operand) -> Tensor:
        """Whether both elements are nonzero."""
    def logical_and_(self, b: _Operand) -> Tensor:
        """`logical_and`, written into the tensor; returns it."""
    def logical_not(self) -> Tensor:
        """Whether each element is zero."""
    def logical_not_(self) -> Tensor:
        """`logical_not`, written into the tensor; returns it."""
    def logical_or(self, b: _Operand) -> Tensor:
        """Whether at least one of the elements is nonzero."""
    def logical_or_(self, b: _Operand) -> Tensor:
        """`logical_or`, written into the tensor; returns it."""
    def logical_xor(self, b: _Operand) -> Tensor:
        """Whether exactly one of the elements is nonzero."""
    def logical_xor_(self, b: _Operand) -> Tensor:
        """`logical_xor`, written into the tensor; returns it."""
    def logit(self, eps: _float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first clamped to [eps, 1 - eps]."""
    def logit_(self, eps: _float | None = None) -> Tensor:
        """`logit`, written into the tensor; returns it."""
    def logsumexp(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """log(sum(exp(x))) over `dim` (None or (): all), without overflow; -inf for empty slices."""
    def long(self, memory_format: Any = ...) -> Tensor:
        """The tensor in int64; itself if it is so already."""
    def lt(self, b: _Operand) -> Tensor:
        """Whether a < b, elementwise."""
    def lt_(self, b: _Operand) -> Tensor:
        """`lt`, written into the tensor; returns it."""
    def lu(self, pivot: Any = True, get_infos: Any = False) -> Any:
        """Return the LU factors and pivots, with `get_infos` also the numbers of the first pivots that are 0."""
    def lu_solve(self, LU_data: _Operand, LU_pivots: _Operand) -> Tensor:
        """`linalg.lu_solve`, with the right side as first argument."""
    @property
    def mH(self) -> Tensor:
        """Return the conjugate transpose of the last two dimensions: `adjoint`."""
    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions swapped; a tensor without dimensions is returned as it is."""
    def map_(self, tensor: Any, callable: Any) -> Tensor:
        """Replace each element by a Python function of it and of the other tensor's element, which broadcasts."""
    def masked_fill(self, mask: _Operand, value: _Operand) -> Tensor:
        """x with `value`, a number or a tensor without dimensions, where the mask is true; x and the mask broadcast."""
    def masked_fill_(self, mask: _Operand, value: _Operand) -> Tensor:
        """`masked_fill`, written into the tensor; returns it."""
    def masked_scatter(self, mask: _Operand, source: _Operand) -> Tensor:
        """x with the elements of `source`, in order, where the mask is true; x and the mask broadcast."""
    def masked_scatter_(self, mask: _Operand, source: _Operand) -> Tensor:
        """`masked_scatter`, written into the tensor; returns it."""
    def masked_select(self, mask: _Operand) -> Tensor:
        """The elements of x where the mask is true, as a 1-d tensor; x and the mask broadcast."""
    def matmul(self, b: _Operand) -> Tensor:
        """Matrix product: (..., m, k) times (..., k, n) is (..., m, n); the leading dimensions broadcast."""
    def matrix_exp(self) -> Tensor:
        """The matrix exponential, the sum of A^n / n!, of square matrices.  Needs SciPy."""
    def matrix_power(self, n: _int) -> Tensor:
        """The n-th power of square matrices, by repeated squaring; of the inverses for negative n."""
    @overload
    def max(self, dim: _int, keepdim: _bool = False, *, other: _Operand | None = None) -> return_types.max: ...
    @overload
    def max(self, dim: Tensor | None = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
        """The maximum of all elements; along `dim`, a named tuple (values, indices); with a second tensor, `maximum`."""
    def maximum(self, b: _Operand) -> Tensor:
        """The elementwise maximum of a and b.  Equal elements share the gradient."""
    def maximum_(self, b: _Operand) -> Tensor:
        """`maximum`, written into the tensor; returns it."""
    def mean(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The mean of elements over `dim` (None or (): all); NaN for empty slices."""
    @overload
    def median(self, dim: _int, keepdim: _bool = False) -> return_types.median: ...
    @overload
    def median(self, dim: None = None, keepdim: _bool = False) -> Tensor:
        """The median, the lower of two in the middle; along `dim`, a named tuple (values, indices).  NaN wins."""
    @overload
    def min(self, dim: _int, keepdim: _bool = False, *, other: _Operand | None = None) -> return_types.min: ...
    @overload
    def min(self, dim: Tensor | None = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
        """The minimum of all elements; along `dim`, a named tuple (values, indices); with a second tensor, `minimum`."""
    def minimum(self, b: _Operand) -> Tensor:
        """The elementwise minimum of a and b.  Equal elements share the gradient."""
    def minimum_(self, b: _Operand) -> Tensor:
        """`minimum`, written into the tensor; returns it."""
    def mm(self, b: _Operand) -> Tensor:
        """Product of two matrices, (m, k) and (k, n)."""
    def mode(self, dim: _int = -1, keepdim: _bool = False) -> return_types.mode:
        """The most frequent value along `dim`, the smallest if tied, and its last index.  NaN equals nothing."""
    def module_load(self, other: Any, assign: Any = False) -> Any:
        """Return the tensor that replaces x when a state is loaded: x with the values of other, or other itself."""
    def moveaxis(self, source: _Ints, destination: _Ints) -> Tensor:
        """A view of x with dimensions moved to new positions; the others keep their order."""
    def movedim(self, source: _Ints, destination: _Ints) -> Tensor:
        """A view of x with dimensions moved to new positions; the others keep their order."""
    def msort(self) -> Tensor:
        """x sorted along the first dimension."""
    def mtia(self, device: Any = None, non_blocking: Any = False, memory_format: Any = ...) -> Tensor:
        """Raise a RuntimeError: tensors are on the CPU."""
    def mul(self, b: _Operand) -> Tensor:
        """The elementwise product a * b; a and b broadcast."""
    def mul_(self, other: Any) -> Tensor:
        """Multiply x by other in place."""
    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Any = None) -> Tensor:
        """Sample `num_samples` indices per row of x, with probabilities proportional to its values."""
    def multiply(self, b: _Operand) -> Tensor:
        """The elementwise product a * b; a and b broadcast."""
    def multiply_(self, b: _Operand) -> Tensor:
        """`mul`, written into the tensor; returns it."""
    def mv(self, b: _Operand) -> Tensor:
        """Product of a matrix (m, k) and a vector (k,)."""
    def mvlgamma(self, p: _int) -> Tensor:
        """Logarithm of the multivariate gamma function of dimension p at x, which is (degrees of freedom) / 2."""
    def mvlgamma_(self, p: _int) -> Tensor:
        """`mvlgamma`, written into the tensor; returns it."""
    def nan_to_num(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """Replace NaN (default 0) and infinities (default the dtype's largest) by numbers; there the derivative is 0."""
    def nan_to_num_(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """`nan_to_num`, written into the tensor; returns it."""
    def nanmean(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The mean over `dim` (None or (): all) of the elements that are not NaN; NaN if there are none."""
    @overload
    def nanmedian(self, dim: _int, keepdim: _bool = False) -> return_types.nanmedian: ...
    @overload
    def nanmedian(self, dim: None = None, keepdim: _bool = False) -> Tensor:
        """The `median` of the elements that are not NaN; NaN if there are none."""
    def nanquantile(self, q: _Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
        """The `quantile` of the elements that are not NaN; NaN if there are none."""
    def nansum(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum over `dim` (None or (): all) of the elements that are not NaN; real dtypes only."""
    def narrow(self, dim: _int, start: _int, length: _int) -> Tensor:
        """A view of x at the indices start to start + length along `dim`; a negative start counts from the end."""
    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor:
        """A copy of `narrow`."""
    @property
    def nbytes(self) -> Any:
        """The size of all elements in bytes."""
    @property
    def ndim(self) -> _int:
        """Number of dimensions."""
    def ndimension(self) -> _int:
        """The number of dimensions."""
    def ne(self, b: _Operand) -> Tensor:
        """Whether a != b, elementwise."""
    def ne_(self, b: _Operand) -> Tensor:
        """`ne`, written into the tensor; returns it."""
    def neg(self) -> Tensor:
        """The elementwise negation -x."""
    def neg_(self) -> Tensor:
        """`neg`, written into the tensor; returns it."""
    def negative(self) -> Tensor:
        """The elementwise negation -x."""
    def negative_(self) -> Tensor:
        """`neg`, written into the tensor; returns it."""
    def nelement(self) -> _int:
        """The number of elements."""
    def new(self, *data: Any, size: Any = None) -> Tensor:
        """Return a tensor of the dtype of x: `x.new(2, 3)` of zeros, `x.new([1, 2])` of data."""
    def new_empty(self, *args: Any, dtype: Any = None, **keywords: Any) -> Tensor:
        """`rg.empty`, in the dtype of this tensor unless another is given."""
    def new_empty_strided(self, *args: Any, dtype: Any = None, **keywords: Any) -> Tensor:
        """`rg.empty_strided`, in the dtype of this tensor unless another is given."""
    def new_full(self, *args: Any, dtype: Any = None, **keywords: Any) -> Tensor:
        """`rg.full`, in the dtype of this tensor unless another is given."""
    def new_ones(self, *args: Any, dtype: Any = None, **keywords: Any) -> Tensor:
        """`rg.ones`, in the dtype of this tensor unless another is given."""
    def new_tensor(self, *args: Any, dtype: Any = None, **keywords: Any) -> Tensor:
        """`rg.tensor`, in the dtype of this tensor unless another is given."""
    def new_zeros(self, *args: Any, dtype: Any = None, **keywords: Any) -> Tensor:
        """`rg.zeros`, in the dtype of this tensor unless another is given."""
    def nextafter(self, b: _Operand) -> Tensor:
        """Next representable value after a towards b; b where they are equal, with derivative 0; by b it is always 0."""
    def nextafter_(self, b: _Operand) -> Tensor:
        """`nextafter`, written into the tensor; returns it."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """Return the indices of the nonzero elements, as one (n, ndim) tensor or as one tensor per dimension."""
    def nonzero_static(self, *, size: _int, fill_value: _int = -1) -> Tensor:
        """The first `size` indices of nonzero elements, one per row, padded with `fill_value`."""
    def norm(self, p: Any = 'fro', dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The p-norm `linalg.vector_norm` over `dim` (None: all elements as one vector)."""
    def normal_(self, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Fill x with samples from the normal distribution with that mean and standard deviation."""
    def not_equal(self, b: _Operand) -> Tensor:
        """Whether a != b, elementwise."""
    def not_equal_(self, b: _Operand) -> Tensor:
        """`ne`, written into the tensor; returns it."""
    def numel(self) -> _int:
        """The number of elements."""
    def numpy(self) -> NDArray[Any]: ...
    def one_hot(self, num_classes: _int = -1) -> Tensor:
        """One-hot encode integer classes in a new last dimension, in int64."""
    def orgqr(self, tau: _Operand) -> Tensor:
        """First n columns of the product of reflections 1 - tau_i v_i v_i^H, with v_i stored below the diagonal of A."""
    def ormqr(self, tau: _Operand, other: _Operand, left: _bool = True, transpose: _bool = False) -> Tensor:
        """Multiply `other` by Q (m, m), the product of reflections from `geqrf`: Q other, or, with left=False, other Q."""
    def outer(self, b: _Operand) -> Tensor:
        """Outer product of two vectors, (m,) and (n,) to (m, n)."""
    @property
    def output_nr(self) -> _int:
        """The index of this tensor among the outputs of its `grad_fn`."""
    def permute(self, *dims: _Ints) -> Tensor:
        """A view of x with dimensions reordered: dimension i of the result is dimension dims[i] of x."""
    def pin_memory(self, device: Any = None) -> Tensor:
        """Return a copy in memory that is not paged out, from which copies to the GPU need no staging; itself if it is."""
    def pinverse(self, rcond: _Number = 1e-15) -> Tensor:
        """The pseudo-inverse `linalg.pinv`, under its older name."""
    def polygamma(self, n: Any) -> Tensor:
        """The derivative of digamma of order n: `polygamma(n, x)`."""
    def polygamma_(self, n: Any) -> Tensor:
        """Write `polygamma(n, x)` into the tensor; return it."""
    def positive(self) -> Tensor:
        """Return x itself; TypeError for booleans, which have no sign."""
    def pow(self, exponent: _Operand) -> Tensor:
        """a raised elementwise to the power `exponent`."""
    def pow_(self, exponent: _Operand) -> Tensor:
        """`pow`, written into the tensor; returns it."""
    def prelu(self, weight: _Operand) -> Tensor:
        """Return x where positive and weight * x elsewhere: one weight, or one per channel, which is dimension 1 of x."""
    def prod(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The product of elements over `dim` (None or (): all); derivatives of every order hold where factors are 0."""
    def put(self, index: _Operand, source: _Operand, accumulate: _bool = False) -> Tensor:
        """x with the elements of source written, or added, at the indices of x in row-major order."""
    def put_(self, index: _Operand, source: _Operand, accumulate: _bool = False) -> Tensor:
        """`put`, written into the tensor; returns it."""
    def qr(self, some: _bool = True) -> return_types.qr:
        """QR factorisation: `linalg.qr`, with mode "complete" if not `some`."""
    def quantile(self, q: _Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
        """The quantiles of x at q (from 0 to 1) along `dim` (None: of all)."""
    def rad2deg(self) -> Tensor:
        """Convert radians to degrees."""
    def rad2deg_(self) -> Tensor:
        """`rad2deg`, written into the tensor; returns it."""
    def random_(self, start: Any = None, to: Any = ..., *, generator: Any = None) -> Tensor:
        """Fill x with integers: `random_(to)` in [0, to), `random_(start, to)`; None: all that the dtype holds exactly."""
    def ravel(self) -> Tensor:
        """Flatten into one dimension in row-major order: a view of a contiguous tensor, else a copy."""
    @property
    def real(self) -> Tensor:
        """The real part, as a view that may be assigned to; a real tensor is returned itself."""
    @real.setter
    def real(self, value: Tensor) -> None: ...
    def reciprocal(self) -> Tensor:
        """The elementwise reciprocal 1 / x."""
    def reciprocal_(self) -> Tensor:
        """`reciprocal`, written into the tensor; returns it."""
    def record_stream(self, stream: Any) -> None:
        """Do nothing on a device, whose memory pool keeps blocks by stream. RuntimeError for the CPU, without streams."""
    def register_hook(self, hook: Any) -> Any:
        """Call `hook(grad)` whenever the gradient of this tensor is complete; a result other than None replaces it."""
    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Call `hook(tensor)` when a backward pass has added the complete gradient to `.grad` of this leaf."""
    def relu(self) -> Tensor:
        """The rectified linear unit max(x, 0).  Its derivative is 0 at 0, and 1 at NaN."""
    def relu_(self) -> Tensor:
        """`relu`, written into the tensor; returns it."""
    def remainder(self, b: _Operand) -> Tensor:
        """The remainder a - floor(a / b) * b, with the sign of b.  Integer division by 0 raises ZeroDivisionError."""
    def remainder_(self, b: _Operand) -> Tensor:
        """`remainder`, written into the tensor; returns it."""
    def renorm(self, p: _Number, dim: _int, maxnorm: _Number) -> Tensor:
        """x with each slice along `dim` scaled down to the p-norm maxnorm if its norm is larger."""
    def renorm_(self, p: _Number, dim: _int, maxnorm: _Number) -> Tensor:
        """`renorm`, written into the tensor; returns it."""
    def repeat(self, *repeats: _Ints) -> Tensor:
        """Repeat the tensor repeats[i] times along dimension i, as a copy; new dimensions are in front."""
    def repeat_interleave(self, repeats: _Operand | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
        """Repeat each slice along `dim` (None: each element, in row-major order) by `repeats`, one number or one per slice."""
    @property
    def requires_grad(self) -> _bool:
        """Whether operators on this tensor are recorded, here or below a transform, so that it receives gradients."""
    @requires_grad.setter
    def requires_grad(self, value: _bool) -> None: ...
    def requires_grad_(self, requires_grad: Any = True) -> Tensor:
        """Set whether the tensor requires grad; return it. A result in a graph requires grad already."""
    def reshape(self, *shape: _Ints) -> Tensor:
        """x with the same elements, in row-major order, in another shape; one size may be -1.  A view if strides allow."""
    def reshape_as(self, other: Any) -> Tensor:
        """x reshaped to the shape of the other tensor."""
    def resize_(self, *shape: Any, size: Any = None, memory_format: Any = ...) -> Tensor:
        """Resize this tensor in place to another shape over its memory, in the order of a format; return it."""
    def resize_as_(self, the_template: Any, *, memory_format: Any = ...) -> Tensor:
        """Resize this tensor in place to the shape of another one, as `resize_` does; `preserve_format` is that one's."""
    def resize_as_sparse_(self, the_template: Tensor) -> Tensor:
        """Give a COO tensor the size of another one, in place; return it."""
    def resolve_conj(self) -> Tensor:
        """Return x itself: no lazy conjugation exists here, unlike in PyTorch."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself: unlike in PyTorch, no negation is ever pending."""
    def retain_grad(self) -> None:
        """Store the gradient of this result in its `.grad` in backward passes, as for leaves."""
    @property
    def retains_grad(self) -> _bool:
        """Return whether `backward()` stores the gradient of this result; False for leaves, which always get theirs."""
    def roll(self, shifts: _Ints, dim: _Ints | None = None) -> Tensor:
        """x shifted cyclically along each of `dim` (None: in row-major order)."""
    def rot90(self, k: _int = 1, dims: _Ints = (0, 1)) -> Tensor:
        """x rotated k times by 90 degrees in the plane of two dimensions, from the first towards the second; a copy."""
    def round(self, *, decimals: _int = 0) -> Tensor:
        """x rounded to `decimals` decimals, halves to even; negative decimals round to tens.  Its derivative is 0."""
    def round_(self, *, decimals: _int = 0) -> Tensor:
        """`round`, written into the tensor; returns it."""
    def row_indices(self) -> Tensor:
        """Return the row of each entry, of a tensor compressed by columns, not copied; RuntimeError for other layouts."""
    def rsqrt(self) -> Tensor:
        """The reciprocal of the square root, 1 / sqrt(x)."""
    def rsqrt_(self) -> Tensor:
        """`rsqrt`, written into the tensor; returns it."""
    def rsub(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """Subtract with swapped operands: b - alpha * a."""
    def scatter(self, dim: _int, index: _Operand, src: _Operand | None = None, *, value: _Number | None = None, reduce: _str | None = None) -> Tensor:
        """x with the elements of src, or one value, written at `index` along `dim`; the counterpart of gather."""
    def scatter_(self, dim: _int, index: _Operand, src: _Operand | None = None, *, value: _Number | None = None, reduce: _str | None = None) -> Tensor:
        """`scatter`, written into the tensor; returns it."""
    def scatter_add(self, dim: _int, index: _Operand, src: _Operand) -> Tensor:
        """x with the elements of src added at `index` along `dim`; sizes as in `scatter`."""
    def scatter_add_(self, dim: _int, index: _Operand, src: _Operand) -> Tensor:
        """`scatter_add`, written into the tensor; returns it."""
    def scatter_reduce(self, dim: _int, index: _Operand, src: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """x with the elements of src reduced into `index` along `dim`: "sum", "prod", "mean", "amax" or "amin"."""
    def scatter_reduce_(self, dim: _int, index: _Operand, src: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """`scatter_reduce`, written into the tensor; returns it."""
    def select(self, dim: _int, index: _int) -> Tensor:
        """Return the slice at `index` along `dim`, without that dimension; a view."""
    def select_scatter(self, src: _Operand, dim: _int, index: _int) -> Tensor:
        """Return x with src in place of x.select(dim, index)."""
    def set_(self, source: Any = None, storage_offset: Any = 0, size: Any = None, stride: Any = None) -> Tensor:
        """Let the tensor view other memory: that of a tensor or storage, or none; return it."""
    def sgn(self) -> Tensor:
        """Return the sign of x, x / |x|, and 0 with derivative 0 at 0; `sign` for real values."""
    def sgn_(self) -> Tensor:
        """`sgn`, written into the tensor; returns it."""
    @property
    def shape(self) -> tuple[_int, ...]:
        """Sizes of the dimensions, as a tuple of ints."""
    def share_memory_(self) -> Tensor:
        """Move the memory of this tensor to where other processes can share it; return the tensor."""
    def short(self, memory_format: Any = ...) -> Tensor:
        """The tensor in int16; itself if it is so already."""
    def sigmoid(self) -> Tensor:
        """The logistic sigmoid 1 / (1 + exp(-x))."""
    def sigmoid_(self) -> Tensor:
        """`sigmoid`, written into the tensor; returns it."""
    def sign(self) -> Tensor:
        """The sign of x: -1, 0 or 1.  Its derivative is 0.  For complex tensors use `sgn`."""
    def sign_(self) -> Tensor:
        """`sign`, written into the tensor; returns it."""
    def signbit(self) -> Tensor:
        """Whether the sign bit is set, as in -0.0."""
    def silu(self) -> Tensor:
        """The sigmoid linear unit x * sigmoid(x), also called swish."""
    def silu_(self) -> Tensor:
        """`silu`, written into the tensor; returns it."""
    def sin(self) -> Tensor:
        """The sine of x radians."""
    def sin_(self) -> Tensor:
        """`sin`, written into the tensor; returns it."""
    def sinc(self) -> Tensor:
        """The normalized sinc sin(pi x) / (pi x), 1 at 0; derivatives of every order hold there, too."""
    def sinc_(self) -> Tensor:
        """`sinc`, written into the tensor; returns it."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine of x."""
    def sinh_(self) -> Tensor:
        """`sinh`, written into the tensor; returns it."""
    @property
    def size(self) -> Any:
        """The number of elements, as in NumPy; when called, the shape or the size of one dimension, as in PyTorch."""
    def slice_scatter(self, src: _Operand, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """Return x with src in place of x[start:end:step] along `dim`."""
    def slogdet(self) -> return_types.linalg_slogdet:
        """The sign, and the log of the absolute value, of determinants of square matrices, which can't overflow."""
    def smm(self, mat: Tensor) -> Tensor:
        """Return the product of a sparse matrix and a dense one as a sparse matrix, with all elements of nonempty rows."""
    def softmax(self, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
        """The softmax exp(x) / sum(exp(x)) along dim, without overflow; computed in `dtype` (None: that of x)."""
    def softplus(self, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
        """log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x exceeds the threshold."""
    def softplus_(self, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
        """`softplus`, written into the tensor; returns it."""
    def sort(self, dim: _int = -1, descending: _bool = False, *, stable: _bool = False) -> return_types.sort:
        """x sorted along `dim` and the indices that sort it, as a named tuple (values, indices)."""
    def sparse_dim(self) -> _int:
        """Return the number of sparse dimensions, 0 of a dense tensor."""
    def sparse_mask(self, mask: Tensor) -> Tensor:
        """Return the elements of x, dense or sparse, at the entries of a sparse tensor of the same shape."""
    def sparse_resize_(self, size: Any, sparse_dim: _int, dense_dim: _int) -> Tensor:
        """Set the size of a COO tensor in place; return it.  With entries, no size may shrink nor dimension change kind."""
    def sparse_resize_and_clear_(self, size: Any, sparse_dim: _int, dense_dim: _int) -> Tensor:
        """Set the size of a COO tensor in place, and remove its entries; return it."""
    def split(self, split_size_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of views along `dim`: of one size (the last may be smaller), or of the sizes listed."""
    def split_with_sizes(self, split_sizes: _Ints, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of views of the sizes listed along `dim`."""
    def sqrt(self) -> Tensor:
        """The elementwise square root; NaN for negative values."""
    def sqrt_(self) -> Tensor:
        """`sqrt`, written into the tensor; returns it."""
    def square(self) -> Tensor:
        """The elementwise square x * x; int64 for booleans."""
    def square_(self) -> Tensor:
        """`square`, written into the tensor; returns it."""
    def squeeze(self, dim: _Ints | None = None) -> Tensor:
        """A view of x without its dimensions of size 1, or without those of them listed in `dim`."""
    def squeeze_(self, dim: Any = None) -> Tensor:
        """Remove dimensions of size 1 of this tensor: all, or those of `dim`; returns it."""
    def sspaddmm(self, mat1: Tensor, mat2: Tensor, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        """Return beta · input + alpha · (mat1 @ mat2) for sparse input and mat1 and a dense mat2; the result is sparse."""
    def std(self, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> Tensor:
        """The standard deviation over `dim`, the square root of `var`.  Its derivative where it is 0 is taken as 0."""
    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: _Operand | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
        """Return the short-time Fourier transform: spectra of overlapping windows of signals (..., length)."""
    def storage(self) -> Any:
        """Return the elements of the memory of the tensor, as a storage; a sparse tensor raises NotImplementedError."""
    def storage_offset(self) -> _int:
        """Return the offset, in elements, of the first element in the memory of the base."""
    def storage_type(self) -> Any:
        """Return the class of the storages of the dtype of the tensor: `isinstance(x.storage(), x.storage_type())`."""
    def stride(self, dim: Any = None) -> Any:
        """Return the stride in elements along each dimension, or along one."""
    def sub(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """The elementwise difference a - b; a and b broadcast."""
    def sub_(self, other: Any, *further: Any, alpha: Any = 1) -> Tensor:
        """Subtract alpha * other from x in place."""
    def subtract(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """Subtract: a - alpha * b."""
    def subtract_(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """`subtract`, written into the tensor; returns it."""
    def sum(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum of elements over `dim` (None or (): all).  Integers and booleans are summed in int64."""
    def sum_to_size(self, *shape: _Ints) -> Tensor:
        """Sum x over the dimensions along which a tensor of `shape` would be broadcast to the shape of x."""
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> return_types.svd:
        """The SVD x = U diag(S) V^H: `linalg.svd` with V in place of V^H; zeros for U and V without compute_uv."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """A view with two dimensions swapped: `transpose` under NumPy's name."""
    def swapaxes_(self, axis0: Any, axis1: Any) -> Tensor:
        """Swap two dimensions of this tensor; returns it."""
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """A view of x with two dimensions swapped."""
    def swapdims_(self, dim0: Any, dim1: Any) -> Tensor:
        """Swap two dimensions of this tensor; returns it."""
    def t(self) -> Tensor:
        """A view of a matrix transposed; of tensors with fewer dimensions, a view unchanged."""
    def t_(self) -> Tensor:
        """Transpose this tensor of at most 2 dimensions; returns it."""
    def take(self, index: _Operand) -> Tensor:
        """Return the elements of x at flat indices, in the shape of `index`; -1 is the last element."""
    def take_along_dim(self, indices: _Operand, dim: _int | None = None) -> Tensor:
        """Gather elements along `dim`: for each position of `indices`, the element of x there; other dimensions broadcast."""
    def tan(self) -> Tensor:
        """The tangent of x radians."""
    def tan_(self) -> Tensor:
        """`tan`, written into the tensor; returns it."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent of x."""
    def tanh_(self) -> Tensor:
        """`tanh`, written into the tensor; returns it."""
    def tensor_split(self, indices_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of views along `dim`: a number of nearly equal parts, or the parts between the indices listed."""
    def tile(self, *dims: _Ints) -> Tensor:
        """Repeat the tensor as `repeat` does, with 1 for each leading dimension that `dims` leaves out."""
    def to(self, *target: Any, dtype: Any = None, device: Any = None, other: Any = None, non_blocking: Any = False, copy: Any = False, memory_format: Any = ...) -> Tensor:
        """The tensor converted to another dtype; itself if it already has it and no copy is requested."""
    def to_dense(self, dtype: Any = None, *, masked_grad: Any = True) -> Tensor:
        """Return the tensor itself, or in another dtype if it is dense; the dense tensor of a sparse one."""
    def to_device(self, device: Any, *, stream: Any = None) -> Tensor:
        """Return the tensor itself, on the only device.  RuntimeError for others, ValueError for streams."""
    def to_sparse(self, sparse_dim: _int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: _int | None = None) -> Tensor:
        """Return a sparse tensor with the nonzero elements of a dense one, or a sparse one in another layout."""
    def to_sparse_bsc(self, blocksize: Any, dense_dim: _int | None = None) -> Tensor:
        """Return a matrix compressed by columns of blocks, each of blocksize, (rows, columns) or one number for both."""
    def to_sparse_bsr(self, blocksize: Any, dense_dim: _int | None = None) -> Tensor:
        """Return a matrix compressed by rows of blocks, each of blocksize, (rows, columns) or one number for both."""
    def to_sparse_coo(self) -> Tensor:
        """Return the tensor in the layout `rg.sparse_coo`, as `to_sparse()`."""
    def to_sparse_csc(self, dense_dim: _int | None = None) -> Tensor:
        """Return a matrix compressed by columns; the last `dense_dim` dimensions are dense."""
    def to_sparse_csr(self, dense_dim: _int | None = None) -> Tensor:
        """Return a matrix compressed by rows; the last `dense_dim` dimensions are dense."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
    def topk(self, k: _int, dim: _int | None = None, largest: _bool = True, sorted: _bool = True) -> return_types.topk:
        """The k largest (or smallest) elements along `dim` (None: the last), and their indices, sorted by rank."""
    def trace(self) -> Tensor:
        """Sum of the diagonal of a matrix."""
    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """A view of x with two dimensions swapped."""
    def transpose_(self, dim0: Any, dim1: Any) -> Tensor:
        """Swap two dimensions of this tensor; returns it."""
    def triangular_solve(self, A: _Operand, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> return_types.triangular_solve:
        """The solution X of A X = b, or with `transpose` of A^T X = b, and a copy of A: older `linalg.solve_triangular`."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of the last two dimensions; elements above the given diagonal become 0."""
    def tril_(self, diagonal: _int = 0) -> Tensor:
        """`tril`, written into the tensor; returns it."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of the last two dimensions; elements below the given diagonal become 0."""
    def triu_(self, diagonal: _int = 0) -> Tensor:
        """`triu`, written into the tensor; returns it."""
    def true_divide(self, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """The elementwise quotient a / b, in a floating dtype."""
    def true_divide_(self, b: _Operand) -> Tensor:
        """`div`, written into the tensor; returns it."""
    def trunc(self) -> Tensor:
        """x rounded towards 0 to an integer.  Its derivative is 0."""
    def trunc_(self) -> Tensor:
        """`trunc`, written into the tensor; returns it."""
    def type(self, dtype: Any = None, non_blocking: Any = False) -> Any:
        """Return the name of the tensor's class by dtype, "retrograd.FloatTensor"; or the tensor in another dtype."""
    def type_as(self, other: Any) -> Tensor:
        """The tensor converted to the dtype of the other."""
    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of views, the slices along `dim`, without that dimension."""
    def unflatten(self, dim: _int, sizes: _Ints) -> Tensor:
        """x with one dimension split into several; one of the sizes may be -1."""
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """View windows of `size` elements at every `step` along a dimension, each window in a new last dimension."""
    def unfold_dim(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """View windows of `size` elements at every `step` along a dimension, each window in a new last dimension."""
    def uniform_(self, start: Any = 0.0, to: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Fill x with uniform values from `start` up to `to`; of complex tensors both parts."""
    @overload
    def unique(self, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: _bool = False, dim: _int | None = None) -> tuple[Tensor, ...]: ...
    @overload
    def unique(self, sorted: _bool = True, return_inverse: _bool = False, *, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, ...]: ...
    @overload
    def unique(self, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
        """The unique elements of x, sorted; with `dim`, the unique slices along it."""
    @overload
    def unique_consecutive(self, return_inverse: Literal[True], return_counts: _bool = False, dim: _int | None = None) -> tuple[Tensor, ...]: ...
    @overload
    def unique_consecutive(self, return_inverse: _bool = False, *, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, ...]: ...
    @overload
    def unique_consecutive(self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
        """The elements of x without consecutive duplicates; with `dim`, the slices along it."""
    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """`chunk` into views that may be written to individually; here their histories stay correct."""
    def unsafe_split(self, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """`split` into equal views that may be written to individually; here their histories stay correct."""
    def unsafe_split_with_sizes(self, split_sizes: _Ints, dim: _int = 0) -> tuple[Tensor, ...]:
        """`split_with_sizes` into views that may be written to individually; here their histories stay correct."""
    def unsqueeze(self, dim: _int) -> Tensor:
        """A view of x with a new dimension of size 1 at `dim`."""
    def unsqueeze_(self, dim: Any) -> Tensor:
        """Insert a dimension of size 1 in this tensor at `dim`; returns it."""
    def untyped_storage(self) -> Any:
        """Return the bytes of the memory of the tensor, as a storage; a sparse tensor raises NotImplementedError."""
    def values(self) -> Tensor:
        """Return the stored elements as a view with gradients: of a nested tensor its buffer, of a sparse one its values."""
    def var(self, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> Tensor:
        """The variance over `dim` (None: all): sum(|x - mean(x)|^2) / (n - correction)."""
    def vdot(self, b: _Operand) -> Tensor:
        """Return the dot product of two vectors of equal size, with the first conjugated."""
    def view(self, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
        """View the memory in another shape, RuntimeError if strides do not allow that; or its bytes as another dtype."""
    def view_as(self, other: _Operand) -> Tensor:
        """View the memory in the shape of another tensor."""
    def view_as_complex(self) -> Tensor:
        """View pairs of real values as complex ones: shape (..., 2) becomes (...)."""
    def view_as_real(self) -> Tensor:
        """View complex values as pairs of real ones: shape (...) becomes (..., 2).  RuntimeError for other dtypes."""
    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """`tensor_split` along the first of two or more dimensions; a number of parts must divide its size."""
    def where(self, condition: Any, other: Any) -> Tensor:
        """Elements of x where the condition is true, of `other` elsewhere."""
    def xlogy(self, b: _Operand) -> Tensor:
        """a * log(b), and 0 where a is 0, unless b is NaN."""
    def xlogy_(self, b: _Operand) -> Tensor:
        """`xlogy`, written into the tensor; returns it."""
    def xpu(self, device: Any = None, non_blocking: Any = False, memory_format: Any = ...) -> Tensor:
        """Raise a RuntimeError: tensors are on the CPU."""
    def zero_(self) -> Tensor:
        """Fill x with zeros in place; return x."""

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]
