"""What is done where masks are true."""

import numpy as np


def selected(x, mask):
    x, mask = np.broadcast_arrays(x, mask)
    return np.array([value for value, wanted in zip(x.flat, mask.flat, strict=True) if wanted])


def scattered(x, mask, source):
    x, mask = np.broadcast_arrays(x, mask)
    out, left = x.copy(), iter(source.ravel())
    for place in np.argwhere(mask):
        out[tuple(place)] = next(left)
    return out


def places(x, size, fill_value):
    found = [place for place in np.ndindex(x.shape) if x[place]][:size]
    return np.array(found + [(fill_value,) * x.ndim] * (size - len(found)))


ORACLES = {
    "masked_select": selected,
    "masked_scatter": scattered,
    "nonzero_static": places,
}
