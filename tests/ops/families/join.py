"""Reference implementations of joining and repeating."""

import itertools

import numpy as np


def concatenated(*tensors, dim):
    """Concatenate; operands of shape (0,) are skipped."""
    return np.concatenate([t for t in tensors if t.shape != (0,)], axis=dim)


def blocks(*tensors):
    tensors = [np.atleast_2d(t) for t in tensors]
    out = np.zeros(np.sum([t.shape for t in tensors], axis=0))
    row = column = 0
    for t in tensors:
        out[row : row + len(t), column : column + t.shape[1]] = t
        row, column = row + len(t), column + t.shape[1]
    return out


def repeated(x, repeats, dim, output_size):
    if repeats is None:
        return np.array([i for i, n in enumerate(x) for _ in range(n)])
    return np.repeat(x, repeats, axis=dim)


def combined(x, r, with_replacement):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x, r))) if r else np.zeros(0)


ORACLES = {
    "cat": concatenated,
    "atleast_1d": np.atleast_1d,
    "atleast_2d": np.atleast_2d,
    "atleast_3d": np.atleast_3d,
    "hstack": lambda *tensors: np.hstack(tensors),
    "vstack": lambda *tensors: np.vstack(tensors),
    "dstack": lambda *tensors: np.dstack(tensors),
    "column_stack": lambda *tensors: np.hstack([t if t.ndim > 1 else np.reshape(t, (-1, 1)) for t in tensors]),
    "block_diag": blocks,
    "tile": lambda x, dims: np.tile(x, dims),
    "repeat_places": lambda repeats, output_size: (
        repeated(repeats, None, 0, None)
        if repeats.ndim == 1
        else np.stack([repeated(row, None, 0, None) for row in repeats])
    ),
    "repeat_interleave": repeated,
    "meshgrid": lambda *tensors, indexing: np.meshgrid(*tensors, indexing=indexing),
    "cartesian_prod": lambda *tensors: tensors[0] if len(tensors) == 1 else np.array([*itertools.product(*tensors)]),
    "combination_places": lambda n, r, with_replacement: combined(range(n), r, with_replacement),
    "combinations": combined,
}

EXEMPT = {
    ("repeat_places", law): "how many there are depends on the values, so there is no shape rule"
    for law in ("shape", "float32", "integers", "empty", "vmap", "nested")
} | {
    ("repeat_interleave", "vmap"): "without output_size the size of the result depends on the values",
    **{
        ("split_views", law): "`split` and its like make views of its results" for law in ("views", "writes", "complex")
    },
}
