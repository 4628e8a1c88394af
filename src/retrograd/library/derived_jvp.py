"""Forward derivatives by transposing a gradient formula, with a check that the formula is linear."""

import math
from collections.abc import Sequence

from retrograd.backend.type_info import finfo
from retrograd.core import Level, Tensor, at, current, registry
from retrograd.levels import value_at
from retrograd.levels.batch import VmapLevel

Pairs = Sequence[tuple[Tensor, Tensor]]


def probe_cotangent(like: Tensor) -> Tensor:
    """Return distinct values: a cotangent that a formula can't treat as a constant."""
    n = registry["arange"](1, like.numel() + 1, 1)
    cosines = registry["reshape"](registry["cos"](n), like.shape)
    if like.dtype.kind == "c":
        cosines = registry["complex"](cosines, registry["reshape"](registry["sin"](n), like.shape))
    return registry["to"](cosines, like.dtype)


def check_transposed(name: str, outs: Pairs, inputs: Pairs) -> None:
    """Raise if tangents contradict the formula, given (cotangent, tangent) pairs of outputs and of inputs.

    If a formula maps the cotangent w to f(w), the tangents u of the outputs and t of the inputs satisfy
    <w, u> = <f(w), t>, except if one of its terms has left the graph or is not linear.  NaN passes the check.
    """
    level = current().level
    with at(None, False):
        (left, scale), (right, other) = _inner_products(level, outs), _inner_products(level, inputs)
        precision = max([finfo(x.dtype).eps for pair in (*outs, *inputs) for x in pair])
        wrong = registry["abs"](left - right) > math.sqrt(precision) * (scale + other)
        if bool(registry["any"](wrong)):
            raise NotImplementedError(
                f"{name}: its forward derivative can't be derived from its gradient formula, which leaves the graph "
                f"(it goes through NumPy, or detaches), or is not linear in the gradient that it gets; register one by "
                f"impl_jvp"
            )


def _inner_products(level: Level | None, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Return for each example the real sum of the products of all pairs, and a bound of its magnitude."""
    total = scale = registry["zeros"](())
    for a, b in pairs:
        product = registry["real"](_at_ground(level, a) * _at_ground(level, b))
        total = total + registry["sum"](product, dim=-1)
        scale = scale + registry["sum"](registry["abs"](product), dim=-1)
    return total, scale


def _at_ground(level: Level | None, x: Tensor) -> Tensor:
    """Return a tensor at the ground with a dimension per enclosing batch (1 if shared) and one for its elements."""
    sizes = [math.prod(x.shape)]
    while level is not None:
        if isinstance(level, VmapLevel):
            sizes.insert(0, level.size if level.differs(x) else 1)
        x, level = value_at(level, x), level.parent
    return registry["reshape"](x, sizes)
