"""Random tensors: uniform, normal, integers, permutations, Bernoulli."""

from retrograd.backend.type_info import finfo, holds_integers
from retrograd.core import Aval, Internal, Tensor, op, registry, shape_of
from retrograd.core import dtype as dtypes
from retrograd.core.aval import symbolic
from retrograd.core.op import compound
from retrograd.ops.batch_loop import PerExample
from retrograd.ops.constants import constant_in
from retrograd.ops.create import Factory, FillFactory, factory, make_array
from retrograd.ops.family import Pointwise, broadcast_shapes, check_real
from retrograd.ops.generator import Generator as Generator
from retrograd.ops.generator import default_generator as default_generator
from retrograd.ops.generator import get_rng_state as get_rng_state
from retrograd.ops.generator import manual_seed as manual_seed
from retrograd.ops.generator import resolve_generator
from retrograd.ops.generator import set_rng_state as set_rng_state
from retrograd.ops.layout import arrange_like, array_device, making_on
from retrograd.ops.methods import check_complete
from retrograd.ops.pointwise import to


def _draw(xp, draw, size, dtype):
    """Random values in a floating dtype from `draw(size, dtype)` for float32 and float64; complex values are pairs."""
    if dtype.kind == "c":
        parts = draw((*size, 2), dtypes.real_of(dtype))
        return xp.asarray(parts).view(dtype)[..., 0]
    return xp.asarray(draw(size, dtypes.opmath_of(dtype)))


def _check_floating(name, dtype):
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if not dtypes.is_differentiable(dtype):
        raise TypeError(f"{name}: expected a floating or complex dtype, got {dtype}")
    if dtypes.stores_only(dtype):
        kind = dtypes.scalar_name(dtype)
        raise NotImplementedError(f'"{name}" not implemented for \'{kind}\': draw float32, and convert with .to(dtype)')
    return dtype


class RandomOperator(FillFactory):
    """Base of operators that draw a tensor of random values; under vmap all examples are drawn together."""


@op("rand(int... size, *, any generator=None, dtype? dtype=None) -> Tensor")
class _rand(RandomOperator):
    """Uniform random values in [0, 1) of the given shape; for complex dtypes both parts.

    >>> import retrograd as rg
    >>> rg.rand(2, 3).shape
    (2, 3)
    """

    def impl(xp, *, size, generator, dtype):
        dtype = _check_floating("rand", dtype)

        def draw(size, kind):
            return resolve_generator(generator).draw("random", size, kind)

        def numbers(size):
            if dtypes.is_half(dtype):  # truncated to its digits: rounding could give 1
                steps = 2 / finfo(dtype).eps
                return (xp.floor(draw(size, dtypes.float32) * steps) / steps).astype(dtype)
            return _draw(xp, draw, size, dtype)

        return make_array(numbers, size)

    def shape(*, size, generator, dtype):
        return Aval(size, _check_floating("rand", dtype))

    exempt = {"oracle": "random: tests/ops/test_random.py"}

    def samples(r):
        yield (), {"size": (2, 3)}
        yield (), {"size": (2,), "dtype": "complex64"}

    def errors(r):
        yield (), {"size": (2,), "dtype": "int64"}, TypeError, "rand: expected a floating or complex dtype, got int64"


@op("randn(int... size, *, any generator=None, dtype? dtype=None) -> Tensor")
class _randn(RandomOperator):
    """Standard normal random values of the given shape; complex ones have variance 1, too.

    >>> import retrograd as rg
    >>> rg.randn(2, 3).dtype
    dtype('float32')
    """

    def impl(xp, *, size, generator, dtype):
        dtype = _check_floating("randn", dtype)

        def draw(size, kind):
            return resolve_generator(generator).draw("standard_normal", size, kind)

        def numbers(size):
            out = _draw(xp, draw, size, dtype)
            return out * dtype.type(0.5**0.5) if dtype.kind == "c" else out.astype(dtype, copy=False)

        return make_array(numbers, size)

    def shape(*, size, generator, dtype):
        return Aval(size, _check_floating("randn", dtype))

    exempt = {"oracle": "random: tests/ops/test_random.py"}

    def samples(r):
        yield (), {"size": (2, 3), "dtype": "float64"}
        yield (), {"size": (2,), "dtype": "complex128"}


@op("randint(int low, int high, int[] size, *, any generator=None, dtype? dtype=None) -> Tensor")
class _randint(RandomOperator):
    """Uniform random integers from low to high - 1."""

    def impl(xp, *, low, high, size, generator, dtype):
        dtype = _check_integer_range(low, high, dtype)
        wide = dtypes.uint64 if high > 2**63 else dtypes.int64
        draw = resolve_generator(generator).draw
        return make_array(lambda plain: xp.asarray(draw("integers", low, high, plain, wide)), size).astype(dtype)

    def shape(*, low, high, size, generator, dtype):
        return Aval(size, _check_integer_range(low, high, dtype))

    exempt = {"oracle": "random: tests/ops/test_random.py"}

    def samples(r):
        yield (), {"low": 0, "high": 5, "size": (3,)}
        yield (), {"low": -2, "high": 5, "size": (3,), "dtype": "float32"}

    def errors(r):
        yield (), {"low": 5, "high": 5, "size": (3,)}, ValueError, "no integers"
        yield (), {"low": 0, "high": 257, "size": (3,), "dtype": "uint8"}, ValueError, "uint8 does not hold .* 0 to 256"


def _check_integer_range(low, high, dtype):
    dtype = dtypes.int64 if dtype is None else dtype
    if low >= high:
        words = f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        raise ValueError(f"randint: {words}: no integers from {low} up to but not including {high}")
    if not holds_integers(dtype, low, high - 1):
        raise ValueError(f"randint: {dtype} does not hold the integers from {low} to {high - 1}")
    return dtype


@op("randperm(int n, *, any generator=None, dtype? dtype=None) -> Tensor")
class _randperm(PerExample, Factory, vmap_fallback="every permutation is drawn by itself"):
    """A random permutation of the integers 0 to n - 1.

    >>> import retrograd as rg
    >>> sorted(rg.randperm(4).tolist())
    [0, 1, 2, 3]
    """

    def impl(xp, *, n, generator, dtype):
        _check_count(n, dtype)
        return resolve_generator(generator).draw("permutation", n).astype(dtypes.int64 if dtype is None else dtype)

    def shape(*, n, generator, dtype):
        _check_count(n, dtype)
        return Aval((n,), dtypes.int64 if dtype is None else dtype)

    exempt = {"oracle": "random: tests/ops/test_random.py"}

    def samples(r):
        yield (), {"n": 5}

    def errors(r):
        yield (), {"n": -1}, ValueError, "randperm: n must not be negative, got -1"
        yield (), {"n": 257, "dtype": "uint8"}, RuntimeError, "randperm: uint8 does not hold 256"


def _check_count(n, dtype):
    if n < 0:
        raise ValueError(f"randperm: n must not be negative, got {n}")
    if dtype is None:
        return
    if n - 1 > 2 / finfo(dtype).eps if dtypes.is_differentiable(dtype) else not holds_integers(dtype, 0, n - 1):
        raise RuntimeError(f"randperm: {dtype} does not hold {n - 1}: value cannot be converted without overflow")


@op("bernoulli(Tensor x, float? p=None, *, any generator=None) -> Tensor")
class bernoulli(Pointwise, promotion=None, in_place=False):
    """Random ones with probability x, zeros otherwise, in the shape and dtype of x.

    With `p`, that is the probability of each element, and x only gives shape and dtype.  The gradient is zero.

    >>> import retrograd as rg
    >>> rg.bernoulli(rg.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """

    def impl(xp, x, *, p, generator):
        _check_probabilities(x, p)
        odds = x if p is None else xp.asarray(p)
        if xp.on_host and odds.size and not (odds.min() >= 0 and odds.max() <= 1):
            raise ValueError("bernoulli: probabilities must lie between 0 and 1")
        return (resolve_generator(generator).draw("random", x.shape) < odds).astype(x.dtype)

    def shape(x, *, p, generator):
        _check_probabilities(x, p)
        return x

    def vjp_x(g):
        return registry["zeros_like"](g)

    exempt = {"oracle": "random: tests/ops/test_random.py"}

    def samples(r):
        yield (r(3, within=(0.1, 0.9)),), {}
        yield (r.ints(3, (2, 3)),), {"p": 0.5}

    def errors(r):
        yield (r(3, within=(1.5, 2.0)),), {}, ValueError, "between 0 and 1"
        yield (r.ints(2, (3,)),), {}, TypeError, "bernoulli: expected a real floating dtype, got int64"


def _check_probabilities(x, p):
    if p is None:
        check_real("bernoulli", x, "it holds the probabilities")
    elif x.dtype.kind == "c":
        raise TypeError(f"bernoulli: expected a real dtype, got {x.dtype}")


@op("normal(Tensor mean, Tensor std, *, any generator=None) -> Tensor")
class _normal(Internal, Pointwise, differentiable=False, promotion=None, in_place=False):
    """Normal random values with these means and standard deviations, which broadcast."""

    def impl(xp, mean, std, *, generator):
        shape, dtype = _normal_aval(mean, std)
        if xp.on_host and xp.any(xp.asarray(std) < 0):
            words = "normal expects all elements of std >= 0.0"
            raise RuntimeError(f"normal: {words}: standard deviations must not be negative")
        wide = dtypes.promote(dtype, dtypes.float64)
        noise = _draw(xp, lambda size, kind: resolve_generator(generator).draw("standard_normal", size), shape, wide)
        return (noise * (std if dtypes.is_floating(dtype) else std * 0.5**0.5) + mean).astype(dtype)

    def shape(mean, std, *, generator):
        return Aval(*_normal_aval(mean, std))

    exempt = {"oracle": "random: tests/ops/test_random.py"}

    def samples(r):
        yield (r(2, 3), r(3, within=(0.5, 2.0))), {}
        yield (1.5, r(3, within=(0.5, 2.0))), {}
        yield (r(3), 0.5), {}

    def errors(r):
        yield (r(3), -1.0), {}, RuntimeError, "normal: .*standard deviations must not be negative"
        yield (r.ints(3, (3,)), 1.0), {}, TypeError, "normal: expected a floating or complex dtype, got int64"


def _normal_aval(mean, std):
    """The aval of a draw; its dtype is that of the mean if that is a tensor."""
    dtype = mean.dtype if hasattr(mean, "dtype") else std.dtype
    if hasattr(std, "dtype") and std.dtype.kind == "c":
        raise TypeError(f"normal: standard deviations are real, got {std.dtype}")
    return broadcast_shapes("normal", [shape_of(mean), shape_of(std)]), _check_floating("normal", dtype)


# ----------------------------------------------------------------------------------------- the public functions


def randint(low=0, high=None, size=None, *, generator=None, dtype=None) -> Tensor:
    """Uniform random integers from low (default 0) to high - 1, of the given shape.

    >>> import retrograd as rg
    >>> rg.randint(3, (4,)).dtype
    dtype('int64')
    """
    if size is None:  # randint(high, size)
        high, size = None, high
    if high is None:
        low, high = 0, low
    return _randint(low, high, size, generator=generator, dtype=dtype)


def normal(mean=0.0, std=1.0, size=None, *, generator=None, dtype=None) -> Tensor:
    """Normal random values: of the given size, or one per element of tensors mean and std, which broadcast.

    With a size, tensors must have no dimensions and require no gradient: they are numbers. As in PyTorch, the gradients
    of mean and std are zero; those of `mean + std * randn_like(mean)` are not.

    >>> import retrograd as rg
    >>> rg.normal(rg.tensor([1.0, 2.0]), 0.0), rg.normal(0.0, 2.0, (2, 3)).shape
    (tensor([1., 2.]), (2, 3))
    """
    tensors = [given for given in (mean, std) if isinstance(given, Tensor)]
    if size is not None and any(given.ndim or given.requires_grad for given in tensors):
        raise TypeError("normal: takes a size for numbers only; the shape of tensors says how many to draw")
    if tensors and size is None:
        out = _normal(mean, std, generator=generator)
        for given in tensors:
            out = constant_in(out, given)
        return out if dtype is None else to(out, dtype)
    if size is None:
        raise TypeError("normal: expected a size, or a tensor as mean or std")
    if std < 0:
        raise RuntimeError(f"normal: the standard deviation must not be negative, got {std}")
    return _randn(size, generator=generator, dtype=dtype) * std + mean


def _random_like(x, draw):
    """A random tensor in the shape of a dense or nested tensor, also of one whose components have no dimensions."""
    # nested tensors whose components have dimensions have a ragged size in their shape
    composite = compound(x) if symbolic(x.shape) is None else None
    if composite is None:
        with making_on(array_device(x)):
            return arrange_like(draw(x.shape), x)
    check_complete("rand_like", x, composite)
    plain, rebuilt = composite.plain(x)
    return rebuilt(draw(plain.shape), 0)


def rand_like(input, *, generator=None, dtype=None) -> Tensor:
    """Uniform random values in [0, 1) in the shape of the input, and in its dtype unless another is given."""
    dtype = input.dtype if dtype is None else dtype
    return _random_like(input, lambda size: _rand(size, generator=generator, dtype=dtype))


def randn_like(input, *, generator=None, dtype=None) -> Tensor:
    """Standard normal random values in the shape of the input, and in its dtype unless another is given."""
    dtype = input.dtype if dtype is None else dtype
    return _random_like(input, lambda size: _randn(size, generator=generator, dtype=dtype))


def randint_like(input: Tensor, low=0, high=None, *, generator=None, dtype=None) -> Tensor:
    """Uniform random integers from low (default 0) to high - 1 in the shape and dtype of the input.

    >>> import retrograd as rg
    >>> rg.randint_like(rg.ones(2), 1)
    tensor([0., 0.])
    """
    low, high = (0, low) if high is None else (low, high)
    kind = input.dtype if dtype is None else dtype
    return _random_like(input, lambda size: _randint(low, high, size, generator=generator, dtype=kind))


rand, randn, randperm = factory(_rand), factory(_randn), factory(_randperm)
randint, normal = factory(randint), factory(normal)
rand_like, randn_like, randint_like = map(factory, (rand_like, randn_like, randint_like))
