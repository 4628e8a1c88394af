"""Reference implementations of masked selection and writes."""

import itertools

import numpy as np


def masked_scatter(x, mask, source):
    x, mask = np.broadcast_arrays(x, mask)
    out, left = x.copy(), iter(np.ravel(source)) if np.ndim(source) else itertools.repeat(source)
    for place in np.argwhere(mask):
        out[tuple(place)] = next(left)
    return out


def map_rows(function):
    """Map a function of rows over their leading dimensions."""

    def oracle(*args, **params):
        if args[0].ndim == 1:
            return function(*args, **params)
        return np.stack([oracle(*rows, **params) for rows in zip(*args, strict=True)])

    return oracle


def take_masked(x, mask, size):
    found = [value for value, wanted in zip(x, mask, strict=True) if wanted]
    return np.array(found + [0.0] * (size - len(found)))


masked_put = map_rows(masked_scatter)


masked_take = map_rows(take_masked)
