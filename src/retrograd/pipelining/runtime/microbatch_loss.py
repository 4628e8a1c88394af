"""The losses of a step's microbatches, their weights, and the gradients that they give to the model's inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from retrograd import autograd
from retrograd.core import Tensor, registry
from retrograd.core.blocks import generator_block
from retrograd.foundation.describe_value import describe
from retrograd.pipelining.microbatch import MicroBatch, element_shares
from retrograd.pipelining.split.capture_cache import Captured
from retrograd.pipelining.split.manual_stages import AnyPipe


@generator_block
def note_missing_target(call: str, loss_fn: Any, target: Any, keyword: str = "target") -> Iterator[None]:
    """Return a block whose errors get a note with the keyword of the target, if there is a loss and no target."""
    try:
        yield
    except Exception as error:
        if target is None and loss_fn:
            step = call.rpartition(".")[2]
            error.add_note(f"{call}: no target was given; its keyword is {keyword}=: {step}(x, {keyword}=y)")
        raise


class MicroBatchLoss(NamedTuple):
    """The loss of each microbatch: what the last stage calls with the number of one and its outputs."""

    loss_fn: Callable[[Any, Any], Tensor] | None
    pipes: Sequence[AnyPipe]
    targets: Sequence[Any]
    shares: Sequence[float]

    def __call__(self, micro_batch: int, outputs: dict[str, Any]) -> Tensor:
        """Return the loss of one microbatch; ValueError if it is not a 0-d tensor."""
        pipe = self.pipes[micro_batch]
        if self.loss_fn is None:
            value, what = outputs[str(pipe.loss_name)], "the model's loss"
        else:
            value, what = self.loss_fn(pipe.restored_output(outputs), self.targets[micro_batch]), "loss_fn's result"
        if not isinstance(value, Tensor) or value.ndim:
            raise ValueError(f"{what} must be a 0-d tensor, got {describe(value)}")
        return value if self.shares[micro_batch] else _zero_loss(outputs)

    def mean(self, losses: Mapping[int, Tensor]) -> Tensor:
        """Return the loss of the batch from those of all microbatches."""
        weighted = [losses[number] * share for number, share in enumerate(self.shares)]
        return sum(weighted[1:], start=weighted[0])


def _zero_loss(outputs: Mapping[str, Any]) -> Tensor:
    """Return a zero loss for a microbatch of weight 0: its mean over no elements would be NaN."""
    parts = [(out * 0).sum() for out in outputs.values() if isinstance(out, Tensor) and out.requires_grad]
    return sum(parts, start=registry["zeros"](()))


class LossWeights(NamedTuple):
    """How microbatches are weighted in the loss: the arguments `loss_reduction` and `count_fn` of a `Pipeline`."""

    reduction: str
    count_fn: Callable[[Any], float] | None

    def of(self, batches: Sequence[MicroBatch], targets: Sequence[Any]) -> list[float]:
        """Return the weight of each microbatch; ValueError for counts that are no numbers of elements."""
        if self.reduction == "sum":
            return [1.0] * len(batches)
        if self.count_fn is None:
            return element_shares(targets) or [batch.weight for batch in batches]
        counts = [float(self.count_fn(target)) for target in targets]
        if not sum(counts) > 0 or min(counts) < 0:
            raise ValueError(f"Pipeline: count_fn must return numbers of elements, some above 0; it returned {counts}")
        return [count / sum(counts) for count in counts]


def backward_to_inputs(captured: Sequence[Captured], batches: Sequence[MicroBatch], gradients: Mapping) -> None:
    """Continue the backward pass from the model's inputs into the graphs they come from."""
    pairs: list[tuple[Tensor, Tensor]] = []
    for i, (one, batch) in enumerate(zip(captured, batches, strict=True)):
        inputs = one.pipe.named_inputs(batch.args, batch.kwargs)
        for key in sorted([key for key in gradients if key[0] == i], reverse=True):  # the last stage first
            pairs += [(inputs[name], part) for name, part in gradients[key].items()]
    if pairs:
        autograd.backward([tensor for tensor, _ in pairs], [part for _, part in pairs])
