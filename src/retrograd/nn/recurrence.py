"""The recurrences of RNN, LSTM and GRU, and their loop over the steps of sequences."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograd.core import call, operator_named
from retrograd.levels.autocast import casts_operands
from retrograd.nn import functional as F
from retrograd.ops import recurrent
from retrograd.ops.family import kernels_support
from retrograd.ops.recurrent_layers import LAYERS

_cat = operator_named("cat")
_relu = operator_named("relu")
_tanh = operator_named("tanh")

State = tuple[Any, ...]
Step = Callable[[Any, State], State]


class Weights(NamedTuple):
    """The weights of one layer in one direction; biases, and the projection of an LSTM's output, may be None."""

    input: Any
    hidden: Any
    input_bias: Any = None
    hidden_bias: Any = None
    projection: Any = None


class Recurrence(NamedTuple):
    """A recurrence: its numbers of gates and of state tensors, and the function that makes its step from weights.

    `separate_biases`: the bias of the hidden state must not be added to that of the input.
    """

    gates: int
    states: int
    step: Callable[[Weights], Step]
    separate_biases: bool = False


def _elman(nonlinearity: Callable[[Any], Any]) -> Callable[[Weights], Step]:
    """h ← f(W x + U h): `gates` are W x, with all biases."""

    def steps(weights: Weights) -> Step:
        hidden = weights.hidden

        def step(gates: Any, state: State) -> State:
            return (nonlinearity(gates + F.linear(state[0], hidden)),)

        return step

    return steps


def _lstm(weights: Weights) -> Step:
    """c ← f c + i g and h ← o tanh(c), with gates i, f, o between 0 and 1 and g between -1 and 1."""
    hidden, projection = weights.hidden, weights.projection

    def step(gates: Any, state: State) -> State:
        h, c = state
        h, c = recurrent.lstm(gates, F.linear(h, hidden), c)
        return (h if projection is None else F.linear(h, projection)), c

    return step


def _gru(weights: Weights) -> Step:
    """h ← n + z (h - n), n = tanh(W x + r U h): both gates r and z are between 0 and 1."""
    hidden, bias = weights.hidden, weights.hidden_bias

    def step(gates: Any, state: State) -> State:
        (h,) = state
        return (recurrent.gru(gates, F.linear(h, hidden, bias), h),)

    return step


RECURRENCES = {
    "RNN_TANH": Recurrence(1, 1, _elman(_tanh)),
    "RNN_RELU": Recurrence(1, 1, _elman(_relu)),
    "LSTM": Recurrence(4, 2, _lstm),
    "GRU": Recurrence(3, 1, _gru, separate_biases=True),
}


def mode_of(name: str, nonlinearity: str) -> str:
    """Return the mode of an RNN with nonlinearity "tanh" or "relu"."""
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"{name}: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
    return f"RNN_{nonlinearity.upper()}"


def project_input(kind: Recurrence, x: Any, weights: Weights) -> Any:
    """Return the contributions of the input to the gates, for all steps at once."""
    bias = weights.input_bias
    if bias is not None and not kind.separate_biases:
        bias = bias + weights.hidden_bias
    return F.linear(x, weights.input, bias)


def supports_layer(x: Any, weights: Weights, first: State) -> bool:
    """Return whether `run_layer` supports the weights and dtypes; autocast lets steps compute in several dtypes."""
    if weights.projection is not None or casts_operands():
        return False
    return kernels_support(x, *weights[:4], *first)


def run_layer(
    mode: str, x: Any, weights: Weights, first: State, sizes: Sequence[int] | None, backwards: bool
) -> tuple[Any, State]:
    """Return the outputs of all steps and each sequence's last state, by one operator of `ops/recurrent_layers.py`."""
    biases = () if weights.input_bias is None else (weights.input_bias, weights.hidden_bias)
    tensors = x, weights.input, weights.hidden, *first, *biases
    params = {"sizes": None if sizes is None else tuple(sizes), "reverse": backwards}
    found = call(LAYERS[mode], tensors, params)
    return found[0], found[1 : 1 + len(first)]


def run_steps(step: Step, gates: Sequence[Any], first: State, backwards: bool) -> tuple[list[Any], State]:
    """Return the outputs of all steps, in order, and each sequence's last state.

    Each step holds the gates of the sequences that are not finished, which are the first ones. In reverse, sequences
    join with their first state at their last step.
    """
    run = _run_backwards if backwards else _run_forwards
    return run(step, gates, first)


def _run_forwards(step: Step, gates: Sequence[Any], state: State) -> tuple[list[Any], State]:
    outputs, done = [], []
    for x in gates:
        if x.shape[0] < state[0].shape[0]:
            done.append(tuple(s[x.shape[0] :] for s in state))
            state = tuple(s[: x.shape[0]] for s in state)
        state = step(x, state)
        outputs.append(state[0])
    if done:
        state = tuple(_cat(parts) for parts in zip(state, *reversed(done), strict=True))
    return outputs, state


def _run_backwards(step: Step, gates: Sequence[Any], first: State) -> tuple[list[Any], State]:
    outputs: list[Any] = []
    state = tuple(s[:0] for s in first)
    for x in reversed(gates):
        state = step(x, _extend_state(state, first, x.shape[0]))
        outputs.append(state[0])
    return outputs[::-1], _extend_state(state, first, first[0].shape[0])


def _extend_state(state: State, first: State, size: int) -> State:
    """Return the state of the first `size` sequences, some of which begin at this step."""
    running = state[0].shape[0]
    if running == size:
        return state
    if not running:
        return first if first[0].shape[0] == size else tuple(s[:size] for s in first)
    return tuple(_cat([s, f[running:size]]) for s, f in zip(state, first, strict=True))
