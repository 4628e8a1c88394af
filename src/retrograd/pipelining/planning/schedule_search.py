"""Search for a schedule: the named ones, list schedules under many policies, and small changes to the best."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, Literal, NamedTuple

from retrograd.autograd.profiler.report import format_memory
from retrograd.foundation.html_report import paragraph, report, table
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.planning.critical_path import Block, critical_blocks, move_in_block
from retrograd.pipelining.planning.list_scheduler import Policy, list_schedule
from retrograd.pipelining.planning.memory_fit import StageBytes, fit_memory, peak_bytes
from retrograd.pipelining.planning.schedule_problem import B, I, Order, Problem, Times, W, make_problem, run, run_filled
from retrograd.pipelining.planning.simulate import Cost, simulate_costs, zero_cost
from retrograd.pipelining.planning.step_bound import busy_bound, step_bound
from retrograd.pipelining.schedules import make_schedule, one_directional
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.activations import runs_of
from retrograd.pipelining.schedules.lowering import Edges, chain

Objective = Literal["step", "slowest"]

# Seconds per action of the two ways to try an order, on the machine where `seconds` is meant literally.
LIST_TIME, RUN_TIME = 20e-6, 1.5e-6
LIST_SHARE = 0.5  # of the time; the rest is for small changes
PATIENCES = 1.0, 0.75, 0.5, 0.25, 0.0
FARTHEST = 8  # positions by which a change moves an action
LOOSER = 1.5, 2.0, math.inf  # limits, in units of the given one, of the schedules to which moves to a file are added
FITTED = 12  # how many of them
JOIN_SHARE = 0.1  # of the changes join halves or divide a whole backward pass, if that is quicker than both halves


class FoundSchedule(NamedTuple):
    """The best schedule that a search found.

    schedule: per rank its computations, as from `make_schedule`.  placement: the rank of each stage.
    step: seconds from the first rank's start to the last rank's end.  slowest: of the rank that takes longest from its
    own start to its own end.  peaks: the largest number of bytes that each rank holds.
    origin: the name of the schedule, or "search" if no named one is as good.
    named: the objective of every named schedule with this placement; infinity for those beyond the memory limit.
    bound: no schedule with one of the placements has a smaller objective.
    recomputed: the stages that keep only the inputs of some forward passes, and repeat them before the backward pass.
    offloaded: the stages that move the activations of some forward passes to a file and back.
    alternatives: the best named schedules within the limit, for each placement one with whole backward passes and one
    with halves, the shortest first; without those that this one equals.
    measured: by origin, the median seconds of the trial steps of `AutoSchedule` under this one and some alternatives.
    """

    schedule: list[list[Action]]
    placement: list[int]
    step: float
    slowest: float
    peaks: list[float]
    origin: str
    named: dict[str, float]
    bound: float
    recomputed: list[int]
    offloaded: Sequence[int] = ()
    alternatives: "Sequence[FoundSchedule]" = ()
    measured: Mapping[str, float] = {}

    def _repr_html_(self) -> str:
        """Return the ranks, their stages and computations, and the named schedules, as tables for notebooks."""
        stages = [[stage for stage, own in enumerate(self.placement) if own == rank] for rank in range(len(self.peaks))]
        ranks = [
            [str(rank), ", ".join(map(str, own)), format_memory(round(peak)), " ".join(map(str, actions))]
            for rank, (own, peak, actions) in enumerate(zip(stages, self.peaks, self.schedule, strict=True))
        ]
        named = [[name, f"{value:.4g}"] for name, value in sorted(self.named.items(), key=lambda item: item[1])]
        return report(
            paragraph(f"FoundSchedule: {self.origin}, a step of {self.step:.4g} s, no less than {self.bound:.4g}"),
            table(ranks, ["rank", "stages", "peak", "computations"], text_columns=[3]),
            table(named, ["named schedule", "objective"]),
        )


class _Candidate(NamedTuple):
    """Orders, and how good they are: the smaller, the better."""

    score: tuple[float, float]
    times: Times
    orders: list[Order]
    origin: str


def search_schedule(
    stages: int,
    micro_batches: int,
    cost: Cost,
    *,
    ranks: int | None = None,
    placements: Sequence[Sequence[int]] | None = None,
    edges: Edges | None = None,
    saved: Mapping[int, float] | None = None,
    kept: Mapping[int, float] | None = None,
    inputs: Mapping[int, float] | None = None,
    outputs: Mapping[int, float] | None = None,
    recompute: bool = True,
    moves: Cost | None = None,
    memory_limit: float | Sequence[float] | None = None,
    overhead: Cost = zero_cost,
    objective: Objective = "step",
    seconds: float = 10.0,
    seed: int = 0,
) -> FoundSchedule:
    """Search for the schedule with the shortest step within a memory limit.

    The result is at least as good as every named schedule with one of these placements and within the limit.  After
    those, list schedules under many policies are tried, and then small changes to the best order.

    ranks: default one for each stage.
    placements: the rank of each stage, several to choose among; None: blocks, looped and zigzag, where they differ.
    edges: the stage graph; None: each stage feeds the next.
    cost: seconds of a computation, or of a message from its send to its arrival, as for `simulate`.
    saved: bytes of each stage's activations for one microbatch; None: 1.  kept: the bytes that the stage holds between
     the input half and the weight half of a backward pass, which may be more; None: those of `saved`.
    inputs: bytes of each stage's inputs for one microbatch, a part of `saved`; with them and a limit, stages may
     recompute, see `with_recomputation`, unless `recompute` is False.  None: no stage does.
    moves: seconds of an OFFLOAD or FETCH of a microbatch, whose inputs and outputs stay in memory; with `inputs` and a
     limit, microbatches may be offloaded, see `with_offload`.  None: none is.
    outputs: bytes of each stage's outputs for one microbatch, a part of `saved`; None: 0.
    memory_limit: bytes of activations that a rank may hold, for all ranks or each; None: no limit.
    overhead: seconds for which a send or receive occupies its rank, as for `simulate`.
    objective: "step", from the first start to the last end; or "slowest", of the rank that takes longest from its own
     start to its own end, which is the time between steps if ranks don't wait for each other in between.
    seconds: about how long the search takes on an idle machine of 2024, after the named schedules.  It is a number of
     attempts, not a deadline: the result depends on it, and on `seed`, but not on the machine, nor on how busy it is.
     So ranks that are processes find the same schedule.

    Raises ValueError if no schedule fits into the limit, with the smallest limit that does; TypeError or ValueError for
    arguments out of range.

    Sources: greedy orders by costs within a memory limit: P. Qi, X. Wan, G. Huang and M. Lin, "Zero Bubble Pipeline
    Parallelism" (2024), section 3.1.  The list scheduler and the changes are our own.

    >>> from retrograd.pipelining.planning.simulate import unit_cost
    >>> found = search_schedule(4, 8, unit_cost, memory_limit=7, seconds=0.1)
    >>> found.slowest, max(found.peaks) <= 7.0, found.named["1F1B"]
    (24.0, True, 33.0)
    """
    if objective not in ("step", "slowest"):
        raise ValueError(f"search_schedule: objective must be 'step' or 'slowest', got {objective!r}")
    if not seconds > 0:
        raise ValueError(f"search_schedule: seconds must be above 0, got {seconds!r}")
    count = stages if ranks is None else ranks
    saved = dict.fromkeys(range(stages), 1.0) if saved is None else saved
    kept = saved if kept is None else kept
    limits = _limits(memory_limit, count)
    edges = chain(stages) if edges is None else edges
    choices = _placements(stages, count) if placements is None else [list(placement) for placement in placements]
    problems = [
        make_problem(placement, micro_batches, edges, cost, saved, kept, limits, overhead, recomputed)
        for recomputed in _recomputations(stages, inputs if recompute else None, memory_limit)
        for placement in choices
    ]
    # Half of the time for all placements, the other half for the best one.
    searches = [_Search(problem, objective, seconds / 2 / len(problems), seed) for problem in problems]
    found = [search.run() for search in searches]
    chosen = min(searches, key=lambda search: search.best.score if search.best else (math.inf, 0.0))
    chosen.improve(seconds / 2)
    plain = searches[: len(choices)]  # without recomputation
    named = {name: value for names in found[: len(choices)] for name, value in names.items()}
    bound = min(search.bound for search in searches)
    best = None if chosen.best is None else chosen.found(chosen.best, named, bound)
    if moves is not None and inputs is not None and memory_limit is not None:
        bound, stored = _with_moves(
            plain, StageBytes(saved, inputs, _with(cost, moves), kept, outputs), edges, overhead, recompute, seconds
        )
        if stored is not None and (best is None or getattr(stored, objective) < getattr(best, objective) * (1 - 1e-9)):
            best = stored._replace(named=named)
    if best is None:
        least = min(_least_limit(problem) for problem in problems)
        raise ValueError(
            f"search_schedule: no schedule is within the memory limit of {memory_limit}; a rank's stages save {least} "
            f"bytes for one microbatch"
        )
    others = [
        (turn, search.found(one, named, bound))
        for search in plain
        for group in search.ranked_named()
        for turn, one in enumerate(group)
    ]
    others.sort(key=lambda pair: (pair[0], named[pair[1].origin]))
    return best._replace(bound=bound, alternatives=[other for _, other in others if other.schedule != best.schedule])


def _with(cost: Cost, moves: Cost) -> Cost:
    """Return the cost of computations, messages and moves; R runs the code of F."""

    def joined(action: Action) -> float:
        if action.kind.is_move:
            return moves(action)
        return cost(action._replace(kind=Kind.F) if action.kind is Kind.R else action)

    return joined


def _with_moves(
    searches: "Sequence[_Search]", stages: StageBytes, edges: Edges, overhead: Cost, recompute: bool, seconds: float
) -> tuple[float, FoundSchedule | None]:
    """Search within looser limits, and offload or recompute microbatches until the schedules are within the limits.

    Returns a lower bound of the objective, and the best schedule, None if none fits.
    """
    objective, limits = searches[0].objective, searches[0].problem.limits
    looser = [
        _Search(search.problem._replace(limits=[factor * limit for limit in limits]), objective, share, seed=0)
        for search in searches
        for factor in LOOSER
        for share in [seconds / (2 * len(searches) * len(LOOSER))]
    ]
    for search in looser:
        search.run()
    bound = min(search.bound for search in looser)
    orders = [(one, search) for search in looser for one in (search.best, *search.best_named()) if one is not None]
    best: FoundSchedule | None = None
    for candidate, search in sorted(orders, key=lambda pair: pair[0].score)[:FITTED]:
        found = search.found(candidate, {}, bound)
        if best is not None and getattr(found, objective) >= getattr(best, objective):
            break  # moves make no step shorter

        def summary(schedule: list[list[Action]]) -> Times:
            return Times(*simulate_costs(schedule, edges, stages.cost, overhead)[:2])

        kinds = (Kind.OFFLOAD, Kind.R) if recompute else (Kind.OFFLOAD,)
        fitted = fit_memory(found.schedule, limits, stages, lambda rows: getattr(summary(rows), objective), kinds)
        if fitted is None:
            continue
        times, actions = summary(fitted), [action for row in fitted for action in row]
        used = [sorted({stage for stage, _ in runs_of(actions, kind)}) for kind in (Kind.R, Kind.OFFLOAD)]
        peaks = [peak_bytes(row, stages) for row in fitted]
        found = found._replace(
            schedule=fitted, step=times.step, slowest=times.slowest, peaks=peaks, recomputed=used[0], offloaded=used[1]
        )
        if best is None or getattr(found, objective) < getattr(best, objective):
            best = found
    return bound, best


def _recomputations(
    stages: int, inputs: Mapping[int, float] | None, memory_limit: float | Sequence[float] | None
) -> list[dict[int, float]]:
    """Return the sets of stages that may recompute, each with its bytes: none, all, and the first ones.

    The first stages hold the most microbatches, since theirs return last.
    """
    if inputs is None or memory_limit is None:
        return [{}]
    counts = sorted({0, -(-stages // 4), stages // 2, 3 * stages // 4, stages})
    return [{stage: inputs[stage] for stage in range(count)} for count in counts]


def _limits(memory_limit: float | Sequence[float] | None, ranks: int) -> list[float]:
    if memory_limit is None:
        return [math.inf] * ranks
    limits = list(memory_limit) if isinstance(memory_limit, Sequence) else [memory_limit] * ranks
    if len(limits) != ranks or not all(limit > 0 for limit in limits):
        raise ValueError(f"search_schedule: memory_limit must be one number above 0, or {ranks}, got {memory_limit!r}")
    return limits


def _placements(stages: int, ranks: int) -> list[list[int]]:
    """Return the placements of the named schedules, each once."""
    return [list(found) for found in dict.fromkeys(tuple(kind.place(stages, ranks)) for kind in one_directional())]


def _least_limit(problem: Problem) -> float:
    return max(map(problem.least_memory, range(len(problem.limits))))


class _Search:
    """The search for the orders of one problem."""

    def __init__(self, problem: Problem, objective: Objective, seconds: float, seed: int) -> None:
        self.problem = problem
        self.objective = objective
        self.random = random.Random(seed)
        self.best: _Candidate | None = None
        self.named: list[_Candidate] = []
        self.starts: list[list[Order]] = []  # of changes, without weight halves
        actions = 3 * problem.stages * problem.micro_batches
        self.lists = math.ceil(LIST_SHARE * seconds / (LIST_TIME * actions))
        self.changes = math.ceil((1 - LIST_SHARE) * seconds / (RUN_TIME * actions))
        times = [problem.seconds[kind * problem.stages :][: problem.stages] for kind in (B, I, W)]
        self.joins = any(whole < (first + last) * (1 - 1e-9) for whole, first, last in zip(*times, strict=True))
        self.bound = step_bound(problem) if objective == "step" else busy_bound(problem)

    def run(self) -> dict[str, float]:
        """Find the best orders, and return the objective of each named schedule."""
        named = dict(self._named())
        if self._could_improve():
            self._try_policies()
        if self._could_improve():
            self._change()
        return named

    def improve(self, seconds: float) -> None:
        """Continue with the best orders for some time."""
        if self.best is not None:
            actions = 3 * self.problem.stages * self.problem.micro_batches
            self._shorten(self.best, math.ceil(seconds / (RUN_TIME * actions)))

    def best_named(self) -> list[_Candidate]:
        """Return the best named schedules with whole backward passes, and with halves."""
        return [group[0] for group in self.ranked_named()]

    def ranked_named(self) -> list[list[_Candidate]]:
        """Return the different named schedules with whole backward passes, and those with halves, the best first."""
        halves = range(I * self.problem.stages, B * self.problem.stages)
        groups: dict[bool, list[_Candidate]] = {}
        for candidate in sorted(self.named, key=lambda candidate: candidate.score):
            group = groups.setdefault(any(code in halves for order in candidate.orders for code in order), [])
            if all(candidate.orders != other.orders for other in group):
                group.append(candidate)
        return list(groups.values())

    def found(self, candidate: _Candidate, named: dict[str, float], bound: float) -> FoundSchedule:
        """Return a candidate as a result of the search."""
        problem, times = self.problem, candidate.times
        return FoundSchedule(
            problem.actions(candidate.orders),
            problem.placement,
            times.step,
            times.slowest,
            list(map(problem.peak, candidate.orders)),
            candidate.origin,
            named,
            bound,
            sorted(problem.recomputed),
        )

    def _could_improve(self) -> bool:
        return self.best is None or self.best.score[0] > self.bound * (1 + 1e-9)

    def _try(self, orders: list[Order], origin: str = "search") -> _Candidate | None:
        """Return the orders as a candidate, None if they don't run or don't fit; keep the best."""
        if not self.problem.fits(orders):
            return None
        times = run(self.problem, orders)
        if times is None:
            return None
        return self._keep(orders, times, origin)

    def _keep(self, orders: list[Order], times: Times, origin: str = "search") -> _Candidate:
        """Return orders as a candidate, and keep them if they are the best."""
        found = _Candidate(self._score(times), times, orders, origin)
        if self.best is None or found.score < self.best.score:
            self.best = found
        return found

    def _score(self, times: Times) -> tuple[float, float]:
        spans = sum(times.end) - sum(times.start)
        return (times.step if self.objective == "step" else times.slowest), spans

    # ---------------------------------------------------------------------------------------- three sources of orders

    def _named(self) -> Iterator[tuple[str, float]]:
        """Try the named schedules; yield what the objective is."""
        ranks = len(self.problem.limits)
        for kind in one_directional():
            if kind.place(self.problem.stages, ranks) == self.problem.placement:
                schedule = make_schedule(kind.name, self.problem.stages, self.problem.micro_batches, ranks=ranks)
                found = self._try(self.problem.orders(schedule), kind.name)
                yield kind.name, math.inf if found is None else found.score[0]
                if found is not None:
                    self.named.append(found)
                    self.starts.append(self.problem.without_weights(found.orders))

    def _try_policies(self) -> None:
        """Try list schedules: with some policies, and then with neighbours of the best policy."""
        policies = list(self._first_policies())
        best, best_found = policies[0], None
        for number in range(self.lists):
            policy = policies[number] if number < len(policies) else self._neighbour(best)
            found = self._try(list_schedule(self.problem, policy))
            if found is not None and (best_found is None or found.score < best_found.score):
                best, best_found = policy, found
            if not self._could_improve():
                return
        if best_found is not None:
            self.starts.append(self.problem.without_weights(best_found.orders))

    def _first_policies(self) -> Iterator[Policy]:
        for split in (True, False):
            for patience in (0.25, 0.0, 0.5, 1.0):
                for weight_patience in (0.0, 0.5):
                    for ahead, slope in ((math.inf, 0.0), (1.0, 1.0), (1.0, 2.0)):
                        yield Policy(ahead, slope, patience, weight_patience, split)

    def _neighbour(self, policy: Policy) -> Policy:
        """Return a policy with some settings changed at random."""
        draw = self.random
        ahead = len(self.problem.limits) * 2.0 if math.isinf(policy.ahead) else policy.ahead
        changed: dict[str, Any] = {
            "ahead": max(1.0, ahead + draw.gauss(0, 2)),
            "slope": max(0.0, policy.slope + draw.gauss(0, 0.3)),
            "forward_patience": max(0.0, policy.forward_patience + draw.gauss(0, 0.2)),
            "weight_patience": max(0.0, policy.weight_patience + draw.gauss(0, 0.2)),
            "latest_first": draw.random() < 0.5,
        }
        return policy._replace(**{name: changed[name] for name in draw.sample(list(changed), 2)})

    def _change(self) -> None:
        """Change the order of forwards and backward passes, with weight halves inserted by the costs; then of all."""
        starts = [
            (found.score, order, patience)
            for order, patience in islice(product(self.starts, PATIENCES), self.changes)
            if (found := self._try_filled(order, patience)) is not None
        ]
        if starts:
            _, bare, patience = min(starts)
            self._climb(bare, lambda orders: self._try_filled(orders, patience), self.changes // 4)
        if self.best is not None:
            self._shorten(self.best, self.changes - self.changes // 4)

    def _climb(self, orders: list[Order], attempt: Callable[[list[Order]], _Candidate | None], tries: int) -> None:
        """Move computations within their rank's order, as long as the step does not get longer."""
        current = attempt(orders)
        for _ in range(tries):
            if not self._could_improve():
                return
            changed = self._with_move(orders)
            found = attempt(changed)
            if found is not None and (current is None or found.score <= current.score):
                current, orders = found, changed

    def _shorten(self, current: _Candidate, tries: int) -> None:
        """Move computations of the critical path, as long as the step does not get longer."""
        blocks: list[Block] = []
        for _ in range(tries):
            if not self._could_improve():
                return
            if not blocks:
                found = critical_blocks(self.problem, current.orders)
                blocks = [block for block in found if block.last > block.first]
            if self.joins and self.random.random() < JOIN_SHARE:
                changed = self._with_other_halves(current.orders)
            elif blocks and self.random.random() < 0.8:
                changed = move_in_block(current.orders, blocks, self.random)
            else:
                changed = self._with_move(current.orders)
            candidate = self._try(changed)
            if candidate is not None and candidate.score <= current.score:
                current, blocks = candidate, []

    def _try_filled(self, bare: list[Order], patience: float) -> _Candidate | None:
        """Return these orders with weight halves as a candidate; None if they don't run."""
        filled = run_filled(self.problem, bare, patience)
        if filled is None or not self.problem.fits(filled[0]):
            return None
        return self._keep(*filled)

    def _with_other_halves(self, orders: list[Order]) -> list[Order]:
        """Return orders in which the halves of a backward pass are joined, or a whole one is divided."""
        rank, stages = self.random.randrange(len(orders)), self.problem.stages
        order = orders[rank].copy()
        first = self.random.choice([at for at, code in enumerate(order) if code // stages in (I, B)])
        stage = order[first] % stages
        half, other, whole = (kind * stages + stage for kind in (I, W, B))
        if order[first] == whole:
            order[first : first + 1] = [half, other]
        else:
            number = sum(code in (half, whole) for code in order[:first])
            last = [at for at, code in enumerate(order) if code in (other, whole)][number]
            order[first] = whole
            del order[last]
        return [*orders[:rank], order, *orders[rank + 1 :]]

    def _with_move(self, orders: list[Order]) -> list[Order]:
        draw = self.random
        rank = draw.randrange(len(orders))
        order = orders[rank].copy()
        start = draw.randrange(len(order))
        code = order.pop(start)
        order.insert(max(0, start + draw.choice((-1, 1)) * draw.randint(1, FARTHEST)), code)
        return [*orders[:rank], order, *orders[rank + 1 :]]


suggest_in_module(globals())
