"""Training steps whose checks come after the optimizer's step: the bits of steps that wait for the checks."""

import threading

import pytest
from tests.pipelining.matrix import check_train_steps

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.optim import LBFGS, SGD, Adam, AdamW
from retrograd.pipelining import (
    Pipeline,
    PipelineError,
    PipeSequential,
    make_schedule,
    simulate_costs,
    with_offload,
    with_recomputation,
)
from retrograd.pipelining.planning.simulate import consecutive_steps, unit_cost
from retrograd.pipelining.runtime.post_validation import TrainingRank, _Copies
from retrograd.pipelining.schedules.lowering import chain

SCHEDULES = ["1f1b", "gpipe", "zb-h2", "zbv", "interleaved1f1b"]


def net():
    rg.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.2)) for _ in range(3)]
    return nn.Sequential(*layers, nn.BatchNorm1d(8), nn.Linear(8, 1))


def batches(*, wrong=()):
    """Return six batches; `wrong`: "large" targets in the third and the last one, "nan" in the fourth one."""
    rg.manual_seed(3)
    found = [(rg.randn(8, 8), rg.randn(8, 1)) for _ in range(6)]
    if "large" in wrong:
        found[2], found[5] = ((x, y * 1000) for x, y in (found[2], found[5]))
    if "nan" in wrong:
        found[3][1][0] = float("nan")
    return found


def state_of(model, optimizer):
    """Return the bytes of the parameters, the buffers and the optimizer's state."""
    entries = [entry for p in model.parameters() for entry in optimizer.state.get(p, {}).values()]
    values = [*model.state_dict().values(), *entries]
    return [value.numpy().tobytes() if isinstance(value, rg.Tensor) else value for value in values]


def adamw(parameters):
    return AdamW(parameters, lr=0.02)


def trained(data, validate, schedule="1f1b", make_optimizer=adamw, max_norm=5.0, replicas=1, make=net):
    """Return loss, norm and verdict of every step, and the state after them; validate "loop": a step at a time."""
    model = make()
    optimizer = make_optimizer(model.parameters())
    pipeline = Pipeline(model, 4, ranks=2, replicas=replicas, schedule=schedule, micro_batches=4, loss_fn=mse_loss)
    rg.manual_seed(7)
    if validate != "loop":
        found = pipeline.train_steps(data, optimizer, max_norm=max_norm, validate=validate)
        results = [(repr(step.loss.item()), repr(step.norm), step.clipped, step.skipped) for step in found]
        return results, state_of(model, optimizer), rg.rand(1).item()
    results = []
    for x, y in data:
        optimizer.zero_grad()
        loss = pipeline.step(x, target=y).item()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm).item()
        finite = abs(norm) < float("inf")
        if finite:
            optimizer.step()
        results.append((repr(loss), repr(norm), finite and norm > max_norm, not finite))
    return results, state_of(model, optimizer), rg.rand(1).item()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_checks_that_follow_give_the_bits_of_checks_that_are_waited_for(schedule):
    data = batches(wrong=["large", "nan"])
    expected = trained(data, "loop", schedule)
    assert [verdict for *_, verdict in expected[0]] == [False] * 3 + [True] + [False] * 2
    assert [clipped for _, _, clipped, _ in expected[0]].count(True) in range(2, 5)
    assert trained(data, "before", schedule) == expected
    assert trained(data, "after", schedule) == expected


@pytest.mark.parametrize("wrong", [[], ["large"], ["nan"]])
@pytest.mark.parametrize(
    "make_optimizer",
    [lambda ps: SGD(ps, lr=0.01, momentum=0.9), lambda ps: Adam(ps, lr=0.01, amsgrad=True), lambda ps: SGD(ps, lr=0.1)],
    ids=["momentum", "amsgrad", "sgd"],
)
def test_every_optimizer_and_kind_of_failure_gives_the_same_bits(make_optimizer, wrong):
    data = batches(wrong=wrong)
    expected = trained(data, "loop", make_optimizer=make_optimizer)
    assert trained(data, "after", make_optimizer=make_optimizer) == expected


def test_the_first_and_the_last_step_may_fail():
    data = batches(wrong=["large"])[2::3]  # both are clipped
    expected = trained(data, "loop")
    assert all(clipped for _, _, clipped, _ in expected[0])
    assert trained(data, "after") == expected


def test_without_a_limit_only_numbers_that_are_not_finite_matter():
    data = batches(wrong=["large", "nan"])
    found = trained(data, "after", max_norm=None)
    assert [verdict[2:] for verdict in found[0]] == [(False, number == 3) for number in range(6)]
    assert found == trained(data, "before", max_norm=None)


@pytest.mark.parametrize("change", [with_recomputation, with_offload])
def test_stages_that_recompute_or_offload_repeat_their_forwards_too(change):
    schedule = change(make_schedule("zb-h1", 4, 4, ranks=2), [0, 2])
    data = batches(wrong=["large", "nan"])
    assert trained(data, "after", schedule) == trained(data, "loop")


@pytest.mark.parametrize("name", ["zbv", "1f1b", "interleaved1f1b"])  # a parameter's stages are on one rank, or two
def test_a_parameter_of_several_stages_is_summed_before_the_step(name):
    check_train_steps("threads", name)


def test_parameters_of_several_stages_and_of_replicas_are_summed_before_the_step():
    check_train_steps("threads", "1f1b", replicas=2)


@pytest.mark.parametrize("early", [{0}, {1}, {0, 1}, set()])
def test_a_rank_that_has_all_norms_when_it_steps_keeps_no_copies_and_joins_the_repetition(monkeypatch, early):
    copying = set()
    take = _Copies.take
    monkeypatch.setattr(_Copies, "take", lambda copies: copying.add(threading.current_thread().name) or take(copies))
    monkeypatch.setattr(TrainingRank, "_wait_for_norms", lambda self, following: self.link.rank in early)
    data = batches(wrong=["large", "nan"])
    assert trained(data, "after", "zbv") == trained(data, "loop", "zbv")
    assert copying == {f"rank {rank}" for rank in (0, 1) if rank not in early}
    assert trained(data, "after", "zbv", replicas=2) == trained(data, "loop", "zbv", replicas=2)


@pytest.mark.parametrize("wrong", [[], ["large", "nan"]])
def test_a_rank_that_waits_for_its_first_input_keeps_no_copies(monkeypatch, wrong):
    copying = set()
    take = _Copies.take
    monkeypatch.setattr(_Copies, "take", lambda copies: copying.add(threading.current_thread().name) or take(copies))
    data = batches(wrong=wrong)
    assert trained(data, "after", "1f1b") == trained(data, "loop", "1f1b")
    assert "rank 1" not in copying  # its input comes after rank 0 has sent its norms, and stepped


@pytest.mark.parametrize("wrong", [[], ["large", "nan"]])
@pytest.mark.parametrize(("schedule", "replicas"), [("1f1b", 2), ("zb-h2", 3)])
def test_replicas_take_the_same_steps(schedule, replicas, wrong):
    data = batches(wrong=wrong)
    expected = trained(data, "loop", schedule, replicas=replicas)
    assert trained(data, "before", schedule, replicas=replicas) == expected
    assert trained(data, "after", schedule, replicas=replicas) == expected


class Tracking(nn.Linear):
    """A layer whose result depends on a buffer, which every forward pass changes."""

    def __init__(self):
        super().__init__(8, 8)
        self.register_buffer("mean", rg.zeros(8))

    def forward(self, x):
        self.mean.mul_(0.5).add_(x.detach().mean(0), alpha=0.5)
        return super().forward(x - self.mean).tanh()


def test_replicas_begin_each_step_with_the_buffers_of_the_first_one():
    def make():
        rg.manual_seed(0)
        return PipeSequential(Tracking(), Tracking(), Tracking(), nn.Linear(8, 1))

    data = batches(wrong=["large"])
    expected = trained(data, "loop", replicas=2, make=make)
    assert trained(data, "after", replicas=2, make=make) == expected


class Signal(nn.Module):
    """The first stage: sets an event in its second forward pass."""

    def __init__(self, event):
        super().__init__()
        self.linear, self.event, self.count = nn.Linear(2, 2), event, 0

    def forward(self, x):
        self.count += 1
        if self.count > 1:
            self.event.set()
        return self.linear(x)


def test_a_rank_begins_the_next_step_while_another_one_still_runs_backward():
    # The last stage's first weight half waits until the first stage begins the second step: it has run I, but not W.
    event = threading.Event()
    schedule = [list(row) for row in make_schedule("zb-h1", 2, 1)]
    model = [Signal(event), nn.Linear(2, 2)]
    pipeline = Pipeline(model, schedule=schedule, micro_batches=1, loss_fn=mse_loss)
    model[1].weight.register_hook(lambda gradient: None if event.wait(60) else pytest.fail("rank 0 waits"))
    optimizer = SGD([*model[0].parameters(), *model[1].parameters()], lr=0.1)
    pipeline.train_steps([(rg.ones(2, 2), rg.ones(2, 2))] * 2, optimizer)
    assert event.is_set()


def test_steps_have_one_timeline_with_the_microbatches_of_all():
    model = net()
    pipeline = Pipeline(model, 2, micro_batches=4, loss_fn=mse_loss)
    pipeline.train_steps(batches()[:3], SGD(model.parameters(), lr=0.1))
    events = [event for event in pipeline.timeline.events if event.action.kind.is_compute]
    assert sorted({event.action.micro_batch for event in events}) == list(range(12))
    assert len(events) == len({event.action for event in events}) == 2 * 2 * 12


def test_consecutive_steps_are_simulated_without_a_barrier():
    schedule = make_schedule("zb-h2", 4, 8)
    one, two, three = (
        simulate_costs(consecutive_steps(schedule, count), chain(4), unit_cost).span for count in (1, 2, 3)
    )
    assert one == 3 * 8 + 3  # the last rank begins three forwards later
    assert two - one == three - two == 3 * 8  # no bubble


def test_gradients_are_none_before_and_after():
    model = net()
    pipeline = Pipeline(model, 2, micro_batches=2, loss_fn=mse_loss)
    for parameter in model.parameters():
        parameter.grad = rg.full_like(parameter, float("nan"))
    found = pipeline.train_steps(batches()[:1], SGD(model.parameters(), lr=0.1))
    assert not found[0].skipped
    assert all(parameter.grad is None for parameter in model.parameters())
    assert pipeline.train_steps([], SGD(model.parameters(), lr=0.1)) == []


class Fuse(nn.Module):
    """A stage that fails in the second step of two microbatches, after the capture has run it once."""

    count = 0

    def forward(self, x):
        self.count += 1
        if self.count > 3:
            raise KeyError("blown")
        return x


@pytest.mark.parametrize("validate", ["after", "before"])
def test_an_error_in_a_later_step_is_raised_and_names_its_action(validate):
    model = [nn.Linear(2, 2), Fuse()]
    pipeline = Pipeline(model, micro_batches=2, loss_fn=mse_loss)
    optimizer = SGD(model[0].parameters(), lr=0.1)
    with pytest.raises(PipelineError, match=r"rank 1, stage 1, microbatch 0, action F1\.0: KeyError: 'blown'"):
        pipeline.train_steps([(rg.ones(4, 2), rg.ones(4, 2))] * 3, optimizer, validate=validate)


def test_steps_that_must_be_run_one_by_one_are_refused():
    model, data = net(), batches()[:1]
    sgd = SGD(model.parameters(), lr=0.1)
    options = {"micro_batches": 2, "loss_fn": mse_loss}
    with pytest.raises(ValueError, match="validate must be 'after' or 'before', got 'never'"):
        Pipeline(model, 2, **options).train_steps(data, sgd, validate="never")
    with pytest.raises(ValueError, match="max_norm must be above 0, got 0"):
        Pipeline(model, 2, **options).train_steps(data, sgd, max_norm=0)
    with pytest.raises(ValueError, match="watch_nan"):
        Pipeline(model, 2, watch_nan=True, **options).train_steps(data, sgd)
    with pytest.raises(ValueError, match="LBFGS has one state for all parameters"):
        Pipeline(model, 2, **options).train_steps(data, LBFGS(model.parameters()))
    with pytest.raises(ValueError, match="the optimizer has 1 parameters that are not the model's"):
        Pipeline(model, 2, **options).train_steps(data, SGD([rg.ones(1, requires_grad=True)], lr=0.1))
    x, y = data[0]
    with pytest.raises(ValueError, match="an input requires grad"):
        Pipeline(model, 2, **options).train_steps([(x.clone().requires_grad_(), y)], sgd)

    class Branch(nn.Linear):
        def forward(self, x):
            return super().forward(x) if x.sum() > 0 else x

    branch = Branch(1, 1)
    pipeline = Pipeline(branch, 1, loss_fn=mse_loss)
    with pytest.raises(NotImplementedError, match="control flow depends on values"):
        pipeline.train_steps([(rg.ones(1, 1), rg.ones(1, 1))], SGD(branch.parameters(), lr=0.1))
