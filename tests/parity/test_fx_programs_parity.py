"""Programs traced in both libraries: their results, in every way to run the graph, and the names of the nodes."""

import copy
import dataclasses
import functools
import math
import operator
import typing

import pytest
import torch

import retrograd as rg

from .programs import assert_same, data, ending


class Pair(typing.NamedTuple):
    a: object
    b: object = 3


@dataclasses.dataclass
class Record:
    a: object
    b: object = 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object


def module(m, forward, **attributes):
    """Return a module of either library with this forward, the same weights in both."""

    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = m.nn.Linear(3, 3)
            self.w = m.nn.Parameter(m.arange(3.0))
            self.register_buffer("mean", m.ones(3))
            for name, value in attributes.items():
                setattr(self, name, value)

    Net.forward = forward
    made = Net()
    with m.no_grad():
        for p in made.lin.parameters():
            p.copy_(m.arange(float(p.numel())).reshape(p.shape))
    return made


def doubled(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return inner


def varied(x, *rest, key=2, **named):
    return x * key


def keyword_only(x, *, y=2):
    return x * y


def iterated(*args):
    return sum(args)


def graph_module(m, f):
    return m.fx.symbolic_trace(f)


TRACED = {
    "a named tuple": lambda m: lambda x: Pair(x + 1, x * 2),
    "a default of a named tuple": lambda m: lambda x: Pair(x + 1),
    "a dataclass": lambda m: lambda x: Record(x + 1),
    "a frozen dataclass": lambda m: lambda x: Frozen(x),
    "nested records": lambda m: lambda x: [Pair(x, (x, {"k": Record(x, [Frozen(x)])}))],
    "records of a module": lambda m: module(m, lambda self, x: Record(self.lin(x), Pair(self.w))),
    "a number": lambda m: lambda x: 5,
    "a constant": lambda m: lambda x: m.ones(2),
    "keys of several kinds": lambda m: lambda x: {1: x, "b": {"c": x}},
    "a set": lambda m: lambda x: {x},
    "a wrapper": lambda m: doubled(lambda x: x + 1),
    "a wrapped method": lambda m: module(m, doubled(lambda self, x: self.lin(x))),
    "a wrapper of stars": lambda m: doubled(varied),
    "stars": lambda m: varied,
    "keyword only": lambda m: keyword_only,
    "a loop over the arguments": lambda m: iterated,
    "a graph module": lambda m: graph_module(m, lambda x: x + 1),
    "a graph module of a module": lambda m: graph_module(m, module(m, lambda self, x: self.lin(x) + self.w)),
    "a graph module of stars": lambda m: graph_module(m, varied),
    "a graph module below": lambda m: module(m, lambda self, x: self.g(x), g=graph_module(m, lambda x: x + 1)),
    "a graph module in a sequence": lambda m: m.nn.Sequential(graph_module(m, lambda x: x + 1), m.nn.ReLU()),
    "thrice traced": lambda m: graph_module(m, graph_module(m, module(m, lambda self, x: self.lin(x) + self.mean))),
    "functions of math": lambda m: lambda x: x * math.sqrt(x.shape[0]) + math.pi,
    "a module twice": lambda m: module(m, lambda self, x: self.lin(self.lin(input=x))),
    "all parameters": lambda m: module(m, lambda self, x: x + sum(p.sum() for p in self.parameters())),
    "a list of modules": lambda m: module(
        m, lambda self, x: [f(x) for f in self.all], all=m.nn.ModuleList([m.nn.ReLU(), m.nn.Tanh()])
    ),
    "nested arguments": lambda m: lambda x: m.cat([x, m.stack([x[0], x[1]])], dim=0),
}


def outcomes(m, name):
    """Return the result of each way to run the graph, as data, and the names of the nodes."""
    x = m.arange(6.0).reshape(2, 3)
    traced = m.fx.symbolic_trace(TRACED[name](m))
    traced.graph.lint()
    ways = [traced, copy.deepcopy(traced), m.fx.Interpreter(traced).run, m.fx.Transformer(traced).transform()]
    return [as_data(run(x)) for run in ways], [n.name for n in traced.graph.nodes]


def as_data(value):
    """Return a result as data, records with the names of their classes."""
    if dataclasses.is_dataclass(value):
        return type(value).__name__, [as_data(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, tuple | list):
        return [type(value).__name__.removeprefix("immutable_"), *map(as_data, value)]
    return [(k, as_data(v)) for k, v in value.items()] if isinstance(value, dict) else data(value)


@pytest.mark.parametrize("name", TRACED)
def test_programs(name):
    mine, peer = (ending(lambda m: outcomes(m, name), m) for m in (rg, torch))
    if isinstance(peer, frozenset):
        assert isinstance(mine, frozenset)
        assert mine & {TypeError, ValueError, RuntimeError, NameError}
    else:
        assert_same(mine, peer)


WRITERS = ["iadd", "iand", "ifloordiv", "ilshift", "imod", "imul", "ior", "ipow", "irshift", "isub", "itruediv", "ixor"]


def written(m, name, make):
    graph = m.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    done = graph.call_function(getattr(operator, name), (x, y))
    graph.output((x, done, graph.call_function(operator.add, (x, done))))
    operands = make(m, name)
    run = m.fx.GraphModule({}, graph)
    interpreted = m.fx.Interpreter(run).run(*copy.deepcopy(operands))
    return data(run(*operands)), data(interpreted), data(operands)


def tensors(m, name):
    real = name in ("itruediv", "ipow")
    return (m.tensor([6.0, 3.0]), m.tensor([3.0, 2.0])) if real else (m.tensor([6, 3]), m.tensor([3, 2]))


@pytest.mark.parametrize("make", [tensors, lambda m, name: (6, 3)])
@pytest.mark.parametrize("name", WRITERS)
def test_operators_that_write(name, make):
    assert_same(written(rg, name, make), written(torch, name, make))


def emptied(m):
    graph = m.fx.Graph()
    graph.lint()
    made = m.fx.GraphModule({}, graph)
    return graph.eliminate_dead_code(), [run() for run in (made, copy.deepcopy(made), m.fx.Interpreter(made).run)]


def test_empty_graphs():
    assert emptied(rg) == emptied(torch) == (False, [None] * 3)


def renamed(m, name):
    tracer = m.fx.Tracer()
    tracer.traced_func_name = name
    root = module(m, lambda self, x: x, other=None)
    type(root).another = lambda self, x: self.lin(x) * 2
    graph = tracer.trace(root)
    return [n.name for n in graph.nodes], data(m.fx.GraphModule(root, graph)(m.ones(1, 3)))


NAMED = {
    "builtins": (lambda input, sum: input - sum, ("input", "sum")),
    "capitals": (lambda X, aB: X - aB, ("X", "aB")),
    "alike": (lambda X, x: x - X, ("X", "x")),
    "of the code": (lambda ops, slice: ops - slice, ("ops", "slice")),
    "of nodes": (lambda sub, x: sub - x, ("sub", "x")),
}


@pytest.mark.parametrize("name", NAMED)
def test_arguments_keep_their_names(name):
    program, names = NAMED[name]

    def found(m):
        traced = m.fx.symbolic_trace(program)
        given = dict(zip(names, (m.ones(2), 2 * m.ones(2)), strict=True))
        return [data(run(**given)) for run in (traced, copy.deepcopy(traced), m.fx.symbolic_trace(traced))]

    mine = found(rg)
    assert_same(mine, [data(program(torch.ones(2), 2 * torch.ones(2)))] * 3)
    assert_same(mine, found(torch)) if name != "alike" else None


def test_the_name_of_the_traced_method():
    assert_same(renamed(rg, "another"), renamed(torch, "another"))
