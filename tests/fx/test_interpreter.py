"""The interpreter's options: starting in the middle, saving all values, consuming the argument list."""

import weakref

import pytest

import retrograd as rg
from retrograd import fx, nn


def f(x, y=2, *rest, **named):
    return x.exp().log() * y, rest, named


@pytest.fixture
def module() -> fx.GraphModule:
    return fx.symbolic_trace(f)


@pytest.mark.parametrize(("args", "kwargs"), [((1.0,), {}), ((1.0, 3), {}), ((1.0, 3, 4, 5), {}), ((1.0,), {"y": 5})])
def test_arguments_are_those_of_the_module(module, args, kwargs):
    args = (rg.tensor(args[0]), *args[1:])
    out, rest, _ = fx.Interpreter(module).run(*args, **kwargs)
    expected, expected_rest, _ = module(*args, **kwargs)
    assert (out.item(), rest) == (expected.item(), expected_rest)


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="unexpected arguments 'z'"):
        fx.Interpreter(fx.symbolic_trace(lambda x: x)).run(1, z=2)


def test_a_run_continues_in_the_middle(module):
    nodes = {node.name: node for node in module.graph.nodes}

    class Counting(fx.Interpreter):
        ran = ()

        def run_node(self, node):
            self.ran += (node.name,)
            return super().run_node(node)

    counting = Counting(module)
    start = {nodes[name]: value for name, value in {"x": None, "exp": rg.tensor(1.0), "y": 7}.items()}
    assert counting.run(initial_env=start)[0].item() == 0.0
    assert counting.ran == ("_rest", "_named", "log", "mul", "output")


def test_values_are_kept_if_requested(module):
    interpreter = fx.Interpreter(module, garbage_collect_values=False)
    interpreter.run(rg.tensor(0.0))
    assert [node.name for node in interpreter.env] == [node.name for node in module.graph.nodes]


def test_another_graph_runs_on_the_module():
    module = fx.GraphModule({"w": rg.tensor(3.0)}, constant())
    other = fx.Graph()
    other.output(other.call_method("neg", (other.get_attr("w"),)))
    assert fx.Interpreter(module, graph=other).run().item() == -3.0
    with pytest.raises(TypeError, match="Linear has no graph"):
        fx.Interpreter(nn.Linear(1, 1))


def constant() -> fx.Graph:
    graph = fx.Graph()
    graph.output(graph.get_attr("w"))
    return graph


def test_boxed_arguments_are_freed_after_their_last_use():
    alive = []

    class Watching(fx.Interpreter):
        def run_node(self, node):
            alive.append(first() is not None)
            return super().run_node(node)

    x = rg.ones(2)
    first = weakref.ref(x)
    args = [x]
    del x
    module = fx.symbolic_trace(lambda x: x.neg().neg())
    assert Watching(module).boxed_run(args).tolist() == [1.0, 1.0]
    assert args == []
    assert alive == [True, True, False, False]
    with pytest.raises(TypeError, match="in a list, got tuple"):
        fx.Interpreter(module).boxed_run((1,))


@pytest.mark.parametrize(("given", "wrong"), [(1, "missing arguments: y"), (4, "extra arguments")])
def test_wrong_numbers_of_boxed_arguments_are_refused_before_the_list_is_emptied(given, wrong):
    args = [1] * given
    with pytest.raises(RuntimeError, match=wrong):
        fx.Interpreter(fx.symbolic_trace(lambda x, y, z=3: x + y + z)).boxed_run(args)
    assert args == [1] * given


def test_modules_and_methods_are_steps():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    class Doubled(fx.Interpreter):
        def call_module(self, target, args, kwargs):
            return super().call_module(target, args, kwargs) * (2 if target == "1" else 1)

    x = rg.randn(3, 2)
    assert (Doubled(fx.symbolic_trace(net)).run(x) == net(x) * 2).all().item()


def test_a_node_without_a_value_is_named():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(x)
    exp = graph.call_method("exp", (x,))
    next(iter(graph.find_nodes(op="output"))).args = (exp,)
    with pytest.raises(RuntimeError, match="output uses exp, which has no value"):
        fx.Interpreter(nn.Module(), graph=graph).run(1)


def test_a_step_finds_the_module_that_its_target_names():
    class WithoutDropout(fx.Transformer):
        def call_module(self, target, args, kwargs):
            left_out = isinstance(self.submodules[target], nn.Dropout)
            return args[0] if left_out else super().call_module(target, args, kwargs)

    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.Dropout(), nn.Linear(3, 1)))
    module = WithoutDropout(traced).transform()
    assert [node.target for node in module.graph.nodes if node.op == "call_module"] == ["0", "2"]
