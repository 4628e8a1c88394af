"""Each schedule does everything once, in the order of its paper."""

import pytest

from retrograd.pipelining.actions import Action, Kind, format_schedule
from retrograd.pipelining.schedules import SCHEDULES, get_schedule, gpipe, make_schedule, one_f_one_b
from retrograd.pipelining.simulate import peak_activations

SIZES = [(stages, micro_batches) for stages in range(1, 9) for micro_batches in range(1, 17)]


def test_gpipe_runs_all_forwards_before_all_backwards():
    assert format_schedule(make_schedule("gpipe", 2, 3)) == (
        "0: F0.0 F0.1 F0.2 B0.0 B0.1 B0.2\n"  #
        "1: F1.0 F1.1 F1.2 B1.0 B1.1 B1.2"
    )


def test_1f1b_fills_alternates_and_drains():
    assert format_schedule(make_schedule("1f1b", 4, 6)) == (
        "0: F0.0 F0.1 F0.2 F0.3 B0.0 F0.4 B0.1 F0.5 B0.2 B0.3 B0.4 B0.5\n"
        "1: F1.0 F1.1 F1.2 B1.0 F1.3 B1.1 F1.4 B1.2 F1.5 B1.3 B1.4 B1.5\n"
        "2: F2.0 F2.1 B2.0 F2.2 B2.1 F2.3 B2.2 F2.4 B2.3 F2.5 B2.4 B2.5\n"
        "3: F3.0 B3.0 F3.1 B3.1 F3.2 B3.2 F3.3 B3.3 F3.4 B3.4 F3.5 B3.5"
    )


def test_1f1b_with_fewer_micro_batches_than_stages_fills_and_drains_only():
    assert format_schedule(make_schedule("1f1b", 4, 2)) == (
        "0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 F1.1 B1.0 B1.1\n2: F2.0 F2.1 B2.0 B2.1\n3: F3.0 B3.0 F3.1 B3.1"
    )


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_stage_runs_every_micro_batch_forward_and_backward_once(name):
    for stages, micro_batches in SIZES:
        for stage, actions in enumerate(make_schedule(name, stages, micro_batches)):
            for kind in (Kind.F, Kind.B):
                of_kind = [action for action in actions if action.kind is kind]
                assert of_kind == [Action(kind, stage, number) for number in range(micro_batches)]
            assert len(actions) == 2 * micro_batches


def test_peak_activations_are_those_of_the_papers():
    for stages, micro_batches in SIZES:
        peaks = [peak_activations(actions) for actions in make_schedule("gpipe", stages, micro_batches)]
        assert peaks == [micro_batches] * stages
        peaks = [peak_activations(actions) for actions in make_schedule("1f1b", stages, micro_batches)]
        assert peaks == [min(stages - rank, micro_batches) for rank in range(stages)]


def test_a_name_is_found_in_upper_or_lower_case():
    assert get_schedule("GPipe") is get_schedule("gpipe") is gpipe
    assert get_schedule("1F1B") is get_schedule("1f1b") is one_f_one_b


@pytest.mark.parametrize("name", ["2f2b", "", None, 1])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"known are 1f1b, gpipe"):
        get_schedule(name)


@pytest.mark.parametrize(("stages", "micro_batches", "wrong"), [(0, 4, "stages is 0"), (4, -1, "micro_batches is -1")])
def test_a_number_below_one_is_refused_by_name(stages, micro_batches, wrong):
    with pytest.raises(ValueError, match=wrong):
        make_schedule("1f1b", stages, micro_batches)


@pytest.mark.parametrize(
    ("stages", "micro_batches", "wrong"), [(2.0, 4, "stages is 2.0"), (4, True, "micro_batches is True")]
)
def test_a_number_that_is_no_integer_is_refused_by_name(stages, micro_batches, wrong):
    with pytest.raises(TypeError, match=wrong):
        make_schedule("1f1b", stages, micro_batches)
