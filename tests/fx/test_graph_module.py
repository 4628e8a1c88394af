"""Graph modules: built from graphs, changed, copied; and the interpreter, which runs them step by step."""

import copy
import pickle

import pytest

import retrograd as rg
from retrograd import fx, nn
from retrograd.core import registry
from retrograd.testing import assert_close


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)
        self.register_buffer("mean", rg.full((3,), 0.5))
        self.offset = rg.ones(2)

    def forward(self, x, y=None):
        return {"out": self.second(self.first(x - self.mean).relu()) + self.offset}


@pytest.fixture
def module() -> fx.GraphModule:
    return fx.trace(Net(), rg.ones(1, 3))


def test_a_graph_module_takes_only_attributes_that_its_graph_reads(module):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(registry["linear"], (x, graph.get_attr("second.weight"))))
    part = fx.GraphModule(module, graph)
    assert list(part.state_dict()) == ["second.weight"]
    assert part.second.weight is module.second.weight


def test_a_graph_that_reads_a_missing_attribute_is_refused(module):
    graph = fx.Graph()
    graph.output(graph.get_attr("second.scale"))
    with pytest.raises(AttributeError, match="scale"):
        fx.GraphModule(module, graph)


def test_changes_in_the_graph_run_after_recompile(module):
    before = module(rg.ones(1, 3))["out"]
    output = module.graph.output_node()
    with module.graph.inserting_before(output):
        doubled = module.graph.call_function(registry["mul"], (output.args[0][0], 2))
    output.args = ((doubled,),)
    module.graph.lint()
    assert_close(module(rg.ones(1, 3))["out"], before)
    module.recompile()
    assert_close(module(rg.ones(1, 3))["out"], before * 2)


def test_assigning_a_graph_recompiles():
    module = fx.trace(lambda x: x + 1, rg.ones(1))
    module.graph = fx.trace(lambda x: x + 2, rg.ones(1)).graph
    assert module(rg.ones(1)).tolist() == [3.0]


DUPLICATES = {"deepcopy": copy.deepcopy, "pickle": lambda m: pickle.loads(pickle.dumps(m))}


@pytest.mark.parametrize("duplicate", DUPLICATES.values(), ids=DUPLICATES)
def test_copies_run_identically_and_own_their_parameters(module, duplicate):
    twin = duplicate(module.eval())
    x = rg.randn(1, 3)
    assert_close(twin(x)["out"], module(x)["out"], rtol=0, atol=0)
    assert twin.code == module.code
    assert list(twin.state_dict()) == list(module.state_dict())
    assert twin.training is False
    assert [type(p) for p in twin.parameters()] == [nn.Parameter] * 4
    with rg.no_grad():
        twin.first.weight.zero_()
    assert module.first.weight.any().item()
    with pytest.raises(ValueError, match="structure"):
        twin([x])


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_keep_submodules_that_the_graph_does_not_use(module, duplicate):
    module.add_submodule("later.relu", nn.ReLU())
    module.add_submodule("spare", nn.Linear(2, 2))
    copied = duplicate(module)
    assert isinstance(copied.get_submodule("later.relu"), nn.ReLU)
    assert isinstance(copied.spare, nn.Linear)


def test_a_trained_copy_gets_its_own_gradients(module):
    twin = copy.deepcopy(module)
    twin(rg.ones(1, 3))["out"].sum().backward()
    assert twin.second.bias.grad.tolist() == [1.0, 1.0]
    assert module.second.bias.grad is None


# -------------------------------------------------------------------------------------------- the interpreter


def test_the_interpreter_returns_the_result_of_the_module(module):
    x = rg.randn(1, 3)
    assert_close(fx.Interpreter(module).run(x)["out"], module(x)["out"], rtol=0, atol=0)


def test_steps_can_be_overridden(module):
    seen = []

    class Recording(fx.Interpreter):
        def run_node(self, node):
            seen.append(node.name)
            return super().run_node(node)

        def placeholder(self, target, args, kwargs):
            return super().placeholder(target, args, kwargs) * 0

        def get_attr(self, target, args, kwargs):
            return super().get_attr(target, args, kwargs) * 0

        def call_function(self, target, args, kwargs):
            return super().call_function(registry["sub"] if target.name == "add" else target, args, kwargs)

        def output(self, target, args, kwargs):
            return tuple(a + 7 for a in super().output(target, args, kwargs))

    assert Recording(module).run(rg.ones(1, 3))["out"].tolist() == [[7.0, 7.0]]
    assert seen == [node.name for node in module.graph.nodes]


def test_values_go_after_their_last_use():
    module = fx.trace(lambda x: ((x + 1) * 2 - x, x.exp())[0], rg.ones(2))
    held = {}

    class Watching(fx.Interpreter):
        def run_node(self, node):
            held[node.name] = " ".join(sorted(n.name for n in self.env))
            return super().run_node(node)

    Watching(module).run(rg.ones(2))
    assert held == {"x": "", "add": "x", "mul": "add x", "sub": "mul x", "exp": "sub x", "output": "sub"}


def test_errors_name_the_node_and_where_it_was_made():
    module = fx.trace(lambda x: x.log() + x, rg.ones(2))
    add = module.graph.find_nodes(op="call_function")[1]
    add.args = (rg.ones(3), add.args[1])
    with pytest.raises(ValueError, match="broadcast") as caught:
        fx.Interpreter(module).run(rg.ones(2))
    _, _, note = str(caught.value).partition("\n\n")
    assert note.startswith("While executing %add : ")
    assert "test_graph_module.py" in note


def test_an_error_whose_message_has_other_parts_gets_a_note():
    def fail(x):
        raise OSError(2, "no such table")

    graph = fx.Graph()
    graph.output(graph.call_function(fail, (graph.placeholder("x"),)))
    with pytest.raises(OSError, match="no such table") as caught:
        fx.Interpreter(fx.GraphModule(nn.Module(), graph)).run(1)
    assert caught.value.__notes__[0].startswith("While executing %fail : ")


def test_a_missing_argument_is_named():
    graph = fx.Graph()
    graph.output((graph.placeholder("a"), graph.placeholder("b")))
    for kind in (TypeError, RuntimeError):
        with pytest.raises(kind, match="Expected positional argument for parameter b, but one was not passed in!"):
            fx.Interpreter(fx.GraphModule(nn.Module(), graph)).run(1)
