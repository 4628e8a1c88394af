"""Methods of `Module` that subclasses override: others call them where PyTorch's do, and no method calls more."""

import pytest
import torch

import retrograd as rg

# Methods that only hold the work of public ones, and are called by them at each call of a layer or for each parameter.
NOT_CALLED = {"_named_members", "_call_impl"}
EXTRA_STATE = {"get_extra_state", "set_extra_state"}  # defined by classes that have one
# A module is loaded, and a submodule is found for the last part of its name, by public methods that only read.
ALSO_CALLED = {"load_state_dict": {"named_modules"}, "set_submodule": {"get_submodule"}}


def state(m):
    return {name: m.ones(2) for name in ("w", "b", "child.w", "child.b")}


CALLS = {
    "_apply": lambda m, p: p._apply(lambda x: x),
    "add_module": lambda m, p: p.add_module("z", m.nn.Linear(1, 1)),
    "apply": lambda m, p: p.apply(lambda x: None),
    "bfloat16": lambda m, p: p.bfloat16(),
    "buffers": lambda m, p: list(p.buffers()),
    "call": lambda m, p: p(m.ones(2)),
    "call_with_hook": lambda m, p: (p.register_forward_hook(lambda *_: None), p(m.ones(2))),
    "children": lambda m, p: list(p.children()),
    "cpu": lambda m, p: p.cpu(),
    "dir": lambda m, p: dir(p),
    "double": lambda m, p: p.double(),
    "eval": lambda m, p: p.eval(),
    "float": lambda m, p: p.float(),
    "get_buffer": lambda m, p: p.get_buffer("child.b"),
    "get_parameter": lambda m, p: p.get_parameter("child.w"),
    "half": lambda m, p: p.half(),
    "load_state_dict": lambda m, p: p.load_state_dict(state(m)),
    "modules": lambda m, p: list(p.modules()),
    "named_parameters": lambda m, p: list(p.named_parameters()),
    "parameters": lambda m, p: list(p.parameters()),
    "register_buffer": lambda m, p: p.register_buffer("z", m.ones(2)),
    "register_module": lambda m, p: p.register_module("z", m.nn.Linear(1, 1)),
    "register_parameter": lambda m, p: p.register_parameter("z", m.nn.Parameter(m.ones(2))),
    "repr": lambda m, p: repr(p),
    "requires_grad_": lambda m, p: p.requires_grad_(),
    "set_buffer": lambda m, p: setattr(p, "b", m.ones(2)),
    "set_module": lambda m, p: setattr(p, "z", m.nn.Linear(1, 1)),
    "set_new_parameter": lambda m, p: setattr(p, "z", m.nn.Parameter(m.ones(2))),
    "set_parameter": lambda m, p: setattr(p, "w", m.nn.Parameter(m.ones(2))),
    "set_submodule": lambda m, p: p.set_submodule("child", m.nn.Linear(1, 1)),
    "share_memory": lambda m, p: p.share_memory(),
    "state_dict": lambda m, p: p.state_dict(),
    "to": lambda m, p: p.to(m.float64),
    "to_device": lambda m, p: p.to("cpu"),
    "to_empty": lambda m, p: p.to_empty(device="cpu"),
    "train": lambda m, p: p.train(),
    "type": lambda m, p: p.type(m.float64),
    "zero_grad": lambda m, p: p.zero_grad(),
}
NAMES = [
    name
    for name, member in vars(torch.nn.Module).items()
    if callable(member) and not name.startswith("__") and hasattr(rg.nn.Module, name) and name not in EXTRA_STATE
]


def called(m, call):
    """Return the methods, "parent" or "child" and a name, that are called on a module and on its submodule."""
    log = set()

    def recorded(name):
        def method(self, *args, **kwargs):
            log.add((vars(self).get("tag"), name))
            return getattr(m.nn.Module, name)(self, *args, **kwargs)

        return method

    class Recorder(m.nn.Module):
        pass

    for name in NAMES:
        setattr(Recorder, name, recorded(name))
    Recorder.forward = lambda self, x: x
    parent, child = Recorder(), Recorder()
    for tag, module in (("parent", parent), ("child", child)):
        module.w = m.nn.Parameter(m.ones(2))
        module.register_buffer("b", m.ones(2))
        vars(module)["tag"] = tag
    parent.child = child
    log.clear()
    call(m, parent)
    return {(tag, name) for tag, name in log if name not in NOT_CALLED}


@pytest.mark.parametrize("name", CALLS)
def test_overridden_methods_of_modules_are_called_as_in_pytorch(name):
    ours, theirs = called(rg, CALLS[name]), called(torch, CALLS[name])
    assert theirs <= ours
    assert {method for _, method in ours - theirs} <= ALSO_CALLED.get(name, set())
