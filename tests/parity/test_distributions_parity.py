"""Distributions, transforms, constraints and divergences have PyTorch's values, shapes, errors and signatures."""

import inspect
import warnings

import numpy as np
import pytest
import torch

import retrograd as rg

from ..distributions.instances import INSTANCES

MOMENTS = ("mean", "mode", "variance", "stddev")
FUNCTIONS = ("log_prob", "cdf", "icdf", "entropy", "perplexity", "enumerate_support")
LIBRARIES = (torch, rg)


@pytest.fixture(autouse=True)
def double_precision():
    """PyTorch's generalized Pareto and multinomial distributions compute partly in the default dtype."""
    for library in LIBRARIES:
        library.set_default_dtype(library.float64)
        library.distributions.Distribution.set_default_validate_args(True)  # PyTorch's own test helpers set False
    yield
    for library in LIBRARIES:
        library.set_default_dtype(library.float32)


# What differs, and why.
EXEMPT = {
    ("Dirichlet below 1", "mode"): "PyTorch takes the largest element of NaN, so always the first corner",
    ("Beta below 1", "mode"): "PyTorch takes the largest element of NaN, so always the first corner",
    ("Kumaraswamy", "mode"): "PyTorch takes the logarithm of a negative number",
    ("Weibull", "mode"): "PyTorch takes a power of a negative number; the mode is 0",
    ("Pareto", "mean"): "PyTorch's gradient is infinite or NaN where the moment is infinite",
    ("Pareto", "variance"): "PyTorch's gradient is infinite or NaN where the moment is infinite",
    ("Pareto", "stddev"): "PyTorch's gradient is infinite or NaN where the moment is infinite",
    ("FisherSnedecor", "variance"): "PyTorch's gradient is NaN where the variance is not defined",
    ("FisherSnedecor", "stddev"): "PyTorch's gradient is NaN where the variance is not defined",
}


# PyTorch's Bessel functions of von Mises distributions have seven digits.
TOLERANCES = {"VonMises": 1e-5}


def tensor_of(library):
    return lambda values: library.tensor(values, dtype=library.float64, requires_grad=True)


def outcome(library, name, attribute):
    """Return the result of an attribute, and the gradients of its sum by the parameters, or the error's class."""
    leaves = []

    def tensor(values):
        leaves.append(tensor_of(library)(values))
        return leaves[-1]

    instance = INSTANCES[name]
    distribution = instance.build(library.distributions, tensor)
    values = library.tensor(instance.values, dtype=library.float64, requires_grad=True)
    arguments = {"log_prob": (values,), "cdf": (values,), "icdf": (values.sigmoid(),)}.get(attribute, ())
    try:
        found = getattr(distribution, attribute)
        result = found(*arguments) if callable(found) else found
    except NotImplementedError:
        return NotImplementedError
    gradients = [None] * (len(leaves) + 1)
    if result.requires_grad:
        try:
            gradients = library.autograd.grad(result.sum(), [*leaves, values], allow_unused=True, retain_graph=True)
        except NotImplementedError:  # the derivative of igamma by its first argument
            gradients = library.autograd.grad(result.sum(), values)
    return [array(result), *map(array, gradients)]


def array(t):
    return None if t is None else np.asarray(t.detach().numpy(), dtype=np.float64)


def close(theirs, ours, where, tolerance=1e-9):
    if theirs is None or ours is None:  # a gradient that is 0 may be missing
        present = theirs if ours is None else ours
        assert present is None or not np.nan_to_num(present).any(), where
        return
    assert theirs.shape == ours.shape, where
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=where)


@pytest.mark.parametrize("attribute", MOMENTS + FUNCTIONS)
@pytest.mark.parametrize("name", INSTANCES)
def test_a_distribution_has_pytorchs_values_and_gradients(name, attribute):
    if (name, attribute) in EXEMPT:
        pytest.skip(EXEMPT[name, attribute])
    theirs, ours = (outcome(library, name, attribute) for library in LIBRARIES)
    if theirs is NotImplementedError:  # ours may do more
        return
    assert ours is not NotImplementedError
    if len(theirs) < len(ours):  # no gradients by the parameters
        ours = [ours[0], ours[-1]]
    for i, (a, b) in enumerate(zip(theirs, ours, strict=True)):
        close(a, b, f"{name}.{attribute}, {'value' if i == 0 else f'gradient {i}'}", TOLERANCES.get(name, 1e-9))


def built(library, name):
    return INSTANCES[name].build(library.distributions, tensor_of(library))


@pytest.mark.filterwarnings("ignore:Singular sample detected:UserWarning")
@pytest.mark.parametrize("name", INSTANCES)
def test_shapes_supports_and_traits_are_pytorchs(name):
    theirs, ours = (built(library, name) for library in LIBRARIES)
    for trait in ("has_rsample", "has_enumerate_support"):
        assert getattr(ours, trait) == getattr(theirs, trait), trait
    assert (ours.batch_shape, ours.event_shape) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
    assert (ours.support.is_discrete, ours.support.event_dim) == (theirs.support.is_discrete, theirs.support.event_dim)
    assert {k: (c.is_discrete, c.event_dim) for k, c in ours.arg_constraints.items()} == {
        k: (c.is_discrete, c.event_dim) for k, c in theirs.arg_constraints.items()
    }
    for shape in ((), (5,), (2, 3)):
        assert ours.sample(shape).shape == tuple(theirs.sample(shape).shape)
        assert ours.sample(shape).dtype == np.dtype(str(theirs.sample(shape).dtype)[6:])
        assert not ours.sample(shape).requires_grad


@pytest.mark.filterwarnings("ignore:Singular sample detected:UserWarning")
@pytest.mark.parametrize("name", INSTANCES)
def test_expanded_distributions_have_pytorchs_values(name):
    theirs, ours = (built(library, name) for library in LIBRARIES)
    shape = (2, 2, *theirs.batch_shape)
    theirs, ours = theirs.expand(torch.Size(shape)), ours.expand(shape)
    assert ours.batch_shape == shape
    assert type(ours).__name__ == type(theirs).__name__
    assert ours.sample((3,)).shape == tuple(theirs.sample((3,)).shape)
    draws = ours.sample()
    a = theirs.log_prob(torch.tensor(draws.numpy()))
    np.testing.assert_allclose(
        array(ours.log_prob(draws)), array(a), rtol=(rtol := TOLERANCES.get(name, 1e-8)), atol=rtol
    )


PAIRS = [(p, q) for p in INSTANCES for q in INSTANCES]


def divergence(library, p, q):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ambiguous pairs
            return array(library.distributions.kl_divergence(built(library, p), built(library, q)))
    except NotImplementedError:
        return NotImplementedError


@pytest.mark.parametrize("p", INSTANCES)
def test_divergences_are_pytorchs(p):
    for q in INSTANCES:
        theirs = divergence(torch, p, q)
        if theirs is NotImplementedError:
            continue
        ours = divergence(rg, p, q)
        assert ours is not NotImplementedError, (p, q)
        theirs, ours = np.broadcast_arrays(theirs, ours)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9, err_msg=f"{p}, {q}")


TRANSFORMS = {
    "abs": (lambda d, t: d.AbsTransform(), [0.5, 2.0]),
    "affine": (lambda d, t: d.AffineTransform(t(0.5), t([-2.0, 3.0])), [0.5, 2.0]),
    "affine of vectors": (lambda d, t: d.AffineTransform(t(0.5), t([-2.0, 3.0]), event_dim=1), [0.5, 2.0]),
    "cat": (lambda d, t: d.CatTransform([d.ExpTransform(), d.identity_transform], 0, [1, 2]), [0.5, 2.0, 1.0]),
    "compose": (lambda d, t: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.SigmoidTransform()]), [0.5, -2.0]),
    "compose of vectors": (
        lambda d, t: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.StickBreakingTransform()]),
        [[0.5, -2.0], [0.1, 0.3]],
    ),
    "correlations": (lambda d, t: d.CorrCholeskyTransform(), [0.5, -0.2, 0.8]),
    "cdf": (lambda d, t: d.CumulativeDistributionTransform(d.Normal(t(0.0), t(1.0))), [0.5, -2.0]),
    "exp": (lambda d, t: d.ExpTransform(), [0.5, -2.0]),
    "independent": (lambda d, t: d.IndependentTransform(d.ExpTransform(), 1), [[0.5, -2.0]]),
    "inverse": (lambda d, t: d.ExpTransform().inv, [0.5, 2.0]),
    "lower Cholesky": (lambda d, t: d.LowerCholeskyTransform(), [[0.5, 0.0], [1.0, -1.0]]),
    "positive definite": (lambda d, t: d.PositiveDefiniteTransform(), [[0.5, 0.0], [1.0, -1.0]]),
    "power": (lambda d, t: d.PowerTransform(t(2.5)), [0.5, 2.0]),
    "power down": (lambda d, t: d.PowerTransform(t(-1.5)), [0.5, 2.0]),
    "reshape": (lambda d, t: d.ReshapeTransform((4,), (2, 2)), [0.5, 2.0, 1.0, 3.0]),
    "sigmoid": (lambda d, t: d.SigmoidTransform(), [0.5, -2.0]),
    "softmax": (lambda d, t: d.SoftmaxTransform(), [0.5, -2.0, 1.0]),
    "softplus": (lambda d, t: d.SoftplusTransform(), [0.5, -2.0]),
    "stack": (lambda d, t: d.StackTransform([d.ExpTransform(), d.TanhTransform()], 0), [0.5, -1.0]),
    "stick breaking": (lambda d, t: d.StickBreakingTransform(), [[0.5, -2.0], [0.1, 0.3]]),
    "tanh": (lambda d, t: d.TanhTransform(), [0.5, -1.0]),
}


def transform_outcome(library, name):
    """Return the image, the inverse of it, its Jacobian determinant, shapes, and the gradient by the input."""
    build, values = TRANSFORMS[name]
    transform, x = build(library.distributions, tensor_of(library)), tensor_of(library)(values)
    y = transform(x)
    shapes = tuple(transform.forward_shape(tuple(x.shape))), tuple(transform.inverse_shape(tuple(y.shape)))
    facts = [transform.bijective, transform.domain.event_dim, transform.codomain.event_dim, *shapes]
    results = [y, transform.inv(y), *library.autograd.grad((y * y).sum(), x)]
    try:
        results.append(transform.log_abs_det_jacobian(x, y))
        sign = transform.sign
        facts.append(array(sign).tolist() if hasattr(sign, "shape") else sign)
    except NotImplementedError:
        facts.append(None)
    return facts, [array(t) for t in results]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_pytorchs(name):
    (facts, theirs), (our_facts, ours) = (transform_outcome(library, name) for library in LIBRARIES)
    assert our_facts == facts
    for a, b in zip(theirs, ours, strict=True):
        close(a, b, name)


CONSTRAINTS = {
    "real": lambda c, t: c.real,
    "positive": lambda c, t: c.positive,
    "nonnegative": lambda c, t: c.nonnegative,
    "greater_than": lambda c, t: c.greater_than(2.0),
    "greater_than_eq": lambda c, t: c.greater_than_eq(-1.0),
    "less_than": lambda c, t: c.less_than(2.0),
    "interval": lambda c, t: c.interval(-1.0, 3.0),
    "half_open_interval": lambda c, t: c.half_open_interval(-1.0, 3.0),
    "unit_interval": lambda c, t: c.unit_interval,
    "simplex": lambda c, t: c.simplex,
    "lower_cholesky": lambda c, t: c.lower_cholesky,
    "positive_definite": lambda c, t: c.positive_definite,
    "corr_cholesky": lambda c, t: c.corr_cholesky,
    "real_vector": lambda c, t: c.real_vector,
    "cat": lambda c, t: c.cat([c.positive, c.real], 0, [1, 2]),
    "stack": lambda c, t: c.stack([c.positive, c.unit_interval, c.real], 0),
}


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_have_pytorchs_transforms(name, registry):
    results = []
    for library in LIBRARIES:
        constraint = CONSTRAINTS[name](library.distributions.constraints, tensor_of(library))
        try:
            transform = getattr(library.distributions, registry)(constraint)
        except NotImplementedError:
            results.append(NotImplementedError)
            continue
        square = name in ("lower_cholesky", "positive_definite")
        x = tensor_of(library)([[0.5, 0.1, 0.2], [0.3, -0.2, 0.9], [1.0, 0.2, 0.1]] if square else [0.5, -0.4, 0.2])
        y = transform(x)
        assert bool(constraint.check(y).all())
        results.append([array(y), array(transform.inv(y))])
    theirs, ours = results
    if theirs is NotImplementedError:
        assert ours is NotImplementedError
        return
    for a, b in zip(theirs, ours, strict=True):
        close(a, b, name)


CHECKS = {
    "boolean": ("boolean", [0.0, 1.0, 0.5]),
    "one_hot": ("one_hot", [[0.0, 1.0], [1.0, 1.0], [0.0, 0.5]]),
    "real": ("real", [0.0, float("nan"), float("inf")]),
    "simplex": ("simplex", [[0.2, 0.8], [0.2, 0.7], [-0.2, 1.2]]),
    "nonnegative_integer": ("nonnegative_integer", [0.0, 1.5, -1.0]),
    "positive_integer": ("positive_integer", [0.0, 1.5, 2.0]),
    "positive": ("positive", [0.0, 1.5, -2.0]),
    "nonnegative": ("nonnegative", [0.0, 1.5, -2.0]),
    "unit_interval": ("unit_interval", [0.0, 1.0, 1.1]),
    "real_vector": ("real_vector", [[0.0, 1.0], [0.0, float("nan")]]),
    "lower_triangular": ("lower_triangular", [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]]]),
    "lower_cholesky": ("lower_cholesky", [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [2.0, 1.0]]]),
    "corr_cholesky": ("corr_cholesky", [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [2.0, 1.0]]]),
    "square": ("square", [[[1.0, 0.0, 2.0], [0.6, 0.8, 0.0]]]),
    "symmetric": ("symmetric", [[[1.0, 2.0], [2.0, 0.8]], [[1.0, 0.0], [2.0, 1.0]]]),
    "positive_definite": ("positive_definite", [[[1.0, 0.5], [0.5, 0.8]], [[1.0, 2.0], [2.0, 1.0]]]),
    "positive_semidefinite": ("positive_semidefinite", [[[1.0, 0.5], [0.5, 0.8]], [[1.0, 2.0], [2.0, 1.0]]]),
}


@pytest.mark.parametrize(("constraint", "values"), CHECKS.values(), ids=CHECKS)
def test_constraints_hold_for_pytorchs_values(constraint, values):
    theirs, ours = (
        getattr(library.distributions.constraints, constraint).check(library.tensor(values, dtype=library.float64))
        for library in LIBRARIES
    )
    assert ours.tolist() == theirs.tolist()


MISTAKES = {
    "a parameter outside of its set": lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, -1.0])),
    "a value outside of the support": lambda d, t: d.Exponential(t([1.0, 2.0])).log_prob(t([0.5, -1.0])),
    "a value of another event shape": lambda d, t: d.Dirichlet(t([1.0, 2.0])).log_prob(t([0.2, 0.3, 0.5])),
    "a value that does not broadcast": lambda d, t: d.Normal(t([0.0, 1.0]), t(1.0)).log_prob(t([0.2, 0.3, 0.5])),
    "a value that is no tensor": lambda d, t: d.Normal(t(0.0), t(1.0)).log_prob(1.0),
    "both probs and logits": lambda d, t: d.Bernoulli(t(0.5), t(0.5)),
    "neither probs nor logits": lambda d, t: d.Categorical(),
    "an empty interval": lambda d, t: d.Uniform(t([0.0, 1.0]), t([1.0, 0.0])),
    "no matrix": lambda d, t: d.MultivariateNormal(t([0.0, 1.0])),
    "a number as a vector": lambda d, t: d.MultivariateNormal(t(0.0), t([[1.0]])),
    "too many dimensions": lambda d, t: d.Independent(d.Normal(t([0.0]), t(1.0)), 2),
    "too few dimensions": lambda d, t: d.TransformedDistribution(d.Normal(t(0.0), t(1.0)), d.StickBreakingTransform()),
    "no transform": lambda d, t: d.TransformedDistribution(d.Normal(t(0.0), t(1.0)), [1.0]),
    "no constraint": lambda d, t: d.biject_to.register(float, lambda c: c),
    "an unknown pair": lambda d, t: d.kl_divergence(d.Normal(t(0.0), t(1.0)), d.Cauchy(t(0.0), t(1.0))),
    "no rsample": lambda d, t: d.Poisson(t(0.5)).rsample(),
    "a cache of 2": lambda d, t: d.ExpTransform(cache_size=2),
    "a probability of 0": lambda d, t: d.Geometric(t(0.0)),
    "few degrees of freedom": lambda d, t: d.Wishart(t(0.5), t([[1.0, 0.0], [0.0, 1.0]])),
    "a dimension of 1": lambda d, t: d.LKJCholesky(1),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_have_pytorchs_classes_and_words(mistake):
    errors = []
    for library in LIBRARIES:
        with pytest.raises(Exception) as caught:  # noqa: PT011 (the class is compared)
            mistake(
                library.distributions, lambda values, library=library: library.tensor(values, dtype=library.float64)
            )
        errors.append(caught.value)
    theirs, ours = errors
    assert isinstance(ours, type(theirs))
    if isinstance(theirs, ValueError | TypeError):
        assert str(ours)[:25] == str(theirs)[:25]


def parameters(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


NAMES = sorted(torch.distributions.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_classes_and_methods_have_pytorchs_parameters(name):
    theirs, ours = (getattr(library.distributions, name) for library in LIBRARIES)
    if not inspect.isclass(theirs):
        if inspect.isfunction(theirs):
            assert [n for n, _, _ in parameters(ours)] == [n for n, _, _ in parameters(theirs)]
        return
    assert parameters(ours.__init__)[1:] == [
        (n, k, tuple(d) if isinstance(d, torch.Size) else d) for n, k, d in parameters(theirs.__init__)[1:]
    ]
    for method in ("sample", "rsample", "log_prob", "cdf", "icdf", "entropy", "enumerate_support", "expand"):
        if hasattr(theirs, method):
            assert [n for n, _, _ in parameters(getattr(ours, method))] == [
                n for n, _, _ in parameters(getattr(theirs, method))
            ], method


@pytest.mark.parametrize("module", ["constraints", "transforms"])
def test_modules_have_pytorchs_names(module):
    theirs, ours = (getattr(library.distributions, module) for library in LIBRARIES)
    assert [name for name in theirs.__all__ if not hasattr(ours, name)] == []
