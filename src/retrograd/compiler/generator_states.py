"""The states of random generators that a program saves and restores, as a checkpoint does to draw numbers again."""

from typing import Any

from retrograd.core.tensor import make
from retrograd.ops.random import Generator


def read_state(generator: Generator) -> Any:
    """Return the state of a generator as an array of bytes."""
    return generator.get_state().value


def restore_state(state: Any, generator: Generator) -> tuple:
    """Restore a state that `read_state` returned."""
    generator.set_state(make(state, None, None))
    return ()
