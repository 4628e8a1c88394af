"""Recurrent networks: single steps, and all steps; gates are concatenated along the last dimension."""

import numpy as np

from retrograd import kernels
from retrograd.backend.products import product, row_matrix
from retrograd.backend.traced_array import visible
from retrograd.kernels.host_values import on_host

__all__ = ["gru", "gru_grad", "lstm", "lstm_grad", "recurrent_gradients", "recurrent_layer", "recurrent_layer_grad"]


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


# ------------------------------------------------------------------------------------------------------ all steps


def recurrent_layer(cell, sizes, reverse, x, weights, biases, h, c):
    """Return the states after each row, the last states h and c, the gates, and a further value of each row.

    x (rows, features), or (steps, sequences, features) if `sizes` is None, which else is the number of rows of each
    step. `weights` are those of input and state, `biases` theirs or (). c, its result and the further value are None if
    the cell has none. The gates and the further value are what `recurrent_layer_grad` needs.
    """
    from_input, from_state = weights
    rows, width = row_matrix(x), from_input.shape[:1]
    fits = x.ndim == (3 if sizes is None else 2) and (sizes is not None or x.shape[1] == len(h))
    if not fits or any(b.shape != width for b in biases):  # NumPy would broadcast a bias
        raise ValueError("the shapes of input, states and biases do not fit")
    gates = product(rows, from_input.T)
    bias = None
    if biases and cell == "gru":
        gates += biases[0]
        bias = np.ascontiguousarray(biases[1])
    elif biases:
        bias = biases[0] + biases[1]
    size = from_state.shape[1]
    out = kernels.empty((*x.shape[:-1], size), x.dtype)
    extra = kernels.empty((len(rows), size), x.dtype) if cell in ("lstm", "gru") else None
    h, c = h.copy(), None if c is None else c.copy()
    weight = np.ascontiguousarray(from_state)
    kernels.recurrent_layer(cell, reverse, _counts(sizes), weight, bias, gates, extra, h, c, row_matrix(out))
    return out, h, c, gates, extra


def recurrent_layer_grad(cell, sizes, reverse, gs, weight, h, c, out, gates, extra):
    """Return the cotangents of the gates' terms from the input and from the state, and of the first states h and c.

    `gs` are those of the states after each row, of the last h, and of the last c or None. `weight` is that of the
    state. The cotangents of the terms from the state are None where they equal those from the input.
    """
    return _backward(cell, sizes, reverse, gs, weight, h, c, out, gates, extra, None)


def recurrent_gradients(cell, sizes, reverse, gs, x, weights, h, c, out, gates, extra, output_mask):
    """Return the cotangents of x, both weights, h, c, and both biases; None for those that `output_mask` leaves out."""
    from_input, from_state = weights
    before = kernels.empty((len(gates), from_state.shape[1]), gates.dtype)
    d, hidden, gh, gc = _backward(cell, sizes, reverse, gs, from_state, h, c, out, gates, extra, before)
    of_biases = (None, None)
    if output_mask[3]:
        sums = kernels.column_sums(d)
        of_biases = (sums, sums.copy() if hidden is None else kernels.column_sums(hidden))  # each has its own memory
    hidden = d if hidden is None else hidden
    return (
        product(d, from_input).reshape(x.shape) if output_mask[0] else None,
        product(d.T, row_matrix(x)) if output_mask[1] else None,
        product(hidden.T, before) if output_mask[2] else None,
        gh,
        gc,
        *of_biases,
    )


def _backward(cell, sizes, reverse, gs, weight, h, c, out, gates, extra, before):
    g, gh, gc = gs
    d = kernels.empty(gates.shape, gates.dtype)
    hidden = kernels.empty(gates.shape, gates.dtype) if cell == "gru" else None
    gh, gc = gh.copy(), None if c is None else gc.copy()
    given = [None if a is None else np.ascontiguousarray(a) for a in (weight, gates, extra, out, h, c, g)]
    given[3], given[6] = row_matrix(given[3]), row_matrix(given[6])
    kernels.recurrent_layer_grad(cell, reverse, _counts(sizes), *given, gh, gc, d, hidden, before)
    return d, hidden, gh, gc


def _counts(sizes):
    """Return the numbers of rows as the kernels take them, or as the references do."""
    return None if sizes is None else np.array(sizes, np.int64) if on_host else list(sizes)
