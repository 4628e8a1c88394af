"""Derivatives of recurrent layers in both modes and of second order, composed of the steps of the cells."""

from typing import NamedTuple

from retrograd.core import registry
from retrograd.ops.attention import add_optional
from retrograd.ops.linalg import linear, matmul, rows_dot
from retrograd.ops.view import cat, narrow, reshape


class Perturbation(NamedTuple):
    """Tangents of the gates' terms of all rows from input and state, of the first states, and of the state's weight.

    Those of the terms from the state, `z`, and of the weight may be None: zero. c is None except for an LSTM.
    """

    x: object
    z: object
    h: object
    c: object
    weight_hh: object = None


class Record(NamedTuple):
    """A step of a forward pass: the slice of its rows, the operands of the cell, and their tangents."""

    start: int
    rows: int
    primals: tuple
    tangents: tuple


def row_matrix(x):
    """Return the rows of all steps as a matrix; a view."""
    return x if x.ndim == 2 else reshape(x, (x.shape[0] * x.shape[1], x.shape[2]))


def _steps(x, sizes, reverse):
    """Return the first row and the number of rows of each step, in the order in which they run."""
    sizes = [x.shape[1]] * x.shape[0] if sizes is None else sizes
    starts = [sum(sizes[:t]) for t in range(len(sizes))]
    found = list(zip(starts, sizes, strict=True))
    return found[::-1] if reverse else found


def _rows(x, start, count):
    return None if x is None else narrow(x, 0, start, count)


def _first_rows(s, count):
    return s if s is None or s.shape[0] == count else narrow(s, 0, 0, count)


def _with_first_rows(s, new):
    """Return a state whose first rows are replaced."""
    rest = 0 if s is None else s.shape[0] - new.shape[0]
    return cat([new, narrow(s, 0, new.shape[0], rest)]) if rest else new


def _product(a, b):
    return None if a is None or b is None else matmul(a, b)


def _linear(x, weight):
    return None if x is None or weight is None else linear(x, weight)


def states_before(out, h, sizes, reverse):
    """Return the states before each row, from those after each row and the first ones: a matrix of rows."""
    if sizes is None:
        parts = [narrow(out, 0, int(reverse), out.shape[0] - 1), reshape(h, (1, *h.shape))] if out.shape[0] else [out]
        return row_matrix(cat(parts if reverse else parts[::-1]))
    found, start, running = {}, 0, 0  # the rows of the step before
    for at, count in _steps(out, sizes, reverse):
        kept = min(running, count)
        found[at] = [narrow(out, 0, start, kept)] if kept else []
        found[at] += [narrow(h, 0, kept, count - kept)] if kept < count else []
        start, running = at, count
    return cat([part for at in sorted(found) for part in found[at]])


def terms_jvp(of, t_of):
    """Return the `Perturbation` by tangents of a layer's operands, of which those that are None are zero."""
    x = row_matrix(of.x)
    t_x = None if t_of.x is None else reshape(t_of.x, x.shape)
    terms = add_optional(_linear(t_x, of.weight_ih), _linear(x, t_of.weight_ih))
    shape = x.shape[0], of.weight_ih.shape[0]
    if t_of.bias_ih is not None:
        terms = add_optional(terms, registry["expand"](t_of.bias_ih, shape))
    z = None if t_of.bias_hh is None else registry["expand"](t_of.bias_hh, shape)
    zeros = registry["zeros_like"]
    h, c = (zeros(s) if t is None and s is not None else t for s, t in ((of.h, t_of.h), (of.c, t_of.c)))
    return Perturbation(registry["zeros"](shape, dtype=x.dtype) if terms is None else terms, z, h, c, t_of.weight_hh)


def run_perturbed(cell, of, along, *, sizes, reverse):
    """Return the records of a forward pass, and its tangents: of the states after each row, and of both last states."""
    x = linear(row_matrix(of.x), of.weight_ih, of.bias_ih)
    states, records, found = [of.h, of.c, along.h, along.c], [], {}
    for start, count in _steps(of.x, sizes, reverse):
        h, c, t_h, t_c = (_first_rows(s, count) for s in states)
        t_z = add_optional(linear(t_h, of.weight_hh), _linear(h, along.weight_hh), _rows(along.z, start, count))
        primals = _rows(x, start, count), linear(h, of.weight_hh, of.bias_hh), h, c
        tangents = _rows(along.x, start, count), t_z, t_h, t_c
        new, t_new = cell.step(*primals), cell.jvp(*primals, *tangents)
        records.append(Record(start, count, primals, tangents))
        found[start] = t_new[0]
        pairs = zip(states, (*new, *t_new), strict=True)
        states = [None if s is None else _with_first_rows(s, part) for s, part in pairs]
    return records, _in_row_order(found, of.h), states[2:]


def _in_row_order(found, like):
    """Return the rows of all steps, given by their first row, as one matrix."""
    return cat([found[start] for start in sorted(found)]) if found else narrow(like, 0, 0, 0)


def backward_jvp(cell, of, along, records, g, gh, gc):
    """Return the derivative of the backward pass along a perturbation, by which `run_perturbed` made the records.

    g are the cotangents of the states after each row, gh and gc those of the last states. The result has the form of a
    `Perturbation`: the derivatives of the cotangents of the gates' terms, of the first states, and of the weight.
    """
    zeros = registry["zeros_like"]
    flows = [gh, gc, zeros(gh), None if gc is None else zeros(gc)]
    found_x, found_z, t_weight = {}, {}, None
    for start, count, primals, tangents in reversed(records):
        h, c, t_h, t_c = (_first_rows(s, count) for s in flows)
        h = h + _rows(g, start, count)
        _, dz, dh, dc = cell.grad(h, c, *primals)
        parts = zip(cell.grad(t_h, t_c, *primals), cell.grad_jvp(h, c, *primals, *tangents), strict=True)
        t_dx, t_dz, t_dh, t_dc = (add_optional(*pair) for pair in parts)
        found_x[start], found_z[start] = t_dx, t_dz
        t_weight = add_optional(t_weight, rows_dot(t_dz, primals[2]), rows_dot(dz, tangents[2]))
        t_back = add_optional(matmul(t_dz, of.weight_hh), _product(dz, along.weight_hh), t_dh)
        new = add_optional(matmul(dz, of.weight_hh), dh), dc, t_back, t_dc
        flows = [None if s is None else _with_first_rows(s, part) for s, part in zip(flows, new, strict=True)]
    like = zeros(along.x)
    t_weight = zeros(of.weight_hh) if t_weight is None else t_weight
    return Perturbation(_in_row_order(found_x, like), _in_row_order(found_z, like), flows[2], flows[3], t_weight)
