"""Attributes of tensors: read-only ones, users' own, and small old names: `_backward_hooks`, `_assert`, `types`."""

import copy
import pickle

import pytest
import torch

import retrograd as rg

from .programs import ErrorClasses, state_after


def refusal(m, program):
    """Return the classes of the error of a program on a tensor, and its words."""
    try:
        exec(program, {"x": m.ones(2, 2)})
    except Exception as error:
        return ErrorClasses(error), str(error)
    return None


def is_read_only(name):
    found = refusal(torch, f"x.{name} = 3")
    return found is not None and "is not writable" in found[1]


# Deleting `real` kills PyTorch's process.
ATTRIBUTES = [n for n in dir(torch.Tensor) if n not in ("real", "imag") and hasattr(rg.Tensor, n) and is_read_only(n)]


@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("statement", ["x.{} = 3", "del x.{}"])
def test_attributes_are_read_only_in_pytorchs_words(name, statement):
    ours, theirs = (refusal(m, statement.format(name)) for m in (rg, torch))
    assert ours[0] == theirs[0]
    for words in (f"attribute '{name}'", "objects is not writable"):
        assert words in ours[1]
        assert words in theirs[1]


def test_many_attributes_were_found():
    expected = {
        "output_nr",
        "shape",
        "dtype",
        "is_leaf",
        "grad_fn",
        "device",
        "mT",
        "_version",
        "layout",
        "retains_grad",
    }
    assert expected <= {*ATTRIBUTES}


@pytest.mark.parametrize("program", ["x.requires_grad = 3", "x.requires_grad = None", "del x.requires_grad"])
def test_the_flag_must_be_a_bool(program):
    ours, theirs = refusal(rg, program), refusal(torch, program)
    assert ours[0] >= theirs[0]  # ours is a TypeError too, as PyTorch's of `requires_grad=` and `requires_grad_` are
    assert "requires_grad must be a bool" in ours[1]
    assert "requires_grad must be a bool" in theirs[1]


# ----------------------------------------------------------------------------- _backward_hooks, _assert, types

SMALL = [
    "x = m.ones(2, requires_grad=True); y = x._backward_hooks, len(x.register_hook(lambda g: g) and x._backward_hooks)",
    "x = m.ones(2, requires_grad=True); h = x.register_hook(lambda g: g); h.remove(); y = len(x._backward_hooks)",
    "x = m.ones(2); x._backward_hooks = None; y = x._backward_hooks",
    "x, w = m.ones(2, requires_grad=True), m.ones(2, requires_grad=True); w.register_hook(lambda g: g * 2); "
    "x._backward_hooks = w._backward_hooks; (x * 3).sum().backward(); y = x.grad",
    "x = m.ones(2, requires_grad=True); x.register_hook(lambda g: g * 2); x._backward_hooks = None; "
    "(x * 3).sum().backward(); y = x.grad",
    "x = m.ones(1); y = m._assert(True, 'words'), m._assert(x == 1, 'words')",
    "x = m.ones(2); m._assert(x == 1, 'words')",
]


@pytest.mark.parametrize("program", SMALL)
def test_programs_with_old_names_agree(program, plain):
    assert state_after(program, rg, plain) == state_after(program, torch, plain)


@pytest.mark.parametrize("m", [rg, torch], ids=["retrograd", "torch"])
def test_an_assertion_fails_with_its_message_and_is_traced(m):
    with pytest.raises(AssertionError, match="words"):
        m._assert(m.tensor(0.0), "words")

    def f(x):
        m._assert(x.sum() > 0, "words")
        return x + 1

    traced = m.fx.symbolic_trace(f)
    assert [node.target for node in traced.graph.nodes if node.target is m._assert] == [m._assert]
    with pytest.raises(AssertionError, match="words"):
        traced(-m.ones(2))


def test_types_for_annotations_exist():
    from retrograd import types

    public = ["Device", "FileLike", "Number", "Storage"]
    assert sorted(types.__all__) == public
    assert set(public) <= set(dir(torch.types))
    for value, kind in [(1.5, types.Number), (rg.device("cpu"), types.Device), ("a", types.FileLike)]:
        assert isinstance(value, kind)
    assert isinstance(rg.ones(1).untyped_storage(), types.Storage)


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "the same after a write": lambda x: x.add_(1),
    "result": lambda x: x + 1,
    "view": lambda x: x[:1],
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "to": lambda x: x.to(x.dtype),
}


@pytest.mark.parametrize("name", COPIES)
def test_attributes_that_users_set_pass_to_the_same_copies(name):
    found = []
    for m in (rg, torch):
        for x in (m.ones(2), m.arange(3), m.nn.Parameter(m.ones(2))):
            x.label = ["a"]
            with m.no_grad():
                found.append((vars(COPIES[name](x)), vars(m.nn.Parameter(x * 1.0))))
    assert found[:3] == found[3:]
