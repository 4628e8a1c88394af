"""Forward mode: tangents travel with values."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Level, Op, Tensor, call, registry
from retrograd.core.tensor import make
from retrograd.func.lift import lift, outputs, value_at


class DualLevel(Level):
    """A tensor's tag is its tangent, a tensor of the parent level; None is zero."""

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """The operator on the values, and its derivative along the tangents."""
        primals = tuple(value_at(self, a) for a in args)
        tangents = tuple(a.tag if isinstance(a, Tensor) and a.level is self else None for a in args)
        out = call(op, primals, params)
        if not op.differentiable or all(t is None for t in tangents):
            return outputs(out, lambda o: make(o, self, None))
        dots = op.definition.jvp(op, primals, tangents, out, params)
        if isinstance(out, tuple):
            pairs = zip(out, dots, strict=True)
            return tuple(make(o, self, t) if isinstance(o, Tensor) else o for o, t in pairs)
        return make(out, self, dots)


def jvp(func: Callable, primals: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The value of `func` at the primals and its derivative along the tangents, in one forward pass.

    Raises ValueError where a tangent's shape differs from its primal's.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0])
    >>> rg.func.jvp(lambda x: x * x, (x,), (rg.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    for i, (x, t) in enumerate(zip(primals, tangents, strict=True)):
        if x.shape != t.shape:
            raise ValueError(f"jvp: tangent {i} has shape {t.shape}, its primal {x.shape}")
    with DualLevel() as level:
        out = lift(level, func(*[make(x, level, t) for x, t in zip(primals, tangents, strict=True)]))
    return out.value, registry["zeros_like"](out.value) if out.tag is None else out.tag
