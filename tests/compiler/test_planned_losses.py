"""Planned calls with conversions, quotients and checks of classes: a step's loss is a part of its plan."""

import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels, nn
from retrograd.compiler.program import PlannedCalls

from .comparison import assert_same_runs, numbers, observe


def classes(n, count, seed=0):
    return rg.from_numpy(np.random.default_rng(seed).integers(0, count, n))


def loss_and_grad(x, y, **options):
    x = x.detach().requires_grad_()
    loss = nn.functional.cross_entropy(x, y, **options)
    loss.sum().backward()
    return loss.detach(), x.grad


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 2}])
def test_a_cross_entropy_and_its_gradient_are_one_plan(options):
    f = rg.compile(lambda x, y: loss_and_grad(x, y, **options), fullgraph=True)
    for seed in range(3):
        x, y = numbers(32, 10, seed=seed), classes(32, 10, seed)
        assert observe(f(x, y)) == observe(loss_and_grad(x, y, **options))
    if kernels.compiled:
        assert [type(i) for i in f.programs[-1].played] == [PlannedCalls]


def test_a_class_out_of_range_raises_the_error_of_the_eager_call():
    f = rg.compile(loss_and_grad, fullgraph=True)
    x, y = numbers(4, 3), classes(4, 3)
    for wrong in (3, -1, 2**40):
        f(x, y)
        bad = y.clone()
        bad[2] = wrong
        with pytest.raises(IndexError) as eager:
            loss_and_grad(x, bad)
        with pytest.raises(IndexError) as compiled:
            f(x, bad)
        assert str(compiled.value) == str(eager.value)
        assert type(compiled.value) is type(eager.value)
        assert observe(f(x, y)) == observe(loss_and_grad(x, y))


def test_an_error_in_a_loss_leaves_gradients_as_they_were():
    w = numbers(3, 5).requires_grad_()

    def step(x, y):
        nn.functional.cross_entropy(x @ w.t(), y).backward()

    compiled, x, y = rg.compile(step, fullgraph=True), numbers(4, 5), classes(4, 3)
    for _ in range(3):
        compiled(x, y)
    before = observe(w.grad)
    with pytest.raises(IndexError):
        compiled(x, rg.full((4,), 7))
    assert observe(w.grad) == before


@pytest.mark.parametrize("ignored", [[True] * 6, [True, False] * 3])
def test_means_of_ignored_classes(ignored):
    def make():
        return loss_and_grad, []

    y = rg.where(rg.tensor(ignored), -100, classes(6, 4))
    assert_same_runs(make, lambda i: (numbers(6, 4, seed=i), y))


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("to", ["int64", "float32", "float64"])
def test_conversions_have_the_bits_of_numpy(dtype, to):
    x = rg.from_numpy((np.random.default_rng(0).standard_normal((5, 7)) * 9).astype(dtype))

    def f(x):
        return (x.mT.to(getattr(rg, to)).mT.contiguous() @ rg.ones(7, 2, dtype=getattr(rg, to))).sum(0)

    compiled = rg.compile(f)
    for _ in range(2):
        assert observe(compiled(x)) == observe(f(x))


def test_a_conversion_that_overflows_warns_as_eager_code_does():
    def f(x):
        return (x.to(rg.float32).mT @ rg.ones(2, 3)).sum(0)

    compiled, x = rg.compile(f, fullgraph=True), numbers(2, 2).abs().to(rg.float64)
    compiled(x), compiled(x)
    for function in (f, compiled):
        with warnings.catch_warnings(record=True) as caught:  # on some processors the product warns about infinity, too
            warnings.simplefilter("always")
            function(x * 1e300)
        assert any("overflow" in str(warning.message) for warning in caught)


def test_counts_of_bools_and_integers():
    for x in (numbers(6, 5) > 0, (numbers(6, 5) * 9).to(rg.int32)):
        f = rg.compile(lambda x: (x.sum(), x.sum(0), x.mT.contiguous().sum(1)), fullgraph=True)
        for _ in range(2):
            assert observe(f(x)) == observe(f._function(x))


def test_a_warning_on_any_thread_is_given():
    x = numbers(64, 4096).abs() + 1
    x[-8:] = 0

    def f(x):
        return x.log().sum(0) @ rg.ones(4096, 2)

    compiled = rg.compile(f, fullgraph=True)
    compiled(x + 1), compiled(x + 1)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = compiled(x)
    assert any("divide by zero" in str(w.message) for w in found)
    with np.errstate(all="ignore"):
        assert observe(result) == observe(f(x))
