"""Classes override the functions and methods that they override in PyTorch, under the same names."""

import inspect
import warnings
from fnmatch import fnmatchcase

import torch
from torch.overrides import get_testing_overrides, resolve_name

import retrograd as rg

# Functions that PyTorch reports to a class under their own names, and retrograd does not, and why.
DIFFERENT = {
    "torch.where": "of a condition only it is `nonzero`",
    "torch.spmm": "another name of `mm`",
    "torch.nn.functional.*max_pool*_with_indices": "they call the pools, which are reported",
    "torch.Tensor.__[fr]*__": "an arithmetic operator is reported under its own name, `sub` for `__rsub__`",
    "torch.Tensor.__pow__": "an arithmetic operator is reported under its own name",
    "torch.Tensor.__i*__": "an assignment is reported as the method that writes in place",
    "torch.Tensor.__eq__": "an arithmetic operator is reported under its own name",
    "torch.Tensor.size": "a property, which can be called, too",
    "torch.*_copy": "of sparse tensors; their methods refuse a dense one",
    "torch.nn.init.*": "they call the method that writes, which is reported",
    "torch.functional.unravel_index": "a tensor as the shape is taken apart first",
    "torch.nn.functional.*": "a tensor as sizes is taken apart first",
}


def member(m, dotted):
    """Return the object with a dotted name in a library; None if there is none."""
    found = m
    for part in dotted.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def reported(m, name, signature):
    """Return the first function that the class of an operand receives in a call; None if it receives none."""
    seen = []

    class Mine(m.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return -1

    def operand(_):
        return m.ones(2, 2).as_subclass(Mine)

    names = signature.args[: len(signature.args) - len(signature.defaults or ())]
    named = {n: operand(n) for n in signature.kwonlyargs if n not in (signature.kwonlydefaults or {})}
    args = [(operand(n), operand(n)) if n in ("tensors", "inputs") else operand(n) for n in names]
    try:
        if name.startswith("torch.Tensor.") and args:
            getattr(args[0], name.split(".")[2])(*args[1:], **named)
        else:
            member(m, name)(*args, **named)
    except Exception:  # before the function is handed over, or after it was
        pass
    return seen[0] if seen else None


def compared():
    """Return the names of functions that PyTorch reports as themselves: those reported here, and the others."""
    same, others = [], []
    for function, override in get_testing_overrides().items():
        name, signature = resolve_name(function), inspect.getfullargspec(override)
        if name is None or name.endswith("__get__") or member(rg, name) is None:
            continue
        theirs = reported(torch, name, signature)
        if theirs is None or resolve_name(theirs) != name:
            continue
        mine = reported(rg, name, signature)
        (same if mine is member(rg, name) or mine == member(rg, name) else others).append(name)
    return same, others


def test_classes_receive_each_function_that_they_receive_in_pytorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same, others = compared()
    assert [name for name in others if not any(fnmatchcase(name, known) for known in DIFFERENT)] == []
    assert [known for known in DIFFERENT if not any(fnmatchcase(name, known) for name in others)] == []
    assert len(same) > 900
