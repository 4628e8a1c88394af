"""Schedules as tables: grids of time slots, and CSV files that PyTorch reads and writes."""

import pytest

from retrograd.pipelining.planning.simulate import simulate
from retrograd.pipelining.schedules import SCHEDULES, make_schedule
from retrograd.pipelining.schedules.actions import Kind, parse_schedule
from retrograd.pipelining.schedules.lowering import chain, lower
from retrograd.pipelining.schedules.tables import format_grid, read_csv, write_csv


def written(tmp_path, text):
    path = tmp_path / "schedule.csv"
    path.write_text(text)
    return path


def test_a_grid_shows_the_bubbles_of_zb_h1():
    assert format_grid(make_schedule("zb-h1", 2, 3)) == (
        "0: F0 F1 .  I0 W0 F2 I1 W1 I2 W2\n"  #
        "1: .  F0 I0 F1 I1 W0 F2 I2 W1 W2"
    )


def test_a_grid_draws_long_computations_and_names_stages_where_a_rank_has_several():
    assert format_grid(make_schedule("gpipe", 4, 1, ranks=2)) == (
        "0: F0.0 F1.0 .    .    .    .    .    .    B1.0 ---- B0.0 ----\n"
        "1: .    .    F2.0 F3.0 B3.0 ---- B2.0 ---- .    .    .    ."
    )


def test_a_grid_follows_costs_edges_and_slots():
    schedule = parse_schedule("0: F0.0\n1: F1.0\n2: F2.0")
    assert format_grid(schedule, {Kind.F: 2.0}, edges={(0, 1), (0, 2)}, slot=1.0) == (
        "0: F0 -- .  .\n1: .  .  F0 --\n2: .  .  F0 --"
    )
    late = format_grid(schedule, lambda action: 1.0)  # messages take a slot too
    assert late == "0: F0 .  .  .  .\n1: .  .  F0 .  .\n2: .  .  .  .  F0"


def test_a_timeline_is_drawn_as_it_is():
    timeline = simulate(make_schedule("1f1b", 2, 2), chain(2), lambda a: 0.5 * a.kind.is_compute)
    assert format_grid(timeline) == "0: F0 F1 .  B0 .  B1\n1: .  F0 B0 F1 B1 ."
    assert format_grid([]) == ""


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_reads_back_from_csv_lowered_or_not(tmp_path, name):
    schedule = make_schedule(name, 4, 5)
    for program in (schedule, lower(schedule, chain(4)), lower(schedule, chain(4) | {(0, 2)})):
        write_csv(program, tmp_path / "schedule.csv")
        assert read_csv(tmp_path / "schedule.csv") == program


def test_cells_are_those_of_pytorch_but_for_transfers_that_it_does_not_know(tmp_path):
    path = tmp_path / "schedule.csv"
    write_csv(lower(parse_schedule("0: F0.0 I0.0 W0.0\n1: F1.0 B1.0\n2: F2.0 B2.0"), chain(3) | {(0, 2)}), path)
    assert path.read_text().splitlines() == [
        "0F0,0SEND_F0,SEND_F0.0>2,0RECV_B0,RECV_B0.0<2,0I0,0W0",
        "1RECV_F0,1F0,1SEND_F0,1RECV_B0,1B0,1SEND_B0",
        "2RECV_F0,RECV_F2.0<0,2F0,2B0,2SEND_B0,SEND_B2.0>0",
    ]


def test_idle_slots_sharded_parameters_and_overlapped_pairs_of_pytorch_are_understood(tmp_path):
    path = written(tmp_path, "0UNSHARD,0F0,, (0F1;0B0)OVERLAP_F_B ,0B1,0REDUCE_GRAD,0RESHARD\n,1F0\n")
    assert read_csv(path) == parse_schedule("0: F0.0 F0.1 B0.0 B0.1\n1: F1.0")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("0F0,0F1\n1F0,,1X1\n", r"schedule\.csv, line 2, column 3: '1X1' is not an action"),
        ("0F0,0F\n", r"line 1, column 2: '0F' is not an action"),
        ("0F0,0B0,F0.0\n", r"line 1, column 3: F0\.0 is at line 1, column 1 already"),
        ("0F0\n0B0\n", r"line 2, column 1: B0\.0 is on rank 1, but stage 0 is on rank 0, see line 1, column 1"),
        ("(0F0;0Q0)OVERLAP_F_B\n", r"line 1, column 1: '0Q0' is not an action"),
        ("", "there are no actions"),
    ],
)
def test_errors_name_their_line_and_column(tmp_path, text, wrong):
    with pytest.raises(ValueError, match=wrong):
        read_csv(written(tmp_path, text))
