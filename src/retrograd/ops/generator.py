"""Random number generators over NumPy's Philox, and the default one."""

import math
import operator
import os
import threading

from retrograd.backend import philox
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.blocks import generator_block
from retrograd.core.device import CPU
from retrograd.core.state import current, thread_values
from retrograd.core.tensor import make
from retrograd.foundation.describe_value import describe
from retrograd.ops.functions import function
from retrograd.ops.layout import check_device, find_device, is_device


class Generator:
    """A seedable source of random numbers: the counter-based Philox 4x64 of Salmon et al., SC 2011.

    `Generator(seed)`, or as PyTorch has it `Generator("cpu")`.  Generators pickle and copy with their state.

    >>> g = Generator().manual_seed(7)
    >>> g.initial_seed()
    7
    """

    def __init__(self, seed=0, *, device=None):
        self._lock = threading.Lock()
        names_device = is_device(seed) or isinstance(seed, str)
        where = find_device(seed if names_device else device)
        self._device = CPU if where is None else where.device
        self.manual_seed(0 if names_device else seed)

    def __repr__(self):
        return f"Generator(seed={self._seed})" if self._made is None else f"Generator(seed={self._seed}, started)"

    @property
    def device(self):
        """The device that the generator was made for; its numbers are on the device of the tensors that are drawn."""
        return self._device

    def manual_seed(self, seed):
        """Seed the generator with an integer of at most 64 bits; returns the generator itself.

        A negative seed is taken modulo 2**64.
        """
        if not hasattr(seed, "__index__") or not -(2**63) <= (seed := operator.index(seed)) < 2**64:
            raise ValueError(f"manual_seed: expected an integer from -2**63 to 2**64 - 1, got {seed!r}")
        self._seed, self._made = seed % 2**64, None  # made at the first draw: importing NumPy's takes a while
        return self

    def seed(self):
        """Seed the generator from the operating system; returns the seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    @property
    def _source(self):
        if self._made is None:
            self._made = philox.random_source(self._seed)
        return self._made

    def initial_seed(self):
        """Return the seed that the generator was started from."""
        return self._seed

    def get_state(self):
        """Return the state as a tensor of bytes, for `set_state`."""
        return make(philox.pack_state(self._seed, self._source.bit_generator.state), None, None)

    def set_state(self, state):
        """Restore a state that `get_state` returned, also in an earlier version, as a dict.

        Raises TypeError for other than a tensor of bytes or such a dict, RuntimeError for a tensor of another size.
        """
        if isinstance(state, dict):
            self._set_plain_state(state)
            return
        if not isinstance(state, Tensor) or state.dtype != dtypes.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, as get_state returns, got {describe(state)}")
        try:
            seed, plain = philox.unpack_state(state.cpu().detach().numpy())
        except ValueError as error:
            raise RuntimeError(f"{error}; a state of PyTorch's generators does not fit: set a seed") from error
        self._set_plain_state({"seed": seed, **plain})

    def _plain_state(self):
        """Return the state as a dict of numbers and arrays."""
        return {"seed": self._seed, **self._source.bit_generator.state}

    def _set_plain_state(self, state):
        """Restore a state that `_plain_state` returned."""
        self._source.bit_generator.state = state
        self._seed = state.get("seed", self._seed)

    def clone_state(self):
        """Return a new generator in the same state."""
        other = Generator()
        other._set_plain_state(self._plain_state())
        return other

    def __reduce__(self):
        return _restore_generator, (self._plain_state(),)

    def draw(self, method, *args, **kwargs):
        """Return random values from the source's method of that name; one thread draws at a time.

        They are drawn in host memory, and copied to the device where operators make arrays now; a device may compute
        uniform values itself.
        """
        device = current().device
        if device is not None:
            args = tuple([device.to_host(a) if type(a) is device.array_type else a for a in args])
            if method == "random":
                with self._lock:
                    drawn = device.uniform(self._source.bit_generator.state, *(*args, dtypes.float64)[:2])
                if drawn is not None:
                    self.skip(method, *args)
                    return drawn
        with self._lock:
            if method == "random":
                out = philox.uniform(self._source, *args)
            else:
                out = getattr(self._source, method)(*args, **kwargs)
        return out if device is None else device.from_host(out)

    def skip(self, method, *args):
        """Advance the state as `draw` would; for uniform values this takes no time."""
        if method != "random":
            self.draw(method, *args)
            return
        size, dtype = (*args, dtypes.float64)[:2]
        with self._lock:
            philox.skip_uniform(self._source, math.prod(size), dtype)


def _restore_generator(state):
    """Return a generator in a state."""
    generator = Generator()
    generator._set_plain_state(state)
    return generator


default_generator = Generator()


class _Redirection(threading.local):
    """The function that replaces generators, in this thread."""

    to = None


_redirection = _Redirection()
thread_values.append(_redirection)


@generator_block
def redirect_draws(to):
    """Context manager: operators of this thread draw from `to(generator)`, an object with `draw`, instead."""
    before, _redirection.to = _redirection.to, to
    try:
        yield
    finally:
        _redirection.to = before


@generator_block
def replay_draws(states):
    """Context manager: all generators of this thread draw what they drew in the block that first had this dict.

    Generators are found as they draw; `states` records the state of each before its first draw.
    """
    for generator, state in states.values():
        generator._set_plain_state(state)
    outer = _redirection.to

    def remembered(generator):
        if id(generator) not in states:
            states[id(generator)] = generator, generator._plain_state()
        return generator if outer is None else outer(generator)

    with redirect_draws(remembered):
        yield


def resolve_generator(generator):
    """Return the given generator, or the default one, or what draws are redirected to."""
    generator = default_generator if generator is None else generator
    if not isinstance(generator, Generator):
        raise TypeError(f"generator: expected a rg.Generator, got {type(generator).__name__}")
    found = generator if _redirection.to is None else _redirection.to(generator)
    return found if isinstance(found, Generator) else RedirectedDraws(found)


class RedirectedDraws:
    """The numbers of the object that draws are redirected to; code that observes draws sees one function."""

    __slots__ = ("_source",)

    def __init__(self, source):
        self._source = source

    def draw(self, *args, **kwargs):
        """Draw from the object."""
        return self._source.draw(*args, **kwargs)


@function()
def manual_seed(seed):
    """Seed the default generator with an integer, or a value that `int` turns into one, and return it.

    >>> import retrograd as rg
    >>> rg.manual_seed(0).initial_seed()
    0
    """
    try:
        number = int(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(f"manual_seed: seed is {describe(seed)}: {error}") from None
    return default_generator.manual_seed(number)


@function()
def seed():
    """Seed the default generator from the operating system, and return the seed."""
    return default_generator.seed()


@function()
def initial_seed():
    """Return the seed that the default generator was started from."""
    return default_generator.initial_seed()


@function()
def get_rng_state():
    """Return the default generator's state as a tensor of bytes, for `set_rng_state`."""
    return default_generator.get_state()


@function()
def set_rng_state(new_state):
    """Restore a state of the default generator that `get_rng_state` returned."""
    default_generator.set_state(new_state)


@generator_block
def fork_rng(devices=None, enabled=True):
    """Context manager that restores the state of the default generator at its end.

    `devices`, whose generators would be restored too, may be empty; with enabled=False nothing is restored.

    >>> before = get_rng_state()
    >>> with fork_rng():
    ...     _ = default_generator.seed()
    >>> bool((get_rng_state() == before).all())
    True
    """
    for device in devices or ():
        check_device(device)
    state = default_generator._plain_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            default_generator._set_plain_state(state)


@generator_block
def reseeded(number):
    """Context manager: the default generator draws as after `manual_seed(number)`; after the block it continues.

    Unlike `fork_rng` with `manual_seed`, it copies no state, so that a block that draws nothing costs next to nothing.

    >>> before = get_rng_state()
    >>> with reseeded(7):
    ...     default_generator.initial_seed()
    7
    >>> bool((get_rng_state() == before).all())
    True
    """
    seed, source = default_generator._seed, default_generator._made
    default_generator.manual_seed(number)  # makes a source of its own at the first draw
    try:
        yield
    finally:
        default_generator._seed, default_generator._made = seed, source
