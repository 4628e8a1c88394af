"""The default source of random numbers, under the names of torch.random."""

from retrograd.foundation.lazy_imports import lazy_names
from retrograd.ops.generator import default_generator as default_generator
from retrograd.ops.generator import fork_rng as fork_rng
from retrograd.ops.generator import get_rng_state as get_rng_state
from retrograd.ops.generator import initial_seed as initial_seed
from retrograd.ops.generator import manual_seed as manual_seed
from retrograd.ops.generator import seed as seed
from retrograd.ops.generator import set_rng_state as set_rng_state

__getattr__, __dir__ = lazy_names(__name__, {})
