"""Checkpointed chains, in segments and under a budget: exact gradients, few recomputed steps, limited memory."""

import weakref

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.autograd.graph import saved_tensors_hooks
from retrograd.utils import revolve
from retrograd.utils.chain_checkpoint import num_bytes
from retrograd.utils.checkpoint import checkpoint, checkpoint_sequential

from ..case_groups import group_cases

N = 4
BYTES = N * 8  # of one value between steps


class Step:
    """x -> sin(x * w); count the runs, and observe the memory of the inputs."""

    def __init__(self, w, alive, log):
        self.w, self.alive, self.log = w, alive, log
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        self.alive.append(weakref.ref(x.value if x.value.base is None else x.value.base))
        self.log.append(len({id(reference()) for reference in self.alive} - {id(None)}))
        return (x * self.w).sin()


def chain(length):
    alive, log = [], []
    w = rg.linspace(0.5, 1.5, N, dtype=rg.float64).requires_grad_()
    return [Step(w, alive, log) for _ in range(length)], w, log


def start():
    return rg.linspace(-1.0, 1.0, N, dtype=rg.float64).requires_grad_()


def plain_gradients(steps, x, w):
    y = x
    for step in steps:
        y = (y * step.w).sin()
    return [g.tolist() for g in rg.autograd.grad(y.sum(), (x, w))]


@group_cases
@pytest.mark.parametrize("snapshots", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("length", [1, 2, 3, 6, 10, 21])
def test_gradients_are_those_of_the_plain_chain_and_repeated_steps_those_of_the_formula(length, snapshots):
    steps, w, _ = chain(length)
    x = start()
    y = checkpoint(steps, x, budget_bytes=snapshots * BYTES).sum()
    assert sum(step.calls for step in steps) == length
    got = [g.tolist() for g in rg.autograd.grad(y, (x, w))]
    assert got == plain_gradients(steps, x, w)
    assert sum(step.calls for step in steps) == length + revolve.cost(length, snapshots)


@pytest.mark.parametrize("snapshots", [1, 2, 4])
def test_no_more_values_live_at_once_than_the_budget_holds(snapshots):
    steps, _, log = chain(20)
    x = start()
    y = checkpoint(steps, x * 1, budget_bytes=snapshots * BYTES).sum()
    y.backward()
    assert max(log) <= snapshots + 1  # and the one that the step runs on
    assert max(log) >= snapshots


def test_a_long_chain_needs_no_deep_stack():
    steps, _, _ = chain(400)
    x = start()
    checkpoint(steps, x, budget_bytes=BYTES * 6).sum().backward()
    assert sum(step.calls for step in steps) == 400 + revolve.cost(400, 6)
    steps, _, _ = chain(120)
    checkpoint(steps, x, budget_bytes=BYTES).sum().backward()
    assert sum(step.calls for step in steps) == 120 + 120 * 119 // 2


def test_a_second_pass_with_retain_graph_gives_the_same_within_the_budget():
    steps, w, log = chain(12)
    x = start()
    y = checkpoint(steps, x * 1, budget_bytes=3 * BYTES).sum()
    first = [g.tolist() for g in rg.autograd.grad(y, (x, w), retain_graph=True)]
    assert [g.tolist() for g in rg.autograd.grad(y, (x, w), retain_graph=True)] == first
    assert first == plain_gradients(steps, x, w)
    assert max(log) <= 3 + 2  # and what the running step and, retained, the last one were given


def test_inputs_and_double_backward():
    steps, w, _ = chain(6)
    x = start()

    def second(y):
        (g,) = rg.autograd.grad(y.sum(), x, create_graph=True)
        return [h.tolist() for h in rg.autograd.grad((g * g).sum(), (x, w))]

    y = x
    for _ in steps:
        y = (y * w).sin()
    expected = second(y)
    got = second(checkpoint(steps, x, budget_bytes=2 * BYTES))
    assert [pytest.approx(e) for e in expected] == got
    checkpoint(steps, x, budget_bytes=2 * BYTES).sum().backward(inputs=[w])
    assert x.grad is None
    assert w.grad.tolist() == plain_gradients(steps, x, w)[1]


def test_dropout_in_a_chain_is_that_of_the_plain_chain():
    net = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(N, N), nn.Dropout(0.5), nn.Tanh())])
    x = rg.randn(8, N, requires_grad=True)
    rg.manual_seed(11)
    expected = [g.tolist() for g in rg.autograd.grad(net(x).sum(), (x, *net.parameters()))]
    after = str(rg.get_rng_state())
    rg.manual_seed(11)
    y = checkpoint(net, x, budget_bytes=2 * num_bytes(x))
    assert [g.tolist() for g in rg.autograd.grad(y.sum(), (x, *net.parameters()))] == expected
    assert str(rg.get_rng_state()) == after


def test_chains_nest_in_checkpoints_and_in_chains():
    steps, w, _ = chain(5)
    x = start()
    inner = lambda x: checkpoint(steps, x, budget_bytes=2 * BYTES)  # noqa: E731
    expected = plain_gradients(steps * 3, x, w)
    y = checkpoint(lambda x: inner(inner(checkpoint(inner, x, use_reentrant=False))), x, use_reentrant=False)
    assert [g.tolist() for g in rg.autograd.grad(y.sum(), (x, w), retain_graph=True)] == expected
    y = checkpoint([inner, inner, inner], x, budget_bytes=BYTES)
    assert [g.tolist() for g in rg.autograd.grad(y.sum(), (x, w))] == expected


def test_a_step_may_take_gradients_itself():
    def step(x):
        y = (x * x).sin()
        (g,) = rg.autograd.grad(y.sum(), x, create_graph=True)
        return y + g

    y = x = start()
    for _ in range(5):
        y = step(y)
    expected = rg.autograd.grad(y.sum(), x)[0].tolist()
    assert rg.autograd.grad(checkpoint([step] * 5, x, budget_bytes=BYTES).sum(), x)[0].tolist() == expected


def test_values_between_steps_may_be_pytrees():
    step = lambda s: {"x": (s["x"] * s["w"]).sin(), "w": s["w"], "n": s["n"] + 1}  # noqa: E731
    x, w = start(), start()
    out = checkpoint([step] * 5, {"x": x, "w": w * 1, "n": 0}, budget_bytes=2 * 2 * BYTES)
    assert out["n"] == 5
    y = x
    for _ in range(5):
        y = (y * w).sin()
    expected = [g.tolist() for g in rg.autograd.grad(y.sum(), (x, w))]
    assert [g.tolist() for g in rg.autograd.grad(out["x"].sum(), (x, w))] == [pytest.approx(e) for e in expected]


def test_larger_values_on_the_way_leave_room_for_fewer():
    grow = lambda x: rg.cat([x, x]).sin()  # noqa: E731
    shrink = lambda x: x[: x.shape[0] // 2].exp()  # noqa: E731
    steps = [rg.sin, rg.sin, grow, grow, rg.sin, rg.cos, shrink, rg.sin]
    x = start()
    y = x
    for step in steps:
        y = step(y)
    expected = rg.autograd.grad(y.sum(), x)[0].tolist()
    y = checkpoint(steps, x, budget_bytes=4 * BYTES)
    assert rg.autograd.grad(y.sum(), x)[0].tolist() == expected


def test_a_budget_for_less_than_one_value_says_how_much_it_takes():
    steps, _, _ = chain(4)
    with pytest.raises(ValueError, match=f"input of step 0 takes {BYTES} bytes.*give at least {BYTES}"):
        checkpoint(steps, start(), budget_bytes=BYTES - 1)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        checkpoint(steps, start(), budget_bytes=0)


def test_a_budget_for_what_is_no_chain_is_refused():
    with pytest.raises(TypeError, match=r"a list of functions, got .*function"):
        checkpoint(lambda x: x, start(), budget_bytes=100)
    with pytest.raises(TypeError, match="1 steps, 2 arguments and 0 keyword"):
        checkpoint([rg.sin], start(), 3, budget_bytes=100)
    with pytest.raises(TypeError, match="0 steps"):
        checkpoint([], start(), budget_bytes=100)


def test_under_no_grad_each_step_just_runs():
    steps, _, _ = chain(4)
    with rg.no_grad():
        assert not checkpoint(steps, start(), budget_bytes=1).requires_grad
    assert [step.calls for step in steps] == [1] * 4


def test_hooks_around_the_backward_pass_see_nothing_of_the_values_saved_on_the_way():
    steps, _, _ = chain(8)
    y = checkpoint(steps, start(), budget_bytes=3 * BYTES).sum()
    packed = []
    with saved_tensors_hooks(packed.append, lambda nothing: None):
        y.backward()
    assert packed == []


def test_a_saved_value_that_a_step_writes_to_is_an_error():
    x = start() * 1
    y = checkpoint([lambda x: x.mul_(2.0).sin(), rg.sin, rg.sin], x, budget_bytes=BYTES)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_an_error_in_a_repeated_step_arrives_and_the_chain_can_continue():
    steps, w, _ = chain(6)
    x = start()
    failing = []

    def middle(x):
        if failing:
            raise KeyError(failing.pop())
        return x.sin()

    y = checkpoint([*steps[:3], middle, *steps[3:]], x, budget_bytes=BYTES).sum()
    failing.append("gone")
    with pytest.raises(KeyError, match="gone"):
        y.backward(retain_graph=True)
    x.grad = w.grad = None
    got = rg.autograd.grad(y, x)[0].tolist()
    z = x
    for step in (*steps[:3], rg.sin, *steps[3:]):
        z = step(z)
    assert got == rg.autograd.grad(z.sum(), x)[0].tolist()


def test_a_chain_that_is_never_walked_goes_with_its_last_name(no_collector):
    steps, _, _ = chain(6)
    z = start() * 1
    kept = weakref.ref(z.value)
    y = checkpoint(steps, z, budget_bytes=3 * BYTES)
    del z
    assert kept() is not None
    del y
    assert kept() is None


def test_the_sequential_face_takes_a_budget():
    net = nn.Sequential(*[nn.Linear(N, N) for _ in range(5)])
    x = rg.randn(2, N, requires_grad=True)
    expected = rg.autograd.grad(net(x).sum(), x)[0].tolist()
    y = checkpoint_sequential(net, None, x, budget_bytes=num_bytes(x))
    assert rg.autograd.grad(y.sum(), x)[0].tolist() == expected


# ------------------------------------------------------------------------------------------------------- segments


class CountingSine:
    """The sine; count the runs."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x.sin()


def model():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_a_sequence_in_segments_has_the_gradients_of_the_whole(segments):
    net, x = model(), rg.randn(3, 4, requires_grad=True)
    expected = rg.autograd.grad(net(x).sum(), (x, *net.parameters()))
    got = rg.autograd.grad(checkpoint_sequential(net, segments, x, use_reentrant=False).sum(), (x, *net.parameters()))
    assert [g.tolist() for g in got] == [g.tolist() for g in expected]


def test_the_last_segment_is_not_recomputed():
    steps = [CountingSine() for _ in range(5)]
    checkpoint_sequential(steps, 2, start(), use_reentrant=False).sum().backward()
    assert [step.calls for step in steps] == [2, 2, 1, 1, 1]


@pytest.mark.parametrize("segments", [0, 6, -1])
def test_segments_that_cannot_be_are_refused(segments):
    with pytest.raises(ValueError, match=f"5 functions make no {segments} segments"):
        checkpoint_sequential(model(), segments, rg.ones(3, 4), use_reentrant=False)


def test_segments_and_a_budget_exclude_each_other():
    with pytest.raises(ValueError, match="the other one as None"):
        checkpoint_sequential(model(), 2, rg.ones(3, 4), budget_bytes=100)
    with pytest.raises(ValueError, match="the other one as None"):
        checkpoint_sequential(model(), None, rg.ones(3, 4), use_reentrant=False)
