"""Measure the results of the demo."""

import platform
from collections import defaultdict
from typing import Any, NamedTuple

import retrograd as rg
from retrograd.cli.demo.model import describe_parameters
from retrograd.cli.demo.training import Trainer
from retrograd.kernels.processors import available_processors
from retrograd.pipelining import Timeline

STEPS = 9
LARGEST_DIFFERENCE = 1e-5


class Training(NamedTuple):
    """The training in this run of the command: examples and seconds, including tests."""

    examples: int
    seconds: float


class Stage(NamedTuple):
    """One stage: its content, its number of trained parameters, and its share of the time spent computing."""

    holds: str
    parameters: int
    busy: float


class DemoResults(NamedTuple):
    """The complete report.  The timelines are those of one step; bubbles are shares from 0 to 1."""

    training: Training
    accuracy: float
    gradient_difference: float
    stages: list[Stage]
    measured: Timeline
    planned: Timeline

    @property
    def sound(self) -> bool:
        """Whether the pipeline's gradients equal those of the unsplit model, up to rounding."""
        return self.gradient_difference <= LARGEST_DIFFERENCE


def measure(trainer: Trainer, training: Training) -> DemoResults:
    """Compare gradients, test, and time some more steps; report the fastest, which is the least disturbed."""
    difference = trainer.gradient_difference(0)
    measured, planned = _fastest_step(trainer)
    return DemoResults(training, trainer.accuracy(), difference, _stages(trainer, measured), measured, planned)


def _fastest_step(trainer: Trainer) -> tuple[Timeline, Timeline]:
    x, y = trainer.batch(0)
    planned = trainer.pipeline.planned(trainer.pipeline.costs(x, target=y))
    steps = []
    for _ in range(STEPS):
        trainer.pipeline.step(x, target=y)
        steps.append(_timeline(trainer))
    trainer.optimizer.zero_grad()
    return min(steps, key=lambda timeline: timeline.span), planned


def _timeline(trainer: Trainer) -> Timeline:
    timeline = trainer.pipeline.timeline
    assert timeline is not None, "a step leaves a timeline"
    return timeline


def _stages(trainer: Trainer, timeline: Timeline) -> list[Stage]:
    name_of = {id(p): name for name, p in trainer.model.named_parameters()}
    seconds: dict[int, float] = defaultdict(float)
    for event in timeline.events:
        if event.action.kind.is_compute:
            seconds[event.action.stage] += event.end - event.start
    return [
        Stage(
            describe_parameters([name_of[id(p)] for p in parameters]),
            sum(p.numel() for p in parameters),
            seconds[number] / timeline.span,
        )
        for number, parameters in enumerate(stage.parameters() for stage in trainer.pipeline.pipe.stages)
    ]


def as_json(trainer: Trainer, measured: DemoResults) -> dict[str, Any]:
    """Return the report as plain data, for metrics.json."""
    examples, seconds = measured.training
    return {
        "retrograd": rg.__version__,
        "python": platform.python_version(),
        "cores": available_processors(),
        "seed": trainer.seed,
        "epochs": trainer.epochs,
        "schedule": trainer.pipeline.schedule,
        "micro_batches": trainer.pipeline.micro_batches,
        "test_accuracy": measured.accuracy,
        "training_seconds": seconds,
        "examples_per_second": examples / seconds if examples else None,
        "gradient_difference": measured.gradient_difference,
        "bubble": {
            "measured": measured.measured.bubble(),
            "planned": measured.planned.bubble(),
            "theory": measured.measured.ideal_bubble(),
        },
        "stages": [stage._asdict() for stage in measured.stages],
        **trainer.history._asdict(),
    }
