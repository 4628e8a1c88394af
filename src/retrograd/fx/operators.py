"""Operators that occur in graphs only: selection of results, guards, writes under no_grad."""

from typing import Any

from retrograd.core import Aval, Internal, op, operator_named
from retrograd.ops.batching import broadcast_batch
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Composite


@op("pick(any outputs, any index) -> Tensor")
class pick(Internal, Composite):
    """Return one of the results of an operator that has several, by its number or its key."""

    def compose(*, outputs: Any, index: Any) -> Any:
        return outputs[index]

    def oracle(np: Any, *, outputs: Any, index: Any) -> Any:
        return outputs[index]

    def samples(r: Any) -> Any:
        yield (), {"outputs": (r(2), r(3)), "index": 1}
        yield (), {"outputs": {"a": r(2)}, "index": "a"}


@op("guard(Tensor x, Tensor expected, *, str source) -> Tensor")
class guard(Internal, differentiable=False, impure=True):
    """Raise a RuntimeError if x differs from what the trace read at `source`."""

    def impl(xp: Any, x: Any, expected: Any, *, source: str) -> Any:
        if not xp.array_equal(x, expected, equal_nan=True):
            raise RuntimeError(
                f"guard: {source} read the value {_short(expected)} when this code was traced; now it is "
                f"{_short(x)}, for which the code might take another branch. Trace again with inputs like these."
            )
        return xp.asarray(True)

    def shape(x: Any, expected: Any, *, source: str) -> Aval:
        return Aval((), "bool")

    def batch(batched: Any, n: int, x: Any, expected: Any, *, source: str) -> Any:
        expected = expected if batched[1] else broadcast_batch(as_tensor(expected, x.dtype), n)
        x = x if batched[0] else broadcast_batch(x, n)
        return broadcast_batch(operator_named("guard")(x, expected, source=source), n)

    def oracle(np: Any, x: Any, expected: Any, source: str) -> Any:
        return np.array_equal(x, expected)

    def samples(r: Any) -> Any:
        same = r.ints(9, (3, 2))
        yield (same, same), {"source": "model.py:1 in forward"}

    def errors(r: Any) -> Any:
        x = r.ints(3, (2,))
        yield (x, x + 3), {"source": "model.py:1 in forward"}, RuntimeError, "model.py:1"


@op("overwritten(Tensor x, Tensor numbers) -> Tensor")
class overwritten(Internal, elements="moved"):
    """Return x after a write outside the graph, as under no_grad: the new values, and the derivatives of x."""

    def impl(xp: Any, x: Any, numbers: Any) -> Any:
        return xp.array(numbers, copy=True)

    def shape(x: Any, numbers: Any) -> Any:
        return x

    def vjp_x(g: Any) -> Any:
        return g

    def jvp_x(t: Any) -> Any:
        return t

    def batch(batched: Any, n: int, x: Any, numbers: Any) -> Any:
        batched_args = [
            a if b else broadcast_batch(as_tensor(a), n) for a, b in zip((x, numbers), batched, strict=True)
        ]
        return operator_named("overwritten")(*batched_args)

    def oracle(np: Any, x: Any, numbers: Any) -> Any:
        return numbers

    def samples(r: Any) -> Any:
        yield (r.ints(9, (3, 2)), r.ints(9, (3, 2))), {}


PICK, GUARD, OVERWRITTEN = map(operator_named, ("pick", "guard", "overwritten"))


def _short(value: Any) -> str:
    text = str(value).replace("\n", "")
    return text if len(text) <= 60 else text[:57] + "..."
