"""Graphs of code on nested tensors contain the operators on nested tensors, and run on other structures."""

import pickle

import numpy as np
import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.nested import nested_tensor


def sequences(lengths, seed=0, width=3):
    r = np.random.default_rng(seed)
    return nested_tensor([rg.tensor(r.uniform(-1, 1, (n, width))) for n in lengths])


def assert_alike(a, b):
    assert a.shape == b.shape
    for p, q in zip(a.unbind(), b.unbind(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy())


def f(x, w):
    return (x @ w).tanh() + x.sum(-1, keepdim=True)


WEIGHT = rg.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]], dtype="float64")


def traced():
    return fx.trace(f, sequences((2, 0, 4)), WEIGHT)


def test_a_graph_holds_operators_on_nested_tensors_whole():
    targets = [node.target.name for node in traced().graph.nodes if node.op == "call_function"]
    assert targets == ["matmul", "tanh", "sum", "add"]


def test_a_graph_prints_ragged_sizes():
    assert "float64[3, j, 2]" in traced().code


def test_a_graph_runs_on_another_structure():
    for lengths in ((2, 0, 4), (1, 5, 3)):
        x = sequences(lengths, seed=1)
        assert_alike(traced()(x, WEIGHT), f(x, WEIGHT))
        assert_alike(fx.Interpreter(traced()).run(x, WEIGHT), f(x, WEIGHT))


def test_a_graph_is_pickled():
    again = pickle.loads(pickle.dumps(traced()))
    x = sequences((1, 5, 3))
    assert_alike(again(x, WEIGHT), f(x, WEIGHT))


def test_gradients_pass_through_a_graph():
    x, y = sequences((1, 5, 3)).requires_grad_(), sequences((1, 5, 3)).requires_grad_()
    traced()(x, WEIGHT).values().sum().backward()
    f(y, WEIGHT).values().sum().backward()
    assert_alike(x.grad, y.grad)


def test_arguments_of_other_numbers_of_components_or_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"x: traced with float64\[3, j, 3\], got float64\[2, j, 3\]"):
        traced()(sequences((2, 4)), WEIGHT)
    with pytest.raises(ValueError, match=r"got float64\[3, j, 2\]"):
        traced()(sequences((2, 0, 4), width=2), WEIGHT)
    with pytest.raises(ValueError, match=r"got float64\[3, 2, 3\]"):
        traced()(rg.zeros(3, 2, 3, dtype="float64"), WEIGHT)


def test_a_graph_that_unpacks_a_nested_tensor_runs_on_that_structure_only():
    graph = fx.trace(lambda x: x.values() * 2, sequences((2, 0, 4)))
    x = sequences((2, 0, 4), seed=1)
    np.testing.assert_allclose(graph(x).numpy(), (x.values() * 2).numpy())
    with pytest.raises(ValueError, match="in component 0 the size j is 2 and 1; the graph depends on these sizes"):
        graph(sequences((1, 5, 3)))


def test_a_graph_that_asks_for_lengths_runs_on_these_only():
    graph = fx.trace(lambda x: x.sum(1) / x.offsets().diff()[:, None], sequences((2, 1, 4)))
    x = sequences((2, 1, 4), seed=1)
    np.testing.assert_allclose(graph(x).numpy(), x.mean(1).numpy())
    with pytest.raises(ValueError, match="depends on these sizes"):
        graph(sequences((1, 5, 3)))


def test_a_graph_with_a_ragged_size_among_its_constants_runs_on_that_structure_only():
    graph = fx.trace(lambda x, b: b.expand(x.shape) + x, sequences((2, 0, 4)), rg.ones(3, dtype="float64"))
    x = sequences((2, 0, 4), seed=1)
    assert_alike(graph(x, rg.ones(3, dtype="float64")), x + 1)
    with pytest.raises(ValueError, match="depends on these sizes"):
        graph(sequences((1, 5, 3)), rg.ones(3, dtype="float64"))


def test_a_module_on_nested_tensors_is_traced():
    rg.random.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)).to(rg.float64)
    graph = fx.trace(model, sequences((2, 4)))
    x = sequences((3, 1))
    assert_alike(graph(x), model(x))


def test_a_transform_of_code_on_nested_tensors_is_traced():
    def slope(x):
        return rg.func.grad(lambda x: (x * x).sum())(x)

    graph = fx.trace(slope, sequences((2, 0, 4)))
    x = sequences((2, 0, 4), seed=1)
    assert_alike(graph(x), x * 2)
