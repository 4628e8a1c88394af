"""Schedules that a `Pipeline` searches for in its first step, from the costs of its own stages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from statistics import median
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.kernels.processors import available_processors
from retrograd.nn import Module
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.planning.link_cost import LinearCost, MessageCost, message_cost
from retrograd.pipelining.planning.operator_cost import preserve_state
from retrograd.pipelining.planning.schedule_search import FoundSchedule, search_schedule
from retrograd.pipelining.planning.simulate import Cost, zero_cost
from retrograd.pipelining.planning.stage_cost import TrialStep, measure_stages
from retrograd.pipelining.planning.stage_memory import measure_memory
from retrograd.pipelining.planning.storage_cost import common_storage_cost
from retrograd.pipelining.schedules import one_directional
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.gpipe import gpipe
from retrograd.pipelining.schedules.program import AUTO, Program, make_program
from retrograd.pipelining.schedules.stage_placement import stages_by_rank
from retrograd.pipelining.split.manual_stages import AnyPipe
from retrograd.pipelining.split.meta_model import lacks_memory
from retrograd.pipelining.transports import Transport

LossOfOutputs = Callable[[dict[str, Any]], Tensor]
Edges = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class AutoSchedule:
    """The settings of `Pipeline(schedule="auto")`: pass `schedule=AutoSchedule(...)` to change them.

    The first step measures each stage, the messages and the memory, and searches for a schedule with `search_schedule`:
    for these costs, it is at least as fast as every named schedule within the limit.  Then steps run under it and the
    named ones, in turns; after each round the slower half is dropped, and in the end the quickest is kept.  So the
    choice is right also where costs do not predict steps: ranks that share processors wait for each other in ways that
    depend on the schedule.  Later steps run it; another number of microbatches causes another search with the same
    costs and the same stages on ranks.

    memory_limit: bytes that a rank may hold for backward passes, for all ranks or each; None: no limit.  Parameters,
     their gradients and optimizer state do not count.
    cost, overhead: as for `simulate`: seconds of computations and messages, and for which a message occupies its rank;
     None: measured over the transport.
    saved, kept, inputs: bytes of each stage for a microbatch, as for `search_schedule`; None: measured.
    recompute, offload: whether stages may recompute their forward passes, or move activations to files and back, to
     stay within the limit.
    moves: seconds of an OFFLOAD or FETCH of a stage, for a microbatch; None: measured.  With `cost` given and `moves`
     None, nothing is offloaded.
    placements: the rank of each stage, several to choose among; None: blocks, looped and zigzag.
    seconds, seed: of the search, as for `search_schedule`.
    rounds: how often each stage is timed, a microbatch at a time; the lower decile is used.
    trials: how many rounds of steps run under the schedules that are left, of as many as take about `seconds` in all.
     0, or given costs: the schedule of the search is used.

    Ranks that are processes need the same settings.  Errors are those of `search_schedule`, in the first step.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import Pipeline
    >>> model = rg.nn.Sequential(*[rg.nn.Linear(4, 4) for _ in range(4)])
    >>> settings = AutoSchedule(seconds=0.1, rounds=1, trials=0)
    >>> p = Pipeline(model, 4, ranks=2, schedule=settings, micro_batches=4, loss_fn=rg.nn.functional.mse_loss)
    >>> loss = p.step(rg.ones(8, 4), target=rg.ones(8, 4))
    >>> p.found.step <= min(p.found.named.values())
    True
    """

    memory_limit: float | Sequence[float] | None = None
    cost: Cost | None = None
    overhead: Cost | None = None
    saved: Mapping[int, float] | None = None
    kept: Mapping[int, float] | None = None
    inputs: Mapping[int, float] | None = None
    recompute: bool = True
    offload: bool = True
    moves: Cost | None = None
    placements: Sequence[Sequence[int]] | None = None
    seconds: float = 5.0
    seed: int = 0
    rounds: int = 3
    trials: int = 5


class _Costs(NamedTuple):
    """The costs of a model's stages, given or measured."""

    cost: Cost
    overhead: Cost
    saved: Mapping[int, float]
    kept: Mapping[int, float]
    inputs: Mapping[int, float]
    outputs: Mapping[int, float]
    moves: Cost | None


class AutoSearch:
    """The schedules that a pipeline has found, by number of microbatches.

    ranks: how many there are; None: one for each stage.
    """

    def __init__(self, settings: AutoSchedule, transport: Transport, ranks: int | None) -> None:
        self.settings = settings
        self.found: FoundSchedule | None = None
        self._transport = transport
        self._ranks = ranks
        self._costs: _Costs | None = None
        self._in_parts = False  # whether this process has memory for its own stages only
        self._programs: dict[tuple, Program] = {}

    @classmethod
    def of(cls, schedule: object, transport: Transport, ranks: int | None) -> "AutoSearch | None":
        """Return the search of a pipeline with this schedule; None for a schedule that is given."""
        settings = AutoSchedule() if schedule == AUTO else schedule
        return cls(settings, transport, ranks) if isinstance(settings, AutoSchedule) else None

    def measure(
        self, model: Module, pipe: AnyPipe, batch: MicroBatch, target: Any, micro_batches: int, loss: LossOfOutputs
    ) -> None:
        """Measure, at the first call, what is not given, and run the trials; every process must call it.

        batch, target: one of the microbatches of a replica, and what its loss is computed by.  Raises
        NotImplementedError if this process has memory for its own stages only.
        """
        if self._costs is not None:
            return
        given = self.settings
        self._in_parts = lacks_memory(model)
        if self._in_parts and None in (given.cost, given.saved, given.kept, given.inputs):
            raise NotImplementedError(
                "Pipeline: schedule='auto' measures all stages, and the model is on 'meta' where other processes have "
                "its stages; name a schedule, or pass AutoSchedule(cost=..., saved=..., kept=..., inputs=...)"
            )
        with preserve_state(model):
            timed: tuple[Cost, Cost] = zero_cost, zero_cost
            storage: LinearCost | None = None
            if given.cost is None:
                timed = self._measured_seconds(pipe, batch, loss)
                if given.memory_limit is not None and given.offload and given.moves is None:
                    storage = common_storage_cost(self._transport, self._workers(pipe))
            memory: list[dict[int, float]] = [{}, {}, {}, {}]
            if None in (given.saved, given.kept, given.inputs):
                inputs_of_model = pipe.named_inputs(batch.args, batch.kwargs)
                columns = zip(*measure_memory(pipe, inputs_of_model, loss, target), strict=True)
                memory = [dict(enumerate(map(float, column))) for column in columns]
        sizes = (given.saved, given.kept, given.inputs)
        *known, outputs = memory
        saved, kept, inputs = (size or found for size, found in zip(sizes, known, strict=True))
        moves = given.moves if storage is None else _moves(storage, saved, inputs, outputs)
        self._costs = _Costs(given.cost or timed[0], given.overhead or timed[1], saved, kept, inputs, outputs, moves)
        if given.cost is None and given.trials:
            with preserve_state(model):
                self._run_trials(pipe, batch, micro_batches, loss)

    def _run_trials(self, pipe: AnyPipe, batch: MicroBatch, micro_batches: int, loss: LossOfOutputs) -> None:
        """Search, run steps under the best schedules, and keep the one with the quickest steps.

        Source: successive halving, K. Jamieson and A. Talwalkar, "Non-stochastic Best Arm Identification and
        Hyperparameter Optimization" (2016).
        """
        stages, edges = pipe.num_stages, frozenset(pipe.carried())
        best = self._search(stages, micro_batches, edges)
        choices = [best, *best.alternatives]
        totals = accumulate(2 * found.step for found in choices)  # one, a half, a quarter and so on of the steps
        tried = [found for found, total in zip(choices, totals, strict=True) if total <= self.settings.seconds]
        if len(tried) > 1:
            workers = self._transport.world or len(best.schedule)
            steps = [TrialStep(pipe, batch, lambda _, out: loss(out), found.schedule, workers) for found in tried]
            measured = _halved([partial(step.seconds, self._transport) for step in steps], self.settings.trials)
            best = tried[next(iter(measured))]
            best = best._replace(measured={tried[number].origin: value for number, value in measured.items()})
        self.found = best
        self._programs[stages, micro_batches, edges, False] = make_program(
            best.schedule, stages, micro_batches, dict.fromkeys(edges), ranks=self._ranks
        )

    def _measured_seconds(self, pipe: AnyPipe, batch: MicroBatch, loss: LossOfOutputs) -> tuple[Cost, Cost]:
        """Return the seconds of actions, and for which messages occupy their ranks."""
        messages = message_cost(self._transport)
        found = measure_stages(
            [pipe],
            batch,
            lambda _, outputs: loss(outputs),
            self._transport,
            self._workers(pipe),
            self.settings.rounds,
            4 * pipe.num_stages,
        )[0]
        return _with(found.cost, messages), _with(found.overhead, messages)

    def _workers(self, pipe: AnyPipe) -> int:
        """Return the number of ranks that measure."""
        return self._transport.world or min(self._ranks or pipe.num_stages, available_processors())

    def program(self, stages: int, micro_batches: int, edges: Iterable[tuple[int, int]], forward_only: bool) -> Program:
        """Return the program of a step; before the first step, one of a named schedule."""
        edges = frozenset(edges)
        if self._costs is None:
            return make_program(
                "gpipe", stages, micro_batches, dict.fromkeys(edges), ranks=self._ranks, forward_only=forward_only
            )
        key = stages, micro_batches, edges, forward_only
        if key not in self._programs:
            if forward_only and self.found is not None:
                schedule = _forwards(self.found.placement, micro_batches)
            else:
                schedule = self._search(stages, micro_batches, edges).schedule
            self._programs[key] = make_program(
                schedule, stages, micro_batches, dict.fromkeys(edges), ranks=self._ranks, forward_only=forward_only
            )
        return self._programs[key]

    def _search(self, stages: int, micro_batches: int, edges: Edges) -> FoundSchedule:
        costs, settings = self._costs, self.settings
        assert costs is not None, "program() checks it"
        found = search_schedule(
            stages,
            micro_batches,
            costs.cost,
            ranks=self._ranks,
            placements=self._placements(stages, micro_batches, edges),
            edges=edges,
            saved=costs.saved,
            kept=costs.kept,
            inputs=costs.inputs,
            outputs=costs.outputs,
            recompute=settings.recompute,
            moves=costs.moves if settings.offload else None,
            memory_limit=settings.memory_limit,
            overhead=costs.overhead,
            seconds=settings.seconds,
            seed=settings.seed,
        )
        self.found = self.found or found
        return found

    def _placements(self, stages: int, micro_batches: int, edges: Edges) -> Sequence[Sequence[int]] | None:
        """Return the placements to search: parameters stay where they have been trained, or have memory."""
        if self.found is not None:
            return [self.found.placement]
        if self._in_parts:
            return [make_program("gpipe", stages, micro_batches, dict.fromkeys(edges), ranks=self._ranks).placement]
        return self.settings.placements


def _halved(timers: Sequence[Callable[[], float]], rounds: int) -> dict[int, float]:
    """Return the median of what each timer has returned, in the order of choice: the best first.

    All are called in turns, then the better half, and so on, but at least two in each round.
    """
    seconds: list[list[float]] = [[] for _ in timers]
    order = list(range(len(timers)))
    left = len(order)
    for _ in range(rounds):
        for number in order[:left]:
            seconds[number].append(timers[number]())
        order[:left] = sorted(order[:left], key=lambda number: median(seconds[number]))
        left = max(2, -(-left // 2))
    return {number: median(seconds[number]) for number in order}


def _with(part: Callable[[Action, MessageCost], float], messages: MessageCost) -> Cost:
    return lambda action: part(action, messages)


def _moves(storage: LinearCost, saved: Mapping[int, float], *in_memory: Mapping[int, float]) -> Cost:
    """Return the seconds of moves of what stages save, without their inputs and outputs."""
    return lambda action: storage.seconds(
        max(saved[action.stage] - sum(size.get(action.stage, 0.0) for size in in_memory), 0.0)
    )


def _forwards(placement: Sequence[int], micro_batches: int) -> list[list[Action]]:
    """Return the forwards of each rank, in the order of a named schedule with this placement."""
    ranks = stages_by_rank(list(placement))
    orders = (kind.order for kind in one_directional() if kind.place(len(placement), len(ranks)) == list(placement))
    return [
        [action for action in actions if action.kind is Kind.F] for actions in next(orders, gpipe)(ranks, micro_batches)
    ]
