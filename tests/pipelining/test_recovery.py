"""Killed training runs resume from their last checkpoint with the same results."""

import importlib.util
import os

import pytest

from retrograd.pipelining.checkpoint import Checkpoints

from .recovery import Kill, Trial, undisturbed
from .recovery_script import Training, digest

ONCE = pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
needs_mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")


@ONCE
@needs_mpi
def test_a_killed_rank_costs_the_steps_since_the_last_checkpoint_and_any_layout_continues_from_the_last(tmp_path):
    expected = undisturbed(10)
    trial = Trial(tmp_path, "mpi", steps=8, every=2, kills=[Kill(4, rank=1)])
    assert trial.run() == 0, trial.said
    trial.check(expected[:8])
    assert len(trial.lives()) == 2
    assert trial.repeated() <= 2
    for stages in (3, 1):
        training = Training(stages)
        assert Checkpoints(tmp_path / "checkpoints").restore(*training.everything).step == 7
        assert {digest(training.pipeline.state_dict())} == {n.value for n in trial.notes if n.what == "state"}
        assert [training.step(8), training.step(9)] == expected[8:]


@ONCE
def test_a_process_of_threads_that_is_killed_in_a_save_continues_from_the_one_before(tmp_path):
    trial = Trial(tmp_path, "threads", steps=4, in_saves=[(0, 2, 4)])
    assert trial.run() == 0, trial.said
    trial.check(undisturbed(4))
    assert len(trial.lives()) == 2
    assert trial.lives()[1][0].step == 1
