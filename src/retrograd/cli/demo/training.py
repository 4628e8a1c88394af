"""Training: steps through the pipeline, which can resume after any of them."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import retrograd as rg
from retrograd import Tensor
from retrograd.cli.demo.data import Digits, batches, batches_per_epoch
from retrograd.cli.demo.model import DigitReader, split_spec
from retrograd.nn import functional as F
from retrograd.optim import AdamW
from retrograd.optim.lr_scheduler import OneCycleLR
from retrograd.pipelining import Pipeline

BATCH = 180
EPOCHS = 10
LEARNING_RATE, WARM_UP, WEIGHT_DECAY = 3e-3, 0.15, 1.0


class Settings(NamedTuple):
    """The user's settings; None takes epochs and seed from the checkpoint, or the defaults."""

    stages: int
    micro_batches: int
    schedule: str
    epochs: int | None
    seed: int | None
    output: Path
    resume: bool = False
    quiet: bool = False
    compile: bool = False


class History(NamedTuple):
    """The loss of every step, and the test accuracy after every epoch."""

    losses: list[float]
    accuracies: list[float]


class Trainer:
    """A model in training: `step` by `step` until `remaining` is 0.

    The number of losses in the history is the number of steps done; with the seed it determines the next batch.
    """

    def __init__(self, settings: Settings, digits: Digits, epochs: int, seed: int) -> None:
        rg.manual_seed(seed)
        self.digits = digits
        self.seed = seed
        self.epochs = epochs
        self.history = History([], [])
        self.model = DigitReader()
        self.optimizer = AdamW(self.model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
        self.pipeline = Pipeline(
            self.model,
            settings.stages,
            schedule=settings.schedule,
            micro_batches=settings.micro_batches,
            loss_fn=F.cross_entropy,
            split_spec=split_spec(settings.stages),
        )
        self._train_on = compiled_step(self.model, self.optimizer) if settings.compile else self._pipelined_step
        self.steps_per_epoch = batches_per_epoch(len(digits.train_y), BATCH)
        self.rates = self._rates()

    def _rates(self) -> OneCycleLR:
        """Return the learning rate schedule from the next step on."""
        total = self.epochs * self.steps_per_epoch + 1  # one more, since it sets the next rate after the last step
        return OneCycleLR(
            self.optimizer, LEARNING_RATE, total, pct_start=WARM_UP, cycle_momentum=False, last_epoch=self.done - 1
        )

    @property
    def done(self) -> int:
        """Return the number of finished steps."""
        return len(self.history.losses)

    @property
    def remaining(self) -> int:
        """Return the number of remaining steps."""
        return self.epochs * self.steps_per_epoch - self.done

    def resume_from(self, history: History) -> None:
        """Continue after that history; model and optimizer are loaded already."""
        self.history = history
        self.rates = self._rates()

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return scans and digits of the batch of a step."""
        epoch, number = divmod(step, self.steps_per_epoch)
        indices = batches(len(self.digits.train_y), BATCH, self.seed, epoch)[number]
        return self.digits.train_x[indices], self.digits.train_y[indices]

    def step(self) -> int:
        """Train on one batch, and test after the last of an epoch; return the batch's size."""
        x, y = self.batch(self.done)
        loss = self._train_on(x, y)
        self.rates.step()
        self.history.losses.append(loss.item())
        if self.done % self.steps_per_epoch == 0:
            self.history.accuracies.append(self.accuracy())
        return len(y)

    def _pipelined_step(self, x: Tensor, y: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss: Tensor = self.pipeline.step(x, target=y)
        self.optimizer.step()
        return loss

    def accuracy(self) -> float:
        """Return the test accuracy of the model, run through the pipeline."""
        scores = self.pipeline.predict(self.digits.test_x)
        return (scores.argmax(1) == self.digits.test_y).to(rg.float64).mean().item()

    def gradient_difference(self, step: int) -> float:
        """Return the difference between the pipeline's gradients and the unsplit model's, on the batch of a step.

        The largest difference of two entries, divided by the largest entry; without dropout.
        """
        self.model.eval()
        x, y = self.batch(step)
        split = self._gradients(lambda: self.pipeline.step(x, target=y))
        unsplit = self._gradients(lambda: F.cross_entropy(self.model(x), y).backward())
        self.model.train()
        largest = max(g.abs().max().item() for g in unsplit)
        return max((a - b).abs().max().item() for a, b in zip(split, unsplit, strict=True)) / largest

    def _gradients(self, backward: Callable[[], object]) -> list[Tensor]:
        self.optimizer.zero_grad()
        backward()
        gradients = [p.grad.clone() for p in self.model.parameters() if p.grad is not None]
        self.optimizer.zero_grad()
        return gradients


def compiled_step(model: DigitReader, optimizer: AdamW) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that trains the whole model on a batch, without the pipeline, and returns the loss."""

    @rg.compile
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled: Callable[[Tensor, Tensor], Tensor] = step
    return compiled
