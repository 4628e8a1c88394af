"""The reference implementation of recurrent networks over all steps of sequences, forward and backward.

`cell` is "rnn_tanh", "rnn_relu", "lstm" or "gru". Rows are ordered by step: first those of step 0. `sizes` is the
number of sequences in each step, which does not increase, since the longest sequences are first; None: all sequences
have as many steps. With `reverse` the last step is the first to run.

The gates of an LSTM are i, f, g, o, and those of a GRU r, z, n; an RNN has one, which is its new state.
"""

from itertools import accumulate

import numpy as np

from retrograd.kernels import recurrent_formulas
from retrograd.kernels.overlap import separate
from retrograd.kernels.sigmoid_reference import sigmoid

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


@separate(5)
def recurrent_layer(cell, reverse, sizes, weight, bias, gates, extra, h, c, out):
    """Run all steps: write the states after each row to `out`, and replace the states `h` and `c` by the last ones.

    `gates` (rows, gates n) are the terms from the input, replaced by the values of the gates, except those of an RNN.
    The terms from the state are h times the transposed weight. `bias`, which may be None, is added to the terms from
    the state for a GRU, and to those from the input for other cells. `extra` is
    written to: the states c of an LSTM, the term of n from the state of a GRU, None for an RNN.
    """
    given = {"h": h} | ({"c": c} if cell == "lstm" else {})
    by_row = {"out": out} | ({"extra": extra} if cell in ("lstm", "gru") else {})
    _check("recurrent_layer", cell, sizes, weight, given, by_row, {"gates": gates})
    if bias is not None and (bias.shape != weight.shape[:1] or bias.dtype != weight.dtype):
        raise ValueError("recurrent_layer: bias does not fit")
    for rows in _steps(sizes, len(gates), len(h), reverse):
        active = slice(rows.stop - rows.start)
        z = np.matmul(h[active], weight.T)
        x = gates[rows] if bias is None or cell == "gru" else gates[rows] + bias
        if cell == "lstm":
            new, extra[rows] = recurrent_formulas.lstm_step(*_parts(x + z, 4), c[active], sigmoid, np.tanh)
            c[active] = extra[rows]
            _write_lstm_gates(gates[rows], x + z)
        elif cell == "gru":
            (r, u, n), (zr, zu, zn) = _parts(gates[rows], 3), _parts(z if bias is None else z + bias, 3)
            new = recurrent_formulas.gru_step(r + zr, u + zu, n, zn, h[active], sigmoid, np.tanh)
            extra[rows] = zn
            _gru_gates(r, u, n, zr, zu, zn)
        else:
            new = _rnn_step(cell, x + z)
        h[active] = out[rows] = new


@separate(5)
def recurrent_layer_grad(
    cell, reverse, sizes, weight, gates, extra, out, first_h, first_c, g, h, c, of_gates, of_hidden, before
):
    """Run the backward pass: replace the cotangents `h` and `c` of the last states by those of the first states.

    `g` is the cotangent of `out`. `gates`, `extra` and `out` are results of `recurrent_layer`, `first_h` and `first_c`
    the first states. Written to are `of_gates`, the cotangents of the gates' terms from the input; `of_hidden`, those
    of the terms from the state for a GRU, None for others, where they are equal; and `before`, the states before each
    row, unless it is None.
    """
    given = {"h": h, "first_h": first_h} | ({"c": c, "first_c": first_c} if cell == "lstm" else {})
    by_row = {"out": out, "g": g} | ({"extra": extra} if cell in ("lstm", "gru") else {})
    by_gate = {"gates": gates, "of_gates": of_gates} | ({"of_hidden": of_hidden} if cell == "gru" else {})
    by_row |= {} if before is None else {"before": before}
    _check("recurrent_layer_grad", cell, sizes, weight, given, by_row, by_gate)
    previous = _rows_before(sizes, len(gates), len(h), reverse)
    states = np.concatenate([out, first_h])[previous]
    if before is not None:
        before[...] = states
    before_c = np.concatenate([extra, first_c])[previous] if cell == "lstm" else None
    for rows in _steps(sizes, len(gates), len(h), not reverse):
        active = slice(rows.stop - rows.start)
        gh, d = h[active] + g[rows], of_gates[rows]
        hidden, through = d, 0
        if cell == "lstm":
            c[active] = _lstm_grad(gates[rows], extra[rows], before_c[rows], gh, c[active], d)
        elif cell == "gru":
            hidden, through = of_hidden[rows], gh * _parts(gates[rows], 3)[1]
            _gru_grad(gates[rows], extra[rows], states[rows], gh, d, hidden)
        else:
            y = out[rows]
            d[...] = gh * (1 - y * y) if cell == "rnn_tanh" else np.where(y <= 0, 0, gh)
        h[active] = np.matmul(hidden, weight) + through


def _check(name, cell, sizes, weight, by_sequence, by_row, by_gate):
    """Raise the ValueError of the compiled kernel for arrays, by their names, that do not fit."""
    rows, sequences, n = len(by_gate["gates"]), len(by_sequence["h"]), weight.shape[-1]
    width = GATES[cell] * n
    shapes = {"weight": (weight, (width, n))}
    for arrays, shape in ((by_sequence, (sequences, n)), (by_row, (rows, n)), (by_gate, (rows, width))):
        shapes |= {key: (array, shape) for key, array in arrays.items()}
    for key, (array, shape) in shapes.items():
        if array is None or array.shape != shape or array.dtype != weight.dtype or weight.dtype.char not in "fd":
            raise ValueError(f"{name}: {key} does not fit")
    if sizes is None:
        fits = rows % sequences == 0 if sequences else rows == 0
    else:
        most = [sequences, *sizes]
        fits = sum(sizes) == rows and all(1 <= size <= before for size, before in zip(sizes, most, strict=False))
    if not fits:
        raise ValueError(f"{name}: sizes do not fit")


def _steps(sizes, rows, sequences, reverse):
    """Return the slices of the rows of each step, in the order in which they run."""
    if sizes is None:
        sizes = [sequences] * (rows // sequences if sequences else 0)
    sizes = [int(size) for size in sizes]
    found = [slice(end - size, end) for end, size in zip(accumulate(sizes), sizes, strict=True)]
    return found[::-1] if reverse else found


def _rows_before(sizes, rows, sequences, reverse):
    """Return for each row the row of its sequence one step before, or `rows` plus the sequence if there is none."""
    before = np.empty(rows, np.int64)
    last = rows + np.arange(sequences)
    for step in _steps(sizes, rows, sequences, reverse):
        active = slice(step.stop - step.start)
        before[step] = last[active]
        last[active] = np.arange(step.start, step.stop)
    return before


def _parts(x, count):
    return np.split(x, count, axis=-1)


def _rnn_step(cell, x):
    return np.tanh(x) if cell == "rnn_tanh" else np.where(x <= 0, 0, x)


def _write_lstm_gates(gates, terms):
    """Write the values of the gates from the sums of their terms."""
    functions = (sigmoid, sigmoid, np.tanh, sigmoid)
    for gate, term, function in zip(_parts(gates, 4), _parts(terms, 4), functions, strict=True):
        gate[...] = function(term)


def _gru_gates(r, u, n, zr, zu, zn):
    """Replace the terms from the input by the gates."""
    r[...], u[...] = sigmoid(r + zr), sigmoid(u + zu)
    n[...] = np.tanh(n + r * zn)


def _lstm_grad(gates, cell, before, gh, gc, d):
    (i, f, g, o), (di, df, dg, do) = _parts(gates, 4), _parts(d, 4)
    top = np.tanh(cell)
    flow = gc + gh * o * (1 - top * top)
    di[...] = flow * g * (i * (1 - i))
    df[...] = flow * before * (f * (1 - f))
    dg[...] = flow * i * (1 - g * g)
    do[...] = gh * top * (o * (1 - o))
    return flow * f


def _gru_grad(gates, memory, before, gh, d, hidden):
    (r, u, n), (dr, du, dn) = _parts(gates, 3), _parts(d, 3)
    dn[...] = gh * (1 - u) * (1 - n * n)
    dr[...] = dn * memory * (r * (1 - r))
    du[...] = gh * (before - n) * (u * (1 - u))
    hidden[...] = d
    _parts(hidden, 3)[2][...] = dn * r
