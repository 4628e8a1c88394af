"""Learning rate schedulers: rates, states, and refused arguments."""

import copy
import math
import pickle
import warnings

import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.optim import lr_scheduler as schedules

from ..case_groups import group_cases

# Most tests here only look at the rates.
EARLY = "Detected call of `lr_scheduler.step\\(\\)` before `optimizer.step"
pytestmark = pytest.mark.filterwarnings(f"ignore:{EARLY}:UserWarning")


def optimizer(lr=1.0, **settings):
    groups = [{"params": [nn.Parameter(rg.zeros(1))]}, {"params": [nn.Parameter(rg.zeros(1))], "lr": lr / 2}]
    return optim.SGD(groups, lr=lr, **settings)


def rates(schedule, count):
    found = [schedule.get_last_lr()[0]]
    for _ in range(count):
        schedule.step()
        found.append(schedule.get_last_lr()[0])
    return found


def test_schedules_are_their_formulas():
    assert rates(schedules.LambdaLR(optimizer(), lambda k: 1 / (1 + k)), 3) == [1, 1 / 2, 1 / 3, 1 / 4]
    assert rates(schedules.StepLR(optimizer(), 2, 0.5), 4) == [1, 1, 0.5, 0.5, 0.25]
    assert rates(schedules.LinearLR(optimizer(), 0.5, 1.0, 2), 3) == [0.5, 0.75, 1.0, 1.0]
    cosine = rates(schedules.CosineAnnealingLR(optimizer(), 4, 0.2), 4)
    assert cosine == pytest.approx([0.2 + 0.8 * (1 + math.cos(math.pi * k / 4)) / 2 for k in range(5)])


def test_every_group_keeps_its_own_rate():
    opt = optimizer()
    schedules.StepLR(opt, 1, 0.5).step()
    assert [group["lr"] for group in opt.param_groups] == [0.5, 0.25]
    assert [group["initial_lr"] for group in opt.param_groups] == [1.0, 0.5]


def test_one_cycle_goes_up_and_far_down_and_the_momentum_the_other_way():
    opt = optimizer(momentum=0.9)
    schedule = schedules.OneCycleLR(opt, max_lr=1.0, total_steps=10, pct_start=0.5)
    momenta = [opt.param_groups[0]["momentum"]]
    found = [schedule.get_last_lr()[0]]
    for _ in range(9):
        schedule.step()
        found.append(schedule.get_last_lr()[0])
        momenta.append(opt.param_groups[1]["momentum"])
    assert found[0] == pytest.approx(1 / 25)
    assert max(found) == found[4] == pytest.approx(1.0)
    assert found[-1] == pytest.approx(1 / 25 / 1e4)
    assert (momenta[0], min(momenta), momenta[-1]) == pytest.approx((0.95, 0.85, 0.95))
    schedule.step()  # the one after the last of the optimizer's steps: past the end of the cosine, as in PyTorch
    assert schedule.get_last_lr()[0] > found[-1]
    with pytest.raises(ValueError, match="all 10 steps of the cycle are done"):
        schedule.step()
    assert schedule.last_epoch == 10


def test_a_loaded_schedule_continues_where_the_saved_one_was():
    schedule = schedules.CosineAnnealingLR(optimizer(), 10)
    rates(schedule, 3)
    other = schedules.CosineAnnealingLR(optimizer(), 99)
    other.load_state_dict(schedule.state_dict())
    assert rates(other, 3) == rates(schedule, 3)


def test_a_state_holds_plain_data_only():
    state = schedules.LambdaLR(optimizer(), lambda k: 1.0).state_dict()
    rates = {"base_lrs": [1.0, 0.5], "_last_lr": [1.0, 0.5]}
    assert state == {"last_epoch": 0, "_step_count": 1, **rates, "lr_lambdas": [None] * 2}


def test_a_state_of_another_schedule_is_refused():
    with pytest.raises(ValueError, match="T_max, eta_min"):
        schedules.StepLR(optimizer(), 1).load_state_dict(schedules.CosineAnnealingLR(optimizer(), 3).state_dict())


def test_resuming_at_a_step_takes_the_initial_rates_from_the_optimizer():
    opt = optimizer()
    with pytest.raises(KeyError, match="initial_lr"):
        schedules.StepLR(opt, 2, 0.5, last_epoch=3)
    first = schedules.StepLR(opt, 2, 0.5)
    rates(first, 3)
    assert schedules.StepLR(opt, 2, 0.5, last_epoch=3).get_last_lr() == [0.25, 0.125]


@group_cases
@pytest.mark.parametrize(
    ("make", "error", "pattern"),
    [
        (lambda o: schedules.StepLR(o, 0), ValueError, "at least 1, got 0"),
        (lambda o: schedules.StepLR(3, 1), TypeError, "expected an Optimizer, got int"),
        (lambda o: schedules.LinearLR(o, 0.0), ValueError, "got 0.0 and 1.0"),
        (lambda o: schedules.LinearLR(o, total_iters=0), ValueError, "at least 1, got 0"),
        (lambda o: schedules.CosineAnnealingLR(o, 0), ValueError, "T_max must be at least 1, got 0"),
        (lambda o: schedules.LambdaLR(o, [abs]), ValueError, "Expected 2 lr_lambdas"),
        (lambda o: schedules.OneCycleLR(o, 1.0), ValueError, "give total_steps, or both"),
        (lambda o: schedules.OneCycleLR(o, 1.0, total_steps=0), ValueError, "at least 1, got 0"),
        (lambda o: schedules.OneCycleLR(o, 1.0, 9, pct_start=2), ValueError, "between 0 and 1, got 2"),
        (
            lambda o: schedules.OneCycleLR(o, 1.0, 9, anneal_strategy="exp"),
            ValueError,
            "'cos' or 'linear', got 'exp'",
        ),
        (lambda o: schedules.OneCycleLR(o, [1.0], 9), ValueError, "expected 2 values"),
        (lambda o: schedules.ConstantLR(o, 2.0), ValueError, "between 0 and 1, got 2.0"),
        (lambda o: schedules.PolynomialLR(o, 0), ValueError, "at least 1, got 0"),
        (lambda o: schedules.MultiplicativeLR(o, [abs]), ValueError, "Expected 2 lr_lambdas"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 0), ValueError, "got 0 and 1"),
        (lambda o: schedules.CyclicLR(o, 0.1, 1.0, mode="x"), ValueError, "mode must be one of .* got 'x'"),
        (lambda o: schedules.CyclicLR(o, 0.1, 1.0, 0), ValueError, "at least 1, got 0 and 0"),
        (lambda o: schedules.CyclicLR(o, [0.1], 1.0), ValueError, "expected 2 values"),
        (lambda o: schedules.ReduceLROnPlateau(o, factor=1.0), ValueError, "less than 1, got 1.0"),
        (lambda o: schedules.ReduceLROnPlateau(o, mode="up"), ValueError, "got 'up'"),
        (lambda o: schedules.ReduceLROnPlateau(3), TypeError, "expected an Optimizer, got int"),
        (lambda o: schedules.ChainedScheduler([]), ValueError, "at least one schedule"),
        (
            lambda o: schedules.ChainedScheduler([schedules.StepLR(optimizer(), 1)], o),
            ValueError,
            "belongs to another optimizer",
        ),
        (
            lambda o: schedules.SequentialLR(o, [schedules.ReduceLROnPlateau(o)], []),
            ValueError,
            "steps with a quantity",
        ),
        (
            lambda o: schedules.SequentialLR(o, [schedules.StepLR(o, 1)], [3]),
            ValueError,
            r"1 schedules need 0 milestones that rise, got \[3\]",
        ),
        (lambda o: optim.swa_utils.SWALR(o, 0.1, anneal_strategy="x"), ValueError, "got 'x'"),
    ],
)
def test_bad_settings_are_refused_and_leave_the_optimizer_as_it_was(make, error, pattern):
    opt = optimizer()
    with pytest.raises(error, match=pattern):
        make(opt)
    assert [group["lr"] for group in opt.param_groups] == [1.0, 0.5]


def test_a_step_that_fails_leaves_schedule_and_optimizer_as_they_were():
    class Failing(schedules.LRScheduler):
        rates = staticmethod(lambda: [3.0, 4.0])
        others = staticmethod(lambda: None)

        def get_lr(self):
            return self.rates()

        def update_momentum(self):
            self.others()

    def interrupted():
        raise KeyboardInterrupt

    def not_there():
        opt.param_groups[0]["momentum"] = 99.0
        opt.param_groups[1]["extra"] = 1.0
        raise KeyError("momentum")

    opt = optimizer()
    schedule = Failing(opt)
    before = copy.deepcopy((opt.state_dict(), schedule.state_dict()))
    for error, rates, others in (
        (KeyboardInterrupt, interrupted, lambda: None),
        (ValueError, lambda: [7.0], lambda: None),
        (KeyError, lambda: [7.0, 8.0], not_there),
    ):
        Failing.rates, Failing.others = staticmethod(rates), staticmethod(others)
        with pytest.raises(error):
            schedule.step()
        assert (opt.state_dict(), schedule.state_dict()) == before
    assert schedule.optimizer is opt


def test_schedules_of_one_optimizer_multiply():
    opt = optimizer()
    both = [schedules.StepLR(opt, 2, 0.5), schedules.ExponentialLR(opt, 0.25)]
    found = []
    for _ in range(3):
        for schedule in both:
            schedule.step()
        found.append(opt.param_groups[0]["lr"])
    assert found == [0.25, 0.25**2 / 2, 0.25**3 / 2]


def test_a_schedule_continues_from_a_rate_that_the_user_changed():
    opt = optimizer()
    schedule = schedules.ExponentialLR(opt, 0.5)
    schedule.step()
    opt.param_groups[0]["lr"] = 8.0
    schedule.step()
    assert schedule.get_last_lr() == [4.0, 0.125]


def test_combined_schedules_continue_where_the_saved_ones_were():
    def make():
        opt = optimizer()
        parts = [schedules.LinearLR(opt, 0.25, 1.0, 3), schedules.ExponentialLR(opt, 0.5)]
        return schedules.SequentialLR(opt, parts, [3])

    schedule, other = make(), make()
    rates(schedule, 4)
    other.load_state_dict(copy.deepcopy(schedule.state_dict()))
    other.optimizer.load_state_dict(schedule.optimizer.state_dict())
    assert rates(other, 3) == rates(schedule, 3)
    with pytest.raises(ValueError, match="the state has 1 schedules, this one 2"):
        other.load_state_dict({"_schedulers": [{}]})


def test_a_schedule_with_restarts_can_be_put_between_two_steps():
    schedule = schedules.CosineAnnealingWarmRestarts(optimizer(), 2, 2)
    schedule.step(3.0)  # a quarter of the second period, from 2 to 6
    assert schedule.get_last_lr()[0] == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    schedule.step(2.5)
    assert schedule.get_last_lr()[0] == pytest.approx((1 + math.cos(math.pi / 8)) / 2)
    with pytest.raises(ValueError, match="got -1"):
        schedule.step(-1)


DEPRECATED = r"step\(epoch\) is deprecated"


def test_a_step_may_name_its_epoch_as_older_scripts_do():
    plain = schedules.StepLR(optimizer(), 2, 0.5)
    expected = rates(plain, 4)
    schedule = schedules.StepLR(optimizer(), 2, 0.5)
    found = []
    for epoch in (0, 1, 2, 3, 4, 1):
        with pytest.warns(UserWarning, match=DEPRECATED) as caught:
            schedule.step(epoch)
        found += schedule.get_last_lr()[:1]
    assert caught[0].filename == __file__
    assert found == [*expected, expected[1]]
    with pytest.warns(match=DEPRECATED), pytest.raises(ValueError, match="an integer of at least 0, got -1"):
        schedule.step(-1)
    assert (schedule.last_epoch, schedule.get_last_lr()[0]) == (1, expected[1])
    plateau = schedules.ReduceLROnPlateau(optimizer())
    with pytest.warns(UserWarning, match=DEPRECATED):
        plateau.step(1.0, 7)
    assert plateau.last_epoch == 7


def test_a_schedule_of_a_user_may_read_the_private_fields_of_those_of_pytorch():
    class Halved(schedules.LRScheduler):
        def get_lr(self):
            assert self._get_lr_called_within_step
            return [lr * 0.5 ** (self._step_count - 1) for lr in self.base_lrs]

    assert rates(Halved(optimizer()), 2) == [1.0, 0.5, 0.25]


def test_averages_take_new_statistics_of_batches_and_leave_the_model_in_its_mode():
    model = nn.Sequential(nn.BatchNorm1d(1)).eval()
    averaged = optim.swa_utils.AveragedModel(model).eval()
    batches = [rg.tensor([[1.0], [3.0]]), (rg.tensor([[5.0], [7.0]]), "label")]
    optim.swa_utils.update_bn(batches, averaged, device=rg.device("cpu"))
    assert averaged.module[0].running_mean.tolist() == [4.0]
    assert averaged.module[0].momentum == 0.1
    assert not averaged.training


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"avg_fn": optim.swa_utils.get_ema_avg_fn(0.5)},
        {"multi_avg_fn": optim.swa_utils.get_ema_multi_avg_fn(0.5)},
        {"multi_avg_fn": optim.swa_utils.get_swa_multi_avg_fn()},
    ],
)
def test_a_pickled_average_continues(settings):
    model = nn.Linear(1, 1)
    averaged = optim.swa_utils.AveragedModel(model, **settings)
    averaged.update_parameters(model)
    restored = pickle.loads(pickle.dumps(averaged))
    nn.init.constant_(model.weight, 8.0)
    for each in (averaged, restored):
        each.update_parameters(model)
    assert restored.module.weight.tolist() == averaged.module.weight.tolist()
    assert restored.n_averaged == 2


def test_the_first_step_of_a_schedule_before_the_optimizers_warns_at_the_users_line():
    for make in (
        lambda opt: schedules.StepLR(opt, 2),
        lambda opt: schedules.SequentialLR(opt, [schedules.StepLR(opt, 2), schedules.StepLR(opt, 2)], [2]),
    ):
        early, late = optimizer(), optimizer()
        with pytest.warns(UserWarning, match=EARLY) as caught:
            make(early).step()
        assert [warning.filename for warning in caught] == [__file__]
        schedule = make(late)
        late.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            schedule.step()
            make(late).step()
            resumed = make(early)
            resumed.load_state_dict(schedule.state_dict())
            resumed.step()


def test_a_schedule_that_is_put_at_a_point_or_takes_a_metric_may_step_first():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedules.CosineAnnealingWarmRestarts(optimizer(), 2).step(0.5)
        schedules.ReduceLROnPlateau(optimizer()).step(1.0)


def test_a_warning_is_shown_in_code_without_a_module_too():
    names = {"schedule": schedules.StepLR(optimizer(), 2)}
    with pytest.warns(UserWarning, match=EARLY):
        exec("schedule.step()", names)
    assert "__name__" not in names


def test_a_plateau_says_while_bad_steps_are_not_counted():
    optimizer = rg.optim.SGD([rg.ones(1, requires_grad=True)], lr=1.0)
    plateau = rg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, cooldown=2)
    seen = []
    for metric in (1.0, 2.0, 2.0, 2.0):
        plateau.step(metric)
        seen.append(plateau.in_cooldown)
    assert seen == [False, True, True, False]


def test_sequences_and_chains_nest():
    opt = rg.optim.SGD([rg.zeros(1, requires_grad=True)], lr=1.0)
    warmup = schedules.SequentialLR(opt, [schedules.ConstantLR(opt, 0.5, 2), schedules.ExponentialLR(opt, 0.5)], [2])
    both = schedules.ChainedScheduler([schedules.ConstantLR(opt, 0.25, 9), schedules.ExponentialLR(opt, 0.5)], opt)
    schedule = schedules.SequentialLR(opt, [warmup, both], [4])
    assert rates(schedule, 6) == [0.5, 0.5, 1.0, 0.5, 0.25, 0.125, 0.0625]


def test_a_restored_optimizer_keeps_its_rates_under_a_schedule_made_for_its_step():
    opt = optimizer()
    first = schedules.ExponentialLR(opt, 0.5)
    rates(first, 2)
    again = schedules.ExponentialLR(opt, 0.5, last_epoch=1)
    assert again.get_last_lr() == first.get_last_lr() == [0.25, 0.125]
    assert again.last_epoch == first.last_epoch == 2


def test_a_step_that_replaces_the_optimizers_after_its_schedule_warns():
    trained = optimizer()
    schedule, own = schedules.StepLR(trained, 1), trained.step
    trained.step = lambda: own()
    trained.step()
    with pytest.warns(UserWarning, match="overridden after learning rate scheduler initialization"):
        schedule.step()
    again = schedules.StepLR(trained, 1)
    again.step()  # it knows the step that is there
    assert again.state_dict().keys() == schedule.state_dict().keys()
