"""Constant folding moves what depends on no input into a part that runs once, and keeps the result."""

import pytest

import retrograd as rg
from retrograd import fx
from retrograd.fx.experimental.const_fold import get_unique_attr_name_in_module, split_const_subgraphs

FOLDED = "_FX_CONST_FOLDED_ATTRS"


class Net(rg.nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.a = rg.nn.Parameter(rg.tensor([1.0, 2.0]))
        self.b = rg.nn.Parameter(rg.tensor([3.0, 4.0]))
        self.function = forward

    def forward(self, x):
        return self.function(self, x)


def folded_attributes(module):
    return [n.target for n in module.graph.find_nodes(op="get_attr") if n.target.startswith(FOLDED)]


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda self, x: x - (self.a + self.a), 1),
        (lambda self, x: x * (self.a + self.b) + self.a, 1),
        (lambda self, x: (x + (self.a + 1)) * (self.b * 2).exp(), 2),
        (lambda self, x: {"sum": x + (self.a + self.b), "constant": self.a * 2}, 2),
    ],
)
def test_the_folded_module_computes_the_same(function, count):
    net = Net(function)
    folded = split_const_subgraphs(net)
    assert len(folded_attributes(folded)) == count
    for x in (rg.zeros(2), rg.tensor([5.0, -1.0])):
        found, expected = folded(x), net(x)
        pairs = [(found[k], expected[k]) for k in expected] if isinstance(expected, dict) else [(found, expected)]
        for a, b in pairs:
            rg.testing.assert_close(a, b.detach())


def test_the_constant_part_runs_once_on_the_first_call():
    calls = []

    def double(value):
        calls.append(1)
        return value * 2

    graph = fx.Graph()
    x, a = graph.placeholder("x"), graph.get_attr("a")
    graph.output(graph.call_function(rg.add, (x, graph.call_function(double, (a,)))))
    folded = split_const_subgraphs(fx.GraphModule({"a": rg.ones(2)}, graph))
    assert calls == []
    assert [folded(rg.ones(2)).tolist() for _ in range(2)] == [[3, 3], [3, 3]]
    assert calls == [1]
    with pytest.raises(AssertionError, match="has been folded already"):
        folded.run_folding()


def test_without_constants_there_is_no_constant_part():
    folded = split_const_subgraphs(Net(lambda self, x: x + self.a))
    assert folded.const_subgraph_module is None
    assert folded(rg.zeros(2)).tolist() == [1, 2]


def test_skipped_nodes_and_those_after_them_stay():
    net = Net(lambda self, x: x + (self.a + 1).exp() * 2)
    folded = split_const_subgraphs(net, skip_folding_node_fn=lambda node: node.target == "exp")
    assert [n.name for n in folded.graph.nodes if n.op.startswith("call")] == ["exp", "mul", "add_1"]
    rg.testing.assert_close(folded(rg.zeros(2)), net(rg.zeros(2)).detach())


def test_metadata_stays():
    traced = fx.symbolic_trace(Net(lambda self, x: x + (self.a + 1)))
    for index, node in enumerate(traced.graph.nodes):
        node.meta["index"] = index
    folded = split_const_subgraphs(traced)
    assert [node.meta["index"] for node in folded.graph.nodes if node.op != "output"] == [0, 2, 3]


def test_names_that_are_taken_get_a_number():
    net = Net(lambda self, x: x + getattr(self, FOLDED) * 2)
    net.register_buffer(FOLDED, rg.ones(2))
    folded = split_const_subgraphs(net)
    assert folded_attributes(folded) == [f"{FOLDED}_1"]
    assert folded(rg.zeros(2)).tolist() == [2, 2]
    assert get_unique_attr_name_in_module(folded, f"{FOLDED}_1") == f"{FOLDED}_1_1"
