"""Operators on special values: the grid, both libraries on it, and where they differ."""

import warnings
from itertools import pairwise

import numpy as np
import torch

import retrograd as rg
from retrograd.core import registry
from retrograd.ops.family import Pointwise
from retrograd.testing import run, samples_of

from .test_ops_parity import call_torch, differentiated, floats

# The largest relative difference between equal results.  A float16 result is a rounded float32 one.
TOLERANCE = {"float16": 3e-3, "float32": 1e-5, "float64": 1e-10, "complex64": 1e-4, "complex128": 1e-9}


def grid(dtype, operands=1):
    """Return the special values of a real dtype, fewer where several operands are combined."""
    f = np.finfo(dtype)
    sizes = {
        1: [
            0.0, f.smallest_subnormal, 4 * f.smallest_subnormal, f.smallest_normal, 4 * f.smallest_normal,
            float(f.smallest_normal) ** 0.5, f.eps, 1e-3, 0.25, 1 / np.e, 0.5, np.pi / 4, 1 - f.epsneg, 1.0, 1 + f.eps,
            1.5, np.pi / 2, 2.0, 2.5, 3.0, np.pi, 2 * np.pi, 10.0, 20.5, 33.5, 88.0, 100.0, 170.5, 1e3, 4e4, 1e5, 1e8,
            1e15, float(f.max) ** 0.5, float(f.max) / 2, f.max, np.inf,
        ],
        2: [
            0.0, f.smallest_subnormal, f.smallest_normal, f.eps, 0.5, 1 - f.epsneg, 1.0, 1 + f.eps, 1.5, 2.0, 3.0,
            np.pi, 20.5, 100.0, 4e4, float(f.max) ** 0.5, f.max, np.inf,
        ],
        3: [0.0, f.smallest_subnormal, 0.5, 1.0, 3.0, f.max, np.inf],
    }[min(operands, 3)]  # fmt: skip
    with np.errstate(over="ignore"):
        positive = np.unique(np.array(sizes, dtype))
    return np.concatenate([positive, -positive, [np.nan]]).astype(dtype)


def complex_grid(dtype):
    """Return values with special real and imaginary parts."""
    real = np.dtype(dtype).type(0).real.dtype
    parts = np.array([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, np.inf, -np.inf, np.nan], real)
    out = np.empty((parts.size, parts.size), dtype)
    out.real, out.imag = parts[:, None], parts
    return out.reshape(-1)


def is_pointwise(op):
    """Return whether each element of the result depends on operands at its index; composites are tried on samples."""
    definition = op.definition
    if issubclass(definition, Pointwise):
        return True
    if not op.composite or op.random:
        return False
    try:
        return all(_acts_on_parts(op, args, params) for args, params in samples_of(op))
    except (TypeError, ValueError, RuntimeError, IndexError):
        return False


def _acts_on_parts(op, args, params):
    if not all(a is None or isinstance(a, rg.Tensor | int | float) for a in args):
        return False
    tensors = [a for a in args if isinstance(a, rg.Tensor)]
    outs = run(op, args, params)
    if not tensors or len(outs) != 1 or outs[0].shape != np.broadcast_shapes(*[t.shape for t in tensors]):
        return False
    flat = [_flattened(a, outs[0].shape) for a in args]
    whole = run(op, flat, params)[0].detach().numpy()
    cuts = (slice(i, j) for i, j in pairwise((0, 1, len(whole))))
    return all(_same(run(op, [_part(a, cut) for a in flat], params)[0], whole[cut]) for cut in cuts if whole[cut].size)


def _flattened(a, shape):
    return rg.tensor(np.broadcast_to(a.numpy(), shape).reshape(-1)) if isinstance(a, rg.Tensor) else a


def _part(a, cut):
    return a[cut] if isinstance(a, rg.Tensor) else a


def _same(found, expected):
    return np.allclose(found.detach().numpy(), expected, equal_nan=True)


def cases(name, dtype):
    """Yield the operator's arguments over the whole grid, for each kind of sample: (args, params)."""
    found = set()
    for args, params in samples_of(registry[name]):
        kind = str([str(a.dtype) if isinstance(a, rg.Tensor) else a for a in args]) + str(params)
        changed = any(isinstance(a, rg.Tensor) and a.dtype.kind == "f" for a in args)
        if changed and kind not in found:
            found.add(kind)
            yield _on_grid(args, dtype), params


def _on_grid(args, dtype):
    places = [i for i, a in enumerate(args) if isinstance(a, rg.Tensor)]
    axes = [_axis(args[i], dtype, len(places)) for i in places]
    mesh = np.meshgrid(*axes, indexing="ij")
    new = dict(zip(places, [rg.tensor(np.ascontiguousarray(m.reshape(-1))) for m in mesh], strict=True))
    return tuple(new.get(i, a) for i, a in enumerate(args))


def _axis(a, dtype, operands):
    if a.dtype.kind != "f":
        return np.unique(a.numpy())
    return complex_grid(dtype) if dtype.startswith("complex") else grid(dtype, operands)


def both(name, args, params, to_torch):
    """Return value and gradients of ours and of PyTorch: {"value 0" or "gradient <operand>": pair}."""
    theirs = to_torch(args)
    xs, ys = differentiated(name, args), differentiated(name, theirs)
    op = registry[name]
    if op.differentiable or op.composite:
        for x in (*xs, *ys):
            x.requires_grad_()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        mine = run(op, args, params)
        its = call_torch(name, theirs, {k: to_torch(v) for k, v in params.items()})
        found = {f"value {i}": (_array(m), _array(t)) for i, (m, t) in enumerate(zip(mine, its, strict=True))}
        gradients = zip(_gradients(mine, xs, rg), _gradients(its, ys, torch), strict=True)
        numbers = [next(i for i, a in enumerate(args) if a is x) for x in xs]
        return found | {f"gradient {i}": pair for i, pair in zip(numbers, gradients, strict=True)}


def _gradients(outs, xs, library):
    flowing = [o for o in floats(outs) if o.requires_grad]
    if not flowing:
        return [np.zeros(tuple(x.shape)) for x in xs]
    ones = [library.ones_like(o) for o in flowing]
    found = library.autograd.grad(flowing, xs, ones, allow_unused=True)
    return [np.zeros(tuple(x.shape)) if g is None else _array(g) for g, x in zip(found, xs, strict=True)]


def _array(t):
    return t.numpy(force=True) if isinstance(t, torch.Tensor) else t.detach().numpy()


def different(aspect, mine, its, dtype):
    """Return where two results differ: in NaN, infinities, signs of zeros (of values), or by more than rounding."""
    if mine.dtype.kind in "biu":
        return mine != its
    if mine.dtype.kind == "c":
        return _different_parts(mine, its, dtype)
    least = np.finfo(mine.dtype).smallest_subnormal if mine.dtype == its.dtype else 0
    with np.errstate(all="ignore"):
        a, b = mine.astype(np.longdouble), its.astype(np.longdouble)
        near = np.abs(a - b) <= TOLERANCE[dtype] * np.abs(b) + 4 * np.longdouble(least)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (near & (np.isinf(a) == np.isinf(b)))
        if aspect.startswith("value"):
            same &= (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))
    return ~same


def _different_parts(mine, its, dtype):
    """Compare complex results: equal if both are NaN in some part, or infinite, or close."""
    with np.errstate(all="ignore"):
        near = np.abs(mine - its) <= TOLERANCE[dtype] * np.maximum(np.abs(its), 1e-3)
        lost = np.isnan(mine) & np.isnan(its)
        infinite = np.isinf(mine) & np.isinf(its)
    return ~(near | lost | infinite)
