"""The shortest schedules of small pipelines, by integer programming."""

from collections import defaultdict

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

KINDS = "FIW"
CHANGE = {"F": 1, "I": 0, "W": -1}  # of the activations that a rank holds


def shortest_step(stages, micro_batches, seconds, latency, *, placement, limit):
    """Return the shortest step of a chain of stages.

    seconds: by kind.  latency: of a message between ranks.  limit: the activations that a rank may hold.

    The variables are the start of every computation, the order of every pair on a rank, and the step.
    """
    actions = [(kind, stage, number) for kind in KINDS for stage in range(stages) for number in range(micro_batches)]
    index = {action: number for number, action in enumerate(actions)}
    rank = [placement[stage] for _, stage, _ in actions]
    pairs = [(one, other) for one in index.values() for other in range(one) if rank[one] == rank[other]]
    first = {pair: len(actions) + number for number, pair in enumerate(pairs)}  # 1 if `one` runs before `other`
    step = len(actions) + len(pairs)
    span = micro_batches * stages * (sum(seconds.values()) + 2 * latency)
    rows = []  # the factors of some variables, and the least that their sum may be
    for (kind, stage, number), one in index.items():
        rows.append(({step: 1, one: -1}, seconds[kind]))
        for needed in _needs(kind, stage, number, stages):
            apart = placement[needed[1]] != placement[stage]
            rows.append(({one: 1, index[needed]: -1}, seconds[needed[0]] + latency * apart))
        if kind == "F":
            rows.append(_memory(one, actions, rank, first, limit))
    for (one, other), before in first.items():
        rows.append(({other: 1, one: -1, before: -span}, seconds[actions[one][0]] - span))
        rows.append(({one: 1, other: -1, before: span}, seconds[actions[other][0]]))
    return _solve(rows, integers=range(len(actions), step), step=step, span=span)


def _needs(kind, stage, number, stages):
    if kind == "F":
        return [("F", stage - 1, number)] if stage else []
    if kind == "W":
        return [("I", stage, number)]
    return [("I", stage + 1, number)] if stage + 1 < stages else [("F", stage, number)]


def _memory(one, actions, rank, first, limit):
    """Return the constraint that a forward and what runs before it hold at most `limit` activations."""
    factors, least = defaultdict(int), 1 - limit
    for other, (kind, _, _) in enumerate(actions):
        if other == one or rank[other] != rank[one] or not CHANGE[kind]:
            continue
        if other > one:
            factors[first[other, one]] -= CHANGE[kind]
        else:
            factors[first[one, other]] += CHANGE[kind]
            least += CHANGE[kind]
    return factors, least


def _solve(rows, *, integers, step, span):
    entries = [(factor, row, column) for row, (factors, _) in enumerate(rows) for column, factor in factors.items()]
    factors, row, column = zip(*entries, strict=True)
    matrix = csr_array((factors, (row, column)), shape=(len(rows), step + 1))
    integrality = np.isin(np.arange(step + 1), integers)
    found = milp(
        np.arange(step + 1) == step,
        constraints=LinearConstraint(matrix, [least for _, least in rows]),
        integrality=integrality,
        bounds=Bounds(0, np.where(integrality, 1, span)),
    )
    assert found.status == 0, found.message
    return found.fun
