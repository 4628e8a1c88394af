# Made from the registry of operators by tools/stubs.py: change those, then run `python tools/stubs.py`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

class Tensor:
    """An array with a place in the autograd graph."""

    def __init__(self, value: Any, level: Any = None, tag: Any = None, requires_grad: _bool = ...): ...
    _grad: Tensor | None
    _grad_fn: Any
    _hooks: Any
    _requires_grad: _bool
    _saved: _bool
    _view: Any
    level: Any
    output_nr: _int
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
        """The conjugate transpose of a matrix; RuntimeError if x is none."""
    @property
    def T(self) -> Tensor:
        """The dimensions in reverse order."""
    def __abs__(self) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> NDArray[Any]: ...
    def __bool__(self) -> _bool: ...
    def __complex__(self) -> _complex: ...
    def __contains__(self, value: Any) -> _bool: ...
    def __deepcopy__(self, memo: Any) -> Any: ...
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
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None:
        """x[key] = value."""
    def __xor__(self, other: Any) -> Tensor: ...
    @property
    def _base(self) -> Any: ...
    @property
    def _version(self) -> Any: ...
    def abs(self) -> Tensor:
        """The absolute value; its derivative at 0 is 0."""
    def abs_(self) -> Tensor:
        """`abs`, written into the tensor; returns it."""
    def absolute(self) -> Tensor:
        """The absolute value; its derivative at 0 is 0."""
    def absolute_(self) -> Tensor:
        """`abs`, written into the tensor; returns it."""
    def acos(self) -> Tensor:
        """The angle in radians whose cosine is x."""
    def acos_(self) -> Tensor:
        """`acos`, written into the tensor; returns it."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine, for x of at least 1."""
    def acosh_(self) -> Tensor:
        """`acosh`, written into the tensor; returns it."""
    def add(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """Elementwise sum; operands broadcast."""
    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """x = x + alpha * other, in place."""
    def addbmm(self, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """beta * x + alpha * the sum of the products of two stacks of matrices; x broadcasts."""
    def addbmm_(self, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`addbmm`, written into the tensor; returns it."""
    def addcdiv(self, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
        """x + value * tensor1 / tensor2; all three broadcast."""
    def addcdiv_(self, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
        """`addcdiv`, written into the tensor; returns it."""
    def addcmul(self, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
        """x + value * tensor1 * tensor2; all three broadcast."""
    def addcmul_(self, tensor1: _Operand, tensor2: _Operand, *, value: _Number = 1) -> Tensor:
        """`addcmul`, written into the tensor; returns it."""
    def addmm(self, mat1: _Operand, mat2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """beta * x + alpha * (mat1 @ mat2), of matrices (m, k) and (k, n); x broadcasts to (m, n)."""
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
        """The conjugate transpose of matrices, the last two dimensions: of real ones a view, else a copy as of `conj`."""
    def all(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """Whether every element over `dim` (None: all, (): each on its own) is true (not zero)."""
    def allclose(self, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> _bool:
        """Whether all elements are close, as `isclose` says."""
    def amax(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """The largest element over `dim` (None or (): all); equals share the gradient.  NaN wins."""
    def amin(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """The smallest element over `dim` (None or (): all); equals share the gradient.  NaN wins."""
    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
        """`amin` and `amax` along `dim` (None: of all), as a named tuple (min, max)."""
    def angle(self) -> Tensor:
        """The angle in radians between -pi and pi; of real numbers 0, or pi where negative.  At 0 its derivative is 0."""
    def any(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """Whether some element over `dim` (None: all, (): each on its own) is true (not zero)."""
    def apply_(self, callable: Any) -> Tensor:
        """Replace every element by what a Python function makes of it; slow, and for tensors outside graphs only."""
    def arccos(self) -> Tensor:
        """The angle in radians whose cosine is x."""
    def arccos_(self) -> Tensor:
        """`acos`, written into the tensor; returns it."""
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine, for x of at least 1."""
    def arccosh_(self) -> Tensor:
        """`acosh`, written into the tensor; returns it."""
    def arcsin(self) -> Tensor:
        """The angle in radians whose sine is x."""
    def arcsin_(self) -> Tensor:
        """`asin`, written into the tensor; returns it."""
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def arcsinh_(self) -> Tensor:
        """`asinh`, written into the tensor; returns it."""
    def arctan(self) -> Tensor:
        """The angle in radians whose tangent is x."""
    def arctan2(self, b: _Operand) -> Tensor:
        """The angle in radians of the point (b, a)."""
    def arctan2_(self, b: _Operand) -> Tensor:
        """`atan2`, written into the tensor; returns it."""
    def arctan_(self) -> Tensor:
        """`atan`, written into the tensor; returns it."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent, for x between -1 and 1."""
    def arctanh_(self) -> Tensor:
        """`atanh`, written into the tensor; returns it."""
    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Where the largest element along `dim` is, the first of equals; None: in the flattened tensor."""
    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Where the smallest element along `dim` is, the first of equals; None: in the flattened tensor."""
    def argsort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        """Where the elements of x, sorted along `dim`, come from; equal ones keep their order, NaN counts as the largest."""
    def argwhere(self, *, as_tuple: _bool = False) -> Tensor:
        """The places of the elements that are not zero, as one (n, ndim) tensor or as one tensor per dimension."""
    def as_strided(self, size: _Ints, stride: _Ints, storage_offset: _int | None = None) -> Tensor:
        """The memory of x in another shape and other strides, counted in elements, from an offset on: a view."""
    def as_strided_(self, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
        """Give this tensor another shape and other strides over the same memory; returns it."""
    def as_strided_scatter(self, src: _Operand, size: _Ints, stride: _Ints, storage_offset: _int | None = None) -> Tensor:
        """x with src in the place of x.as_strided(size, stride, storage_offset)."""
    def asin(self) -> Tensor:
        """The angle in radians whose sine is x."""
    def asin_(self) -> Tensor:
        """`asin`, written into the tensor; returns it."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def asinh_(self) -> Tensor:
        """`asinh`, written into the tensor; returns it."""
    def astype(self, dtype: Any, order: Any = 'K', casting: Any = 'unsafe', subok: Any = True, copy: Any = True) -> Tensor:
        """A copy in another dtype; with copy=False the tensor itself if it has that dtype."""
    def atan(self) -> Tensor:
        """The angle in radians whose tangent is x."""
    def atan2(self, b: _Operand) -> Tensor:
        """The angle in radians of the point (b, a)."""
    def atan2_(self, b: _Operand) -> Tensor:
        """`atan2`, written into the tensor; returns it."""
    def atan_(self) -> Tensor:
        """`atan`, written into the tensor; returns it."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent, for x between -1 and 1."""
    def atanh_(self) -> Tensor:
        """`atanh`, written into the tensor; returns it."""
    @property
    def aval(self) -> Any:
        """Shape and dtype, without the value."""
    def backward(self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Any = None) -> None:
        """Add the gradients of this tensor to `.grad` of the leaves that it depends on; see `autograd.backward`."""
    def baddbmm(self, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """beta * x + alpha * bmm(batch1, batch2); x broadcasts."""
    def baddbmm_(self, batch1: _Operand, batch2: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """`baddbmm`, written into the tensor; returns it."""
    def bernoulli(self, p: _float | None = None, *, generator: Any = None) -> Tensor:
        """Ones with probability x, zeros otherwise, in the shape and dtype of x."""
    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Write ones with probability p, a number or a tensor that broadcasts; zeros otherwise."""
    def bincount(self, weights: _Operand | None = None, minlength: _int = 0) -> Tensor:
        """How often each integer from 0 to the largest in x comes, or how much it weighs; `minlength` places at least."""
    def bitwise_and(self, b: _Operand) -> Tensor:
        """The bits that both have; of booleans, whether both are true."""
    def bitwise_and_(self, b: _Operand) -> Tensor:
        """`bitwise_and`, written into the tensor; returns it."""
    def bitwise_count(self) -> Tensor:
        """How many bits of |x| are 1, in uint8."""
    def bitwise_left_shift(self, b: _Operand) -> Tensor:
        """The bits of a moved up b places: a times 2 to the power b."""
    def bitwise_left_shift_(self, b: _Operand) -> Tensor:
        """`bitwise_left_shift`, written into the tensor; returns it."""
    def bitwise_not(self) -> Tensor:
        """The bits turned round; of booleans, their opposite."""
    def bitwise_not_(self) -> Tensor:
        """`bitwise_not`, written into the tensor; returns it."""
    def bitwise_or(self, b: _Operand) -> Tensor:
        """The bits that one has; of booleans, whether one is true."""
    def bitwise_or_(self, b: _Operand) -> Tensor:
        """`bitwise_or`, written into the tensor; returns it."""
    def bitwise_right_shift(self, b: _Operand) -> Tensor:
        """The bits of a moved down b places, the sign kept: a divided by 2 to the power b, rounded down."""
    def bitwise_right_shift_(self, b: _Operand) -> Tensor:
        """`bitwise_right_shift`, written into the tensor; returns it."""
    def bitwise_xor(self, b: _Operand) -> Tensor:
        """The bits that exactly one has; of booleans, whether they differ."""
    def bitwise_xor_(self, b: _Operand) -> Tensor:
        """`bitwise_xor`, written into the tensor; returns it."""
    def bmm(self, b: _Operand) -> Tensor:
        """The products of two stacks of as many matrices, (b, m, k) and (b, k, n)."""
    def bool(self, memory_format: Any = ...) -> Tensor:
        """The tensor in bool; itself if it is so already."""
    def broadcast_to(self, *shape: _Ints) -> Tensor:
        """`expand`, by NumPy's name."""
    def byte(self, memory_format: Any = ...) -> Tensor:
        """The tensor in uint8; itself if it is so already."""
    def cauchy_(self, median: Any = 0.0, sigma: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Write numbers from the Cauchy distribution of that median and scale."""
    def cbrt(self) -> Tensor:
        """The cube root, of the sign of x."""
    def cbrt_(self) -> Tensor:
        """`cbrt`, written into the tensor; returns it."""
    def cdouble(self, memory_format: Any = ...) -> Tensor:
        """The tensor in complex128; itself if it is so already."""
    def ceil(self) -> Tensor:
        """The smallest integer not below x; its derivative is 0."""
    def ceil_(self) -> Tensor:
        """`ceil`, written into the tensor; returns it."""
    def cfloat(self, memory_format: Any = ...) -> Tensor:
        """The tensor in complex64; itself if it is so already."""
    def char(self, memory_format: Any = ...) -> Tensor:
        """The tensor in int8; itself if it is so already."""
    def cholesky(self, upper: _bool = False) -> Tensor:
        """The lower triangular L with A = L L^H, or the upper with A = U^H U, of Hermitian positive definite matrices."""
    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """The inverse of L L^H, or with `upper` of L^H L, for triangular L."""
    def cholesky_solve(self, L: _Operand, upper: _bool = False) -> Tensor:
        """The solution of L L^H X = x, or with `upper` of L^H L X = x, for triangular L."""
    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` views of equal size along `dim`, the last one possibly smaller."""
    def clamp(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """x, but at least min and at most max (which wins over min): numbers, or tensors that broadcast."""
    def clamp_(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """`clamp`, written into the tensor; returns it."""
    def clamp_max(self, max: _Operand) -> Tensor:
        """x, but at most max, a number or a tensor: `clamp` with one bound."""
    def clamp_max_(self, max: _Operand) -> Tensor:
        """`clamp_max`, written into the tensor; returns it."""
    def clamp_min(self, min: _Operand) -> Tensor:
        """x, but at least min, a number or a tensor: `clamp` with one bound."""
    def clamp_min_(self, min: _Operand) -> Tensor:
        """`clamp_min`, written into the tensor; returns it."""
    def clip(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """x, but at least min and at most max (which wins over min): numbers, or tensors that broadcast."""
    def clip_(self, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
        """`clamp`, written into the tensor; returns it."""
    def clone(self, *, memory_format: Any = ...) -> Tensor:
        """A copy that gradients pass through; it keeps the order in memory unless a format is given."""
    def conj(self) -> Tensor:
        """Return the complex conjugate, or a real tensor itself."""
    def conj_physical(self) -> Tensor:
        """The complex conjugate as a tensor of its own; a real tensor itself."""
    def conj_physical_(self) -> Tensor:
        """`conj_physical`, written into the tensor; returns it."""
    def conjugate(self) -> Tensor:
        """The complex conjugate."""
    def contiguous(self, memory_format: Any = ...) -> Tensor:
        """The tensor itself if its elements lie in memory in that format (row-major order), else a copy that does."""
    def copy(self, order: Any = 'C') -> Tensor:
        """A copy, in the same graph."""
    def copy_(self, src: Any, non_blocking: Any = False) -> Tensor:
        """Write `src`, broadcast and converted, into the memory of x, and return x."""
    def copysign(self, b: _Operand) -> Tensor:
        """|a| with the sign of b, that of -0.0 too; its derivative by a is 0 where a is 0, that by b is 0."""
    def copysign_(self, b: _Operand) -> Tensor:
        """`copysign`, written into the tensor; returns it."""
    def corrcoef(self) -> Tensor:
        """Pearson's coefficients of correlation of variables, one per row of x: their covariances, divided by the"""
    def cos(self) -> Tensor:
        """The cosine of x radians."""
    def cos_(self) -> Tensor:
        """`cos`, written into the tensor; returns it."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""
    def cosh_(self) -> Tensor:
        """`cosh`, written into the tensor; returns it."""
    def count_nonzero(self, dim: _Ints | None = None) -> Tensor:
        """How many elements over `dim` (None or (): all) are not zero, in int64."""
    def cov(self, *, correction: _int = 1, fweights: _Operand | None = None, aweights: _Operand | None = None) -> Tensor:
        """The covariances of variables, one per row of x, observed in its columns; of one row, the variance."""
    def cpu(self, memory_format: Any = ...) -> Tensor:
        """The tensor itself: it is on the CPU."""
    def cross(self, other: _Operand, dim: _int | None = None) -> Tensor:
        """`linalg.cross`; without `dim`, along the first dimension of size 3."""
    def cuda(self, device: Any = None, non_blocking: Any = False, memory_format: Any = ...) -> Tensor:
        """Refused: tensors live on the CPU."""
    def cummax(self, dim: _int) -> tuple[Tensor, Tensor]:
        """The largest elements up to each place along `dim` and where they are, the last of equals.  NaN wins."""
    def cummin(self, dim: _int) -> tuple[Tensor, Tensor]:
        """The smallest elements up to each place along `dim` and where they are, the last of equals.  NaN wins."""
    def cumprod(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The products of the elements up to each place along `dim`; derivatives of every order hold where factors are 0."""
    def cumprod_(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """`cumprod`, written into the tensor; returns it."""
    def cumsum(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sums of the elements up to each place along `dim`.  Integers and booleans add up in int64."""
    def cumsum_(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """`cumsum`, written into the tensor; returns it."""
    @property
    def data(self) -> Tensor:
        """The same memory outside every graph, with a version counter of its own; may be set to another's memory."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    def data_ptr(self) -> _int:
        """The address of the first element."""
    def deg2rad(self) -> Tensor:
        """Degrees in radians."""
    def deg2rad_(self) -> Tensor:
        """`deg2rad`, written into the tensor; returns it."""
    def det(self) -> Tensor:
        """The determinants of square matrices; the derivative holds for singular ones too."""
    def detach(self) -> Tensor:
        """The same memory outside every graph: an operator, so that each level it passes cuts its own."""
    def detach_(self) -> Tensor:
        """Take the tensor out of its graph, as if it were a leaf without gradient; returns it."""
    @property
    def device(self) -> Any:
        """Where the array lives: on the CPU.  It equals the string "cpu"."""
    def diag(self, diagonal: _int = 0) -> Tensor:
        """A vector on the diagonal of a matrix of zeros; of a matrix, the diagonal as a vector, a copy."""
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Zeros with the last dimension of x on the diagonal of two dimensions of the result, `offset` beside the main one."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """All elements, in row-major order, on the diagonal of a matrix of zeros."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The elements whose index along dim2 is `offset` more than along dim1, as the last dimension: a view."""
    def diagonal_scatter(self, src: _Operand, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """x with src on the diagonal that x.diagonal(offset, dim1, dim2) shows."""
    def diff(self, n: _int = 1, dim: _int = -1, prepend: _Operand | None = None, append: _Operand | None = None) -> Tensor:
        """The differences of neighbours along `dim`, taken n times; before that, x may be lengthened at both ends."""
    def digamma(self) -> Tensor:
        """The derivative of `lgamma`; NaN at the negative integers, infinite at 0."""
    def digamma_(self) -> Tensor:
        """`digamma`, written into the tensor; returns it."""
    def dim(self) -> _int:
        """Number of dimensions."""
    def dim_order(self) -> Any:
        """Return the dimensions in the order in which they lie in memory, the outermost first."""
    def dist(self, other: _Operand, p: _Number = 2) -> Tensor:
        """The p-norm of x - other, as `norm` takes it of all elements; its derivative where they agree is 0."""
    def div(self, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """Elementwise quotient a / b, of floating dtype."""
    def div_(self, other: Any, *, rounding_mode: Any = None) -> Tensor:
        """x = x / other, rounded as `div` does, in place."""
    def divide(self, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """a / b; with rounding_mode="floor" rounded down, with "trunc" towards 0, of the operands' dtype and derivative 0."""
    def divide_(self, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """`divide`, written into the tensor; returns it."""
    def dot(self, b: _Operand) -> Tensor:
        """The sum of the products of two vectors of one size; nothing is conjugated."""
    def double(self, memory_format: Any = ...) -> Tensor:
        """The tensor in float64; itself if it is so already."""
    def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """`tensor_split` along the third of three dimensions or more; a number must divide it."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
    def element_size(self) -> _int:
        """The bytes of one element."""
    def eq(self, b: _Operand) -> Tensor:
        """Whether a equals b, element by element."""
    def eq_(self, b: _Operand) -> Tensor:
        """`eq`, written into the tensor; returns it."""
    def equal(self, other: Any) -> _bool:
        """Whether two tensors have the same shape and the same elements, NaN being equal to nothing."""
    def erf(self) -> Tensor:
        """The error function."""
    def erf_(self) -> Tensor:
        """`erf`, written into the tensor; returns it."""
    def erfc(self) -> Tensor:
        """1 - erf(x), exact where erf(x) is near 1."""
    def erfc_(self) -> Tensor:
        """`erfc`, written into the tensor; returns it."""
    def erfinv(self) -> Tensor:
        """The inverse of erf, from (-1, 1): infinite at the ends, NaN beyond."""
    def erfinv_(self) -> Tensor:
        """`erfinv`, written into the tensor; returns it."""
    def exp(self) -> Tensor:
        """e to the power x."""
    def exp2(self) -> Tensor:
        """2 to the power x."""
    def exp2_(self) -> Tensor:
        """`exp2`, written into the tensor; returns it."""
    def exp_(self) -> Tensor:
        """`exp`, written into the tensor; returns it."""
    def expand(self, *shape: _Ints) -> Tensor:
        """Dimensions of size 1 repeated, and new ones in front, without copying; -1 keeps a size."""
    def expand_as(self, other: Any) -> Tensor:
        """Expanded to the shape of the other tensor."""
    def expm1(self) -> Tensor:
        """exp(x) - 1, exact for small x."""
    def expm1_(self) -> Tensor:
        """`expm1`, written into the tensor; returns it."""
    def exponential_(self, lambd: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Write numbers from the exponential distribution of that rate."""
    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
    def fill_(self, value: Any) -> Tensor:
        """Write one value everywhere; returns x."""
    def fill_diagonal_(self, fill_value: Any, wrap: Any = False) -> Tensor:
        """Write one number on the main diagonal, of more than two dimensions, all equal, where all indices are."""
    def fix(self) -> Tensor:
        """x without its fraction; its derivative is 0."""
    def fix_(self) -> Tensor:
        """`trunc`, written into the tensor; returns it."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Dimensions start_dim to end_dim, both included, as one."""
    def flip(self, *dims: _Ints) -> Tensor:
        """The elements in reverse order along the given dimensions; a copy, as in PyTorch."""
    def fliplr(self) -> Tensor:
        """The second dimension in reverse order; a copy."""
    def flipud(self) -> Tensor:
        """The first dimension in reverse order; a copy."""
    def float(self, memory_format: Any = ...) -> Tensor:
        """The tensor in float32; itself if it is so already."""
    def float_power(self, exponent: _Operand) -> Tensor:
        """x to the power exponent in double precision, whatever the operands' dtypes."""
    def float_power_(self, exponent: Any) -> Tensor:
        """Write `float_power(x, exponent)` into the tensor, which must be of the dtype of that; returns it."""
    def floor(self) -> Tensor:
        """The largest integer not above x; its derivative is 0."""
    def floor_(self) -> Tensor:
        """`floor`, written into the tensor; returns it."""
    def floor_divide(self, b: _Operand) -> Tensor:
        """The quotient rounded down; its derivative is 0.  ZeroDivisionError if an integer is divided by 0."""
    def floor_divide_(self, b: _Operand) -> Tensor:
        """`floor_divide`, written into the tensor; returns it."""
    def fmax(self, b: _Operand) -> Tensor:
        """The larger of the two, the other where one is NaN; of equals, a has the gradient."""
    def fmax_(self, b: _Operand) -> Tensor:
        """`fmax`, written into the tensor; returns it."""
    def fmin(self, b: _Operand) -> Tensor:
        """The smaller of the two, the other where one is NaN; of equals, a has the gradient."""
    def fmin_(self, b: _Operand) -> Tensor:
        """`fmin`, written into the tensor; returns it."""
    def fmod(self, b: _Operand) -> Tensor:
        """a - trunc(a / b) * b: what is left, with the sign of a."""
    def fmod_(self, b: _Operand) -> Tensor:
        """`fmod`, written into the tensor; returns it."""
    def frac(self) -> Tensor:
        """The fraction of x, of its sign: x - trunc(x); its derivative is 1."""
    def frac_(self) -> Tensor:
        """`frac`, written into the tensor; returns it."""
    def frexp(self) -> tuple[Tensor, Tensor]:
        """x as mantissa * 2**exponent, a named tuple: |mantissa| is in [0.5, 1), or 0; the exponent is int32."""
    def gather(self, dim: _int, index: _Operand, *, sparse_grad: _bool = False) -> Tensor:
        """Per position of `index`, the element of x at that place along `dim`; places count from 0."""
    def gcd(self, b: _Operand) -> Tensor:
        """The greatest common divisor of |a| and |b|; gcd(0, b) is |b|."""
    def gcd_(self, b: _Operand) -> Tensor:
        """`gcd`, written into the tensor; returns it."""
    def ge(self, b: _Operand) -> Tensor:
        """Whether a is at least b, element by element."""
    def ge_(self, b: _Operand) -> Tensor:
        """`ge`, written into the tensor; returns it."""
    def gelu(self, *, approximate: _str = 'none') -> Tensor:
        """x times the normal distribution function: exact, or with approximate="tanh" by that formula."""
    def gelu_(self, *, approximate: _str = 'none') -> Tensor:
        """`gelu`, written into the tensor; returns it."""
    def geometric_(self, p: Any, *, generator: Any = None) -> Tensor:
        """Write how often a coin is thrown until it first shows what it shows with probability p."""
    def geqrf(self) -> tuple[Tensor, Tensor]:
        """Return the QR factorisation of matrices (..., m, n) as LAPACK stores it, for `ormqr` and `orgqr`."""
    def ger(self, b: _Operand) -> Tensor:
        """Every product of an element of one vector and one of another: (m,) and (n,) to (m, n)."""
    def get_device(self) -> _int:
        """The number of the accelerator that the tensor is on: -1, which stands for the CPU."""
    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward()` accumulated, or None; results show one after `retain_grad()` only."""
    @grad.setter
    def grad(self, value: Tensor | None) -> None: ...
    @property
    def grad_fn(self) -> Any:
        """The node of the graph that made this tensor; None for leaves."""
    def greater(self, b: _Operand) -> Tensor:
        """Whether a is greater than b, element by element."""
    def greater_(self, b: _Operand) -> Tensor:
        """`gt`, written into the tensor; returns it."""
    def greater_equal(self, b: _Operand) -> Tensor:
        """Whether a is at least b, element by element."""
    def greater_equal_(self, b: _Operand) -> Tensor:
        """`ge`, written into the tensor; returns it."""
    def gt(self, b: _Operand) -> Tensor:
        """Whether a is greater than b, element by element."""
    def gt_(self, b: _Operand) -> Tensor:
        """`gt`, written into the tensor; returns it."""
    def half(self, memory_format: Any = ...) -> Tensor:
        """The tensor in float16; itself if it is so already."""
    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """x, but 0 from -lambd to lambd, the ends included, where the derivative is 0."""
    def heaviside(self, values: _Operand) -> Tensor:
        """0 where x is negative, 1 where it is positive, `values` where it is 0.  The derivative by x is 0."""
    def heaviside_(self, values: _Operand) -> Tensor:
        """`heaviside`, written into the tensor; returns it."""
    def histc(self, bins: _int = 100, min: _Number = 0, max: _Number = 0) -> Tensor:
        """How many elements are in each of `bins` equal bins from min to max; if these are equal, from the extremes of x."""
    def histogram(self, bins: Any, *, range: Any = None, weight: _Operand | None = None, density: _bool = False) -> tuple[Tensor, Tensor]:
        """How many elements are in each bin, and the edges of the bins, as a named tuple (hist, bin_edges)."""
    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """`tensor_split` along the second dimension, or the only one; a number must divide it."""
    def hypot(self, b: _Operand) -> Tensor:
        """sqrt(a^2 + b^2), without overflow; at the origin, where there is none, the derivative is NaN."""
    def hypot_(self, b: _Operand) -> Tensor:
        """`hypot`, written into the tensor; returns it."""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind, of order 0."""
    def i0_(self) -> Tensor:
        """`i0`, written into the tensor; returns it."""
    def igamma(self, x: _Operand) -> Tensor:
        """The regularized lower incomplete gamma function: a gamma number of shape a is below x with this probability."""
    def igamma_(self, x: _Operand) -> Tensor:
        """`igamma`, written into the tensor; returns it."""
    def igammac(self, x: _Operand) -> Tensor:
        """The regularized upper incomplete gamma function: 1 - igamma(a, x), exact where that is small."""
    def igammac_(self, x: _Operand) -> Tensor:
        """`igammac`, written into the tensor; returns it."""
    @property
    def imag(self) -> Tensor:
        """The imaginary parts, as a view that may be assigned to; RuntimeError if the dtype is not complex."""
    @imag.setter
    def imag(self, value: Tensor) -> None: ...
    def index_add(self, dim: _int, index: _Operand, source: _Operand, *, alpha: _Number = 1) -> Tensor:
        """x with the slices of source, times alpha, added at the places along `dim` that a 1-d integer tensor names."""
    def index_add_(self, dim: _int, index: _Operand, source: _Operand, *, alpha: _Number = 1) -> Tensor:
        """`index_add`, written into the tensor; returns it."""
    def index_copy(self, dim: _int, index: _Operand, source: _Operand) -> Tensor:
        """x with the slices of source in the places along `dim` that a 1-d integer tensor names, each once."""
    def index_copy_(self, dim: _int, index: _Operand, source: _Operand) -> Tensor:
        """`index_copy`, written into the tensor; returns it."""
    def index_fill(self, dim: _int, index: _Operand, value: _Operand) -> Tensor:
        """x with a number, or a tensor without dimensions, in the places along `dim` that `index` names; -1 is the last."""
    def index_fill_(self, dim: _int, index: _Operand, value: _Operand) -> Tensor:
        """`index_fill`, written into the tensor; returns it."""
    def index_put(self, indices: Any, values: Any, accumulate: Any = False) -> Any:
        """`input` with values, which broadcast, written or added at input[indices], a tuple of index tensors."""
    def index_put_(self, indices: Any, values: Any, accumulate: Any = False) -> Tensor:
        """Write or add values at x[indices], a tuple of index tensors; returns x."""
    def index_reduce(self, dim: _int, index: _Operand, source: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """x with the slices of source merged into places along `dim`: "prod", "mean", "amax", "amin" as in scatter_reduce."""
    def index_reduce_(self, dim: _int, index: _Operand, source: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """`index_reduce`, written into the tensor; returns it."""
    def index_select(self, dim: _int, index: _Operand) -> Tensor:
        """The slices along `dim` that a 1-d integer tensor names, in its order; places count from 0."""
    def inner(self, b: _Operand) -> Tensor:
        """The sum of products over the last dimension of each; a tensor without dimensions multiplies."""
    def int(self, memory_format: Any = ...) -> Tensor:
        """The tensor in int32; itself if it is so already."""
    def inverse(self) -> Tensor:
        """The inverse of square matrices; LinAlgError if one is singular.  To solve A X = B, `linalg.solve` does better."""
    def is_complex(self) -> _bool:
        """Whether the dtype is complex."""
    def is_conj(self) -> _bool:
        """Whether a conjugation is pending: never here, where `conj` computes at once."""
    def is_contiguous(self, memory_format: Any = ...) -> _bool:
        """Whether the elements lie in memory in that format, row-major order unless another is given."""
    @property
    def is_cpu(self) -> Any:
        """Whether the array lives on the CPU: always."""
    @property
    def is_cuda(self) -> Any:
        """Whether the array is one of the device cuda: never."""
    def is_floating_point(self) -> _bool:
        """Whether the dtype is a real floating one."""
    def is_inference(self) -> Any:
        """Whether the tensor was made in inference mode, so that it can't take part in a graph."""
    @property
    def is_leaf(self) -> _bool:
        """Whether no recorded operator made this tensor."""
    @property
    def is_meta(self) -> Any:
        """Whether the array is one of the device meta: never."""
    @property
    def is_mkldnn(self) -> Any:
        """Whether the array is one of the device mkldnn: never."""
    @property
    def is_mps(self) -> Any:
        """Whether the array is one of the device mps: never."""
    def is_neg(self) -> _bool:
        """Whether a negation is pending: never here, where `imag` of a conjugate is computed at once."""
    @property
    def is_nested(self) -> Any:
        """Whether the tensor is nested: never."""
    def is_nonzero(self) -> _bool:
        """Whether the one element of the tensor is not 0; RuntimeError if it has none or several."""
    def is_pinned(self, device: Any = None) -> _bool:
        """Whether the memory is pinned for an accelerator: never."""
    @property
    def is_quantized(self) -> Any:
        """Whether the tensor is quantized: never."""
    def is_same_size(self, other: Any) -> _bool:
        """Whether two tensors have one shape."""
    def is_shared(self) -> _bool:
        """Whether the memory was moved by `share_memory_`: never."""
    def is_signed(self) -> _bool:
        """Whether the dtype has negative numbers."""
    @property
    def is_sparse(self) -> Any:
        """Whether the tensor is sparse: never."""
    @property
    def is_sparse_csr(self) -> Any:
        """Whether the tensor is sparse csr: never."""
    @property
    def is_xla(self) -> Any:
        """Whether the array is one of the device xla: never."""
    @property
    def is_xpu(self) -> Any:
        """Whether the array is one of the device xpu: never."""
    def isclose(self, b: _Operand, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Whether |a - b| <= atol + rtol * |b|; equal infinities are close, and NaN is close to NaN if equal_nan is set."""
    def isfinite(self) -> Tensor:
        """Whether x is neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Whether x is infinite, of either sign."""
    def isnan(self) -> Tensor:
        """Whether x is not a number."""
    def isneginf(self) -> Tensor:
        """Whether x is infinite and negative."""
    def isposinf(self) -> Tensor:
        """Whether x is infinite and positive."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0; true for all real numbers, NaN included."""
    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: _Operand | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
        """Return the signals whose `stft` is closest to spectra x (..., frequencies, frames), by least squares."""
    def item(self) -> Any:
        """The one element of the tensor as a Python number."""
    @property
    def itemsize(self) -> Any:
        """The bytes of one element."""
    def kron(self, b: _Operand) -> Tensor:
        """The Kronecker product: each element of a times the whole of b, in a's order."""
    def kthvalue(self, k: _int, dim: _int | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
        """The k-th smallest element (from 1) along `dim` (None: the last), and where it is."""
    @property
    def layout(self) -> Any:
        """How the elements are kept: strided."""
    def lcm(self, b: _Operand) -> Tensor:
        """The least common multiple of |a| and |b|; 0 where one is 0."""
    def lcm_(self, b: _Operand) -> Tensor:
        """`lcm`, written into the tensor; returns it."""
    def ldexp(self, exponent: _Operand) -> Tensor:
        """x times 2 to the power exponent."""
    def ldexp_(self, exponent: _Operand) -> Tensor:
        """`ldexp`, written into the tensor; returns it."""
    def le(self, b: _Operand) -> Tensor:
        """Whether a is at most b, element by element."""
    def le_(self, b: _Operand) -> Tensor:
        """`le`, written into the tensor; returns it."""
    def leaky_relu(self, negative_slope: _Number = 0.01) -> Tensor:
        """x where positive, negative_slope * x elsewhere."""
    def leaky_relu_(self, negative_slope: _Number = 0.01) -> Tensor:
        """`leaky_relu`, written into the tensor; returns it."""
    def lerp(self, end: _Operand, weight: _Operand) -> Tensor:
        """x + weight * (end - x): x where weight is 0, and exactly `end` where it is 1."""
    def lerp_(self, end: _Operand, weight: _Operand) -> Tensor:
        """`lerp`, written into the tensor; returns it."""
    def less(self, b: _Operand) -> Tensor:
        """Whether a is less than b, element by element."""
    def less_(self, b: _Operand) -> Tensor:
        """`lt`, written into the tensor; returns it."""
    def less_equal(self, b: _Operand) -> Tensor:
        """Whether a is at most b, element by element."""
    def less_equal_(self, b: _Operand) -> Tensor:
        """`le`, written into the tensor; returns it."""
    def lgamma(self) -> Tensor:
        """The logarithm of |gamma(x)|; infinite at 0 and the negative integers."""
    def lgamma_(self) -> Tensor:
        """`lgamma`, written into the tensor; returns it."""
    def log(self) -> Tensor:
        """The natural logarithm."""
    def log10(self) -> Tensor:
        """The logarithm to base 10."""
    def log10_(self) -> Tensor:
        """`log10`, written into the tensor; returns it."""
    def log1p(self) -> Tensor:
        """log(1 + x), exact for small x."""
    def log1p_(self) -> Tensor:
        """`log1p`, written into the tensor; returns it."""
    def log2(self) -> Tensor:
        """The logarithm to base 2."""
    def log2_(self) -> Tensor:
        """`log2`, written into the tensor; returns it."""
    def log_(self) -> Tensor:
        """`log`, written into the tensor; returns it."""
    def log_normal_(self, mean: Any = 1.0, std: Any = 2.0, *, generator: Any = None) -> Tensor:
        """Write numbers whose logarithm is normal, of that mean and standard deviation."""
    def log_softmax(self, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
        """log(softmax(x)) along dim, exact where the softmax is small; computed in `dtype`, None for that of x."""
    def logaddexp(self, b: _Operand) -> Tensor:
        """log(exp(a) + exp(b)), without overflow."""
    def logaddexp2(self, b: _Operand) -> Tensor:
        """log2(2^a + 2^b), without overflow."""
    def logaddexp2_(self, b: _Operand) -> Tensor:
        """`logaddexp2`, written into the tensor; returns it."""
    def logaddexp_(self, b: _Operand) -> Tensor:
        """`logaddexp`, written into the tensor; returns it."""
    def logcumsumexp(self, dim: _int) -> Tensor:
        """log(cumsum(exp(x))) along `dim`, without overflow, in values and in derivatives."""
    def logdet(self) -> Tensor:
        """The logarithms of the determinants of square matrices: NaN where negative, -inf where 0."""
    def logical_and(self, b: _Operand) -> Tensor:
        """Whether both are true (not zero)."""
    def logical_and_(self, b: _Operand) -> Tensor:
        """`logical_and`, written into the tensor; returns it."""
    def logical_not(self) -> Tensor:
        """Whether x is false (zero)."""
    def logical_not_(self) -> Tensor:
        """`logical_not`, written into the tensor; returns it."""
    def logical_or(self, b: _Operand) -> Tensor:
        """Whether at least one is true (not zero)."""
    def logical_or_(self, b: _Operand) -> Tensor:
        """`logical_or`, written into the tensor; returns it."""
    def logical_xor(self, b: _Operand) -> Tensor:
        """Whether exactly one is true (not zero)."""
    def logical_xor_(self, b: _Operand) -> Tensor:
        """`logical_xor`, written into the tensor; returns it."""
    def logit(self, eps: _float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first clamped to [eps, 1 - eps]."""
    def logit_(self, eps: _float | None = None) -> Tensor:
        """`logit`, written into the tensor; returns it."""
    def logsumexp(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """log(sum(exp(x))) over `dim` (None or (): all), without overflow; -inf where there is nothing."""
    def long(self, memory_format: Any = ...) -> Tensor:
        """The tensor in int64; itself if it is so already."""
    def lt(self, b: _Operand) -> Tensor:
        """Whether a is less than b, element by element."""
    def lt_(self, b: _Operand) -> Tensor:
        """`lt`, written into the tensor; returns it."""
    def lu_solve(self, LU_data: _Operand, LU_pivots: _Operand) -> Tensor:
        """`linalg.lu_solve`, with the right side first."""
    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of matrices, the last two dimensions: `adjoint`."""
    @property
    def mT(self) -> Tensor:
        """The last two dimensions swapped."""
    def map_(self, tensor: Any, callable: Any) -> Tensor:
        """Replace every element by what a Python function makes of it and of the other tensor's, which broadcasts."""
    def masked_fill(self, mask: _Operand, value: _Operand) -> Tensor:
        """`value`, a number or a tensor without dimensions, where the mask is true, x elsewhere; the two broadcast."""
    def masked_fill_(self, mask: _Operand, value: _Operand) -> Tensor:
        """`masked_fill`, written into the tensor; returns it."""
    def masked_scatter(self, mask: _Operand, source: _Operand) -> Tensor:
        """x with the elements of `source`, in their order, where the mask is true; x and the mask broadcast."""
    def masked_scatter_(self, mask: _Operand, source: _Operand) -> Tensor:
        """`masked_scatter`, written into the tensor; returns it."""
    def masked_select(self, mask: _Operand) -> Tensor:
        """The elements of x where the mask is true, as a 1-d tensor; the two broadcast."""
    def matmul(self, b: _Operand) -> Tensor:
        """The matrix product: (..., m, k) times (..., k, n) is (..., m, n); the dimensions in front broadcast."""
    def matrix_exp(self) -> Tensor:
        """The exponential of square matrices, the sum of A^n / n!.  Needs SciPy."""
    def matrix_power(self, n: _int) -> Tensor:
        """Square matrices to the power n, by squaring; of a negative n, their inverses."""
    def max(self, dim: Any = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
        """The largest of all; along `dim`, a named tuple (values, indices); with a second tensor, `maximum`."""
    def maximum(self, b: _Operand) -> Tensor:
        """The larger of the two; equals share the gradient."""
    def maximum_(self, b: _Operand) -> Tensor:
        """`maximum`, written into the tensor; returns it."""
    def mean(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum over `dim` (None or (): all) divided by the number of elements; NaN where there are none."""
    def median(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The median, the lower of two in the middle; along `dim`, a named tuple (values, indices).  NaN wins."""
    def min(self, dim: Any = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
        """The smallest of all; along `dim`, a named tuple (values, indices); with a second tensor, `minimum`."""
    def minimum(self, b: _Operand) -> Tensor:
        """The smaller of the two; equals share the gradient."""
    def minimum_(self, b: _Operand) -> Tensor:
        """`minimum`, written into the tensor; returns it."""
    def mm(self, b: _Operand) -> Tensor:
        """The product of two matrices, (m, k) and (k, n)."""
    def mode(self, dim: _int = -1, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
        """The most frequent value along `dim`, the smallest of several, and where it comes last.  NaN equals nothing."""
    def moveaxis(self, source: _Ints, destination: _Ints) -> Tensor:
        """Dimensions moved to other places, the rest in their old order."""
    def movedim(self, source: _Ints, destination: _Ints) -> Tensor:
        """Dimensions moved to other places, the rest in their old order."""
    def msort(self) -> Tensor:
        """The elements in order along the first dimension."""
    def mul(self, b: _Operand) -> Tensor:
        """Elementwise product; operands broadcast."""
    def mul_(self, other: Any) -> Tensor:
        """x = x * other, in place."""
    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Any = None) -> Tensor:
        """Draws the places of `num_samples` entries of each row of x, an entry as often as it is large."""
    def multiply(self, b: _Operand) -> Tensor:
        """Elementwise product; operands broadcast."""
    def multiply_(self, b: _Operand) -> Tensor:
        """`mul`, written into the tensor; returns it."""
    def mv(self, b: _Operand) -> Tensor:
        """The product of a matrix (m, k) and a vector (k,)."""
    def mvlgamma(self, p: _int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension p: of x in place of (degrees of freedom) / 2."""
    def mvlgamma_(self, p: _int) -> Tensor:
        """`mvlgamma`, written into the tensor; returns it."""
    def nan_to_num(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """x with numbers for NaN (default 0) and for infinities (default the dtype's largest); there the derivative is 0."""
    def nan_to_num_(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """`nan_to_num`, written into the tensor; returns it."""
    def nanmean(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The mean over `dim` (None or (): all) of what is not NaN; NaN where nothing else is."""
    def nanmedian(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """`median` of what is not NaN; NaN where nothing else is."""
    def nanquantile(self, q: _Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
        """`quantile` of what is not NaN; NaN where nothing else is."""
    def nansum(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum over `dim` (None or (): all) of what is not NaN; real numbers only."""
    def narrow(self, dim: _int, start: _int, length: _int) -> Tensor:
        """`length` places from `start` on, which may be counted from the end, along `dim`."""
    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor:
        """`narrow`, as a copy."""
    @property
    def nbytes(self) -> Any:
        """The bytes of all elements."""
    @property
    def ndim(self) -> _int:
        """Number of dimensions."""
    def ndimension(self) -> _int:
        """Number of dimensions."""
    def ne(self, b: _Operand) -> Tensor:
        """Whether a differs from b, element by element."""
    def ne_(self, b: _Operand) -> Tensor:
        """`ne`, written into the tensor; returns it."""
    def neg(self) -> Tensor:
        """Elementwise negation."""
    def neg_(self) -> Tensor:
        """`neg`, written into the tensor; returns it."""
    def negative(self) -> Tensor:
        """Elementwise negation."""
    def negative_(self) -> Tensor:
        """`neg`, written into the tensor; returns it."""
    def nelement(self) -> _int:
        """Number of elements."""
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
        """The number next to a in the direction of b; b where they are equal: there the derivative is 0, and by b always."""
    def nextafter_(self, b: _Operand) -> Tensor:
        """`nextafter`, written into the tensor; returns it."""
    def nonzero(self, *, as_tuple: _bool = False) -> Tensor:
        """The places of the elements that are not zero, as one (n, ndim) tensor or as one tensor per dimension."""
    def nonzero_static(self, *, size: _int, fill_value: _int = -1) -> Tensor:
        """The first `size` places of elements that are not zero, one row each, as if filled up with `fill_value`."""
    def norm(self, p: Any = 'fro', dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The p-norm of vectors, `linalg.vector_norm`, over `dim` (None: all elements as one vector)."""
    def normal_(self, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Write numbers from the normal distribution of that mean and standard deviation."""
    def not_equal(self, b: _Operand) -> Tensor:
        """Whether a differs from b, element by element."""
    def not_equal_(self, b: _Operand) -> Tensor:
        """`ne`, written into the tensor; returns it."""
    def numel(self) -> _int:
        """Number of elements."""
    def numpy(self) -> NDArray[Any]: ...
    def one_hot(self, num_classes: _int = -1) -> Tensor:
        """Integer classes as rows of zeros with a single one, in a new last dimension of int64."""
    def orgqr(self, tau: _Operand) -> Tensor:
        """The first n columns of the product of reflections 1 - tau_i v_i v_i^H, v_i being below the diagonal in A."""
    def ormqr(self, tau: _Operand, other: _Operand, left: _bool = True, transpose: _bool = False) -> Tensor:
        """Return Q other, or, with left=False, other Q, where Q (m, m) is the product of reflections that `geqrf` gives."""
    def outer(self, b: _Operand) -> Tensor:
        """Every product of an element of one vector and one of another: (m,) and (n,) to (m, n)."""
    def permute(self, *dims: _Ints) -> Tensor:
        """Dimensions in another order: dimension i of the result is dimension dims[i] of x."""
    def pin_memory(self, device: Any = None) -> Tensor:
        """Refused: there is no accelerator that memory could be pinned for."""
    def pinverse(self, rcond: _Number = 1e-15) -> Tensor:
        """`linalg.pinv`, under its older name."""
    def polygamma(self, n: Any) -> Tensor:
        """The derivative of digamma of order n: `polygamma(n, x)`."""
    def polygamma_(self, n: Any) -> Tensor:
        """Write `polygamma(n, x)` into the tensor; returns it."""
    def positive(self) -> Tensor:
        """x itself; TypeError for booleans, which have no sign."""
    def pow(self, exponent: _Operand) -> Tensor:
        """a to the power exponent."""
    def pow_(self, exponent: _Operand) -> Tensor:
        """`pow`, written into the tensor; returns it."""
    def prelu(self, weight: _Operand) -> Tensor:
        """x where positive, weight * x elsewhere: one weight, or one for each channel, which are dimension 1 of x."""
    def prod(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The product over `dim` (None or (): all); derivatives of every order hold where factors are 0."""
    def put(self, index: _Operand, source: _Operand, accumulate: _bool = False) -> Tensor:
        """x with the elements of source written, or added, at the places that `index` names in x as one row."""
    def put_(self, index: _Operand, source: _Operand, accumulate: _bool = False) -> Tensor:
        """`put`, written into the tensor; returns it."""
    def qr(self, some: _bool = True) -> tuple[Tensor, Tensor]:
        """`linalg.qr`, with mode "complete" if not `some`."""
    def quantile(self, q: _Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
        """The values below which the parts `q` (from 0 to 1) of the elements along `dim` (None: of all) lie."""
    def rad2deg(self) -> Tensor:
        """Radians in degrees."""
    def rad2deg_(self) -> Tensor:
        """`rad2deg`, written into the tensor; returns it."""
    def random_(self, start: Any = None, to: Any = None, *, generator: Any = None) -> Tensor:
        """Write integers: `random_(to)` from 0 to below `to`, `random_(start, to)`, or all that the dtype holds exactly."""
    def ravel(self) -> Tensor:
        """The elements in row-major order as one dimension: a view of a contiguous tensor, else a copy."""
    @property
    def real(self) -> Tensor:
        """The real parts, as a view that may be assigned to; a real tensor is its own."""
    @real.setter
    def real(self, value: Tensor) -> None: ...
    def reciprocal(self) -> Tensor:
        """1 / x."""
    def reciprocal_(self) -> Tensor:
        """`reciprocal`, written into the tensor; returns it."""
    def register_hook(self, hook: Any) -> Any:
        """Call `hook(grad)` whenever the gradient of this tensor is known; what it returns, if not None, replaces it."""
    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Call `hook(tensor)` whenever a backward pass has added to `.grad` of this leaf: all of it has arrived then."""
    def relu(self) -> Tensor:
        """max(x, 0); its derivative at 0 is 0, and at NaN 1."""
    def relu_(self) -> Tensor:
        """`relu`, written into the tensor; returns it."""
    def remainder(self, b: _Operand) -> Tensor:
        """a - floor(a / b) * b: what is left, with the sign of b.  ZeroDivisionError if an integer is divided by 0."""
    def remainder_(self, b: _Operand) -> Tensor:
        """`remainder`, written into the tensor; returns it."""
    def renorm(self, p: _Number, dim: _int, maxnorm: _Number) -> Tensor:
        """x with each slice at an index of `dim` shrunk to the p-norm maxnorm, where its own is larger."""
    def renorm_(self, p: _Number, dim: _int, maxnorm: _Number) -> Tensor:
        """`renorm`, written into the tensor; returns it."""
    def repeat(self, *repeats: _Ints) -> Tensor:
        """A copy of the whole tensor repeats[i] times along dimension i; new dimensions come in front."""
    def repeat_interleave(self, repeats: _Operand | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
        """Each slice along `dim` (None: each element, in row-major order) as often as `repeats`, one or several, says."""
    @property
    def requires_grad(self) -> _bool:
        """Whether operators on this tensor are recorded, here or below a transform, so that gradients flow to it."""
    @requires_grad.setter
    def requires_grad(self, value: _bool) -> None: ...
    def requires_grad_(self, requires_grad: Any = True) -> Tensor:
        """Ask for gradients (or no longer); returns the tensor."""
    def reshape(self, *shape: _Ints) -> Tensor:
        """The same elements in row-major order in another shape; one size may be -1.  A view where strides allow."""
    def reshape_as(self, other: Any) -> Tensor:
        """Reshaped as the other tensor."""
    def resize_(self, *shape: Any, memory_format: Any = ...) -> Tensor:
        """Give this tensor another shape over its memory, from its first element on, in row-major order; returns it."""
    def resize_as_(self, the_template: Any, *, memory_format: Any = ...) -> Tensor:
        """Give this tensor the shape of another one, by `resize_`."""
    def resolve_conj(self) -> Tensor:
        """x itself: here no conjugate is ever pending, as it may be in PyTorch."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself: here no negation is ever pending, as it may be in PyTorch."""
    def retain_grad(self) -> None:
        """Let `backward()` show the gradient of this result in its `.grad`, as it does for leaves."""
    @property
    def retains_grad(self) -> _bool:
        """Whether this result shows its gradient after `backward()`; False for leaves, which always do."""
    def roll(self, shifts: _Ints, dim: _Ints | None = None) -> Tensor:
        """The elements shifted along each of `dim` (None: in row-major order); those pushed out come in at the front."""
    def rot90(self, k: _int = 1, dims: _Ints = (0, 1)) -> Tensor:
        """Turned k times by 90 degrees in the plane of two dimensions, from the first towards the second; a copy."""
    def round(self, *, decimals: _int = 0) -> Tensor:
        """The nearest number of so many decimals, halves to even; negative decimals round to tens.  Its derivative is 0."""
    def round_(self, *, decimals: _int = 0) -> Tensor:
        """`round`, written into the tensor; returns it."""
    def rsqrt(self) -> Tensor:
        """1 / sqrt(x)."""
    def rsqrt_(self) -> Tensor:
        """`rsqrt`, written into the tensor; returns it."""
    def rsub(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """b - alpha * a: `subtract` with the operands swapped."""
    def scatter(self, dim: _int, index: _Operand, src: _Operand | None = None, *, value: _Number | None = None, reduce: _str | None = None) -> Tensor:
        """x with the elements of src, or one value, written where `index` says along `dim`: the opposite of gather."""
    def scatter_(self, dim: _int, index: _Operand, src: _Operand | None = None, *, value: _Number | None = None, reduce: _str | None = None) -> Tensor:
        """`scatter`, written into the tensor; returns it."""
    def scatter_add(self, dim: _int, index: _Operand, src: _Operand) -> Tensor:
        """x with the elements of src added where `index` says along `dim`; sizes as in `scatter`."""
    def scatter_add_(self, dim: _int, index: _Operand, src: _Operand) -> Tensor:
        """`scatter_add`, written into the tensor; returns it."""
    def scatter_reduce(self, dim: _int, index: _Operand, src: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """x with the elements of src merged into the places along `dim`: "sum", "prod", "mean", "amax" or "amin"."""
    def scatter_reduce_(self, dim: _int, index: _Operand, src: _Operand, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """`scatter_reduce`, written into the tensor; returns it."""
    def select(self, dim: _int, index: _int) -> Tensor:
        """The slice at `index` along `dim`, without that dimension; a view."""
    def select_scatter(self, src: _Operand, dim: _int, index: _int) -> Tensor:
        """x with src in the place of x.select(dim, index)."""
    def sgn(self) -> Tensor:
        """x / |x|, and 0 at 0, where its derivative is 0 too; of real numbers `sign`."""
    def sgn_(self) -> Tensor:
        """`sgn`, written into the tensor; returns it."""
    @property
    def shape(self) -> tuple[_int, ...]:
        """Sizes of the dimensions, as a tuple of ints."""
    def share_memory_(self) -> Tensor:
        """Refused: NumPy's memory can't move; make the array over multiprocessing.shared_memory, then `from_numpy`."""
    def short(self, memory_format: Any = ...) -> Tensor:
        """The tensor in int16; itself if it is so already."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""
    def sigmoid_(self) -> Tensor:
        """`sigmoid`, written into the tensor; returns it."""
    def sign(self) -> Tensor:
        """-1, 0 or 1; its derivative is 0.  Of complex numbers there is `sgn`."""
    def sign_(self) -> Tensor:
        """`sign`, written into the tensor; returns it."""
    def signbit(self) -> Tensor:
        """Whether the sign is minus, as that of -0.0 is."""
    def silu(self) -> Tensor:
        """x * sigmoid(x), also called swish."""
    def silu_(self) -> Tensor:
        """`silu`, written into the tensor; returns it."""
    def sin(self) -> Tensor:
        """The sine of x radians."""
    def sin_(self) -> Tensor:
        """`sin`, written into the tensor; returns it."""
    def sinc(self) -> Tensor:
        """sin(pi x) / (pi x), and 1 at 0; derivatives of every order hold there too."""
    def sinc_(self) -> Tensor:
        """`sinc`, written into the tensor; returns it."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine."""
    def sinh_(self) -> Tensor:
        """`sinh`, written into the tensor; returns it."""
    @property
    def size(self) -> Any:
        """The number of elements, as in NumPy; called, the shape, or the size of one dimension, as in PyTorch."""
    def slice_scatter(self, src: _Operand, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """x with src in the place of x[start:end:step] along `dim`."""
    def slogdet(self) -> tuple[Tensor, Tensor]:
        """The determinants of square matrices as sign and logarithm of the absolute value, which can't overflow."""
    def softmax(self, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
        """exp(x) / sum(exp(x)) along dim, shifted so that it cannot overflow; computed in `dtype`, None for that of x."""
    def softplus(self, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
        """log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x is more than the threshold."""
    def softplus_(self, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
        """`softplus`, written into the tensor; returns it."""
    def sort(self, dim: _int = -1, descending: _bool = False, *, stable: _bool = False) -> tuple[Tensor, Tensor]:
        """The elements in order along `dim`, and where they come from, as a named tuple (values, indices)."""
    def split(self, split_size_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of views along `dim`: of one size (the last may be smaller), or of the sizes listed."""
    def split_with_sizes(self, split_sizes: _Ints, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of views of the sizes listed along `dim`."""
    def sqrt(self) -> Tensor:
        """The square root; NaN for negative numbers."""
    def sqrt_(self) -> Tensor:
        """`sqrt`, written into the tensor; returns it."""
    def square(self) -> Tensor:
        """x times x; of booleans in int64."""
    def square_(self) -> Tensor:
        """`square`, written into the tensor; returns it."""
    def squeeze(self, dim: _Ints | None = None) -> Tensor:
        """Without the dimensions of size 1, or without those of them that `dim` names."""
    def squeeze_(self, dim: Any = None) -> Tensor:
        """Take dimensions of size 1 away from this tensor: all, or those of `dim`; returns it."""
    def std(self, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> Tensor:
        """The square root of `var`; where that is 0, the derivative is taken as 0."""
    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: _Operand | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
        """Return the short-time Fourier transform: the spectra of windows of signals (..., length), one or several."""
    def storage_offset(self) -> _int:
        """How many elements of the memory that the tensor is part of lie before its first one."""
    def stride(self, dim: Any = None) -> Any:
        """How many elements lie between neighbours along each dimension, or along one."""
    def sub(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """Elementwise difference a - b."""
    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """x = x - alpha * other, in place."""
    def subtract(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """a - alpha * b."""
    def subtract_(self, b: _Operand, *, alpha: _Number = 1) -> Tensor:
        """`subtract`, written into the tensor; returns it."""
    def sum(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum over `dim` (None or (): all).  Integers and booleans add up in int64."""
    def sum_to_size(self, *shape: _Ints) -> Tensor:
        """The sum over the dimensions along which a tensor of `shape` would be repeated to have the shape of x."""
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """x = U diag(S) V^H, as `linalg.svd`, with V in place of its conjugate transpose; without compute_uv zeros."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """`transpose`, by NumPy's name."""
    def swapaxes_(self, axis0: Any, axis1: Any) -> Tensor:
        """Swap two dimensions of this tensor; returns it."""
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """Two dimensions swapped."""
    def swapdims_(self, dim0: Any, dim1: Any) -> Tensor:
        """Swap two dimensions of this tensor; returns it."""
    def t(self) -> Tensor:
        """A matrix transposed, a view; of vectors and tensors without dimensions a view as they are."""
    def t_(self) -> Tensor:
        """Transpose this tensor of at most 2 dimensions; returns it."""
    def take(self, index: _Operand) -> Tensor:
        """The elements at the places that `index` names in x as one row, in the shape of index; -1 is the last."""
    def take_along_dim(self, indices: _Operand, dim: _int | None = None) -> Tensor:
        """Per position of `indices`, the element of x at that place along `dim`; the other dimensions broadcast."""
    def tan(self) -> Tensor:
        """The tangent of x radians."""
    def tan_(self) -> Tensor:
        """`tan`, written into the tensor; returns it."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
    def tanh_(self) -> Tensor:
        """`tanh`, written into the tensor; returns it."""
    def tensor_split(self, indices_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of views along `dim`: so many, of nearly equal size, or those between the places listed, as slices go."""
    def tile(self, *dims: _Ints) -> Tensor:
        """`repeat`, with a size of 1 for each dimension in front that `dims` leaves out."""
    def to(self, *target: Any, dtype: Any = None, device: Any = None, other: Any = None, non_blocking: Any = False, copy: Any = False, memory_format: Any = ...) -> Tensor:
        """The tensor in another dtype; itself if it has that already and no copy is asked for."""
    def to_device(self, device: Any, *, stream: Any = None) -> Tensor:
        """The tensor itself: it lives on the one device there is.  RuntimeError for others, ValueError for streams."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
    def topk(self, k: _int, dim: _int | None = None, largest: _bool = True, sorted: _bool = True) -> tuple[Tensor, Tensor]:
        """The k largest (or smallest) elements along `dim` (None: the last), and where they are, in their order."""
    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""
    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """Two dimensions swapped."""
    def transpose_(self, dim0: Any, dim1: Any) -> Tensor:
        """Swap two dimensions of this tensor; returns it."""
    def triangular_solve(self, A: _Operand, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> tuple[Tensor, Tensor]:
        """Return X with A X = b, or with `transpose` A^T X = b, and a copy of A: the older `linalg.solve_triangular`."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of the last two dimensions, zeros above the given diagonal."""
    def tril_(self, diagonal: _int = 0) -> Tensor:
        """`tril`, written into the tensor; returns it."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of the last two dimensions, zeros below the given diagonal."""
    def triu_(self, diagonal: _int = 0) -> Tensor:
        """`triu`, written into the tensor; returns it."""
    def true_divide(self, b: _Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """Elementwise quotient a / b, of floating dtype."""
    def true_divide_(self, b: _Operand) -> Tensor:
        """`div`, written into the tensor; returns it."""
    def trunc(self) -> Tensor:
        """x without its fraction; its derivative is 0."""
    def trunc_(self) -> Tensor:
        """`trunc`, written into the tensor; returns it."""
    def type(self, dtype: Any = None, non_blocking: Any = False) -> Any:
        """The name of the tensor's class by dtype, "retrograd.FloatTensor"; or the tensor in another dtype."""
    def type_as(self, other: Any) -> Tensor:
        """The tensor in the dtype of the other."""
    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of the slices along `dim`, without that dimension."""
    def unflatten(self, dim: _int, sizes: _Ints) -> Tensor:
        """One dimension as several; one of the sizes may be -1."""
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """A view of the windows of `size` elements at every `step` along a dimension; their elements are the last one."""
    def unfold_dim(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """A view of the windows of `size` elements at every `step` along a dimension; their elements are the last one."""
    def uniform_(self, start: Any = 0.0, to: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Write numbers uniform from start up to `to`; of complex ones both parts are."""
    def unique(self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Tensor:
        """The different elements in order; with `dim`, the different slices along it."""
    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Tensor:
        """The elements without those that equal the one before; with `dim`, the slices along it."""
    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """`chunk` into views that may be written to one by one; here their histories stay right."""
    def unsafe_split(self, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """`split` into views of one size that may be written to one by one; here their histories stay right."""
    def unsafe_split_with_sizes(self, split_sizes: _Ints, dim: _int = 0) -> tuple[Tensor, ...]:
        """`split_with_sizes` into views that may be written to one by one; here their histories stay right."""
    def unsqueeze(self, dim: _int) -> Tensor:
        """A new dimension of size 1 at `dim`."""
    def unsqueeze_(self, dim: Any) -> Tensor:
        """Give this tensor a dimension of size 1 more, at `dim`; returns it."""
    def var(self, dim: _Ints | _bool | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number | None = None) -> Tensor:
        """sum((x - mean(x))^2) / (n - correction) over `dim` (None: all)."""
    def vdot(self, b: _Operand) -> Tensor:
        """The sum of the products of two vectors of one size, the first conjugated."""
    def view(self, *shape: Any, dtype: Any = None) -> Tensor:
        """The same memory in another shape, RuntimeError if strides do not allow that; or its bytes read as another dtype."""
    def view_as(self, other: _Operand) -> Tensor:
        """The same memory in the shape of another tensor."""
    def view_as_complex(self) -> Tensor:
        """A view of pairs of real numbers as complex ones: shape (..., 2) becomes (...)."""
    def view_as_real(self) -> Tensor:
        """A view of complex numbers as pairs of real ones: shape (...) becomes (..., 2).  RuntimeError for other dtypes."""
    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """`tensor_split` along the first of two dimensions or more; a number must divide it."""
    def where(self, condition: Any, other: Any) -> Tensor:
        """x where the condition holds, `other` elsewhere."""
    def xlogy(self, b: _Operand) -> Tensor:
        """a log(b), and 0 where a is 0, whatever b is but NaN."""
    def xlogy_(self, b: _Operand) -> Tensor:
        """`xlogy`, written into the tensor; returns it."""
    def zero_(self) -> Tensor:
        """Write zeros; returns x."""

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]
