"""A list scheduler that knows costs: each rank starts the most urgent computation that it can, or waits for one."""

import heapq
import math
from typing import NamedTuple

from retrograd.pipelining.planning.schedule_problem import B, F, I, Order, Problem, W
from retrograd.pipelining.schedules.memory_safety import can_finish


class Policy(NamedTuple):
    """How a rank chooses among the computations that could start now.

    ahead, slope: rank `r` of `p` may hold `ahead + slope * (p - 1 - r)` microbatches, within the memory limit.
    forward_patience, weight_patience: the shares of a forward's and a weight half's time within which a rank waits for
    an input half that is about to arrive, rather than start the other.
    split: whether backward passes have halves.  latest_first: whether the forward of the latest stage is preferred, to
    that of the earliest.
    """

    ahead: float = math.inf
    slope: float = 0.0
    forward_patience: float = 0.0
    weight_patience: float = 0.0
    split: bool = True
    latest_first: bool = True


def list_schedule(problem: Problem, policy: Policy) -> list[Order]:
    """Return the order of each rank under this policy.

    Ranks never wait for memory forever: each begins a forward only if it can finish what it has begun.
    """
    ranks = [_Rank(problem, policy, number) for number in range(len(problem.limits))]
    pipeline = _Pipeline(problem, ranks)
    while pipeline.wakeups:
        pipeline.wake()
    return [rank.order for rank in ranks]


class _Pipeline:
    """The times of results that have been computed, and when ranks look for work."""

    def __init__(self, problem: Problem, ranks: "list[_Rank]") -> None:
        self.problem = problem
        self.ranks = ranks
        self.done: list[list[float]] = [[] for _ in range(B * problem.stages)]
        self.wakeups = [(0.0, number) for number in range(len(ranks))]
        # The ranks that a result goes to, and its way there.
        self.users: list[list[tuple[int, float]]] = [[] for _ in self.done]
        for code, needs in enumerate(problem.needs):
            for source, transit, _ in needs:
                self.users[source].append((problem.placement[code % problem.stages], transit))

    def wake(self) -> None:
        """Let the next rank that may have work start some."""
        time, number = heapq.heappop(self.wakeups)
        while self.wakeups and self.wakeups[0] == (time, number):
            heapq.heappop(self.wakeups)
        rank = self.ranks[number]
        if rank.free > time:
            return
        code = rank.choose(time, self.done)
        if code is None:
            return
        rank.start(code)
        receiving = sum(need[2] for need in self.problem.needs[code])
        end = time + receiving + self.problem.seconds[code]
        rank.free = end + self.problem.sending[code]
        heapq.heappush(self.wakeups, (rank.free, number))
        for result in self.problem.results(code):
            self.done[result].append(end)
            for user, transit in self.users[result]:
                # A rank that recomputes may begin before the gradient arrives, but not before now.
                heapq.heappush(self.wakeups, (max(end + transit, time), user))


class _Rank:
    """A rank's order so far, what it holds, and what it may run next."""

    def __init__(self, problem: Problem, policy: Policy, number: int) -> None:
        self.problem, self.policy = problem, policy
        self.stages = problem.rank_stages[number]
        self.order: Order = []
        self.counts = [0] * (B * problem.stages)
        self.kept = problem.frees[W * problem.stages : B * problem.stages]
        self.growth = [problem.growth(I * problem.stages + stage) for stage in range(problem.stages)]
        self.free = 0.0
        self.held = 0.0
        ahead = policy.ahead + policy.slope * (len(problem.limits) - 1 - number)
        self.limit = min(problem.limits[number], max(ahead, 1.0) * problem.least_memory(number)) * (1 + 1e-9)
        self.forwards = self.stages[::-1] if policy.latest_first else self.stages
        self.backward = (I if policy.split else B) * problem.stages

    def start(self, code: int) -> None:
        self.order.append(code)
        for result in self.problem.results(code):
            self.counts[result] += 1
        self.held += self.problem.stores[code] - self.problem.frees[code]

    def choose(self, time: float, done: list[list[float]]) -> int | None:
        """Return the computation to start now; None to wait for the next result."""
        next_gradient = next_input = math.inf
        stages = self.problem.stages
        for stage in self.stages:
            arrival = self._arrival(self.backward + stage, done)
            if arrival <= time:
                return self.backward + stage
            next_gradient = min(next_gradient, arrival)
        for stage in self.forwards:
            if self._fits(stage):
                arrival = self._arrival(F * stages + stage, done)
                if arrival <= time and self._may_start(
                    F * stages + stage, self.policy.forward_patience, next_gradient - time
                ):
                    return F * stages + stage
                next_input = min(next_input, arrival)
        for stage in self.stages:
            if self.counts[W * stages + stage] < self.counts[I * stages + stage]:
                wait = min(next_gradient, max(next_input, time)) - time
                if self._may_start(W * stages + stage, self.policy.weight_patience, wait):
                    return W * stages + stage
                break
        return None

    def _may_start(self, code: int, patience: float, wait: float) -> bool:
        return wait >= patience * self.problem.seconds[code] * (1 - 1e-9)

    def _arrival(self, code: int, done: list[list[float]]) -> float:
        """Return when the next microbatch of a computation has all it needs; infinity if that is not known yet."""
        number = self.counts[self.problem.results(code)[0]]
        if number == self.problem.micro_batches:
            return math.inf
        latest = 0.0
        for source, transit, _ in self.problem.needs[code]:
            if len(done[source]) <= number:
                return math.inf
            latest = max(latest, done[source][number] + transit)
        return latest

    def _fits(self, stage: int) -> bool:
        """Return whether a rank can finish what it has begun, and this forward, within its memory."""
        stages, counts, stores = self.problem.stages, self.counts, self.problem.stores
        free = self.limit - self.held - stores[stage]
        if free < 0:
            return False
        forwards = counts[:stages]
        forwards[stage] += 1
        inputs, weights = counts[stages : 2 * stages], counts[2 * stages :]
        return can_finish(
            self.stages, forwards, inputs, weights, free=free, saved=stores, kept=self.kept, growth=self.growth
        )
