"""Where to cut: contiguous stages of a graph whose most expensive one is as cheap as can be."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from retrograd.core import Aval
from retrograd.core.aval import reckoned
from retrograd.fx import Graph, Node

# What it costs to carry one number from stage to stage, in multiplications.
CARRIED_NUMBER = 1.0
NEVER = 1e30


def partition(graph: Graph, stages: int) -> dict[Node, int]:
    """The stage of every operator: contiguous in the order of the graph, the costliest stage as cheap as possible.

    Exact, by dynamic programming over the last operator of each stage; a cut adds what it carries to the stage
    before it.  Raises ValueError for more stages than operators.

    >>> import retrograd as rg
    >>> traced = rg.fx.trace(lambda x: x.sin().cos().exp(), rg.ones(3))
    >>> sorted(partition(traced.graph, 3).values())
    [0, 1, 2]
    """
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    if not 1 <= stages <= len(nodes):
        raise ValueError(f"a graph of {len(nodes)} operators can't make {stages} stages")
    ends = smallest_largest([work(node) for node in nodes], carried(nodes), stages)
    stage_of, stage = {}, 0
    for position, node in enumerate(nodes):
        stage_of[node] = stage
        stage += position == ends[stage]
    return stage_of


def smallest_largest(costs: Sequence[float], cuts: Sequence[float], stages: int) -> list[int]:
    """The last position of each of `stages` contiguous groups, such that the costliest is as cheap as possible.

    costs: per position; cuts: what ending a group at that position adds to the group.

    >>> smallest_largest([1, 1, 2, 2, 2], [0] * 5, 2)
    [2, 4]
    """
    count = len(costs)
    before = [0.0]
    for cost in costs:
        before.append(before[-1] + cost)
    best = [before[end + 1] + (cuts[end] if end < count - 1 else 0) for end in range(count)]
    choices: list[list[int]] = []
    for group in range(1, stages):
        now, choice = [float("inf")] * count, [0] * count
        for end in range(group, count):
            closing = cuts[end] if end < count - 1 else 0
            for start in range(end, group - 1, -1):
                last = before[end + 1] - before[start] + closing
                if last >= now[end]:
                    break
                if max(best[start - 1], last) < now[end]:
                    now[end], choice[end] = max(best[start - 1], last), start
        choices.append(choice)
        best = now
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


def carried(nodes: Sequence[Node]) -> list[float]:
    """Per position, what it costs to carry the values that are made up to there and used after."""
    place = {node: i for i, node in enumerate(nodes)}
    changes = [0.0] * (len(nodes) + 1)
    for node, start in place.items():
        end = max((place.get(user, len(nodes) - 1) for user in node.users), default=start)
        size = CARRIED_NUMBER * _numbers(node.meta["val"])
        changes[start] += size
        changes[end] -= size
    return list(accumulate(changes[:-1]))


def _numbers(value: object) -> float:
    """The numbers in a value; the results of an operator with several are taken apart where they are made."""
    return NEVER if isinstance(value, tuple) else math.prod(reckoned(value.shape))  # type: ignore[attr-defined]
