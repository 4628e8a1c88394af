"""Methods that programs call as they are: of optimizers, schedules, scalers of losses and averaged models."""

import types
import warnings

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F
from retrograd.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn

from .comparison import assert_same_runs, numbers, observe

CALLS = 100


def network(*more):
    return nn.Sequential(nn.Linear(3, 8), *more, nn.Tanh(), nn.Linear(8, 3))


def pairs(i):
    return numbers(4, 3, seed=i), numbers(4, 3, seed=i + 50)


# ----------------------------------------------------------------------------------------------- scalers of losses


def scaler_for_tests():
    return rg.amp.GradScaler("cpu", init_scale=16.3, growth_interval=3, growth_factor=1.7)


def scaled_step():
    model = network()
    optimizer, scaler = rg.optim.Adam(model.parameters(), lr=0.1), scaler_for_tests()

    def step(x, y):
        optimizer.zero_grad()
        with rg.autocast("cpu", dtype=rg.bfloat16):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step, [*model.parameters(), scaler._scale]


def clipped_step():
    model = network()
    optimizer, scaler = rg.optim.SGD(model.parameters(), lr=0.1), scaler_for_tests()

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        before = [p.grad.square().sum() * 2 for p in model.parameters()]
        copied = model[0].weight.grad * 1
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        after = [p.grad.square().sum() * 2 for p in model.parameters()]
        scaler.step(optimizer)
        scaler.update()
        return loss.detach(), before, after, norm, copied + 1

    return step, [*model.parameters(), scaler._scale]


def two_scaled_optimizers():
    model = network()
    first, second = rg.optim.Adam(model[0].parameters()), rg.optim.SGD(model[2].parameters(), lr=0.1)
    scaler = scaler_for_tests()

    def step(x, y):
        first.zero_grad()
        second.zero_grad()
        scaled = scaler.scale([F.mse_loss(model(x), y), x.mean()])
        scaled[0].backward()
        if scaler.is_enabled():
            scaler.step(first)
        scaler.step(second)
        scaler.update()
        return scaled[1]

    return step, [*model.parameters(), scaler._scale]


@pytest.mark.parametrize("make", [scaled_step, clipped_step, two_scaled_optimizers])
def test_a_step_with_a_scaler_skips_and_grows_as_the_eager_one(make):
    def arguments(i):
        x, y = pairs(i)
        return x, (y * float("inf") if i % 7 == 5 else y)

    assert_same_runs(make, arguments, CALLS)


def test_a_program_follows_a_scale_that_is_loaded_and_a_scaler_that_is_switched_off():
    w, scaler = rg.ones(2, requires_grad=True), scaler_for_tests()
    compiled = rg.compile(lambda x: scaler.scale(w * x).detach(), fullgraph=True)
    for scale in (16.0, 16.0, 5.0):
        scaler.load_state_dict({**scaler.state_dict(), "scale": scale})
        assert compiled(rg.ones(2)).tolist() == [scale, scale]
    assert len(compiled.programs) == 1
    scaler._enabled = False
    assert compiled(rg.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("method", ["get_scale", "state_dict"])
def test_a_step_that_reads_the_scale_is_not_captured(method):
    scaler = scaler_for_tests()

    def step(x):
        return x * 2, getattr(scaler, method)()

    with pytest.raises(RuntimeError, match=f"calls GradScaler.{method}"):
        rg.compile(step, fullgraph=True)(rg.ones(2))


def test_a_step_with_a_scaler_cannot_be_saved(tmp_path):
    model, scaler = nn.Linear(3, 3), scaler_for_tests()
    optimizer = rg.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)

    compiled, objects = rg.compile(step), {"model": model, "optimizer": optimizer, "scaler": scaler}
    for _ in range(2):
        compiled(numbers(4, 3))
        scaler.update()
    saved = compiled.aot_compile(((numbers(4, 3),), {}))
    with pytest.raises(rg.export.StorageError, match=r"it calls GradScaler\.step; files have"):
        saved.save_compiled_function(tmp_path / "f.zip", external_data=objects)


# ------------------------------------------------------------------------------------------------- averaged models


def biased(average, value, count):
    return average * 0.5 + value * 0.5 + count


AVERAGES = {
    "the mean": {},
    "a moving average": {"avg_fn": get_ema_avg_fn(0.9)},
    "a moving average in place": {"multi_avg_fn": get_ema_multi_avg_fn(0.9), "use_buffers": True},
    "an average of the user": {"avg_fn": biased},
}


@pytest.mark.parametrize("name", AVERAGES)
def test_an_averaged_model_is_updated_and_used_in_a_step(name):
    def make():
        model = network(nn.BatchNorm1d(8))
        averaged, optimizer = AveragedModel(model, **AVERAGES[name]), rg.optim.AdamW(model.parameters())

        def step(x, y):
            optimizer.zero_grad()
            with rg.no_grad():
                wanted = averaged(y)
            loss = F.mse_loss(model(x), wanted)
            loss.backward()
            optimizer.step()
            averaged.update_parameters(model)
            return loss.detach()

        return step, [*model.parameters(), *averaged.parameters(), *averaged.buffers()]

    assert_same_runs(make, pairs, CALLS)


# ------------------------------------------------------------------------------------ methods that users override


class Decaying(rg.optim.SGD):
    def zero_grad(self, set_to_none=True):
        decay()
        super().zero_grad(set_to_none)


class Slow(rg.optim.SGD):
    def step(self, closure=None):
        decay()
        super().step()


class Decreasing(rg.optim.lr_scheduler.StepLR):
    def step(self, epoch=None):
        decay()
        super().step()


class DecayedAverage(AveragedModel):
    def update_parameters(self, model):
        decay()
        super().update_parameters(model)


class DecayedScaler(rg.amp.GradScaler):
    def step(self, optimizer):
        decay()
        super().step(optimizer)


WEIGHTS = [rg.ones(3, requires_grad=True)]


def decay():
    with rg.no_grad():
        WEIGHTS[0].mul_(0.9)


OTHERS = [
    rg.optim.lr_scheduler.StepLR, Decreasing, AveragedModel, DecayedAverage, rg.amp.GradScaler, DecayedScaler,
]  # fmt: skip


@pytest.mark.parametrize("kind", [rg.optim.SGD, Decaying, Slow], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("other", OTHERS, ids=lambda kind: kind.__name__)
def test_a_method_that_calls_the_one_that_it_overrides_has_its_effects_once(kind, other):
    def make():
        weight = WEIGHTS[0] = rg.ones(3, requires_grad=True)
        model, optimizer = nn.Linear(3, 3), kind([weight], lr=0.1)
        scaler = other("cpu") if issubclass(other, rg.amp.GradScaler) else rg.amp.GradScaler("cpu", enabled=False)
        schedule = other(optimizer, 2) if issubclass(other, rg.optim.lr_scheduler.StepLR) else None
        averaged = other(model) if issubclass(other, AveragedModel) else None

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(x * weight, y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            if schedule is not None:
                schedule.step()
            if averaged is not None:
                averaged.update_parameters(model)
            return loss.detach()

        return step, [weight]

    assert_same_runs(make, pairs, 5)


def test_a_step_of_an_optimizer_that_returns_a_value_is_not_captured():
    class Noting(rg.optim.SGD):
        def step(self, closure=None):
            super().step()
            return WEIGHTS[0].sum().item()

    weight = WEIGHTS[0]
    optimizer = Noting([weight], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        return x * optimizer.step()

    with pytest.raises(RuntimeError, match=r"Noting\.step returns a value"):
        rg.compile(step, fullgraph=True)(rg.ones(3))


HOOKED = {
    "a hook before steps": lambda own, note: own.optimizer.register_step_pre_hook(note),
    "a hook after steps": lambda own, note: own.optimizer.register_step_post_hook(note),
    "a schedule's function": lambda own, note: setattr(
        own, "schedule", rg.optim.lr_scheduler.LambdaLR(own.optimizer, lambda epoch: [1.0, note()][0])
    ),
    "an average's function": lambda own, note: setattr(
        own, "averaged", AveragedModel(own.model, avg_fn=lambda old, new, count: [old * 0.5 + new * 0.5, note()][0])
    ),
}
LOSSES = []


class Meter:
    count = 0

    def note(self, *_):
        self.count += 1

    def note_loss(self, *_):
        LOSSES.append(1.0)


@pytest.mark.parametrize("note", ["note", "note_loss"])
@pytest.mark.parametrize("hooked", HOOKED)
def test_functions_that_such_methods_call_change_state_once(hooked, note):
    def run(compile):
        rg.manual_seed(0)
        LOSSES.clear()
        meter, model = Meter(), network()
        own = types.SimpleNamespace(model=model, optimizer=rg.optim.SGD(model.parameters(), lr=0.1))
        own.schedule = rg.optim.lr_scheduler.StepLR(own.optimizer, 3)
        own.averaged = AveragedModel(model)
        HOOKED[hooked](own, getattr(meter, note))
        schedule, averaged, optimizer = own.schedule, own.averaged, own.optimizer

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            averaged.update_parameters(model)
            meter.count += 1
            LOSSES.append(loss.detach())

        called, seen = compile(step), []
        for i in range(6):
            called(*pairs(i))
            seen.append(observe([*LOSSES, meter.count]))
        return seen

    with warnings.catch_warnings(action="ignore"):
        assert run(rg.compile) == run(lambda step: step)
