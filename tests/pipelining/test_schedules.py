"""Each schedule runs every action once, in the order of its paper, with the documented memory and bubble."""

import itertools

import pytest

from retrograd.pipelining.planning.simulate import peak_activations, simulate_costs, unit_cost
from retrograd.pipelining.schedules import (
    SCHEDULES,
    default_ranks,
    get_schedule,
    make_schedule,
    stage_directions,
    stage_ranks,
    stream_schedule,
)
from retrograd.pipelining.schedules.actions import Action, Kind, format_schedule
from retrograd.pipelining.schedules.greedy import list_schedule
from retrograd.pipelining.schedules.lowering import buffer_depth, chain, lower, validate

from ..case_groups import group_cases

V_SHAPED = ["zbvzerobubble", "dualpipev", "v-half", "v-min"]
LOOPED = ["interleaved1f1b", "loopedbfs", "interleavedzerobubble"]
TWO_DIRECTIONS = ["chimera", "dualpipe"]  # over even numbers of ranks
BLOCKS = ["gpipe", "1f1b", "zb-h1", "zb-h2"]


def lines(name, stages, micro_batches, ranks=None):
    text = format_schedule(make_schedule(name, stages, micro_batches, ranks=ranks))
    return [" ".join(line.split()) for line in text.splitlines()]


def largest_round(ranks, micro_batches):
    """Return the microbatches of the largest of m // p rounds, spread evenly; all if there are fewer than ranks."""
    rounds = max(1, micro_batches // ranks)
    return -(-micro_batches // rounds)


def promised_peaks(name, p, v, m):
    """Return the bound in the docstring of each schedule, in activations of a single stage, per rank."""
    g = largest_round(p, m)
    bounds = {
        "gpipe": [m * v] * p,
        "1f1b": [(p - rank) * v for rank in range(p)],
        "zb-h1": [p * v] * p,
        "zb-h2": [(2 * p - 1) * v] * p,
        "interleaved1f1b": [(v - 1) * g + (1 if v == 1 else 2) * (p - 1 - rank) + 1 for rank in range(p)],
        "loopedbfs": [m * v] * p,
        "interleavedzerobubble": [(v - 1) * g + p] * p,
        "zbvzerobubble": [p * v] * p,
        "dualpipev": [p * v + (v > 1)] * p,
        "eager1f1b": [(2 * (p - rank) - 1) * v for rank in range(p)],
        "interleaved1f1b-warmup": [(v - 1) * g + (1 if v == 1 else 2) * (p - 1 - rank) + 2 for rank in range(p)],
        "hanayo": [p * v] * p,
        "v-half": [v * ((p + 2) // 2) if v > 1 else p] * p,
        "v-min": [v * ((p + 4) // 3) if v > 1 else p] * p,
        "chimera": [v * min(p, p // 2 + min(rank, p - 1 - rank) + 1) for rank in range(p)],
        "dualpipe": [v * (p + 1)] * p,
    }
    return [min(bound, m * v) for bound in bounds[name]]


def promised_depth(name, p, v, m):
    """Return the depth per channel that docs/schedules.md documents."""
    depths = {
        "gpipe": 0,
        "interleaved1f1b": max(1, largest_round(p, m) - p + 1) if v > 1 else 1,
        "interleaved1f1b-warmup": max(1, largest_round(p, m) - p + 1) if v > 1 else 1,
        "loopedbfs": m // p if v > 1 else 0,
        "interleavedzerobubble": p if v > 1 else 1,
        "chimera": max(p // 2, v),  # of both directions together
        "dualpipe": p - 1,
    }
    return depths.get(name, 1)


@group_cases
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("v", [1, 2, 3])
def test_every_schedule_is_complete_in_a_possible_order_and_within_its_memory_and_buffer(name, v):
    for p in range(1, 9) if name not in TWO_DIRECTIONS else (2, 4, 6, 8):
        for m in range(1 + (p + v) % 4, 17, 4):  # a quarter of all, to be quick
            schedule = make_schedule(name, p * v, m, ranks=p)
            peaks = [peak_activations(actions) for actions in schedule]
            assert all(peak <= bound for peak, bound in zip(peaks, promised_peaks(name, p, v, m), strict=True))
            validate(lower(schedule, chain(p * v)), chain(p * v), buffer=promised_depth(name, p, v, m))


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_micro_batches_of_a_stage_come_in_order_for_every_kind(name):
    for v in (1, 2, 3):
        for actions in make_schedule(name, 4 * v, 7, ranks=4):
            for stage in {action.stage for action in actions}:
                for kinds in ((Kind.F,), (Kind.B, Kind.I), (Kind.B, Kind.W)):
                    numbers = [a.micro_batch for a in actions if a.stage == stage and a.kind in kinds]
                    step = 2 if name in TWO_DIRECTIONS else 1
                    assert numbers == list(range(numbers[0], 7, step))
                    assert numbers[0] < step


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_streamed_schedule_is_the_one_in_lists_and_stages_are_where_the_placement_says(name):
    for stages, ranks in ((4, 4), (4, 2), (6, 2)):
        schedule = make_schedule(name, stages, 5, ranks=ranks)
        assert [list(actions) for actions in stream_schedule(name, stages, 5, ranks=ranks)] == schedule
        directions = stage_directions(name, stages, ranks)
        assert all(directions.rank(a.stage, a.micro_batch) == r for r, row in enumerate(schedule) for a in row)
        assert [directions.rank(stage, 0) for stage in range(stages)] == stage_ranks(name, stages, ranks)
        assert all(isinstance(action, Action) for actions in schedule for action in actions)


def test_gpipe_runs_all_forwards_before_all_backwards():
    assert lines("gpipe", 2, 3) == ["0: F0.0 F0.1 F0.2 B0.0 B0.1 B0.2", "1: F1.0 F1.1 F1.2 B1.0 B1.1 B1.2"]


def test_1f1b_fills_alternates_and_drains():
    assert lines("1f1b", 4, 6) == [
        "0: F0.0 F0.1 F0.2 F0.3 B0.0 F0.4 B0.1 F0.5 B0.2 B0.3 B0.4 B0.5",
        "1: F1.0 F1.1 F1.2 B1.0 F1.3 B1.1 F1.4 B1.2 F1.5 B1.3 B1.4 B1.5",
        "2: F2.0 F2.1 B2.0 F2.2 B2.1 F2.3 B2.2 F2.4 B2.3 F2.5 B2.4 B2.5",
        "3: F3.0 B3.0 F3.1 B3.1 F3.2 B3.2 F3.3 B3.3 F3.4 B3.4 F3.5 B3.5",
    ]


def test_1f1b_with_fewer_micro_batches_than_stages_fills_and_drains_only():
    assert lines("1f1b", 4, 2) == [
        *("0: F0.0 F0.1 B0.0 B0.1", "1: F1.0 F1.1 B1.0 B1.1", "2: F2.0 F2.1 B2.0 B2.1"),
        "3: F3.0 B3.0 F3.1 B3.1",
    ]


def test_neighbouring_stages_on_a_rank_run_as_one():
    assert lines("1f1b", 4, 2, ranks=2) == [
        "0: F0.0 F1.0 F0.1 F1.1 B1.0 B0.0 B1.1 B0.1",
        "1: F2.0 F3.0 B3.0 B2.0 F2.1 F3.1 B3.1 B2.1",
    ]
    assert lines("zb-h1", 4, 1, ranks=2)[1] == "1: F2.0 F3.0 I3.0 I2.0 W3.0 W2.0"


def test_interleaved_1f1b_fills_with_whole_rounds_and_two_more_a_rank():
    assert lines("interleaved1f1b", 4, 4) == [
        "0: F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3",
        "1: F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3",
    ]


def test_zb_v_and_dual_pipe_v_are_those_of_their_papers():
    assert lines("zbv", 4, 4) == [
        "0: F0.0 F0.1 F0.2 F3.0 I3.0 W3.0 F3.1 I3.1 W3.1 F0.3 I0.0 W0.0 F3.2 I3.2 W3.2 I0.1 W0.1 F3.3 I3.3 W3.3"
        " I0.2 W0.2 I0.3 W0.3",
        "1: F1.0 F2.0 F1.1 F2.1 I2.0 W2.0 F1.2 I1.0 W1.0 F2.2 I2.1 W2.1 F1.3 I1.1 W1.1 F2.3 I2.2 W2.2 I1.2 I2.3"
        " I1.3 W1.2 W2.3 W1.3",
    ]
    assert lines("dualpipev", 4, 4) == [
        "0: F0.0 F0.1 F0.2 F3.0 I3.0 W3.0 F3.1 F0.3 B3.1 F3.2 B0.0 B3.2 F3.3 B0.1 B3.3 I0.2 W0.2 I0.3 W0.3",
        "1: F1.0 F2.0 F1.1 F2.1 F1.2 B2.0 F2.2 B1.0 F1.3 B2.1 F2.3 B1.1 B2.2 B1.2 I2.3 I1.3 W2.3 W1.3",
    ]


def test_micro_batches_that_are_no_multiple_of_the_ranks_are_spread_over_rounds():
    assert lines("loopedbfs", 4, 1, ranks=2) == ["0: F0.0 F2.0 B2.0 B0.0", "1: F1.0 F3.0 B3.0 B1.0"]
    rounds = [action.micro_batch for action in make_schedule("interleaved1f1b", 4, 5)[1] if action.kind is Kind.F]
    assert rounds == [0, 1, 0, 1, 2, 3, 4, 2, 3, 4]


def idle(name, p, v, m, cost=unit_cost):
    """Return the idle seconds of the rank with the longest time from its first to its last computation."""
    summary = simulate_costs(make_schedule(name, p * v, m, ranks=p), chain(p * v), cost)
    return max(e - s for s, e in zip(summary.start, summary.end, strict=True)) - max(summary.busy)


COSTS = [(1.0, 1.0, 1.0), (4.0, 4.0, 3.0), (3.0, 4.0, 2.0)]
SIZES = [(2, 4), (3, 7), (4, 8), (4, 13), (6, 12), (8, 16)]


@pytest.mark.parametrize(("f", "i", "w"), COSTS)
def test_the_bubble_is_that_of_the_papers(f, i, w):
    seconds = {Kind.F: f, Kind.I: i, Kind.W: w, Kind.B: i + w}

    def cost(action):
        return seconds.get(action.kind, 0.0)

    for p, m in SIZES:
        whole, halves = (p - 1) * (f + i + w), (p - 1) * (f + i - w)
        for name, v, formula in (
            *(("gpipe", 1, whole), ("1f1b", 1, whole), ("zb-h1", 1, halves)),
            ("zb-h2", 1, (p - 1) * (f + i - 2 * w)),
            *((name, v, whole) for name in LOOPED[:2] for v in (2, 3)),  # for v times the work: 1 / v of 1F1B's
            *(("interleavedzerobubble", v, halves) for v in (2, 3)),
        ):
            assert idle(name, p, v, m, cost) == pytest.approx(max(formula, 0.0)), (name, p, v, m)
        overlapped = f + i + w  # F&B, here one after the other
        assert idle("dualpipev", p, 2, m, cost) <= (p - 1) * (overlapped + i + w - 3 * w) + 1e-9 or m < 2 * p


def test_zb_v_has_no_bubble_where_all_three_take_equally_long():
    assert [idle("zbvzerobubble", p, 2, m) for p, m in SIZES if m >= 2 * p - 1] == [0.0] * len(SIZES)
    assert idle("zb-h2", 4, 1, 8) == 0.0


def test_peak_activations_are_those_of_the_papers():
    p, m = 4, 12
    expected = {
        "gpipe": [12, 12, 12, 12], "1f1b": [4, 3, 2, 1], "zb-h1": [4] * 4, "zb-h2": [7] * 4,
        "interleaved1f1b": [11, 9, 7, 5], "loopedbfs": [24] * 4, "interleavedzerobubble": [8] * 4,
        "zbvzerobubble": [8] * 4, "dualpipev": [9] * 4, "v-half": [6] * 4, "v-min": [4] * 4,
    }  # fmt: skip
    for name, peaks in expected.items():
        schedule = make_schedule(name, p * SCHEDULES[name].per_rank, m)
        assert [peak_activations(actions) for actions in schedule] == peaks, name


@pytest.mark.parametrize("name", ["1f1b", "zb-h1", "zb-h2", *V_SHAPED])
def test_neighbours_that_both_send_first_need_room_for_one_message(name):
    stages = 4 * SCHEDULES[name].per_rank
    assert buffer_depth(lower(make_schedule(name, stages, 12), chain(stages))) == 1


def test_names_are_found_however_they_are_written():
    for name in ("Interleaved1F1B", "interleaved_1f1b", "INTERLEAVED-1F1B", "interleaved 1f1b"):
        assert get_schedule(name) is SCHEDULES["interleaved1f1b"]
    assert get_schedule("zbv") is get_schedule("ZBV Zero Bubble") is SCHEDULES["zbvzerobubble"]
    assert get_schedule("ZB1P") is get_schedule("zb_h1") is SCHEDULES["zb-h1"]
    assert get_schedule("zb2p") is SCHEDULES["zb-h2"]


@pytest.mark.parametrize("name", ["2f2b", "", None, 1])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"known are 1f1b, chimera, dualpipe, dualpipev, eager1f1b, gpipe"):
        get_schedule(name)


def test_stages_are_placed_in_blocks_in_loops_or_in_a_zigzag():
    assert stage_ranks("gpipe", 6, 3) == [0, 0, 1, 1, 2, 2]
    assert stage_ranks("loopedbfs", 6, 3) == [0, 1, 2, 0, 1, 2]
    assert stage_ranks("dualpipev", 6, 3) == [0, 1, 2, 2, 1, 0]
    assert stage_ranks("zbv", 6, 2) == [0, 1, 1, 0, 0, 1]


def test_by_default_a_rank_has_one_stage_or_two_where_the_schedule_is_made_for_more():
    assert [default_ranks(name, 6) for name in BLOCKS] == [6] * 4
    assert [default_ranks(name, 6) for name in LOOPED + V_SHAPED] == [3] * 7
    assert [default_ranks(name, 5) for name in LOOPED + V_SHAPED] == [5] * 7


@pytest.mark.parametrize(
    ("stages", "micro_batches", "ranks", "wrong"),
    [
        (0, 4, None, "stages is 0"),
        (4, -1, None, "micro_batches is -1"),
        (4, 4, 0, "ranks is 0"),
        (4, 4, 3, "4 stages .* 3 ranks"),
        (2, 4, 4, "2 stages .* 4 ranks"),
    ],
)
def test_numbers_that_make_no_schedule_are_refused_by_name(stages, micro_batches, ranks, wrong):
    with pytest.raises(ValueError, match=wrong):
        make_schedule("1f1b", stages, micro_batches, ranks=ranks)


@pytest.mark.parametrize(
    ("stages", "micro_batches", "wrong"), [(2.0, 4, "stages is 2.0"), (4, True, "micro_batches is True")]
)
def test_a_number_that_is_no_integer_is_refused_by_name(stages, micro_batches, wrong):
    with pytest.raises(TypeError, match=wrong):
        make_schedule("1f1b", stages, micro_batches)


def span(name, per_rank, message, ranks=8, micro_batches=32):
    """Return the step of a model that takes 4 slots per rank forward and 8 backward, with messages that take time."""
    stages, part = ranks * per_rank, 4 / per_rank

    def cost(action):
        return message if action.peer is not None else part * (2 if action.kind is Kind.B else 1)

    return simulate_costs(make_schedule(name, stages, micro_batches, ranks=ranks), chain(stages), cost).span


@pytest.mark.parametrize("name", ["zbv", "dualpipev"])
@pytest.mark.parametrize("per_rank", [2, 3, 4, 6])
def test_zigzags_of_any_depth_are_faster_than_1f1b_when_messages_take_time(name, per_rank):
    for message in (0.0, 0.1, 0.5):
        assert span(name, per_rank, message) < span("1f1b", 1, message)


def test_eager_1f1b_loses_time_to_messages_only_at_the_start_and_the_end():
    assert span("eager1f1b", 1, 0.5) == span("1f1b", 1, 0.0) + 2 * 7 * 0.5
    assert span("1f1b", 1, 0.5) > span("1f1b", 1, 0.0) + 4 * 7 * 0.5


def test_hanayo_has_less_idle_time_than_1f1b_by_its_waves():
    assert span("hanayo", 2, 0.0) < span("1f1b", 1, 0.0)
    assert all(action.kind in (Kind.F, Kind.B) for row in make_schedule("hanayo", 8, 4, ranks=4) for action in row)
    assert stage_ranks("hanayo", 8, 4) == stage_ranks("zbv", 8, 4)


@pytest.mark.parametrize("placement", [[[0, 3], [1, 2]], [[0, 2, 4], [1, 3, 5]], [[0, 1], [2, 3], [4, 5]]])
def test_every_slot_of_a_list_schedule_has_the_most_urgent_computation(placement):
    micro_batches, last = 6, max(map(max, placement))
    rows = [list(row) for row in list_schedule(placement, micro_batches, limit=len(placement[0]) * micro_batches)]
    done = dict.fromkeys(itertools.product((Kind.F, Kind.I, Kind.W), range(last + 1)), 0)

    def has_inputs(kind, stage):
        """Return whether the next microbatch of a stage has its inputs from earlier slots."""
        number = done[kind, stage]
        if kind is Kind.F:
            return number < (done[kind, stage - 1] if stage else micro_batches)
        after = (Kind.F, stage) if stage == last else (kind, stage + 1)
        return number < (done[Kind.I, stage] if kind is Kind.W else done[after])

    while any(rows):
        slot = []
        for stages, row in zip(placement, rows, strict=True):
            by_kind = [[stage for stage in stages if has_inputs(kind, stage)] for kind in (Kind.I, Kind.F, Kind.W)]
            if any(by_kind):
                kind, stage, number, _ = row[0]
                inputs, forwards, weights = by_kind
                urgent = (
                    {(Kind.I, s) for s in inputs}
                    or {(Kind.F, s) for s in forwards[-1:]}
                    or {(Kind.W, s) for s in weights}
                )
                assert (kind, stage) in urgent
                assert number == done[kind, stage]
                slot.append(row.pop(0))
        for action in slot:
            done[action.kind, action.stage] += 1
