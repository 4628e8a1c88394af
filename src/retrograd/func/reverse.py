"""Reverse mode as a function transform: `grad` and `vjp`, each with a graph of its own."""

from collections.abc import Callable
from typing import Any

from retrograd.core import Level, Op, Tensor, at, call, registry
from retrograd.core.engine import edge_of, pullback
from retrograd.core.hooks import conjugate
from retrograd.core.tensor import make
from retrograd.func.lift import lift, outputs
from retrograd.ops.create import as_tensor


class GradLevel(Level):
    """The identity: it exists to own an autograd graph, so that no `create_graph` is needed below."""

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """The operator on the values."""
        below = [a.value if isinstance(a, Tensor) and a.level is self else a for a in args]
        out = op(*below) if op.simple and op.simple == len(below) else call(op, tuple(below), params)
        return make(out, self, None) if isinstance(out, Tensor) else outputs(out, lambda o: make(o, self, None))


def vjp(func: Callable, *primals: Tensor) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, ...]]]:
    """The value of `func` at the primals, and the function that pulls a cotangent back to them.

    >>> import retrograd as rg
    >>> out, pull = rg.func.vjp(rg.sin, rg.zeros(2))
    >>> pull(rg.ones(2))
    (tensor([1., 1.]),)
    """
    level, values = GradLevel(), [as_tensor(x) for x in primals]
    with level:
        leaves = tuple(_leaf(x, level) for x in values)
        out = lift(level, func(*leaves))

    def pull(cotangent: Tensor) -> tuple[Tensor, ...]:
        if cotangent.shape != out.shape:
            raise ValueError(f"vjp: the cotangent has shape {cotangent.shape}, the output {out.shape}")
        with level:
            return tuple(conjugate(g).value for g in _pull(out, conjugate(make(cotangent, level, None)), leaves))

    return out.value, pull


def grad(func: Callable) -> Callable:
    """The function that gives the gradient of a scalar function with respect to its first argument.

    >>> import retrograd as rg
    >>> rg.func.grad(lambda x: (x**3).sum())(rg.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    """

    def gradient(x: Tensor, *rest: Any) -> Tensor:
        value = as_tensor(x)
        with GradLevel() as level:
            leaf = _leaf(value, level)
            out = lift(level, func(leaf, *rest))
            if out.shape != () or out.dtype.kind != "f":
                raise ValueError(f"grad: the function must return a real scalar, got {out.aval}; use vjp")
            with at(level, False):
                seed = registry["ones_like"](out)
            (g,) = _pull(out, seed, (leaf,))
            return conjugate(g).value

    return gradient


def _leaf(x: Tensor, level: Level) -> Tensor:
    leaf = make(x, level, None)
    leaf.requires_grad = True
    return leaf


def _pull(out: Tensor, seed: Tensor, leaves: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Cotangents of the leaves at their level, zeros where nothing flows; every rule runs one level below."""
    found: dict = {}
    if out.requires_grad:
        inputs = [edge_of(leaf) for leaf in leaves]
        found = pullback([edge_of(out)], [seed], level=out.level, inputs=inputs, retain_graph=True)
    with at(out.level, False):
        return tuple(found[x] if x in found else registry["zeros_like"](x) for x in leaves)
