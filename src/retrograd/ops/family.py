"""Families of operators: what a whole family shares is derived here, once.

Rules of a family use the class methods below; the operators that these need (`sum`, `reshape`, `to`) are
looked up by name when a rule runs, since they are defined by families themselves.
"""

import math
import re
import sys

from retrograd.core import Aval, Definition, dtype_of, op, operator_named, registry, shape_of
from retrograd.core import dtype as dtypes
from retrograd.core.gradfn import arguments


def broadcast_shapes(name, shapes):
    """The common shape of operands that broadcast; a ValueError names the first dimension that does not fit."""
    ndim = max(len(s) for s in shapes)
    out = []
    for i in range(-ndim, 0):
        sizes = {s[i] for s in shapes if len(s) >= -i} - {1}
        if len(sizes) > 1:
            listed = " and ".join(str(tuple(s)) for s in shapes)
            raise ValueError(
                f"{name}: shapes {listed} do not broadcast: dimension {i} is {' and '.join(map(str, sorted(sizes)))}"
            )
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def canonical_dim(name, dim, ndim):
    """`dim` counted from the front; an IndexError names the range that it must be in."""
    if not -ndim <= dim < max(ndim, 1):
        if ndim == 0 and dim == -1:
            return 0
        raise IndexError(f"{name}: dim {dim} is out of range for a tensor of {ndim} dimensions")
    return dim % ndim if ndim else 0


def canonical_dims(name, dims, ndim):
    """The dimensions that `dims` names (None or (): all), counted from the front; none may come twice."""
    if dims is None or dims == ():
        return tuple(range(ndim))
    out = tuple(canonical_dim(name, d, ndim) for d in ((dims,) if isinstance(dims, int) else dims))
    if len(set(out)) < len(out):
        raise ValueError(f"{name}: a dimension is named twice in {dims}")
    return out if ndim else ()


def reduced_shape(shape, dims, keepdim):
    """The shape after reducing `dims`."""
    if keepdim:
        return tuple(1 if i in dims else s for i, s in enumerate(shape))
    return tuple(s for i, s in enumerate(shape) if i not in dims)


def sum_to(g, shape):
    """g summed over the dimensions along which an operand of `shape` was broadcast."""
    if g.shape == shape:
        return g
    lead = g.ndim - len(shape)
    repeated = tuple(lead + i for i, s in enumerate(shape) if s == 1 and g.shape[lead + i] != 1)
    dims = (*range(lead), *repeated)
    if dims:
        g = registry["sum"](g, dim=dims, keepdim=True)
    return registry["reshape"](g, shape) if lead else g


def cast_to(g, dtype):
    """g in another dtype; itself if it has that already."""
    return g if g.dtype == dtype else registry["to"](g, dtype)


class Pointwise(Definition):
    """Acts on each element: shapes broadcast, dtypes are promoted; a vjp rule is g times a partial derivative."""

    promotion = "numeric"
    fits = True
    in_place = True
    result = "same"  # the dtype of the result: "same" as the promoted operands', "bool", or its "real" part
    masks = 0  # leading operands that are booleans and take no part in promotion

    @classmethod
    def compute_dtype(cls, operands):
        """The dtype in which the kernel works."""
        dtype = dtypes.result_type(*[o for o in operands[cls.masks :] if o is not None])
        return dtypes.float_of(dtype) if cls.promotion == "float" else dtype

    @classmethod
    def promote(cls, arrays):
        """The operands as arrays of one dtype."""
        dtype = cls.compute_dtype(arrays)
        return [*arrays[: cls.masks], *[a if a is None else _as_dtype(a, dtype) for a in arrays[cls.masks :]]]

    @classmethod
    def shape(cls, *avals, **params):
        """Broadcast the shapes, promote the dtypes."""
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
        """The Jacobian is diagonal: the partial derivative serves both modes."""
        rule = op.rules[index]
        if rule is None:
            return super().derived_jvp(op, index, t, primals, out, params)
        known = {**op.schema.group(primals), **params, "out": out}
        return spread(rule.fn(t, **{n: known[n] for n in arguments(rule.fn)}), out)


def spread(t, out):
    """A tangent in the shape and dtype of the output that it belongs to."""
    t = cast_to(t, out.dtype)
    return t if t.shape == out.shape else registry["expand"](t, out.shape)


def _as_dtype(a, dtype):
    if not hasattr(a, "dtype"):
        return dtype.type(a) if dtype.kind != "b" else bool(a)
    return a if a.dtype == dtype else a.astype(dtype)


class Comparison(Pointwise, differentiable=False, result="bool"):
    """Compares element by element."""

    @classmethod
    def promote(cls, arrays):
        """The operands as arrays of one dtype; a Python integer that it can't hold, which NumPy compares, as it is."""
        try:
            return super().promote(arrays)
        except OverflowError:
            return arrays


class Rowwise(Definition):
    """Acts along `dim`, maps over the rest, keeps the shape."""

    @classmethod
    def shape(cls, x, *, dim, **params):
        """The shape of the input."""
        canonical_dim(cls.__name__, dim, x.ndim)
        return Aval(x.shape, x.dtype)


class Reduction(Definition):
    """Reduces the dimensions `dim` (None: all) with or without keeping them as size 1."""

    result = "same"  # "same" dtype, "integral" (integers add up in int64), "real", "bool" or "int64"

    @classmethod
    def shape(cls, x, *, dim=None, keepdim=False, **params):
        """The shape without the reduced dimensions."""
        dims = canonical_dims(cls.__name__, dim, x.ndim)
        dtype = {
            "same": x.dtype,
            "integral": dtypes.int64 if x.dtype.kind in "biu" else x.dtype,
            "real": dtypes.real_of(x.dtype),
            "bool": dtypes.bool_,
            "int64": dtypes.int64,
        }[cls.result]
        return Aval(reduced_shape(x.shape, dims, keepdim), dtype)


def kept(reduced, x_aval, dim, keepdim):
    """A reduced tensor with the reduced dimensions back as size 1, so that it broadcasts against the input."""
    if keepdim:
        return reduced
    dims = canonical_dims("reduction", dim, x_aval.ndim)
    return registry["reshape"](reduced, reduced_shape(x_aval.shape, dims, True))


class Gufunc(Definition, fits=True, promotion="same"):
    """Acts on the last dimensions, as `core` says, and maps over those in front, which broadcast.

    `core` is NumPy's notation for such functions, "(m,n),(n)->(m)": a letter is a size, the same wherever it stands.
    Operands have one floating or complex dtype, and so has the result, unless `result` says "real" or "complex".
    """

    core = ""
    result = "same"

    @classmethod
    def promote(cls, arrays):
        """The arrays as they are, if their dtypes are floating and agree."""
        for a in arrays:
            check_floating(cls.__name__, a)
        same_dtype(cls.__name__, arrays)
        return arrays

    @classmethod
    def shape(cls, *avals, **params):
        """The broadcast dimensions in front, then those of `core`."""
        cls.promote(avals)
        inputs, outputs = _core_dims(cls.core)
        sizes = {}
        for aval, letters in zip(avals, inputs, strict=True):
            _match(cls, avals, aval, letters, sizes)
        batch = [a.shape[: a.ndim - len(letters)] for a, letters in zip(avals, inputs, strict=True)]
        lead = broadcast_shapes(cls.__name__, batch)
        dtype = {"same": same, "real": dtypes.real_of, "complex": dtypes.complex_of}[cls.result](avals[0].dtype)
        made = tuple(Aval((*lead, *(sizes[c] for c in letters)), dtype) for letters in outputs)
        return made if len(made) > 1 else made[0]

    @classmethod
    def fit(cls, g, aval):
        """Undo broadcasting."""
        return sum_to(g, aval.shape)

    @classmethod
    def work(cls, avals, out):
        """The product of the sizes that `core` names, for every matrix in the stack."""
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


def _match(cls, avals, aval, letters, sizes):
    """Read the sizes that `letters` stand for off an operand; a ValueError shows all shapes if they do not fit."""
    own = aval.shape[max(aval.ndim - len(letters), 0) :]
    if len(own) < len(letters) or any(
        sizes.setdefault(c, size) != size for c, size in zip(letters, own, strict=True)
    ):
        listed = " and ".join(str(tuple(a.shape)) for a in avals)
        raise ValueError(f"{cls.__name__}: shapes {listed} do not fit {cls.core}")


def same(dtype):
    """The dtype itself."""
    return dtype


class View(Definition, view=True):
    """Shows the memory of its first input in another shape."""


def same_dtype(name, avals):
    """Operands of a product have one dtype, as in PyTorch; a RuntimeError names those that differ."""
    kinds = {a.dtype for a in avals if a is not None}
    if len(kinds) > 1:
        listed = " and ".join(sorted(str(k) for k in kinds))
        raise RuntimeError(f"{name}: operands must have one dtype, got {listed}; convert one with .to(dtype)")


def check_floating(name, x, way_out="convert with .to(dtype) first"):
    """Refuse dtypes that hold no fractions."""
    if x.dtype.kind not in "fc":
        raise TypeError(f"{name}: expected a floating or complex dtype, got {x.dtype}; {way_out}")


def check_real(name, x, way_out="convert with .to(dtype) first"):
    """Refuse dtypes that are not real and floating."""
    if x.dtype.kind != "f":
        raise TypeError(f"{name}: expected a real floating dtype, got {x.dtype}; {way_out}")


class Composite(Definition, inlined=True, differentiable=False):
    """Defined by other operators in `compose`: every rule follows from theirs."""

    @classmethod
    def shape(cls, *avals, **params):
        """A composite has no shape rule of its own: what it calls has."""
        raise NotImplementedError(f"{cls.__name__}: composed of other operators; ask those for shapes")


def pointwise(schema, impl, doc, *, samples=None, **rules):
    """The short form of a plain pointwise operator: signature, kernel, what it does, and its derivative rules.

    Of one input, `vjp=` and `jvp=` are its rules; of two, `vjp_a=` and `vjp_b=`.  `domain=(low, high)` says
    where its samples lie; what else is given is a trait of the class.
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
    return op(schema)(_define(schema.split("(")[0], base, body, traits))


def _define(name, base, body, traits):
    return type(base)(name, (base,), body, **traits)


def _plain_samples(inputs, domain):
    def one(r):
        yield (r(3, 2, within=domain),), {}
        yield (r(within=domain),), {}

    def two(r):
        yield (r(3, within=domain), r(3, within=domain)), {}
        yield (r(4, 1, within=domain), r(3, within=domain)), {}

    return one if inputs == 1 else two


def numel(shape):
    """The number of elements of a shape."""
    return math.prod(shape)


__all__ = [
    "Comparison",
    "Composite",
    "Gufunc",
    "Pointwise",
    "Reduction",
    "Rowwise",
    "View",
    "broadcast_shapes",
    "canonical_dim",
    "canonical_dims",
    "cast_to",
    "check_floating",
    "check_real",
    "kept",
    "numel",
    "operator_named",
    "pointwise",
    "reduced_shape",
    "same_dtype",
    "spread",
    "sum_to",
]
