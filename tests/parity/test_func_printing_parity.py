"""Tensors inside transforms are printed as by PyTorch; batches have their examples along dimension 0."""

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
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_tensor_inside_is_printed_with_its_levels_and_values(name):
    shown = []
    for lib, f in ((rg, rg.func), (torch, torch.func)):
        x = lib.ones(2, 3)
        TRANSFORMS[name](f, lambda x: shown.append(repr(x)) or x.sum())(x)
    assert shown[0] == shown[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_tensor_that_is_the_same_for_all_examples_is_printed_by_itself():
    shown = []
    for lib in (rg, torch):
        shared = lib.ones(3)
        lib.func.vmap(lambda x, s: shown.append(repr(s)) or x, (0, None))(lib.ones(2), shared)
    assert shown[0] == shown[1]
