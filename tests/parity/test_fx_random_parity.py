"""Random graphs, built by hand in both libraries: run, interpreted, transformed, copied, saved, split, dead code."""

import copy
import operator
import pickle
import random
from importlib import import_module

import numpy as np
import pytest
import torch

import retrograd as rg

SEEDS = range(60)


def fx(m):
    return import_module(f"{m.__name__}.fx")


def home(m):
    """Return the module whose parameters and submodules the graphs use; the same weights in both libraries."""
    root = m.nn.Module()
    root.lin = m.nn.Linear(3, 3)
    root.act = m.nn.Tanh()
    root.inner = m.nn.Sequential(m.nn.Linear(3, 3), m.nn.Sigmoid())
    root.w = m.nn.Parameter(m.arange(9.0).reshape(3, 3) / 9)
    root.register_buffer("scale", m.arange(3.0) + 1)
    with m.no_grad():
        for i, p in enumerate([*root.lin.parameters(), *root.inner.parameters()]):
            p.copy_(m.arange(float(p.numel())).reshape(p.shape) / 10 - i / 7)
    return root


class Builder:
    """Add random nodes to a graph, all of whose values are matrices (3, 3)."""

    def __init__(self, m, seed):
        self.m, self.random = m, random.Random(seed)
        self.graph = fx(m).Graph()
        self.values = [self.graph.placeholder("x"), self.graph.placeholder("y")]

    def pick(self):
        return self.random.choice(self.values)

    def step(self):
        kinds = [self.function, self.keywords, self.method, self.module, self.attribute, self.containers, self.indexing]
        self.values.append(self.random.choice([*kinds, *kinds, self.write])())

    def function(self):
        unary = self.random.choice([self.m.sin, self.m.tanh, operator.neg, self.m.abs])
        binary = self.random.choice([operator.add, operator.mul, self.m.sub, operator.matmul, self.m.maximum])
        if self.random.random() < 0.4:
            return self.graph.call_function(unary, (self.pick(),))
        return self.graph.call_function(binary, (self.pick(), self.pick()))

    def keywords(self):
        summed = self.graph.call_function(
            self.m.sum, (self.pick(),), {"dim": self.random.choice([0, 1]), "keepdim": True}
        )
        return self.graph.call_function(operator.truediv, (self.pick(), self.graph.call_method("exp", (summed,))))

    def method(self):
        name, kwargs = self.random.choice([("relu", {}), ("clamp", {"min": -0.5, "max": 0.5}), ("t", {}), ("cos", {})])
        return self.graph.call_method(name, (self.pick(),), kwargs)

    def module(self):
        return self.graph.call_module(self.random.choice(["lin", "act", "inner", "inner.0"]), (self.pick(),))

    def attribute(self):
        read = self.graph.get_attr(self.random.choice(["w", "scale", "inner.0.weight"]))
        return self.graph.call_function(operator.add, (self.pick(), read))

    def containers(self):
        stacked = self.graph.call_function(self.m.stack, ([self.pick(), self.pick()],), {"dim": 0})
        joined = self.graph.call_function(self.m.cat, ((stacked, stacked),))
        return self.graph.call_function(operator.getitem, (joined, self.random.randrange(4)))

    def indexing(self):
        key = (slice(None), slice(None, None, None), None)
        seen = self.graph.call_function(operator.getitem, (self.pick(), key))
        return self.graph.call_method("squeeze", (seen, 2))

    def write(self):
        copied = self.graph.call_method("clone", (self.graph.call_function(self.m.tanh, (self.pick(),)),))
        how = self.random.randrange(3)
        if how == 0:
            self.graph.call_function(operator.setitem, (copied, (slice(0, 1), 0), 0.25))
        elif how == 1:
            self.graph.call_method(self.random.choice(["add_", "mul_"]), (copied, self.pick()))
        else:
            self.graph.call_function(self.random.choice([operator.iadd, operator.imul, operator.isub]), (copied, 0.5))
        return copied

    def built(self):
        for _ in range(self.random.randint(1, 12)):
            self.step()
        chosen = [self.pick() for _ in range(3)]
        result = self.random.choice([chosen[0], tuple(chosen), {"a": chosen[0], "b": [chosen[1], chosen[2]]}])
        self.graph.output(result)
        self.graph.lint()
        return fx(self.m).GraphModule(home(self.m), self.graph)


def inputs(m):
    return m.arange(9.0).reshape(3, 3) / 5 - 1, m.ones(3, 3) / 2


def leaves(value):
    members = value.values() if isinstance(value, dict) else value
    return [value] if hasattr(value, "detach") else [leaf for member in members for leaf in leaves(member)]


def outcome(module, m):
    """Return the results on the inputs, and the gradients of the parameters by name."""
    found = leaves(module(*inputs(m)))
    parameters = dict(module.named_parameters())
    for p in parameters.values():
        p.grad = None
    total = sum((leaf * leaf).sum() for leaf in found)
    if total.requires_grad:
        total.backward()
    grads = {name: p.grad for name, p in parameters.items() if p.grad is not None}
    return [leaf.detach().numpy() for leaf in found], {name: g.numpy() for name, g in grads.items()}


def assert_alike(mine, peer):
    assert len(mine[0]) == len(peer[0])
    for a, b in zip(mine[0], peer[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    assert mine[1].keys() == peer[1].keys()
    for name, g in mine[1].items():
        np.testing.assert_allclose(g, peer[1][name], rtol=2e-3, atol=1e-4, err_msg=name)


def interpreted(module, m):
    run = fx(m).Interpreter(module).run

    class Interpreted(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = module

        def forward(self, *args):
            return run(*args)

    return Interpreted()


def cleaned(module, m):
    module = copy.deepcopy(module)
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    return module


def copied_nodes(module, m):
    graph = fx(m).Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    graph.lint()
    return fx(m).GraphModule(module, graph)


def parted(module, m):
    """Split the module in three, in the order of the nodes."""
    numbers = {node.name: i for i, node in enumerate(module.graph.nodes)}
    third = len(numbers) / 3
    return m.fx.split_module(module, module, lambda node: int(numbers[node.name] // third))


WAYS = {
    "run": lambda module, m: module,
    "interpreted": interpreted,
    "transformed": lambda module, m: fx(m).Transformer(module).transform(),
    "traced again": lambda module, m: fx(m).symbolic_trace(module),
    "deepcopied": lambda module, m: copy.deepcopy(module),
    "pickled": lambda module, m: pickle.loads(pickle.dumps(module)),
    "copied nodes": copied_nodes,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs(seed, way):
    """PyTorch's tracer and pickling lose writes by Python's operators: then only the graph itself is compared."""
    mine, peer = WAYS[way](Builder(rg, seed).built(), rg), Builder(torch, seed).built()
    if way in ("run", "transformed", "deepcopied", "copied nodes"):
        peer = WAYS[way](peer, torch)
        assert [n.name for n in mine.graph.nodes] == [n.name for n in peer.graph.nodes]
    results, grads = outcome(mine, rg)
    assert_alike((results, {name.removeprefix("inside."): g for name, g in grads.items()}), outcome(peer, torch))


@pytest.mark.parametrize("way", [cleaned, parted])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs_mean_the_same_cleaned_and_parted(seed, way):
    """PyTorch's dead code elimination drops Python's operators that write, so the original graph is the reference."""
    expected = outcome(Builder(torch, seed).built(), torch)
    results, grads = outcome(way(Builder(rg, seed).built(), rg), rg)
    if way is parted:  # whose parameters have other names
        grads = expected[1]
    assert_alike((results, grads), expected)
