"""A state either loads, or is refused by name before anything changes: it never fails at the next step."""

import copy
import re

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.optim import lr_scheduler as schedules

from ..case_groups import group_cases

MAKE = {
    "SGD": lambda p: optim.SGD(p, momentum=0.9),
    "Adam": lambda p: optim.Adam(p, amsgrad=True),
    "RMSprop": lambda p: optim.RMSprop(p, momentum=0.9, centered=True),
    "LBFGS": lambda p: optim.LBFGS(p, lr=0.1, max_iter=3),
    "AdamW": optim.AdamW, "Adagrad": optim.Adagrad, "Adadelta": optim.Adadelta, "Adamax": optim.Adamax,
    "NAdam": optim.NAdam, "RAdam": optim.RAdam, "ASGD": optim.ASGD, "Adafactor": optim.Adafactor, "Muon": optim.Muon,
    "Lion": optim.Lion, "Rprop": optim.Rprop,
}  # fmt: skip


class Foreign:
    """An array of another library, which NumPy can read."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __deepcopy__(self, memo):
        return self


BAD = {
    "another shape": lambda value: rg.ones(7, 5),
    "complex": lambda value: rg.full(getattr(value, "shape", ()), 1j),
    "text": lambda value: "many",
    "an object": lambda value: object(),
    "text in a list": lambda value: ["many"],
    "None": lambda value: None,
    "nothing": lambda value: ...,
    "an array": lambda value: value.numpy() if isinstance(value, rg.Tensor) else np.float64(value),
    "another library's array": lambda value: Foreign(
        value.numpy() if isinstance(value, rg.Tensor) else np.float64(value)
    ),
}


def stepped(name):
    """Return an optimizer of one matrix and a function that takes a step."""
    weight = nn.Parameter(rg.tensor([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]]))
    optimizer = MAKE[name]([("weight", weight)])

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight * weight).sum()
        loss.backward()
        return loss

    return optimizer, lambda: optimizer.step(closure)


def entries(name):
    optimizer, step = stepped(name)
    step()
    step()
    return list(optimizer.state_dict()["state"][0])


def plain(value):
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.tolist() if isinstance(value, rg.Tensor) else value


def snapshot(optimizer):
    state = optimizer.state_dict()
    states = {n: {name: plain(value) for name, value in of.items()} for n, of in state["state"].items()}
    return copy.deepcopy(states), state["param_groups"]


@group_cases
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(("name", "entry"), [(name, entry) for name in MAKE for entry in entries(name)])
def test_a_state_with_a_wrong_entry_is_refused_by_name_or_the_next_step_takes_it(name, entry, bad):
    optimizer, step = stepped(name)
    step()
    step()
    state = optimizer.state_dict()
    state["state"][0][entry] = BAD[bad](state["state"][0][entry])
    if bad == "nothing":
        del state["state"][0][entry]
    before = snapshot(optimizer)
    try:
        optimizer.load_state_dict(state)
    except (TypeError, ValueError) as error:
        assert f"load_state_dict: {entry} of parameter 0 ('weight')" in str(error)  # noqa: PT017  # it may load
        assert snapshot(optimizer) == before
        return
    step()
    assert bool(optimizer.param_groups[0]["params"][0].isfinite().all())


@group_cases
@pytest.mark.parametrize("bad", ["another shape", "complex", "text", "an object"])
@pytest.mark.parametrize("name", [name for name in MAKE if name not in ("LBFGS", "Adafactor")])
def test_state_of_another_shape_than_its_parameter_is_refused(name, bad):
    optimizer, step = stepped(name)
    step()
    checked = 0
    for entry, value in optimizer.state_dict()["state"][0].items():
        if isinstance(value, rg.Tensor):
            state = optimizer.state_dict()
            state["state"][0][entry] = BAD[bad](value)
            with pytest.raises((TypeError, ValueError), match=rf"{entry} of parameter 0 \('weight'\)"):
                optimizer.load_state_dict(state)
            checked += 1
    assert checked


@pytest.mark.parametrize("given", [None, {}, {"state": {}}, {"param_groups": []}, {"state": [], "param_groups": {}}])
def test_objects_that_are_no_optimizer_state_are_refused(given):
    optimizer, _ = stepped("SGD")
    with pytest.raises(TypeError, match=r"load_state_dict: expected a mapping with 'state' and 'param_groups'"):
        optimizer.load_state_dict(given)


def test_names_of_parameters_are_settings_of_their_group():
    layer = nn.Linear(2, 1)
    optimizer = optim.SGD(layer.named_parameters())
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="Some param names are missing: got 1 for 2"):
        optim.SGD([("weight", layer.weight), layer.bias])


# --------------------------------------------------------------------------------------------------- schedules


def sgd():
    return optim.SGD([{"params": [nn.Parameter(rg.zeros(1))]}, {"params": [nn.Parameter(rg.zeros(1))]}], 1.0, 0.5)


def in_sequence():
    optimizer = sgd()
    parts = [schedules.StepLR(optimizer, 1), schedules.ConstantLR(optimizer)]
    return schedules.SequentialLR(optimizer, parts, [2])


SCHEDULES = {
    "StepLR": lambda: schedules.StepLR(sgd(), 2),
    "MultiStepLR": lambda: schedules.MultiStepLR(sgd(), [1, 2]),
    "CosineAnnealingLR": lambda: schedules.CosineAnnealingLR(sgd(), 5),
    "CosineAnnealingWarmRestarts": lambda: schedules.CosineAnnealingWarmRestarts(sgd(), 5),
    "CyclicLR": lambda: schedules.CyclicLR(sgd(), 0.1, 1.0, 3),
    "OneCycleLR": lambda: schedules.OneCycleLR(sgd(), 1.0, 10),
    "ReduceLROnPlateau": lambda: schedules.ReduceLROnPlateau(sgd()),
    "SWALR": lambda: optim.swa_utils.SWALR(sgd(), 0.5),
    "SequentialLR": in_sequence,
}


@group_cases
@pytest.mark.parametrize("bad", ["many", [1.0], object(), {"a": 1}, None])
@pytest.mark.parametrize(
    ("name", "entry"), [(n, entry) for n, make in SCHEDULES.items() for entry in make().state_dict()]
)
def test_a_schedule_refuses_a_wrong_entry_by_name_or_the_next_step_takes_it(name, entry, bad):
    schedule = SCHEDULES[name]()
    before = copy.deepcopy(schedule.state_dict())
    try:
        schedule.load_state_dict({**before, entry: bad})
    except (TypeError, ValueError) as error:
        assert re.match(f"{name}: ({entry} |the state has 1 schedules)", str(error))  # noqa: PT017  # it may load
        assert schedule.state_dict() == before
        return
    schedule.optimizer.step()
    schedule.step(*([1.0] if name == "ReduceLROnPlateau" else []))


def test_schedules_in_sequence_are_checked_before_the_first_changes():
    schedule = in_sequence()
    before = copy.deepcopy(schedule.state_dict())
    state = copy.deepcopy(before)
    state["_schedulers"][0]["gamma"] = 0.75
    state["_schedulers"][1]["base_lrs"] = [1.0]
    with pytest.raises(ValueError, match="ConstantLR: base_lrs must have 2 entries"):
        schedule.load_state_dict(state)
    assert schedule.state_dict() == before


# ----------------------------------------------------------------------------------------------------- modules


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        (rg.ones(2, 1), "size mismatch"),
        ("many", "no tensor or array"),
        ([["many", "few"]], "no tensor or array"),
    ],
)
def test_a_module_refuses_a_wrong_value_by_name_before_anything_changes(value, pattern):
    layer = nn.Linear(2, 1)
    bias = layer.bias.tolist()
    with pytest.raises((TypeError, RuntimeError), match=f"(?s)weight.*{pattern}|{pattern}.*weight"):
        layer.load_state_dict({"bias": rg.full((1,), 7.0), "weight": value})
    assert layer.bias.tolist() == bias


@pytest.mark.parametrize("value", [np.ones((1, 2)) + 1j, rg.ones(1, 2) + 1j])
def test_a_real_parameter_takes_the_real_part_of_a_complex_value_with_a_warning(value):
    layer = nn.Linear(2, 1)
    with pytest.warns(UserWarning, match="discards the imaginary part: weight"):
        layer.load_state_dict({"bias": rg.zeros(1), "weight": value})
    assert layer.weight.tolist() == [[1, 1]]
