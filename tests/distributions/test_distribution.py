"""Distributions compose with transforms of functions, check their arguments, and can be extended."""

import copy
import pickle
import types
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import distributions as D
from retrograd.distributions.utils import lazy_property

from ..case_groups import group_cases
from .instances import INSTANCES


def leaves_of(name):
    """Return the leaves that an instance is made of, and a function of other values for them to the log-probability."""
    leaves = []

    def collect(values):
        leaves.append(rg.tensor(values, dtype="float64"))
        return leaves[-1]

    instance = INSTANCES[name]
    instance.build(D, collect)
    value = rg.tensor(instance.values, dtype="float64")

    def log_prob(*values):
        remaining = iter(values)
        return instance.build(D, lambda _: next(remaining)).log_prob(value)

    return leaves, log_prob


COUNTS = ("Binomial of logits", "NegativeBinomial")  # total_count is a whole number, or has no derivative
CONSTRAINED = ("Uniform", "Categorical", "OneHotCategorical", "Multinomial")


@group_cases
@pytest.mark.parametrize("name", [n for n in INSTANCES if n not in ("Binomial of logits",)])
def test_log_probabilities_have_derivatives_of_two_orders(name):
    leaves, log_prob = leaves_of(name)
    inputs = [leaf.clone().requires_grad_() for leaf in leaves]
    if "MultivariateNormal" in name or name == "Wishart":  # a matrix is symmetric, or triangular

        def of_symmetric(*values):
            tril = "factor" in name
            return log_prob(
                *(v if v.ndim < 2 else v.tril() if tril else (v + v.mT) / 2 if square(v) else v for v in values)
            )

        def square(v):
            return v.shape[-1] == v.shape[-2]

        assert rg.autograd.gradcheck(of_symmetric, inputs)
        return
    assert rg.autograd.gradcheck(log_prob, inputs)
    assert rg.autograd.gradgradcheck(log_prob, inputs)


@group_cases
@pytest.mark.parametrize("name", INSTANCES)
def test_vmap_over_parameters_is_a_loop(name):
    leaves, log_prob = leaves_of(name)
    stacked = [rg.stack([leaf, leaf]) for leaf in leaves]
    expected = log_prob(*leaves)
    batched = rg.func.vmap(log_prob)(*stacked)
    assert rg.allclose(batched, rg.stack([expected, expected]), equal_nan=True)


def test_gradients_of_functions_go_through_draws_and_divergences():
    def loss(loc, scale):
        q = D.Normal(loc, scale)
        return D.kl_divergence(q, D.Normal(0.0, 1.0)).sum() - q.rsample((3,)).sum()

    loc, scale = rg.ones(2), rg.full((2,), 0.5)
    slopes = rg.func.grad(loss, argnums=(0, 1))(loc, scale)
    assert rg.allclose(slopes[0], loc - 3)
    _, tangent = rg.func.jvp(lambda loc: loss(loc, scale), (loc,), (rg.ones(2),))
    assert rg.allclose(tangent, (loc - 3).sum())


def test_invalid_values_are_found_under_vmap_and_without_validation_nothing_is_checked():
    def log_prob(scale):
        return D.Normal(0.0, scale).log_prob(rg.tensor(0.0))

    with pytest.raises(ValueError, match="Expected parameter scale"):
        rg.func.vmap(log_prob)(rg.tensor([1.0, -1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert D.Normal(0.0, rg.tensor(-1.0), validate_args=False).log_prob(rg.tensor(0.0)).isnan()


def test_the_default_of_validation_can_be_changed_and_restored():
    D.Distribution.set_default_validate_args(False)
    try:
        D.Exponential(-1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter rate"):
        D.Exponential(-1.0)
    with pytest.raises(ValueError, match="expected True or False, got 'yes'"):
        D.Distribution.set_default_validate_args("yes")


def test_a_distribution_prints_its_parameters():
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Normal(rg.zeros(2), 1.0)) == "Normal(loc: shape (2,), scale: shape (2,))"
    assert repr(D.LogNormal(0.0, 1.0)) == "LogNormal(loc: 0.0, scale: 1.0)"
    assert repr(D.Bernoulli(logits=0.0)) == "Bernoulli(logits: 0.0)"
    assert repr(D.constraints.interval(0, 1)) == "Interval(lower_bound=0, upper_bound=1)"


def test_users_register_divergences_for_their_classes_and_the_closest_classes_win():
    class Mine(D.Normal):
        pass

    class Yours(D.Normal):
        pass

    @D.register_kl(Mine, D.Normal)
    def _of_mine(p, q):
        return rg.tensor(1.0)

    assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)) == 1
    assert D.kl_divergence(D.Normal(0.0, 1.0), Mine(0.0, 1.0)) == 0

    @D.register_kl(D.Normal, Yours)
    def _of_yours(p, q):
        return rg.tensor(2.0)

    with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
        assert D.kl_divergence(Mine(0.0, 1.0), Yours(0.0, 1.0)) == 1
    with pytest.raises(TypeError, match="Expected a Distribution subclass"):
        D.register_kl("Mine", D.Normal)


def test_a_divergence_is_registered_for_a_base_class_that_is_no_distribution():
    class Interface:
        pass

    class Mine(D.Distribution, Interface):
        arg_constraints = {}  # noqa: RUF012

    D.register_kl(Interface, Interface)(lambda p, q: rg.tensor(3.0))
    assert D.kl_divergence(Mine(), Mine()) == 3


def test_an_instance_to_expand_into_is_given_or_made_for_the_same_constructor():
    class Same(D.Normal):
        pass

    class Other(D.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    given = D.Normal(0.0, 1.0)
    assert given._get_checked_instance(D.Normal, given) is given
    assert type(Same(0.0, 1.0)._get_checked_instance(D.Normal)) is Same
    with pytest.raises(NotImplementedError, match="Subclass Other of Normal"):
        Other()._get_checked_instance(D.Normal)


def test_the_entropy_of_an_exponential_family_follows_from_its_log_normalizer():
    for d in (D.Normal(rg.tensor([0.3, 1.0]), 0.7), D.Gamma(2.5, 1.5), D.Exponential(1.5), D.Bernoulli(0.3)):
        if isinstance(d, D.Gamma):
            continue  # its carrier measure is in the natural parameters
        assert rg.allclose(D.ExponentialFamily.entropy(d), d.entropy(), atol=1e-6), d


def test_transforms_keep_the_latest_pair_if_they_have_a_cache():
    transform = D.TanhTransform(cache_size=1)
    x = rg.tensor([20.0])  # tanh is 1, so that the inverse would be infinite
    y = transform(x)
    assert transform.inv(y) is x
    assert transform(x) is y
    assert transform.inv.inv is transform
    assert D.ComposeTransform([transform]).with_cache(1).parts[0] is transform


BIJECTIONS = {
    "affine": (D.AffineTransform(0.5, -2.0), [0.5, 1.5]),
    "exp": (D.ExpTransform(), [0.5, -1.5]),
    "power": (D.PowerTransform(2.5), [0.5, 1.5]),
    "sigmoid": (D.SigmoidTransform(), [0.5, -1.5]),
    "softplus": (D.SoftplusTransform(), [0.5, -1.5]),
    "tanh": (D.TanhTransform(), [0.5, -1.5]),
    "stick breaking": (D.StickBreakingTransform(), [0.5, -1.5, 0.2]),
    "correlations": (D.CorrCholeskyTransform(), [0.5, -1.5, 0.2]),
    "composed": (D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.SigmoidTransform()]), [0.5, -1.5]),
}


@pytest.mark.parametrize(("transform", "values"), BIJECTIONS.values(), ids=BIJECTIONS)
def test_jacobian_determinants_of_bijections_are_those_of_the_jacobian(transform, values):
    x = rg.tensor(values, dtype="float64")
    jacobian = rg.func.jacrev(transform)(x)
    if transform.codomain.event_dim == 2:  # the elements below the diagonal are the free ones
        n = jacobian.shape[0]
        rows, columns = rg.tril_indices(n, n, -1)
        jacobian = jacobian[rows, columns]
    jacobian = jacobian[: len(values)]
    found = transform.log_abs_det_jacobian(x, transform(x)).sum()
    assert rg.allclose(found, rg.linalg.slogdet(jacobian)[1])
    assert rg.allclose(transform.inv(transform(x)), x)


def test_distributions_and_transforms_can_be_copied_and_pickled():
    for name in ("Normal", "LogNormal", "Gumbel", "Wishart", "mixture of vectors", "RelaxedBernoulli"):
        d = INSTANCES[name].build(D, lambda values: rg.tensor(values, dtype="float64"))
        value = rg.tensor(INSTANCES[name].values, dtype="float64")
        for other in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
            np.testing.assert_array_equal(other.log_prob(value).numpy(), d.log_prob(value).numpy())
    inverse = D.ExpTransform().inv
    assert pickle.loads(pickle.dumps(inverse)) == inverse


def test_a_lazy_property_is_computed_once_with_gradients():
    class Owner:
        calls = 0

        @lazy_property
        def doubled(self):
            self.calls += 1
            return 2 * self.x

    owner = Owner()
    owner.x = rg.ones(2, requires_grad=True)
    with rg.no_grad():
        assert owner.doubled.requires_grad
    assert owner.doubled is owner.doubled
    assert owner.calls == 1


def test_a_subclass_in_a_program_of_its_own_only_needs_parameters_and_formulas():
    class Triangular(D.Distribution):
        """Values between 0 and `width`, whose density falls linearly."""

        arg_constraints = types.MappingProxyType({"width": D.constraints.positive})
        has_rsample = True

        def __init__(self, width, validate_args=None):
            (self.width,) = D.utils.broadcast_all(width)
            super().__init__(self.width.shape, validate_args=validate_args)

        @D.constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return D.constraints.interval(0.0, self.width)

        def rsample(self, sample_shape=()):
            return self.width * (1 - rg.rand(self._extended_shape(sample_shape)).sqrt())

        def log_prob(self, value):
            self._validate_sample(value)
            return (2 * (self.width - value)).log() - 2 * self.width.log()

    d = Triangular(rg.tensor([1.0, 3.0])).expand((4, 2))
    assert d.sample((5,)).shape == (5, 4, 2)
    assert d.log_prob(rg.tensor([0.5, 0.5])).shape == (4, 2)
    with pytest.raises(ValueError, match="within the support"):
        d.log_prob(rg.tensor([2.0, 2.0]))
    assert D.Independent(d, 1).log_prob(rg.tensor([0.5, 0.5])).shape == (4,)


def test_parameters_that_do_not_fit_the_others_are_refused():
    with pytest.raises(ValueError, match="total_count must be at least 0"):
        D.Multinomial(-1, rg.ones(3))
    with pytest.raises(ValueError, match=r"covariance_matrix must have shape \(..., 2, 2\)"):
        D.MultivariateNormal(rg.zeros(2), rg.full((1, 2), 0.5))
    with pytest.raises(ValueError, match=r"scale_tril must have shape"):
        D.MultivariateNormal(rg.zeros(2), scale_tril=rg.eye(1))


def test_gamma_takes_the_density_of_a_number():
    gamma = D.Gamma(rg.tensor([1.0, 2.0]), rg.tensor([2.0, 3.0]))
    assert gamma.log_prob(1).tolist() == gamma.log_prob(rg.ones(2)).tolist()
    assert D.Chi2(rg.tensor(3.0)).log_prob(0.5).item() == D.Chi2(rg.tensor(3.0)).log_prob(rg.tensor(0.5)).item()


@pytest.mark.parametrize("transforms", [lambda x: x, [lambda x: x], 3])
def test_what_is_not_a_transform_is_refused(transforms):
    with pytest.raises(ValueError, match="transforms must be a Transform or a list of Transforms"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), transforms)


def test_a_subclass_may_compute_the_factor_of_its_covariance_matrix():
    class Diagonal(D.MultivariateNormal):
        def __init__(self, scale):
            self.loc, self.scale = rg.zeros(2), scale
            D.Distribution.__init__(self, (), (2,), validate_args=False)

        @property
        def _unbroadcasted_scale_tril(self):
            return self.scale.diag()

    normal = Diagonal(rg.tensor([1.0, 2.0]))
    assert normal.covariance_matrix.tolist() == [[1.0, 0.0], [0.0, 4.0]]
    assert normal.precision_matrix.tolist() == [[1.0, 0.0], [0.0, 0.25]]
    assert normal.variance.tolist() == [1.0, 4.0]


def test_a_matrix_for_a_whole_batch_is_factorized_once():
    normal = D.MultivariateNormal(rg.zeros(5, 2), rg.eye(2))
    assert normal._unbroadcasted_scale_tril.shape == (2, 2)
    assert normal.scale_tril.shape == normal.precision_matrix.shape == (5, 2, 2)
    assert normal.entropy().shape == (5,)
