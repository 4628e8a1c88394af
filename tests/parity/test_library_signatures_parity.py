"""The public names of torch.library are there, with its parameters; the exceptions have reasons."""

import inspect

import pytest
import torch
import torch._custom_ops as their_older
import torch.library as theirs
from torch._library.custom_ops import CustomOpDef

import retrograd as rg
from retrograd import _custom_ops as our_older

from .signatures import missing

# Public names that are not ours, and why.
ABSENT = {
    "OpOverload": "an operator is one object, a CustomOperator; overloads are operators of their own",
    "EffectType": "effects order calls in compiled graphs; graphs here keep the order of calls",
    "CustomOpDef.register_effect": "effects order calls in compiled graphs; graphs here keep the order of calls",
    "Library.register_symm_mem_args": "memory shared by GPUs",
}
# Parameters of PyTorch's that are not ours, and why.
PARAMETERS = {
    "CustomOpDef.__init__": ({"namespace", "name", "schema", "fn", "tags"}, "custom_op makes these objects"),
    "opcheck": ({"test_utils"}, "all checks are run by default, PyTorch leaves out test_aot_dispatch_static"),
}


def public(module):
    """Return the public names that a module defines or documents."""
    own = {n for n in dir(module) if not n.startswith("_") and _is_torchs(getattr(module, n))}
    return sorted(own | {*getattr(module, "__all__", ())})


def _is_torchs(value):
    return (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("torch")


def methods(cls):
    """Return the names of the public methods and of the constructor of a class."""
    return [n for n, v in vars(cls).items() if inspect.isfunction(v) and (n == "__init__" or not n.startswith("_"))]


CLASSES = {"CustomOpDef": CustomOpDef, "Library": theirs.Library}
MEMBERS = [f"{name}.{method}" for name, cls in CLASSES.items() for method in methods(cls)]
FUNCTIONS = [name for name in public(theirs) if not inspect.isclass(getattr(theirs, name))]


def pair(name):
    """Return PyTorch's object and ours for a dotted name."""
    if "." not in name:
        return getattr(theirs, name), getattr(rg.library, name)
    cls, _, method = name.partition(".")
    return getattr(CLASSES[cls], method), getattr(getattr(rg.library, cls), method)


@pytest.mark.parametrize("name", [n for n in [*public(theirs), *MEMBERS] if n not in ABSENT])
def test_every_name_is_there_and_is_of_the_same_kind(name):
    peer, mine = pair(name)
    assert inspect.isclass(mine) == inspect.isclass(peer)
    assert callable(mine) == callable(peer)


@pytest.mark.parametrize("name", [n for n in [*FUNCTIONS, *MEMBERS] if n not in ABSENT])
def test_its_parameters_are_pytorchs(name):
    peer, mine = pair(name)
    assert missing(peer, mine, PARAMETERS.get(name, ((), ""))[0]) == []


@pytest.mark.parametrize("name", their_older.__all__)
def test_the_older_functions_have_pytorchs_parameters(name):
    assert missing(getattr(their_older, name), getattr(our_older, name)) == []


@pytest.mark.parametrize("name", ABSENT)
def test_absent_names_exist_in_pytorch_only(name):
    with pytest.raises(AttributeError):
        pair(name)
    cls, _, method = name.partition(".")
    assert hasattr(CLASSES[cls], method) if method else hasattr(theirs, cls)


def test_tags_have_pytorchs_names_and_values():
    assert {t.name: t.value for t in rg.Tag} == {n: int(t.value) for n, t in torch.Tag.__members__.items()}
