"""Recurrent layers over all steps of sequences: one operator for each kind of cell, and its backward pass."""

from retrograd.core import Aval, Internal, op, registry
from retrograd.ops.batch_loop import PerExample
from retrograd.ops.recurrent_cells import CELLS
from retrograd.ops.recurrent_family import BackwardLayer, ForwardLayer


def _sample(r, cell, width, steps=(2, 2), states=1, biases=False):
    """Return tensors of a layer with `width` elements of a state; one size in `steps`: the number of rows."""
    gates, sequences = CELLS[cell].gates * width, 2
    shapes = [(*steps, 1), (gates, 1), (gates, width), *[(sequences, width)] * states, *[(gates,)] * 2 * biases]
    return [r(*shape) for shape in shapes]


def _layer_samples(r, cell, width, states=1):
    """Yield samples of dense sequences, and of packed ones from the last step to the first."""
    yield tuple(_sample(r, cell, width, states=states)), {}
    yield tuple(_sample(r, cell, 1, (3,), states, biases=True)), {"sizes": (2, 1), "reverse": True}


def _backward_sample(r, layer, cell, width, states=1, biases=False):
    """Yield a sample of a backward pass: random cotangents, and what the layer returns."""
    tensors = _sample(r, cell, width, states=states, biases=biases)
    out, *rest = registry[layer](tensors)
    cotangents = [r(*x.shape) for x in (out, *rest[:states])]
    yield (*cotangents, out, *rest[states:], *tensors), {}


def _layer_errors(r, cell, states):
    tensors = _sample(r, cell, 2, states=states)
    yield (tensors[0], r(3, 1), *tensors[2:]), {}, ValueError, "do not fit"
    yield tuple(tensors), {"sizes": (1, 2)}, ValueError, r"must not increase, got \(1, 2\)"


# ------------------------------------------------------------------------------------------------------ operators


@op(
    "lstm_layer(Tensor[] tensors, *, int[]? sizes=None, bool reverse=False) "
    "-> (Tensor out, Tensor h, Tensor c, Tensor gates, Tensor cells)"
)
class lstm_layer(ForwardLayer):
    """An LSTM over all steps; its gates are i, f, g, o, and `cells` are the states c after each row."""

    cell, states, saved = "lstm", 2, 2

    def vjp_tensors(g, tensors, out, sizes, reverse):
        return lstm_layer.definition.cotangents(g, tensors, out, sizes, reverse)

    oracle = "retrograd.testing.references.recurrent.lstm_layer"

    def samples(r):
        return _layer_samples(r, "lstm", 2, 2)

    def errors(r):
        return _layer_errors(r, "lstm", 2)


@op(
    "lstm_layer_backward(Tensor[] tensors, *, int[]? sizes=None, bool reverse=False) "
    "-> (Tensor dgates, Tensor dh, Tensor dc)"
)
class lstm_layer_backward(BackwardLayer):
    """The backward pass of `lstm_layer`."""

    cell, states, saved = "lstm", 2, 2

    def vjp_tensors(g, tensors, sizes, reverse):
        return lstm_layer_backward.definition.cotangents(g, tensors, sizes, reverse)

    def constrain(*tensors):
        return lstm_layer_backward.definition.updated(tensors)

    oracle = "retrograd.testing.references.recurrent.lstm_layer_backward"

    def samples(r):
        return _backward_sample(r, "lstm_layer", "lstm", 2, 2)


@op(
    "gru_layer(Tensor[] tensors, *, int[]? sizes=None, bool reverse=False) "
    "-> (Tensor out, Tensor h, Tensor gates, Tensor terms)"
)
class gru_layer(ForwardLayer):
    """A GRU over all steps; its gates are r, z, n, and `terms` are what r multiplies."""

    cell, saved, hidden = "gru", 2, True

    def vjp_tensors(g, tensors, out, sizes, reverse):
        return gru_layer.definition.cotangents(g, tensors, out, sizes, reverse)

    oracle = "retrograd.testing.references.recurrent.gru_layer"

    def samples(r):
        return _layer_samples(r, "gru", 2)

    def errors(r):
        return _layer_errors(r, "gru", 1)


@op(
    "gru_layer_backward(Tensor[] tensors, *, int[]? sizes=None, bool reverse=False) "
    "-> (Tensor dgates, Tensor dterms, Tensor dh)"
)
class gru_layer_backward(BackwardLayer):
    """The backward pass of `gru_layer`; `dterms` are the cotangents of the gates' terms from the state."""

    cell, saved, hidden = "gru", 2, True

    def vjp_tensors(g, tensors, sizes, reverse):
        return gru_layer_backward.definition.cotangents(g, tensors, sizes, reverse)

    def constrain(*tensors):
        return gru_layer_backward.definition.updated(tensors)

    oracle = "retrograd.testing.references.recurrent.gru_layer_backward"

    def samples(r):
        return _backward_sample(r, "gru_layer", "gru", 2, biases=True)


@op("rnn_tanh_layer(Tensor[] tensors, *, int[]? sizes=None, bool reverse=False) -> (Tensor out, Tensor h)")
class rnn_tanh_layer(ForwardLayer):
    """A recurrent network without gates over all steps, whose states are the tanh of the terms' sum."""

    cell = "rnn_tanh"

    def vjp_tensors(g, tensors, out, sizes, reverse):
        return rnn_tanh_layer.definition.cotangents(g, tensors, out, sizes, reverse)

    oracle = "retrograd.testing.references.recurrent.rnn_tanh_layer"

    def samples(r):
        return _layer_samples(r, "rnn_tanh", 2)

    def errors(r):
        return _layer_errors(r, "rnn_tanh", 1)


@op("rnn_tanh_layer_backward(Tensor[] tensors, *, int[]? sizes=None, bool reverse=False) -> (Tensor dterms, Tensor dh)")
class rnn_tanh_layer_backward(BackwardLayer):
    """The backward pass of `rnn_tanh_layer`."""

    cell = "rnn_tanh"

    def vjp_tensors(g, tensors, sizes, reverse):
        return rnn_tanh_layer_backward.definition.cotangents(g, tensors, sizes, reverse)

    def constrain(*tensors):
        return rnn_tanh_layer_backward.definition.updated(tensors)

    oracle = "retrograd.testing.references.recurrent.rnn_tanh_layer_backward"

    def samples(r):
        return _backward_sample(r, "rnn_tanh_layer", "rnn_tanh", 2)


@op("rnn_relu_layer(Tensor[] tensors, *, int[]? sizes=None, bool reverse=False) -> (Tensor out, Tensor h)")
class rnn_relu_layer(ForwardLayer):
    """A recurrent network without gates over all steps, whose states are the relu of the terms' sum."""

    cell = "rnn_relu"

    def vjp_tensors(g, tensors, out, sizes, reverse):
        return rnn_relu_layer.definition.cotangents(g, tensors, out, sizes, reverse)

    oracle = "retrograd.testing.references.recurrent.rnn_relu_layer"

    def samples(r):
        return _layer_samples(r, "rnn_relu", 2)


@op("rnn_relu_layer_backward(Tensor[] tensors, *, int[]? sizes=None, bool reverse=False) -> (Tensor dterms, Tensor dh)")
class rnn_relu_layer_backward(BackwardLayer):
    """The backward pass of `rnn_relu_layer`."""

    cell = "rnn_relu"

    def vjp_tensors(g, tensors, sizes, reverse):
        return rnn_relu_layer_backward.definition.cotangents(g, tensors, sizes, reverse)

    def constrain(*tensors):
        return rnn_relu_layer_backward.definition.updated(tensors)

    oracle = "retrograd.testing.references.recurrent.rnn_relu_layer_backward"

    def samples(r):
        return _backward_sample(r, "rnn_relu_layer", "rnn_relu", 2)


@op(
    "recurrent_gradients(Tensor[] tensors, *, str cell, int[]? sizes, bool reverse, bool[] output_mask) -> "
    "(Tensor dx, Tensor dweight_ih, Tensor dweight_hh, Tensor dh, Tensor dc, Tensor dbias_ih, Tensor dbias_hh)"
)
class recurrent_gradients(
    Internal, PerExample, differentiable=False, vmap_fallback="each example has gradients of the weights of its own"
):
    """The cotangents of all operands of a layer, from the tensors of its backward pass, in a pass that is not recorded.

    `output_mask` says whether those of x, weight_ih, weight_hh and of the biases are needed; others have shape (0,).
    """

    def impl(xp, *tensors, cell, sizes, reverse, output_mask):
        layer = registry[f"{cell}_layer_backward"].definition
        of = layer.operands(tensors)
        weights = of.weight_ih, of.weight_hh
        given = *layer.cotangents_and_results(xp, tensors), output_mask
        found = xp.recurrent_gradients(cell, sizes, reverse, given[0], of.x, weights, of.h, of.c, *given[1:])
        return tuple([xp.zeros((0,), of.x.dtype) if part is None else part for part in found])

    def shape(*tensors, cell, sizes, reverse, output_mask):
        of, _, _ = registry[f"{cell}_layer_backward"].definition.check(tensors, sizes, "recurrent_gradients")
        x, weight_ih, weight_hh, biases = output_mask
        needed = x, weight_ih, weight_hh, True, of.c is not None, biases, biases
        like = (*of[:5], of.weight_hh, of.weight_hh)
        shapes = [t.shape if w else (0,) for t, w in zip(like, needed, strict=True)]
        return tuple([Aval(s[:1] if i > 4 else s, of.x.dtype) for i, s in enumerate(shapes)])

    oracle = "retrograd.testing.references.recurrent.recurrent_gradients"

    def samples(r):
        params = {"sizes": None, "reverse": False}
        for cell, states, biases in (("lstm", 2, True), ("gru", 1, True), ("rnn_tanh", 1, False)):
            for tensors, _ in _backward_sample(r, f"{cell}_layer", cell, 2, states, biases):
                mask = (True, True, cell != "gru", biases)
                yield tensors, {"cell": cell, **params, "output_mask": mask}


LAYERS = {"LSTM": lstm_layer, "GRU": gru_layer, "RNN_TANH": rnn_tanh_layer, "RNN_RELU": rnn_relu_layer}
