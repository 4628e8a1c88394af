"""Half precision: no operator is less accurate than PyTorch's, which computes many in single precision."""

import warnings

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd.core import registry
from retrograd.core.dtype import as_dtype
from retrograd.testing import run, samples_of

from .test_ops_parity import NAMES, call_torch, differentiated, floats

EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
LARGEST = {"float16": 60000.0, "bfloat16": 1e38}
SCALES = (1.0, 100.0, 1000.0)  # squares of the larger overflow
DIGITS = 8  # how many units in the last digit of the largest entry are too many, if PyTorch has not as many

# Operators: why they may be less exact than PyTorch.
WORSE = {
    "gradient": "coordinates in float32 make the slopes float32, by promotion; PyTorch rounds them to float16",
}


def scaled(args, scale, half, dtype):
    """Return the floating tensors of a sample times a factor, rounded to half precision, in another dtype."""
    return tuple(
        rg.tensor((a.numpy() * scale).astype(as_dtype(half)).astype(as_dtype(dtype)))
        if isinstance(a, rg.Tensor) and a.dtype.kind == "f"
        else a
        for a in args
    )


def cotangent(shape, dtype):
    """Return the same values for every dtype: those of half precision."""
    return np.random.default_rng(0).uniform(-1, 1, shape).astype("float16").astype(as_dtype("bfloat16")).astype(dtype)


def ours(name, args, params):
    """Return the results, and the gradients of their sum with weights."""
    op, xs = registry[name], differentiated(name, args)
    if op.differentiable or op.composite:
        for x in xs:
            x.requires_grad_()
    outs = run(op, args, params)
    flowing = [o for o in floats(outs) if o.requires_grad]
    weights = [rg.tensor(cotangent(o.shape, o.dtype)) for o in flowing]
    return outs, rg.autograd.grad(flowing, xs, weights, allow_unused=True) if flowing else []


def theirs(name, args, params):
    """Return the same for PyTorch."""
    xs = differentiated(name, args)
    for x in xs:
        x.requires_grad_()
    outs = call_torch(name, args, params)
    flowing = [o for o in floats(outs) if o.requires_grad]
    weights = [torch.tensor(cotangent(tuple(o.shape), "float64")).to(o.dtype) for o in flowing]
    return outs, torch.autograd.grad(flowing, xs, weights, allow_unused=True) if flowing else []


def arrays(results):
    """Return the dtypes and values of results and gradients."""
    return [_array(t) for part in results for t in part if isinstance(t, (rg.Tensor, torch.Tensor)) or t is None]


def _array(t):
    """Return the dtype's name, and the values in double precision if they are real."""
    if t is None:
        return None, None
    values = t.detach().double().numpy() if t.is_floating_point() else t.detach().numpy()
    return str(t.dtype).removeprefix("torch."), values


def error(half, found, exact):
    """Return the error in units of the last digit of the largest entry; values beyond half precision are skipped."""
    if found is None or exact is None or exact.dtype.kind != "f" or found.shape != exact.shape:
        return 0.0
    held = np.abs(exact) < LARGEST[half]
    if not held.any():
        return 0.0
    largest = max(np.abs(exact[held]).max(), 1e-4)
    distance = np.abs(found[held].astype("float64") - exact[held]).max() / largest / EPS[half]
    return np.inf if np.isnan(distance) else distance


def errors(name, args, params, scale, half, to_torch):
    """Return per result and gradient the errors of both; none where one of the two refuses half precision."""
    try:
        exact = ours(name, scaled(args, scale, half, "float64"), params)
        mine = ours(name, scaled(args, scale, half, half), params)
        halves = to_half(scaled(args, scale, half, "float32"), half, to_torch)
        its = theirs(name, halves, {k: to_torch(v) for k, v in params.items()})
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return []
    return [
        (error(half, m, e), error(half, i, e), None in (kind, other) or kind == other)
        for (kind, m), (other, i), (_, e) in zip(arrays(mine), arrays(its), arrays(exact), strict=False)
    ]


def to_half(args, half, to_torch):
    """Return PyTorch's arguments, with float32 tensors in half precision."""
    found = to_torch(args)
    single = [isinstance(a, torch.Tensor) and a.dtype == torch.float32 for a in found]
    return tuple(a.to(getattr(torch, half)) if s else a for a, s in zip(found, single, strict=True))


def losses(name, half, to_torch):
    """Yield the scale, the result, our error and PyTorch's, where ours is the larger; or the dtypes differ."""
    for args, params in samples_of(registry[name]):
        if not any(isinstance(a, rg.Tensor) and a.dtype.kind == "f" for a in args):
            continue
        for scale in SCALES:
            for place, (mine, its, same) in enumerate(errors(name, args, params, scale, half, to_torch)):
                if not same or mine > max(DIGITS, 2 * its):
                    yield scale, place, mine, its


@pytest.mark.parametrize("half", EPS)
@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_as_exact_as_in_pytorch(name, half, to_torch):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = list(losses(name, half, to_torch))
    if name in WORSE:
        assert found, f"{name}: delete it in WORSE"
    else:
        assert not found, f"{name}: (scale, result, our error, PyTorch's): {found[:5]}"
