"""The public names of PyTorch's namespaces, read from the installed package."""

import importlib
import re
import types
import warnings
from dataclasses import dataclass
from functools import cache, reduce

import torch

import retrograd
import retrograd.nested  # which adds methods of nested tensors

# The namespaces whose names count towards the total; a part of another is listed after it.
COUNTED = (
    "torch", "nn", "nn.functional", "nn.init", "nn.parameter", "nn.attention", "nn.parallel",
    "nn.utils", "nn.utils.parametrizations", "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn",
    "nn.utils.stateless", "optim", "optim.lr_scheduler", "optim.swa_utils", "Tensor", "autograd", "autograd.forward_ad",
    "autograd.function", "autograd.functional", "autograd.graph", "autograd.profiler", "func", "linalg", "fft",
    "special", "utils.data", "distributions",
)  # fmt: skip
APART = (
    "amp", "compiler", "cuda", "profiler", "serialization", "random", "overrides", "library", "masked",
    "utils.checkpoint", "signal.windows", "testing",
)  # fmt: skip
RANKS = (
    "distributed", "distributed.device_mesh", "distributed.nn.functional", "distributed.fsdp", "distributed.tensor",
    "distributed.tensor.parallel", "distributed.optim", "distributed.checkpoint", "distributed.checkpoint.state_dict",
    "distributed.checkpoint.stateful", "distributed.checkpoint.format_utils", "distributed.algorithms.join",
    "distributed.pipelining",
)  # fmt: skip
NAMESPACES = COUNTED + APART + RANKS

_GENERATED = re.compile(r"Members:.*|\w+\([^\n]*\) -> [^\n]*", re.DOTALL)


@dataclass(frozen=True, order=True)
class Name:
    """A public name: where PyTorch has it, whether PyTorch documents it, whether it exists here."""

    path: str  # as "nn.Linear", and "ones" of torch itself
    documented: bool
    exists: bool


@cache
def names(namespace: str) -> tuple[Name, ...]:
    """Return the public names of a namespace in alphabetic order."""
    prefix = "" if namespace == "torch" else f"{namespace}."
    with warnings.catch_warnings(action="ignore"):  # about deprecated names, some in PyTorch's own modules
        theirs, ours = _find(torch, namespace), _find(retrograd, namespace)
        found = sorted(_public(theirs))
    return tuple(Name(prefix + name, _is_documented(theirs, name), hasattr(ours, name)) for name in found)


def _find(root: types.ModuleType, namespace: str):
    """Return a module or class by its path below a package; None if it does not exist."""
    try:
        return reduce(_member, [] if namespace == "torch" else namespace.split("."), root)
    except (AttributeError, ImportError):
        return None


def _member(owner, name: str):
    if isinstance(owner, types.ModuleType) and not hasattr(owner, name):
        return importlib.import_module(f"{owner.__name__}.{name}")
    return getattr(owner, name)


def _public(owner) -> set[str]:
    """Return the names in `__all__`; without one, the names without underscore that are defined there."""
    if isinstance(owner, type):
        return {name for name in dir(owner) if not name.startswith("_")}
    listed = getattr(owner, "__all__", None) or [name for name in dir(owner) if _is_defined_in(owner, name)]
    return {name for name in listed if _is_public(owner, name)}


def _is_public(owner: types.ModuleType, name: str) -> bool:
    return not name.startswith("_") and not isinstance(getattr(owner, name), types.ModuleType)


def _is_defined_in(owner: types.ModuleType, name: str) -> bool:
    value = getattr(owner, name)
    home = getattr(value, "__module__", None) or "torch._C"
    return callable(value) and home.startswith(("torch._C", owner.__name__))


def _is_documented(owner, name: str) -> bool:
    """Return whether a member has a docstring of its own, not only one that pybind11 made; constants count as such."""
    value = vars(owner).get(name, getattr(owner, name))
    if isinstance(owner, types.ModuleType) and not callable(value):
        return True
    text = vars(value).get("__doc__") if isinstance(value, type) else getattr(value, "__doc__", None)
    return isinstance(text, str) and not _GENERATED.fullmatch(text.strip())
