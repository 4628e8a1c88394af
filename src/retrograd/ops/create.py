"""Tensor creation: zeros, ones, full, arange, eye, and their `_like` forms."""

import inspect
import math
from collections.abc import Sequence

from retrograd.backend.type_info import check_number_fits
from retrograd.core import Aval, Internal, Tensor, call, current, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.aval import symbolic
from retrograd.core.errors import OperandValueError
from retrograd.core.op import compound, is_foreign
from retrograd.core.overrides import function_result, override_result, write_result
from retrograd.foundation.function_arguments import explain_kind
from retrograd.foundation.suggestions import suggest_keyword
from retrograd.ops.as_tensor import as_tensor as as_tensor
from retrograd.ops.as_tensor import from_numpy as from_numpy
from retrograd.ops.as_tensor import tensor as tensor
from retrograd.ops.family import Pointwise
from retrograd.ops.functions import function, functions, name_generated
from retrograd.ops.layout import (
    array_device,
    check_keywords,
    find_device,
    has_sparse_layout,
    making_on,
    place,
    sparse_layouts,
    strided,
    to_format,
)


class Factory(Internal, differentiable=False):
    """A tensor made from params alone, as an operator: so levels intercept it, and a trace records it.

    The operator has no public name; `factory` makes the public function, which takes more keywords.
    """


class FillFactory(Factory):
    """A factory with a param `size`.  Symbolic sizes make arrays of their own kind, out of plain ones."""

    @classmethod
    def batch(cls, batched, n, /, *, size, **params):
        """Batch a size that differs between examples; each example has all of it."""
        return call(registry[cls.__name__], (), {"size": (n, *size), **params})


def make_array(make, size, *rest):
    """Call `make(size, *rest)`, or for a symbolic size let it build its array from plain ones."""
    unknown = symbolic(size)
    return make(size, *rest) if unknown is None else unknown.make_array(lambda plain: make(plain, *rest), size)


# The keywords of every public creation function.
_KEYWORDS = {
    "out": None, "device": None, "layout": None, "pin_memory": False, "memory_format": None, "requires_grad": False,
}  # fmt: skip
_KEYWORD_PARAMETERS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default in _KEYWORDS.items()
]


def factory(make, *names):
    """Return the public function for an operator or a function that makes a tensor.

    It takes more keywords: `out=` is resized and filled, `requires_grad=` makes a leaf that accumulates gradients,
    `memory_format=` orders the elements in memory; `device=`, `layout=` and `pin_memory=` accept what is actual.
    """
    signature = inspect.signature(make)
    listed = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
    is_like = make.__name__.endswith("_like")

    def create(*args, out=None, device=None, layout=None, pin_memory=False, memory_format=None, requires_grad=False,
             **own) -> Tensor:  # fmt: skip
        if current().level is not None or (is_like and args and is_foreign(args[0])):
            keywords = (out, device, layout, pin_memory, memory_format, requires_grad)
            given = {n: x for (n, default), x in zip(_KEYWORDS.items(), keywords, strict=True) if x is not default}
            result = function_result(create, args[:is_like], args, {**own, **given})
            if result is not NotImplemented:
                return result
        if device is not None or layout is not None or pin_memory:
            if is_foreign(device):
                return override_result(create, [device], args, {**own, "device": device})
            check_keywords(device, None if layout in sparse_layouts else layout, pin_memory)
            if layout in sparse_layouts or (layout is strided and args and has_sparse_layout(args[0])):
                return _in_layout(make.__name__, layout, args, own).requires_grad_(requires_grad)
        if device is not None:
            rest = {"out": out, "memory_format": memory_format, "requires_grad": requires_grad}
            with making_on(find_device(device)):
                if is_like and args:
                    args = (_model_on(args[0], current().device), *args[1:])
                return place(create(*args, **rest, **own), current().device)
        if listed and (type(args[0]) is int if args else "size" not in own):
            args = (args,)  # sizes as separate arguments, or none; a tuple also binds faster
        if out is not None:
            result = make(*args, **{"dtype": out.dtype, **own})
            write_result(out, result)
            return out
        try:
            tensor = make(*args, **own)
        except (TypeError, AttributeError) as error:
            if not own.keys() <= signature.parameters.keys():
                suggest_keyword(error, [*signature.parameters, *_KEYWORDS])
            elif inspect.isfunction(make):
                explain_kind(make, args, own, error)
            raise
        if memory_format is not None:
            tensor = to_format(tensor, memory_format)
        if requires_grad:
            tensor.requires_grad = requires_grad
        return tensor

    create.__name__ = create.__qualname__ = make.__name__.rpartition(".")[2]
    create.__doc__, create.__module__ = make.__doc__, getattr(make, "definition", make).__module__
    create.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*signature.parameters.values(), *_KEYWORD_PARAMETERS], return_annotation=Tensor
    )
    return function(*names or (make.__name__,))(create)


_LIKE = {"zeros_like": "zeros", "ones_like": "ones", "full_like": "full", "empty_like": "empty"}


def _model_on(x, target):
    """Return a tensor of any values on an `ArrayDevice`, with the shape, strides and dtype of one that is elsewhere."""
    if not isinstance(x, Tensor) or array_device(x) is target or compound(x) is not None:
        return x
    return functions["empty_strided"](x.shape, x.stride(), dtype=x.dtype)


def _in_layout(name, layout, args, own):
    """Return the tensor of a factory in a sparse layout, without entries, or in the dense one, like a sparse tensor."""
    if name in _LIKE:
        like, *args = args
        own = {**own, "dtype": own.get("dtype") or like.dtype}
        name, args = _LIKE[name], (like.shape, *args)
    if layout is strided:
        return functions[name](*args, **own)
    if name not in ("zeros", "empty"):
        raise OperandValueError(
            f"layout: {name}(...) is not implemented for sparse layout, only for strided tensors, got {layout!r}"
        )
    size = own.pop("size", None) or (args[0] if args and not isinstance(args[0], int) else args)
    return registry["sparse.without_entries"](size, layout=layout, **own)


def _float_dtype(dtype, *numbers):
    """Return dtype if given, else the default dtype, or its complex counterpart if a value is complex."""
    is_complex = any(isinstance(n, complex) for n in numbers)
    if dtype is not None:
        if is_complex and dtype.kind != "c":
            raise ValueError(f"complex numbers can't be safely cast to the dtype {dtype}")
        return dtype
    default = dtypes.get_default_dtype()
    return dtypes.complex_of(default) if is_complex else default


@op("full(int[] size, number fill_value, *, dtype? dtype=None) -> Tensor")
class _full(FillFactory):
    """Return a tensor of the given shape, filled with one value; without dtype, in the dtype of the value.

    >>> import retrograd as rg
    >>> rg.full((2,), 1.5)
    tensor([1.5000, 1.5000])
    """

    def impl(xp, *, size, fill_value, dtype):
        return make_array(xp.full, size, fill_value, dtypes.of_scalar(fill_value) if dtype is None else dtype)

    def shape(*, size, fill_value, dtype):
        return Aval(size, dtypes.of_scalar(fill_value) if dtype is None else dtype)

    def oracle(np, size, fill_value, dtype):
        return np.full(size, fill_value)

    def samples(r):
        yield (), {"size": (2, 3), "fill_value": 1.5}
        yield (), {"size": (2,), "fill_value": 3, "dtype": "float64"}


@op("zeros(int... size, *, dtype? dtype=None) -> Tensor")
class _zeros(FillFactory):
    """Zeros of the given shape, in the default dtype unless another is given.

    >>> import retrograd as rg
    >>> rg.zeros(2, 3).shape
    (2, 3)
    """

    def impl(xp, *, size, dtype):
        return make_array(xp.zeros, size, _float_dtype(dtype))

    def shape(*, size, dtype):
        return Aval(size, _float_dtype(dtype))

    def oracle(np, size, dtype):
        return np.zeros(size)

    def samples(r):
        yield (), {"size": (2, 3)}


@op("ones(int... size, *, dtype? dtype=None) -> Tensor")
class _ones(FillFactory):
    """Ones of the given shape, in the default dtype unless another is given.

    >>> import retrograd as rg
    >>> rg.ones(2, dtype=rg.int64)
    tensor([1, 1])
    """

    def impl(xp, *, size, dtype):
        return make_array(xp.ones, size, _float_dtype(dtype))

    def shape(*, size, dtype):
        return Aval(size, _float_dtype(dtype))

    def oracle(np, size, dtype):
        return np.ones(size)

    def samples(r):
        yield (), {"size": (2, 3), "dtype": "int64"}


@op("arange(number start, number end, number step, *, dtype? dtype=None) -> Tensor")
class _arange(Factory):
    """Values from start up to, but not including, end, in steps."""

    def impl(xp, *, start, end, step, dtype):
        start, end, step = _check_steps(start, end, step, dtype)
        dtype = _step_dtype((start, end, step), dtype)
        wide = dtypes.int64 if dtype.kind in "iu" and dtype.itemsize < 8 else dtypes.opmath_of(dtype)
        out = xp.arange(start, end, step, wide)
        return out if wide is dtype else out.astype(dtype, copy=False)

    def shape(*, start, end, step, dtype):
        start, end, step = _check_steps(start, end, step, dtype)
        return Aval((max(0, -int(-(end - start) // step)),), _step_dtype((start, end, step), dtype))

    def oracle(np, start, end, step, dtype):
        return np.arange(start, end, step)

    def samples(r):
        yield (), {"start": 0, "end": 5, "step": 2}
        yield (), {"start": 0, "end": 1.0, "step": 0.25}

    def errors(r):
        yield (), {"start": 0, "end": 5, "step": -1}, ValueError, "no steps"
        yield (), {"start": 0, "end": 5, "step": 0.5, "dtype": "int64"}, ValueError, "no steps of 0"


def _check_steps(start, end, step, dtype):
    """Return start, end and step in the kind of dtype; a ValueError unless the steps lead to the end."""
    numbers = start, end, step
    if not _are_integers(*numbers) or min(numbers) < -(2**63) or max(numbers) >= 2**63:  # most calls skip the checks
        if any(isinstance(n, float) and not math.isfinite(n) for n in numbers):
            raise ValueError(f"arange: expected finite numbers, got {start} to {end} in steps of {step}")
        start, end, step = _truncate(dtype, start, end, step)
        if any(isinstance(n, int) and not -(2**63) <= n < 2**63 for n in (start, end, step)):
            words = "cannot be converted to int64 without overflow"
            raise ValueError(f"arange: {start} to {end} in steps of {step} {words}")
    if step == 0 or (end - start) / step < 0:
        words = "upper bound and lower bound inconsistent with step sign" if step else "step must be nonzero"
        raise ValueError(f"arange: {words}: no steps of {step} lead from {start} to {end}")
    return start, end, step


def _truncate(dtype, *numbers):
    """Truncate numbers towards 0 if the dtype is an integer one, as PyTorch does before it counts steps."""
    is_integer = dtype is not None and dtype.kind in "iu"
    return tuple([math.trunc(n) if is_integer and isinstance(n, float) else n for n in numbers])


def _are_integers(start, end, step):
    """Return whether all are of Python's class of integers."""
    return type(start) is int and type(end) is int and type(step) is int


def _step_dtype(numbers, dtype):
    if dtype is not None:
        return dtype
    return dtypes.int64 if _are_integers(*numbers) else dtypes.result_type(*numbers)


@op("linspace(number start, number end, int steps, *, dtype? dtype=None) -> Tensor")
class _linspace(Factory):
    """Evenly spaced values, `steps` many, from start to end, both included; integers are truncated towards 0."""

    def impl(xp, *, start, end, steps, dtype):
        result = _float_dtype(dtype, start, end)
        for number in (start, end):
            check_number_fits("linspace", number, result)
        return xp.linspace(*_truncate(dtype, start, end), steps).astype(result)

    def shape(*, start, end, steps, dtype):
        return _steps_aval("linspace", steps, _float_dtype(dtype, start, end))

    def oracle(np, start, end, steps, dtype):
        return np.linspace(start, end, steps)

    def samples(r):
        yield (), {"start": -1, "end": 1, "steps": 5}
        yield (), {"start": 0, "end": -10, "steps": 4, "dtype": "int64"}
        yield (), {"start": 4.3, "end": -3, "steps": 9, "dtype": "int64"}

    def errors(r):
        yield (), {"start": 0, "end": 1, "steps": -1}, ValueError, "linspace: .*steps must not be negative, got -1"


@op("logspace(number start, number end, int steps, number base=10.0, *, dtype? dtype=None) -> Tensor")
class _logspace(Factory):
    """Powers of the base, `steps` many, with evenly spaced exponents from start to end."""

    def impl(xp, *, start, end, steps, base, dtype):
        exponents = xp.linspace(*_truncate(dtype, start, end), steps)
        return xp.power(base, exponents).astype(_float_dtype(dtype, start, end, base))

    def shape(*, start, end, steps, base, dtype):
        return _steps_aval("logspace", steps, _float_dtype(dtype, start, end, base))

    def oracle(np, start, end, steps, base, dtype):
        return [np.array([base ** (start + (end - start) * i / (steps - 1)) for i in range(steps)], float)]

    def samples(r):
        yield (), {"start": -1, "end": 1, "steps": 5}
        yield (), {"start": 0, "end": 3, "steps": 4, "base": 2, "dtype": "int64"}

    def errors(r):
        yield (), {"start": 0, "end": 1, "steps": -1}, ValueError, "logspace: .*steps must not be negative, got -1"


def _steps_aval(name, steps, dtype):
    if steps < 0:
        raise ValueError(f"{name}: number of steps must be non-negative: steps must not be negative, got {steps}")
    return Aval((steps,), dtype)


@op("eye(int n, int? m=None, *, dtype? dtype=None) -> Tensor")
class _eye(Factory):
    """Return an n x m matrix (m defaults to n) with ones on the diagonal and zeros elsewhere.

    >>> import retrograd as rg
    >>> rg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """

    def impl(xp, *, n, m, dtype):
        return xp.eye(n, m, dtype=_float_dtype(dtype))

    def shape(*, n, m, dtype):
        for name, size in (("n", n), ("m", m)):
            if size is not None and size < 0:
                raise ValueError(f"eye: {name} must be greater or equal to 0, got {size}; sizes must not be negative")
        return Aval((n, n if m is None else m), _float_dtype(dtype))

    def oracle(np, n, m, dtype):
        return np.eye(n, m)

    def samples(r):
        yield (), {"n": 3}
        yield (), {"n": 2, "m": 3}


@op("empty_strided(int[] size, int[] stride, *, dtype? dtype=None) -> Tensor")
class _empty_strided(Factory):
    """Return an uninitialized tensor with these strides, in elements (its values are zeros, which is not guaranteed).

    >>> import retrograd as rg
    >>> rg.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """

    def impl(xp, *, size, stride, dtype):
        aval = _strided_aval(size, stride, dtype)
        last = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if 0 not in size else -1
        memory = xp.zeros(last + 1, aval.dtype)
        return xp.read_strided(memory, size, stride, 0)

    def shape(*, size, stride, dtype):
        return _strided_aval(size, stride, dtype)

    def oracle(np, size, stride, dtype):
        return np.zeros(size)

    def samples(r):
        yield (), {"size": (2, 3), "stride": (1, 2)}

    def errors(r):
        yield (), {"size": (2, 3), "stride": (1,)}, ValueError, r"empty_strided: .* \(2, 3\) and \(1,\)"


def _strided_aval(size, stride, dtype):
    if len(size) != len(stride) or any(step < 0 for step in stride):
        raise ValueError(f"empty_strided: expected a stride of 0 or more per dimension, got {size} and {stride}")
    return Aval(size, _float_dtype(dtype))


class _LikeFactory(Internal, Pointwise, differentiable=False, in_place=False, elements="moved"):
    """A constant with the shape of x, and its dtype unless another is given."""

    def shape(x, *, dtype=None, **params):
        return Aval(x.shape, x.dtype if dtype is None else dtype)

    shape = staticmethod(shape)

    def samples(r):
        yield (r(2, 3),), {}

    samples = staticmethod(samples)


@op("zeros_like(Tensor x, *, dtype? dtype=None) -> Tensor")
class _zeros_like(_LikeFactory):
    """Return zeros with the shape of x, and its dtype unless another is given."""

    def impl(xp, x, *, dtype):
        return xp.zeros_like(x, dtype=dtype)

    def oracle(np, x, dtype):
        return np.zeros_like(x, dtype)


@op("ones_like(Tensor x, *, dtype? dtype=None) -> Tensor")
class _ones_like(_LikeFactory):
    """Return ones with the shape of x, and its dtype unless another is given."""

    def impl(xp, x, *, dtype):
        return xp.ones_like(x, dtype=dtype)

    def oracle(np, x, dtype):
        return np.ones_like(x, dtype)


@op("full_like(Tensor x, number fill_value, *, dtype? dtype=None) -> Tensor")
class _full_like(_LikeFactory):
    """Return a tensor filled with one value, with the shape of x, and its dtype unless another is given."""

    def impl(xp, x, *, fill_value, dtype):
        return xp.full_like(x, fill_value, dtype=dtype)

    def oracle(np, x, fill_value, dtype):
        return np.full_like(x, fill_value)

    def samples(r):
        yield (r(2, 3),), {"fill_value": 2.5}


# ----------------------------------------------------------------------------------------- the public functions


def empty(*shape: int | Sequence[int], size=None, dtype=None) -> Tensor:
    """Return an uninitialized tensor of the given shape (its values are zeros, which is not guaranteed).

    >>> import retrograd as rg
    >>> rg.empty(4).shape
    (4,)
    """
    return _zeros(*shape, dtype=dtype) if size is None else _zeros(*shape, size=size, dtype=dtype)


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, dtype=None) -> Tensor:
    """Return an uninitialized tensor whose dimensions are in memory in the given order, slowest first.

    >>> import retrograd as rg
    >>> rg.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
    (15, 1, 3)
    """
    if sorted(physical_layout) != list(range(len(size))):
        raise OperandValueError(
            f"empty_permuted: physical_layout must order the {len(size)} dimensions of {tuple(size)}, got "
            f"{tuple(physical_layout)}"
        )
    return registry["copy_in_order"](_zeros(size, dtype=dtype), physical_layout)


def empty_like(input, *, dtype=None) -> Tensor:
    """Return an uninitialized tensor with the shape of the input (its values are zeros, which is not guaranteed)."""
    return _zeros_like(input, dtype=dtype)


def arange(start=0, end=None, step=1, *, dtype=None) -> Tensor:
    """Return values from start (0 if only end is given) up to, but not including, end.

    >>> import retrograd as rg
    >>> rg.arange(3), rg.arange(1, 2, 0.5)
    (tensor([0, 1, 2]), tensor([1.0000, 1.5000]))
    """
    start, end = (0, start) if end is None else (start, end)
    return _arange(start, end, step, dtype=dtype)


def scalar_tensor(s, *, dtype=None) -> Tensor:
    """Return a number as a tensor without dimensions, in the default dtype unless another is given."""
    return _full((), s, dtype=_float_dtype(dtype, s))


zeros, ones, full, eye = factory(_zeros), factory(_ones), factory(_full), factory(_eye)
empty_strided = factory(_empty_strided)
zeros_like, ones_like, full_like = factory(_zeros_like), factory(_ones_like), factory(_full_like)
empty, empty_permuted, empty_like, arange, scalar_tensor = map(
    factory, (empty, empty_permuted, empty_like, arange, scalar_tensor)
)


def _new_method(make):
    """Return the method `new_...` of a function: it makes a tensor in the dtype of another one."""

    name = f"new_{make.__name__}"

    def new(x, *args, dtype=None, **keywords) -> Tensor:
        if x._overrides and is_foreign(x):
            given = keywords if dtype is None else {"dtype": dtype, **keywords}
            return override_result(getattr(Tensor, name), [x], (x, *args), given)
        if make is not tensor and has_sparse_layout(x):
            keywords = {"layout": x.layout, **keywords}
        with making_on(array_device(x)):
            return make(*args, dtype=x.dtype if dtype is None else dtype, **keywords)

    new.__name__ = name
    new.__doc__ = f"`rg.{make.__name__}`, in the dtype of this tensor unless another is given."
    return name_generated(new, f"Tensor.{name}")


for _make in (zeros, ones, full, empty, empty_strided, tensor):
    setattr(Tensor, f"new_{_make.__name__}", _new_method(_make))
