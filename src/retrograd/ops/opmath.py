"""Half precision computed in single precision, for float16 inputs of operators with the trait `opmath`.

Squares of numbers from 256 on overflow float16, and sums of some thousand numbers lose their digits in it.  So PyTorch
computes with float32, its "opmath type", and rounds the result; the derivatives too.
"""

from functools import wraps

from retrograd.core import Aval, Definition, Tensor, operator_named
from retrograd.core.dtype import float16, float32


class Family(Definition):
    """The base class of the families of operators; `opmath` names the float16 inputs that they replace by float32."""

    opmath = ""

    @classmethod
    def bind(cls, namespace):
        """Return the kernel over one namespace."""
        kernel = super().bind(namespace)
        return kernel_in_single(kernel) if cls.opmath else kernel

    @classmethod
    def prepare(cls, schema):
        """Make the rules, or `compose`, compute in float32."""
        if cls.opmath:
            widen(cls, schema)


def widen(definition, schema):
    """Make the rules or the `compose` of a definition compute with float32 in place of float16."""
    if definition.compose is not None:
        definition.compose = _wrap_compose(definition.compose, definition.opmath.split(), schema)
    for kind in ("vjp_", "jvp_"):
        for parameter in schema.inputs:
            rule = getattr(definition, kind + parameter.name, None)
            if rule is not None:
                setattr(definition, kind + parameter.name, _wrap_rule(rule))


def kernel_in_single(kernel):
    """Return the kernel that computes in float32 and rounds its result to float16 if given float16."""

    def computed(*arrays, **params):
        for a in arrays:
            if getattr(a, "dtype", None) == float16:
                return _run_in_single(kernel, arrays, params)
        return kernel(*arrays, **params)

    return computed


def _run_in_single(kernel, arrays, params):
    dtype = params.get("dtype")
    if dtype is not None and dtype != float16:  # an explicit dtype determines the precision
        return kernel(*arrays, **params)
    params = {**params, "dtype": None} if "dtype" in params else params
    return _map_values(_array_to_half, kernel(*[_array_to_single(a) for a in arrays], **params))


def _wrap_rule(rule):
    """Return the derivative rule that computes in float32 if its cotangent or tangent is float16."""

    @wraps(rule)
    def computed(g, *args, **named):
        if not _is_half(g):
            return rule(g, *args, **named)
        wide = [_map_values(_to_single, a) for a in (g, *args)]
        return _map_values(_to_half, rule(*wide, **{k: _map_values(_to_single, a) for k, a in named.items()}))

    return computed


def _wrap_compose(compose, names, schema):
    """Return the composite that computes in float32 if its inputs `names` are float16."""
    inputs = [p.name for p in schema.inputs]
    chosen = [name in names for name in inputs]

    @wraps(compose)
    def computed(*args, **params):
        if not _are_half(args) or params.get("dtype") is not None:
            return compose(*args, **params)
        wide = [_to_single(a) if chosen[min(i, len(chosen) - 1)] else a for i, a in enumerate(args)]
        return _map_values(_to_half, compose(*wide, **params))

    return computed


def _are_half(args):
    """Return whether there are float16 tensors, and none of another floating dtype, which would win in promotion."""
    found = False
    for a in args:
        if isinstance(a, Tensor):
            dtype = a.dtype
            if dtype == float16:
                found = True
            elif dtype.kind in "fc":
                return False
    return found


def _is_half(g):
    """Return whether a cotangent, or one of several, is float16."""
    return any(map(_is_half, g)) if isinstance(g, (tuple, list)) else isinstance(g, Tensor) and g.dtype == float16


def _map_values(change, value):
    """Apply a function to a value, or to each member of a tuple or list; named tuples keep their type."""
    if isinstance(value, (tuple, list)):
        members = [_map_values(change, member) for member in value]
        return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
    return change(value)


def _to_single(value):
    if isinstance(value, Tensor) and value.dtype == float16:
        return operator_named("to")(value, float32)
    return Aval(value.shape, float32) if isinstance(value, Aval) and value.dtype == float16 else value


def _to_half(value):
    return operator_named("to")(value, float16) if isinstance(value, Tensor) and value.dtype == float32 else value


def _array_to_single(a):
    return a.astype(float32) if getattr(a, "dtype", None) == float16 else a


def _array_to_half(a):
    return a.astype(float16) if getattr(a, "dtype", None) == float32 else a
