"""Partition a graph into contiguous stages that minimize the cost of the most expensive one."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any

from retrograd.core import Aval
from retrograd.core.aval import SymbolicSize
from retrograd.fx import Graph, Node

# the cost of sending one element from stage to stage, in multiplications
CARRIED_NUMBER = 1
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
        raise ValueError(f"a graph of {len(nodes)} operators can't make {stages} stages")
    ends = minimize_largest([work(node) for node in nodes], carried(nodes), stages)
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
    count = len(costs)
    limits = earliest or [[0] * count] * stages
    before = [0.0, *accumulate(costs)]
    opening, closing = [0.0, *cuts[: count - 1]], [*cuts[: count - 1], 0.0]
    best = [before[end + 1] + closing[end] if limits[0][end] == 0 else math.inf for end in range(count)]
    choices: list[list[int]] = []
    for group in range(1, stages):
        now, choice = [math.inf] * count, [0] * count
        for end in range(group, count):
            for start in range(end, max(group, limits[group][end]) - 1, -1):
                last = before[end + 1] - before[start] + closing[end]
                if last >= now[end]:
                    break
                slowest = max(best[start - 1], last + opening[start])
                if slowest < now[end]:
                    now[end], choice[end] = slowest, start
        choices.append(choice)
        best = now
    if best[-1] == math.inf:
        raise ValueError(f"smallest_largest: no {stages} groups keep within their limits")
    ends = [count - 1]
    for choice in reversed(choices):
        ends.append(choice[ends[-1]] - 1)
    return ends[::-1]


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


def carried(nodes: Sequence[Node], size: Callable[[Node], float] | None = None) -> list[float]:
    """Return per index the cost of sending the values that are produced up to it and used after it.

    size: maps a node to the cost of its value; None: its number of elements.
    """
    place = {node: i for i, node in enumerate(nodes)}
    changes: list[float] = [0] * (len(nodes) + 1)
    for node, start in place.items():
        end = max((place.get(user, len(nodes) - 1) for user in node.users), default=start)
        carrying = CARRIED_NUMBER * numbers(node.meta["val"]) if size is None else size(node)
        changes[start] += carrying
        changes[end] -= carrying
    return list(accumulate(changes[:-1]))


def numbers(value: object) -> float:
    """Return the number of elements of a value; NEVER for a tuple of results, so that no cut separates them."""
    return NEVER if isinstance(value, tuple) else math.prod(typical_shape(value.shape))  # type: ignore[attr-defined]


def along_parameters(graph: Graph, stages_of: Mapping[str, Collection[int]]) -> dict[Node, int]:
    """Assign every operator to the stage of its parameters, as early as its inputs allow.

    stages_of: for each parameter by qualified name, the stages that have it, as from another capture of the model.
    Operators that depend on neither inputs nor parameters, such as random ones, go to their users.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(2, 2), rg.nn.Dropout(0.5), rg.nn.Linear(2, 2))
    >>> traced = rg.fx.trace(model, rg.ones(1, 2))
    >>> homes = {"0.weight": {0}, "0.bias": {0}, "2.weight": {1}, "2.bias": {1}}
    >>> found = along_parameters(traced.graph, homes)
    >>> [(node.name, stage) for node, stage in found.items()][-3:]
    [('ge', 0), ('keep', 0), ('linear_1', 1)]
    """
    stage_of: dict[Node, int] = {}
    fixed: set[Node] = set()
    for node in graph.nodes:
        inputs = node.all_input_nodes
        earliest = max((stage_of.get(used, 0) for used in inputs), default=0)
        for used in inputs:
            homes = sorted(stages_of.get(str(used.target), ())) if used.op == "get_attr" else []
            earliest = max(earliest, next((stage for stage in homes if stage >= earliest), earliest))
        if node.op == "call_function":
            stage_of[node] = earliest
        if node.op == "placeholder" or any(used.op == "get_attr" or used in fixed for used in inputs):
            fixed.add(node)
    for node in reversed([node for node in stage_of if node not in fixed]):
        stage_of[node] = min((stage_of[user] for user in node.users if user in stage_of), default=stage_of[node])
    return stage_of
