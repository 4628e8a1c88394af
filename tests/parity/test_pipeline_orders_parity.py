"""Orders with PyTorch's action names: their tables, checks and added actions are those of PyTorch's functions."""

import random

import pytest
from torch.distributed.pipelining import _utils as their_utils
from torch.distributed.pipelining import schedules as theirs
from torch.distributed.pipelining.stage import _PipelineStageBase as PeerStage

import retrograd as rg
from retrograd import pipelining as ours
from retrograd.distributed.pipelining import _utils as our_utils
from retrograd.distributed.pipelining import schedules as our_schedules

from .programs import ErrorClasses

SIZES = [(ranks, stages, batches) for ranks in (1, 2, 3) for stages in (1, 2, 3) for batches in (1, 2, 5)]
WRONG = {
    "a rank too few": {0: "0F0 0F1 0B0 0B1"},
    "a backward missing": {0: "0F0 0F1 0B0 0B1", 1: "1F0 1B0 1F1"},
    "a backward before its forward": {0: "0B0 0F0 0F1 0B1", 1: "1F0 1B0 1F1 1B1"},
    "a forward missing": {0: "0F0 0B0", 1: "1F0 1B0 1F1 1B1"},
    "an input half before its forward": {0: "0I0 0F0 0F1 0W0 0B1", 1: "1F0 1B0 1F1 1B1"},
    "a weight half before the input half": {0: "0F0 0F1 0W0 0I0 0I1 0W1", 1: "1F0 1B0 1F1 1B1"},
    "a weight half after a whole backward": {0: "0F0 0F1 0B0 0W0 0B1", 1: "1F0 1B0 1F1 1B1"},
    "halves without their weights": {0: "0F0 0F1 0I0 0I1", 1: "1F0 1B0 1F1 1B1"},
    "a backward whole and halved": {0: "0F0 0F1 0B0 0I0 0W0 0B1", 1: "1F0 1B0 1F1 1B1"},
    "a stage on two ranks": {0: "0F0 0F1 0B0 0B1", 1: "0F0 0B0 1F1 1B1"},
    "a rank without actions": {0: "0F0 0F1 0B0 0B1", 1: ""},
}  # fmt: skip
RIGHT = {
    "whole": {0: "0F0 0F1 0B0 0B1", 1: "- 1F0 1B0 1F1 1B1"},
    "halves": {0: "0F0 0F1 0I0 0W0 0I1 0W1", 1: "1F0 1B0 1F1 1B1"},
    "mixed": {0: "0F0 0F1 0B0 0I1 0W1", 1: "1F0 1B0 1F1 1B1"},
    "a forward twice": {0: "0F0 0F0 0F1 0B0 0B1", 1: "1F0 1B0 1F1 1B1"},
    "overlapping": {0: "0F0 (0F1;0B0)OVERLAP_F_B 0B1", 1: "1F0 1B0 1F1 1B1"},
    "with other actions": {0: "0UNSHARD 0F0 0SEND_F0 0F1 0B0 0B1 0RESHARD", 1: "1F0 1B0 1F1 1B1"},
}  # fmt: skip


def read(library, row):
    return [None if text == "-" else library._Action.from_str(text) for text in row.split()]


def both(function, *args):
    """Return the results of both libraries as text, or the errors' classes and messages."""
    found = []
    for library in (ours, theirs):
        try:
            found.append(function(library, *args))
        except Exception as error:
            words = " ".join(str(error).split())
            found.append((sorted(kind.__name__ for kind in ErrorClasses(error)), words))
    return found


def agree(function, *args):
    mine, peer = both(function, *args)
    assert mine == peer
    return mine


def order(ranks, stages, batches, halves, seed):
    """Return a possible order of computations for each rank as text: each stage's forwards, then its backwards."""
    chosen = random.Random(seed)
    rows = {}
    for rank in range(ranks):
        own = [rank + ranks * i for i in range(stages)]
        forwards = [f"{stage}F{batch}" for stage in own for batch in range(batches)]
        backwards = []
        for stage in reversed(own):
            for batch in range(batches):
                split = halves and chosen.random() < 0.5
                backwards += [f"{stage}I{batch}", f"{stage}W{batch}"] if split else [f"{stage}B{batch}"]
        waits = ["-"] * chosen.randrange(3)
        rows[rank] = " ".join([*waits, *forwards, *waits, *backwards])
    return rows


def read_all(library, rows):
    return {rank: read(library, row) for rank, row in rows.items()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_added_actions_are_pytorchs(size, halves, seed):
    ranks, stages, batches = size
    rows = order(*size, halves, seed)
    for active in (1, 2, 3):
        agree(lambda p, active=active: str(p._add_unshard_reshard(read(p, rows[0]), active)))
    agree(lambda p: str(p._add_unshard_reshard(read(p, rows[0]))))
    agree(lambda p: str(p._merge_bw(read(p, rows[0]))))
    agree(lambda p: str(p._add_reduce_grad(p._merge_bw(read(p, rows[0])), batches)))
    agree(lambda p: str(p._add_send_recv(read_all(p, rows), lambda stage: stage % ranks, ranks * stages)))
    agree(lambda p: p._validate_schedule(read_all(p, rows), ranks, ranks * stages, batches))


def test_overlapping_pairs_send_after_both():
    rows = {0: "0F0 0F1 0B0 0B1", 1: "1F0 (1F1;1B0)OVERLAP_F_B 1B1"}
    agree(lambda p: str(p._add_send_recv(read_all(p, rows), lambda stage: stage % 2, 2)))
    agree(lambda p: str(p._add_unshard_reshard(read(p, "0F0 - (0F1;2B0)OVERLAP_F_B 0B1"), 2)))
    agree(lambda p: str(p._add_reduce_grad(read(p, "0F0 (0F1;0B0)OVERLAP_F_B 0B1"), 2)))


def test_an_order_that_never_gets_its_inputs_has_no_transfers():
    rows = {0: "0B0 0F0", 1: "1F0 1B0"}
    agree(lambda p: p._add_send_recv(read_all(p, rows), lambda stage: stage, 2))


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_orders_take_as_many_steps_as_in_pytorch(size, halves):
    ranks, stages, _ = size
    rows = order(*size, halves, 0)
    both_named = {ours: our_schedules, theirs: theirs}
    agree(
        lambda p: str(
            both_named[p]._simulate_comms_compute(
                p._add_send_recv(read_all(p, rows), lambda stage: stage % ranks, ranks * stages),
                stage_to_rank=lambda stage: stage % ranks,
                num_stages=ranks * stages,
            )
        )
    )


@pytest.mark.parametrize("rows", [{0: "0F0 0RECV_B0", 1: "1RECV_F0"}, {0: "0F0 0UNSHARD", 1: "1F0"}])
def test_orders_that_never_end_are_refused_as_by_pytorch(rows):
    both_named = {ours: our_schedules, theirs: theirs}
    mine, peer = both(lambda p: both_named[p]._simulate_comms_compute(read_all(p, rows), lambda stage: stage, 2))
    assert mine[0] == peer[0]
    assert mine[1].startswith(peer[1].split(" action")[0])


BASES = {ours: ours._PipelineStageBase, theirs: PeerStage}


def unplaced(library, ranks, stages):
    """Return stages that have only what their schedules ask before they run."""

    class Unplaced(BASES[library]):
        def __init__(self):
            self.submod, self.group = None, None
            self.num_stages, self.group_size, self.group_rank = ranks * stages, ranks, 0

        def _create_grad_recv_info(self, *args):
            raise NotImplementedError

        def _prepare_forward_infra(self, *args):
            raise NotImplementedError

        def _prepare_backward_infra(self, *args):
            raise NotImplementedError

    return [Unplaced() for _ in range(stages)]


PLANS = [(2, 2, 2), (2, 2, 8), (4, 2, 4), (4, 2, 8), (4, 2, 10), (4, 4, 8), (2, 3, 8), (3, 4, 6), (8, 2, 8)]


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("name", ["Interleaved1F1B", "InterleavedZeroBubble", "DualPipeV"])
def test_schedules_have_pytorchs_order(name, plan):
    ranks, stages, batches = plan
    mine, peer = both(lambda p: str(p.get_schedule_class(name)(unplaced(p, ranks, stages), batches).pipeline_order))
    if "exactly 2 stages" in str(peer):  # where DualPipeV calls itself ZBV
        mine, peer = (str(error).rpartition("requires") for error in (mine, peer))
        mine, peer = mine[2], peer[2]
    assert mine == peer


@pytest.mark.parametrize("style", ["loop", "v", "w"])
@pytest.mark.parametrize("sizes", [(2, 2), (2, 4), (4, 8), (4, 12), (4, 16)])
def test_stages_are_placed_as_by_pytorch(sizes, style):
    utils = {ours: our_utils, theirs: their_utils}
    agree(lambda p: utils[p].generate_stage_to_rank_mapping(*sizes, style=style))
    agree(lambda p: utils[p].generate_rank_to_stage_mapping(*sizes, style=style))


@pytest.mark.parametrize("rows", [*RIGHT.values(), *WRONG.values()], ids=[*RIGHT, *WRONG])
def test_orders_are_checked_as_by_pytorch(rows):
    mine, peer = both(lambda p: p._validate_schedule(read_all(p, rows), 2, 2, 2))
    if isinstance(peer, tuple):
        assert mine[0] == peer[0]
        assert mine[1].startswith(peer[1])  # ours always adds the table
    else:
        assert mine == peer


@pytest.mark.parametrize("error", [None, 0, 2])
@pytest.mark.parametrize("size", [(1, 1, 3), (2, 1, 2), (2, 2, 3), (3, 2, 5)])
def test_orders_are_printed_as_by_pytorch(size, error):
    rows = order(*size, True, 0)
    agree(lambda p: p._format_pipeline_order(read_all(p, rows), error))


@pytest.mark.parametrize("name", ["Interleaved1F1B", "InterleavedZeroBubble", "LoopedBFS", "ZBVZeroBubble"])
def test_the_order_of_a_schedule_prints_its_idle_slots(name):
    stages = [ours.PipelineStage(rg.nn.Linear(2, 2), i, 2, "cpu") for i in range(2)]
    schedule = ours.get_schedule_class(name)(stages, n_microbatches=4, loss_fn=lambda y, t: (y - t).sum())
    row = schedule.pipeline_order[0]
    lines = ours._format_pipeline_order(schedule.pipeline_order).splitlines()[1:]
    assert [line.partition(": ")[2].strip() for line in lines] == [str(action or "") for action in row]
