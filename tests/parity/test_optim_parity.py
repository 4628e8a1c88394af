"""Optimizers and schedulers compared with PyTorch: the same gradients give the same parameters."""

import inspect

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd import optim

STARTS = [np.linspace(-1, 1, 6).astype("float32").reshape(2, 3), np.array([0.5, -2.0], "float32")]

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "betas": (0.5, 0.7)}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.3)}),
    ("Adam", {"lr": 0.1, "maximize": True, "eps": 0.1}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "amsgrad": True, "betas": (0.5, 0.3), "eps": 1e-3}),
    ("AdamW", {"lr": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.3, "decoupled_weight_decay": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.8, "eps": 0.01, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.1, "centered": True, "eps": 0.01, "maximize": True}),
    ("Adamax", {"lr": 0.1}),
    ("Adamax", {"lr": 0.1, "betas": (0.5, 0.7), "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1, "momentum_decay": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.2), "maximize": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 3.0, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {"lr": 0.1}),
    (
        "Adafactor",
        {"lr": 0.5, "beta2_decay": -0.5, "eps": (1e-3, 0.1), "d": 2.0, "weight_decay": 0.1, "maximize": True},
    ),
]


def tensors():
    mine = [rg.tensor(start, requires_grad=True) for start in STARTS]
    return mine, [torch.tensor(start, requires_grad=True) for start in STARTS]


def steps(optimizer, params, count):
    for k in range(count):
        optimizer.zero_grad()
        loss = sum(((p - 0.3 * k) * (p + 1) * (1 + k % 3)).sum() for p in params)
        loss.backward()
        optimizer.step()


def assert_same(mine, peer):
    for p, q in zip(mine, peer, strict=True):
        np.testing.assert_allclose(np.asarray(p.tolist()), np.asarray(q.tolist()), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIMIZERS} | {"LBFGS", "Muon"}))
def test_arguments_have_the_same_order_and_defaults(name):
    def arguments(module):
        found = inspect.signature(getattr(module, name)).parameters.values()
        return [(one.name, one.kind, one.default) for one in found]

    mine, peer = arguments(optim), arguments(torch.optim)
    positional = [one for one in mine if one[1] == inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional == peer[: len(positional)]
    assert {name for name, _, _ in mine} == {name for name, _, _ in peer}


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_ten_steps_agree(name, settings):
    mine, peer = tensors()
    steps(getattr(optim, name)(mine, **settings), mine, 10)
    steps(getattr(torch.optim, name)(peer, **settings), peer, 10)
    assert_same(mine, peer)


def to_theirs(state):
    return {
        "state": {
            n: {k: torch.tensor(v.tolist() if isinstance(v, rg.Tensor) else float(v)) for k, v in s.items()}
            for n, s in state["state"].items()
        },
        "param_groups": state["param_groups"],
    }


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("AdamW", {"lr": 0.1, "amsgrad": True}),
        ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True}),
        *((name, {"lr": 0.1}) for name in ("Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop")),
        ("ASGD", {"lr": 0.1, "t0": 2.0, "lambd": 0.1}),
        ("Adafactor", {"lr": 0.1}),
    ],
)
def test_states_interchange(name, settings):
    mine, peer = tensors()
    ours, theirs = getattr(optim, name)(mine, **settings), getattr(torch.optim, name)(peer, **settings)
    steps(ours, mine, 4)
    steps(theirs, peer, 4)
    ours_state, theirs_state = ours.state_dict(), theirs.state_dict()
    for n, state in theirs_state["state"].items():
        assert set(ours_state["state"][n]) == set(state)
    ours.load_state_dict(theirs_state)
    theirs.load_state_dict({**theirs_state, "state": to_theirs(ours_state)["state"]})
    steps(ours, mine, 4)
    steps(theirs, peer, 4)
    assert_same(mine, peer)


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("adjust", [None, "match_rms_adamw"])
def test_muon_agrees_within_the_digits_of_bfloat16(nesterov, adjust):
    mine, peer = ([params[0]] for params in tensors())
    settings = {"lr": 0.01, "nesterov": nesterov, "adjust_lr_fn": adjust}
    steps(optim.Muon(mine, **settings), mine, 5)
    steps(torch.optim.Muon(peer, **settings), peer, 5)
    np.testing.assert_allclose(mine[0].tolist(), peer[0].tolist(), atol=2e-3)


def rosenbrock(x, y):
    return ((1 - x) ** 2).sum() + (100 * (y - x * x) ** 2).sum()


@pytest.mark.parametrize(
    "settings",
    [
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 3, "lr": 0.5, "max_iter": 7},
        {"lr": 0.05, "max_iter": 9},
        {"lr": 0.1, "max_iter": 20, "max_eval": 5, "history_size": 2},
    ],
)
def test_lbfgs_takes_the_same_steps(settings):
    places = []
    for module, make in ((optim, rg.tensor), (torch.optim, torch.tensor)):
        x = make([-1.2, 0.5], dtype=rg.float64 if make is rg.tensor else torch.float64, requires_grad=True)
        y = make([1.0], dtype=x.dtype, requires_grad=True)
        optimizer = module.LBFGS([x, y], **settings)

        def closure(optimizer=optimizer, x=x, y=y):
            optimizer.zero_grad()
            loss = rosenbrock(x, y)
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(3)]
        state = optimizer.state[x]
        places.append([*losses, *x.tolist(), *y.tolist(), state["func_evals"], state["n_iter"]])
    np.testing.assert_allclose(*places, rtol=1e-6, atol=1e-9)


SCHEDULES = [
    ("LambdaLR", {"lr_lambda": lambda k: 0.9**k}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.7, "total_iters": 6}),
    ("CosineAnnealingLR", {"T_max": 8, "eta_min": 0.01}),
    ("CosineAnnealingLR", {"T_max": 5}),
    ("MultiplicativeLR", {"lr_lambda": lambda k: 1 - 0.01 * k}),
    ("MultiStepLR", {"milestones": [3, 7, 7], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": [0.3, 0.2], "step_size_up": 3, "step_size_down": 4}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.3, "step_size_up": 3, "mode": "triangular2", "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.3, "step_size_up": 3, "mode": "exp_range", "gamma": 0.9}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.3, "step_size_up": 3, "scale_fn": lambda x: 1 / x}),
    ("OneCycleLR", {"max_lr": 0.4, "total_steps": 20}),
    ("OneCycleLR", {"max_lr": [0.4, 0.2], "epochs": 4, "steps_per_epoch": 5, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": 0.4, "total_steps": 20, "three_phase": True, "pct_start": 0.25}),
    ("OneCycleLR", {"max_lr": 0.4, "total_steps": 20, "pct_start": 0.1, "cycle_momentum": False}),
]


@pytest.mark.parametrize("make", ["SGD", "Adam"])
@pytest.mark.parametrize(("name", "settings"), SCHEDULES)
def test_schedules_agree(name, settings, make):
    mine, peer = tensors()
    extra = {"momentum": 0.9} if make == "SGD" else {}
    optimizers = [
        getattr(module, make)([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.05}], lr=0.1, **extra)
        for module, params in ((optim, mine), (torch.optim, peer))
    ]
    ours = getattr(optim.lr_scheduler, name)(optimizers[0], **settings)
    theirs = getattr(torch.optim.lr_scheduler, name)(optimizers[1], **settings)
    for k in range(20):
        assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-6, abs=1e-9), k
        for group, other in zip(optimizers[0].param_groups, optimizers[1].param_groups, strict=True):
            assert group["lr"] == pytest.approx(other["lr"], rel=1e-6, abs=1e-9)
            moment = "momentum" if make == "SGD" else "betas"
            assert group[moment] == pytest.approx(other[moment])
        if k < 19:
            optimizers[0].step()
            optimizers[1].step()
            ours.step()
            theirs.step()


def chained(module, optimizer):
    parts = [
        module.ConstantLR(optimizer, 0.5, 4),
        module.ExponentialLR(optimizer, 0.9),
        module.StepLR(optimizer, 3),
        module.CosineAnnealingLR(optimizer, 30, 0.001),
    ]
    return module.ChainedScheduler(parts, optimizer)


def sequential(module, optimizer):
    parts = [
        module.LinearLR(optimizer, 0.1, 1.0, 4),
        module.CosineAnnealingLR(optimizer, 8),
        module.ExponentialLR(optimizer, 0.5),
    ]
    return module.SequentialLR(optimizer, parts, [4, 9])


def nested(module, optimizer):
    warmup = module.LinearLR(optimizer, 0.1, 1.0, 4)
    restarts = module.CosineAnnealingWarmRestarts(optimizer, 3, 2)
    return module.SequentialLR(optimizer, [warmup, restarts], [5])


@pytest.mark.filterwarnings("ignore:The epoch parameter")
@pytest.mark.parametrize("make", [chained, sequential, nested])
def test_combined_schedules_agree(make):
    mine, peer = tensors()
    ours = optim.SGD([{"params": [mine[0]]}, {"params": [mine[1]], "lr": 0.05}], lr=0.1)
    theirs = torch.optim.SGD([{"params": [peer[0]]}, {"params": [peer[1]], "lr": 0.05}], lr=0.1)
    schedule, other = make(optim.lr_scheduler, ours), make(torch.optim.lr_scheduler, theirs)
    for k in range(16):
        rates = [group["lr"] for group in theirs.param_groups]
        assert [group["lr"] for group in ours.param_groups] == pytest.approx(rates, rel=1e-6, abs=1e-12), k
        assert schedule.get_last_lr() == pytest.approx(other.get_last_lr()), k
        ours.step()
        theirs.step()
        schedule.step()
        other.step()


@pytest.mark.parametrize(
    "settings",
    [
        {"patience": 1, "factor": 0.5},
        {"patience": 0, "cooldown": 2, "threshold": 0.3, "min_lr": [0.02, 0.03]},
        {"mode": "max", "patience": 1, "threshold": 0.2, "threshold_mode": "abs", "eps": 0.03},
        {"mode": "max", "patience": 0, "threshold": 0.2},
    ],
)
def test_reductions_on_a_plateau_agree(settings):
    mine, peer = tensors()
    ours = optim.SGD([{"params": [mine[0]]}, {"params": [mine[1]], "lr": 0.05}], lr=0.1)
    theirs = torch.optim.SGD([{"params": [peer[0]]}, {"params": [peer[1]], "lr": 0.05}], lr=0.1)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(ours, **settings)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **settings)
    for value in (3.0, 2.0, 1.9, 1.9, 2.5, 1.0, 1.0, 1.0, 0.9, 4.0, 4.0, -1.0, -1.1, -1.2):
        schedule.step(value)
        other.step(value)
        assert schedule.get_last_lr() == pytest.approx(other.get_last_lr())
        assert (schedule.best, schedule.num_bad_epochs) == (other.best, other.num_bad_epochs)
    schedule.load_state_dict(other.state_dict())


@pytest.mark.parametrize("epochs", [0, 1, 5])
@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_the_annealing_of_averaging_agrees(strategy, epochs):
    mine, peer = tensors()
    ours, theirs = optim.SGD(mine, lr=0.1), torch.optim.SGD(peer, lr=0.1)
    first, second = optim.lr_scheduler.ExponentialLR(ours, 0.9), torch.optim.lr_scheduler.ExponentialLR(theirs, 0.9)
    schedule = optim.swa_utils.SWALR(ours, 0.05, epochs, strategy)
    other = torch.optim.swa_utils.SWALR(theirs, 0.05, epochs, strategy)
    for k in range(9):
        assert ours.param_groups[0]["lr"] == pytest.approx(theirs.param_groups[0]["lr"]), k
        ours.step()
        theirs.step()
        for step in (first, second) if k < 2 else (schedule, other):
            step.step()


@pytest.mark.parametrize("name", ["MultiStepLR", "CosineAnnealingWarmRestarts", "CyclicLR", "PolynomialLR"])
def test_a_schedule_takes_the_state_of_its_peer(name):
    settings = {"MultiStepLR": ([2, 5],), "CosineAnnealingWarmRestarts": (3, 2), "CyclicLR": (0.1, 0.5, 4)}.get(
        name, ()
    )
    mine, peer = tensors()
    ours, theirs = optim.SGD(mine, lr=0.1, momentum=0.9), torch.optim.SGD(peer, lr=0.1, momentum=0.9)
    schedule = getattr(optim.lr_scheduler, name)(ours, *settings)
    other = getattr(torch.optim.lr_scheduler, name)(theirs, *settings)
    for _ in range(4):
        theirs.step()
        other.step()
    schedule.load_state_dict(other.state_dict())
    ours.param_groups[0]["lr"] = theirs.param_groups[0]["lr"]
    for _ in range(4):
        ours.step()
        theirs.step()
        other.step()
        schedule.step()
        assert schedule.get_last_lr() == pytest.approx(other.get_last_lr())


def test_averages_of_models_agree():
    for fn in ("get_swa_avg_fn", "get_ema_avg_fn"):
        results = []
        for library in (rg, torch):
            utils = library.optim.swa_utils
            model = library.nn.Linear(1, 1, bias=False)
            averaged = utils.AveragedModel(model, avg_fn=getattr(utils, fn)())
            for value in (1.0, 2.0, 6.0):
                library.nn.init.constant_(model.weight, value)
                averaged.update_parameters(model)
            results.append([averaged.module.weight.item(), int(averaged.n_averaged), *averaged.state_dict()])
        assert results[0][0] == pytest.approx(results[1][0])
        assert sorted(map(str, results[0][1:])) == sorted(map(str, results[1][1:]))
