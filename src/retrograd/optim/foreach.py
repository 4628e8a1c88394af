"""Steps of many small parameters at once, in one buffer of all of them: PyTorch's `foreach`.

A step of a small parameter is nearly all overhead. An elementwise update gives each element the same bits wherever it
is, so it may run on the concatenated parameters, gradients and states, whose results are then copied back.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from retrograd.core import Tensor, current
from retrograd.core.tensor import split_plain
from retrograd.ops.fused_update import are_all_plain, are_apart, join, write_joined

Update = TypeVar("Update", bound=Callable[..., Any])
Group = dict[str, Any]
State = dict[str, Any]
Batch = tuple[list[Any], list[Any], list[State]]  # parameters, their gradients and states

MOST_ELEMENTS = 4096  # of one parameter: the copies of larger ones take as long as the overhead that they save
BUFFER = 1 << 16  # elements of a buffer, which fits into the second cache


def elementwise(update: Update) -> Update:
    """Decorator: declare that an optimizer's `update` computes every element from those at its index and from numbers.

    The operators must be such that the bits of an element don't depend on its index, except the sign of a NaN: sums,
    products, quotients, square roots and comparisons. A subclass that overrides the method has to declare its own.
    """
    update.elementwise = True  # type: ignore[attr-defined]
    return update


def split_batches(optimizer: Any, group: Group) -> tuple[list[Batch], list[Any]]:
    """Return batches of parameters that an update may take together, and the parameters that it takes one by one."""
    params: list[Any] = group["params"]
    thread = current()
    allowed = getattr(optimizer.update, "elementwise", False) and group.get("foreach") is not False
    if not allowed or len(params) < 2 or thread.level is not None or thread.watchers is not None:
        return [], params
    plain, grads, others = split_plain(params, MOST_ELEMENTS)
    if len(plain) < 2 or thread.grad_enabled:
        return [], params
    states = [optimizer.state[p] for p in plain]  # a defaultdict, which makes those that are missing
    batches: list[Batch] = []
    for batch in _batches_of_one_kind(plain, grads, states):
        if _may_step_together(*batch) and not (optimizer.steps_on_parts and batch[0][0].dtype.kind == "c"):
            batches += _buffers(*batch)
        else:
            others += batch[0]
    return batches, others


def _may_step_together(params: list[Any], grads: list[Any], states: list[State]) -> bool:
    own = [value for state in states if state for value in state.values() if isinstance(value, Tensor)]
    return len(params) > 1 and are_all_plain(own) and are_apart(params + own, grads)


def _select(batch: Batch, members: list[int]) -> Batch:
    params, grads, states = batch
    return [params[i] for i in members], [grads[i] for i in members], [states[i] for i in members]


def _batches_of_one_kind(params: list[Any], grads: list[Any], states: list[State]) -> list[Batch]:
    """Return batches of parameters that agree in dtype, in the names of their state, and in its numbers."""
    batch = params, grads, states
    if not any(states) and len({p.dtype for p in params}) == 1:
        return [batch]
    groups: dict[Any, list[int]] = {}
    for i, (p, state) in enumerate(zip(params, states, strict=True)):
        kind: list[Any] = [p.dtype]
        for name, value in state.items():
            if isinstance(value, Tensor):
                kind += (name,) if value.shape == p.shape and value.dtype == p.dtype else (name, i)
            else:
                kind += (name, value)
        groups.setdefault(tuple(kind), []).append(i)
    return [_select(batch, members) for members in groups.values()]


def _buffers(params: list[Any], grads: list[Any], states: list[State]) -> Iterator[Batch]:
    """Yield the parts of a batch that fit into one buffer each."""
    begin = size = 0
    for number, p in enumerate(params):
        more = p.value.size
        if size + more > BUFFER:
            yield params[begin:number], grads[begin:number], states[begin:number]
            begin, size = number, 0
        size += more
    yield params[begin:], grads[begin:], states[begin:]


def update_batch(optimizer: Any, batch: Batch, group: Group) -> None:
    """Take one step for all parameters of a batch."""
    params, grads, states = batch
    first = states[0]
    names = [name for name, value in first.items() if isinstance(value, Tensor)]
    joined: State = {**first, **{name: join([state[name] for state in states]) for name in names}}
    param = join(params)
    optimizer.update(param, join(grads), joined, group)
    write_joined(param, params)
    for name, value in joined.items():
        if not isinstance(value, Tensor):
            for state in states:
                state[name] = value
        elif name in names:
            write_joined(value, [state[name] for state in states])
        else:
            _add_entries(name, value, params, states)


def _add_entries(name: str, joined: Any, params: list[Any], states: list[State]) -> None:
    """Give each state its part of a new entry, in memory of its own."""
    start = 0
    for p, state in zip(params, states, strict=True):
        end = start + p.value.size
        state[name] = joined[start:end].reshape(p.shape).clone()
        start = end
