"""Graphs split into submodules: the same results, parameters where they are used, values passed between."""

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.testing import assert_close


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(3, 3) for _ in range(3))
        self.w = nn.Parameter(rg.ones(3))

    def forward(self, x):
        h = self.a(x)
        g = (h * self.w).relu()
        h = self.b(g) + h
        return self.c(h) * self.w, h, x


STAGES = {"a": 0, "mul": 0, "relu": 0, "b": 1, "add": 1, "c": 2, "mul_1": 2}


@pytest.fixture
def net() -> Net:
    return Net()


def test_parts_compute_the_same_and_share_the_parameters(net):
    names: dict[str, str] = {}
    parts = fx.split_module(fx.symbolic_trace(net), net, lambda node: STAGES[node.name], names)
    parts.graph.lint()
    x = rg.randn(2, 3)
    for mine, expected in zip(parts(x), net(x), strict=True):
        assert_close(mine, expected, rtol=0, atol=0)
    assert [n.target for n in parts.graph.find_nodes(op="call_module")] == ["submod_0", "submod_1", "submod_2"]
    assert parts.submod_0.w is parts.submod_2.w is net.w
    assert list(dict(parts.submod_1.named_parameters())) == ["b.weight", "b.bias"]
    assert names == {
        "submod_0.a": "a", "submod_0.w": "w", "submod_1.b": "b", "submod_2.c": "c", "submod_2.w": "w"
    }  # fmt: skip
    assert [n.name for n in parts.submod_1.graph.find_nodes(op="placeholder")] == ["relu", "a"]


def test_traced_modules_split_as_well(net):
    x = rg.randn(2, 3)
    module = fx.trace(net, x)
    order = {n: i for i, n in enumerate(module.graph.find_nodes(op="call_function"))}
    parts = fx.split_module(module, None, lambda node: order[node] // 2, partition_affix="s")
    assert {n.target for n in parts.graph.find_nodes(op="call_module")} >= {"submod_s_0", "submod_s_1"}
    parts.graph.lint()
    for mine, expected in zip(parts(x), net(x), strict=True):
        assert_close(mine, expected, rtol=0, atol=0)


def test_parts_run_in_the_order_that_values_need():
    module = fx.symbolic_trace(lambda x: (x.exp(), x.log().sin())[1])
    parts = fx.split_module(module, None, lambda node: {"exp": "z", "log": "b", "sin": "a"}[node.name])
    assert [n.target for n in parts.graph.find_nodes(op="call_module")] == ["submod_z", "submod_b", "submod_a"]
    with pytest.raises(RuntimeError, match=r"need each other's values: .*submod_0"):
        fx.split_module(fx.symbolic_trace(lambda x: x.exp().log().sin()), None, lambda node: int(node.name == "log"))


def test_an_attribute_that_is_returned_stays_outside():
    weight = rg.ones(2)
    module = fx.symbolic_trace(lambda x: (x.exp(), weight))
    parts = fx.split_module(module, None, lambda node: 0)
    assert parts(rg.zeros(2))[1] is weight


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Module()
        self.inner.register_buffer("total", rg.zeros(3))
        self.constant = rg.zeros(3)
        self.register_buffer("last", rg.zeros(3))

    def forward(self, x):
        y = x.exp()
        self.inner.total.add_(y.detach())
        self.constant.copy_(x)
        self.last = y * 2
        x.mul_(2)
        return (y + self.inner.total).sum()


@pytest.mark.parametrize("size", [1, 2, 100])
def test_parts_of_a_graph_that_writes_write_too(size):
    x, y = rg.ones(3), rg.ones(3)
    mine, expected = Counting(), Counting()
    module = fx.trace(mine, x)
    module.graph.eliminate_dead_code()
    place = {n: i for i, n in enumerate(module.graph.nodes)}
    parts = fx.split_module(module, None, lambda node: place[node] // size)
    for _ in range(2):
        assert_close(parts(x), expected(y), rtol=0, atol=0)
        assert_close(x, y, rtol=0, atol=0)
    assert_close(mine.inner.total, expected.inner.total, rtol=0, atol=0)
    assert_close(mine.constant, expected.constant, rtol=0, atol=0)
    assert_close(mine.last, expected.last, rtol=0, atol=0)
