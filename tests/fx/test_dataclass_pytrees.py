"""Traced functions that return dataclasses, wrapped functions, nested graph modules; and empty graphs."""

import collections
import copy
import dataclasses
import functools
import math
import operator
import pickle
import sys
import types
import typing

import pytest

import retrograd as rg
from retrograd import export, fx, nn

X = rg.tensor([1.0, 2.0])


class Pair(typing.NamedTuple):
    a: object
    b: object = 3


@dataclasses.dataclass
class Record:
    a: object
    b: object = dataclasses.field(default_factory=list)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(rg.tensor([3.0, 4.0]))

    def forward(self, x):
        return Record(x * self.w, [Pair(x, {"w": self.w})])

    def other(self, x):
        return x + self.w


def plain(value):
    """Return a nested value with lists of numbers in place of tensors."""
    if isinstance(value, rg.Tensor):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        return type(value), [plain(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, tuple | list):
        return type(value), [plain(member) for member in value]
    return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value


RETURNED = {
    "a named tuple": lambda x: Pair(x + 1, x),
    "a default": lambda x: Pair(x),
    "a dataclass": lambda x: Record(x * 2),
    "nested": lambda x: {"k": [Record(x, (Pair(x, x), 1))]},
    "constants": lambda x: (x, Pair(1, "b")),
    "a dict of another class": lambda x: collections.OrderedDict(a=x, b=1),
    "a result of several": lambda x: x.sort(),
}


@pytest.mark.parametrize("name", RETURNED)
def test_records_hold_values_and_never_nodes(name):
    module = fx.symbolic_trace(RETURNED[name])
    module.graph.lint()
    expected = plain(RETURNED[name](X))
    ways = [module, copy.deepcopy(module), pickle.loads(pickle.dumps(module)), fx.Transformer(module).transform()]
    for run in [*ways, fx.Interpreter(module).run, fx.symbolic_trace(module)]:
        assert str(plain(run(X))).replace("OrderedDict", "dict") == str(expected)


def test_a_module_that_returns_records():
    assert plain(fx.symbolic_trace(Net())(X)) == plain(Net()(X))


class Holder:
    def __init__(self, x):
        self.inside = {"x": [x]}


@pytest.mark.parametrize("make", [lambda x: {x}, lambda x: frozenset([x]), Holder, lambda x: collections.deque([x])])
def test_objects_that_hide_a_proxy_are_refused(make):
    with pytest.raises(
        fx.TraceError, match=r"a (set|frozenset|Holder|deque) holds Proxy\(add\).*NamedTuple or dataclass"
    ):
        fx.symbolic_trace(lambda x: (1, make(x + 1)))
    assert fx.symbolic_trace(lambda x: (x, {1, 2}))(X)[1] == {1, 2}


def test_records_among_the_arguments_of_nodes():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(Pair(x, [x]))
    assert plain(fx.GraphModule({}, graph)(X)) == plain(Pair(X, [X]))
    with pytest.raises(TypeError, match=r"a Record among the arguments holds the node x; add call_function\(Record"):
        graph.call_function(print, (Record(x),))


def test_records_of_traces_on_examples():
    x = X.clone()
    for f in (lambda x: Record(x * 2, [Pair(x)]), lambda x: {"k": [Record(Record(x))]}, Net()):
        module = fx.trace(f, x)
        for run in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module)), fx.Interpreter(module).run):
            assert plain(run(X + 1)) == plain(f(X + 1))
    module = fx.trace(lambda r: r.a * r.b[0], Record(x, [x]))
    assert module(Record(X, [X + 1])).tolist() == (X * (X + 1)).tolist()
    with pytest.raises(ValueError, match="traced with the structure"):
        module(Record(X, [X, X]))


@pytest.mark.parametrize("make", [lambda x: {x}, Holder, lambda x: collections.deque([[x]], 1) and {(x,)}])
def test_objects_that_hide_a_traced_tensor_are_refused(make):
    with pytest.raises(
        TypeError, match=r"returns a (set|Holder) with a traced tensor inside; return tensors in tuples"
    ):
        fx.trace(lambda x: [make(x * 2)], X)


def test_programs_that_return_dataclasses_are_not_stored(tmp_path):
    module = fx.trace(lambda x: Record(x * 2), X)
    with pytest.raises(export.StorageError, match="a Record can't be stored: its class is not registered with optree"):
        export.save(module, tmp_path / "a.rg")


def test_graph_modules_that_check_shapes_are_calls():
    inner = fx.trace(lambda x: x * 2, X)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x) + 1

    module = fx.symbolic_trace(Outer())
    assert [n.op for n in module.graph.nodes] == ["placeholder", "call_module", "call_function", "output"]
    assert module(X).tolist() == (X * 2 + 1).tolist()


# ------------------------------------------------------------------------------------------------- traced objects


def doubled(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return inner


@doubled
def product(x, y, *, z=1):
    return x * y * z


@doubled
def gathered(x, *rest):
    return x + rest[0]


class Callable:
    def __call__(self, x, *rest):
        return x + rest[0]


def test_wrappers_are_called_with_the_arguments_of_the_wrapped_function():
    module = fx.symbolic_trace(product)
    assert [n.target for n in module.graph.find_nodes(op="placeholder")] == ["x", "y", "z"]
    assert module(X, X, z=3).tolist() == product(X, X, z=3).tolist()
    with pytest.raises(ValueError, match=r"\*rest reaches the code by way of a wrapper.*concrete_args"):
        fx.symbolic_trace(gathered)
    assert fx.symbolic_trace(functools.partial(product, y=2))(X).tolist() == (X * 4).tolist()
    assert fx.symbolic_trace(Callable())(X, X).tolist() == (X * 2).tolist()


def test_wrapped_methods_are_traced():
    class Wrapped(Net):
        forward = doubled(Net.other)

    assert fx.symbolic_trace(Wrapped())(X).tolist() == (Net().other(X) * 2).tolist()


def test_graph_modules_are_traced_as_roots_and_below():
    inner = fx.symbolic_trace(lambda x, *rest, k=2: x * k + sum([1]))
    assert fx.symbolic_trace(inner)(X, k=3).tolist() == [4.0, 7.0]
    assert fx.symbolic_trace(nn.Sequential(inner, nn.ReLU()))(X).tolist() == [3.0, 5.0]
    recorded = fx.trace(lambda x: {"y": x.exp_()}, X.clone())
    again, x = fx.symbolic_trace(recorded), X.clone()
    assert again(x)["y"].tolist() == X.exp().tolist() == x.tolist()


def test_the_traced_method_of_a_module_may_have_another_name():
    class Other(fx.Tracer):
        traced_func_name = "other"

    tracer = fx.Tracer()
    tracer.traced_func_name = "other"
    for each in (Other(), tracer):
        graph = each.trace(Net())
        assert fx.GraphModule(each.root, graph)(X).tolist() == [4.0, 6.0]
    tracer.traced_func_name = "absent"
    with pytest.raises(ValueError, match="Net has no method 'absent' to trace"):
        tracer.trace(Net())


def helper(x, n):
    return x * n if n else x


def test_functions_wrap_themselves_while_code_is_traced():
    before = math.sqrt
    module = fx.symbolic_trace(lambda x: x * math.sqrt(x.shape[0]) + math.pi)
    assert module(X).tolist() == (X * math.sqrt(2) + math.pi).tolist()
    tracer = fx.Tracer(autowrap_functions=(helper,))
    graph = tracer.trace(lambda x: helper(x, 2))
    assert [n.target for n in graph.find_nodes(op="call_function")] == [helper]
    assert math.sqrt is before
    with pytest.raises(TypeError, match=r"float\(\) needs its value"):
        fx.Tracer(autowrap_modules=()).trace(lambda x: math.sqrt(x))


def test_shapes_of_parameters_may_be_constants():
    class Sized(Net):
        def forward(self, x):
            return x + self.w.shape[0] + self.w.size(0) + self.w.ndim

    nodes = {flag: fx.Tracer(param_shapes_constant=flag).trace(Sized()) for flag in (False, True)}
    assert len(nodes[False].nodes) > len(nodes[True].nodes)
    assert fx.GraphModule(Sized(), nodes[True])(X).tolist() == Sized()(X).tolist()


def test_a_name_can_be_wrapped_before_its_definition():
    module = types.ModuleType("wrapping_early")
    sys.modules[module.__name__] = module
    source = "from retrograd import fx\nfx.wrap('late')\ndef late(x, n):\n    return x * n if n else x\n"
    exec(source + "def f(x):\n    return late(x, 2)\nfx.wrap('never')\n", vars(module))
    traced = fx.symbolic_trace(module.f)
    assert [n.name for n in traced.graph.nodes] == ["x", "late", "output"]
    assert traced(X).tolist() == [2.0, 4.0]
    assert pickle.loads(pickle.dumps(traced))(X).tolist() == [2.0, 4.0]
    del sys.modules[module.__name__]


# ------------------------------------------------------------------------------------------------ graphs by hand


def test_an_empty_graph_does_nothing():
    graph = fx.Graph()
    graph.lint()
    assert not graph.eliminate_dead_code()
    module = fx.GraphModule({}, graph)
    for run in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module)), fx.Interpreter(module).run):
        assert run() is None
    x = graph.placeholder("x")
    assert fx.GraphModule({}, graph)(1) is None
    graph.call_function(operator.neg, (x,))
    assert fx.GraphModule({}, graph)(1) is None
    assert fx.Interpreter(fx.GraphModule({}, graph)).run(1) is None


def test_inputs_of_one_target_are_distinguished():
    graph = fx.Graph()
    inputs = [graph.placeholder(name) for name in ("x", "x", "class", "self", "1")]
    graph.output(tuple(inputs))
    module = fx.GraphModule({}, graph)
    assert module(1, 2, 3, 4, 5) == fx.symbolic_trace(module)(1, 2, 3, 4, 5) == (1, 2, 3, 4, 5)


@pytest.mark.parametrize("name", ["iadd", "imul", "isub", "itruediv", "ipow", "imod", "ifloordiv"])
def test_operators_that_write_write_to_numbers_too(name):
    graph = fx.Graph()
    x = graph.placeholder("x")
    done = graph.call_function(getattr(operator, name), (x, 2))
    graph.output((x, done))
    expected = getattr(operator, name)(3, 2)
    assert fx.GraphModule({}, graph)(3) == (expected, expected)
    tensor = X.clone()
    fx.GraphModule({}, graph)(tensor)
    assert tensor.tolist() == getattr(operator, name)(X.clone(), 2).tolist()


def test_a_write_to_an_attribute_does_not_change_the_module():
    graph = fx.Graph()
    graph.output(graph.call_function(operator.iadd, (graph.get_attr("w"), 1)))
    root = nn.Module()
    root.w = rg.ones(2)
    module = fx.GraphModule(root, graph)
    assert module().tolist() == root.w.tolist() == [2.0, 2.0]
    assert module.w is root.w


def test_an_item_that_is_set_stays_without_users():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(operator.setitem, (x, 0, 5))
    graph.call_function(operator.iconcat, (x, [7]))
    graph.output(x)
    assert not graph.eliminate_dead_code()
    assert fx.GraphModule({}, graph)([1, 2]) == [5, 2, 7]
