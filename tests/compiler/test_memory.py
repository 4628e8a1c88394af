"""Memory: a compiled step needs at most as much as the eager one."""

import importlib
from pathlib import Path

import pytest

import retrograd as rg
from retrograd import kernels, nn

from .comparison import numbers

FOLDER = Path(__file__).parents[2] / "benchmarks"
needs_compiled = pytest.mark.skipif(
    not kernels.compiled, reason="the reference of fused groups has its tiles in arrays"
)


@pytest.fixture
def traced_peak(monkeypatch):
    """The function that measures peaks; the scripts in benchmarks/ can be imported."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("traced_memory").traced_peak


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


@needs_compiled
@pytest.mark.parametrize("name", CASES)
def test_a_compiled_step_has_at_most_the_eager_peak(traced_peak, name):
    make, loss, shape = CASES[name]
    rg.manual_seed(0)
    step = gradients_of(make(), loss)
    x = numbers(*shape)
    compiled = rg.compile(step, fullgraph=True)
    assert traced_peak(lambda: compiled(x)) <= traced_peak(lambda: step(x))


@needs_compiled
def test_each_step_of_the_benchmark_has_at_most_the_eager_peak(traced_peak):
    suite = importlib.import_module("compile_cases")
    peaks = {}
    for row in [*suite.COSTS, *suite.OF_STEPS]:
        peaks[row] = [
            traced_peak(suite.tensors_case(rg, row, compiler).call) for compiler in (rg.compile, lambda step: step)
        ]
    assert len(peaks) == 10
    assert {row: found for row, found in peaks.items() if found[0] > found[1]} == {}
