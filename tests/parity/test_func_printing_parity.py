"""Tensors inside transforms are printed as by PyTorch, with the batch dimensions of the caller."""

import pytest
import torch

import retrograd as rg

TRANSFORMS = {
    "vmap": lambda f, run: f.vmap(run),
    "grad": lambda f, run: f.grad(run),
    "jvp": lambda f, run: lambda x: f.jvp(run, (x,), (x,)),
    "vmap of grad": lambda f, run: f.vmap(f.grad(run)),
    "grad of vmap": lambda f, run: f.grad(lambda x: f.vmap(run)(x).sum()),
    "vmap of vmap": lambda f, run: f.vmap(f.vmap(run)),
    "vmap over dimension 1": lambda f, run: f.vmap(run, in_dims=1),
    "vmap over the last dimension": lambda f, run: f.vmap(run, in_dims=-1),
    "vmap over dimension 1 of grad": lambda f, run: f.vmap(f.grad(run), in_dims=1),
    "jvp of vmap over dimension 1": lambda f, run: lambda x: f.jvp(f.vmap(run, in_dims=1), (x,), (x,)),
    "vmap over dimension 1 of vmap": lambda f, run: f.vmap(f.vmap(run), in_dims=1),
    "chunks of vmap over dimension 1": lambda f, run: f.vmap(run, in_dims=1, chunk_size=2),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_tensor_inside_is_printed_with_its_levels_and_values(name):
    shown = []
    for lib, f in ((rg, rg.func), (torch, torch.func)):
        x = lib.ones(2, 3)
        TRANSFORMS[name](f, lambda x: shown.append(repr(x)) or x.sum())(x)
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("recurse", [True, False])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_debug_unwrap_returns_the_tensor_that_the_caller_of_vmap_gave(name, recurse):
    shown = []
    for lib, f in ((rg, rg.func), (torch, torch.func)):
        x = lib.arange(6.0).reshape(2, 3)
        TRANSFORMS[name](f, lambda x: shown.append(repr(f.debug_unwrap(x, recurse=recurse))) or x.sum())(x)  # noqa: B023
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_tensor_that_is_the_same_for_all_examples_is_printed_by_itself():
    shown = []
    for lib in (rg, torch):
        shared = lib.ones(3)
        lib.func.vmap(lambda x, s: shown.append(repr(s)) or x, (0, None))(lib.ones(2), shared)
    assert shown[0] == shown[1]
