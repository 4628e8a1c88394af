"""Interleaved 1F1B, with full and with split backward passes: a microbatch passes every rank several times."""

from collections.abc import Iterator
from typing import NamedTuple

from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.interleave import alternate, alternate_halves, in_rounds
from retrograd.pipelining.schedules.stage_placement import ComputeOrders, StagesByRank


def interleaved_1f1b(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under interleaved 1F1B: 1F1B over rounds of microbatches, stage by stage.

    With p ranks, v stages per rank and m microbatches, m at least p, a rank is idle for (p - 1)(F + B), F and B of
    a single stage: 1 / v of the idle time of 1F1B, where the same model is p stages. A rank holds at most
    (v - 1) g + 2 (p - 1 - rank) + 1 activations of a single stage, of m v in all, where a round has at most g
    microbatches: p if m is a multiple of p, otherwise less than 2 p. With one stage per rank this is
    1F1B.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
    2021 (arXiv 2104.04473), section 2.2, where m has to be a multiple of p. Otherwise the microbatches are
    divided evenly into rounds of at least p, and no rank waits between rounds.

    >>> " ".join(map(str, interleaved_1f1b([[0, 2], [1, 3]], 2)[1]))
    'F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 B1.0 B1.1'
    """
    return _interleaved(rank_stages, micro_batches, extra=0)


def interleaved_warmup(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under interleaved 1F1B with one more forward before the first backward.

    Then a forward and the backward before it are of different microbatches and do not wait for each other, so that the
    messages of one can overlap with the other. A rank holds one activation more than under `interleaved_1f1b`.

    Source: Kimi Team, "Kimi K2: Open Agentic Intelligence", 2025 (arXiv 2507.20534), section 2.4.2.

    >>> " ".join(map(str, interleaved_warmup([[0, 2], [1, 3]], 2)[1]))
    'F1.0 F1.1 F3.0 F3.1 B3.0 B3.1 B1.0 B1.1'
    """
    return _interleaved(rank_stages, micro_batches, extra=1)


def _interleaved(rank_stages: StagesByRank, micro_batches: int, extra: int) -> ComputeOrders:
    """Return interleaved 1F1B with `extra` forwards more before the first backward of each rank."""
    hop = 1 if len(rank_stages[0]) == 1 else 2
    rounds = _Rounds.of(micro_batches, len(rank_stages))
    return [
        alternate(
            in_rounds(Kind.F, stages, rounds.ranges()),
            in_rounds(Kind.B, stages, rounds.ranges()),
            ahead=_warmup_forwards(stages, rounds, hop * (len(rank_stages) - 1 - rank)) + extra,
        )
        for rank, stages in enumerate(rank_stages)
    ]


def interleaved_zero_bubble(rank_stages: StagesByRank, micro_batches: int) -> ComputeOrders:
    """Return each rank's computations under interleaved 1F1B with split backward passes, as in ZB-H1.

    A rank holds at most (v - 1) g + p activations of a single stage, in the terms of `interleaved_1f1b`, which is
    p - 1 less than that schedule on its first rank. From its first to its last action a rank is idle for at most
    (p - 1)(F + I - W), F, I and W of a single stage, if they take equally long and m is at least p. With
    one stage per rank this is ZB-H1.

    Source: Qi, Wan, Huang, Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024 (arXiv 2401.10241), applied to
    the order of `interleaved_1f1b`.

    >>> " ".join(map(str, interleaved_zero_bubble([[0, 2], [1, 3]], 2)[1]))
    'F1.0 F1.1 F3.0 I3.0 F3.1 I3.1 W3.0 I1.0 W3.1 I1.1 W1.0 W1.1'
    """
    rounds = _Rounds.of(micro_batches, len(rank_stages))
    return [
        alternate_halves(
            *(in_rounds(kind, stages, rounds.ranges()) for kind in (Kind.F, Kind.I, Kind.W)),
            ahead=_warmup_forwards(stages, rounds, len(rank_stages) - 1 - rank),
            keep=_warmup_forwards(stages, rounds, len(rank_stages) - 1),
        )
        for rank, stages in enumerate(rank_stages)
    ]


class _Rounds(NamedTuple):
    """The microbatches, divided evenly into rounds; computed as they are needed, because there may be thousands."""

    number: int
    micro_batches: int

    @classmethod
    def of(cls, micro_batches: int, ranks: int) -> "_Rounds":
        """Return rounds of at least `ranks` microbatches, or one round if there are fewer."""
        return cls(max(1, micro_batches // ranks), micro_batches)

    @property
    def largest(self) -> int:
        """Return the microbatches of the largest round."""
        return -(-self.micro_batches // self.number)

    def ranges(self) -> Iterator[range]:
        """Yield the microbatches of each round."""
        for index in range(self.number):
            yield range(index * self.micro_batches // self.number, (index + 1) * self.micro_batches // self.number)


def _warmup_forwards(stages: list[int], rounds: _Rounds, hops: int) -> int:
    """Return the number of forwards before the first backward, which needs those of all stages of the rank."""
    return (len(stages) - 1) * rounds.largest + hops + 1
