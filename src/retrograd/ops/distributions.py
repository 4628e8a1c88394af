"""Random sampling from distributions, with gradients to continuous parameters where they exist."""

import math

from retrograd.backend.type_info import finfo, iinfo
from retrograd.core import Aval, Definition, Tensor, dtype_of, op, registry, shape_of
from retrograd.core import dtype as dtypes
from retrograd.ops.family import Composite, Pointwise, broadcast_shapes, cast_to, check_real, numel
from retrograd.ops.gamma import gamma_cdf_derivative
from retrograd.ops.generator import resolve_generator
from retrograd.ops.methods import method
from retrograd.ops.pointwise import floor, log, log1p, neg, sigmoid, sqrt, tan
from retrograd.ops.random import _rand, _randint, _randn, bernoulli
from retrograd.ops.view import broadcast_tensors, reshape

# Why derivatives of samples differ from finite differences: a rejected proposal makes the sample jump.
JUMPS = "the derivative is of the sample at a fixed value of the distribution function; differences jump"

# ---------------------------------------------------------------------------------- gamma and related


@op("standard_gamma(Tensor alpha, *, any generator=None) -> Tensor")
class standard_gamma(Pointwise, promotion="float", in_place=False, aliases="_standard_gamma"):
    """Sample from gamma distributions with shape alpha and scale 1.

    Gradients reach alpha by implicit reparameterization: the sample moves so that its quantile stays the same.  M.
    Figurnov, S. Mohamed and A. Mnih, Implicit reparameterization gradients, NeurIPS 2018.  They need SciPy.

    >>> import retrograd as rg
    >>> alpha = rg.full((1000,), 3.0, requires_grad=True)
    >>> rg.standard_gamma(alpha).mean().backward()
    >>> bool((alpha.grad * 1000).mean().round() == 1)  # the mean of the distribution is alpha
    True
    """

    method = False

    def impl(xp, alpha, *, generator):
        if alpha.dtype.kind == "c" or (xp.on_host and not (alpha >= 0).all()):
            raise ValueError(f"standard_gamma: alpha must be a positive number, got {_smallest_value(alpha)}")
        drawn = resolve_generator(generator).draw("standard_gamma", alpha.astype(dtypes.float64))
        return xp.maximum(xp.asarray(drawn).astype(alpha.dtype), alpha.dtype.type(xp.finfo(alpha.dtype).tiny))

    def vjp_alpha(g, alpha, out):
        return g * neg(gamma_cdf_derivative(alpha, out))

    exempt = {
        "jvp vjp reverse_over_reverse forward_over_reverse no_dimensions": JUMPS,
        "oracle": "random: tests/ops/test_distributions.py",
    }

    def samples(r):
        yield (r(2, 3, within=(0.4, 5.0)),), {}

    def errors(r):
        yield (r(3, within=(-2.0, -1.0)),), {}, ValueError, "standard_gamma: alpha must be a positive number, got -"


def _smallest_value(x):
    return x.dtype if x.dtype.kind == "c" else x.min()


@op("_standard_gamma_grad(Tensor alpha, Tensor sample) -> Tensor")
class standard_gamma_grad(Composite):
    """Return the derivative of a sample of `standard_gamma` with respect to alpha."""

    method = False

    def compose(alpha, sample):
        return neg(gamma_cdf_derivative(alpha, sample))

    oracle = "retrograd.testing.references.distributions._standard_gamma_grad"

    def samples(r):
        yield (r(3, within=(0.3, 4.0)), r(3, within=(0.2, 3.0))), {}


def _log_gamma(alpha, generator):
    """Return the logarithm of a gamma sample, even of one that would underflow.

    A sample of shape alpha + 1, times a uniform value to the power 1 / alpha, has shape alpha.
    """
    uniform = _rand(alpha.shape, generator=generator, dtype=dtypes.float64)
    return log(standard_gamma(alpha + 1, generator=generator)) + cast_to(log1p(-uniform), alpha.dtype) / alpha


@op("sample_dirichlet(Tensor concentration, *, any generator=None) -> Tensor")
class sample_dirichlet(Composite, aliases="_sample_dirichlet"):
    """Sample from Dirichlet distributions along the last dimension: positive values with sum 1.

    Gradients reach the concentration, as in `standard_gamma`.

    >>> import retrograd as rg
    >>> bool(rg.sample_dirichlet(rg.ones(4)).sum().round(decimals=4) == 1)
    True
    """

    method = False

    def compose(concentration, generator):
        check_real("sample_dirichlet", concentration)
        if not concentration.ndim:
            raise RuntimeError("sample_dirichlet: expected at least one dimension")
        return registry["softmax"](_log_gamma(concentration, generator), -1)

    exempt = {
        "jvp vjp reverse_over_reverse forward_over_reverse": JUMPS,
        "oracle": "random: tests/ops/test_distributions.py",
    }

    def samples(r):
        yield (r(2, 3, within=(0.4, 5.0)),), {}

    def errors(r):
        yield (r(within=(0.5, 1.0)),), {}, RuntimeError, "at least one dimension"
        yield (r.ints(3, (2,)),), {}, TypeError, "sample_dirichlet: expected a real floating dtype, got int64"


@op("sample_beta(Tensor a, Tensor b, *, any generator=None) -> Tensor")
class sample_beta(Composite):
    """Sample from beta distributions; gradients reach the parameters, as in `standard_gamma`."""

    method = False

    def compose(a, b, generator):
        check_real("sample_beta", a)
        check_real("sample_beta", b)
        a, b = broadcast_tensors(a, b)
        return sigmoid(_log_gamma(a, generator) - _log_gamma(b, generator))

    exempt = {
        "jvp vjp reverse_over_reverse forward_over_reverse no_dimensions": JUMPS,
        "oracle": "random: tests/ops/test_distributions.py",
    }

    def samples(r):
        yield (r(2, 1, within=(0.4, 5.0)), r(3, within=(0.4, 5.0))), {}


@op("sample_chi2(Tensor df, *, any generator=None) -> Tensor")
class sample_chi2(Composite):
    """Sample from chi-squared distributions with `df` degrees of freedom; gradients reach these."""

    method = False

    def compose(df, generator):
        return standard_gamma(df / 2, generator=generator) * 2

    exempt = {
        "jvp vjp reverse_over_reverse forward_over_reverse no_dimensions": JUMPS,
        "oracle": "random: tests/ops/test_distributions.py",
    }

    def samples(r):
        yield (r(3, within=(1.5, 5.0)),), {}


@op("sample_student_t(Tensor df, *, any generator=None) -> Tensor")
class sample_student_t(Composite):
    """Sample from Student's t distributions with `df` degrees of freedom; gradients reach these."""

    method = False

    def compose(df, generator):
        check_real("sample_student_t", df)
        noise = _randn(df.shape, generator=generator, dtype=dtypes.float64)
        return cast_to(noise, df.dtype) * sqrt(df / sample_chi2(df, generator=generator))

    exempt = {
        "jvp vjp reverse_over_reverse forward_over_reverse no_dimensions": JUMPS,
        "oracle": "random: tests/ops/test_distributions.py",
    }

    def samples(r):
        yield (r(3, within=(1.5, 5.0)),), {}


@op("sample_von_mises(Tensor loc, Tensor concentration, *, any generator=None) -> Tensor")
class sample_von_mises(Pointwise, differentiable=False, promotion="float", in_place=False):
    """Sample angles between -pi and pi from von Mises distributions; a concentration of 0 is the uniform one."""

    method = False

    def impl(xp, loc, concentration, *, generator):
        loc, concentration = xp.asarray(loc), xp.asarray(concentration)
        for operand in (loc, concentration):
            check_real("sample_von_mises", operand)
        if xp.on_host and not (concentration >= 0).all():
            raise ValueError(f"sample_von_mises: concentrations must not be negative, got {concentration.min()}")
        drawn = resolve_generator(generator).draw("vonmises", loc.astype("float64"), concentration.astype("float64"))
        return xp.asarray(drawn).astype(xp.result_type(loc, concentration))

    exempt = {"oracle": "random: tests/ops/test_distributions.py"}

    def samples(r):
        yield (r(2, 1), r(3, within=(0.4, 5.0))), {}

    def errors(r):
        yield (r(2), r(2, within=(-2.0, -1.0))), {}, ValueError, "sample_von_mises: concentrations .* got -"


# -------------------------------------------------------------------------------------------------- counts


@op("poisson(Tensor x, any generator=None) -> Tensor")
class poisson(Pointwise, promotion=None, in_place=False, method=False):
    """Sample from Poisson distributions with means x, in the dtype of x.

    >>> import retrograd as rg
    >>> rg.poisson(rg.zeros(2))
    tensor([0., 0.])
    """

    def impl(xp, x, *, generator):
        check_real("poisson", x)
        if xp.on_host and not (x >= 0).all():
            raise RuntimeError(f"poisson: rates must not be negative, got {x.min()}")
        return xp.asarray(resolve_generator(generator).draw("poisson", x.astype(dtypes.float64))).astype(x.dtype)

    def shape(x, *, generator):
        check_real("poisson", x)
        return x

    def vjp_x(g):
        return registry["zeros_like"](g)

    exempt = {"oracle": "random: tests/ops/test_distributions.py"}

    def samples(r):
        yield (r(2, 3, within=(0.1, 9.0)),), {}

    def errors(r):
        yield (r(2, within=(-2.0, -1.0)),), {}, RuntimeError, "poisson: rates must not be negative, got -"
        yield (r.ints(3, (2,)),), {}, TypeError, "poisson: expected a real floating dtype, got int64"


@op("binomial(Tensor count, Tensor prob, any generator=None) -> Tensor")
class binomial(Pointwise, differentiable=False, promotion=None, in_place=False, method=False):
    """Sample the number of successes in `count` trials of probability `prob`; in the dtype of count, a floating one.

    >>> import retrograd as rg
    >>> rg.binomial(rg.tensor([3.0, 5.0]), rg.tensor([0.0, 1.0]))
    tensor([0., 5.])
    """

    def impl(xp, count, prob, *, generator):
        out = _binomial_aval(count, prob)
        count, prob = xp.asarray(count, dtypes.float64), xp.asarray(prob, dtypes.float64)
        if xp.on_host and not ((count >= 0) & (prob >= 0) & (prob <= 1)).all():
            raise ValueError("binomial: counts must not be negative, and probabilities lie between 0 and 1")
        drawn = resolve_generator(generator).draw("binomial", count.astype(dtypes.int64), prob)
        return xp.asarray(drawn).astype(out.dtype)

    def shape(count, prob, *, generator):
        return _binomial_aval(count, prob)

    exempt = {"oracle": "random: tests/ops/test_distributions.py"}

    def samples(r):
        yield (r(2, 1, within=(1.0, 9.0)), r(3, within=(0.1, 0.9))), {}

    def errors(r):
        yield (r(2, within=(1.0, 3.0)), r(2, within=(1.5, 2.0))), {}, ValueError, "binomial: .* between 0 and 1"
        yield (r.ints(3, (2,)), r(2, within=(0.1, 0.9))), {}, TypeError, "binomial: expected a real floating dtype"


def _binomial_aval(count, prob):
    out = Aval(broadcast_shapes("binomial", [shape_of(count), shape_of(prob)]), dtype_of(count))
    for operand in (out, Aval((), dtype_of(prob))):
        check_real("binomial", operand)
    return out


@op("multinomial(Tensor x, int num_samples, bool replacement=False, *, any generator=None) -> Tensor")
class multinomial(Definition, differentiable=False, memory="rows"):
    """Sample `num_samples` indices per row of x, with probabilities proportional to its values.

    x is a vector or a matrix of non-negative values, not all 0, which need not sum to 1.  Without replacement no index
    occurs twice: each is drawn from those that are left.

    >>> import retrograd as rg
    >>> rg.multinomial(rg.tensor([[0.0, 2.0], [1.0, 0.0]]), 2, replacement=True)
    tensor([[1, 1],
            [0, 0]])
    """

    def impl(xp, x, *, num_samples, replacement, generator):
        shape = _multinomial_aval(x, num_samples, replacement).shape
        rows = x.reshape(-1, x.shape[-1]).astype(dtypes.float64)
        if xp.on_host:
            _check_weights(rows, num_samples, replacement)
        if replacement:
            uniform = resolve_generator(generator).draw("random", (len(rows), num_samples))
            return xp.sample_indices(rows, uniform).reshape(shape)
        times = resolve_generator(generator).draw("standard_exponential", rows.shape)
        return xp.ascontiguousarray(xp.draw_distinct(rows, times, num_samples)).reshape(shape)

    def shape(x, *, num_samples, replacement, generator):
        return _multinomial_aval(x, num_samples, replacement)

    def batch(batched, n, x, **params):
        out = multinomial(reshape(x, (numel(x.shape[:-1]), x.shape[-1])), **params)
        return reshape(out, (*x.shape[:-1], out.shape[-1]))

    exempt = {"oracle": "random: tests/ops/test_distributions.py"}

    def samples(r):
        yield (r(2, 4, within=(0.1, 1.0)),), {"num_samples": 3}
        yield (r(4, within=(0.1, 1.0)),), {"num_samples": 6, "replacement": True}

    def errors(r):
        yield (r(3, within=(0.1, 1.0)),), {"num_samples": 4}, RuntimeError, "multinomial: .*4 different .* of 3"
        yield (r(3, within=(-2.0, -0.1)),), {"num_samples": 2}, RuntimeError, "multinomial: .* negative"
        yield (r.ints(3, (2,)),), {"num_samples": 1}, TypeError, "multinomial: expected a real floating dtype"
        yield (r(2, 2, 2),), {"num_samples": 1}, RuntimeError, "multinomial: expected a vector or a matrix"


def _multinomial_aval(x, num_samples, replacement):
    check_real("multinomial", x)
    if x.ndim not in (1, 2):
        raise RuntimeError(f"multinomial: expected a vector or a matrix, got shape {x.shape}")
    if num_samples < 1:
        raise RuntimeError(f"multinomial: expected to draw at least 1, got num_samples={num_samples}")
    if x.shape[-1] < (1 if replacement else num_samples):
        words = "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        raise RuntimeError(f"multinomial: {words}: {num_samples} different ones can't be drawn of {x.shape[-1]}")
    return Aval((*x.shape[:-1], num_samples), dtypes.int64)


def _check_weights(rows, num_samples, replacement):
    if not ((rows >= 0) & (rows < math.inf)).all():
        raise RuntimeError(
            "multinomial: probability tensor contains either `inf`, `nan` or element < 0: weights must be finite and "
            "not negative"
        )
    if len(rows) and (rows > 0).sum(-1).min() < (1 if replacement else num_samples):
        raise RuntimeError("multinomial: a row has too few weights that are not 0")


# ------------------------------------------------------------------------------------------- in-place sampling


def _check_continuous(name, x, valid, constraint):
    if not dtypes.is_differentiable(x.dtype):
        raise RuntimeError(f"{name}: the numbers are not integers, but the tensor has dtype {x.dtype}")
    if not valid:
        raise RuntimeError(f"{name}: {constraint}")


def _uniform(x, generator):
    """Return uniform values in [0, 1), in the shape of x and in double precision."""
    return _rand(x.shape, generator=generator, dtype=dtypes.float64)


@method
def uniform_(x, start=0.0, to=1.0, *, generator=None) -> Tensor:
    """Fill x with uniform values from `start` up to `to`; of complex tensors both parts."""
    _check_continuous("uniform_", x, start <= to, f"no numbers from {start} up to {to}")
    low = complex(start, start) if x.dtype.kind == "c" else start
    return x.copy_(_rand(x.shape, generator=generator, dtype=x.dtype) * (to - start) + low)


@method
def normal_(x, mean=0.0, std=1.0, *, generator=None) -> Tensor:
    """Fill x with samples from the normal distribution with that mean and standard deviation."""
    _check_continuous("normal_", x, std >= 0, f"the standard deviation must not be negative, got {std}")
    return x.copy_(_randn(x.shape, generator=generator, dtype=x.dtype) * std + mean)


@method
def log_normal_(x, mean=1.0, std=2.0, *, generator=None) -> Tensor:
    """Fill x with samples whose logarithm is normal, with that mean and standard deviation."""
    _check_continuous("log_normal_", x, std > 0, f"std must be positive, got {std}")
    return x.copy_((_randn(x.shape, generator=generator, dtype=dtypes.float64) * std + mean).exp())


@method
def exponential_(x, lambd=1.0, *, generator=None) -> Tensor:
    """Fill x with samples from the exponential distribution with that rate."""
    _check_continuous("exponential_", x, lambd > 0, f"the rate must be positive, got {lambd}")
    return x.copy_(log1p(-_uniform(x, generator)) / -lambd)


@method
def cauchy_(x, median=0.0, sigma=1.0, *, generator=None) -> Tensor:
    """Fill x with samples from the Cauchy distribution with that median and scale."""
    _check_continuous("cauchy_", x, sigma > 0, f"sigma must be positive, got {sigma}")
    return x.copy_(tan((_uniform(x, generator) - 0.5) * math.pi) * sigma + median)


@method
def geometric_(x, p, *, generator=None) -> Tensor:
    """Fill x with the number of trials up to the first success, each of probability p."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_: p must lie between 0 and 1, got {p}")
    return x.copy_(floor(log1p(-_uniform(x, generator)) / math.log1p(-p)) + 1)


@method
def bernoulli_(x, p=0.5, *, generator=None) -> Tensor:
    """Fill x with ones with probability p, a number or a tensor that broadcasts, and zeros otherwise."""
    if isinstance(p, Tensor):
        return x.copy_(bernoulli(p.expand(x.shape), generator=generator))
    return x.copy_(bernoulli(x.detach(), float(p), generator=generator))


@method
def random_(x, start=None, to=..., *, generator=None) -> Tensor:
    """Fill x with integers: `random_(to)` in [0, to), `random_(start, to)`; None: all that the dtype holds exactly."""
    if to is ...:
        start, to = 0, start
    to = _exact_integers(x.dtype) if to is None else to
    return x.copy_(_randint(start or 0, to, x.shape, generator=generator, dtype=x.dtype))


def _exact_integers(dtype):
    """Return how many consecutive integers from 0 on a dtype represents exactly."""
    if dtype.kind in "iu":
        return iinfo(dtype).max + 1
    return 2 if dtype.kind == "b" else int(2 / finfo(dtype).eps) + 1
