"""Partition a graph into contiguous stages that minimize the cost of the most expensive one."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from retrograd.core import Aval
from retrograd.core.aval import SymbolicSize
from retrograd.fx import Graph, Node

# the cost of sending one element from stage to stage, in multiplications
SEND_COST = 1
SAMPLED_ENDS = 200  # the ends that a first search tries, to bound the search among all
NEVER = 10**30  # an integer, so that sums stay exact after it is subtracted


def partition(graph: Graph, stages: int) -> dict[Node, int]:
    """Return the stage of every operator: contiguous in graph order, minimizing the most expensive stage.

    Exact, by dynamic programming over the last operator of each stage; a cut adds the cost of its values to the
    stages on both sides.  Raises ValueError for more stages than operators, TypeError for a non-integer.

    >>> import retrograd as rg
    >>> traced = rg.fx.trace(lambda x: x.sin().cos().exp(), rg.ones(3))
    >>> sorted(partition(traced.graph, 3).values())
    [0, 1, 2]
    """
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    if not isinstance(stages, int):
        raise TypeError(f"the number of stages must be an integer, got {stages!r}")
    if not 1 <= stages <= len(nodes):
        raise ValueError(f"a graph of {len(nodes)} operators can't make {stages} stages; each needs at least one")
    ends = minimize_largest([work(node) for node in nodes], cut_costs(nodes), stages)
    stage_of, stage = {}, 0
    for position, node in enumerate(nodes):
        stage_of[node] = stage
        stage += position == ends[stage]
    return stage_of


def minimize_largest(
    costs: Sequence[float], cuts: Sequence[float], stages: int, earliest: Sequence[Sequence[int]] | None = None
) -> list[int]:
    """Return the last index of each of `stages` contiguous groups that minimize the most expensive group.

    costs: per index; cuts: the cost that ending a group at an index adds to it and to the next group.
    earliest: per group and last index, the smallest first index (past the last: impossible); None: any.

    Raises ValueError if `earliest` permits no partition.

    >>> minimize_largest([1, 1, 2, 2, 2], [0] * 5, 2)
    [2, 4]
    """
    search = _Search(costs, cuts, stages, earliest or [[0] * len(costs)] * stages)
    bound = search.run(_cheap_ends(cuts, len(costs)), math.inf)[0] if len(costs) > SAMPLED_ENDS else math.inf
    largest, ends = search.run(range(len(costs)), bound)
    if largest == math.inf:
        raise ValueError(f"minimize_largest: no {stages} groups keep within their limits")
    return ends


class _Search:
    """Dynamic programming over the last index of each group."""

    def __init__(
        self, costs: Sequence[float], cuts: Sequence[float], stages: int, limits: Sequence[Sequence[int]]
    ) -> None:
        self.stages = stages
        self.limits = limits
        self.before = [0.0, *accumulate(costs)]
        self.opening, self.closing = [0.0, *cuts[: len(costs) - 1]], [*cuts[: len(costs) - 1], 0.0]

    def run(self, ends: Sequence[int], bound: float) -> tuple[float, list[int]]:
        """Return the cost of the most expensive group, and the last index of each.

        ends: the indices that may be last, ascending, with the last of all.  bound: a cost that some partition has,
        so that the search skips all that cost more; the result is the same as without.
        """
        best = [self._first_group(end) for end in ends]
        choices: list[list[int]] = []
        for group in range(1, self.stages):
            best, choice = self._add_group(group, ends, best, bound)
            choices.append(choice)
        index, found = len(ends) - 1, [ends[-1]]
        for choice in reversed(choices):
            index = choice[index]
            found.append(ends[index])
        return best[-1], found[::-1]

    def _first_group(self, end: int) -> float:
        return self.before[end + 1] + self.closing[end] if self.limits[0][end] == 0 else math.inf

    def _add_group(
        self, group: int, ends: Sequence[int], best: Sequence[float], bound: float
    ) -> tuple[list[float], list[int]]:
        """Return the cost with one more group, and the place of the previous end, for each of its ends."""
        before, opening, count = self.before, self.opening, len(ends)
        now, choice = [math.inf] * count, [0] * count
        slack = bound * (1 + 1e-9)  # for sums that are rounded
        for index in range(group, count):
            end = ends[index]
            if before[-1] - before[end + 1] > (self.stages - 1 - group) * slack:
                continue  # the groups after it would cost more
            if before[end + 1] > (group + 1) * slack:
                break  # it or the groups before it would cost more
            for previous in range(index - 1, group - 2, -1):
                start = ends[previous] + 1
                last = before[end + 1] - before[start] + self.closing[end]
                if last >= now[index] or last > slack or start < self.limits[group][end]:
                    break
                slowest = max(best[previous], last + opening[start])
                if slowest < now[index]:
                    now[index], choice[index] = slowest, previous
        return now, choice


def _cheap_ends(cuts: Sequence[float], count: int) -> list[int]:
    """Return, for each of SAMPLED_ENDS equal ranges of indices, the one with the cheapest cut."""
    bounds = [count * i // SAMPLED_ENDS for i in range(SAMPLED_ENDS + 1)]
    cheap = [min(range(low, high), key=cuts.__getitem__) for low, high in pairwise(bounds)]
    return [*cheap[:-1], count - 1]


def work(node: Node) -> float:
    """Return the multiplications of an operator, as its definition estimates them from shapes."""
    inputs = [_with_typical_sizes(argument.meta["val"]) for argument in node.all_input_nodes]
    return float(node.target.definition.work(inputs, _with_typical_sizes(node.meta["val"])))


def _with_typical_sizes(value: Any) -> Any:
    """Replace symbolic sizes of a value, or of several, by typical ones."""
    if isinstance(value, Aval):
        return Aval(typical_shape(value.shape), value.dtype)
    return tuple(map(_with_typical_sizes, value)) if isinstance(value, tuple) else value


def typical_shape(shape: tuple) -> tuple:
    """Return a shape in numbers, for estimates: symbolic sizes are replaced by typical ones."""
    return tuple([size.typical() if isinstance(size, SymbolicSize) else size for size in shape])


def cut_costs(nodes: Sequence[Node], size: Callable[[Node], float] | None = None) -> list[float]:
    """Return per index the cost of sending the values that are produced up to it and used after it.

    size: maps a node to the cost of its value; None: its number of elements.
    """
    position = {node: i for i, node in enumerate(nodes)}
    changes: list[float] = [0] * (len(nodes) + 1)
    for node, start in position.items():
        end = max((position.get(user, len(nodes) - 1) for user in node.users), default=start)
        size_cost = SEND_COST * element_count(node.meta["val"]) if size is None else size(node)
        changes[start] += size_cost
        changes[end] -= size_cost
    return list(accumulate(changes[:-1]))


def element_count(value: object) -> float:
    """Return the number of elements of a value; NEVER for a tuple of results, so that no cut separates them."""
    return NEVER if isinstance(value, tuple) else math.prod(typical_shape(value.shape))  # type: ignore[attr-defined]


def assign_by_parameters(graph: Graph, stages_of: Mapping[str, Collection[int]]) -> dict[Node, int]:
    """Assign every operator to the stage of its parameters, as early as its inputs allow.

    stages_of: for each parameter by qualified name, the stages that have it, as from another capture of the model.
    Operators that depend on neither inputs nor parameters, such as random ones, go to their users.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(2, 2), rg.nn.Dropout(0.5), rg.nn.Linear(2, 2))
    >>> traced = rg.fx.trace(model, rg.ones(1, 2))
    >>> tensor_stages = {"0.weight": {0}, "0.bias": {0}, "2.weight": {1}, "2.bias": {1}}
    >>> found = assign_by_parameters(traced.graph, tensor_stages)
    >>> [(node.name, stage) for node, stage in found.items()][-3:]
    [('ge', 0), ('keep', 0), ('linear_1', 1)]
    """
    stage_of: dict[Node, int] = {}
    fixed: set[Node] = set()
    for node in graph.nodes:
        inputs = node.all_input_nodes
        earliest = max((stage_of.get(used, 0) for used in inputs), default=0)
        for used in inputs:
            tensor_stages = sorted(stages_of.get(str(used.target), ())) if used.op == "get_attr" else []
            earliest = max(earliest, next((stage for stage in tensor_stages if stage >= earliest), earliest))
        if node.op == "call_function":
            stage_of[node] = earliest
        if node.op == "placeholder" or any(used.op == "get_attr" or used in fixed for used in inputs):
            fixed.add(node)
    for node in reversed([node for node in stage_of if node not in fixed]):
        stage_of[node] = min((stage_of[user] for user in node.users if user in stage_of), default=stage_of[node])
    return stage_of
