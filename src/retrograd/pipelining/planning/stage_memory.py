"""Measure the bytes that a stage holds for a microbatch: after the forward, and between the halves of its backward."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from retrograd import autograd
from retrograd.core import GradFn, Tensor, registry
from retrograd.core.engine import edge_of, reachable_from
from retrograd.pipelining.microbatch import tensors_in
from retrograd.pipelining.planning.operator_cost import memory_of
from retrograd.pipelining.runtime.split_backward import input_gradients
from retrograd.pipelining.runtime.stage import PipelineStageBase
from retrograd.pipelining.split.manual_stages import AnyPipe


class StageMemory(NamedTuple):
    """The bytes that a stage holds for one microbatch.

    saved: from its forward to its backward pass or the input half of it: saved tensors, those of the loss too, inputs
     from other stages, and outputs, from which the backward pass starts.
    kept: between the two halves: what the weight half reads, with the gradients that it starts from.
    inputs: the inputs from other stages, which is all that a stage keeps that recomputes.
    outputs: the outputs, which a stage keeps that offloads, besides its inputs.
    """

    saved: int
    kept: int
    inputs: int
    outputs: int

    @property
    def moved_bytes(self) -> int:
        """Return the bytes that a stage offloads: all but its inputs and outputs."""
        return self.saved - self.inputs - self.outputs


def measure_memory(
    pipe: AnyPipe, inputs: Mapping[str, Any], loss: Callable[[dict[str, Any]], Tensor], target: Any = None
) -> list[StageMemory]:
    """Return the memory of each stage, from a forward pass of a microbatch and the input half of each stage's backward.

    inputs: the model's own inputs by name.  loss: maps the last stage's outputs to the loss, by the target.
    Parameters, buffers, the model's own inputs and the target do not count.  Memory that several values share counts
    once.

    >>> import retrograd as rg
    >>> from retrograd.pipelining.split.manual_stages import ManualPipe
    >>> pipe = ManualPipe([rg.nn.Linear(8, 8), rg.nn.Tanh()], (rg.ones(4, 8),), {})
    >>> for stage in measure_memory(pipe, pipe.named_inputs((rg.ones(4, 8),), {}), lambda out: out["stage_1_0"].sum()):
    ...     print(stage)
    StageMemory(saved=128, kept=128, inputs=0, outputs=128)
    StageMemory(saved=260, kept=0, inputs=128, outputs=4)
    """
    values: dict[str, Any] = dict(inputs)
    found = []
    for stage in pipe.stages:
        outputs = stage.forward(0, values)
        if stage.is_last:
            stage.attach(0, loss)
        values.update(outputs)
        found.append(_memory_of(stage, [*inputs.values(), target]))
        stage.clear_step()
    return found


def _memory_of(stage: PipelineStageBase, given: Iterable[Any]) -> StageMemory:
    run = stage.fwd_cache[0]
    own = [*given, *stage.submod.parameters(), *stage.submod.buffers()]
    external = {memory_of(tensor)[0] for tensor in tensors_in(own)}
    outputs = [out for out in tensors_in(run.outputs) if out.requires_grad]
    with autograd.enable_grad():
        held = [*tensors_in(run.inputs), *tensors_in(run.outputs)]
        saved = _total(external, [*held, *_saved(edge_of(out)[0] for out in outputs)])
        seeds = [registry["ones_like"](out.detach()) for out in outputs]
        _, groups = input_gradients(outputs, seeds, run.inputs, stage.parameters())
        ends = [end for group in groups for end in group["intermediates"]]
        gradients = [g for group in groups for grads in group["grads"] for g in grads if g is not None]
        kept = _total(external, [*gradients, *_saved(ends)])
    stay = _total(external, tensors_in(run.inputs))
    return StageMemory(saved, kept, stay, _total(external, held) - stay)


def _saved(ends: Iterable[Any]) -> Iterator[Tensor]:
    """Yield the tensors that are saved in the graph of these nodes; leaves have none."""
    for fn in reachable_from([end for end in ends if isinstance(end, GradFn)]):
        if isinstance(fn, GradFn):
            for value in fn.saved or ():
                yield from _tensors_of(value)


def _tensors_of(saved: Any) -> Iterator[Tensor]:
    """Yield the tensors of a saved value: of a tensor, of one behind hooks, and of the members of a list."""
    if isinstance(saved, tuple):
        for member in saved:
            yield from _tensors_of(member)
    else:
        yield from tensors_in(saved.unpack() if hasattr(saved, "unpack") else saved)


def _total(external: set[int], tensors: Iterable[Tensor]) -> int:
    """Return the bytes of tensors without those in external memory."""
    sizes = dict(map(memory_of, tensors))
    return sum(size for key, size in sizes.items() if key not in external)
