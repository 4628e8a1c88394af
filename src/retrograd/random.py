"""The default source of random numbers, under the names of torch.random."""

from retrograd.foundation.lazy_imports import lazy_names
from retrograd.ops.generator import (
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
    "thread_safe_generator",  # noqa: F822  # a higher layer adds it
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__, {})
