"""Functions and methods that return views of their argument in PyTorch do so here: a write to the result shows it."""

import warnings

import pytest
import torch

import retrograd as rg

from .operator_database.sides import seed_libraries

INPUTS = {
    "matrix": lambda m: m.arange(6.0).reshape(2, 3),
    "turned": lambda m: m.arange(6.0).reshape(2, 3).transpose(0, 1),
    "number": lambda m: m.tensor(3.0),
    "with ones": lambda m: m.arange(4.0).reshape(2, 1, 2),
    "complex": lambda m: m.tensor([[1 + 2j, 2 - 1j], [0j, 3 + 1j]], dtype=m.complex64),
    "every other": lambda m: m.arange(8.0).reshape(2, 4)[:, ::2],
    "expanded": lambda m: m.arange(2.0).reshape(2, 1).expand(2, 3),
}
ARGUMENTS = [
    lambda m, x: (),
    lambda m, x: (0,),
    lambda m, x: (1,),
    lambda m, x: (1, 0),
    lambda m, x: (1, 0, 1),
    lambda m, x: (-1, 1),
    lambda m, x: (m.float32,),
    lambda m, x: (x,),
    lambda m, x: ([0],),
]
NAMESPACES = ["", "nn.functional", "linalg", "special", "fft"]
SKIPPED = (
    "save load compile seed manual_seed set_default_dtype set_printoptions set_num_threads set_grad_enabled "
    "set_default_device backward register_hook numpy tolist data_ptr storage untyped_storage item retain_grad "
    "register_post_accumulate_grad_hook from_dlpack hash_tensor"  # a uint64, which PyTorch cannot write to
)
SKIPPED = set(SKIPPED.split())
METHODS = sorted(
    n for n in set(dir(torch.Tensor)) & set(dir(rg.Tensor)) if not n.endswith("_") and n not in SKIPPED and n[0] != "_"
)


def place(m, path):
    for name in filter(None, path.split(".")):
        m = getattr(m, name)
    return m


def functions(path):
    theirs, ours = place(torch, path), place(rg, path)
    names = sorted(set(dir(theirs)) & set(dir(ours)) - SKIPPED)
    return [n for n in names if n[0] != "_" and not n.endswith("_") and _is_function(getattr(ours, n), theirs, n)]


def _is_function(mine, theirs, name):
    return callable(mine) and not isinstance(mine, type) and not isinstance(getattr(theirs, name), type)


FUNCTIONS = [(path, name) for path in NAMESPACES for name in functions(path)]


def leaves(found, m):
    if isinstance(found, m.Tensor):
        return [found]
    return [leaf for part in found for leaf in leaves(part, m)] if isinstance(found, (tuple, list)) else []


def effects(m, call, make, arguments):
    """Return the effects of writes to the first results on the argument: "reached", "lost" or "refused"; or None."""
    seed_libraries()
    x = make(m)
    try:
        found = leaves(call(x, *arguments(m, x)), m)
    except Exception:
        return None
    return [_effect(m, x, leaf) for leaf in found[:3]] or None


def _effect(m, x, leaf):
    before = x.detach().clone()
    try:
        with m.no_grad():
            leaf.logical_not_() if leaf.dtype == m.bool else leaf.add_(1)
    except RuntimeError:
        return "refused"
    return "lost" if leaf.numel() and bool((x.detach() == before).all()) else "reached"


def check(call):
    """Check that a write of ours reaches the argument if and only if PyTorch's does; or that it is refused."""
    compared = 0
    for kind, make in INPUTS.items():
        for number, arguments in enumerate(ARGUMENTS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = effects(torch, call(torch), make, arguments)
                ours = theirs and effects(rg, call(rg), make, arguments)
            if ours:
                compared += 1
                assert all(a in (b, "refused") for a, b in zip(ours, theirs, strict=False)), (
                    kind,
                    number,
                    ours,
                    theirs,
                )
    return compared


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    static = not callable(getattr(torch.Tensor, name))
    check(lambda m: lambda x, *args: getattr(x, name) if static else getattr(x, name)(*args))


@pytest.mark.parametrize(("path", "name"), FUNCTIONS, ids=".".join)
def test_functions(path, name):
    check(lambda m: lambda x, *args: getattr(place(m, path), name)(x, *args))


def test_many_are_compared():
    assert check(lambda m: lambda x, *args: m.transpose(x, *args)) > 5
    with pytest.raises(AssertionError):
        check(lambda m: lambda x, *args: m.reshape(x, (-1,)) if m is torch else x.clone().reshape(-1))
