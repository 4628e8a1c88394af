"""Every setting of optimizers, schedules and layers that is a number, or a bool, refuses anything else, by name."""

import inspect
import re
from functools import partial

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn.constructor_fields import fields_of
from retrograd.optim import lr_scheduler

OPTIMIZERS = [kind for kind in vars(optim).values() if isinstance(kind, type) and fields_of(kind)]
SCHEDULERS = [
    kind
    for kind in (*vars(lr_scheduler).values(), optim.swa_utils.SWALR)
    if isinstance(kind, type) and "optimizer" in inspect.signature(kind).parameters
]
LAYERS = [
    kind
    for kind in vars(nn).values()
    if isinstance(kind, type)
    and issubclass(kind, nn.Module)
    and not re.search("Module|_to_become|Base", f"{kind.__name__} {inspect.signature(kind)}")
]
NUMBERS = re.compile(r"\b(int|float|bool)\b")


def sgd():
    return optim.SGD([rg.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)


def number_parameters(kind):
    parameters = inspect.signature(kind).parameters.values()
    return [
        one for one in parameters if NUMBERS.search(inspect.formatannotation(one.annotation)) and not takes_others(one)
    ]


def takes_others(parameter):
    return re.search("str|Callable", inspect.formatannotation(parameter.annotation))


def refusals(make, kind, required):
    """Return the parameters and values that are accepted, or refused by an error without the name of the parameter."""
    wrong = []
    for parameter in number_parameters(kind):
        for value in ("0.1", object(), rg.ones(2, 3), ("a", "b")):
            try:
                make(**{**required(kind, parameter.name), parameter.name: value})
                wrong.append((kind.__name__, parameter.name, value, "accepted"))
            except Exception as error:
                if not re.search(
                    rf"{kind.__name__}: {parameter.name} must be .*(number|True or False).*, got ", str(error)
                ):
                    wrong.append((kind.__name__, parameter.name, value, str(error)))
    return wrong


def others(kind, name):
    """Return values for the required parameters except one; those of schedules and layers are numbers."""
    parameters = inspect.signature(kind).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    values = {"milestones": [1], "schedulers": [], "lr_lambda": len, "optimizer": sgd(), "base_lr": 0.1}
    values |= {"cutoffs": [1]}
    return {one: values.get(one, 2) for one in needed if one != name}


def test_every_optimizer_refuses_settings_that_are_no_numbers():
    wrong = []
    for kind in OPTIMIZERS:
        wrong += refusals(partial(kind, [rg.ones(2, 2, requires_grad=True)]), kind, lambda kind, name: {})
    assert len(OPTIMIZERS) == 16
    assert wrong == []


def test_every_schedule_refuses_settings_that_are_no_numbers():
    wrong = []
    for kind in SCHEDULERS:
        wrong += refusals(kind, kind, others)
    assert len(SCHEDULERS) > 14
    assert wrong == []


def test_every_layer_refuses_settings_that_are_no_numbers():
    wrong = []
    for kind in LAYERS:
        wrong += refusals(kind, kind, others)
    assert len(LAYERS) > 130
    assert wrong == []


def test_every_schedule_refuses_what_is_no_optimizer():
    for kind in SCHEDULERS:
        required = {"total_steps": 2} if kind is lr_scheduler.OneCycleLR else {}
        required |= {name: value for name, value in others(kind, "").items() if name != "optimizer"}
        if "schedulers" not in required:
            with pytest.raises(TypeError, match=f"{kind.__name__}: expected an Optimizer, got Linear"):
                kind(nn.Linear(2, 2), **required)
    for make in (
        lambda part: lr_scheduler.SequentialLR(sgd(), [part], []),
        lambda part: lr_scheduler.ChainedScheduler([part]),
    ):
        with pytest.raises(TypeError, match="schedule 0 must be an LRScheduler, got SGD"):
            make(sgd())


@pytest.mark.parametrize("lr", [1, np.float32(0.5), np.array(0.5), np.int64(1), True, rg.tensor(0.5)])
def test_numbers_of_every_kind_are_taken(lr):
    p = rg.ones(1, requires_grad=True)
    optimizer = optim.SGD([p], lr=lr)
    p.sum().backward()
    optimizer.step()
    assert p.item() == 1 - float(lr)
    assert lr_scheduler.StepLR(optimizer, np.int64(3), gamma=lr).get_last_lr() == [lr]


def test_a_group_refuses_the_same_settings():
    optimizer = sgd()
    for settings in ({"lr": "0.1"}, {"momentum": None}):
        with pytest.raises(TypeError, match=r"SGD: (lr|momentum) must be a number, got ('0\.1' \(str\)|None)"):
            optimizer.add_param_group({"params": [rg.ones(1)], **settings})
    with pytest.raises(TypeError, match=r"Adam: betas must be two numbers, got \(0\.9,\)"):
        optim.Adam([rg.ones(1)], betas=(0.9,))


@pytest.mark.parametrize("switch", [True, 1, np.True_, np.bool_(1)])
def test_switches_of_every_kind_are_taken(switch):
    assert nn.Linear(2, 3, bias=switch).bias is not None
    assert nn.Linear(2, 3, bias=None).bias is None


def test_tensors_in_place_of_settings_are_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"MSELoss.*; call an instance with tensors: MSELoss\(\.\.\.\)\(x\)"):
        nn.MSELoss(rg.ones(2), rg.ones(2))
    with pytest.raises(TypeError, match="ReLU: inplace must be True or False, got a Tensor"):
        nn.ReLU(rg.ones(1))
    with pytest.raises(ValueError, match=r"CrossEntropyLoss: reduction must be one of [a-z, ]+, got 'avg'$"):
        nn.CrossEntropyLoss(rg.ones(2), reduction="avg")  # the tensor is a setting, and not what is wrong
