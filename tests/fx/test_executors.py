"""Every kind of node with every form of arguments gives the same result in every executor and graph rewrite."""

import copy
import pickle

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.core import operator_named
from retrograd.pipelining import DetachExecutor
from retrograd.pipelining.planning.operator_cost import _SavedTensorRecorder

from ..case_groups import group_cases


def mix(*args, **kwargs):
    """Return a sum of all tensors in the arguments, each times a factor that depends on its position."""
    total = rg.zeros(())
    for way, value in _leaves((args, kwargs)):
        if isinstance(value, (rg.Tensor, int, float)):
            total = total + value * (1 + sum(map(ord, way)) % 97)
    return total


def _leaves(value, way=""):
    if isinstance(value, slice):
        value = [value.start, value.stop, value.step]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (tuple, list)) else ()
    for key, member in items:
        yield from _leaves(member, f"{way}/{key}")
    if not isinstance(value, (dict, tuple, list)):
        yield way, value


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(rg.tensor([0.5, -2.0]))

    def forward(self, *args, **kwargs):
        return mix(*args, **kwargs) * self.scale


class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleDict({"mixer": Mixer()})
        self.w = nn.Parameter(rg.tensor([3.0, 4.0]))


# Arguments of a call, made of two inputs and an attribute.
FORMS = {
    "positional": lambda x, y, w: ((x, y, w), {}),
    "keyword": lambda x, y, w: ((), {"a": x, "b": y, "c": w}),
    "both": lambda x, y, w: ((x,), {"b": y, "c": w}),
    "one twice": lambda x, y, w: ((x, x, w), {"b": x, "c": w, "d": y}),
    "nested positional": lambda x, y, w: (([x, (y, {"k": w})],), {}),
    "nested keyword": lambda x, y, w: ((x,), {"b": [y, {"k": (w,)}]}),
    "slices": lambda x, y, w: ((slice(x, y),), {"b": slice(None, w, 2)}),
    "constants": lambda x, y, w: ((x, 2, None), {"b": y, "c": 0.5, "d": "text", "e": w}),
}
NATIVE = {
    "positional": lambda x, y, w: ((x, y, w), {}),
    "keyword": lambda x, y, w: ((x,), {"tensor2": y, "tensor1": w}),
    "both": lambda x, y, w: ((x, w), {"tensor2": y, "value": 3}),
}
CALLS = {
    "a function": lambda graph, args, kwargs: graph.create_node("call_function", mix, args, kwargs),
    "a module": lambda graph, args, kwargs: graph.call_module("inner.mixer", args, kwargs),
}
NATIVE_CALLS = {
    "an operator": lambda graph, args, kwargs: graph.call_function(operator_named("addcmul"), args, kwargs),
    "a method": lambda graph, args, kwargs: graph.call_method("addcmul", args, kwargs),
}
RESULTS = {
    "bare": lambda made, x, y: made,
    "a tuple": lambda made, x, y: (made, x, 3),
    "nested": lambda made, x, y: {"a": [made, (y,)], "b": None, "c": {"d": made}},
}


def built(call, form, result="bare", default=False):
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.create_node("placeholder", "y", (1.5,)) if default else graph.placeholder("y")
    w = graph.get_attr("w")
    made = call(graph, *form(x, y, w))
    graph.output(RESULTS[result](made, x, y))
    return fx.GraphModule(Root(), graph)


class ByHand(fx.Transformer):
    """A transformer with every step written out."""

    def call_function(self, target, args, kwargs):
        return super().call_function(target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return super().call_module(target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return super().call_method(target, args, kwargs)


def _copied(module):
    graph = fx.Graph()
    values = {}
    graph.output(graph.graph_copy(module.graph, values))
    return fx.GraphModule(module, graph)


EXECUTORS = {
    "deepcopy": lambda module: copy.deepcopy(module),
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "graph_copy": _copied,
    "Interpreter": lambda module: fx.Interpreter(module).run,
    "Interpreter, all kept": lambda module: fx.Interpreter(module, garbage_collect_values=False).run,
    "boxed": lambda module: lambda *args: fx.Interpreter(module).boxed_run(list(args)),
    "Transformer": lambda module: fx.Transformer(module).transform(),
    "Transformer with steps": lambda module: ByHand(module).transform(),
    "split_module": lambda module: fx.split_module(module, None, lambda node: 0),
    "split_module, run": lambda module: fx.Interpreter(fx.split_module(module, None, lambda node: 0)).run,
    "DetachExecutor": lambda module: DetachExecutor(module).run,
    "the planner's": lambda module: _SavedTensorRecorder(module).run,
}


def answers(module, run, default):
    """Return the result as arrays, and the gradients of inputs and parameters."""
    x, y = (rg.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [5.0, 7.0]))
    result = run(x) if default else run(x, y)
    tensors = [value for _, value in _leaves(result) if isinstance(value, rg.Tensor)]
    rg.autograd.backward([t.sum() for t in tensors if t.requires_grad])
    shown = repr([(way, v.tolist() if isinstance(v, rg.Tensor) else v) for way, v in _leaves(result)])
    parameters = (run if isinstance(run, nn.Module) else module).parameters()
    return shown, [None if v.grad is None else v.grad.tolist() for v in (x, y)], sorted(map(_grad, parameters))


def _grad(parameter):
    return [] if parameter.grad is None else parameter.grad.tolist()


CASES = {
    **{f"{c}, {f}": (CALLS[c], FORMS[f], "bare", False) for c in CALLS for f in FORMS},
    **{f"{c}, {f}": (NATIVE_CALLS[c], NATIVE[f], "bare", False) for c in NATIVE_CALLS for f in NATIVE},
    **{f"result: {r}": (CALLS["a module"], FORMS["both"], r, False) for r in RESULTS},
    "a default": (CALLS["a module"], FORMS["both"], "bare", True),
}


@group_cases
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("case", CASES)
def test_it_computes_what_the_module_does(case, executor):
    *how, default = CASES[case]
    module, other = built(*how, default), built(*how, default)
    expected = answers(module, module, default)
    run = EXECUTORS[executor](other)
    assert answers(other, run, default) == expected


def test_the_cases_distinguish_their_arguments():
    found = [answers(module, module, False)[0] for f in FORMS.values() for module in [built(CALLS["a module"], f)]]
    assert len(set(found)) == len(found)
