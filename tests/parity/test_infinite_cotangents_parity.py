"""Gradients of infinite cotangents: where PyTorch's is 0, so is ours.

A rule that multiplies the cotangent by a derivative of 0 gives NaN; one that selects gives 0.
"""

import warnings
from contextlib import suppress

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd.core import registry
from retrograd.testing import run, samples_of

from .conftest import plain
from .test_ops_parity import NAMES, call_torch, cast, differentiated, edge_cases, floats

# operator: why our gradient is NaN where PyTorch's is 0
KNOWN = {
    "grid_sample": "outside of the image the gradient of a weight is that of the result times the 0 found there",
    "sinc": "g times the derivative, 0 at x = 0: to select would lose the second derivative, which is not 0 there",
}


def infinite(shape, seed):
    """Return a cotangent of which one element is infinite, or one inf and one -inf."""
    g = np.random.default_rng(seed).normal(size=shape)
    flat = g.reshape(-1)
    if flat.size:
        flat[-1], flat[0] = -np.inf, np.inf
    return g


def gradients(library, outs, xs):
    outs = [out for out in floats(outs) if out.requires_grad]
    cotangents = [
        library.as_tensor(infinite(tuple(out.shape), i)).to(out.dtype) for i, out in enumerate(outs) if out.numel()
    ]
    outs = [out for out in outs if out.numel()]
    if not outs:
        return []
    found = library.autograd.grad(outs, xs, cotangents, allow_unused=True)
    return [None if g is None else plain(g)[1] for g in found]


def lost_gradients(name, args, params, to_torch):
    """Yield for each differentiated input where our gradient is NaN and PyTorch's is 0."""
    theirs = to_torch(args)
    xs, ys = differentiated(name, args), differentiated(name, theirs)
    for x in (*xs, *ys):
        x.requires_grad_()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        mine = gradients(rg, run(registry[name], args, params), xs)
        its = gradients(torch, call_torch(name, theirs, {k: to_torch(v) for k, v in params.items()}), ys)
    for m, t in zip(mine, its or [None] * len(mine), strict=True):  # PyTorch may have no derivative
        if m is not None and t is not None:
            yield np.isnan(m) & (t == 0)


def samples(name):
    """Yield inputs of an operator: its samples, and pairs of special values."""
    yield from ((cast(args, "float64"), params) for args, params in samples_of(registry[name]))
    for args, params in edge_cases(name, "special", "float64"):
        yield tuple(_finite(a) for a in args), params


def _finite(a):
    """Replace NaN and infinities by finite numbers."""
    return rg.nan_to_num(a, 3.0, 4.0, -4.0) if isinstance(a, rg.Tensor) and a.dtype.kind == "f" else a


@pytest.mark.parametrize("name", [n for n in NAMES if registry[n].differentiable or registry[n].composite])
def test_gradient_is_0_where_pytorchs_is(name, to_torch):
    found = 0
    for args, params in samples(name):
        with suppress(TypeError, RuntimeError, ValueError):  # special numbers may be refused, by either
            found += sum(where.sum() for where in lost_gradients(name, args, params, to_torch))
    assert bool(found) == (name in KNOWN)
