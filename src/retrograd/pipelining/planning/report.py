"""A plan: the compared choices and the recommendation."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from retrograd.autograd.profiler.report import format_memory, format_time
from retrograd.foundation.html_report import paragraph, report, table
from retrograd.fx import GraphModule, Node
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.program import AUTO
from retrograd.pipelining.timeline.timeline import Timeline

NOTED_VARIATION = 1.1  # from which on the report says how much longer steps are since computations vary
TIE_FACTOR = 1.01  # steps that differ by less than this count as equal: memory decides


class Choice(NamedTuple):
    """A schedule, and the predicted cost of a step with it.

    ranks: of the stages, in a replica.  step: seconds.  bubble: the share of all ranks' time without computation.
    activations: per rank, the peak bytes saved for backward.
    memory: per rank, including parameters, their gradients and the optimizer state.
    fits: whether every rank is within the memory limit.  replicas: of the pipeline.  offloaded, recomputed: the stages
    that offload or recompute activations of some microbatches, see `with_offload` and `with_recomputation`.
    """

    schedule: str
    ranks: tuple[int, ...]
    step: float
    bubble: float
    activations: tuple[float, ...]
    memory: tuple[float, ...]
    fits: bool
    replicas: int = 1
    offloaded: tuple[int, ...] = ()
    recomputed: tuple[int, ...] = ()

    @property
    def is_fitted(self) -> bool:
        """Return whether it is a named schedule whose stages offload or recompute to be within the memory limit."""
        return self.schedule != AUTO and bool(self.offloaded or self.recomputed)

    @property
    def stages(self) -> int:
        """Return the number of stages."""
        return len(self.ranks)


class Stage(NamedTuple):
    """A stage of the plan: its operators, seconds, and bytes of parameters, saved tensors and values sent."""

    operators: int
    forward: float
    backward: float
    parameters: float
    saved: float
    sent: float


class SplitPolicy:
    """The split of a plan, for `pipeline(..., split_policy=...)`: maps a captured model to stages.

    Raises ValueError for a model with other operators than the planned one.
    """

    def __init__(self, operators: Sequence[str], stages: Sequence[int]) -> None:
        self.operators = tuple(operators)
        self.stages = tuple(stages)

    def __call__(self, captured: GraphModule) -> dict[Node, int]:
        """Return the stage of every operator."""
        nodes = operators_of(captured)
        if tuple(map(name_of, nodes)) != self.operators:
            raise ValueError(
                f"plan: the plan is for a model of {len(self.operators)} operators; this one has {len(nodes)}, or "
                f"others. Make a new plan for the present model"
            )
        return dict(zip(nodes, self.stages, strict=True))


def operators_of(captured: GraphModule) -> list[Node]:
    """Return the nodes that are assigned to stages."""
    return [node for node in captured.graph.nodes if node.op == "call_function"]


def name_of(node: Node) -> str:
    """Return the name of a node's operator."""
    return str(getattr(node.target, "name", node.target))


class Plan:
    """How to split a model and which schedule to use; prints as a table.

    choices: the schedules that were compared, the shortest step first.
    choose_recommended: the best choice; reason: why, in a sentence.
    stages: of the recommended choice.
    split_policy: the split, for `pipeline(..., split_policy=...)`.
    skipped: schedules that are impossible, and why.
    actions: the computations of every rank, if the recommended schedule was searched for; otherwise None.
    """

    def __init__(
        self,
        choices: Sequence[Choice],
        stages: Sequence[Stage],
        draw: Callable[[], Timeline],
        split_policy: SplitPolicy,
        settings: Mapping[str, Any],
        skipped: Mapping[str, str],
        actions: Sequence[Sequence[Action]] | None = None,
    ) -> None:
        self.choices = sorted(choices, key=lambda choice: (not choice.fits, choice.step))
        self.recommended = choose_recommended(choices)
        self.stages = list(stages)
        self._draw = draw
        self.split_policy = split_policy
        self.settings = dict(settings)
        self.skipped = dict(skipped)
        self.actions = actions

    @cached_property
    def timeline(self) -> Timeline:
        """Return the predicted timeline of the recommended choice; simulated on first access."""
        return self._draw()

    @property
    def schedule(self) -> str:
        """Return the name of the recommended schedule."""
        return self.recommended.schedule

    @property
    def ranks(self) -> int:
        """Return the number of ranks of each replica."""
        return max(self.recommended.ranks) + 1

    @property
    def replicas(self) -> int:
        """Return the number of replicas."""
        return self.recommended.replicas

    @property
    def micro_batches(self) -> int:
        """Return the number of microbatches."""
        return int(self.settings["micro_batches"])

    @property
    def options(self) -> dict[str, Any]:
        """Return keyword arguments that apply the plan: `Pipeline(model, **plan.options)`."""
        return {
            "stages": self.recommended.stages,
            "ranks": self.ranks,
            **({"replicas": self.replicas} if self.replicas > 1 else {}),
            "schedule": self.schedule if self.actions is None else self.actions,
            "micro_batches": self.micro_batches,
            "split_policy": self.split_policy,
        }

    @property
    def reason(self) -> str:
        """Return the reason for the recommendation."""
        best, fitting = self.recommended, [choice for choice in self.choices if choice.fits]
        shortest = min(choice.step for choice in fitting)
        near = sum(choice.step <= shortest * TIE_FACTOR for choice in fitting)
        layout = f"{best.stages} stages" + (f" and {best.replicas} replicas" if best.replicas > 1 else "")
        if near == 1:
            return f"{best.schedule} with {layout} has the shortest step."
        return (
            f"{best.schedule} with {layout} needs the least memory of the {near} with a step within "
            f"{TIE_FACTOR - 1:.0%} of the shortest."
        )

    def relative(self, choice: Choice) -> float | None:
        """Return the step time of a choice relative to 1F1B; None if 1F1B was not compared."""
        known = next((other.step for other in self.choices if other.schedule == "1F1B"), None)
        return choice.step / known if known else None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        rows = [{**c._asdict(), "stages": c.stages, "relative_to_1f1b": self.relative(c)} for c in self.choices]
        return {
            **self.settings,
            "recommended": {"schedule": self.schedule, "stages": self.recommended.stages, "reason": self.reason},
            "choices": rows,
            "stages": [stage._asdict() for stage in self.stages],
            "split": list(self.split_policy.stages),
            "skipped": self.skipped,
        }

    def _repr_html_(self) -> str:
        """Return the choices and the stages as tables, for notebooks."""
        head, *stages = self.stage_rows()
        choices = table(self.rows(), self.header())
        return report(paragraph(repr(self)), choices, *map(paragraph, self.notes()), table(stages, head))

    def header(self) -> list[str]:
        """Return the column titles of `rows`."""
        replicas = ["replicas"] if self._has_replicas else []
        return ["schedule", *replicas, "stages", "step", "of 1F1B", "bubble", "activations", "memory"]

    @property
    def _has_replicas(self) -> bool:
        return any(choice.replicas > 1 for choice in self.choices)

    def rows(self) -> list[list[str]]:
        """Return the choices as rows of text; bytes are the maximum over the ranks, and * marks the recommendation."""
        return [self._row(choice) for choice in self.choices]

    def _row(self, choice: Choice) -> list[str]:
        relative = self.relative(choice)
        mark = " *" if choice is self.recommended else "" if choice.fits else " !"
        return [
            choice.schedule + self._storage(choice) + mark,
            *([str(choice.replicas)] if self._has_replicas else []),
            str(choice.stages),
            format_time(choice.step * 1e6),
            "" if relative is None else f"{relative:.0%}",
            f"{choice.bubble:.1%}",
            format_memory(round(max(choice.activations))),
            format_memory(round(max(choice.memory))),
        ]

    @staticmethod
    def _storage(choice: Choice) -> str:
        if not choice.is_fitted:
            return ""
        return (", offload" if choice.offloaded else "") + (", recompute" if choice.recomputed else "")

    def notes(self) -> list[str]:
        """Return remarks for below the table."""
        notes = [f"* {self.reason}"]
        if not all(choice.fits for choice in self.choices):
            notes.append("! exceeds the memory limit.")
        if self.recommended.recomputed:
            listed = ", ".join(map(str, self.recommended.recomputed))
            notes.append(f"Stages that recompute their forward passes: {listed}.")
        if self.recommended.offloaded:
            listed = ", ".join(map(str, self.recommended.offloaded))
            notes.append(f"Stages that offload their activations to a file: {listed}.")
        if self.recommended.is_fitted:
            everything = [action.kind for actions in self.actions or () for action in actions]
            moved, repeated = everything.count(Kind.OFFLOAD), everything.count(Kind.R)
            notes.append(
                f"The schedule alone exceeds the memory limit. So {moved} forward passes are offloaded and {repeated} "
                f"are repeated, whichever makes the step shorter."
            )
        if self.settings["variation"] >= NOTED_VARIATION:
            notes.append(
                f"Computations vary, as if other programs use the machine: steps take {self.settings['variation']:.2f} "
                f"times as long as with their shortest times."
            )
        cores, ranks = self.settings["cores"], self.ranks * self.replicas
        if cores is not None and cores < ranks:
            notes.append(
                f"Warning: {ranks} ranks share {cores} cores; a step takes all computations / {cores} at least."
            )
        return notes + [f"{name}: {why}" for name, why in self.skipped.items()]

    def stage_rows(self) -> list[list[str]]:
        """Return the stages of the recommended choice as rows of text; the first row holds the titles."""
        head = ["stage", "rank", "operators", "forward", "backward", "parameters", "saved", "sent"]
        return [head] + [
            [
                str(index),
                str(rank),
                str(stage.operators),
                format_time(stage.forward * 1e6),
                format_time(stage.backward * 1e6),
                *[format_memory(round(size)) for size in stage[3:]],
            ]
            for index, (stage, rank) in enumerate(zip(self.stages, self.recommended.ranks, strict=True))
        ]

    def __str__(self) -> str:
        title = f"{self.ranks * self.replicas} ranks, {self.micro_batches} microbatches"
        parts = [
            title,
            align_columns([self.header(), *self.rows()]),
            "\n".join(self.notes()),
            align_columns(self.stage_rows()),
        ]
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        best = self.recommended
        return f"Plan({best.schedule!r}, {best.stages} stages, {format_time(best.step * 1e6)} a step)"


def merge_plans(plans: Sequence[Plan]) -> Plan:
    """Return the plan whose recommended choice is the best one, with the choices of all plans."""
    best = choose_recommended([plan.recommended for plan in plans])
    chosen = next(plan for plan in plans if plan.recommended is best)
    chosen.choices = sorted(
        (choice for plan in plans for choice in plan.choices), key=lambda choice: (not choice.fits, choice.step)
    )
    chosen.skipped = {name: why for plan in plans for name, why in plan.skipped.items()}
    return chosen


def choose_recommended(choices: Sequence[Choice]) -> Choice:
    """Return the fitting choice with the shortest step; among nearly equal ones, the one with the least memory."""
    fitting = [choice for choice in choices if choice.fits]
    shortest = min(choice.step for choice in fitting)
    near = [choice for choice in fitting if choice.step <= shortest * TIE_FACTOR]
    return min(near, key=lambda choice: (max(choice.memory), choice.step, choice.stages))


def align_columns(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as a table: the first column left-aligned, others right-aligned.

    >>> print(align_columns([["a", "b"], ["long", "10"]]))
    a      b
    long  10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
