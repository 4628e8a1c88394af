"""Sources of random numbers: generators over NumPy's Philox, and the default one."""

import math
import operator
import os
import threading

from retrograd.backend import philox
from retrograd.core import dtype as dtypes
from retrograd.core.level import generator_block, thread_values
from retrograd.ops.functions import function
from retrograd.ops.layout import CPU, check_device, is_device


class Generator:
    """A seedable source of random numbers: the counter-based Philox 4x64 of Salmon et al., SC 2011.

    `Generator(seed)`, or as PyTorch has it `Generator("cpu")`.  Generators pickle and copy with their state.

    >>> g = Generator().manual_seed(7)
    >>> g.initial_seed()
    7
    """

    def __init__(self, seed=0, *, device=None):
        self._lock = threading.Lock()
        check_device(seed if is_device(seed) else device)
        self.manual_seed(0 if is_device(seed) else seed)

    @property
    def device(self):
        """Where the generator draws: on the CPU."""
        return CPU

    def manual_seed(self, seed):
        """Start anew from a seed, an integer of at most 64 bits; returns the generator itself.

        A negative one stands for the seed that is larger by 2**64.
        """
        if not hasattr(seed, "__index__") or not -(2**63) <= (seed := operator.index(seed)) < 2**64:
            raise ValueError(f"manual_seed: expected an integer from -2**63 to 2**64 - 1, got {seed!r}")
        self._seed, self._made = seed % 2**64, None  # made when first drawn from: importing NumPy's takes a while
        return self

    def seed(self):
        """Start anew from a seed that the operating system draws; returns it."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    @property
    def _source(self):
        if self._made is None:
            self._made = philox.random_source(self._seed)
        return self._made

    def initial_seed(self):
        """The seed that the generator was started from."""
        return self._seed

    def get_state(self):
        """The state as plain data, for `set_state`."""
        return {"seed": self._seed, **self._source.bit_generator.state}

    def set_state(self, state):
        """Go on from a state that `get_state` gave."""
        self._source.bit_generator.state = state
        self._seed = state.get("seed", self._seed)

    def clone_state(self):
        """A generator of its own that goes on from the same state."""
        other = Generator()
        other.set_state(self.get_state())
        return other

    def __reduce__(self):
        return _restored, (self.get_state(),)

    def draw(self, method, *args, **kwargs):
        """Numbers from the source's method of that name; one thread draws at a time."""
        with self._lock:
            if method == "random":
                return philox.uniform(self._source, *args)
            return getattr(self._source, method)(*args, **kwargs)

    def skip(self, method, *args):
        """Go on as if `draw` had been called: for uniform numbers that takes no time."""
        if method != "random":
            self.draw(method, *args)
            return
        size, dtype = (*args, dtypes.float64)[:2]
        with self._lock:
            philox.skip_uniform(self._source, math.prod(size), dtype)


def _restored(state):
    """A generator in a state."""
    made = Generator()
    made.set_state(state)
    return made


default_generator = Generator()


class _Redirection(threading.local):
    """Who draws in place of a generator, in this thread."""

    to = None


_redirection = _Redirection()
thread_values.append(_redirection)


@generator_block
def redirected(to):
    """Inside, in this thread, operators draw from `to(generator)`, which has its `draw`, not from the generator."""
    before, _redirection.to = _redirection.to, to
    try:
        yield
    finally:
        _redirection.to = before


@generator_block
def replayed(states):
    """Inside, in this thread, every generator draws what it drew in the block that first had this dict.

    The generators are found as they draw; `states` gets from each what it was before.
    """
    for generator, state in states.values():
        generator.set_state(state)
    outer = _redirection.to

    def remembered(generator):
        if id(generator) not in states:
            states[id(generator)] = generator, generator.get_state()
        return generator if outer is None else outer(generator)

    with redirected(remembered):
        yield


def chosen(generator):
    """What draws: the generator that is given, or the default one, unless draws are redirected."""
    generator = default_generator if generator is None else generator
    if not isinstance(generator, Generator):
        raise TypeError(f"generator: expected a rg.Generator, got {type(generator).__name__}")
    return generator if _redirection.to is None else _redirection.to(generator)


@function()
def manual_seed(seed):
    """Seed the default generator, and return it.

    >>> import retrograd as rg
    >>> rg.manual_seed(0).initial_seed()
    0
    """
    return default_generator.manual_seed(seed)


@function()
def seed():
    """Seed the default generator with a number that the operating system draws, and return that."""
    return default_generator.seed()


@function()
def initial_seed():
    """The seed that the default generator was started from."""
    return default_generator.initial_seed()


@function()
def get_rng_state():
    """The default generator's state, for `set_rng_state`."""
    return default_generator.get_state()


@function()
def set_rng_state(new_state):
    """Put the default generator into a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@generator_block
def fork_rng(devices=None, enabled=True):
    """A block after which the default generator goes on as if nothing had been drawn in it.

    `devices`, other ones whose generators would be kept, may be empty; with enabled=False nothing is kept.

    >>> before = str(get_rng_state())
    >>> with fork_rng():
    ...     _ = default_generator.seed()
    >>> str(get_rng_state()) == before
    True
    """
    for device in devices or ():
        check_device(device)
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
