"""Profiles of compiled functions: the calls of the program, by the names of the report, with their times."""

import threading
import warnings
from contextlib import nullcontext

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.autograd.profiler import profile, record_function
from retrograd.pipelining.timeline.operator_spans import SpanRecorder

from .comparison import classifier_step, numbers, observe, state_of


def training(compile):
    """Return a compiled step, and its parameters."""
    rg.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3))
    optimizer = rg.optim.Adam(model.parameters(), lr=0.1)
    return compile(classifier_step(model, optimizer)), [*model.parameters()]


def test_a_profile_has_the_calls_of_the_program_in_the_order_of_the_report():
    step, _ = training(rg.compile)
    x, y = numbers(4, 5), rg.tensor([0, 1, 2, 1])
    for _ in range(3):
        step(x, y)
    names = [group.name for group in rg.compiler.explain(step)(x, y).groups]
    with profile() as prof, record_function("epoch"):
        step(x, y)
    epoch, call, *groups = prof.events()
    assert (epoch.name, call.name, call.cpu_parent) == ("epoch", step.name, epoch)
    assert [event.name for event in groups] == names
    assert all(event.cpu_parent is call for event in groups)
    assert 0 < sum(event.cpu_time for event in groups) <= call.cpu_time
    assert {"eager: Optimizer.step", "eager: Optimizer.zero_grad"} <= {*names}


def test_profiled_steps_have_the_bits_of_others():
    seen = []
    for compile, block in ((lambda f: f, nullcontext), (rg.compile, profile)):
        step, params = training(compile)
        x, y = numbers(4, 5), rg.tensor([0, 1, 2, 1])
        losses = [observe(step(x, y)) for _ in range(3)]
        with block(), block():
            losses += [observe(step(x, y)) for _ in range(3)]
        losses.append(observe(step(x, y)))
        seen.append((losses, state_of(params), str(rg.get_rng_state())))
    assert seen[0] == seen[1]


def test_each_of_nested_profiles_has_the_calls_and_a_timeline_has_them():
    compiled, x = rg.compile(lambda x: (x * 2).sum()), numbers(3)
    compiled(x)
    with profile() as outer, profile() as inner:
        compiled(x)
    assert [event.name for event in outer.events()] == [event.name for event in inner.events()]
    with SpanRecorder(rank=0, limit=10) as recorder:
        compiled(x)
    spans = [(span.name, span.depth) for span in recorder.spans()]
    assert spans == [(compiled.name, 0), ("plan: mul, sum", 1)]
    assert [event.name for event in inner.events()] == [name for name, _ in spans]


def test_with_another_observer_or_transform_a_profile_has_the_operators():
    compiled, x = rg.compile(lambda x: (x * 2).sum()), numbers(3)
    compiled(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with profile() as prof, rg.autograd.set_detect_anomaly(True):
            compiled(x)
        assert [event.name for event in prof.events()] == ["mul", "sum"]
        with profile() as prof:
            rg.func.grad(compiled)(x)
        assert "mul" in [event.name for event in prof.events()]
        with profile() as prof, rg.compiler.set_stance("force_eager"):
            compiled(x)
    assert [event.name for event in prof.events()] == ["mul", "sum"]


def test_a_call_that_fails_raises_the_operators_error_and_leaves_the_profile_open():
    compiled = rg.compile(lambda x, i: x.sin().index_select(0, i) * 2)
    x, good, bad = numbers(3), rg.tensor([0, 2]), rg.tensor([0, 7])
    for _ in range(2):
        compiled(x, good)
    with pytest.raises(IndexError) as eager:
        x.sin().index_select(0, bad)
    with profile() as prof:
        with pytest.raises(IndexError) as found:
            compiled(x, bad)
        compiled(x, good)
        x.cos()
    assert str(found.value) == str(eager.value)
    names = [event.name for event in prof.events()]
    assert names[0] == compiled.name
    assert names[-1] == "cos"


def test_threads_have_profiles_of_their_own():
    compiled, x = rg.compile(lambda x: (x * 2).sin().sum().cos()), numbers(40_000)
    compiled(x)
    seen, barrier = [], threading.Barrier(4)

    def run():
        barrier.wait()
        with profile() as prof:
            for _ in range(20):
                compiled(x)
        seen.append([event.name for event in prof.events()])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [compiled.name, *[group.name for group in rg.compiler.explain(compiled)(x).groups]]
    assert seen == [names * 20] * 4
