"""Unflattening exported programs: modules under the original paths."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.export import Dim, export, unflatten
from retrograd.fx import GraphModule
from retrograd.testing import assert_close

from .models import ConvNet, Tied, Trees, copied_state, encoder


def test_the_modules_stand_under_their_paths():
    model = encoder()
    net = unflatten(export(model, (rg.randn(2, 3, 8),)))
    assert list(net.state_dict()) == list(model.state_dict())
    paths = {name for name, _ in model.named_modules()} - {"dropout", "dropout1", "dropout2"}
    found = {name for name, module in net.named_modules() if isinstance(module, GraphModule)}
    assert found == {p for p in paths if not p.endswith("dropout")}
    net.graph.lint()


@pytest.mark.parametrize("shape", [(2, 3, 8), (5, 7, 8)])
def test_it_does_what_the_module_does(shape):
    model = encoder()
    net = unflatten(export(model, (rg.randn(2, 3, 8),), dynamic_shapes=({0: Dim("batch"), 1: Dim("time")},)))
    x = rg.randn(*shape)
    assert_close(net(x), model(x))
    part = rg.randn(*shape)
    assert_close(net.self_attn(part), model.self_attn(part, part, part, need_weights=False)[0])


def test_a_part_can_be_replaced():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    net = unflatten(export(model, (rg.ones(5, 3),), dynamic_shapes=({0: Dim("batch")},)))
    setattr(net, "1", nn.Tanh())
    x = rg.randn(6, 3)
    assert_close(net(x), model[2](model[0](x).tanh()))


def test_a_module_that_is_called_twice_is_one_module():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(self.layer(x).tanh())

    model = Twice()
    net = unflatten(export(model, (rg.ones(2, 3),)))
    assert [node.target for node in net.graph.find_nodes(op="call_module")] == ["layer", "layer"]
    x = rg.randn(2, 3)
    assert_close(net(x), model(x))
    net.layer = nn.Identity()
    assert_close(net(x), x.tanh())


def test_calls_that_differ_stand_in_the_module_around():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(rg.full((3,), 2.0))

        def forward(self, x, more):
            return x * self.weight + 1 if more else x * self.weight

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = Scale()

        def forward(self, x):
            return self.scale(self.scale(x, True), False)

    model = Both()
    net = unflatten(export(model, (rg.ones(3),)))
    assert len(net.graph.find_nodes(op="call_module")) == 1
    assert list(net.state_dict()) == ["scale.weight"]
    x = rg.randn(3)
    assert_close(net(x), model(x))


def test_tied_weights_are_read_where_they_are():
    model = Tied()
    net = unflatten(export(model, (rg.tensor([[1, 2]]),)))
    tokens = rg.tensor([[5, 6]])
    assert_close(net(tokens), model(tokens))
    assert [node.target for node in net.head.graph.find_nodes(op="get_attr")] == ["weight"]
    assert net.head.weight is net.embedding


def test_gradients_and_buffers_are_those_of_the_program():
    model = ConvNet()
    before = copied_state(model)
    net = unflatten(export(model, (rg.randn(4, 1, 4, 4),), dynamic_shapes=({0: Dim("batch")},)))
    x = rg.randn(5, 1, 4, 4)
    wanted = list(model.parameters())
    actual = rg.autograd.grad(net(x).square().sum(), wanted)
    after = copied_state(model)
    model.load_state_dict(before)
    expected = rg.autograd.grad(model(x).square().sum(), wanted)
    for mine, known in zip(actual, expected, strict=True):
        assert_close(mine, known)
    for name, value in model.state_dict().items():
        assert_close(after[name], value)
    assert isinstance(net.norm, GraphModule)


def test_structures_stay_with_the_outermost_module():
    args = {"pair": (rg.ones(2), rg.zeros(2))}
    weights = [rg.tensor(2.0), rg.tensor(3.0)]
    net = unflatten(export(Trees(), (args,), {"weights": weights}))
    assert_close(net(args, weights=weights)["sum"], rg.full((2,), 2.0))
