"""Gradients of gradients depend on the same inputs as PyTorch's, even if the derivative is zero."""

import warnings

import pytest
import torch

import retrograd as rg
from retrograd.core import registry
from retrograd.testing import run, samples_of

from .test_ops_parity import NAMES, call_torch, cast, differentiated, floats

LINEAR = "it is linear in this input, which no rule reads; PyTorch's formula names it"
BIAS = "the gradient of a bias is a sum of cotangents; PyTorch computes it together with the others"
# (operator, number of the input) -> why its gradient depends on the input in PyTorch alone.
KNOWN = {
    **{(f"{kind}{n}d", 2): BIAS for n in (1, 2, 3) for kind in ("conv", "conv_transpose")},
    **{(name, 2): BIAS for name in ("batch_norm", "instance_norm")},
    **{(name, 0): LINEAR for name in ("batch_norm", "instance_norm")},  # with statistics that are given
}


def dependent(outs, xs, m):
    """Per input whether its gradient requires grad."""
    flowing = [o for o in floats(outs) if o.requires_grad]
    seeds = [m.ones_like(o) for o in flowing]
    found = m.autograd.grad(flowing, xs, seeds, create_graph=True, allow_unused=True) if flowing else [None] * len(xs)
    return [g is not None and g.requires_grad for g in found]


def both(name, args, params, to_torch):
    theirs = to_torch(args)
    xs, ys = differentiated(name, args), differentiated(name, theirs)
    for x in (*xs, *ys):
        x.requires_grad_(True)
    out = call_torch(name, theirs, {k: to_torch(v) for k, v in params.items()})
    return dependent(run(registry[name], args, params), xs, rg), dependent(out, ys, torch)


def missing(name, to_torch):
    """The numbers of the inputs on which the gradient depends in PyTorch alone."""
    found = set()
    for args, params in samples_of(registry[name]):
        ours, theirs = both(name, cast(args, "float64"), params, to_torch)
        found |= {i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if b and not a}
    return found


DIFFERENTIABLE = [n for n in NAMES if registry[n].differentiable or registry[n].composite]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gradients_depend_on_the_inputs_on_which_they_do_in_pytorch(to_torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {(name, i) for name in DIFFERENTIABLE for i in missing(name, to_torch)}
    assert found == set(KNOWN)
