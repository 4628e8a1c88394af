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
    def __float__(self) -> _float: ...
    def __format__(self, spec: Any) -> _str: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __index__(self) -> _int: ...
    def __int__(self) -> _int: ...
    def __invert__(self) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __len__(self) -> _int: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __reduce_ex__(self, protocol: Any) -> Any: ...
    def __repr__(self) -> _str: ...
    def __ror__(self, other: Any) -> Tensor: ...
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
    def acos(self) -> Tensor:
        """The angle in radians whose cosine is x."""
    def acos_(self) -> Tensor:
        """`acos`, written into the tensor; returns it."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine, for x of at least 1."""
    def acosh_(self) -> Tensor:
        """`acosh`, written into the tensor; returns it."""
    def add(self, b: _Operand) -> Tensor:
        """Elementwise sum; operands broadcast."""
    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """x = x + alpha * other, in place."""
    def addmm(self, a: _Operand, b: _Operand, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """beta * x + alpha * (a @ b), of matrices a (m, k) and b (k, n); x broadcasts to (m, n)."""
    def adjoint(self) -> Tensor:
        """The conjugate transpose of matrices, the last two dimensions; of real ones a view."""
    def all(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """Whether every element over `dim` (None or (): all) is true (not zero)."""
    def amax(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """The largest element over `dim` (None or (): all); equals share the gradient.  NaN wins."""
    def amin(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """The smallest element over `dim` (None or (): all); equals share the gradient.  NaN wins."""
    def angle(self) -> Tensor:
        """The angle in radians between -pi and pi; of real numbers 0, or pi where negative.  At 0 its derivative is 0."""
    def any(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """Whether some element over `dim` (None or (): all) is true (not zero)."""
    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Where the largest element along `dim` is, the first of equals; None: in the flattened tensor."""
    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Where the smallest element along `dim` is, the first of equals; None: in the flattened tensor."""
    def asin(self) -> Tensor:
        """The angle in radians whose sine is x."""
    def asin_(self) -> Tensor:
        """`asin`, written into the tensor; returns it."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def asinh_(self) -> Tensor:
        """`asinh`, written into the tensor; returns it."""
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
    def bernoulli(self, *, generator: Any = None) -> Tensor:
        """Ones with probability p, zeros otherwise, in the shape and dtype of p."""
    def bernoulli_(self, *, generator: Any = None) -> Tensor:
        """`bernoulli`, written into the tensor; returns it."""
    def bitwise_and(self, b: _Operand) -> Tensor:
        """The bits that both have; of booleans, whether both are true."""
    def bitwise_and_(self, b: _Operand) -> Tensor:
        """`bitwise_and`, written into the tensor; returns it."""
    def bitwise_not(self) -> Tensor:
        """The bits turned round; of booleans, their opposite."""
    def bitwise_not_(self) -> Tensor:
        """`bitwise_not`, written into the tensor; returns it."""
    def bitwise_or(self, b: _Operand) -> Tensor:
        """The bits that one has; of booleans, whether one is true."""
    def bitwise_or_(self, b: _Operand) -> Tensor:
        """`bitwise_or`, written into the tensor; returns it."""
    def bitwise_xor(self, b: _Operand) -> Tensor:
        """The bits that exactly one has; of booleans, whether they differ."""
    def bitwise_xor_(self, b: _Operand) -> Tensor:
        """`bitwise_xor`, written into the tensor; returns it."""
    def bmm(self, b: _Operand) -> Tensor:
        """The products of two stacks of as many matrices, (b, m, k) and (b, k, n)."""
    def bool(self) -> Tensor:
        """The tensor in bool; itself if it is so already."""
    def broadcast_to(self, *shape: _Ints) -> Tensor:
        """`expand`, by NumPy's name."""
    def ceil(self) -> Tensor:
        """The smallest integer not below x; its derivative is 0."""
    def ceil_(self) -> Tensor:
        """`ceil`, written into the tensor; returns it."""
    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` views of equal size along `dim`, the last one possibly smaller."""
    def clamp(self, min: _Number | None = None, max: _Number | None = None) -> Tensor:
        """x, but at least min and at most max; the derivative is 1 within the bounds, the bounds included."""
    def clamp_(self, min: _Number | None = None, max: _Number | None = None) -> Tensor:
        """`clamp`, written into the tensor; returns it."""
    def clip(self, min: _Number | None = None, max: _Number | None = None) -> Tensor:
        """NumPy's name of `clamp`."""
    def clone(self) -> Tensor:
        """A copy that gradients pass through."""
    def conj(self) -> Tensor:
        """The complex conjugate; of real numbers, a copy."""
    def conj_physical(self) -> Tensor:
        """`conj`, by PyTorch's name for the one that computes at once, as `conj` always does here."""
    def conj_physical_(self) -> Tensor:
        """`conj_physical`, written into the tensor; returns it."""
    def contiguous(self) -> Tensor:
        """The tensor itself if its elements lie in row-major order, else a copy in which they do."""
    def copy_(self, src: Any, non_blocking: Any = False) -> Tensor:
        """Write `src`, broadcast and converted, into the memory of x, and return x."""
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
    def cumprod(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The products of the elements up to each place along `dim`; derivatives hold where factors are 0."""
    def cumsum(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sums of the elements up to each place along `dim`.  Integers and booleans add up in int64."""
    @property
    def data(self) -> Tensor:
        """The same memory outside every graph, with a version counter of its own; may be set to another's memory."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    def detach(self) -> Tensor:
        """The same memory outside every graph: an operator, so that each level it passes cuts its own."""
    def detach_(self) -> Tensor:
        """Take the tensor out of its graph, as if it were a leaf without gradient; returns it."""
    @property
    def device(self) -> _str:
        """Where the array lives: "cpu"."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The elements whose index along dim2 is `offset` more than along dim1, as the last dimension: a view."""
    def dim(self) -> _int:
        """Number of dimensions."""
    def div(self, b: _Operand) -> Tensor:
        """Elementwise quotient a / b, of floating dtype."""
    def div_(self, other: Any) -> Tensor:
        """x = x / other, in place."""
    def dot(self, b: _Operand) -> Tensor:
        """The sum of the products of two vectors of one size; nothing is conjugated."""
    def double(self) -> Tensor:
        """The tensor in float64; itself if it is so already."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
    def eq(self, b: _Operand) -> Tensor:
        """Whether a equals b, element by element."""
    def eq_(self, b: _Operand) -> Tensor:
        """`eq`, written into the tensor; returns it."""
    def erf(self) -> Tensor:
        """The error function."""
    def erf_(self) -> Tensor:
        """`erf`, written into the tensor; returns it."""
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
    def fill_(self, value: Any) -> Tensor:
        """Write one value everywhere; returns x."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Dimensions start_dim to end_dim, both included, as one."""
    def flip(self, *dims: _Ints) -> Tensor:
        """The elements in reverse order along the given dimensions; a copy, as in PyTorch."""
    def float(self) -> Tensor:
        """The tensor in float32; itself if it is so already."""
    def floor(self) -> Tensor:
        """The largest integer not above x; its derivative is 0."""
    def floor_(self) -> Tensor:
        """`floor`, written into the tensor; returns it."""
    def floor_divide(self, b: _Operand) -> Tensor:
        """The quotient rounded down; it has no derivative."""
    def floor_divide_(self, b: _Operand) -> Tensor:
        """`floor_divide`, written into the tensor; returns it."""
    def full_like(self, fill_value: _Number, *, dtype: DTypeLike | None = None) -> Tensor:
        """One value in the shape of x."""
    def gather(self, dim: _int, index: _Operand) -> Tensor:
        """`take_along_dim` with PyTorch's order of arguments; `index` may be smaller than x in the other dimensions."""
    def ge(self, b: _Operand) -> Tensor:
        """Whether a is at least b, element by element."""
    def ge_(self, b: _Operand) -> Tensor:
        """`ge`, written into the tensor; returns it."""
    def gelu(self, *, approximate: _str = 'none') -> Tensor:
        """x times the normal distribution function: exact, or with approximate="tanh" by that formula."""
    def gelu_(self, *, approximate: _str = 'none') -> Tensor:
        """`gelu`, written into the tensor; returns it."""
    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward()` accumulated, or None; results show one after `retain_grad()` only."""
    @grad.setter
    def grad(self, value: Tensor | None) -> None: ...
    @property
    def grad_fn(self) -> Any:
        """The node of the graph that made this tensor; None for leaves."""
    def gt(self, b: _Operand) -> Tensor:
        """Whether a is greater than b, element by element."""
    def gt_(self, b: _Operand) -> Tensor:
        """`gt`, written into the tensor; returns it."""
    def half(self) -> Tensor:
        """The tensor in float16; itself if it is so already."""
    @property
    def imag(self) -> Tensor:
        """The imaginary parts, as a view that may be assigned to; RuntimeError if the dtype is not complex."""
    @imag.setter
    def imag(self, value: Tensor) -> None: ...
    def index_add(self, dim: _int, index: _Operand, source: _Operand) -> Tensor:
        """x with the slices of `source` added at the places along `dim` that a 1-d integer tensor names."""
    def index_add_(self, dim: _int, index: _Operand, source: _Operand) -> Tensor:
        """`index_add`, written into the tensor; returns it."""
    def index_select(self, dim: _int, index: _Operand) -> Tensor:
        """The slices along `dim` that a 1-d integer tensor names, in its order."""
    def int(self) -> Tensor:
        """The tensor in int32; itself if it is so already."""
    def is_complex(self) -> _bool:
        """Whether the dtype is complex."""
    def is_floating_point(self) -> _bool:
        """Whether the dtype is a real floating one."""
    def is_inference(self) -> Any:
        """Whether the tensor was made in inference mode, so that it can't take part in a graph."""
    @property
    def is_leaf(self) -> _bool:
        """Whether no recorded operator made this tensor."""
    def isfinite(self) -> Tensor:
        """Whether x is neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Whether x is infinite, of either sign."""
    def isnan(self) -> Tensor:
        """Whether x is not a number."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0; true for all real numbers, NaN included."""
    def item(self) -> Any:
        """The one element of the tensor as a Python number."""
    def le(self, b: _Operand) -> Tensor:
        """Whether a is at most b, element by element."""
    def le_(self, b: _Operand) -> Tensor:
        """`le`, written into the tensor; returns it."""
    def leaky_relu(self, negative_slope: _Number = 0.01) -> Tensor:
        """x where positive, negative_slope * x elsewhere."""
    def leaky_relu_(self, negative_slope: _Number = 0.01) -> Tensor:
        """`leaky_relu`, written into the tensor; returns it."""
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
    def log_softmax(self, dim: _int) -> Tensor:
        """log(softmax(x)) along dim, exact where the softmax is small."""
    def logaddexp(self, b: _Operand) -> Tensor:
        """log(exp(a) + exp(b)), without overflow."""
    def logaddexp_(self, b: _Operand) -> Tensor:
        """`logaddexp`, written into the tensor; returns it."""
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
    def logsumexp(self, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """log(sum(exp(x))) over `dim` (None or (): all), without overflow; -inf where there is nothing."""
    def long(self) -> Tensor:
        """The tensor in int64; itself if it is so already."""
    def lt(self, b: _Operand) -> Tensor:
        """Whether a is less than b, element by element."""
    def lt_(self, b: _Operand) -> Tensor:
        """`lt`, written into the tensor; returns it."""
    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of matrices, the last two dimensions: `adjoint`."""
    @property
    def mT(self) -> Tensor:
        """The last two dimensions swapped."""
    def masked_fill(self, mask: _Operand, value: _Number) -> Tensor:
        """`value` where the mask is true, x elsewhere."""
    def masked_fill_(self, mask: _Operand, value: _Number) -> Tensor:
        """`masked_fill`, written into the tensor; returns it."""
    def masked_select(self, mask: _Operand) -> Tensor:
        """The elements of x where the mask is true, as a 1-d tensor; the two broadcast."""
    def matmul(self, b: _Operand) -> Tensor:
        """The matrix product: (..., m, k) times (..., k, n) is (..., m, n); the dimensions in front broadcast."""
    def max(self, dim: Any = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
        """The largest of all; along `dim`, a named tuple (values, indices); with a second tensor, `maximum`."""
    def maximum(self, b: _Operand) -> Tensor:
        """The larger of the two; equals share the gradient."""
    def maximum_(self, b: _Operand) -> Tensor:
        """`maximum`, written into the tensor; returns it."""
    def mean(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum over `dim` (None or (): all) divided by the number of elements; NaN where there are none."""
    def min(self, dim: Any = None, keepdim: _bool = False, *, other: _Operand | None = None) -> Tensor:
        """The smallest of all; along `dim`, a named tuple (values, indices); with a second tensor, `minimum`."""
    def minimum(self, b: _Operand) -> Tensor:
        """The smaller of the two; equals share the gradient."""
    def minimum_(self, b: _Operand) -> Tensor:
        """`minimum`, written into the tensor; returns it."""
    def mm(self, b: _Operand) -> Tensor:
        """The product of two matrices, (m, k) and (k, n)."""
    def movedim(self, source: _Ints, destination: _Ints) -> Tensor:
        """Dimensions moved to other places, the rest in their old order."""
    def mul(self, b: _Operand) -> Tensor:
        """Elementwise product; operands broadcast."""
    def mul_(self, other: Any) -> Tensor:
        """x = x * other, in place."""
    def mv(self, b: _Operand) -> Tensor:
        """The product of a matrix (m, k) and a vector (k,)."""
    def narrow(self, dim: _int, start: _int, length: _int) -> Tensor:
        """`length` places from `start` on, along `dim`."""
    @property
    def ndim(self) -> _int:
        """Number of dimensions."""
    def ne(self, b: _Operand) -> Tensor:
        """Whether a differs from b, element by element."""
    def ne_(self, b: _Operand) -> Tensor:
        """`ne`, written into the tensor; returns it."""
    def neg(self) -> Tensor:
        """Elementwise negation."""
    def neg_(self) -> Tensor:
        """`neg`, written into the tensor; returns it."""
    def nonzero(self, *, as_tuple: _bool = False) -> Tensor:
        """The places of the elements that are not zero, as one (n, ndim) tensor or as one tensor per dimension."""
    def norm(self, p: Any = 2, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
        """The p-norm of vectors, sum(abs(x)^p)^(1/p) over `dim` (None: all elements as one vector)."""
    def numel(self) -> _int:
        """Number of elements."""
    def numpy(self) -> NDArray[Any]: ...
    def one_hot(self, num_classes: _int = -1) -> Tensor:
        """Integer classes as rows of zeros with a single one, in a new last dimension of int64."""
    def ones_like(self, *, dtype: DTypeLike | None = None) -> Tensor:
        """Ones in the shape of x."""
    def outer(self, b: _Operand) -> Tensor:
        """Every product of an element of one vector and one of another: (m,) and (n,) to (m, n)."""
    def permute(self, *dims: _Ints) -> Tensor:
        """Dimensions in another order: dimension i of the result is dimension dims[i] of x."""
    def pow(self, b: _Operand) -> Tensor:
        """a to the power b."""
    def pow_(self, b: _Operand) -> Tensor:
        """`pow`, written into the tensor; returns it."""
    def prod(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The product over `dim` (None or (): all); derivatives of every order hold where factors are 0."""
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
        """max(x, 0); its derivative at 0 is 0."""
    def relu_(self) -> Tensor:
        """`relu`, written into the tensor; returns it."""
    def remainder(self, b: _Operand) -> Tensor:
        """a - floor(a / b) * b: what is left, with the sign of b."""
    def remainder_(self, b: _Operand) -> Tensor:
        """`remainder`, written into the tensor; returns it."""
    def repeat(self, *sizes: _Ints) -> Tensor:
        """The whole tensor repeated sizes[i] times along dimension i; new dimensions come in front."""
    @property
    def requires_grad(self) -> _bool:
        """Whether operators on this tensor are recorded, so that gradients flow to it."""
    @requires_grad.setter
    def requires_grad(self, value: _bool) -> None: ...
    def requires_grad_(self, requires_grad: Any = True) -> Tensor:
        """Ask for gradients (or no longer); returns the tensor."""
    def reshape(self, *shape: _Ints) -> Tensor:
        """The same elements in row-major order in another shape; one size may be -1.  A view where strides allow."""
    def reshape_as(self, other: Any) -> Tensor:
        """Reshaped as the other tensor."""
    def resolve_conj(self) -> Tensor:
        """x itself: here no conjugate is ever pending, as it may be in PyTorch."""
    def retain_grad(self) -> None:
        """Let `backward()` show the gradient of this result in its `.grad`, as it does for leaves."""
    @property
    def retains_grad(self) -> _bool:
        """Whether this result shows its gradient after `backward()`; False for leaves, which always do."""
    def roll(self, shifts: _int, dim: _int | None = None) -> Tensor:
        """The elements shifted along `dim` (None: in row-major order), those pushed out coming in at the front."""
    def round(self) -> Tensor:
        """The nearest integer, halves to even; its derivative is 0."""
    def round_(self) -> Tensor:
        """`round`, written into the tensor; returns it."""
    def rsqrt(self) -> Tensor:
        """1 / sqrt(x)."""
    def rsqrt_(self) -> Tensor:
        """`rsqrt`, written into the tensor; returns it."""
    def select(self, dim: _int, index: _int) -> Tensor:
        """The slice at `index` along `dim`, without that dimension; a view."""
    def sgn(self) -> Tensor:
        """x / |x|, and 0 at 0, where its derivative is 0 too; of real numbers `sign`."""
    def sgn_(self) -> Tensor:
        """`sgn`, written into the tensor; returns it."""
    @property
    def shape(self) -> tuple[_int, ...]:
        """Sizes of the dimensions, as a tuple of ints."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""
    def sigmoid_(self) -> Tensor:
        """`sigmoid`, written into the tensor; returns it."""
    def sign(self) -> Tensor:
        """-1, 0 or 1; its derivative is 0.  Of complex numbers there is `sgn`."""
    def sign_(self) -> Tensor:
        """`sign`, written into the tensor; returns it."""
    def silu(self) -> Tensor:
        """x * sigmoid(x), also called swish."""
    def silu_(self) -> Tensor:
        """`silu`, written into the tensor; returns it."""
    def sin(self) -> Tensor:
        """The sine of x radians."""
    def sin_(self) -> Tensor:
        """`sin`, written into the tensor; returns it."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine."""
    def sinh_(self) -> Tensor:
        """`sinh`, written into the tensor; returns it."""
    def size(self, dim: Any = None) -> Any:
        """The shape, or the size of one dimension."""
    def softmax(self, dim: _int) -> Tensor:
        """exp(x) / sum(exp(x)) along dim, shifted so that it cannot overflow."""
    def softplus(self) -> Tensor:
        """log(1 + exp(x)), without overflow."""
    def softplus_(self) -> Tensor:
        """`softplus`, written into the tensor; returns it."""
    def split(self, split_size_or_sections: Any, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of views along `dim`: of one size (the last may be smaller), or of the sizes listed."""
    def sqrt(self) -> Tensor:
        """The square root; NaN for negative numbers."""
    def sqrt_(self) -> Tensor:
        """`sqrt`, written into the tensor; returns it."""
    def square(self) -> Tensor:
        """x times x."""
    def square_(self) -> Tensor:
        """`square`, written into the tensor; returns it."""
    def squeeze(self, dim: _Ints | None = None) -> Tensor:
        """Without the dimensions of size 1, or without those of them that `dim` names."""
    def std(self, dim: _Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number = 1) -> Tensor:
        """The square root of `var`; where that is 0, the derivative is taken as 0."""
    def sub(self, b: _Operand) -> Tensor:
        """Elementwise difference a - b."""
    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """x = x - alpha * other, in place."""
    def sum(self, dim: _Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum over `dim` (None or (): all).  Integers and booleans add up in int64."""
    def take_along_dim(self, indices: _Operand, dim: _int) -> Tensor:
        """Per position of `indices`, the element of x at that place along `dim`; other dimensions match one to one."""
    def tan(self) -> Tensor:
        """The tangent of x radians."""
    def tan_(self) -> Tensor:
        """`tan`, written into the tensor; returns it."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
    def tanh_(self) -> Tensor:
        """`tanh`, written into the tensor; returns it."""
    def to(self, dtype: DTypeLike) -> Tensor:
        """x in another dtype; from complex to real, its real part."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""
    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """Two dimensions swapped."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of the last two dimensions, zeros above the given diagonal."""
    def tril_(self, diagonal: _int = 0) -> Tensor:
        """`tril`, written into the tensor; returns it."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of the last two dimensions, zeros below the given diagonal."""
    def triu_(self, diagonal: _int = 0) -> Tensor:
        """`triu`, written into the tensor; returns it."""
    def trunc(self) -> Tensor:
        """x without its fraction; its derivative is 0."""
    def trunc_(self) -> Tensor:
        """`trunc`, written into the tensor; returns it."""
    def type_as(self, other: Any) -> Tensor:
        """The tensor in the dtype of the other."""
    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """A tuple of the slices along `dim`, without that dimension."""
    def unflatten(self, dim: _int, sizes: _Ints) -> Tensor:
        """One dimension as several; one of the sizes may be -1."""
    def unsqueeze(self, dim: _int) -> Tensor:
        """A new dimension of size 1 at `dim`."""
    def var(self, dim: _Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _Number = 1) -> Tensor:
        """sum((x - mean(x))^2) / (n - correction) over `dim` (None: all)."""
    def var_mean(self, dim: _Ints | None = None, keepdim: _bool = False, *, correction: _Number = 1) -> tuple[Tensor, Tensor]:
        """`var` and `mean` over the same dimensions, as a named tuple (var, mean)."""
    def vdot(self, b: _Operand) -> Tensor:
        """The sum of the products of two vectors of one size, the first conjugated."""
    def view(self, *shape: _Ints) -> Tensor:
        """The same memory in another shape; where strides do not allow that, `reshape` makes a copy."""
    def view_as_complex(self) -> Tensor:
        """A view of pairs of real numbers as complex ones: shape (..., 2) becomes (...)."""
    def view_as_real(self) -> Tensor:
        """A view of complex numbers as pairs of real ones: shape (...) becomes (..., 2).  RuntimeError for other dtypes."""
    def where(self, a: _Operand, b: _Operand) -> Tensor:
        """a where the condition holds, b elsewhere; all three broadcast."""
    def zero_(self) -> Tensor:
        """Write zeros; returns x."""
    def zeros_like(self, *, dtype: DTypeLike | None = None) -> Tensor:
        """Zeros in the shape of x."""

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]
