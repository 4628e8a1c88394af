"""Optimizers and schedules against PyTorch: the same gradients move the same parameters to the same place."""

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


def to_ours(state):
    values = {n: {k: rg.tensor(v.numpy()) for k, v in s.items()} for n, s in state["state"].items()}
    return {"state": values, "param_groups": state["param_groups"]}


@pytest.mark.parametrize(
    ("name", "settings"), [("SGD", {"lr": 0.1, "momentum": 0.9}), ("AdamW", {"lr": 0.1, "amsgrad": True})]
)
def test_states_interchange(name, settings):
    mine, peer = tensors()
    ours, theirs = getattr(optim, name)(mine, **settings), getattr(torch.optim, name)(peer, **settings)
    steps(ours, mine, 4)
    steps(theirs, peer, 4)
    ours_state, theirs_state = ours.state_dict(), theirs.state_dict()
    for n, state in theirs_state["state"].items():
        assert set(ours_state["state"][n]) == set(state)
    ours.load_state_dict(to_ours(theirs_state))
    theirs.load_state_dict({**theirs_state, "state": to_theirs(ours_state)["state"]})
    steps(ours, mine, 4)
    steps(theirs, peer, 4)
    assert_same(mine, peer)


SCHEDULES = [
    ("LambdaLR", {"lr_lambda": lambda k: 0.9**k}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.7, "total_iters": 6}),
    ("CosineAnnealingLR", {"T_max": 8, "eta_min": 0.01}),
    ("CosineAnnealingLR", {"T_max": 5}),
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
            optimizers[1].step()
            ours.step()
            theirs.step()
