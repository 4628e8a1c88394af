"""Running statistics are updated inside transforms, but only if all examples agree on them."""

import pytest

import retrograd as rg
from retrograd.func import grad, jvp, vjp, vmap
from retrograd.nn import functional as F
from retrograd.testing import assert_close

X = rg.arange(12.0).reshape(4, 3).cos()
NORMS = {
    "batch_norm": lambda x, mean, var: F.batch_norm(x, mean, var, training=True),
    "instance_norm": lambda x, mean, var: F.instance_norm(x[None].mT, mean, var),
}
TRANSFORMS = {
    "grad": lambda f: grad(lambda x: f(x).sum())(X),
    "vjp": lambda f: vjp(f, X),
    "jvp": lambda f: jvp(f, (X,), (X,)),
    "jvp of jvp": lambda f: jvp(lambda x: jvp(f, (x,), (x,))[1], (X,), (X,)),
    "grad of jvp": lambda f: grad(lambda x: jvp(f, (x,), (X,))[1].sum())(X),
    "vmap, the same for all examples": lambda f: vmap(lambda i: f(X).sum() + i)(rg.ones(2)),
}


def statistics():
    return rg.zeros(3), rg.ones(3)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("norm", NORMS)
def test_transforms_update_statistics_as_the_function_does(norm, transform):
    expected, found = statistics(), statistics()
    NORMS[norm](X, *expected)
    TRANSFORMS[transform](lambda x: NORMS[norm](x, *found))
    for a, b in zip(expected, found, strict=True):
        assert_close(a, b)
        assert not b.requires_grad
        assert b.level is None


@pytest.mark.parametrize("norm", NORMS)
def test_statistics_that_differ_between_examples_are_refused_before_they_change(norm):
    mean, var = statistics()
    with pytest.raises(RuntimeError, match=f"{norm}: vmap can't write what differs between examples"):
        vmap(lambda x: NORMS[norm](x, mean, var))(rg.stack([X, 2 * X]))
    assert mean.tolist() == [0.0] * 3
    assert var.tolist() == [1.0] * 3


def test_a_loop_over_the_examples_updates_statistics_by_each():
    expected, found = statistics(), statistics()
    for x in (X, 2 * X):
        F.batch_norm(x, *expected, training=True)
    with pytest.warns(rg.func.batch.PerformanceWarning, match="runs example by example"):
        vmap(lambda x: F.batch_norm(x, *found, training=True), fallback="loop")(rg.stack([X, 2 * X]))
    assert_close(expected[0], found[0])


def test_modules_from_outside_refuse_before_statistics_change():
    norm = rg.nn.BatchNorm1d(3)
    with pytest.raises(RuntimeError, match="from outside a function transform"):
        grad(lambda x: norm(x).sum())(X)
    assert norm.running_mean.tolist() == [0.0] * 3
