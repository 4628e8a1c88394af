"""Steps of recurrent networks, whose gates are concatenated along the last dimension."""

import numpy as np

from retrograd import kernels
from retrograd.backend.traced_array import visible

__all__ = ["gru", "gru_grad", "lstm", "lstm_grad"]


def lstm(x, h, c):
    """Return the states h and c after a step; x and h are the parts of the gates i, f, g, o from input and state."""
    return kernels.lstm(*_parts(x, 4), *_parts(h, 4), c)


def lstm_grad(gh, gc, x, h, c):
    """Return the cotangents of the gates (the same for both parts) and of c, from those of both results."""
    gates, before = _empty_like(x), _empty_like(c)
    kernels.lstm_grad(gh, gc, *_parts(x, 4), *_parts(h, 4), c, out=(*_parts(gates, 4), before))
    return gates, before


def gru(x, h, state):
    """Return the state after a step; x and h are the parts of the gates r, z, n from input and state; n uses r h."""
    return kernels.gru(*_parts(x, 3), *_parts(h, 3), state)


def gru_grad(g, x, h, state):
    """Return the cotangents of x, of h and of the previous state, from that of the new state."""
    of_x, of_h, before = _empty_like(x), _empty_like(h), _empty_like(state)
    r, z, new = _parts(of_x, 3)
    kernels.gru_grad(g, *_parts(x, 3), *_parts(h, 3), state, out=(r, z, new, _parts(of_h, 3)[2], before))
    both = 2 * state.shape[-1]
    of_h[..., :both] = of_x[..., :both]
    return of_x, of_h, before


@visible(like=lambda x: np.empty(x.shape, x.dtype), does="nothing")
def _empty_like(x):
    return kernels.empty(x.shape, x.dtype)


def _parts(x, count):
    size = x.shape[-1] // count
    return [x[..., i * size : (i + 1) * size] for i in range(count)]
