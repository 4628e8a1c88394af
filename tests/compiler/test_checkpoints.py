"""Checkpoints in compiled steps: they recompute, as in eager steps, with the same bits and no more memory."""

import tracemalloc
import warnings

import pytest

import retrograd as rg
from retrograd import kernels, nn
from retrograd.utils.checkpoint import checkpoint, checkpoint_sequential

from .comparison import numbers, observe, state_of


def model_of(width, layers):
    """Return a model of equal layers."""
    rg.manual_seed(0)
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(*parts)


def segments(model, x):
    for layer in model:
        x = checkpoint(layer, x, use_reentrant=False)
    return x


def nested(model, x):
    def inner(x):
        return checkpoint(model[2:], model[:2](x), use_reentrant=False) * 2

    return checkpoint(inner, x, use_reentrant=False)


def reentrant(model, x):
    return checkpoint(model, x.requires_grad_(), use_reentrant=True)


def sequential(model, x):
    return checkpoint_sequential(model, 2, x, use_reentrant=False)


def twice(model, x):
    return checkpoint(model, checkpoint(model, x, use_reentrant=False), use_reentrant=False)


def with_the_penalty_of_its_gradient(model, x):
    x = x.detach().requires_grad_()
    y = checkpoint(model, x, use_reentrant=False)
    (g,) = rg.autograd.grad(y.sum(), x, create_graph=True)
    return y + g


def norms(model, x):
    return checkpoint(nn.functional.batch_norm, model(x), None, None, training=True, use_reentrant=False)


def under_a_budget(model, x):
    return checkpoint_sequential(model, None, x, budget_bytes=200)


def dropout_in_each_layer(model, x):
    for layer in model:
        x = checkpoint(lambda x, layer=layer: nn.functional.dropout(layer(x)), x, use_reentrant=False)
    return x * rg.rand(4)


def dropout_reentrant(model, x):
    return checkpoint(lambda x: nn.functional.dropout(model(x), 0.3), x.requires_grad_(), use_reentrant=True)


def dropout_nested(model, x):
    def inner(x):
        return nn.functional.dropout(checkpoint(innermost, x, use_reentrant=False)) + rg.randn(4)

    def innermost(x):
        return nn.functional.dropout(model(x), 0.2)

    return checkpoint(inner, x, use_reentrant=False)


def dropout_under_a_budget(model, x):
    return checkpoint_sequential([*model, nn.Dropout(), model], None, x, budget_bytes=200)


generator = rg.Generator()


def numbers_of_a_generator(model, x):
    return checkpoint(lambda x, g: model(x) * rg.rand(4, generator=g), x, generator, use_reentrant=False)


def dropout_that_differs(model, x):
    dropout = nn.functional.dropout
    return checkpoint(lambda x: dropout(model(x)), x, use_reentrant=False, preserve_rng_state=False)


FORMS = [segments, under_a_budget, nested, reentrant, sequential, twice, with_the_penalty_of_its_gradient, norms,
         dropout_in_each_layer, dropout_reentrant, dropout_nested, dropout_under_a_budget, numbers_of_a_generator,
         dropout_that_differs]  # fmt: skip


def outcomes(form, compile):
    """Return what is observed of steps, and the step."""
    model = model_of(4, 3)
    optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
    generator.manual_seed(0)

    def step(x):
        optimizer.zero_grad()
        loss = form(model, x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    call = compile(step)
    seen = [(observe(call(numbers(5, 4, seed=i))), state_of(model.parameters())) for i in range(5)]
    return [*seen, observe(rg.get_rng_state()), observe(generator.get_state())], call


@pytest.mark.parametrize("form", FORMS)
def test_checkpoints_in_a_step_have_the_eager_bits(form):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = outcomes(form, lambda f: f)
        found, step = outcomes(form, rg.compile)
    assert found == expected
    assert step.programs
    assert not step.refusal()


@pytest.mark.parametrize("form", FORMS)
def test_checkpoints_in_a_compiled_model_have_the_eager_bits(form):
    def outcomes(compile):
        model = model_of(4, 3)
        generator.manual_seed(0)
        forward, seen = compile(lambda x: form(model, x)), []
        for i in range(5):
            forward(numbers(5, 4, seed=i)).square().mean().backward()
            seen.append(state_of(model.parameters()))
        return [*seen, observe(rg.get_rng_state()), observe(generator.get_state())]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such functions run eagerly
        assert outcomes(rg.compile) == outcomes(lambda f: f)


@pytest.mark.parametrize("stop", [False, True])
def test_a_recomputation_ends_after_the_operator_that_saves_last(stop):
    def outcomes(compile):
        norm, calls, w = rg.nn.BatchNorm1d(4), rg.zeros(()), rg.ones(4, requires_grad=True)

        def count(x):
            y = (x * w).exp()  # saves its result
            calls.add_(1)
            return y

        def step(x):
            w.grad = None
            y = checkpoint(count, x, use_reentrant=False, early_stop=stop)
            y = checkpoint(lambda a: checkpoint(norm, a, use_reentrant=False), y, use_reentrant=False)
            checkpoint_sequential([count, norm, rg.nn.ReLU()], None, y, budget_bytes=200).sum().backward()
            return w.grad * 1

        call = compile(step)
        seen = [(observe(call(numbers(5, 4, seed=i))), calls.item(), state_of(norm.buffers())) for i in range(4)]
        return seen, call

    expected, _ = outcomes(lambda f: f)
    found, step = outcomes(lambda f: rg.compile(f, fullgraph=True))
    assert found == expected
    assert step.programs


@pytest.mark.skipif(not kernels.compiled, reason="plans of plain Python have arrays of their own")
def test_a_compiled_step_with_checkpoints_needs_less_memory_than_one_without():
    def peak(form):
        model = model_of(32, 8)

        def f(x):
            for p in model.parameters():
                p.grad = None
            form(model, x).square().mean().backward()

        compiled, x = rg.compile(f, fullgraph=True), numbers(2000, 32)
        for _ in range(3):
            compiled(x)
        tracemalloc.start()
        compiled(x)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    def halves(model, x):
        return checkpoint(model[8:], checkpoint(model[:8], x, use_reentrant=False), use_reentrant=False)

    assert peak(halves) < 0.8 * peak(lambda model, x: model(x))
