"""Reference implementations of recurrent cells, gate by gate; derivatives by complex steps."""

import numpy as np

from retrograd.testing.references.common import sigmoid


def lstm_step(x, h, c):
    i, f, g, o = np.split(x + h, 4, -1)
    after = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(after), after


def gru_step(x, h, state):
    (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, -1), np.split(h, 3, -1)
    z, n = sigmoid(xz + hz), np.tanh(xn + sigmoid(xr + hr) * hn)
    return ((1 - z) * n + z * state,)


def slopes(step, gs, tensors):
    """Return the cotangents of all tensors: a step of 1e-20 along the imaginary axis has negligible rounding error."""
    found = []
    for at, x in enumerate(tensors):
        out = np.empty_like(x)
        for place in np.ndindex(x.shape):
            moved = [t.astype(complex) for t in tensors]
            moved[at][place] += 1e-20j
            out[place] = sum((g * y.imag).sum() for g, y in zip(gs, step(*moved), strict=True)) / 1e-20
        found.append(out)
    return found


def lstm_step_grad(gh, gc, x, h, c):
    gates, _, before = slopes(lstm_step, (gh, gc), (x, h, c))
    return gates, before


def gru_step_grad(g, *tensors):
    return slopes(gru_step, (g,), tensors)
