"""Reference implementations of splitting."""

import numpy as np

from .basics import sections


def between(x, places, dim):
    return np.array_split(x, places, axis=dim)


def chunks(x, chunks, dim):
    return sections(x, -(-x.shape[dim] // chunks), dim)


ORACLES = {
    "split_views": lambda x, sizes, dim: list(np.moveaxis(x, dim, 0)) if sizes is None else sections(x, sizes, dim),
    "split_with_sizes": lambda x, split_sizes, dim: sections(x, split_sizes, dim),
    "unsafe_split_with_sizes": lambda x, split_sizes, dim: sections(x, split_sizes, dim),
    "unsafe_split": lambda x, split_size, dim: sections(x, split_size, dim),
    "unsafe_chunk": chunks,
    "tensor_split": lambda x, indices_or_sections, dim: between(x, indices_or_sections, dim),
}
