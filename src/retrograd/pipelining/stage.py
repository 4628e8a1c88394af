"""One stage of a pipeline: it runs micro-batches forward and backward and knows nothing of ranks or schedules."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.pipelining.backward import stage_backward


class Value(NamedTuple):
    """A value that a stage takes: its name, and the stage that makes it (None: an input of the model)."""

    name: str
    stage: int | None


class PipelineStage:
    """A part of a model, with what it takes from other stages and what it gives to them.

    module: called with the `inputs` in order; returns a tuple, the `outputs` in order.
    num_stages, device, group: the pipeline that it is part of, where it is, and the ranks that run the pipeline, where
        that is known.
    """

    def __init__(
        self,
        module: Callable[..., tuple[Any, ...]],
        index: int,
        inputs: tuple[Value, ...],
        outputs: tuple[str, ...],
        *,
        num_stages: int | None = None,
        device: Any = None,
        group: Any = None,
    ) -> None:
        self.module = module
        self.index = index
        self.inputs = inputs
        self.outputs = outputs
        self.num_stages = num_stages
        self.device = device
        self.group = group
        self._running: dict[int, _Run] = {}

    def __repr__(self) -> str:
        taken = ", ".join(f"{v.name}{'' if v.stage is None else f' from {v.stage}'}" for v in self.inputs)
        return f"PipelineStage({self.index}: {taken} -> {', '.join(self.outputs)})"

    @property
    def sources(self) -> list[int]:
        """The stages whose values this one takes."""
        return sorted({v.stage for v in self.inputs if v.stage is not None})

    def parameters(self) -> list[Tensor]:
        """The parameters that this stage uses."""
        return list(self.module.parameters())  # type: ignore[attr-defined]

    def forward(self, micro_batch: int, values: Mapping[str, Any], *, keep: bool = True) -> dict[str, Any]:
        """Run a micro-batch forward; `keep` what its backward needs.  The outputs are outside every graph."""
        taken = [_boundary(values[v.name], v.stage is not None and keep) for v in self.inputs]
        with autograd.set_grad_enabled(keep):
            made = dict(zip(self.outputs, self.module(*taken), strict=True))
        if keep:
            self._running[micro_batch] = _Run(taken, made)
        return {name: _Passed.of(value) for name, value in made.items()}

    def attach(self, micro_batch: int, loss: Callable[[dict[str, Any]], Tensor]) -> Tensor:
        """Compute the loss from the kept outputs, which it replaces as what backward starts from."""
        run = self._running[micro_batch]
        with autograd.enable_grad():
            value = loss(run.made)
        self._running[micro_batch] = _Run(run.taken, {"loss": value})
        return value.detach()

    def backward(self, micro_batch: int, gradients: Mapping[str, Tensor | None]) -> dict[str, Tensor | None]:
        """Run a micro-batch backward: gradients by output name in, gradients by input name out."""
        run = self._running.pop(micro_batch)
        grads = stage_backward(tuple(run.made.values()), tuple(gradients.get(n) for n in run.made), run.taken)
        return {v.name: g for v, g in zip(self.inputs, grads, strict=True) if v.stage is not None}

    def forget(self) -> None:
        """Drop what an interrupted step has left."""
        self._running.clear()


class _Run(NamedTuple):
    taken: list[Any]
    made: dict[str, Any]


class _Passed(NamedTuple):
    """A value on its way to another stage: outside every graph, with word of whether a gradient shall return."""

    value: Any
    requires_grad: bool

    @staticmethod
    def of(value: Any) -> "_Passed":
        if not isinstance(value, Tensor):
            return _Passed(value, False)
        return _Passed(value.detach(), value.requires_grad)


def _boundary(value: Any, from_stage: bool) -> Any:
    """The value as a leaf of this stage's graph, one per micro-batch; it requires grad if its maker's did."""
    if not isinstance(value, _Passed):
        return value.detach() if isinstance(value, Tensor) else value
    if not isinstance(value.value, Tensor):
        return value.value
    leaf = value.value.detach()
    leaf.requires_grad = value.requires_grad and from_stage
    return leaf
