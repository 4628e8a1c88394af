"""`FlopCounterMode` counts what PyTorch's does, in all and for each module."""

import pytest
import torch
from torch.utils import flop_counter as theirs

import retrograd as rg
from retrograd.utils import flop_counter as ours

MODELS = {
    "perceptron": (lambda t: t.nn.Sequential(t.nn.Linear(10, 20), t.nn.ReLU(), t.nn.Linear(20, 5)), (8, 10)),
    "convolutions": (
        lambda t: t.nn.Sequential(
            t.nn.Conv2d(3, 8, 3, stride=2, padding=1), t.nn.ReLU(), t.nn.ConvTranspose2d(8, 4, 2, stride=2)
        ),
        (2, 3, 8, 8),
    ),
    "nested modules": (
        lambda t: t.nn.Sequential(t.nn.Sequential(t.nn.Linear(4, 4), t.nn.Linear(4, 3)), t.nn.Linear(3, 2)),
        (6, 4),
    ),
}


def counts(torch, module, make, shape, backward):
    """Return the operations by module."""
    model, x = make(torch), torch.ones(*shape, requires_grad=True)
    with module.FlopCounterMode(display=False) as mode:
        y = model(x)
        if backward:
            y.sum().backward()
    found = {name: sum(by_operator.values()) for name, by_operator in mode.get_flop_counts().items()}
    assert found["Global"] == mode.get_total_flops()
    return found


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_counts_are_those_of_pytorch(name, backward):
    make, shape = MODELS[name]
    assert counts(rg, ours, make, shape, backward) == counts(torch, theirs, make, shape, backward)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.ones(2, 3) @ t.ones(3, 4),
        lambda t: t.bmm(t.ones(5, 2, 3), t.ones(5, 3, 4)),
        lambda t: t.baddbmm(t.ones(5, 2, 4), t.ones(5, 2, 3), t.ones(5, 3, 4)),
        lambda t: t.addmm(t.ones(2, 4), t.ones(2, 3), t.ones(3, 4)),
        lambda t: t.einsum("bij,bjk->bik", t.ones(5, 2, 3), t.ones(5, 3, 4)),
        lambda t: t.nn.functional.conv1d(t.ones(2, 4, 9), t.ones(6, 2, 3), groups=2),
    ],
)
def test_functions_count_as_in_pytorch(call):
    """Without attention, which PyTorch does not count on CPUs."""
    found = []
    for library, module in ((rg, ours), (torch, theirs)):
        with module.FlopCounterMode(display=False) as mode:
            call(library)
        found.append(mode.get_total_flops())
    assert found[0] == found[1] > 0
