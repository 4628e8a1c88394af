"""Where to cut: contiguous stages of a graph whose most expensive one is as cheap as can be."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any

from retrograd.core import Aval
from retrograd.core.aval import reckoned
from retrograd.fx import Graph, Node

# What it costs to carry one number from stage to stage, in multiplications.
CARRIED_NUMBER = 1
NEVER = 10**30  # with whole numbers, sums that it was part of are exact afterwards


def partition(graph: Graph, stages: int) -> dict[Node, int]:
    """The stage of every operator: contiguous in the order of the graph, the costliest stage as cheap as possible.

    Exact, by dynamic programming over the last operator of each stage; a cut adds what it carries to the stages
    on both sides of it.  Raises ValueError for more stages than operators, TypeError for no integer.

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
    ends = smallest_largest([work(node) for node in nodes], carried(nodes), stages)
    stage_of, stage = {}, 0
    for position, node in enumerate(nodes):
        stage_of[node] = stage
        stage += position == ends[stage]
    return stage_of


def smallest_largest(
    costs: Sequence[float], cuts: Sequence[float], stages: int, earliest: Sequence[Sequence[int]] | None = None
) -> list[int]:
    """The last position of each of `stages` contiguous groups, such that the costliest is as cheap as possible.

    costs: per position; cuts: what ending a group at that position adds to it and to the group that follows.
    earliest: per group and last position, the first position that it may have (past the last: none); None: any.

    Raises ValueError where `earliest` leaves no way.

    >>> smallest_largest([1, 1, 2, 2, 2], [0] * 5, 2)
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
    """The multiplications that an operator takes, as its definition counts them from shapes."""
    inputs = [_in_numbers(argument.meta["val"]) for argument in node.all_input_nodes]
    return float(node.target.definition.work(inputs, _in_numbers(node.meta["val"])))


def _in_numbers(value: Any) -> Any:
    """What is known of a value, or of several, with typical sizes for those that are no numbers."""
    if isinstance(value, Aval):
        return Aval(reckoned(value.shape), value.dtype)
    return tuple(map(_in_numbers, value)) if isinstance(value, tuple) else value


def carried(nodes: Sequence[Node], size: Callable[[Node], float] | None = None) -> list[float]:
    """Per position, what it costs to carry the values that are made up to there and used after.

    size: of the value of a node; None: its numbers, times what it costs to carry one.
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
    """The numbers in a value; the results of an operator with several are taken apart where they are made."""
    return NEVER if isinstance(value, tuple) else math.prod(reckoned(value.shape))  # type: ignore[attr-defined]


def along_parameters(graph: Graph, stages_of: Mapping[str, Collection[int]]) -> dict[Node, int]:
    """The stage of every operator such that each works where its parameters are, as early as its inputs allow.

    stages_of: for each parameter by qualified name, the stages that have it, as from another capture of the model.
    Operators that depend on neither inputs nor parameters, like those that draw random numbers, go to their users.

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
