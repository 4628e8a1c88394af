"""Reference implementations of masked selection and writes."""

import itertools

import numpy as np


def selected(x, mask):
    x, mask = np.broadcast_arrays(x, mask)
    return np.array([value for value, wanted in zip(x.flat, mask.flat, strict=True) if wanted])


def scattered(x, mask, source):
    x, mask = np.broadcast_arrays(x, mask)
    out, left = x.copy(), iter(np.ravel(source)) if np.ndim(source) else itertools.repeat(source)
    for place in np.argwhere(mask):
        out[tuple(place)] = next(left)
    return out


def places(x, size, fill_value):
    found = [place for place in np.ndindex(x.shape) if x[place]][:size]
    return np.array(found + [(fill_value,) * x.ndim] * (size - len(found)))


def in_rows(function):
    """Map a function of rows over their leading dimensions."""

    def oracle(*args, **params):
        if args[0].ndim == 1:
            return function(*args, **params)
        return np.stack([oracle(*rows, **params) for rows in zip(*args, strict=True)])

    return oracle


def taken(x, mask, size):
    found = [value for value, wanted in zip(x, mask, strict=True) if wanted]
    return np.array(found + [0.0] * (size - len(found)))


ORACLES = {
    "masked_select": selected,
    "masked_scatter": scattered,
    "nonzero_static": places,
    "put_true": in_rows(scattered),
    "take_true": in_rows(taken),
}

EXEMPT = {
    ("masked_select", "vmap"): "how many are chosen depends on the values, and so the size of the result",
    ("masked_select", "nested"): "it chooses from each component: the result is nested, that of a dense tensor flat",
}
