"""Reference implementations of recurrent cells and layers, gate by gate; derivatives by complex steps."""

import math

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


# ------------------------------------------------------------------------------------------------------- layers


def _rnn(function):
    def step(x, z, h, c):
        return function(x + z), None, None, None

    return step


def _lstm(x, z, h, c):
    i, f, g, o = np.split(x + z, 4, -1)
    gates = np.concatenate([sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)], -1)
    h, c = lstm_step(x, z, c)
    return h, c, gates, c


def _gru(x, z, h, c):
    (xr, xz, xn), (zr, zz, zn) = np.split(x, 3, -1), np.split(z, 3, -1)
    r = sigmoid(xr + zr)
    return *gru_step(x, z, h), None, np.concatenate([r, sigmoid(xz + zz), np.tanh(xn + r * zn)], -1), zn


def _relu(x):
    return np.where(x.real > 0, x, 0)


_STEPS = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn(np.tanh), "rnn_relu": _rnn(_relu)}


def _run(cell, tensors, sizes, reverse, terms, hidden):
    """Return the states after each row, the last states, gates and further values; `terms` and `hidden` are added."""
    x, weight_ih, weight_hh, h, *rest = tensors
    c = rest.pop(0) if cell == "lstm" else None
    bias_ih, bias_hh = rest or (0, 0)
    sizes = [x.shape[1]] * len(x) if sizes is None else sizes
    rows = x.reshape(len(terms), x.shape[-1]) @ weight_ih.T + bias_ih + terms
    found = [None] * len(sizes)
    for t in range(len(sizes))[:: -1 if reverse else 1]:
        n, start = sizes[t], sum(sizes[:t])
        z = h[:n] @ weight_hh.T + bias_hh + (hidden[start : start + n] if np.ndim(hidden) else hidden)
        before = None if c is None else c[:n]
        new, new_c, *saved = _STEPS[cell](rows[start : start + n], z, h[:n], before)
        h = np.concatenate([new, h[n:]])
        c = None if c is None else np.concatenate([new_c, c[n:]])
        found[t] = (new, *saved)
    out, *saved = ([row for row in rows if row is not None] for rows in zip(*found, strict=True))
    out = np.concatenate(out).reshape(*x.shape[:-1], h.shape[-1])
    return out, *[s for s in (h, c) if s is not None], *[np.concatenate(rows) for rows in saved if rows]


def _layer(cell):
    def layer(*tensors, sizes, reverse):
        x, weight_ih, *_ = tensors
        terms = np.zeros((math.prod(x.shape[:-1]), len(weight_ih)))
        return _run(cell, tensors, sizes, reverse, terms, terms)

    return layer


def _layer_backward(cell, states, saved):
    """Return the derivatives along each element of both terms of the gates and of the first states."""

    def backward(*tensors, sizes, reverse):
        gs, layer = tensors[: 1 + states], tensors[2 + states + saved :]
        x, weight_ih, weight_hh, *first = layer
        first, biases = first[:states], first[states:]
        terms = np.zeros((math.prod(x.shape[:-1]), len(weight_ih)))

        def run(terms, hidden, *first):
            return _run(cell, (x, weight_ih, weight_hh, *first, *biases), sizes, reverse, terms, hidden)[: 1 + states]

        d, hidden, *of_states = slopes(run, gs, (terms, terms, *first))
        return (d, *[hidden][: cell == "gru"], *of_states)

    return backward


def recurrent_gradients(*tensors, cell, sizes, reverse, output_mask):
    """Return the derivatives along each element of the operands of a layer; (0,) for those that are not needed."""
    states, saved = 1 + (cell == "lstm"), 2 * (cell in ("lstm", "gru"))
    gs, layer = tensors[: 1 + states], tensors[2 + states + saved :]

    def run(*layer):
        return _run(cell, layer, sizes, reverse, np.zeros((math.prod(layer[0].shape[:-1]), 1)), 0)[: 1 + states]

    nothing = np.zeros(0)
    x, weight_ih, weight_hh, *rest = slopes(run, gs, layer)
    firsts, biases = (*rest[:states], nothing)[:2], rest[states:] or [nothing] * 2
    weights = [
        part if needed else nothing for part, needed in zip((x, weight_ih, weight_hh), output_mask, strict=False)
    ]
    return (*weights, *firsts, *biases)


lstm_layer, lstm_layer_backward = _layer("lstm"), _layer_backward("lstm", 2, 2)
gru_layer, gru_layer_backward = _layer("gru"), _layer_backward("gru", 1, 2)
rnn_tanh_layer, rnn_tanh_layer_backward = _layer("rnn_tanh"), _layer_backward("rnn_tanh", 1, 0)
rnn_relu_layer, rnn_relu_layer_backward = _layer("rnn_relu"), _layer_backward("rnn_relu", 1, 0)
