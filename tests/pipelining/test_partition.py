"""Partition of a graph into stages of about equal cost."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd import fx, nn
from retrograd.pipelining.split.partition import NEVER, SAMPLED_ENDS, _Search, cut_costs, minimize_largest, partition


def largest(costs, cuts, ends):
    starts = [0, *[end + 1 for end in ends[:-1]]]
    sums = [sum(costs[s : e + 1]) for s, e in zip(starts, ends, strict=True)]
    after = [*(cuts[e] for e in ends[:-1]), 0]
    return max(map(sum, zip(sums, after, [0, *after[:-1]], strict=True)))


@given(st.data(), st.lists(st.integers(0, 20), min_size=1, max_size=8))
def test_no_other_partition_has_a_cheaper_costliest_stage(data, costs):
    cuts = data.draw(st.lists(st.integers(0, 9), min_size=len(costs), max_size=len(costs)))
    stages = data.draw(st.integers(1, len(costs)))
    ends = minimize_largest(costs, cuts, stages)
    assert ends[-1] == len(costs) - 1
    assert len(ends) == len(set(ends)) == stages
    others = combinations(range(len(costs) - 1), stages - 1)
    best = min(largest(costs, cuts, [*other, len(costs) - 1]) for other in others)
    assert largest(costs, cuts, ends) == best


@pytest.mark.parametrize("seed", range(4))
def test_the_search_with_a_bound_finds_the_partition_that_the_one_without_finds(seed):
    r = random.Random(seed)
    costs = [r.choice([0, 1, 1, r.randrange(30)]) for _ in range(2 * SAMPLED_ENDS + seed)]
    cuts = [r.choice([NEVER, r.randrange(40)]) for _ in costs]
    stages = r.choice([3, 7])
    earliest = [[max(0, end - 150) if group else 0 for end in range(len(costs))] for group in range(stages)]
    for limits in ([[0] * len(costs)] * stages, earliest):
        expected = _Search(costs, cuts, stages, limits).run(range(len(costs)), math.inf)[1]
        assert minimize_largest(costs, cuts, stages, limits) == expected


def test_a_long_chain_is_partitioned_without_trying_all_pairs_of_ends():
    class Cost(int):
        compared = 0

        def __add__(self, other):
            return Cost(int(self) + int(other))

        __radd__ = __add__

        def __sub__(self, other):
            Cost.compared += 1
            return Cost(int(self) - int(other))

    minimize_largest([Cost(1)] * 3000, [0] * 3000, 4)
    assert 0 < Cost.compared < 100_000  # of 6,000,000 pairs


def test_equal_layers_are_shared_out_equally():
    model = nn.Sequential(*[nn.Linear(5, 5) for _ in range(6)])
    stage_of = partition(fx.trace(model, rg.ones(2, 5)).graph, 3)
    assert list(stage_of.values()) == [0, 0, 1, 1, 2, 2]


def test_a_value_is_carried_until_its_last_use():
    graph = fx.trace(lambda x: (x.sin() * 2).exp() + x.sin(), rg.ones(10)).graph
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    assert [node.target.name for node in nodes] == ["sin", "mul", "exp", "sin", "add"]
    assert cut_costs(nodes)[:4] == [10.0, 10.0, 10.0, 20.0]


def test_more_stages_than_operators_are_refused():
    graph = fx.trace(lambda x: x * 2, rg.ones(1)).graph
    with pytest.raises(ValueError, match="1 operators can't make 2 stages"):
        partition(graph, 2)
