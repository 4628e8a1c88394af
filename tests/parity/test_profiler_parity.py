"""Schedules of the profiler record PyTorch's steps, and call the handler when PyTorch does."""

import itertools

import pytest
import torch

import retrograd as rg


@pytest.mark.parametrize("plan", [*itertools.product((0, 1, 2), (1, 2), (1, 3), (0, 1, 2), (0, 3), (0, 1))])
def test_a_schedule_has_pytorchs_actions(plan):
    keywords = dict(zip(("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait"), plan, strict=True))
    theirs, ours = torch.profiler.schedule(**keywords), rg.profiler.schedule(**keywords)
    assert [ours(step).name for step in range(20)] == [theirs(step).name for step in range(20)]


class Unrecorded(torch.profiler.profile):
    """PyTorch's profile without its recorder, which crashes where a record ends in the warm-up."""

    def prepare_trace(self):
        """Do nothing."""

    start_trace = stop_trace = prepare_trace


def steps_of_calls(kind, m, plan, steps):
    called = []
    keywords = {} if plan is None else {"schedule": m.profiler.schedule(**plan)}
    activities = [m.profiler.ProfilerActivity.CPU]
    with kind(activities=activities, on_trace_ready=lambda p: called.append(p.step_num), **keywords) as prof:
        for _ in range(steps):
            m.ones(2).sum()
            prof.step()
    return called


@pytest.mark.parametrize("steps", [0, 1, 3, 4, 5, 8])
@pytest.mark.parametrize("plan", [None, {"wait": 1, "warmup": 1, "active": 2}, {"wait": 0, "warmup": 1, "active": 1}])
def test_the_handler_is_called_in_the_same_steps(plan, steps):
    assert steps_of_calls(rg.profiler.profile, rg, plan, steps) == steps_of_calls(Unrecorded, torch, plan, steps)
