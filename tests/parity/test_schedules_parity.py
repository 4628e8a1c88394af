"""Orders of schedules with several stages per rank equal those that torch.distributed.pipelining builds."""

import csv

import pytest
import torch
from torch.distributed.pipelining import schedules as peer

from retrograd.pipelining.planning.simulate import peak_activations, simulate_costs, unit_cost
from retrograd.pipelining.schedules import SCHEDULES, get_schedule, make_schedule, stage_ranks
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.idle_slots import with_idle_slots
from retrograd.pipelining.schedules.lowering import chain, lower
from retrograd.pipelining.schedules.tables import read_csv, write_csv

# p ranks, v stages a rank and m microbatches of which PyTorch makes a schedule.
SIZES = [(p, v, m) for p in (1, 2, 3, 4, 8) for v in (1, 2, 3) for m in (1, 2, 4, 7, 8, 16)]
ROUNDS = [(p, v, m) for p, v, m in SIZES if m % max(1, m // p) == 0]
V = [(p, v, m) for p, v, m in SIZES if v == 2]
ALLOWED = {
    "Interleaved1F1B": ROUNDS,
    "InterleavedZeroBubble": ROUNDS,
    "LoopedBFS": SIZES,
    "ZBVZeroBubble": V,
    "DualPipeV": [(p, v, m) for p, v, m in V if m >= 2 * p],
}


def ordered(name, p, v, m):
    """Return PyTorch's order for every rank, without the process group that its constructor requires."""
    return [rank_order(peer.get_schedule_class(name), rank, p, v, m) for rank in range(p)]


def rank_order(kind, rank, p, v, m):
    found = bare(kind, rank, p, v, m)._calculate_single_rank_operations(rank)
    return [ours(part) for action in found if action for part in action.sub_actions or [action]]


def bare(kind, rank, p, v, m):
    """Return a schedule of PyTorch's without the process group that its constructor requires."""
    schedule = object.__new__(kind)
    vars(schedule).update(rank=rank, pp_group_size=p, _stages=[None] * v, n_local_stages=v, _n_microbatches=m)
    rounds = max(1, m // p)
    vars(schedule).update(num_stages=p * v, _num_stages=p * v, number_of_rounds=rounds)
    schedule.microbatches_per_round = m // rounds
    return schedule


def slots(name, p, v, m):
    """Return PyTorch's order for every rank with its idle slots."""
    kind = peer.get_schedule_class(name)
    schedule = bare(kind, 0, p, v, m)
    schedule.pipeline_order = {
        rank: bare(kind, rank, p, v, m)._calculate_single_rank_operations(rank) for rank in range(p)
    }
    rows = schedule.pipeline_order
    if name == "InterleavedZeroBubble":
        rows = schedule._add_bubbles_to_actions(p * v)
    return [[action and ours(action) for action in rows[rank]] for rank in range(p)]


def ours(action):
    return Action(Kind(action.computation_type.value), action.stage_index, action.microbatch_index)


def cost_and_memory(schedule, stages):
    summary = simulate_costs(schedule, chain(stages), unit_cost)
    return summary.span, summary.bubble_rate, *[peak_activations(actions) for actions in schedule]


@pytest.mark.parametrize("name", ALLOWED)
def test_no_schedule_takes_longer_or_keeps_more_than_pytorch_s(name):
    for p, v, m in ALLOWED[name]:
        own = cost_and_memory(make_schedule(name, p * v, m, ranks=p), p * v)
        other = cost_and_memory(ordered(name, p, v, m), p * v)
        assert all(mine <= theirs + 1e-12 for mine, theirs in zip(own, other, strict=True)), (p, v, m, own, other)


@pytest.mark.parametrize("name", ["ZBVZeroBubble", "DualPipeV"])
def test_v_schedules_have_the_very_order_of_pytorch_s(name):
    for p, v, m in ALLOWED[name]:
        assert make_schedule(name, p * v, m, ranks=p) == ordered(name, p, v, m), (p, m)


@pytest.mark.parametrize("name", ["Interleaved1F1B", "InterleavedZeroBubble"])
def test_interleaved_schedules_have_the_very_order_of_pytorch_s(name):
    for p, v, m in ALLOWED[name]:
        # With one stage a rank ours keeps fewer activations; with fewer microbatches than ranks ours puts a weight
        # half before the input half that still has to arrive, PyTorch's after it.
        if v > 1 and m >= p:
            assert make_schedule(name, p * v, m, ranks=p) == ordered(name, p, v, m), (p, v, m)


@pytest.mark.parametrize("name", ["LoopedBFS", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble"])
def test_idle_slots_are_those_of_pytorch_s(name):
    compared = 0
    for p, v, m in ALLOWED[name]:
        own, theirs = make_schedule(name, p * v, m, ranks=p), slots(name, p, v, m)
        if name == "LoopedBFS":  # the order of the microbatches in its backward differs
            theirs = [[a and a._replace(micro_batch=0) for a in row] for row in theirs]
            own = [[a._replace(micro_batch=0) for a in row] for row in own]
        elif own != ordered(name, p, v, m) or (name == "ZBVZeroBubble" and m < 2 * p - 1):
            continue  # with fewer microbatches PyTorch's ZB-V lists those that it leaves out
        compared += 1
        assert with_idle_slots(name, own) == theirs, (p, v, m)
    assert compared >= 17


def test_looped_bfs_is_pytorch_s_but_for_the_order_of_micro_batches_in_the_backward():
    # PyTorch takes the last microbatch first; ours the first, so that gradients are summed as by other schedules.
    for p, v, m in SIZES:
        theirs = [
            [a._replace(micro_batch=m - 1 - a.micro_batch) if a.kind is Kind.B else a for a in actions]
            for actions in ordered("LoopedBFS", p, v, m)
        ]
        assert make_schedule("LoopedBFS", p * v, m, ranks=p) == theirs


def test_interleaved_1f1b_with_one_stage_a_rank_keeps_what_1f1b_keeps_and_pytorch_s_nearly_twice_that():
    own, theirs = make_schedule("Interleaved1F1B", 4, 8, ranks=4), ordered("Interleaved1F1B", 4, 1, 8)
    assert own == make_schedule("1F1B", 4, 8)
    assert [peak_activations(actions) for actions in theirs] == [7, 5, 3, 1]


def test_every_name_of_pytorch_s_is_one_of_ours():
    for name in ("GPipe", "1F1B", *ALLOWED):
        assert peer.get_schedule_class(name) is not None
        assert get_schedule(name).name == name


def test_stages_are_on_the_ranks_of_pytorch():
    for p in (1, 2, 4):
        for name, style in (("Interleaved1F1B", "loop"), ("ZBVZeroBubble", "v"), ("DualPipeV", "v")):
            theirs = torch.distributed.pipelining._utils.generate_stage_to_rank_mapping(p, 2 * p, style=style)
            assert stage_ranks(name, 2 * p, p) == [theirs[stage] for stage in range(2 * p)]


@pytest.mark.parametrize("name", SCHEDULES)
def test_each_reads_the_other_s_csv(tmp_path, name):
    path = tmp_path / "schedule.csv"
    for program in (make_schedule(name, 4, 8), lower(make_schedule(name, 4, 8), chain(4))):
        write_csv(program, path)
        with open(path, newline="") as file:
            rows = [[peer._Action.from_str(cell) for cell in row] for row in csv.reader(file)]
        assert [[str(action) for action in row] for row in rows] == [row.split(",") for row in path.read_text().split()]
        path.write_text("\n".join(",".join(map(str, row)) for row in rows))
        assert read_csv(path) == program


def test_the_pairs_and_idle_slots_that_pytorch_writes_are_read(tmp_path):
    path = tmp_path / "schedule.csv"
    kind = peer.ScheduleDualPipeV
    schedule = object.__new__(kind)
    vars(schedule).update(pp_group_size=2, _n_microbatches=4, pipeline_order={})
    for rank in range(2):
        schedule.pipeline_order[rank] = [None] * rank + schedule._calculate_single_rank_operations(rank)
    peer.PipelineScheduleMulti._dump_csv(schedule, path)
    assert "OVERLAP_F_B" in path.read_text()
    assert read_csv(path) == make_schedule("DualPipeV", 4, 4)
