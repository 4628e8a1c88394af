"""Random numbers: generators over NumPy's Philox, and the operators that draw from them."""

import threading

from retrograd import backend
from retrograd.core import Aval, Tensor, op
from retrograd.core import dtype as dtypes
from retrograd.ops.create import Factory, leaf, size_of
from retrograd.ops.family import Pointwise


class Generator:
    """A seedable source of random numbers: the counter-based Philox 4x64 of Salmon et al., SC 2011.

    >>> g = Generator().manual_seed(7)
    >>> g.initial_seed()
    7
    """

    def __init__(self, seed=0):
        self._lock = threading.Lock()
        self.manual_seed(seed)

    def manual_seed(self, seed):
        """Start anew from a seed, an integer of at least 0; returns the generator itself."""
        if not isinstance(seed, int) or seed < 0:
            raise ValueError(f"manual_seed: expected an integer of at least 0, got {seed!r}")
        self._seed, self._made = seed, None  # made when first drawn from: importing NumPy's takes a while
        return self

    @property
    def _source(self):
        if self._made is None:
            self._made = backend.random_source(self._seed)
        return self._made

    def initial_seed(self):
        """The seed that the generator was started from."""
        return self._seed

    def get_state(self):
        """The state as plain data, for `set_state`."""
        return self._source.bit_generator.state

    def set_state(self, state):
        """Go on from a state that `get_state` gave."""
        self._source.bit_generator.state = state

    def draw(self, method, *args, **kwargs):
        """Numbers from the source's method of that name; one thread draws at a time."""
        with self._lock:
            return getattr(self._source, method)(*args, **kwargs)


default_generator = Generator()


def manual_seed(seed):
    """Seed the default generator, and return it.

    >>> import retrograd as rg
    >>> rg.manual_seed(0).initial_seed()
    0
    """
    return default_generator.manual_seed(seed)


def get_rng_state():
    """The default generator's state, for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(state):
    """Put the default generator into a state that `get_rng_state` gave."""
    default_generator.set_state(state)


def _source(generator):
    return default_generator if generator is None else generator


def _drawn(xp, method, generator, size, dtype):
    """Numbers of a floating dtype; NumPy draws no half precision, so that is rounded from single."""
    drawn = _source(generator).draw(method, size, dtypes.float32 if dtype == dtypes.float16 else dtype)
    return xp.asarray(drawn).astype(dtype, copy=False)


def _floating(name, dtype):
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if dtype.kind != "f":
        raise TypeError(f"{name}: expected a real floating dtype, got {dtype}")
    return dtype


@op("rand(int... size, *, any generator=None, dtype? dtype=None) -> Tensor")
class _rand(Factory, impure=True):
    """Numbers uniform in [0, 1)."""

    public = False

    def impl(xp, *, size, generator, dtype):
        return _drawn(xp, "random", generator, size, _floating("rand", dtype))

    def shape(*, size, generator, dtype):
        return Aval(size, _floating("rand", dtype))

    def samples(r):
        yield (), {"size": (2, 3)}


@op("randn(int... size, *, any generator=None, dtype? dtype=None) -> Tensor")
class _randn(Factory, impure=True):
    """Numbers from the standard normal distribution."""

    public = False

    def impl(xp, *, size, generator, dtype):
        return _drawn(xp, "standard_normal", generator, size, _floating("randn", dtype))

    def shape(*, size, generator, dtype):
        return Aval(size, _floating("randn", dtype))

    def samples(r):
        yield (), {"size": (2, 3), "dtype": "float64"}


@op("randint(int low, int high, int[] size, *, any generator=None, dtype? dtype=None) -> Tensor")
class _randint(Factory, impure=True):
    """Integers uniform from low up to but not including high."""

    public = False

    def impl(xp, *, low, high, size, generator, dtype):
        dtype = dtypes.int64 if dtype is None else dtype
        return xp.asarray(_source(generator).draw("integers", low, high, size)).astype(dtype)

    def shape(*, low, high, size, generator, dtype):
        if low >= high:
            raise ValueError(f"randint: no integers from {low} up to but not including {high}")
        return Aval(size, dtypes.int64 if dtype is None else dtype)

    def samples(r):
        yield (), {"low": 0, "high": 5, "size": (3,)}

    def errors(r):
        yield (), {"low": 5, "high": 5, "size": (3,)}, ValueError, "no integers"


@op("randperm(int n, *, any generator=None) -> Tensor")
class _randperm(Factory, impure=True):
    """The integers from 0 up to but not including n, in random order."""

    public = False

    def impl(xp, *, n, generator):
        return _source(generator).draw("permutation", n)

    def shape(*, n, generator):
        return Aval((n,), dtypes.int64)

    def samples(r):
        yield (), {"n": 5}


@op("bernoulli(Tensor p, *, any generator=None) -> Tensor")
class bernoulli(Pointwise, differentiable=False, impure=True):
    """Ones with probability p, zeros otherwise, in the shape and dtype of p."""

    def impl(xp, p, *, generator):
        if p.size and (p.min() < 0 or p.max() > 1):
            raise ValueError("bernoulli: probabilities must lie between 0 and 1")
        return (_source(generator).draw("random", p.shape) < p).astype(p.dtype)

    def shape(p, *, generator):
        return p

    def samples(r):
        yield (r(3, within=(0.1, 0.9)),), {}


# -------------------------------------------------------------------------------------------------- the faces


def rand(*size, generator=None, dtype=None, requires_grad=False) -> Tensor:
    """Numbers uniform in [0, 1), of the given shape.

    >>> import retrograd as rg
    >>> rg.rand(2, 3).shape
    (2, 3)
    """
    return leaf(_rand(size_of(size), generator=generator, dtype=dtype), requires_grad)


def randn(*size, generator=None, dtype=None, requires_grad=False) -> Tensor:
    """Numbers from the standard normal distribution, of the given shape.

    >>> import retrograd as rg
    >>> rg.randn(2, 3).dtype
    dtype('float32')
    """
    return leaf(_randn(size_of(size), generator=generator, dtype=dtype), requires_grad)


def randint(low, high=None, size=None, *, generator=None, dtype=None) -> Tensor:
    """Integers uniform from low (0 if left out) up to but not including high, of the given shape.

    >>> import retrograd as rg
    >>> rg.randint(3, (4,)).dtype
    dtype('int64')
    """
    if size is None:
        low, high, size = 0, low, high
    return _randint(low, high, size, generator=generator, dtype=dtype)


def randperm(n, *, generator=None) -> Tensor:
    """The integers from 0 up to but not including n, in random order.

    >>> import retrograd as rg
    >>> sorted(rg.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    return _randperm(n, generator=generator)


def rand_like(x, *, generator=None, dtype=None) -> Tensor:
    """`rand` in the shape of x, and in its dtype unless another is given."""
    return rand(x.shape, generator=generator, dtype=x.dtype if dtype is None else dtype)


def randn_like(x, *, generator=None, dtype=None) -> Tensor:
    """`randn` in the shape of x, and in its dtype unless another is given."""
    return randn(x.shape, generator=generator, dtype=x.dtype if dtype is None else dtype)


def normal(mean, std, size, *, generator=None, dtype=None) -> Tensor:
    """Numbers from the normal distribution of that mean and standard deviation."""
    return randn(size, generator=generator, dtype=dtype) * std + mean
