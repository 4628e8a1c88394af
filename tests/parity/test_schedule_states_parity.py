"""States of schedules and their optimizers are the same files in PyTorch and here."""

import pytest
import torch

import retrograd as rg

SCHEDULES = {
    "LambdaLR": lambda module, optimizer: module.LambdaLR(optimizer, lambda step: 1 / (1 + step)),
    "MultiplicativeLR": lambda module, optimizer: module.MultiplicativeLR(optimizer, lambda step: 0.9),
    "StepLR": lambda module, optimizer: module.StepLR(optimizer, 2, 0.5),
    "MultiStepLR": lambda module, optimizer: module.MultiStepLR(optimizer, [2, 5, 5], 0.5),
    "ConstantLR": lambda module, optimizer: module.ConstantLR(optimizer, 0.5, 6),
    "LinearLR": lambda module, optimizer: module.LinearLR(optimizer, 0.5, 1.0, 6),
    "ExponentialLR": lambda module, optimizer: module.ExponentialLR(optimizer, 0.9),
    "PolynomialLR": lambda module, optimizer: module.PolynomialLR(optimizer, 9, 2.0),
    "CosineAnnealingLR": lambda module, optimizer: module.CosineAnnealingLR(optimizer, 6, 0.01),
    "CosineAnnealingWarmRestarts": lambda module, optimizer: module.CosineAnnealingWarmRestarts(optimizer, 3, 2, 0.01),
    "CyclicLR": lambda module, optimizer: module.CyclicLR(optimizer, 0.01, 0.1, 3, mode="triangular2"),
    "OneCycleLR": lambda module, optimizer: module.OneCycleLR(optimizer, 0.2, 9),
    "OneCycleLR, three phases": lambda module, optimizer: module.OneCycleLR(
        optimizer, [0.2, 0.1], 9, anneal_strategy="linear", three_phase=True, base_momentum=[0.8, 0.7]
    ),
    "ReduceLROnPlateau": lambda module, optimizer: module.ReduceLROnPlateau(optimizer, patience=1),
    "ChainedScheduler": lambda module, optimizer: module.ChainedScheduler(
        [module.ConstantLR(optimizer, 0.5, 6), module.ExponentialLR(optimizer, 0.9)]
    ),
    "SequentialLR": lambda module, optimizer: module.SequentialLR(
        optimizer, [module.LinearLR(optimizer, 0.1, 1.0, 2), module.MultiStepLR(optimizer, [2])], [3]
    ),
}  # fmt: skip


def start(library, name):
    groups = [{"params": [library.zeros(1, requires_grad=True)]} for _ in range(2)]
    groups[1]["lr"] = 0.05
    optimizer = library.optim.SGD(groups, lr=0.1, momentum=0.9)
    return optimizer, SCHEDULES[name](library.optim.lr_scheduler, optimizer)


def step(optimizer, schedule):
    for group in optimizer.param_groups:
        group["params"][0].sum().backward()
    optimizer.step()
    schedule.step(*([1.0] if "Plateau" in type(schedule).__name__ else []))


def load(path, library):
    return torch.load(path, weights_only=True) if library is torch else rg.load(path)


def settings(optimizer):
    return [(group["lr"], group["momentum"]) for group in optimizer.param_groups]


def test_all_schedules_are_compared():
    names = {name for name in dir(torch.optim.lr_scheduler) if name.endswith(("LR", "Restarts", "Plateau"))}
    assert {name.split(",")[0] for name in SCHEDULES} >= names - {"LRScheduler"}


@pytest.mark.filterwarnings("ignore:The epoch parameter")
@pytest.mark.parametrize(("source", "target"), [(rg, torch), (torch, rg)], ids=["to PyTorch", "from PyTorch"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_resumes_from_a_file_of_the_other_library(name, source, target, tmp_path):
    optimizer, schedule = start(source, name)
    for _ in range(4):
        step(optimizer, schedule)
    source.save({"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}, tmp_path / "state.pt")
    state = load(tmp_path / "state.pt", target)
    other, resumed = start(target, name)
    other.load_state_dict(state["optimizer"])
    resumed.load_state_dict(state["schedule"])
    for k in range(5):
        step(optimizer, schedule)
        step(other, resumed)
        for ours, theirs in zip(settings(other), settings(optimizer), strict=True):
            assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12), k
        assert resumed.get_last_lr() == pytest.approx(schedule.get_last_lr(), rel=1e-9, abs=1e-12)


@pytest.mark.filterwarnings("ignore:The epoch parameter")
@pytest.mark.parametrize("name", SCHEDULES)
def test_states_of_both_libraries_have_the_same_settings(name):
    """PyTorch takes any entries: under other names for the settings, it would continue with its own."""
    ours, theirs = (start(library, name)[1].state_dict().keys() for library in (rg, torch))
    counts = {"_step_count", "_is_initial", "_get_lr_called_within_step"}
    assert theirs - ours <= {*counts, "use_beta1", "default_min_lr", "mode_worse"}
    assert ours <= theirs


@pytest.mark.parametrize("three_phase", [False, True])
@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("total", range(1, 13))
def test_one_cycle_agrees_up_to_its_last_step(total, strategy, three_phase):
    optimizers = [library.optim.SGD([library.zeros(1, requires_grad=True)], 0.1, 0.9) for library in (rg, torch)]
    schedules = [
        library.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total, anneal_strategy=strategy, three_phase=three_phase)
        for library, optimizer in zip((rg, torch), optimizers, strict=True)
    ]
    for k in range(total + 1):
        assert settings(optimizers[0])[0] == pytest.approx(settings(optimizers[1])[0], rel=1e-9, abs=1e-15), k
        if k < total:
            for optimizer, schedule in zip(optimizers, schedules, strict=True):
                step(optimizer, schedule)
