"""The computations that determine how long a step takes: moving others cannot shorten it."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from retrograd.pipelining.planning.schedule_problem import Order, Problem, Run


class Block(NamedTuple):
    """Computations of a rank that run without a pause on the critical path: positions in its order, both included."""

    rank: int
    first: int
    last: int


def critical_blocks(problem: Problem, orders: Sequence[Order]) -> list[Block]:
    """Return the blocks of one critical path, from the end of the step to its start; orders must run to the end.

    A critical path consists of computations each of which starts when the one before it ends, or its result arrives.
    To shorten the step, a computation of a block must move to before the block's first or behind its last one.

    Source: J. Grabowski, E. Nowicki and S. Zdrzałka, "A block approach for single-machine scheduling with release dates
    and due dates" (1986).

    >>> from retrograd.pipelining.planning.schedule_problem import make_problem
    >>> from retrograd.pipelining.planning.simulate import unit_cost
    >>> ones = {0: 1.0, 1: 1.0}
    >>> problem = make_problem([0, 1], 1, {(0, 1)}, unit_cost, ones, ones, [9.0, 9.0])
    >>> critical_blocks(problem, [[0, 2, 4], [1, 3, 5]])  # F I W of both stages
    [Block(rank=0, first=1, last=2), Block(rank=1, first=0, last=1), Block(rank=0, first=0, last=0)]
    """
    path = _Path(problem, orders)
    blocks: list[Block] = []
    rank = max(range(len(orders)), key=path.now.__getitem__)
    last = first = len(orders[rank]) - 1
    while True:
        source = path.source_of(rank, first)
        if source is None and first:
            first -= 1
            continue
        blocks.append(Block(rank, first, last))
        if source is None:
            return blocks
        rank, first = source
        last = first


class _Path(Run):
    """The times of all computations, by their positions in the orders."""

    def __init__(self, problem: Problem, orders: Sequence[Order]) -> None:
        super().__init__(problem, orders)
        finished = self.finish()
        assert finished, "the orders run to the end"
        self.places: list[list[tuple[int, int]]] = [[] for _ in self.done]
        self.numbers: list[list[int]] = []
        for rank, order in enumerate(orders):
            numbers = []
            for position, code in enumerate(order):
                results = problem.results(code)
                numbers.append(len(self.places[results[0]]))
                for result in results:
                    self.places[result].append((rank, position))
            self.numbers.append(numbers)

    def source_of(self, rank: int, position: int) -> tuple[int, int] | None:
        """Return where the computation is whose result this one waits for; None if it waits for its rank, or nothing.

        A rank that is free when the result arrives waits for the result.
        """
        order, number = self.orders[rank], self.numbers[rank][position]
        free = self._free_from(rank, position)
        found = None
        for source, transit, receiving in self.problem.needs[order[position]]:
            arrival = self.done[source][number] + transit
            if arrival > free:
                free, found = arrival, self.places[source][number]
            free += receiving
        return found

    def _free_from(self, rank: int, position: int) -> float:
        """Return when a rank has run, and sent, what comes before a position of its order."""
        if not position:
            return 0.0
        code, number = self.orders[rank][position - 1], self.numbers[rank][position - 1]
        return self.done[self.problem.results(code)[0]][number] + self.problem.sending[code]


def move_in_block(orders: Sequence[Order], blocks: Sequence[Block], draw: Random) -> list[Order]:
    """Return orders in which a computation has moved to one end of its block; draw which, and how far it moves.

    blocks: some with at least two computations.
    """
    rank, first, last = draw.choice(blocks)
    inner, end = draw.randint(first, last - 1), draw.random()
    order = orders[rank].copy()
    if end < 0.4:  # the last one earlier
        order.insert(inner, order.pop(last))
    elif end < 0.8:  # another one behind the last
        order.insert(last, order.pop(inner))
    elif end < 0.9:  # the first one later
        order.insert(inner + 1, order.pop(first))
    else:  # another one before the first
        order.insert(first, order.pop(inner + 1))
    return [*orders[:rank], order, *orders[rank + 1 :]]
