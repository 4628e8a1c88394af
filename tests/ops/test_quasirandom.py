"""Sobol sequences are SciPy's, in PyTorch's interface."""

import copy
import warnings

import pytest

import retrograd as rg

SobolEngine = rg.quasirandom.SobolEngine
FIRST = [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75], [0.375, 0.375], [0.875, 0.875]]


def test_points_are_drawn_in_turn():
    engine = SobolEngine(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # SciPy warns of a number that is no power of 2
        assert engine.draw(3).tolist() == FIRST[:3]
    assert engine.draw().tolist() == FIRST[3:4]
    copied = copy.deepcopy(engine)
    assert engine.fast_forward(1) is engine
    assert (engine.draw().tolist(), engine.num_generated, copied.draw().tolist()) == (FIRST[5:6], 6, FIRST[4:5])
    assert engine.reset().draw(6).tolist() == FIRST
    assert engine.draw(0).shape == (0, 2)


def test_points_have_the_default_dtype_or_a_given_one():
    out = rg.empty(0, dtype=rg.float64)
    assert SobolEngine(3).draw(2, out=out, dtype=rg.float64) is out
    assert (out.shape, SobolEngine(3).draw().dtype) == ((2, 3), rg.float32)


def test_scrambled_points_repeat_with_a_seed_and_are_balanced():
    draws = [SobolEngine(5, scramble=True, seed=seed).draw_base2(8) for seed in (3, 3, 4)]
    assert rg.equal(draws[0], draws[1])
    assert not rg.equal(draws[0], draws[2])
    assert (draws[2] < 0.5).sum(0).tolist() == [128] * 5
    rg.manual_seed(0)
    unseeded = SobolEngine(2, scramble=True).draw()
    rg.manual_seed(0)
    assert rg.equal(SobolEngine(2, scramble=True).draw(), unseeded)


def test_numbers_of_points_in_base_2_keep_the_balance():
    engine = SobolEngine(2)
    assert engine.draw_base2(1).shape == (2, 2)
    engine.draw_base2(1)
    with pytest.raises(ValueError, match=r"4 points have been previously generated, then: n=4\+2\*\*3=12"):
        engine.draw_base2(3)


@pytest.mark.parametrize("dimension", [0, SobolEngine.MAXDIM + 1, 2.5])
def test_a_dimension_that_the_sequence_lacks_is_refused(dimension):
    with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"):
        SobolEngine(dimension)


def test_an_engine_is_printed_with_its_settings():
    assert repr(SobolEngine(2)) == "SobolEngine(dimension=2)"
    assert repr(SobolEngine(2, True, 5)) == "SobolEngine(dimension=2, scramble=True, seed=5)"
