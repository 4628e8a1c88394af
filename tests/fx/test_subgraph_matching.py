"""Subgraph matching and replacement: which patterns match, and the results of the rewritten graph."""

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.core import Op
from retrograd.testing import assert_close


def replaced(function, pattern, replacement):
    """Return the module after the replacement, and the number of matches."""
    module = fx.symbolic_trace(function)
    return module, len(fx.replace_pattern(module, pattern, replacement))


# program, pattern, replacement, number of matches, and the result for x = [1, 4], y = [2, 2]
CASES = {
    "a method": (lambda x, y: x.sqrt() + y.sqrt(), lambda a: a.sqrt(), lambda a: a * 10, 2, [30.0, 60.0]),
    "any spelling": (lambda x, y: rg.add(x, y).neg(), lambda a, b: -(a + b), lambda a, b: a * b, 1, [2.0, 8.0]),
    "a constant": (lambda x, y: x * 2 + y * 3, lambda a: a * 3, lambda a: a, 1, [4.0, 10.0]),
    "overlapping": (lambda x, y: x + 1 + 1 + 1, lambda a: a + 1 + 1, lambda a: a * 100, 1, [101.0, 401.0]),
    "chained": (lambda x, y: x.neg().neg().neg().neg(), lambda a: a.neg().neg(), lambda a: a + 1, 2, [3.0, 6.0]),
    "the same twice": (lambda x, y: x * y + x * x, lambda a: a * a, lambda a: a, 1, [3.0, 12.0]),
    "used elsewhere": (
        lambda x, y: (x * y).relu() + x * y, lambda a, b: (a * b).relu(), lambda a, b: a, 1, [3.0, 12.0]
    ),
    "used outside": (
        lambda x, y: (lambda m: m.relu() + m)(x * y), lambda a, b: (a * b).relu(), lambda a, b: a, 0, [4.0, 16.0]
    ),
    "several results": (
        lambda x, y: x.exp() * 0 + y.exp() * 0 + x,
        lambda a, b: (a.exp() * 0, b.exp() * 0),
        lambda a, b: (b, a),
        1,
        [4.0, 10.0],
    ),
    "a number for an argument": (
        lambda x, y: (x + 5).relu(), lambda a, b: (a + b).relu(), lambda a, b: a - b, 1, [-4.0, -1.0]
    ),
    "nothing done": (lambda x, y: x.relu() + y, lambda a: a.relu(), lambda a: a, 1, [3.0, 6.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_patterns_are_replaced(name):
    function, pattern, replacement, count, expected = CASES[name]
    module, found = replaced(function, pattern, replacement)
    assert found == count
    assert module(rg.tensor([1.0, 4.0]), rg.tensor([2.0, 2.0])).tolist() == expected
    module.graph.lint()


def test_parameters_match_by_their_values():
    two, again, three = rg.tensor([2.0]), rg.tensor([2.0]), rg.tensor([3.0])
    module, found = replaced(lambda x: x * two + x * three, lambda a: a * again, lambda a: a - two)
    assert found == 1
    assert module(rg.tensor([1.0])).tolist() == [2.0]


def test_attributes_of_the_replacement_go_into_the_module_under_a_free_name():
    one, two = rg.tensor([1.0]), rg.tensor([2.0])
    module, found = replaced(lambda x: x.exp() + one, lambda a: a.exp(), lambda a: a * two)
    assert found == 1
    assert module(rg.tensor([5.0])).tolist() == [11.0]
    assert module._tensor_constant0 is one


def test_modules_match_by_name_or_identity():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    module = fx.symbolic_trace(net)
    pattern = fx.GraphModule({"1": nn.ReLU()}, relu_graph())
    assert len(fx.replace_pattern(module, pattern, lambda a: a.sigmoid())) == 1
    x = rg.randn(3, 2)
    assert_close(module(x), net[0](x).sigmoid())


def relu_graph() -> fx.Graph:
    graph = fx.Graph()
    graph.output(graph.call_module("1", (graph.placeholder("x"),)))
    return graph


def test_traced_modules_get_operators():
    module = fx.trace(lambda x: {"out": (x * 2).relu()}, rg.ones(2))
    [match] = fx.replace_pattern(module, lambda a: rg.relu(a), lambda a: a.sigmoid() + 1)
    assert match.anchor.name == "relu"
    assert all(isinstance(n.target, Op) for n in module.graph.find_nodes(op="call_function"))
    assert_close(module(rg.zeros(2))["out"], rg.full((2,), 1.5))


def test_arguments_that_do_not_fit_are_refused():
    module = fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises(ValueError, match="pattern has 1 arguments, the replacement 2"):
        fx.replace_pattern(module, lambda a: a.exp(), lambda a, b: a)
    with pytest.raises(ValueError, match="pattern has 1 results, the replacement 2"):
        fx.replace_pattern(module, lambda a: a.exp(), lambda a: (a, a))
    with pytest.raises(ValueError, match="must be that of a call"):
        fx.replace_pattern(module, lambda a: a, lambda a: a)


def in_one(match, graph, pattern):
    return match.anchor.args[1] == 1 and {match.anchor} <= {*graph.nodes} and len(pattern.nodes) == 3


def test_filters_choose_among_the_matches():
    module = fx.symbolic_trace(lambda x: (x + 1) * (x + 2) * (x + 1.5))
    [done] = fx.subgraph_rewriter.replace_pattern_with_filters(
        module, lambda a: a + 0, lambda a: a - 1, [in_one], ignore_literals=True
    )
    assert module(rg.tensor([3.0])).tolist() == [2 * 5 * 4.5]
    assert [n.name for n in done.replacements] == ["sub"]
    assert done.anchor.name == "add"


def test_a_callback_makes_the_replacement_of_each_match():
    def scaled(match, graph, pattern):
        new = fx.Graph()
        x = new.placeholder("x")
        new.output(new.call_method("mul", (x, match.anchor.args[1] * 10)))
        return new

    module = fx.symbolic_trace(lambda x: (x + 1) + (x + 2).neg())
    pattern = fx.symbolic_trace(lambda a: a + 0).graph
    fx.subgraph_rewriter.replace_pattern_with_filters(
        module, pattern, replacement_callback=scaled, ignore_literals=True
    )
    assert module(rg.tensor([1.0])).tolist() == [-10.0]
    with pytest.raises(TypeError, match="either a replacement or"):
        fx.subgraph_rewriter.replace_pattern_with_filters(module, pattern)


def test_a_refused_replacement_changes_nothing():
    module = fx.symbolic_trace(lambda x: (x + 1).exp() + (x + 2).exp())
    text, calls = str(module.graph), []

    def second_is_bad(match, graph, pattern):
        calls.append(match)
        return fx.symbolic_trace((lambda a: a) if len(calls) == 1 else (lambda a, b: a)).graph

    with pytest.raises(ValueError, match="1 arguments, the replacement 2"):
        fx.subgraph_rewriter.replace_pattern_with_filters(module, lambda a: a.exp(), replacement_callback=second_is_bad)
    assert str(module.graph) == text


@pytest.mark.parametrize("same", [lambda a: a, lambda a: a.view(-1), lambda a: a.add(0)])
def test_inputs_aliased_by_a_replacement_are_not_overwritten(same):
    def f(x):
        y = x.exp()
        x.add_(1)
        return y

    module = fx.trace(f, rg.ones(2))
    fx.replace_pattern(module, lambda a: a.exp(), same)
    x = rg.zeros(2)
    assert (module(x).tolist(), x.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_inputs_that_are_exchanged_after_a_replacement():
    def swap(x, y):
        a, b = x.exp(), y.exp()
        x.copy_(b)
        y.copy_(a)

    module = fx.trace(swap, rg.ones(1), rg.ones(1))
    fx.replace_pattern(module, lambda a: a.exp(), lambda a: a)
    x, y = rg.tensor([1.0]), rg.tensor([2.0])
    module(x, y)
    assert (x.tolist(), y.tolist()) == ([2.0], [1.0])


def test_sizes_one_by_one_are_a_spelling_too():
    module, found = replaced(
        lambda x, y: x.reshape(x.shape[0], 1) + y, lambda a: a.reshape((a.shape[0], 1)), lambda a: a * 2
    )
    assert found == 1
    assert module(rg.ones(2), rg.ones(2)).tolist() == [3.0, 3.0]


def test_only_graph_modules_have_patterns():
    with pytest.raises(TypeError, match="expected a graph module, got Graph"):
        fx.replace_pattern(fx.Graph(), lambda a: a.exp(), lambda a: a)
