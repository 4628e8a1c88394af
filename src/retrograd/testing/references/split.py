"""Reference implementations of splitting."""

import numpy as np


def split(x, split_size_or_sections, dim):
    sizes = split_size_or_sections
    if isinstance(sizes, int):
        return np.split(x, range(sizes, x.shape[dim], sizes), axis=dim)
    return np.split(x, np.cumsum(sizes)[:-1], axis=dim)


def split_at(x, places, dim):
    return np.array_split(x, places, axis=dim)


def chunks(x, chunks, dim):
    return split(x, -(-x.shape[dim] // chunks), dim)


def split_views(x, sizes, dim):
    return list(np.moveaxis(x, dim, 0)) if sizes is None else split(x, sizes, dim)


def split_with_sizes(x, split_sizes, dim):
    return split(x, split_sizes, dim)


def unsafe_split_with_sizes(x, split_sizes, dim):
    return split(x, split_sizes, dim)


def unsafe_split(x, split_size, dim):
    return split(x, split_size, dim)


def tensor_split(x, indices_or_sections, dim):
    return split_at(x, indices_or_sections, dim)
