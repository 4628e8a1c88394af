"""Random index expressions, read and written, give the values, gradients and errors of PyTorch."""

import numpy as np
import pytest
import torch

import retrograd as rg

KINDS = ("int", "slice", "none", "ellipsis", "indices", "list", "mask", "number", "bool")
INDEX_SHAPES = ((2,), (2,), (1,), (2, 2), (2, 1))


def random_part(rng, kind, size):
    """Return one part of a key for a dimension of some size, with an array in place of a tensor."""
    if kind == "int":
        return int(rng.integers(-size, size))
    if kind == "slice":
        bounds = [None if rng.random() < 0.4 else int(rng.integers(-size - 1, size + 2)) for _ in range(2)]
        return slice(*bounds, int(rng.integers(1, 3)))
    if kind == "indices":
        return rng.integers(-size, size, INDEX_SHAPES[rng.integers(len(INDEX_SHAPES))])
    if kind == "list":
        return [int(i) for i in rng.integers(-size, size, 2)]
    if kind == "mask":
        return rng.random(size) < 0.5
    if kind == "number":
        return np.array(int(rng.integers(size)))
    return {"none": None, "ellipsis": Ellipsis, "bool": bool(rng.random() < 0.8)}[kind]


def random_key(rng, shape):
    """Return a key for a tensor of that shape: a tuple, a list of parts, or a single part."""
    parts, dim, ellipses = [], 0, 0
    for _ in range(int(rng.integers(1, 6))):
        kind = KINDS[rng.choice(len(KINDS), p=[0.2, 0.24, 0.08, 0.06, 0.2, 0.08, 0.07, 0.05, 0.02])]
        if kind == "ellipsis" and ellipses:
            continue
        ellipses += kind == "ellipsis"
        size = shape[min(dim, len(shape) - 1)] if not ellipses else min(shape)
        parts.append(random_part(rng, kind, size))
        dim += kind not in ("none", "ellipsis", "bool")
    if len(parts) == 1 and rng.random() < 0.5:
        return parts[0]
    return list(parts) if rng.random() < 0.15 else tuple(parts)


def of(library, key):
    """Return a key with its arrays as tensors of a library."""
    if isinstance(key, (tuple, list)):
        return type(key)(of(library, k) for k in key)
    return library.tensor(key) if isinstance(key, np.ndarray) else key


def read(library, array, key):
    """Return x[key], and the gradient of its product with weights, or the class of error it raises."""
    x = library.tensor(array, requires_grad=True)
    try:
        out = x[of(library, key)]
    except (IndexError, TypeError, ValueError, RuntimeError):
        return "refused"
    weights = library.tensor(np.arange(1.0, out.numel() + 1).reshape(tuple(out.shape)))
    (g,) = library.autograd.grad((out * weights).sum(), x)
    return tuple(out.shape), out.detach().numpy().tolist(), g.numpy().tolist(), bool(out.is_contiguous())


def write(library, array, key, value):
    """Return x after x[key] = value, and the gradients of both, or "refused"."""
    leaf = library.tensor(array, requires_grad=True)
    x, values = leaf * 1.0, library.tensor(value, requires_grad=True)
    try:
        x[of(library, key)] = values
    except (IndexError, TypeError, ValueError, RuntimeError):
        return "refused"
    weights = library.tensor(np.arange(1.0, array.size + 1).reshape(array.shape))
    grads = library.autograd.grad((x * weights).sum(), (leaf, values), materialize_grads=True)
    return x.detach().numpy().tolist(), [g.numpy().tolist() for g in grads]


def repeated(array, key):
    """Return whether a key selects an element twice: PyTorch leaves open which of several values is written."""
    numbers = rg.tensor(np.arange(array.size).reshape(array.shape))
    try:
        named = numbers[of(rg, key)].numpy().ravel()
    except (IndexError, TypeError, ValueError, RuntimeError):
        return False
    return len(set(named.tolist())) < named.size


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(12))
def test_reading_and_writing_at_random_keys_is_as_in_pytorch(seed):
    rng = np.random.default_rng(seed)
    for _ in range(150):
        shape = tuple(int(s) for s in rng.integers(2, 5, rng.integers(1, 5)))
        array, key = rng.normal(size=shape), random_key(rng, shape)
        theirs, ours = read(torch, array, key), read(rg, array, key)
        assert ours[:3] == theirs[:3], f"x of shape {shape}, x[{key}]"
        assert ours == "refused" or ours[3] >= theirs[3], f"x of shape {shape}, x[{key}] is contiguous in PyTorch"
        value = rng.normal(size=theirs[0] if theirs != "refused" and rng.random() < 0.7 else ())
        if not repeated(array, key):
            assert write(rg, array, key, value) == write(torch, array, key, value), (
                f"x of shape {shape}, x[{key}] = ..."
            )
