"""Cells of recurrent networks: one step each."""

import math
from typing import Any, Generic, TypeVar

from retrograd.core import Tensor
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.recurrence import RECURRENCES, Recurrence, State, Weights, mode_of, project_input
from retrograd.nn.settings import empty_parameter

Next = TypeVar("Next")  # the type of the state: a tensor, or a pair for an LSTM


class RNNCellBase(Module):
    """Base of the cells: the weights of one step, with `num_chunks` gates. A subclass defines `forward`."""

    weight_ih: Any
    weight_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if hidden_size < 0:
            raise ValueError(f"{type(self).__name__}: hidden_size must be at least 0, got {hidden_size}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = empty_parameter(True, (gates, input_size), device, dtype)
        self.weight_hh = empty_parameter(True, (gates, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty_parameter(bias, (gates,), device, dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the parameters to values uniform within ±1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        """Return the sizes, and the settings that differ from the defaults."""
        shown = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return shown if nonlinearity == "tanh" else f"{shown}, nonlinearity={nonlinearity}"


class _Cell(RNNCellBase, Generic[Next]):
    """Base of the cells with a recurrence of `RECURRENCES`, their `mode`."""

    mode: str

    def forward(self, input: Any, hx: Any = None) -> Next:
        """Map the input (batch, input_size) or (input_size) and a state to the next state; zeros by default."""
        kind = RECURRENCES[self.mode]
        state = self._state(input, hx, kind)
        weights = Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        out: Any = kind.step(weights)(project_input(kind, input, weights), state)
        return out if kind.states > 1 else out[0]

    def _state(self, input: Any, hx: Any, kind: Recurrence) -> State:
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(
                f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead: expected input of 1 or 2 "
                f"dimensions, got shape {input.shape}"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{name}: input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}: "
                f"expected input_size={self.input_size} features, got shape {input.shape}"
            )
        expected = (*input.shape[:-1], self.hidden_size)
        if hx is None:
            return (input.new_zeros(expected),) * kind.states
        given = tuple(hx) if kind.states > 1 else (hx,)
        for number, state in enumerate(given):
            if tuple(state.shape) != expected:
                said = f"expected a state of shape {expected}, got {state.shape}"
                if state.ndim not in (1, 2):
                    part = f"hx[{number}]" if kind.states > 1 else "hidden"
                    raise ValueError(f"{name}: Expected {part} to be 1D or 2D, got {state.ndim}D instead: {said}")
                raise RuntimeError(f"{name}: {_differing_size(state.shape, expected)}: {said}")
        return given


def _differing_size(shape: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """Return which size of a state differs."""
    if shape[-1] != expected[-1]:
        return f"hidden0 has inconsistent hidden_size: got {shape[-1]}, expected {expected[-1]}"
    batches = [math.prod(sizes[:-1]) for sizes in (expected, shape)]
    return f"Input batch size {batches[0]} doesn't match hidden0 batch size {batches[1]}"


class RNNCell(_Cell[Tensor]):
    """One step of an `RNN`: (batch, input_size) and (batch, hidden_size) to (batch, hidden_size).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> cell, h = nn.RNNCell(3, 4), rg.zeros(5, 4)
    >>> for x in rg.randn(7, 5, 3):
    ...     h = cell(x, h)
    >>> h.shape
    (5, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        mode = mode_of("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.mode, self.nonlinearity = mode, nonlinearity


class LSTMCell(_Cell[tuple[Tensor, Tensor]]):
    """One step of an `LSTM`: (batch, input_size) and the pair (h, c) to the next pair.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> h, c = nn.LSTMCell(3, 4)(rg.randn(5, 3))
    >>> h.shape, c.shape
    ((5, 4), (5, 4))
    """

    mode = "LSTM"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)


class GRUCell(_Cell[Tensor]):
    """One step of a `GRU`: (batch, input_size) and (batch, hidden_size) to (batch, hidden_size).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.GRUCell(3, 4)(rg.randn(5, 3)).shape
    (5, 4)
    """

    mode = "GRU"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)
