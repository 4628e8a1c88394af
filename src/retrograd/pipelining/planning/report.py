"""A plan: the choices, which one to take, and why."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from retrograd.autograd.profiler_report import in_memory, in_time
from retrograd.fx import GraphModule, Node
from retrograd.pipelining.timeline.timeline import Timeline

NEARLY = 1.01  # steps that differ by less than this count as equally long: memory decides


class Choice(NamedTuple):
    """A schedule, and what a step with it takes.

    ranks: of the stages.  step: seconds.  bubble: the share of all ranks' time in which they compute nothing.
    activations: per rank, the most bytes kept for backward at a time.
    memory: per rank, with parameters, their gradients and what the optimizer keeps.
    fits: whether every rank keeps to the memory limit.
    """

    schedule: str
    ranks: tuple[int, ...]
    step: float
    bubble: float
    activations: tuple[float, ...]
    memory: tuple[float, ...]
    fits: bool

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return len(self.ranks)


class Stage(NamedTuple):
    """A stage of the plan: its operators, seconds, and bytes of parameters, saved values and what it sends on."""

    operators: int
    forward: float
    backward: float
    parameters: float
    saved: float
    sent: float


class SplitPolicy:
    """The stages of a plan, for `pipeline(..., split_policy=...)`: called with a captured model, it says the split.

    Raises ValueError for a model that does something else than the one that was planned.
    """

    def __init__(self, operators: Sequence[str], stages: Sequence[int]) -> None:
        self.operators = tuple(operators)
        self.stages = tuple(stages)

    def __call__(self, captured: GraphModule) -> dict[Node, int]:
        """The stage of every operator."""
        nodes = operators_of(captured)
        if tuple(map(name_of, nodes)) != self.operators:
            raise ValueError(
                f"plan: the plan is for a model of {len(self.operators)} operators; this one has {len(nodes)}, or "
                f"others. Plan anew for what the model does now"
            )
        return dict(zip(nodes, self.stages, strict=True))


def operators_of(captured: GraphModule) -> list[Node]:
    """The nodes that the stages share out."""
    return [node for node in captured.graph.nodes if node.op == "call_function"]


def name_of(node: Node) -> str:
    """The name of a node's operator."""
    return str(getattr(node.target, "name", node.target))


class Plan:
    """How to split a model and which schedule to use; printed, it is a table.

    choices: the schedules that were compared, the shortest step first.
    recommended: the one to take; reason: why, in a sentence.
    stages: of the recommended choice.
    split_policy: the split, for `pipeline(..., split_policy=...)`.
    skipped: schedules that can't be, and why.
    """

    def __init__(
        self,
        choices: Sequence[Choice],
        stages: Sequence[Stage],
        draw: Callable[[], Timeline],
        split_policy: SplitPolicy,
        settings: Mapping[str, Any],
        skipped: Mapping[str, str],
    ) -> None:
        self.choices = sorted(choices, key=lambda choice: (not choice.fits, choice.step))
        self.recommended = recommended(choices)
        self.stages = list(stages)
        self._draw = draw
        self.split_policy = split_policy
        self.settings = dict(settings)
        self.skipped = dict(skipped)

    @cached_property
    def timeline(self) -> Timeline:
        """A step with the recommended choice, as predicted; simulated when it is first asked for."""
        return self._draw()

    @property
    def schedule(self) -> str:
        """The name of the recommended schedule."""
        return self.recommended.schedule

    @property
    def ranks(self) -> int:
        """How many ranks it is for."""
        return max(self.recommended.ranks) + 1

    @property
    def micro_batches(self) -> int:
        """How many micro-batches it is for."""
        return int(self.settings["micro_batches"])

    @property
    def options(self) -> dict[str, Any]:
        """What to call `Pipeline` with, so that the plan is used as it is: `Pipeline(model, **plan.options)`."""
        return {
            "stages": self.recommended.stages,
            "ranks": self.ranks,
            "schedule": self.schedule,
            "micro_batches": self.micro_batches,
            "split_policy": self.split_policy,
        }

    @property
    def reason(self) -> str:
        """Why the recommended choice is."""
        best, fitting = self.recommended, [choice for choice in self.choices if choice.fits]
        shortest = min(choice.step for choice in fitting)
        near = sum(choice.step <= shortest * NEARLY for choice in fitting)
        if near == 1:
            return f"{best.schedule} with {best.stages} stages has the shortest step."
        return (
            f"{best.schedule} with {best.stages} stages needs the least memory of the {near} with a step within "
            f"{NEARLY - 1:.0%} of the shortest."
        )

    def relative(self, choice: Choice) -> float | None:
        """The step of a choice, where that of 1F1B is 1; None where 1F1B was not among the choices."""
        known = next((other.step for other in self.choices if other.schedule == "1F1B"), None)
        return choice.step / known if known else None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        rows = [{**c._asdict(), "stages": c.stages, "relative_to_1f1b": self.relative(c)} for c in self.choices]
        return {
            **self.settings,
            "recommended": {"schedule": self.schedule, "stages": self.recommended.stages, "reason": self.reason},
            "choices": rows,
            "stages": [stage._asdict() for stage in self.stages],
            "split": list(self.split_policy.stages),
            "skipped": self.skipped,
        }

    def header(self) -> list[str]:
        """What each column of `rows` is."""
        return ["schedule", "stages", "step", "of 1F1B", "bubble", "activations", "memory"]

    def rows(self) -> list[list[str]]:
        """The choices as text, column by column; bytes are those of the rank with most, * is recommended."""
        return [self._row(choice) for choice in self.choices]

    def _row(self, choice: Choice) -> list[str]:
        relative = self.relative(choice)
        mark = " *" if choice is self.recommended else "" if choice.fits else " !"
        return [
            choice.schedule + mark,
            str(choice.stages),
            in_time(choice.step * 1e6),
            "" if relative is None else f"{relative:.0%}",
            f"{choice.bubble:.1%}",
            in_memory(round(max(choice.activations))),
            in_memory(round(max(choice.memory))),
        ]

    def notes(self) -> list[str]:
        """What to know besides the table."""
        told = [f"* {self.reason}"]
        if not all(choice.fits for choice in self.choices):
            told.append("! exceeds the memory limit.")
        cores = self.settings["cores"]
        if cores is not None and cores < self.ranks:
            told.append(
                f"Warning: {self.ranks} ranks share {cores} cores; a step takes all computations / {cores} at least."
            )
        return told + [f"{name}: {why}" for name, why in self.skipped.items()]

    def stage_rows(self) -> list[list[str]]:
        """The stages of the recommended choice as text; the first row says what the columns are."""
        head = ["stage", "rank", "operators", "forward", "backward", "parameters", "saved", "sent"]
        return [head] + [
            [
                str(index),
                str(rank),
                str(stage.operators),
                in_time(stage.forward * 1e6),
                in_time(stage.backward * 1e6),
                *[in_memory(round(size)) for size in stage[3:]],
            ]
            for index, (stage, rank) in enumerate(zip(self.stages, self.recommended.ranks, strict=True))
        ]

    def __str__(self) -> str:
        title = f"{self.ranks} ranks, {self.micro_batches} micro-batches"
        parts = [title, aligned([self.header(), *self.rows()]), "\n".join(self.notes()), aligned(self.stage_rows())]
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        best = self.recommended
        return f"Plan({best.schedule!r}, {best.stages} stages, {in_time(best.step * 1e6)} a step)"


def recommended(choices: Sequence[Choice]) -> Choice:
    """Of those that fit, one with the shortest step; where several are nearly so, the one with the least memory."""
    fitting = [choice for choice in choices if choice.fits]
    shortest = min(choice.step for choice in fitting)
    near = [choice for choice in fitting if choice.step <= shortest * NEARLY]
    return min(near, key=lambda choice: (max(choice.memory), choice.step, choice.stages))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table of text: the first column to the left, numbers to the right.

    >>> print(aligned([["a", "b"], ["long", "10"]]))
    a      b
    long  10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
