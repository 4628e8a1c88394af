"""A step of a complex parameter is the step of its real and imaginary parts."""

import copy

import pytest

import retrograd as rg
from retrograd import optim
from retrograd.compiler.planned_update import PlannedUpdate

SETTINGS = {
    optim.SGD: {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
    optim.ASGD: {"lr": 0.1, "t0": 1.0, "weight_decay": 0.1},
    optim.Adam: {"lr": 0.1, "amsgrad": True},
    optim.AdamW: {"lr": 0.1, "maximize": True},
    optim.Adamax: {"lr": 0.1},
    optim.NAdam: {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1},
    optim.RAdam: {"lr": 0.1},
    optim.Adagrad: {"lr": 0.1, "initial_accumulator_value": 0.5},
    optim.Adadelta: {"lr": 0.5},
    optim.RMSprop: {"lr": 0.1, "momentum": 0.9, "centered": True},
    optim.Rprop: {"lr": 0.1},
    optim.Lion: {"lr": 0.1},
    optim.LBFGS: {"lr": 0.5, "max_iter": 3},
}
STARTS = [[1 + 2j, -0.5j, 3.0], [[0.25 - 1j]]]


def parameters(view=lambda x: x):
    return [view(rg.tensor(start, dtype=rg.complex128)).clone().requires_grad_() for start in STARTS]


def descend(optimizer, params, steps=4):
    def closure():
        optimizer.zero_grad()
        parts = [rg.view_as_real(p) if p.is_complex() else p for p in params]
        loss = sum(((x - 0.5).square() + x.cos()).sum() for x in parts)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)


def assert_parts_equal(params, real):
    for p, x in zip(params, real, strict=True):
        assert rg.view_as_real(p.detach()).sub(x.detach()).abs().max().item() < 1e-12


@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_complex_parameter_moves_as_its_parts_do(kind, foreach):
    settings = SETTINGS[kind] if kind in (optim.Lion, optim.LBFGS) else {**SETTINGS[kind], "foreach": foreach}
    params, real = parameters(), parameters(rg.view_as_real)
    descend(kind(params, **settings), params)
    descend(kind(real, **settings), real)
    assert_parts_equal(params, real)
    assert not params[0].detach().equal(parameters()[0].detach())


@pytest.mark.parametrize("kind", SETTINGS)
def test_states_of_complex_parameters_continue_where_they_were_saved(kind):
    params = parameters()
    optimizer = kind(params, **SETTINGS[kind])
    descend(optimizer, params)
    again = [p.detach().clone().requires_grad_() for p in params]
    other = kind(again, **SETTINGS[kind])
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    if kind is not optim.LBFGS:
        like = [v for v in optimizer.state[params[0]].values() if isinstance(v, rg.Tensor)]
        assert like
        assert all(v.shape == params[0].shape and v.is_complex() for v in like)
    descend(optimizer, params)
    descend(other, again)
    assert_parts_equal(params, [rg.view_as_real(p) for p in again])


@pytest.mark.parametrize("kind", [optim.Adam, optim.SGD])
def test_a_planned_update_takes_the_step_of_the_parts(kind):
    params, others = parameters(), parameters()
    one, other = kind(params, **SETTINGS[kind]), kind(others, **SETTINGS[kind])
    planned = PlannedUpdate(one)
    descend(one, params)
    descend(other, others)
    for p, q in zip(params, others, strict=True):
        p.grad = q.grad = p.detach() * 2
    planned()
    other.step()
    assert_parts_equal(params, [rg.view_as_real(q) for q in others])


def test_a_complex_parameter_among_real_ones():
    params = [*parameters(), *parameters(rg.view_as_real)]
    descend(optim.Adam(params, lr=0.1), params)
    assert_parts_equal(params[:2], params[2:])
