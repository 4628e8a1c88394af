"""Recurrent networks: RNN, LSTM and GRU over sequences."""

import math
from typing import Any, Generic, NamedTuple, TypeVar

from retrograd.core import Tensor, operator_named
from retrograd.foundation.source_location import warn_user
from retrograd.levels.autocast import casts_operands
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.nn.recurrence import (
    RECURRENCES,
    Recurrence,
    State,
    Weights,
    mode_of,
    project_input,
    run_layer,
    run_steps,
    supports_layer,
)
from retrograd.nn.settings import empty_parameter
from retrograd.nn.utils.rnn import PackedSequence, step_sizes

_argsort = operator_named("argsort")
_cat = operator_named("cat")
_index_select = operator_named("index_select")
_ones_like = operator_named("ones_like")
_stack = operator_named("stack")

Last = TypeVar("Last")  # the type of the last states: a tensor, or a pair for an LSTM


class _Batch(NamedTuple):
    """The rows of the input in the layout of the loop, and the number of sequences.

    `sizes`: the number of sequences in each step, if it varies; then rows are (rows, features), step after step, else
    (steps, sequences, features). `order`: the indices of the sorted sequences, and the inverse permutation.
    """

    rows: Any
    sequences: int
    sizes: list[int] | None = None
    order: tuple[Any, Any] | None = None

    def steps(self, x: Any) -> Any:
        return x.unbind(0) if self.sizes is None else x.split(self.sizes)

    def join(self, outputs: list[Any]) -> Any:
        return _stack(outputs) if self.sizes is None else _cat(outputs)


class RNNBase(Module, Generic[Last]):
    """Base of RNN, LSTM and GRU; `mode` is "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".

    >>> from retrograd import nn
    >>> nn.RNNBase("GRU", 3, 4, num_layers=2)
    RNNBase(3, 4, num_layers=2)
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if mode not in RECURRENCES:
            raise ValueError(f"{name}: mode must be one of {', '.join(RECURRENCES)}, got {mode!r}")
        for what, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if isinstance(size, float):
                raise TypeError(f"{name}: {what} should be of type int, got: float: {size}")
            if size < 1:
                raise ValueError(f"{name}: {what} must be greater than zero: must be at least 1, got {size}")
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                f"{name}: dropout should be a number in range [0, 1] representing the probability of an element being "
                f"zeroed; it is a probability, between 0 and 1, got {dropout}"
            )
        if dropout > 0 and num_layers == 1:
            warn_user(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}"
            )
        if not 0 <= proj_size < hidden_size or (proj_size and mode != "LSTM"):
            raise ValueError(
                f"{name}: proj_size must be less than hidden_size, {hidden_size}, and is for LSTM only, got {proj_size}"
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                self._register_weights(layer, suffix, device, dtype)
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"] if self.bidirectional else [f"_l{layer}"]

    def _register_weights(self, layer: int, suffix: str, device: Any, dtype: Any) -> None:
        gates = RECURRENCES[self.mode].gates * self.hidden_size
        out = self.proj_size or self.hidden_size
        width = self.input_size if layer == 0 else out * (1 + self.bidirectional)
        sizes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, width), "weight_hh": (gates, out)}
        if self.bias:
            sizes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            sizes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, size in sizes.items():
            self.register_parameter(f"{name}{suffix}", empty_parameter(True, size, device, dtype))

    def reset_parameters(self) -> None:
        """Reset all parameters to values uniform within ±1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """Return the parameters of each layer and direction."""
        layers = (self._weights(suffix) for layer in range(self.num_layers) for suffix in self._suffixes(layer))
        return [[weight for weight in weights if weight is not None] for weights in layers]

    def flatten_parameters(self) -> None:
        """Do nothing: on GPUs PyTorch moves the parameters into one block of memory, which the CPU does not need."""

    def _weights(self, suffix: str) -> Weights:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return Weights(*(getattr(self, name + suffix, None) for name in names))

    # -------------------------------------------------------------------------------------------- running it

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Last]:
        """Return the outputs of the last layer, in the input's layout, and the last states of all layers."""
        kind = RECURRENCES[self.mode]
        batched = isinstance(input, PackedSequence) or input.is_nested or input.ndim == 3
        batch = self._prepare_batch(input)
        first = self._initial_states(batch, hx, batched, kind)
        rows, last = self._run_layers(batch, first, kind)
        if batch.order is not None:
            last = tuple(_index_select(s, 1, batch.order[1]) for s in last)
        if not batched:
            last = tuple(s.squeeze(1) for s in last)
        states: Any = last if kind.states > 1 else last[0]
        return self._restore_layout(rows, input, batch), states

    def _run_layers(self, batch: _Batch, first: list[State], kind: Recurrence) -> tuple[Any, State]:
        x, lasts = batch.rows, []
        starts = iter(first)
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            outs = []
            for backwards, suffix in enumerate(self._suffixes(layer)):
                out, last = self._run_layer(batch, x, self._weights(suffix), next(starts), bool(backwards), kind)
                outs.append(out)
                lasts.append(last)
            x = outs[0] if len(outs) == 1 else _cat(outs, -1)
        if len(lasts) == 1:
            return x, tuple([state.unsqueeze(0) for state in lasts[0]])
        return x, tuple([_stack(states) for states in zip(*lasts, strict=True)])

    def _run_layer(
        self, batch: _Batch, x: Any, weights: Weights, first: State, backwards: bool, kind: Recurrence
    ) -> tuple[Any, State]:
        """Return the outputs and the last states of one layer in one direction: by one operator, or step by step."""
        if supports_layer(x, weights, first):
            return run_layer(self.mode, x, weights, first, batch.sizes, backwards)
        steps = batch.steps(project_input(kind, x, weights))
        outputs, last = run_steps(kind.step(weights), steps, first, backwards)
        return batch.join(outputs), last

    def _prepare_batch(self, input: Any) -> _Batch:
        if isinstance(input, PackedSequence):
            self._check_input(input.data)
            sizes = input.batch_sizes.tolist()
            order = None if input.sorted_indices is None else (input.sorted_indices, input.unsorted_indices)
            return _Batch(input.data, sizes[0], sizes, order)
        name = type(self).__name__
        if input.ndim not in (2, 3) or (input.is_nested and input.ndim != 3):
            raise ValueError(
                f"{name}: expected input of 2 or 3 dimensions, or nested of 3, got shape {input.shape}; {name}: "
                f"Expected input to be 2D or 3D, got {input.ndim}D instead"
            )
        self._check_input(input)
        if input.is_nested:
            return _pack_nested(input)
        rows = input.unsqueeze(1) if input.ndim == 2 else input.transpose(0, 1) if self.batch_first else input
        if not rows.shape[0]:
            raise RuntimeError(f"{name}: the sequences have no steps: shape {input.shape}")
        return _Batch(rows, rows.shape[1])

    def _check_input(self, x: Any) -> None:
        if x.dtype != (dtype := self.weight_ih_l0.dtype) and not casts_operands():
            raise ValueError(f"RNN input dtype ({x.dtype}) does not match weight dtype ({dtype}); convert one by .to()")
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{type(self).__name__}: input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{x.shape[-1]}: expected input_size={self.input_size} features, got shape {x.shape}"
            )

    def _initial_states(self, batch: _Batch, hx: Any, batched: bool, kind: Recurrence) -> list[State]:
        """Return the initial states of each layer and direction, (sequences, size), in the sorted sequences' order."""
        layers = self.num_layers * (1 + self.bidirectional)
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[: kind.states]
        if hx is None:
            h = batch.rows.new_zeros(batch.sequences, widths[0])
            c = h if widths[0] == widths[-1] else batch.rows.new_zeros(batch.sequences, widths[-1])
            return [(h, c)[: kind.states]] * layers
        given = tuple(hx) if kind.states > 1 else (hx,)
        names = ("h_0", "c_0")
        for name, state, width in zip(names, given, widths, strict=False):
            expected = (layers, batch.sequences, width) if batched else (layers, width)
            if tuple(state.shape) != expected:
                what = "hidden" if kind.states == 1 else f"hidden[{names.index(name)}]"
                raise RuntimeError(
                    f"{type(self).__name__}: Expected {what} size {expected}, got {list(state.shape)}: expected {name} "
                    f"of shape {expected}, got {state.shape}"
                )
        given = given if batched else tuple(s.unsqueeze(1) for s in given)
        given = given if batch.order is None else tuple(_index_select(s, 1, batch.order[0]) for s in given)
        return list(zip(*(s.unbind(0) for s in given), strict=True))

    def _restore_layout(self, rows: Any, input: Any, batch: _Batch) -> Any:
        if isinstance(input, PackedSequence):
            return input._replace(data=rows)
        if input.is_nested:
            return _unpack_nested(rows, input)
        if input.ndim == 2:
            return rows.squeeze(1)
        return rows.transpose(0, 1) if self.batch_first else rows

    def extra_repr(self) -> str:
        """Return the sizes, and the settings that differ from the defaults."""
        shown = [str(self.input_size), str(self.hidden_size)]
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        defaults |= {"bidirectional": False}
        shown += [f"{k}={getattr(self, k)}" for k, v in defaults.items() if getattr(self, k) != v]
        return ", ".join(shown)


# ------------------------------------------------------------------------------------------ nested sequences


def _step_numbers(x: Any) -> Any:
    """Return the step of each row of a nested tensor in its sequence, from 1: nested integers (sequences, j)."""
    return _ones_like(x.detach().select(-1, 0), dtype="int64").cumsum(1)


def _packing_order(x: Any) -> tuple[Any, list[int], Any]:
    """Return the row indices of packed sequences in a nested tensor; the lengths; the sequences' ranks."""
    steps = _step_numbers(x)
    lengths = (steps * 0 + 1).sum(1)
    longest_first = _argsort(-lengths, stable=True)
    ranks = _argsort(longest_first)
    keys = steps * lengths.shape[0] + ranks.unsqueeze(1)
    return _argsort(keys.values()), lengths.tolist(), (longest_first, ranks)


def _pack_nested(x: Any) -> _Batch:
    """Pack the sequences of a nested tensor (sequences, j, features)."""
    x = x.contiguous()
    rows, lengths, order = _packing_order(x)
    sizes = step_sizes(sorted(lengths, reverse=True))
    return _Batch(_index_select(x.values(), 0, rows), len(lengths), sizes, order)


def _unpack_nested(rows: Any, x: Any) -> Any:
    """Return packed rows as a nested tensor with the offsets of x."""
    x = x.contiguous()
    rows = _index_select(rows, 0, _argsort(_packing_order(x)[0]))
    numbers = _step_numbers(x) - 1 + x.offsets()[:-1].unsqueeze(1)
    return F.embedding(numbers, rows)


# -------------------------------------------------------------------------------------------------- networks


class RNN(RNNBase[Tensor]):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), or relu: Elman, Cognitive Science 14 (1990).

    Input (steps, batch, input_size), or (batch, steps, input_size) if `batch_first`, or (steps, input_size); a
    `PackedSequence`; or a nested tensor (batch, j, input_size). The first state, zeros unless given, is (layers, batch,
    hidden_size), with twice the layers if `bidirectional`. Returns the outputs of the last layer, in the input's layout
    with both directions concatenated, and the last state. `dropout` acts on the outputs of all layers except the last.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> rnn = nn.RNN(3, 4, num_layers=2, batch_first=True)
    >>> out, h = rnn(rg.randn(5, 7, 3))
    >>> out.shape, h.shape
    ((5, 7, 4), (2, 5, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        mode = mode_of("RNN", nonlinearity)
        super().__init__(
            mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )

    @property
    def nonlinearity(self) -> str:
        """The name of the function: "tanh" or "relu"."""
        return self.mode.removeprefix("RNN_").lower()


class LSTM(RNNBase[tuple[Tensor, Tensor]]):
    """Long short-term memory: Hochreiter and Schmidhuber, Neural Computation 9 (1997).

    c_t = f c_(t-1) + i g and h_t = o tanh(c_t); the gates i, f, o are sigmoids, and g a tanh, of W_ih x_t + W_hh
    h_(t-1) and biases. Layouts are those of `RNN`; the state is a pair (h, c). With `proj_size`, h is W_hr times that
    and has that size: Sak et al., arXiv 1402.1128.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> out, (h, c) = nn.LSTM(3, 4, bidirectional=True)(rg.randn(7, 5, 3))
    >>> out.shape, h.shape, c.shape
    ((7, 5, 8), (2, 5, 4), (2, 5, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            *("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size),
            device,
            dtype,
        )


class GRU(RNNBase[Tensor]):
    """Gated recurrent units: Cho et al., EMNLP 2014, the reset gate after the product, as in PyTorch and cuDNN.

    h_t = (1 - z) n + z h_(t-1), n = tanh(W_in x_t + b_in + r (W_hn h_(t-1) + b_hn)), with sigmoids r and z. Layouts are
    those of `RNN`.

    >>> import retrograd as rg
    >>> from retrograd import nested, nn
    >>> sentences = nested.nested_tensor([rg.randn(4, 3), rg.randn(2, 3)])
    >>> out, h = nn.GRU(3, 5)(sentences)
    >>> out.shape, h.shape
    ((2, j, 5), (1, 2, 5))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )
