"""Memory: a compiled step needs at most as much as the eager one."""

import tracemalloc

import pytest

import retrograd as rg
from retrograd import kernels, nn

from .comparison import numbers


def peak(step, x):
    """Return the bytes of arrays that a step needs at once, beyond those before it."""
    for _ in range(3):
        step(x)
    tracemalloc.start()
    step(x)
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    step(x)
    _, found = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return found - before


def gradients_of(model, loss):
    """Return a step that computes the gradients of a model."""

    def step(x):
        for p in model.parameters():
            p.grad = None
        out = loss(model, x)
        out.backward()
        return out.detach()

    return step


class Weight(nn.Module):
    """A module with a parameter of some shape."""

    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(numbers(*shape))


def recurrent_loss(layer, x):
    return layer(x)[0].square().mean()


def repeated_loss(model, x):
    return sum((model.weight * k).sin().sum() for k in range(9)) + x.sum()


def chain_loss(model, x):
    return ((model.weight * x + 0.3).sin() * (model.weight * 0.1).exp()).square().sum()


def mean_square(model, x):
    return model(x).square().mean()


CASES = {
    "a recurrent layer": (lambda: nn.LSTM(32, 64), recurrent_loss, (40, 8, 32)),
    "a weight that is used often": (lambda: Weight(200, 200), repeated_loss, (1,)),
    "a chain of elementwise operators": (lambda: Weight(60_000), chain_loss, (60_000,)),
    "layers": (lambda: nn.Sequential(*[nn.Linear(64, 64), nn.Tanh()] * 4), mean_square, (128, 64)),
}


@pytest.mark.skipif(not kernels.compiled, reason="the reference of fused groups has its tiles in arrays")
@pytest.mark.parametrize("name", CASES)
def test_a_compiled_step_has_at_most_the_eager_peak(name):
    make, loss, shape = CASES[name]
    rg.manual_seed(0)
    step = gradients_of(make(), loss)
    x = numbers(*shape)
    compiled = rg.compile(step, fullgraph=True)
    assert peak(compiled, x) <= peak(step, x)
