"""Families of operators: base classes that derive the rules that many operators share.

Rules of a family use the class methods below.  The operators that they call (`sum`, `reshape`, `to`) are looked up
by name when a rule runs, since they are themselves defined with families.
"""

import math
import re
import sys
from functools import wraps

from retrograd.core import (
    Aval,
    Internal,
    NotBatchedError,
    Tensor,
    call,
    dtype_of,
    op,
    operator_named,
    registry,
    shape_of,
)
from retrograd.core import dtype as dtypes
from retrograd.core.aval import symbolic
from retrograd.core.dispatch import call_fast
from retrograd.core.errors import OperandIndexError, OperandValueError
from retrograd.core.level import broadcasts_batched
from retrograd.core.memory_order import ORDERS, find_order
from retrograd.core.widening import comparing_kernel
from retrograd.ops import batch_loop
from retrograd.ops.batching import align_batched, at_least_1d, batch_all
from retrograd.ops.jvp_rules import no_rule
from retrograd.ops.opmath import Family


def broadcast_shapes(name, shapes):
    """Return the common shape of operands that broadcast; a ValueError names the first dimension that does not fit."""
    first = shapes[0] if shapes else ()
    if shapes.count(first) == len(shapes):
        return tuple(first)
    ndim = max(len(s) for s in shapes)
    out = []
    for i in range(-ndim, 0):
        sizes = {s[i] for s in shapes if len(s) >= -i} - {1}
        if len(sizes) > 1:
            listed = " and ".join(str(tuple(s)) for s in shapes)
            several = sizes if symbolic(sizes) else sorted(sizes)
            raise OperandValueError(
                f"{name}: shapes {listed} do not broadcast: dimension {i} is {' and '.join(map(str, several))}"
                f"{_pytorch_words(shapes, i)}"
            )
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def _pytorch_words(shapes, i):
    """Return PyTorch's words for two shapes that differ in dimension i, counted from the last."""
    sizes = [shape[i] for shape in shapes if len(shape) >= -i]
    a = next(size for size in sizes if size != 1)
    b = next(size for size in sizes if size not in (1, a))
    if len(shapes) == 2:
        a, b = sizes
    dim = max(map(len, shapes)) + i
    return f": The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"


def as_number(value):
    """Return the number in a tensor without dimensions; another value as it is."""
    return value.item() if isinstance(value, Tensor) and not value.ndim else value


def canonical_dim(name, dim, ndim):
    """Return `dim` as a non-negative index; an IndexError names the valid range."""
    if 0 <= dim < ndim:  # most calls end here
        return dim
    if -ndim <= dim < 0:  # or here
        return dim + ndim
    if ndim == 0 and -1 <= dim <= 0:
        return 0
    raise OperandIndexError(
        f"{name}: dim {dim} is out of range for a tensor of {ndim} dimensions: Dimension out of range (expected to "
        f"be in range of [{-max(ndim, 1)}, {max(ndim, 1) - 1}], but got {dim})"
    )


def canonical_dims(name, dims, ndim):
    """Return the dimensions `dims` (None or (): all) as non-negative indices; none may occur twice."""
    if dims is None or dims == ():
        return tuple(range(ndim))
    if type(dims) is tuple and len(dims) == 1 and ndim:
        return (canonical_dim(name, dims[0], ndim),)
    out = tuple(canonical_dim(name, d, ndim) for d in ((dims,) if isinstance(dims, int) else dims))
    if len(set(out)) < len(out):
        twice = next(d for i, d in enumerate(out) if d in out[:i])
        raise OperandValueError(
            f"{name}: dim {twice} appears multiple times in the list of dims: a dimension is named twice in {dims}"
        )
    return out if ndim else ()


def existing_dims(name, dims, ndim):
    """Return `canonical_dims` of those listed, if any; an IndexError for each of a tensor without dimensions, too."""
    if dims and ndim == 0:
        raise OperandIndexError(f"{name}: dim {dims[0]} is named, but the tensor has no dimensions")
    return canonical_dims(name, dims, ndim) if dims else ()


def reduced_shape(shape, dims, keepdim):
    """Return the shape after reducing `dims`."""
    if keepdim:
        return tuple(1 if i in dims else s for i, s in enumerate(shape))
    return tuple(s for i, s in enumerate(shape) if i not in dims)


def sum_to(g, shape):
    """Sum g over the dimensions along which an operand of `shape` was broadcast."""
    if g.shape == shape:
        return g
    if shape == ():  # not a view, so that the gradient of a number can be written to
        return registry["sum"](g)
    lead = g.ndim - len(shape)
    repeated = tuple(lead + i for i, s in enumerate(shape) if s == 1 and g.shape[lead + i] != 1)
    dims = (*range(lead), *repeated)
    if dims:
        g = registry["sum"](g, dim=dims, keepdim=bool(repeated))
    return registry["reshape"](g, shape) if lead and repeated else g


def cast_to(g, dtype):
    """Convert g to another dtype; g itself if it has that already."""
    return g if g.dtype == dtype else registry["to"](g, dtype)


def zero_cotangent(g):
    """Return zeros like g, for an input with zero derivative everywhere; 0 * g would be NaN where g is infinite."""
    return registry["zeros_like"](g)


class Pointwise(Family):
    """An elementwise operator: shapes broadcast, dtypes are promoted; a vjp rule is g times a partial derivative."""

    promotion = "numeric"
    in_place = True
    result = "same"  # the dtype of the result: "same" as the promoted operands', "bool", or its "real" part
    exact_numbers = False  # whether Python numbers meet bfloat16 unrounded, as in PyTorch
    masks = 0  # number of leading boolean operands, which do not take part in promotion

    @classmethod
    def compute_dtype(cls, operands):
        """Return the dtype in which the kernel computes."""
        dtype = dtypes.result_type(*[o for o in operands[cls.masks :] if o is not None])
        return dtypes.float_of(dtype) if cls.promotion == "float" else dtype

    @classmethod
    def promote(cls, arrays):
        """Return the operands as arrays of one dtype."""
        return cls.promote_to(cls.compute_dtype(arrays), arrays)

    @classmethod
    def promote_to(cls, dtype, arrays):
        """Return the operands, besides leading masks, as arrays of a dtype."""
        convert = _with_exact_numbers if cls.exact_numbers and dtypes.is_bfloat16(dtype) else _as_dtype
        return [*arrays[: cls.masks], *[a if a is None else convert(a, dtype) for a in arrays[cls.masks :]]]

    @classmethod
    def shape(cls, *avals, **params):
        """Broadcast the shapes and promote the dtypes."""
        operands = [a for a in avals if a is not None]
        dtype = cls.compute_dtype(avals)
        dtype = {"same": dtype, "bool": dtypes.bool_, "real": dtypes.real_of(dtype)}[cls.result]
        return Aval(broadcast_shapes(cls.__name__, [shape_of(a) for a in operands]), dtype)

    @classmethod
    def fit(cls, g, aval):
        """Undo broadcasting and promotion."""
        return cast_to(sum_to(g, shape_of(aval)), dtype_of(aval))

    @classmethod
    def derived_jvp(cls, op, index, t, primals, out, params):
        """Apply the partial derivative of the vjp rule: the Jacobian is diagonal, so it serves both modes."""
        rule = op.rules[index]
        if rule is None:
            raise no_rule(op, index)
        return broadcast_like(rule.apply(t, primals, out, params), out)

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Align the operands, so that examples broadcast and are promoted as they would be one by one."""
        if broadcasts_batched(args, batched, cls.masks):
            return call_fast(registry[cls.__name__], args, params)
        args = cls._promote_unbatched(batched, args) if cls.promotion else args
        # Missing dimensions are inserted after the batch dimension, which must not broadcast against others.
        return call(registry[cls.__name__], tuple(align_batched(args, batched)), params)

    @classmethod
    def dependence(cls, i, out, /, *avals, **params):
        """Elements depend on those at the same index."""
        return broadcast_dims(len(shape_of(avals[i])), out.ndim)

    @classmethod
    def _promote_unbatched(cls, batched, args):
        """Promote before batching: tensors without dimensions yield in promotion, but in a batch they have one."""
        tensors = [a for a in args[cls.masks :] if hasattr(a, "dtype")]
        if len({a.dtype for a in tensors}) < 2:
            return args
        examples = [Aval(a.shape[1:], a.dtype) if b else a for a, b in zip(args, batched, strict=True)]
        dtype = cls.compute_dtype(examples)
        return [*args[: cls.masks], *[cast_to(a, dtype) if hasattr(a, "dtype") else a for a in args[cls.masks :]]]


def broadcast_dims(ndim, most):
    """Return which of `most` dimensions each of `ndim` is aligned with in broadcasting."""
    return {d: d + most - ndim for d in range(ndim)}


def broadcast_like(t, out):
    """Return a tangent in the shape and dtype of its output."""
    t = cast_to(t, out.dtype)
    return t if t.shape == out.shape else registry["expand"](t, out.shape)


def _as_dtype(a, dtype):
    if not hasattr(a, "dtype"):
        return dtype.type(a) if dtype.kind != "b" else bool(a)
    if a.dtype == dtype:
        return a
    return a.astype(dtype, order="C" if 0 in a.strides else "K")  # NumPy moves expanded dimensions to the end


def _with_exact_numbers(a, dtype):
    """Return an array converted; a Python number as it is."""
    return _as_dtype(a, dtype) if hasattr(a, "dtype") else a


class PointwiseOfIntegers(Pointwise):
    """An elementwise operator whose kernel gets a Python integer as it is where the dtype does not hold it."""

    @classmethod
    def promote(cls, arrays):
        """Return operands as arrays of one dtype; unchanged if a Python integer is out of its range."""
        try:
            return super().promote(arrays)
        except OverflowError:
            return arrays


class Comparison(PointwiseOfIntegers, differentiable=False, result="bool"):
    """An elementwise comparison; NumPy compares integers that the dtype does not hold."""

    @classmethod
    def bind_widened(cls, namespace):
        """Return the kernel for arrays of `ml_dtypes`."""
        return comparing_kernel(cls.bind(namespace))


class AlongDims(Family):
    """Acts along the dimensions in the params `dims`, the same for all inputs, and maps over the others."""

    dims = "dim"
    memory = "rows"

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Shift the dimensions past the batch dimension."""
        args = batch_all(args, batched, n) if False in batched else args
        ndim = args[0].ndim - 1
        shifted = params.copy()
        for k in cls.dims.split():
            shifted[k] = shift_dims(cls.__name__, params[k], ndim)
        out = call_fast(registry[cls.__name__], tuple(map(at_least_1d, args)), shifted)
        return out if ndim else squeeze_last(out)

    @classmethod
    def dependence(cls, i, out, /, *avals, **params):
        """Elements depend on those at the same index along the other dimensions."""
        ndim = avals[i].ndim
        named = [canonical_dims(cls.__name__, params[k], ndim) for k in cls.dims.split()]
        return {d: d for d in range(ndim) if not any(d in dims for dims in named)}


def shift_dims(name, dim, ndim):
    """Return the dimension, or dimensions, of an example with `ndim` dimensions, shifted past the batch dimension."""
    if isinstance(dim, int):
        return canonical_dim(name, dim, ndim) + 1
    return tuple([canonical_dim(name, d, ndim) + 1 for d in dim])


def squeeze_last(out):
    """Remove the last dimension, of size 1, from a result or from each of several."""
    return tuple(map(squeeze_last, out)) if isinstance(out, tuple) else registry["reshape"](out, out.shape[:-1])


class Rowwise(AlongDims):
    """Acts along `dim`, maps over the other dimensions, and preserves the shape."""

    @classmethod
    def shape(cls, x, *, dim, **params):
        """Return the shape of the input."""
        canonical_dim(cls.__name__, dim, x.ndim)
        return Aval(x.shape, x.dtype)


class Reduction(Family):
    """Reduces the dimensions `dim` (None: all); with keepdim, they stay with size 1.

    in_stages: the result, and its derivative, is the reduction of those of parts, maybe empty ones.
    """

    in_stages = False
    result = "same"  # "same" dtype, "integral" (integers add up in int64), "real", "bool" or "int64"
    memory = "rows"

    @classmethod
    def shape(cls, x, *, dim=None, keepdim=False, **params):
        """Return the shape after the reduction."""
        dims = canonical_dims(cls.__name__, dim, x.ndim)
        dtype = {
            "same": x.dtype,
            "integral": dtypes.int64 if x.dtype.kind in "biu" else x.dtype,
            "real": dtypes.real_of(x.dtype),
            "bool": dtypes.bool_,
            "int64": dtypes.int64,
        }[cls.result]
        return Aval(reduced_shape(x.shape, dims, keepdim), dtype)

    @classmethod
    def batch(cls, batched, n, /, x, **params):
        """Shift the dimensions past the batch dimension; None becomes all dimensions of an example."""
        ndim = x.ndim - 1
        dim = params["dim"]
        if isinstance(dim, int) and ndim:
            dims = shift_dims(cls.__name__, dim, ndim)
        else:
            dims = tuple([d + 1 for d in canonical_dims(cls.__name__, dim, ndim)]) or (1,)
        out = call_fast(registry[cls.__name__], (at_least_1d(x),), params | {"dim": dims})
        return registry["reshape"](out, (n,)) if params["keepdim"] and not ndim else out

    @classmethod
    def dependence(cls, i, out, /, x, *others, dim=None, **params):
        """Elements depend on those that are reduced to them."""
        dims = canonical_dims(cls.__name__, dim, x.ndim)
        left = [d for d in range(x.ndim) if d not in dims]
        return dict(zip(left, left if out.ndim == x.ndim else range(len(left)), strict=True))


def restore_dims(reduced, x_aval, dim, keepdim):
    """Restore the reduced dimensions with size 1, so that the result broadcasts against the input."""
    if keepdim:
        return reduced
    dims = canonical_dims("reduction", dim, x_aval.ndim)
    return registry["reshape"](reduced, reduced_shape(x_aval.shape, dims, True))


class CoreDims(Family):
    """Acts on the last dimensions of each input, as many as `cores` gives, and maps over the leading ones.

    `cores` has one number per input; the last one applies to all further inputs.
    """

    cores: tuple[int, ...] = (2,)

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Put the batch dimension among the leading ones, without broadcasting it against dimensions of examples."""
        cls.shape(*batch_loop.example_avals(batched, args), **params)  # type: ignore[attr-defined]
        return call(registry[cls.__name__], tuple(align_batched(args, batched, cls._cores_of(args))), params)

    @classmethod
    def dependence(cls, i, out, /, *avals, **params):
        """Elements depend on those at the same leading index."""
        leads = [len(shape_of(a)) - core for a, core in zip(avals, cls._cores_of(avals), strict=True)]
        return broadcast_dims(leads[i], max(leads))

    @classmethod
    def _cores_of(cls, args):
        return [cls.cores[min(i, len(cls.cores) - 1)] for i in range(len(args))]


class Gufunc(CoreDims, promotion="same"):
    """Acts on the last dimensions, as `core` says, and maps over the leading ones, which broadcast.

    `core` is NumPy's gufunc signature, such as "(m,n),(n)->(m)": equal letters are equal sizes.
    Operands have one floating or complex dtype, and so has the result, unless `result` says "real" or "complex".
    """

    core = ""
    result = "same"

    def __init_subclass__(cls, **traits):
        super().__init_subclass__(**traits)
        cls.cores = tuple(map(len, _core_dims(cls.core)[0])) if cls.core else ()

    @classmethod
    def promote(cls, arrays):
        """Return the arrays unchanged, if their dtypes are floating and agree."""
        for a in arrays:
            check_floating(cls.__name__, a)
        same_dtype(cls.__name__, arrays)
        return arrays

    @classmethod
    def shape(cls, *avals, **params):
        """Return the broadcast leading dimensions, followed by those of `core`."""
        cls.promote(avals)
        inputs, outputs = _core_dims(cls.core)
        sizes = {}
        for aval, letters in zip(avals, inputs, strict=True):
            _match_sizes(cls, avals, aval, letters, sizes)
        batch = [a.shape[: a.ndim - len(letters)] for a, letters in zip(avals, inputs, strict=True)]
        lead = broadcast_shapes(cls.__name__, batch)
        dtype = {"same": identity, "real": dtypes.real_of, "complex": dtypes.complex_of}[cls.result](avals[0].dtype)
        results = tuple(Aval((*lead, *(sizes[c] for c in letters)), dtype) for letters in outputs)
        return results if len(results) > 1 else results[0]

    @classmethod
    def fit(cls, g, aval):
        """Undo broadcasting."""
        return sum_to(g, aval.shape)

    @classmethod
    def work(cls, avals, out):
        """Return the product of the sizes in `core`, times the number of matrices."""
        sizes = {}
        for aval, letters in zip(avals, _core_dims(cls.core)[0], strict=True):
            sizes.update(zip(letters, aval.shape[aval.ndim - len(letters) :], strict=True))
        first = out if isinstance(out, Aval) else out[0]
        return math.prod(sizes.values()) * math.prod(first.shape[: first.ndim - len(_core_dims(cls.core)[1][0])])


def _core_dims(core):
    """ "(m,n),(n)->(m)" as ([("m", "n"), ("n",)], [("m",)])."""
    return [
        [tuple(c for c in part.split(",") if c) for part in re.findall(r"\((.*?)\)", side)] for side in core.split("->")
    ]


def _match_sizes(cls, avals, aval, letters, sizes):
    """Match `letters` with the sizes of an operand; a ValueError shows all shapes if they do not fit."""
    own = aval.shape[max(aval.ndim - len(letters), 0) :]
    if len(own) < len(letters) or any(sizes.setdefault(c, size) != size for c, size in zip(letters, own, strict=True)):
        listed = " and ".join(str(tuple(a.shape)) for a in avals)
        raise ValueError(f"{cls.__name__}: {_pytorch_matrix(cls.core, avals)}shapes {listed} do not fit {cls.core}")


def _pytorch_matrix(core, avals):
    """Return PyTorch's words where a matrix is missing, or one that must be square is not."""
    shape = tuple(avals[0].shape)
    needed = len(_core_dims(core)[0][0])
    if len(shape) < needed:
        return f"The input tensor A must have at least {needed} dimensions: "
    if not core.startswith("(m,m)") or len(shape) < 2 or shape[-1] == shape[-2]:
        return ""
    return f"A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices: "


def identity(dtype):
    """Return the dtype itself."""
    return dtype


class View(Family, view="one", elements="moved"):
    """Views the memory of its first input in another shape."""

    @classmethod
    def batch(cls, batched, n, /, x, **params):
        """Apply the same view to each example."""
        return apply_views(x, cls.batched_views((n, *x.shape[1:]), **params))

    @classmethod
    def batched_views(cls, batch_shape, /, **params):
        """Return a chain of view operators, (name, params), which views each example of a batch."""
        raise NotBatchedError(f"{cls.__name__}: there is no batching rule for it; use vmap(..., fallback='loop')")


def apply_views(x, chain):
    """Apply a chain of view operators, (name, params), to a tensor."""
    for name, params in chain:
        x = call_fast(registry[name], (x,), params)
    return x


def same_dtype(name, avals, words=""):
    """Raise a RuntimeError unless the operands have one dtype; `words` are PyTorch's for that operator."""
    kinds = dict.fromkeys(a.dtype for a in avals if a is not None)
    if len(kinds) > 1:
        listed = " and ".join(map(str, kinds))
        raise RuntimeError(f"{name}: {words}operands must have one dtype, got {listed}; convert one with .to(dtype)")


def check_floating(name, x, way_out="convert with .to(dtype) first"):
    """Raise unless the dtype is floating or complex."""
    if not dtypes.is_differentiable(x.dtype):
        raise TypeError(f"{name}: expected a floating or complex dtype, got {x.dtype}; {way_out}")


def check_real(name, x, way_out="convert with .to(dtype) first"):
    """Raise unless the dtype is real and floating."""
    if not dtypes.is_floating(x.dtype):
        raise TypeError(f"{name}: expected a real floating dtype, got {x.dtype}; {way_out}")


class Composite(Family, differentiable=False):
    """Defined by other operators in `compose`: all rules follow from theirs."""

    @classmethod
    def prepare(cls, schema):
        """Make `compose` return its result in the memory order of the first input, if the operator keeps that."""
        super().prepare(schema)
        if cls.memory:
            cls.compose = _in_memory_order(cls.compose, ORDERS[cls.memory])

    @classmethod
    def shape(cls, *avals, **params):
        """Fail: a composite operator has no shape rule; the operators it calls have."""
        raise NotImplementedError(f"{cls.__name__}: composed of other operators; ask those for shapes")


def _in_memory_order(compose, orders):
    """Return a `compose` whose result has the memory order of the first input, if that is one of these."""

    @wraps(compose)
    def run(x, *args, **params):
        out = compose(x, *args, **params)
        order = None if x.level is not None else find_order(orders, x.value)
        if order is None or out.ndim != x.ndim or find_order(orders, out.value) is not None:
            return out
        return registry["copy_in_order"](out, order)

    return run


def pointwise(schema, impl, doc, *, samples=None, internal=False, **rules):
    """Define a simple pointwise operator from its schema, kernel, docstring and derivative rules.

    `vjp=` and `jvp=` are the rules of one input; `vjp_a=` and `vjp_b=` those of two.  `domain=(low, high)` is the
    range of the samples; `internal=True` makes the operator `Internal`; further keywords are traits of the class.
    """
    body = {"__doc__": doc, "impl": impl, "__module__": sys._getframe(1).f_globals["__name__"]}
    traits = {}
    first = schema.split("(")[1].split(",")[0].split(")")[0].split()[1]
    domain, base = rules.pop("domain", (-2.0, 2.0)), rules.pop("family", Pointwise)
    for name, value in rules.items():
        if name in ("vjp", "jvp"):
            body[f"{name}_{first}"] = value
        elif name.startswith(("vjp_", "jvp_")) or callable(value):
            body[name] = value
        else:
            traits[name] = value
    body["samples"] = samples or _plain_samples(schema.count("Tensor "), domain)
    bases = (Internal, base) if internal else (base,)
    return op(schema)(_define_class(schema.split("(")[0], bases, body, traits))


def _define_class(name, bases, body, traits):
    return type(bases[-1])(name, bases, body, **traits)


def _plain_samples(inputs, domain):
    def one(r):
        yield (r(3, 2, within=domain),), {}
        yield (r(within=domain),), {}

    def two(r):
        yield (r(3, within=domain), r(3, within=domain)), {}
        yield (r(4, 1, within=domain), r(3, within=domain)), {}

    return one if inputs == 1 else two


def kernels_support(x, *given):
    """Whether the compiled kernels support the dtype: single or double precision, and the same for all operands."""
    dtype = x.dtype
    for t in given:
        if t is not None and t.dtype is not dtype and t.dtype != dtype:
            return False
    return dtype.char in "fd"


def shape_without(shape, dim):
    """Return the shape without a dimension."""
    at = dim % max(len(shape), 1)
    return (*shape[:at], *shape[at + 1 :])


def numel(shape):
    """Return the number of elements of a shape."""
    return math.prod(shape)


__all__ = [
    "AlongDims",
    "Comparison",
    "Composite",
    "CoreDims",
    "Gufunc",
    "Pointwise",
    "Reduction",
    "Rowwise",
    "View",
    "apply_views",
    "broadcast_dims",
    "broadcast_like",
    "broadcast_shapes",
    "canonical_dim",
    "canonical_dims",
    "cast_to",
    "check_floating",
    "check_real",
    "kernels_support",
    "numel",
    "shape_without",
    "operator_named",
    "pointwise",
    "reduced_shape",
    "restore_dims",
    "same_dtype",
    "shift_dims",
    "sum_to",
]
