"""Half precision computed in single precision: float16 by operators with the trait `opmath`, bfloat16 by all.

Squares of numbers from 256 on overflow float16, and sums of some thousand numbers lose their digits in it.  So PyTorch
computes with float32, its "opmath type", and rounds the result; the derivatives too.  `core/widening.py` has the
kernels, and those of bfloat16, which all operators compute so.
"""

from functools import partial, wraps

from retrograd.core import Definition, Tensor
from retrograd.core.dtype import is_differentiable, is_half
from retrograd.core.tensor import have_no_half
from retrograd.core.widening import kernel_in_single, map_values, rule_in_single, to_half, to_single


class Family(Definition):
    """The base class of the families of operators.

    opmath: names the inputs that they replace by float32 if half.  mixed: the first input may be half while others are
    not, and gives the result its dtype.
    """

    opmath = ""
    mixed = False

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
    """Make the rules or the `compose` of a definition compute with float32 in place of half precision."""
    if definition.compose is not None:
        definition.compose = _wrap_compose(definition, schema)
    for kind in ("vjp_", "jvp_"):
        for parameter in schema.inputs:
            rule = getattr(definition, kind + parameter.name, None)
            if rule is not None:
                setattr(definition, kind + parameter.name, rule_in_single(rule))


def _wrap_compose(definition, schema):
    """Return the composite that computes in float32 if its inputs in `opmath` have half precision."""
    compose, names, inputs = definition.compose, definition.opmath.split(), [p.name for p in schema.inputs]
    chosen = [name in names for name in inputs]

    @wraps(compose)
    def run_widened(*args, **params):
        half = None if have_no_half(args) else _common_half(args[:1] if definition.mixed else args)
        if half is None or params.get("dtype") is not None:
            return compose(*args, **params)
        wide = [to_single(a) if chosen[min(i, len(chosen) - 1)] else a for i, a in enumerate(args)]
        return map_values(partial(to_half, half), compose(*wide, **params))

    return run_widened


def _common_half(args):
    """Return the dtype of tensors of half precision; None if there are none, or others, which win in promotion."""
    found = None
    for a in args:
        if isinstance(a, Tensor):
            dtype = a.dtype
            if is_half(dtype) and found in (None, dtype):
                found = dtype
            elif is_differentiable(dtype):
                return None
    return found
