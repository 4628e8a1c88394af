"""The entries of PyTorch's operator database that have a counterpart here, and the calls of both."""

import dis
import types
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo import core

import retrograd as rg

from .conversion import member, rebind

# Samples look for a test of unittest, which there is none of here, in the source lines of all frames: 0.1 s each time.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "complex128": torch.complex128,
    "int64": torch.int64,
}

# Entries whose values are random or uninitialized memory: everything except values is compared.
RANDOM = {
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential", "geometric",
    "log_normal", "multinomial", "new_empty", "new_empty_strided", "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout.with_train",
    "nn.functional.multi_head_attention_forward", "nn.functional.rrelu",
    "normal", "normal.in_place", "normal.number_mean", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "resize_", "resize_as_", "uniform",
}  # fmt: skip
# Entries that draw their regions, unless a sample specifies them.
DRAWN = {"nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"}
# Entries for which it is undefined which of equal elements they select, and which of these gets the gradient: the
# position of their argument `dim` after the input, None for dimension 0.
FREE_ORDER = {"argsort": 0, "kthvalue": 1, "mode": 0, "msort": None, "sort": 0, "topk": 1}
# Decompositions whose vectors are defined up to a sign or a phase: compared as in PyTorch's gradient tests.
FREE_SIGNS = {"linalg.eig", "linalg.eigh", "linalg.svd", "pca_lowrank", "svd", "svd_lowrank"}


def _slice(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


# Entries of functions with another name here.  None: of sparse tensors, which samples and results are not converted to.
SPELLINGS = {
    "__rdiv__": rg.Tensor.__rtruediv__,
    "slice": _slice,
    **dict.fromkeys(("sparse.mm", "sparse.sampled_addmm", "to_sparse"), None),
}


def draws(name: str, sample: Any) -> bool:
    """Return whether the results for a sample are random."""
    if name in DRAWN:
        return sample.kwargs.get("_random_samples") is None
    return name in RANDOM or sample.kwargs.get("dropout_p", 0.0) > 0.0


def reduced(name: str, sample: Any) -> Any:
    """Return a sample of a few images with few channels in place of many, where PyTorch is slow."""
    if name == "grid_sampler_3d":
        images, (grid, *others) = sample.input, sample.args
        sample.input = images.detach()[:2, :3].clone().requires_grad_(images.requires_grad)
        sample.args = (grid.detach()[:2].clone().requires_grad_(grid.requires_grad), *others)
    return sample


@cache
def entries() -> dict[str, Any]:
    """Return all entries of the database by their full name: `linalg.norm.subgradients_at_zero`."""
    found: dict[str, Any] = {}
    for entry in op_db:
        name = entry.name + (f".{entry.variant_test_name}" if entry.variant_test_name else "")
        while name in found:
            name += "_"
        found[name] = entry
    return found


def counterpart(entry: Any) -> Callable | None:
    """Return our function for an entry; None if there is none for the function that PyTorch's entry calls."""
    if entry.name in SPELLINGS:
        return SPELLINGS[entry.name]
    if isinstance(entry.op, types.FunctionType) and entry.op.__module__.startswith("torch.testing"):
        return rebind(entry.op) if _exists(entry) else None
    paths = (entry.name, f"Tensor.{entry.name}", *(alias.name for alias in entry.aliases))
    path = next((path for path in paths if callable(member(torch, path))), entry.name)
    found = member(rg, path)
    return found if callable(found) else None


def _exists(entry: Any) -> bool:
    """Return whether the functions of `torch` that a function of PyTorch's tests calls exist here."""
    roots = [(torch, rg), (torch.Tensor, rg.Tensor)]
    return all(
        member(rg, path) is not None for path in _paths(entry.op) if path != "ops" and member(torch, path) is not None
    ) and all(member(theirs, entry.name) is None or member(ours, entry.name) is not None for theirs, ours in roots)


def _paths(function: types.FunctionType) -> set[str]:
    """Return the attributes of `torch` that a function uses: {"nn", "nn.functional", "nn.functional.relu"}."""
    found, path = set(), None
    for instruction in dis.get_instructions(function):
        if instruction.opname == "LOAD_GLOBAL" and instruction.argval == "torch":
            path = ""
        elif path is not None and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path = f"{path}.{instruction.argval}".lstrip(".")
            found.add(path)
        else:
            path = None
    return found


def runs() -> Iterator[tuple[str, str]]:
    """Yield every entry that has a counterpart with every dtype that PyTorch supports for it."""
    for name, entry in entries().items():
        if counterpart(entry) is not None:
            for dtype, theirs in DTYPES.items():
                if theirs in entry.dtypes:
                    yield name, dtype
