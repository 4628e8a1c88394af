"""Nodes record which modules' forwards made them, by the attribute paths of the calls."""

import pickle

import pytest

import retrograd as rg
from retrograd import fx, nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x).tanh()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Block()
        self.other = nn.Sequential(nn.ReLU())

    def forward(self, x):
        return self.layer(self.other(self.layer(x))) + 1


def stacks(module):
    return [(n.target.name, n.meta.get("nn_module_stack")) for n in module.graph.find_nodes(op="call_function")]


def keys(module):
    return [(name, list(stack)) for name, stack in stacks(module)]


EXPECTED = [
    ("linear", ["", "layer", "layer.inner"]),
    ("tanh", ["", "layer"]),
    ("relu", ["", "other", "other.0"]),
    ("linear", ["", "layer@1", "layer.inner@1"]),
    ("tanh", ["", "layer@1"]),
    ("add", [""]),
]


def test_every_node_has_the_modules_that_ran_the_outermost_first():
    module = fx.trace(Net(), rg.ones(1, 2))
    assert keys(module) == EXPECTED
    first = stacks(module)[3][1]
    here = Block.__module__
    assert first == {
        "": ("", f"{here}.Net"),
        "layer@1": ("layer", f"{here}.Block"),
        "layer.inner@1": ("layer.inner", "retrograd.nn.linear.Linear"),
    }


@pytest.mark.parametrize("again", [lambda m: fx.trace(m, rg.ones(1, 2)), lambda m: pickle.loads(pickle.dumps(m))])
def test_the_stacks_survive_tracing_again_and_pickling(again):
    module = fx.trace(Net(), rg.ones(1, 2))
    assert stacks(again(module)) == stacks(module)


def test_a_traced_module_within_a_module_has_its_own_stacks_below_its_path():
    outer = nn.Sequential(nn.ReLU(), fx.trace(Net(), rg.ones(1, 2)))
    found = keys(fx.trace(outer, rg.ones(1, 2)))
    assert found[0] == ("relu", ["", "0"])
    assert found[1] == ("linear", ["", "1", "1.layer", "1.layer.inner"])
    assert found[-1] == ("add", ["", "1"])


def test_a_module_with_several_names_goes_by_that_below_its_caller():
    shared = nn.ReLU()
    net = nn.Sequential(nn.Sequential(shared), shared, shared)
    assert [path for _, path in keys(fx.trace(net, rg.ones(2)))] == [["", "0", "0.0"], ["", "1"], ["", "2"]]


def test_hooks_of_users_belong_to_their_module():
    net = nn.Sequential(nn.ReLU(), nn.ReLU())
    net[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    net[1].register_forward_hook(lambda module, args, output: output + 1)
    assert [path[-1] for _, path in keys(fx.trace(net, rg.ones(2)))] == ["0", "0", "1", "1"]
    assert [len(m._call_hooks) for m in net] == [1, 1]
    assert not net._call_hooks


def test_a_call_that_failed_and_was_caught_is_over_when_its_caller_is():
    class Careful(nn.Module):
        def __init__(self):
            super().__init__()
            self.bad = nn.Linear(3, 3)

        def forward(self, x):
            try:
                return self.bad(x)
            except (ValueError, RuntimeError):
                return x

    assert keys(fx.trace(nn.Sequential(Careful(), nn.ReLU()), rg.ones(2))) == [("relu", ["", "1"])]


def test_functions_have_no_stack():
    module = fx.trace(lambda x: x + 1, rg.ones(2))
    assert "nn_module_stack" not in module.graph.find_nodes(op="call_function")[0].meta
