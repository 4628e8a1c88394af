"""How an optimizer takes its next step by a kernel, as data, so that a plan can take it for all parameters at once."""

from typing import Any, NamedTuple


class Update(NamedTuple):
    """The next step: a kernel of `retrograd.kernels`, the names of the states it writes, and the numbers it takes.

    `entries` are the entries of the new state that are no tensors. An optimizer returns it from `next_update(state,
    group)`, next to its `update`.
    """

    kernel: str
    names: tuple[str, ...]
    numbers: tuple[float, ...]
    entries: dict[str, Any]
