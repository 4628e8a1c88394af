"""The families of recurrent layers over all steps of sequences, and of their backward passes.

Rows are ordered by step. Without `sizes` the input is (steps, sequences, features). With `sizes`, the number of rows of
each step, it is (rows, features): step t has the rows of the first sizes[t] sequences, and the numbers do not increase.
With `reverse` the last step is the first to run; sequences then join with their first state.
"""

from typing import NamedTuple

from retrograd.core import Aval, Internal, call, registry
from retrograd.core.state import is_recording
from retrograd.ops import batch_loop
from retrograd.ops.batching import batch_all
from retrograd.ops.family import kernels_support, sum_to
from retrograd.ops.linalg import matmul, rows_dot
from retrograd.ops.recurrent import zeros_for_none
from retrograd.ops.recurrent_cells import CELLS
from retrograd.ops.recurrent_derivatives import (
    Perturbation,
    backward_jvp,
    row_matrix,
    run_perturbed,
    states_before,
    terms_jvp,
)
from retrograd.ops.view import movedim, reshape


class Operands(NamedTuple):
    """The operands of a layer: input, weights, first states (c of an LSTM only), and both biases or None."""

    x: object
    weight_ih: object
    weight_hh: object
    h: object
    c: object
    bias_ih: object
    bias_hh: object

    def listed(self):
        """Return the operands that are there, in the order of the operators' tensors."""
        return [t for t in self if t is not None]

    def states(self):
        """Return h, and c if there is one."""
        return [s for s in (self.h, self.c) if s is not None]


class Layer(Internal):
    """Base of the recurrent layers and of their backward passes.

    The last tensors are x, weight_ih (gates n, features), weight_hh (gates n, n), h (sequences, n), for an LSTM c, and
    optionally both biases (gates n).
    """

    cell = ""
    states = 1
    saved = 0  # how many further tensors, of all rows, the backward pass reads
    hidden = False  # whether the cotangents of the gates' terms from input and state differ
    leading = 0  # how many tensors come before those of the layer

    @classmethod
    def operands(cls, tensors):
        """Return the `Operands`."""
        x, weight_ih, weight_hh, h, *rest = tensors[cls.leading :]
        c = rest.pop(0) if cls.states == 2 else None
        return Operands(x, weight_ih, weight_hh, h, c, *(rest or (None, None)))

    @classmethod
    def check(cls, tensors, sizes, name=""):
        """Check shapes and dtypes of operands; return them, and the numbers of rows and of elements of all gates."""
        of, name, packed = cls.operands(tensors), name or cls.__name__, sizes is not None
        if not kernels_support(*tensors):
            dtypes = ", ".join(str(t.dtype) for t in tensors)
            raise TypeError(f"{name}: expected float32 or float64, all alike, got {dtypes}")
        if packed and (list(sizes) != sorted(sizes, reverse=True) or min(sizes, default=1) < 1):
            raise ValueError(f"{name}: sizes must be positive and must not increase, got {tuple(sizes)}")
        ndims = (2 if packed else 3), 2, 2, *(2 for _ in of.states()), *(() if of.bias_ih is None else (1, 1))
        if tuple([t.ndim for t in of.listed()]) != ndims:
            raise _misfit(name, of)
        size = of.weight_hh.shape[1]
        width = size * CELLS[cls.cell].gates
        rows = of.x.shape[0] if packed else of.x.shape[0] * of.x.shape[1]
        sequences = of.h.shape[0] if packed else of.x.shape[1]
        fits = (
            of.weight_ih.shape == (width, of.x.shape[-1])
            and of.weight_hh.shape == (width, size)
            and all(s.shape == (sequences, size) for s in of.states())
            and all(b is None or b.shape == (width,) for b in (of.bias_ih, of.bias_hh))
        )
        if not fits or (packed and (sum(sizes) != rows or max(sizes, default=0) > sequences)):
            raise _misfit(name, of)
        return of, rows, width

    @classmethod
    def batch(cls, batched, n, *tensors, sizes, reverse):
        """Run the sequences of all examples as those of one batch; with weights of their own, one after the other."""
        operator, of = registry[cls.__name__], cls.operands(batched)
        if n == 0:
            return batch_loop.empty_batch(operator, batched, (list(tensors),), {"sizes": sizes, "reverse": reverse})
        if of.weight_ih or of.weight_hh or of.bias_ih or of.bias_hh:
            examples = batch_loop.iter_examples(batched, n, tensors)
            return batch_loop.stack_results([operator(list(one), sizes=sizes, reverse=reverse) for one in examples])
        states = cls.leading + 3, cls.leading + 3 + cls.states
        rows = [*range(cls.leading + 1), *range(*states)]  # the tensors that are no weights and biases
        chosen = batch_all([tensors[i] for i in rows], [batched[i] for i in rows], n)
        given = list(tensors)
        for i, tensor in zip(rows, chosen, strict=True):
            given[i] = _join_examples(tensor)
        sizes = None if sizes is None else tuple([n * size for size in sizes])
        return tuple([_separate_examples(out, n) for out in operator(given, sizes=sizes, reverse=reverse)])


def _misfit(name, of):
    shapes = ", ".join(str(tuple(t.shape)) for t in of.listed())
    return ValueError(f"{name}: the shapes of input, weights, states and biases do not fit: {shapes}")


def _join_examples(x):
    """Return x (n, ..., rows, k) as (..., rows n, k)."""
    x = movedim(x, 0, -2)
    return reshape(x, (*x.shape[:-3], x.shape[-3] * x.shape[-2], x.shape[-1]))


def _separate_examples(x, n):
    """Return the inverse of `_join_examples`."""
    return movedim(reshape(x, (*x.shape[:-2], x.shape[-2] // n, n, x.shape[-1])), -2, 0)


def _aval(x):
    return Aval(x.shape, x.dtype)


def _present(parts, of):
    """Return the parts for the operands that are there."""
    return [part for part, t in zip(parts, of, strict=True) if t is not None]


class ForwardLayer(Layer, snapshots="out"):
    """Base of the layers: they return the states after each row, the last states, and what the backward pass reads."""

    @classmethod
    def impl(cls, xp, *tensors, sizes, reverse):
        of = cls.operands(tensors)  # the kernels check them; if they refuse, the shape rule says why
        biases = () if of.bias_ih is None else (of.bias_ih, of.bias_hh)
        weights = of.weight_ih, of.weight_hh
        out, h, c, gates, extra = xp.recurrent_layer(cls.cell, sizes, reverse, of.x, weights, biases, of.h, of.c)
        return (out, *(h, c)[: cls.states], *(gates, extra)[: cls.saved])

    @classmethod
    def shape(cls, *tensors, sizes, reverse):
        """Return the avals of all results."""
        of, rows, width = cls.check(tensors, sizes)
        size, dtype = of.h.shape[-1], of.x.dtype
        saved = (Aval((rows, width), dtype), Aval((rows, size), dtype))[: cls.saved]
        return (Aval((*of.x.shape[:-1], size), dtype), *map(_aval, of.states()), *saved)

    @classmethod
    def work(cls, avals, out):
        """Return the number of multiplications of the products of all rows with both weights."""
        of, rows = cls.operands(avals), out[0].shape[0] * (1 if out[0].ndim == 2 else out[0].shape[1])
        return rows * of.weight_hh.shape[0] * (of.weight_ih.shape[1] + of.weight_hh.shape[1])

    @classmethod
    def cotangents(cls, g, tensors, out, sizes, reverse):
        """Return the cotangents of the tensors; None for those that require no gradient."""
        of, wanted = cls.operands(tensors), cls.operands([t.requires_grad for t in tensors])
        given = (*g[: 1 + cls.states], out[0], *out[1 + cls.states :], *tensors)
        params = {"sizes": sizes, "reverse": reverse}
        if not is_recording() and all(t.level is None for t in given):
            mask = tuple(map(bool, (wanted.x, wanted.weight_ih, wanted.weight_hh, wanted.bias_ih or wanted.bias_hh)))
            found = call(registry["recurrent_gradients"], given, {"cell": cls.cell, **params, "output_mask": mask})
            return [part if t.requires_grad else None for part, t in zip(_present(found, of), tensors, strict=True)]
        d, *others = call(registry[f"{cls.__name__}_backward"], given, params)
        hidden = others.pop(0) if cls.hidden else d
        found = [
            reshape(matmul(d, of.weight_ih), of.x.shape) if wanted.x else None,
            rows_dot(d, row_matrix(of.x)) if wanted.weight_ih else None,
            rows_dot(hidden, states_before(out[0], of.h, sizes, reverse)) if wanted.weight_hh else None,
            *others,
        ]
        return found if of.bias_ih is None else [*found, *cls.bias_cotangents(d, hidden)]

    @classmethod
    def bias_cotangents(cls, d, hidden):
        """Return the cotangents of both biases."""
        bias_ih = sum_to(d, d.shape[1:])
        return bias_ih, sum_to(hidden, hidden.shape[1:]) if cls.hidden else bias_ih

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """Return the tangents of the states; zeros for what the backward pass reads, which has no derivative."""
        of, t_of = cls.operands(primals), cls.operands(tangents)
        _, t_out, last = run_perturbed(CELLS[cls.cell], of, terms_jvp(of, t_of), **params)
        zeros = [registry["zeros_like"](part) for part in out[1 + cls.states :]]
        return (reshape(t_out, out[0].shape), *last[: cls.states], *zeros)

    @classmethod
    def observe(cls, *outs):
        """Return the states."""
        return outs[: 1 + cls.states]


class BackwardLayer(Layer):
    """Base of the backward passes.

    The first tensors are the cotangents of the states after each row and of the last states, then the states after each
    row, and the further tensors that the layer returned. The results are the cotangents of the gates' terms of all rows
    from the input, of those from the state where they differ, and of the first states.

    The pass B is linear in the cotangents g. Its derivative along perturbations of the gates' terms and of the states
    serves both modes: second derivatives are symmetric, so the gradient of <B(g), v> is the derivative of B along v.
    The tensors that the layer returned count as functions of the layer's own tensors.
    """

    def __init_subclass__(cls, **traits):
        super().__init_subclass__(**traits)
        cls.leading = 2 + cls.states + cls.saved

    @classmethod
    def forward(cls):
        """Return the operator of the layer."""
        return registry[cls.__name__.removesuffix("_backward")]

    @classmethod
    def impl(cls, xp, *tensors, sizes, reverse):
        of = cls.operands(tensors)
        gs, *results = cls.cotangents_and_results(xp, tensors)
        d, hidden, h, c = xp.recurrent_layer_grad(cls.cell, sizes, reverse, gs, of.weight_hh, of.h, of.c, *results)
        return (d, *[hidden][: cls.hidden], h, *[c][: cls.states - 1])

    @classmethod
    def cotangents_and_results(cls, xp, tensors):
        """Return the cotangents (None for that of c, if there is none), and the states, gates and further values."""
        g, (out, *saved) = tensors[: 1 + cls.states], tensors[1 + cls.states : cls.leading]
        return (*g, None)[:3], out, *(saved or (xp.row_matrix(out), None))

    @classmethod
    def shape(cls, *tensors, sizes, reverse):
        """Return the avals of all results."""
        of, rows, width = cls.check(tensors, sizes)
        return (*[Aval((rows, width), of.x.dtype)] * (1 + cls.hidden), *map(_aval, of.states()))

    @classmethod
    def work(cls, avals, out):
        """Return the number of multiplications of the product of all rows with the weight."""
        of = cls.operands(avals)
        return out[0].shape[0] * of.weight_hh.shape[0] * of.weight_hh.shape[1]

    @classmethod
    def split_results(cls, parts):
        """Return the parts for the gates' terms from input and state, and for h and c; None for those without."""
        d, *rest = parts
        hidden = rest.pop(0) if cls.hidden else None
        return d, hidden, *(*rest, None)[:2]

    @classmethod
    def second(cls, of, along, gs, params):
        """Return the records of a forward pass, its tangents along a perturbation, and the derivative of this pass."""
        cell = CELLS[cls.cell]
        records, t_out, last = run_perturbed(cell, of, along, **params)
        g, gh, gc = (*gs, None)[:3]
        return records, (t_out, *last[: cls.states]), backward_jvp(cell, of, along, records, row_matrix(g), gh, gc)

    @classmethod
    def cotangents(cls, v, tensors, sizes, reverse):
        """Return the cotangents of the tensors; None for what the layer returned."""
        of, params = cls.operands(tensors), {"sizes": sizes, "reverse": reverse}
        along = Perturbation(*cls.split_results(v))
        _, of_g, found = cls.second(of, along, tensors[: 1 + cls.states], params)
        weights = [
            reshape(matmul(found.x, of.weight_ih), of.x.shape),
            rows_dot(found.x, row_matrix(of.x)),
            found.weight_hh,
            *[found.h, found.c][: cls.states],
        ]
        biases = [] if of.bias_ih is None else [sum_to(d, d.shape[1:]) for d in (found.x, found.z)]
        of_g = [reshape(of_g[0], tensors[0].shape), *of_g[1:]]
        return [*of_g, *[None] * (1 + cls.saved), *weights, *biases]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """Return the pass of the cotangents' tangents, plus the derivative along those of the layer's tensors."""
        of, t_of = cls.operands(primals), cls.operands(tangents)
        count, total = 1 + cls.states, None
        if any(t is not None for t in tangents[:count]):
            along = zeros_for_none(tangents[:count], primals[:count])
            total = registry[cls.__name__]([*along, *primals[count:]], **params)
        if all(t is None for t in tangents[cls.leading :]):
            return total if total is not None else tuple([registry["zeros_like"](part) for part in out])
        _, _, found = cls.second(of, terms_jvp(of, t_of), primals[:count], params)
        parts = [found.x, *[found.z][: cls.hidden], found.h, *[found.c][: cls.states - 1]]
        return tuple(parts if total is None else [a + b for a, b in zip(parts, total, strict=True)])

    @classmethod
    def updated(cls, tensors):
        """Return the tensors with those that the layer returns for the last ones: dense, from the first step on."""
        states, *rest = cls.forward()(list(tensors[cls.leading :]))
        return (*tensors[: 1 + cls.states], states, *rest[cls.states :], *tensors[cls.leading :])
