"""Training scripts that one rank runs differently, for `test_agreement.py`.

As a script it plays all of them over the processes of a launcher, and rank 0 prints the outcomes of all ranks as JSON.
"""

import json
import sys
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import retrograd as rg
from retrograd import nn
from retrograd.pipelining import Pipeline
from retrograd.pipelining.transports import get_transport
from retrograd.pipelining.transports.interface import RankMismatchError

RANKS, ODD = 3, 1  # the rank that differs


class Settings(NamedTuple):
    """A script's settings: of the model, the pipeline, the data, and what it calls after the first step."""

    seed: int = 0
    model_seed: int = 0
    dropout: float = 0.5
    width: int = 8
    depth: int = 6
    scale: float = 1.0
    training: bool = True
    schedule: str = "1f1b"
    stages: int = 3
    micro_batches: int = 4
    loss_scale: float = 1.0
    loss_reduction: str = "mean"
    loss_fn: str = "huber_loss"
    delta: float = 1.0
    batch: int = 8
    order: int = 1
    dtype: str = "float32"
    target_order: int = 1
    then: str = "step"
    parameters: bool = False


USUAL = Settings()
# By what one rank does differently, its settings, and what the error says of it.
CASES = {
    "another seed": ({"seed": 1}, "generator state: "),
    "other initial parameters": ({"model_seed": 1}, "parameters: "),
    "another dropout rate": ({"dropout": 0.25}, "0.25)"),
    "another width": ({"width": 9}, "float32[9, 8]"),
    "another depth": ({"depth": 7}, "program: "),
    "another scalar argument": ({"scale": 2.0}, "argument 1: 1.0 on ranks 0, 2; 2.0 on rank 1"),
    "evaluation mode": ({"training": False}, "training: True on ranks 0, 2; False on rank 1"),
    "another schedule": ({"schedule": "gpipe"}, "schedule: 1f1b on ranks 0, 2; gpipe on rank 1"),
    "other numbers of microbatches": ({"micro_batches": 2}, "microbatches: 4 on ranks 0, 2; 2 on rank 1"),
    "another loss scale": ({"loss_scale": 2.0}, "loss_scale: 1.0 on ranks 0, 2; 2.0 on rank 1"),
    "another loss function": (
        {"loss_fn": "l1_loss"},
        "huber_loss(delta=1.0) on ranks 0, 2; l1_loss on rank 1",
    ),
    "another option of the loss": ({"delta": 2.0}, "huber_loss(delta=1.0) on ranks 0, 2; huber_loss(delta=2.0) on"),
    "another reduction of the loss": ({"loss_reduction": "sum"}, "loss weights: 0.25 0.25"),
    "a smaller batch": ({"batch": 6}, "argument 0: float32[8, 8] on ranks 0, 2; float32[6, 8] on rank 1"),
    "another order of examples": ({"order": -1}, "values of argument 0: "),
    "another order of targets": ({"target_order": -1}, "values of target: "),
    "another dtype": ({"dtype": "float64"}, "argument 0: float32[8, 8] on ranks 0, 2; float64[8, 8] on rank 1"),
    "a prediction": ({"then": "predict"}, "call: Pipeline.step on ranks 0, 2; Pipeline.predict on rank 1"),
    "its state": ({"then": "state_dict"}, "call: Pipeline.step on ranks 0, 2; Pipeline.state_dict on rank 1"),
    "a function of its own": ({"then": "launch"}, "call: Pipeline.step on ranks 0, 2; reduce_something on rank 1"),
}
NEEDS_PROCESSES = {"another seed", "another dropout rate"}  # threads share the default generator


class Scaled(nn.Module):
    """A deep model with dropout, multiplied by an argument."""

    def __init__(self, settings):
        super().__init__()
        sizes = [8] + [settings.width] * (settings.depth - 1) + [2]
        pairs = pairwise(sizes)
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(*pair), nn.Tanh()) for pair in pairs])
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, x, scale):
        return self.dropout(self.layers(x.to(rg.float32))) * scale


def values(*shape):
    """Return numbers that depend on the shape alone."""
    count = 1
    for size in shape:
        count *= size
    return (rg.arange(count).reshape(shape) * 0.37 % 1.0).to(rg.float32)


def model_of(settings):
    """Return the model; its parameters depend on the seed alone, not on the generator, which threads share."""
    model = Scaled(settings)
    with rg.no_grad():
        for parameter in model.parameters():
            parameter.copy_(values(*parameter.shape) - 0.5 + settings.model_seed)
    return model.train(settings.training)


def loss_of(settings):
    """Return the loss function."""
    function = getattr(nn.functional, settings.loss_fn)
    return partial(function, delta=settings.delta) if settings.loss_fn == "huber_loss" else function


def reduce_something(link):
    """Do something on a rank."""


def train(settings, transport_name="auto"):
    """Run two steps, or a step and another call, and return the loss of the first."""
    rg.manual_seed(settings.seed)
    pipeline = Pipeline(
        model_of(settings),
        settings.stages,
        schedule=settings.schedule,
        micro_batches=settings.micro_batches,
        loss_fn=loss_of(settings),
        loss_reduction=settings.loss_reduction,
        loss_scale=settings.loss_scale,
        transport=transport_name,
    )
    x = values(settings.batch, 8)[:: settings.order] if settings.order > 0 else values(settings.batch, 8).flip(0)
    y = values(settings.batch, 2) if settings.target_order > 0 else values(settings.batch, 2).flip(0)
    x = x.to(getattr(rg, settings.dtype))
    loss = pipeline.step(x, settings.scale, target=y).item()
    if settings.then == "step":
        pipeline.step(x, settings.scale, target=y)
    elif settings.then == "predict":
        pipeline.predict(x, settings.scale)
    elif settings.then == "state_dict":
        pipeline.state_dict()
    else:
        pipeline._transport.launch(RANKS, reduce_something)
    return loss


def outcome(rank, changes, usual=USUAL):
    """Return the error of a script on a rank as its class and text."""
    try:
        return "nothing", str(train(usual._replace(**changes) if rank == ODD else usual))
    except RankMismatchError as error:
        return "RankMismatchError", str(error)
    except Exception as error:
        return type(error).__name__, str(error)


def main():
    """Play all cases on the processes of a launcher."""
    transport = get_transport("auto")
    rank = transport.local[0]
    found = {name: outcome(rank, changes) for name, (changes, _) in CASES.items()}
    found["no difference"] = outcome(rank, {})
    every = transport.launch(RANKS, lambda link: found)
    if rank == 0:
        json.dump(every, sys.stdout)


if __name__ == "__main__":
    main()
