"""The base classes of layers: users derive from them, also from PyTorch's private ones, and ask for them."""

import importlib
import itertools
import operator

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd.module_aliases import MODULES


def classes(package):
    """Return the classes of a package's modules of layers by name, with those that only bases have."""
    found = {}
    for name in [path for path in MODULES if path.startswith("nn.modules.")]:
        module, own = importlib.import_module(f"{package}.{name}"), importlib.import_module(f"torch.{name}")
        for member, cls in vars(own).items():
            if isinstance(cls, type) and cls.__module__ == own.__name__ and hasattr(module, member):
                found[member] = getattr(module, member)
    return found


THEIRS, OURS = classes("torch"), classes("retrograd")


@pytest.mark.parametrize("name", OURS)
def test_a_layer_derives_from_the_same_classes(name):
    bases = {base for base in OURS if issubclass(THEIRS[name], THEIRS[base])}
    assert {base for base in OURS if issubclass(OURS[name], OURS[base])} >= bases


def of_loss(torch, x):
    class Loss(torch.nn.modules.loss._Loss):
        def __init__(self, size_average=None, reduce=None, reduction="mean", factor=2.0):
            super().__init__(size_average, reduce, reduction)
            self.factor = factor

        def forward(self, a, b):
            return self.factor * torch.nn.functional.mse_loss(a, b, reduction=self.reduction)

    return [loss(x, x.flip(0)) for loss in (Loss(), Loss(reduction="none"), Loss(False), Loss(None, False))]


def of_weighted_loss(torch, x):
    class Loss(torch.nn.modules.loss._WeightedLoss):
        def __init__(self, weight=None, reduction="mean", smoothing=0.1):
            super().__init__(weight=weight, reduction=reduction)
            self.smoothing = smoothing

        def forward(self, scores, classes):
            loss = torch.nn.functional.nll_loss(scores, classes, self.weight, reduction=self.reduction)
            return loss + self.smoothing

    weighted, plain = Loss(x[0].abs(), "sum"), Loss()
    assert list(weighted.state_dict()) == ["weight"]
    assert list(plain.state_dict()) == []
    assert plain.weight is None
    return [loss(x, torch.tensor([1, 0])) for loss in (weighted, plain)]


def of_convolution(torch, x):
    class Conv(torch.nn.modules.conv._ConvNd):
        def __init__(self, channels, transposed):
            super().__init__(channels, 4, (1, 3), (1, 1), (0, 1), (1, 1), transposed, (0, 0), 2, True, "zeros")

        def forward(self, images):
            settings = self.stride, self.padding, self.dilation, self.groups
            return torch.nn.functional.conv2d(images, torch.ones_like(self.weight), None, *settings)

    conv, transposed = Conv(2, False), Conv(2, True)
    assert repr(conv) == "Conv(2, 4, kernel_size=(1, 3), stride=(1, 1), padding=(0, 1), groups=2)"
    shapes = [tuple(p.shape) for p in [*conv.parameters(), *transposed.parameters()]]
    assert shapes == [(4, 1, 1, 3), (4,), (2, 2, 1, 3), (4,)]
    return [conv(x.reshape(1, 2, 1, 3))]


def of_conv_forward(torch, x):
    class Standardized(torch.nn.Conv1d):
        def forward(self, images):
            return self._conv_forward(images, torch.ones_like(self.weight) * 0.5, torch.zeros_like(self.bias))

    modes = ("zeros", "circular")
    return [Standardized(2, 2, 3, padding=1, padding_mode=mode)(x.reshape(1, 2, 3)) for mode in modes]


def of_cell(torch, x):
    class Cell(torch.nn.RNNCellBase):
        def __init__(self, input_size, hidden_size, bias=True):
            super().__init__(input_size, hidden_size, bias, num_chunks=5)

        def forward(self, input, hx):
            return input @ torch.ones_like(self.weight_ih).T + hx @ torch.ones_like(self.weight_hh).T

    cell = Cell(3, 2)
    assert [tuple(p.shape) for p in cell.parameters()] == [(10, 3), (10, 2), (10,), (10,)]
    assert repr(cell) == "Cell(3, 2)"
    return [cell(x, x[:, :2])]


PROGRAMS = (of_loss, of_weighted_loss, of_convolution, of_conv_forward, of_cell)


@pytest.mark.filterwarnings("ignore:.*size_average and reduce args")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_class_derived_from_a_base_computes_the_same(program):
    values = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]], np.float32)
    expected, found = program(torch, torch.from_numpy(values)), program(rg, rg.from_numpy(values))
    for theirs, ours in zip(expected, found, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6)


FAMILIES = (
    "nn.Module", "distributions.Distribution", "distributions.Transform", "distributions.constraints.Constraint",
    "optim.Optimizer", "optim.lr_scheduler.LRScheduler", "utils.data.Dataset", "utils.data.Sampler",
    "autograd.Function", "Tensor",
)  # fmt: skip


def order(m, first, second):
    """Return the order in which methods are looked up in a class of two families and one of its own."""
    one, other = (operator.attrgetter(name)(m) for name in (first, second))

    class Own:
        pass

    class Middle(one, Own):
        pass

    class Both(Middle, other):
        pass

    return [known for base in Both.__mro__ if (known := {Own: "Own", one: first, other: second}.get(base))]


@pytest.mark.parametrize(("first", "second"), [*itertools.permutations(FAMILIES, 2)])
def test_a_class_of_two_families_looks_methods_up_in_the_same_order(first, second):
    try:
        expected = order(torch, first, second)
    except TypeError:  # two metaclasses, or two memory layouts
        return
    assert order(rg, first, second) == expected
