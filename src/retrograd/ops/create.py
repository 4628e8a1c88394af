"""Making tensors: from data, of one value, in steps."""

from retrograd import backend
from retrograd.core import Aval, Definition, Tensor, current, namespaces, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.dispatch import mark_inference
from retrograd.ops.family import Pointwise


class Factory(Definition, differentiable=False):
    """Makes a tensor from params alone.  Levels see it: what is made in a trace is part of the trace."""

    method = False


def _float(dtype):
    return dtypes.get_default_dtype() if dtype is None else dtype


@op("full(int[] size, number fill_value, *, dtype? dtype=None) -> Tensor")
class _full(Factory):
    """A tensor of one value; without dtype, of that which the value has."""

    public = False

    def impl(xp, *, size, fill_value, dtype):
        return xp.full(size, fill_value, dtypes.of_scalar(fill_value) if dtype is None else dtype)

    def shape(*, size, fill_value, dtype):
        return Aval(size, dtypes.of_scalar(fill_value) if dtype is None else dtype)

    def samples(r):
        yield (), {"size": (2, 3), "fill_value": 1.5}
        yield (), {"size": (2,), "fill_value": 3, "dtype": "float64"}


@op("zeros(int... size, *, dtype? dtype=None) -> Tensor")
class _zeros(Factory):
    """A tensor of zeros."""

    public = False

    def impl(xp, *, size, dtype):
        return xp.zeros(size, _float(dtype))

    def shape(*, size, dtype):
        return Aval(size, _float(dtype))

    def samples(r):
        yield (), {"size": (2, 3)}


@op("ones(int... size, *, dtype? dtype=None) -> Tensor")
class _ones(Factory):
    """A tensor of ones."""

    public = False

    def impl(xp, *, size, dtype):
        return xp.ones(size, _float(dtype))

    def shape(*, size, dtype):
        return Aval(size, _float(dtype))

    def samples(r):
        yield (), {"size": (2, 3), "dtype": "int64"}


@op("arange(number start, number end, number step, *, dtype? dtype=None) -> Tensor")
class _arange(Factory):
    """Numbers from start, up to but not including end, in steps."""

    public = False

    def impl(xp, *, start, end, step, dtype):
        _check_steps(start, end, step)
        return xp.arange(start, end, step, _step_dtype((start, end, step), dtype))

    def shape(*, start, end, step, dtype):
        _check_steps(start, end, step)
        return Aval((max(0, -int(-(end - start) // step)),), _step_dtype((start, end, step), dtype))

    def samples(r):
        yield (), {"start": 0, "end": 5, "step": 2}
        yield (), {"start": 0, "end": 1.0, "step": 0.25}

    def errors(r):
        yield (), {"start": 0, "end": 5, "step": -1}, ValueError, "no steps"


def _check_steps(start, end, step):
    if step == 0 or (end - start) / step < 0:
        raise ValueError(f"arange: no steps of {step} lead from {start} to {end}")


def _step_dtype(numbers, dtype):
    return dtypes.result_type(*numbers) if dtype is None else dtype


@op("linspace(number start, number end, int steps, *, dtype? dtype=None) -> Tensor")
class _linspace(Factory):
    """`steps` numbers at equal distances from start to end, both included."""

    public = False

    def impl(xp, *, start, end, steps, dtype):
        return xp.linspace(start, end, steps, dtype=_float(dtype))

    def shape(*, start, end, steps, dtype):
        if steps < 0:
            raise ValueError(f"linspace: steps must not be negative, got {steps}")
        return Aval((steps,), _float(dtype))

    def samples(r):
        yield (), {"start": -1, "end": 1, "steps": 5}


@op("eye(int n, int? m=None, *, dtype? dtype=None) -> Tensor")
class _eye(Factory):
    """Ones on the diagonal of an n x m matrix (m: n), zeros elsewhere."""

    public = False

    def impl(xp, *, n, m, dtype):
        return xp.eye(n, m, dtype=_float(dtype))

    def shape(*, n, m, dtype):
        return Aval((n, n if m is None else m), _float(dtype))

    def samples(r):
        yield (), {"n": 3}
        yield (), {"n": 2, "m": 3}



class _Like(Pointwise, differentiable=False, in_place=False):
    """A constant in the shape of x, and in its dtype unless another is given."""

    def shape(x, *, dtype=None, **params):
        return Aval(x.shape, x.dtype if dtype is None else dtype)

    shape = staticmethod(shape)

    def samples(r):
        yield (r(2, 3),), {}

    samples = staticmethod(samples)


@op("zeros_like(Tensor x, *, dtype? dtype=None) -> Tensor")
class zeros_like(_Like):
    """Zeros in the shape of x."""

    def impl(xp, x, *, dtype):
        return xp.zeros_like(x, dtype=dtype)


@op("ones_like(Tensor x, *, dtype? dtype=None) -> Tensor")
class ones_like(_Like):
    """Ones in the shape of x."""

    def impl(xp, x, *, dtype):
        return xp.ones_like(x, dtype=dtype)


@op("full_like(Tensor x, number fill_value, *, dtype? dtype=None) -> Tensor")
class full_like(_Like):
    """One value in the shape of x."""

    def impl(xp, x, *, fill_value, dtype):
        return xp.full_like(x, fill_value, dtype=dtype)

    def samples(r):
        yield (r(2, 3),), {"fill_value": 2.5}


# ------------------------------------------------------------------------------------- the faces of factories


def leaf(tensor, requires_grad):
    """The tensor, ready to collect gradients if asked to."""
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def size_of(size):
    """A shape given as one sequence or as separate integers."""
    return size[0] if len(size) == 1 and not isinstance(size[0], int) else size


def zeros(*size, dtype=None, requires_grad=False) -> Tensor:
    """Zeros of the given shape, in the default dtype unless another is given.

    >>> import retrograd as rg
    >>> rg.zeros(2, 3).shape
    (2, 3)
    """
    return leaf(_zeros(size_of(size), dtype=dtype), requires_grad)


def ones(*size, dtype=None, requires_grad=False) -> Tensor:
    """Ones of the given shape, in the default dtype unless another is given.

    >>> import retrograd as rg
    >>> rg.ones(2, dtype=rg.int64)
    tensor([1, 1])
    """
    return leaf(_ones(size_of(size), dtype=dtype), requires_grad)


def empty(*size, dtype=None, requires_grad=False) -> Tensor:
    """A tensor of the given shape whose values nobody promises (they are zeros).

    >>> import retrograd as rg
    >>> rg.empty(4).shape
    (4,)
    """
    return zeros(*size, dtype=dtype, requires_grad=requires_grad)


def full(size, fill_value, *, dtype=None, requires_grad=False) -> Tensor:
    """One value in the given shape; without dtype, of the dtype that the value has.

    >>> import retrograd as rg
    >>> rg.full((2,), 1.5)
    tensor([1.5, 1.5])
    """
    return leaf(_full(size, fill_value, dtype=dtype), requires_grad)


def arange(start, end=None, step=1, *, dtype=None, requires_grad=False) -> Tensor:
    """Numbers from start (0 if only one is given) up to but not including end.

    >>> import retrograd as rg
    >>> rg.arange(3), rg.arange(1, 2, 0.5)
    (tensor([0, 1, 2]), tensor([1. , 1.5]))
    """
    start, end = (0, start) if end is None else (start, end)
    return leaf(_arange(start, end, step, dtype=dtype), requires_grad)


def linspace(start, end, steps, *, dtype=None, requires_grad=False) -> Tensor:
    """`steps` numbers at equal distances from start to end, both included.

    >>> import retrograd as rg
    >>> rg.linspace(0, 1, 3)
    tensor([0. , 0.5, 1. ])
    """
    return leaf(_linspace(start, end, steps, dtype=dtype), requires_grad)


def eye(n, m=None, *, dtype=None, requires_grad=False) -> Tensor:
    """Ones on the diagonal of an n x m matrix (m: n), zeros elsewhere.

    >>> import retrograd as rg
    >>> rg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    return leaf(_eye(n, m, dtype=dtype), requires_grad)


# -------------------------------------------------------------------------------------------------- from data


def tensor(data, dtype=None, requires_grad=False) -> Tensor:
    """A tensor with a copy of the data: a number, nested lists of numbers, an array or a tensor.

    Python floats become the default dtype, arrays keep theirs.

    >>> import retrograd as rg
    >>> rg.tensor([[1.0, 2.0]], requires_grad=True)
    tensor([[1., 2.]], requires_grad=True)
    """
    if isinstance(data, Tensor):
        out = registry["clone"](data.detach())
        return leaf(out if dtype is None else registry["to"](out, dtype), requires_grad)
    array = backend.as_array(data, dtype)
    if dtype is None and not hasattr(data, "dtype"):
        array = array.astype(_dtype_of_lists(data, array.dtype), copy=False)
    return leaf(_constant(array), requires_grad)


def _dtype_of_lists(data, found):
    """Lists of Python floats take the default dtype; lists of NumPy's numbers keep theirs."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    if hasattr(data, "dtype"):
        return found
    if found.kind == "f":
        return dtypes.get_default_dtype()
    return dtypes.complex_of(dtypes.get_default_dtype()) if found.kind == "c" else found


def _constant(array):
    """A tensor around an array: at the current level, so that it can become a leaf there."""
    dtypes.category(array.dtype)
    out = Tensor(array)
    if current().inference:
        mark_inference(out)
    return out if current().level is None else registry["detach"](out)


def from_numpy(array) -> Tensor:
    """A tensor that shares the array's memory: what is written to one shows in the other.

    >>> import numpy as np
    >>> import retrograd as rg
    >>> rg.from_numpy(np.zeros(2))
    tensor([0., 0.], dtype=float64)
    """
    if type(array) not in namespaces:
        raise TypeError(f"from_numpy: expected an ndarray, got {type(array).__name__}")
    return _constant(array)


def as_tensor(data, dtype=None) -> Tensor:
    """The data as a tensor, without copying where its memory can be shared.

    >>> import retrograd as rg
    >>> rg.as_tensor(3)
    tensor(3)
    """
    if isinstance(data, Tensor):
        return data if dtype is None or data.dtype == dtype else registry["to"](data, dtype)
    if type(data) in namespaces and dtype is None:
        return from_numpy(data)
    return tensor(data, dtype)
