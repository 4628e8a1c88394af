"""Distributions, densities and summaries of retrograd.scipy.stats: SciPy's values, derivatives, refusals."""

import numpy as np
import pytest
import scipy.stats

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.core import Tensor
from retrograd.func import vmap
from retrograd.scipy import stats
from retrograd.scipy.stats.formulas import DISTRIBUTIONS

from ..case_groups import group_cases
from ..tables import ALL_SAMPLES

X = np.array([0.3, 0.55, 0.9, 2.5, -1.0, 1.0, 0.0])
A = np.array([1.5, 2.3, 4.0, 1.1, 2.0, 0.8, 1.3])
B, P = 0.7 * A[::-1], A / 5
COUNTS = np.array([0, 1, 2, 3, -1, 5, 1.0])
CONTINUOUS = {
    **dict.fromkeys(("expon", "uniform", "laplace", "logistic", "cauchy", "gumbel_r", "gumbel_l", "halfnorm",
                     "halfcauchy", "rayleigh", "maxwell"), ()),
    **dict.fromkeys(("lognorm", "weibull_min", "pareto", "invgamma", "chi", "vonmises", "skewnorm", "invgauss",
                     "gennorm"), (A,)),
    "f": (A, B), "truncnorm": (-A, B),
}  # fmt: skip
DISCRETE = {"binom": (np.array([5, 4, 2, 3, 4, 5, 1.0]), P), "bernoulli": (P,), "geom": (P,), "nbinom": (A, P)}
DENSITIES_ONLY = ("vonmises", "skewnorm")
TAILS = ("cdf", "logcdf", "sf", "logsf")


@group_cases
@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_functions_of_a_distribution_are_scipys(name):
    shapes, x = (CONTINUOUS[name], X) if name in CONTINUOUS else (DISCRETE[name], COUNTS)
    scaled = (np.float64(0.1), np.float64(1.7)) if name in CONTINUOUS else (np.float64(1.0),)
    functions = ("pdf", "logpdf") if name in CONTINUOUS else ("pmf", "logpmf")
    for function in functions + (() if name in DENSITIES_ONLY else TAILS):
        for args in (shapes, (*shapes, *scaled)):
            expected = getattr(getattr(scipy.stats, name), function)(x, *args)
            ours = getattr(getattr(stats, name), function)
            found = ours(rg.tensor(x), *[rg.tensor(a) for a in args])
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-14, err_msg=function)
            assert not isinstance(ours(x, *args), Tensor)


@group_cases
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_functions_of_a_distribution_have_derivatives(name):
    shapes = [rg.tensor(a[:2], requires_grad=True) for a in (CONTINUOUS | DISCRETE)[name]]
    functions = ["logpdf" if name in CONTINUOUS else "logpmf", *([] if name in DENSITIES_ONLY else ["cdf"])]
    start = {"uniform": [0.3, 0.4], "truncnorm": [0.3, -0.4]}.get(name, [1.3, 2.4])
    x = [rg.tensor(start, dtype=rg.float64, requires_grad=True)] if name in CONTINUOUS else []
    if name == "binom":
        shapes[0] = shapes[0].detach()
    for function in functions:
        own = getattr(getattr(stats, name), function)
        call = own if x else lambda *shapes, own=own: own(np.ones(2), *shapes)
        moving = [t for t in (*x, *shapes) if t.requires_grad]
        if moving:
            assert gradcheck(call, (*x, *shapes), check_forward_ad=True)
            assert gradgradcheck(call, (*x, *shapes))


def test_a_distribution_may_be_frozen_and_keeps_scipys_other_members():
    scale = rg.tensor(2.0, dtype=rg.float64, requires_grad=True)
    (slope,) = rg.autograd.grad(stats.expon(scale=scale).logpdf(3.0), scale)
    assert slope.item() == pytest.approx(3 / 4 - 1 / 2)
    assert stats.expon(scale=2.0).rvs(size=3).shape == (3,)
    assert stats.binom.rvs(3, 0.5, size=2).shape == (2,)
    assert stats.expon.ppf(0.5) == pytest.approx(np.log(2))
    with pytest.raises(AttributeError, match=r"stats\.expon: rvs is not available with parameters that are tensors"):
        stats.expon(scale=scale).rvs(size=3)
    with pytest.raises(TypeError, match=r"stats\.pareto: expected x, b, loc, scale; got"):
        stats.pareto.pdf(rg.tensor(1.0))


# The shapes of the distributions that are SciPy's formulas; points are quantiles.
FORMULAS = {
    "alpha": (3.5,), "anglit": (), "arcsine": (), "argus": (1.3,), "betaprime": (5.0, 6.0), "bradford": (0.3,),
    "burr": (10.5, 4.3), "burr12": (10.0, 4.0), "cosine": (), "crystalball": (2.0, 3.0), "dgamma": (1.1,),
    "dweibull": (2.07,), "erlang": (10.0,), "exponnorm": (1.5,), "exponpow": (2.7,), "exponweib": (2.9, 1.95),
    "fatiguelife": (29.0,), "fisk": (3.1,), "foldcauchy": (4.7,), "foldnorm": (1.95,), "genexpon": (9.1, 16.2, 3.3),
    "genextreme": (-0.1,), "gengamma": (4.4, 3.1), "genlogistic": (0.41,), "genpareto": (0.1,), "gibrat": (),
    "gompertz": (0.95,), "halfgennorm": (0.67,), "halflogistic": (), "hypsecant": (), "invweibull": (10.6,),
    "jf_skew_t": (8.0, 4.0), "johnsonsb": (4.3, 3.2), "johnsonsu": (2.55, 2.25), "kappa3": (1.0,),
    "laplace_asymmetric": (2.0,), "levy": (), "levy_l": (), "loggamma": (0.41,), "loglaplace": (3.25,),
    "loguniform": (0.01, 1.25), "lomax": (1.88,), "mielke": (10.4, 4.6), "moyal": (), "nakagami": (4.97,),
    "norminvgauss": (1.25, 0.5), "powerlaw": (1.66,), "powerlognorm": (2.14, 0.45), "powernorm": (4.45,),
    "rdist": (1.6,), "recipinvgauss": (0.63,), "reciprocal": (0.01, 1.25), "rel_breitwigner": (36.5,), "rice": (0.775,),
    "semicircular": (), "skewcauchy": (0.5,), "truncexpon": (4.69,), "truncweibull_min": (2.5, 0.25, 1.75),
    "wald": (), "weibull_max": (2.87,), "wrapcauchy": (0.031,),
}  # fmt: skip
COMPOSED = "bradford"  # its pdf and its cdf are formulas of SciPy's, and the other four are made of them


@group_cases
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::retrograd.ops.batch_loop.PerformanceWarning")
@pytest.mark.parametrize("name", sorted(DISTRIBUTIONS))
def test_distributions_by_scipys_formulas_have_its_values_and_derivatives_of_second_order(name):
    ours, theirs, shapes = DISTRIBUTIONS[name], getattr(scipy.stats, name), np.array(FORMULAS[name])
    x = np.append(theirs.ppf([0.05, 0.3, 0.6, 0.95], *shapes), [-1e3, 1e3, np.nan])
    moving = [rg.tensor(a, requires_grad=True) for a in (x[1:3] + 0.01, *shapes)]
    for function in ("pdf", "logpdf", *(TAILS if "cdf" in vars(ours) else ())):
        for scaled in ((), (np.float64(0.2), np.float64(1.7))):
            given = (*shapes, *scaled)
            found = getattr(ours, function)(rg.tensor(x), *[rg.tensor(a) for a in given])
            np.testing.assert_allclose(found.numpy(), getattr(theirs, function)(x, *given), rtol=1e-8, atol=1e-13)
            assert not isinstance(getattr(ours, function)(x, *given), Tensor)
        # The same code for all distributions composes methods without a formula of SciPy from the others.
        if ALL_SAMPLES or name == COMPOSED or ours._own(f"_{function}"):
            assert gradcheck(getattr(ours, function), moving, check_forward_ad=True, fast_mode=True)
            assert gradgradcheck(getattr(ours, function), moving, fast_mode=True)
    # Some formulas branch on values.
    batched = vmap(ours.logpdf, (0, *(None for _ in shapes)), fallback="loop")
    batch = batched(rg.tensor(x[:2]), *[t.detach() for t in moving[1:]])
    np.testing.assert_allclose(batch.numpy(), theirs.logpdf(x[:2], *shapes), rtol=1e-8)


def test_a_distribution_with_invalid_shapes_is_nan_and_one_without_derivative_refuses_by_name():
    assert stats.lomax.pdf(rg.tensor([1.0, 2.0]), rg.tensor([-1.0, 2.0])).isnan().tolist() == [True, False]
    x = rg.tensor([0.5], requires_grad=True)
    for call, path in (
        (lambda: stats.landau.pdf(x), "stats.landau.pdf"), (lambda: stats.levy.ppf(x), "stats.levy.ppf"),
        (lambda: stats.rice.cdf(x, 1.0), "stats.rice.cdf"), (lambda: stats.norm.ppf(x), "stats.norm.ppf"),
        (lambda: stats.landau(x), "stats.landau"), (lambda: stats.wishart.logpdf(x, 3, 1.0), "stats.wishart.logpdf"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=rf"^scipy\.{path}: retrograd knows no derivative of it"):
            call()
    assert stats.landau.pdf(x.detach()) == scipy.stats.landau.pdf(0.5)


# --------------------------------------------------------------------------------------------- kernel densities

_r = np.random.default_rng(0)
DATA, WEIGHTS = _r.normal(size=(2, 12)), _r.random(12)


@pytest.mark.parametrize(
    ("data", "method", "weights"),
    [(DATA, None, None), (DATA, "silverman", WEIGHTS), (DATA[0], 0.3, WEIGHTS), (DATA[0], lambda kde: 0.5, None)],
)
def test_a_kernel_density_is_scipys(data, method, weights):
    theirs = scipy.stats.gaussian_kde(data, method, weights)
    ours = stats.gaussian_kde(rg.tensor(data), method, None if weights is None else rg.tensor(weights))
    points = data[..., :4] + 0.1
    np.testing.assert_allclose(ours(rg.tensor(points)).numpy(), theirs(points), rtol=1e-10)
    np.testing.assert_allclose(ours.logpdf(points).numpy(), theirs.logpdf(points), rtol=1e-10)
    assert float(ours.factor) == pytest.approx(theirs.factor)
    assert ours.resample(3, seed=0).shape == (ours.d, 3)
    if ours.d == 1:
        assert ours.integrate_box_1d(-1, 0.5).item() == pytest.approx(theirs.integrate_box_1d(-1, 0.5))


def test_a_kernel_density_is_differentiable_in_data_weights_and_points():
    def density(data, weights, points):
        return stats.gaussian_kde(data, None, weights).logpdf(points)

    given = [rg.tensor(x, requires_grad=True) for x in (DATA[:, :5], WEIGHTS[:5], DATA[:, 5:7])]
    assert gradcheck(density, given, check_forward_ad=True)
    assert gradgradcheck(density, given, fast_mode=True)
    points = rg.tensor(DATA[:, :3])
    both = vmap(lambda points: density(rg.tensor(DATA), WEIGHTS, points))(rg.stack([points, points + 1]))
    np.testing.assert_allclose(both[1].numpy(), density(rg.tensor(DATA), WEIGHTS, points + 1).numpy(), rtol=1e-10)


def test_a_kernel_density_of_arrays_is_scipys_and_refusals_have_a_reason():
    assert type(stats.gaussian_kde(DATA)) is scipy.stats.gaussian_kde
    for call, error, match in (
        (lambda: stats.gaussian_kde(rg.ones(1)), ValueError, "more than one point"),
        (lambda: stats.gaussian_kde(rg.tensor(DATA), "other"), ValueError, "bw_method must be 'scott'"),
        (
            lambda: stats.gaussian_kde(rg.tensor(DATA))(rg.ones(3, 2)),
            ValueError,
            "points have 3 dimensions",
        ),
        (lambda: stats.gaussian_kde(rg.tensor(DATA, requires_grad=True)).resample(2), TypeError, "data that require"),
    ):
        with pytest.raises(error, match=match):
            call()


# ---------------------------------------------------------------------------------------------------- summaries

POSITIVE = np.abs(DATA) + 0.1
SUMMARIES = [
    ("gmean", (POSITIVE,), {}), ("gmean", (POSITIVE, 1), {"weights": WEIGHTS}), ("hmean", (POSITIVE, None), {}),
    ("pmean", (POSITIVE, 2.5), {"axis": 1}), ("pmean", (POSITIVE, 0), {"axis": 1}), ("moment", (DATA, 3, 1), {}),
    ("moment", (DATA, 2, 1), {"center": 0.3}), ("skew", (DATA, 1), {}), ("skew", (DATA, 1, False), {}),
    ("kurtosis", (DATA, 1), {}), ("kurtosis", (DATA, 1, False, False), {}), ("sem", (DATA, 1), {}),
    ("variation", (DATA, 1), {"ddof": 1}), ("zscore", (DATA, None), {}), ("entropy", (POSITIVE,), {"axis": 1}),
    ("entropy", (POSITIVE, POSITIVE[::-1].copy()), {"base": 2, "axis": 1}),
]  # fmt: skip


@group_cases
@pytest.mark.parametrize(("name", "args", "options"), SUMMARIES)
def test_summaries_are_scipys_with_derivatives(name, args, options):
    expected = getattr(scipy.stats, name)(*args, **options)
    leaves = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]

    def function(*given):
        filled = list(args)
        for i, x in zip(leaves, given, strict=True):
            filled[i] = x
        return getattr(stats, name)(*filled, **options)

    given = [rg.tensor(args[i], requires_grad=True) for i in leaves]
    np.testing.assert_allclose(function(*given).detach().numpy(), expected, rtol=1e-10)
    assert gradcheck(function, given, check_forward_ad=True, fast_mode=True)
    np.testing.assert_array_equal(getattr(stats, name)(*args, **options), expected)


def test_options_of_summaries_are_refused_by_name():
    with pytest.raises(TypeError, match=r"stats\.skew"):
        stats.skew(rg.tensor(DATA), nan_policy="omit")
    with pytest.raises(TypeError, match=r"stats\.gmean"):
        stats.gmean(rg.tensor(DATA), keepdims=True)
