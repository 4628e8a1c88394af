"""One stage of a pipeline: runs microbatches forward and backward, independent of ranks and schedules."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.core.device import array_devices
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.nn import Parameter
from retrograd.ops.layout import array_device, find_device, making_on, place
from retrograd.pipelining.microbatch import tensors_in
from retrograd.pipelining.runtime.offload import OffloadableRun
from retrograd.pipelining.runtime.repeated_forward import BufferStates, InputVersions, restored, saving_nothing
from retrograd.pipelining.runtime.split_backward import input_gradients, stage_backward_weight
from retrograd.pipelining.runtime.stage_backward import drop_missing_gradients, stage_backward
from retrograd.pipelining.schedules.lowering import chain
from retrograd.pipelining.transports.process_group import group_or_default


class Value(NamedTuple):
    """An input of a stage: its name, and the stage that produces it (None: an input of the model)."""

    name: str
    stage: int | None


class PipeliningMetadataError(RuntimeError):
    """A stage's tensors differ in shape or dtype from those that were declared for it."""


class PipelineStageBase:
    """A part of a model, with its inputs from other stages and its outputs: runs forward and backward by microbatch.

    submodule: called with the `inputs` in order; returns a tuple, the `outputs` in order.
    stage_index, num_stages: its number and the pipeline's.  device, group: of the stage, and the process group that
     runs the pipeline; None: the default group.
    dw_builder: see `PipelineStage`.

    `output_chunks` has the results of the last stage in the last step, by microbatch.

    Subclasses define `inputs` and `outputs`, and `carried` unless the stages are a chain.  The attributes are named as
    in PyTorch.
    """

    def __init__(
        self,
        submodule: Any,
        stage_index: int,
        num_stages: int,
        device: Any = None,
        group: Any = None,
        dw_builder: Callable[[], Callable[..., Any]] | None = None,
    ) -> None:
        if not isinstance(stage_index, int) or stage_index not in range(num_stages):
            raise ValueError(f"Stage index {stage_index!r} is out of range of {num_stages} stages")
        self.replace_submodule(submodule)
        self.stage_index = stage_index
        self.num_stages = num_stages
        self.device = device
        self.group = group
        self.has_backward = False
        self.dw_builder = dw_builder
        self.forget_step()

    def forget_step(self) -> None:
        """Begin with no state of a step, and no results of the last one."""
        self._runs: dict[int, _Run] = {}
        self._repetitions: dict[int, _Repetition] = {}  # the forward passes that will be repeated
        self._buffer_states: BufferStates | None = None
        self._offloadable: dict[int, OffloadableRun] = {}  # the forward passes that are or will be offloaded
        self.output_chunks: list[Any] = []
        self._local_inputs: dict[int, tuple[Any, ...]] = {}
        self._local_gradients: dict[int, tuple[Tensor | None, ...]] = {}
        self._input_gradients: dict[int, tuple[Tensor | None, ...]] = {}
        self._pending_weights: dict[int, Callable[[], Any]] = {}  # the weight halves

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Return the values that the stage takes."""
        raise NotImplementedError

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the values that the stage returns."""
        raise NotImplementedError

    def carried(self) -> Mapping[tuple[int, int], Sequence[str] | None]:
        """Return the names of the values on each edge of the pipeline's stages; None for all outputs of a stage.

        By default the stages are a chain, in which each sends all its outputs to the next.
        """
        return dict.fromkeys(chain(self.num_stages))

    @cached_property
    def group_size(self) -> int:
        """The number of ranks of the stage's group."""
        return group_or_default(self.group).size()

    @cached_property
    def group_rank(self) -> int:
        """The rank of this process in the stage's group."""
        return group_or_default(self.group).rank()

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """Do nothing: called where an order has REDUCE_GRAD, for stages that sum gradients over replicas to override.

        grad_scale_factor: the number of microbatches by which the gradients were divided, 1 if they were not.
        """

    @property
    def log_prefix(self) -> str:
        """Return the beginning of messages about this stage."""
        return f"[Stage {self.stage_index}]"

    def __repr__(self) -> str:
        taken = ", ".join(f"{v.name}{'' if v.stage is None else f' from {v.stage}'}" for v in self.inputs)
        return f"{type(self).__name__}({self.stage_index}: {taken} -> {', '.join(self.outputs)})"

    @property
    def is_first(self) -> bool:
        """Return whether this is the pipeline's first stage."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Return whether this is the pipeline's last stage."""
        return self.stage_index == self.num_stages - 1

    @property
    def sources(self) -> list[int]:
        """Return the stages whose values this one uses."""
        return sorted({v.stage for v in self.inputs if v.stage is not None})

    def parameters(self) -> list[Tensor]:
        """Return the parameters that this stage uses."""
        return list(self.submod.parameters())

    def model_inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model's own inputs among the arguments of a microbatch, by name."""
        raise NotImplementedError

    def result(self, outputs: Mapping[str, Any]) -> Any:
        """Return the result of the last stage from its outputs by name: one value, or several as a tuple."""
        values = [outputs[name] for name in self.outputs]
        return values[0] if len(values) == 1 else tuple(values)

    def _ordered_inputs(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the inputs in order; ValueError names those that this rank was not given."""
        missing = [v.name for v in self.inputs if v.name not in values]
        if missing:
            raise ValueError(
                f"stage {self.stage_index} takes the model's input {', '.join(map(repr, missing))}, which this rank "
                f"was not given; pass it to step() here, too, by name"
            )
        return [values[v.name] for v in self.inputs]

    def replace_submodule(self, submodule: Any) -> None:
        """Run another module, which is not compiled."""
        self.submod = submodule
        self._compiled: Any = None
        self._aliases: dict[str, tuple[Any, Parameter]] = {}  # with the array of the parameter

    def compile(self) -> None:
        """Run the submodule by `rg.compile` from now on: forward passes, backward passes and their halves."""
        self._compiled = lazy_module("retrograd.compiler").compile(self.submod)

    def alias_of(self, name: str, parameter: Tensor) -> Parameter:
        """Return a parameter with the same memory and a `.grad` of its own, the same one in each step.

        Compiled stages have programs for the parameters that they were captured with.
        """
        array, alias = self._aliases.get(name, (None, None))
        if alias is None or array is not parameter.value or alias.requires_grad != parameter.requires_grad:
            alias = Parameter(parameter.detach(), parameter.requires_grad)
            self._aliases[name] = parameter.value, alias
        alias.grad = None
        return alias

    def _run_submodule(self, taken: Sequence[Any]) -> tuple[Any, ...]:
        """Run the submodule on its inputs in order; return its outputs in order."""
        module = self.submod if self._compiled is None else self._compiled
        if not array_devices or self.device is None:
            found: tuple[Any, ...] = module(*taken)
            return found
        with making_on(find_device(self.device)):  # a captured graph names no device
            return module(*taken)

    def forward(self, micro_batch: int, values: Mapping[str, Any], *, keep: bool = True) -> dict[str, Any]:
        """Run a microbatch forward and return detached outputs; `keep` saves what backward needs."""
        inputs = [_as_stage_leaf(value, keep, self.device) for value in self._ordered_inputs(values)]
        with autograd.set_grad_enabled(keep):
            found = self._run_submodule(inputs)
            outputs = dict(zip(self.outputs, found, strict=True))
        if keep:
            self._runs[micro_batch] = _Run(inputs, outputs)
        return {name: StageMessage.of(value) for name, value in outputs.items()}

    @generator_block
    def keep_inputs_only(self, micro_batch: int, values: Mapping[str, Any]) -> Iterator[None]:
        """Keep only the inputs of the forward pass in the block; `repeating` runs it once more."""
        versions = InputVersions(map(_value_of, self._ordered_inputs(values)))
        if self._buffer_states is None:
            self._buffer_states = BufferStates(self.submod)
        buffers = self._buffer_states.record()
        with saving_nothing():
            yield
        run = self._runs.pop(micro_batch)
        self._repetitions[micro_batch] = _Repetition(run.inputs, versions, buffers)

    @generator_block
    def repeating(self, micro_batch: int) -> Iterator[None]:
        """Repeat a forward pass of `keep_inputs_only` and save what backward needs; `attach` in the block."""
        inputs, versions, buffers = self._repetitions.pop(micro_batch)
        versions.check()
        with restored(buffers):
            with autograd.enable_grad():
                found = self._run_submodule(inputs)
            self._runs[micro_batch] = _Run(inputs, dict(zip(self.outputs, found, strict=True)))
            yield

    @generator_block
    def refusing_writes(self) -> Iterator[None]:
        """Run a forward pass of a stage of two ranks, whose buffers would differ if it wrote to them.

        Raises ValueError if it has, and restores them.
        """
        if self._buffer_states is None:
            self._buffer_states = BufferStates(self.submod)
        buffers = self._buffer_states.record()
        yield
        written = [buffer for buffer in buffers if not buffer.is_current()]
        for buffer in written:
            buffer.restore()
        if written:
            raise ValueError(
                f"the forward pass writes to the buffer {written[0].name!r}; in two directions, the two ranks of a "
                f"stage would have different ones, so use a schedule in one direction, or set the module to eval()"
            )

    @generator_block
    def prepare_offload(self, micro_batch: int) -> Iterator[None]:
        """Record what the forward pass in the block saves, for `offload`."""
        saved = OffloadableRun()
        with saved.recording():
            yield
        self._offloadable[micro_batch] = saved

    def offload(self, micro_batch: int) -> None:
        """Move what a forward pass has saved to a file, except parameters, buffers, inputs, outputs and the target."""
        run = self._runs[micro_batch]
        others = [
            *run.inputs,
            *run.outputs.values(),
            *tensors_in(run.target),
            *self.parameters(),
            *self.submod.buffers(),
        ]
        self._offloadable[micro_batch].offload(others)

    def fetch(self, micro_batch: int) -> None:
        """Move back what `offload` has moved."""
        self._offloadable.pop(micro_batch).fetch()

    def attach(self, micro_batch: int, loss: Callable[[dict[str, Any]], Tensor], target: Any = None) -> Tensor:
        """Compute the loss from the stored outputs, by the target; backward then starts from it."""
        run = self._runs[micro_batch]
        with autograd.enable_grad():
            value = loss(run.outputs)
        # The backward pass of this microbatch now starts from the loss only.
        self._runs[micro_batch] = _Run(run.inputs, {"loss": value}, target)
        return value.detach()

    def backward(self, micro_batch: int, gradients: Mapping[str, Tensor | None]) -> dict[str, Tensor | None]:
        """Run a microbatch backward: map gradients by output name to gradients by input name."""
        found = self._full_backward(micro_batch, gradients)
        if self.dw_builder is not None:
            self.dw_builder()()
        return found

    def _full_backward(self, micro_batch: int, gradients: Mapping[str, Tensor | None]) -> dict[str, Tensor | None]:
        run = self._runs.pop(micro_batch)
        grads = stage_backward(*_backward_roots(run, gradients), run.inputs)
        return self._by_input_name(grads)

    def backward_input(self, micro_batch: int, gradients: Mapping[str, Tensor | None]) -> dict[str, Tensor | None]:
        """Compute the input gradients of `backward`; `backward_weight` computes those of the parameters."""
        if self.dw_builder is not None:  # the submodule's own backward postpones the weights
            found = self._full_backward(micro_batch, gradients)
            self._pending_weights[micro_batch] = self.dw_builder()
            return found
        run = self._runs.pop(micro_batch)
        outputs, seeds = _backward_roots(run, gradients)
        grads, groups = input_gradients(outputs, seeds, run.inputs, self.parameters())
        # W may run much later; until then the groups hold the saved tensors that it needs.
        self._pending_weights[micro_batch] = lambda: stage_backward_weight(self.parameters(), groups)
        return self._by_input_name(grads)

    def backward_weight(self, micro_batch: int) -> None:
        """Accumulate the parameter gradients that `backward_input` left out."""
        self._pending_weights.pop(micro_batch)()

    def _by_input_name(self, grads: Sequence[Tensor | None]) -> dict[str, Tensor | None]:
        return {v.name: g for v, g in zip(self.inputs, grads, strict=True)}

    def clear_step(self) -> None:
        """Drop the state of an interrupted step."""
        for stored in (self._runs, self._pending_weights, self._local_inputs, self._local_gradients):
            stored.clear()
        self._input_gradients.clear()
        self._repetitions.clear()
        self._buffer_states = None
        for run in self._offloadable.values():
            run.close()
        self._offloadable.clear()

    @property
    def fwd_cache(self) -> Mapping[int, Any]:
        """Return the forward passes by microbatch whose backward pass has not run."""
        return self._runs

    def clear_runtime_states(self) -> None:
        """Drop the state of an interrupted step, and the results of the last one."""
        self.clear_step()
        self.output_chunks.clear()


class _Run(NamedTuple):
    inputs: list[Any]
    outputs: dict[str, Any]
    target: Any = None  # of the loss


class _Repetition(NamedTuple):
    inputs: list[Any]
    versions: InputVersions
    buffers: Sequence[Any]


def _backward_roots(run: _Run, gradients: Mapping[str, Tensor | None]) -> tuple[list[Any], list[Any]]:
    """Return the outputs that backward starts from, and their gradients, which may come from another device."""
    moved = (_on_device_of(out, gradients.get(name)) for name, out in run.outputs.items())
    return drop_missing_gradients(run.outputs.values(), moved)


def _on_device_of(out: Any, gradient: Tensor | None) -> Tensor | None:
    return gradient if gradient is None or not array_devices else place(gradient, array_device(out))


class StageMessage(NamedTuple):
    """A detached value sent to another stage, and whether a gradient must come back."""

    value: Any
    requires_grad: bool

    @staticmethod
    def of(value: Any) -> "StageMessage":
        """Return the message for a value that a stage produced."""
        if not isinstance(value, Tensor):
            return StageMessage(value, False)
        return StageMessage(value.detach(), value.requires_grad)


def _value_of(value: Any) -> Any:
    """Return a value that may be in a message."""
    return value.value if isinstance(value, StageMessage) else value


def _as_stage_leaf(value: Any, keep: bool, device: Any) -> Any:
    """Return the value as a leaf of this stage's graph, one per microbatch; it requires grad as in its producer.

    It is on the stage's device; None leaves it where it is.
    """
    message = value if isinstance(value, StageMessage) else StageMessage.of(value)
    if not isinstance(message.value, Tensor):
        return message.value
    leaf = message.value.detach()
    if array_devices and device is not None:
        leaf = place(leaf, find_device(device))
    leaf.requires_grad = message.requires_grad and keep
    return leaf
