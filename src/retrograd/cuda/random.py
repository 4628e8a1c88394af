"""Seeds of the device's random numbers.

The default generator is that of `rg.manual_seed`: the numbers on a device are those of the CPU. A generator of its own,
`rg.Generator("cuda")`, can be given to each function that draws.
"""

from collections.abc import Sequence
from typing import Any

from retrograd.cuda.runtime import imported_library, require_library
from retrograd.ops import generator


def manual_seed(seed: int) -> None:
    """Seed the default generator, if a device is in use; nothing otherwise."""
    if imported_library() is not None:
        generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the default generator, which all devices share, if a device is in use; nothing otherwise."""
    manual_seed(seed)


def initial_seed() -> int:
    """Return the seed of the default generator. RuntimeError without a device."""
    require_library("initial_seed")
    return generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of the default generator. RuntimeError without a device."""
    require_library("get_rng_state")
    return generator.get_rng_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Restore a state that `get_rng_state` returned. RuntimeError without a device."""
    require_library("set_rng_state")
    generator.set_rng_state(new_state)


def get_rng_state_all() -> list[Any]:
    """Return the states of all devices' generators: that of the default one; an empty list without a device."""
    return [] if imported_library() is None else [get_rng_state()]


def set_rng_state_all(new_states: Sequence[Any]) -> None:
    """Restore what `get_rng_state_all` returned. RuntimeError for a state without a device."""
    for state in new_states:
        require_library("set_rng_state_all")
        generator.set_rng_state(state)
