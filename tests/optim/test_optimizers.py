"""Optimizers: groups, states, steps, and refused arguments; their formulas are compared in tests/parity."""

import copy
import math

import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.optim.optimizer import required

from ..case_groups import group_cases

EVERY = [
    optim.SGD,
    optim.Adam,
    optim.AdamW,
    optim.Adagrad,
    optim.Adadelta,
    optim.RMSprop,
    optim.Adamax,
    optim.NAdam,
    optim.RAdam,
    optim.ASGD,
    optim.Adafactor,
    optim.Lion,
]


def parameter(*values):
    return nn.Parameter(rg.tensor(list(values)))


def descend(optimizer, params, count=1):
    for _ in range(count):
        optimizer.zero_grad()
        sum((p * p).sum() for p in params).backward()
        optimizer.step()


def test_sgd_is_its_formula():
    p = parameter(1.0)
    optimizer = optim.SGD([p], lr=0.5, momentum=0.5, weight_decay=1.0)
    p.grad = rg.tensor([2.0])
    optimizer.step()  # d = 2 + 1 = 3, b = 3, p = 1 - 1.5
    assert p.tolist() == [-0.5]
    optimizer.step()  # d = 2 - 0.5 = 1.5, b = 1.5 + 1.5 = 3, p = -0.5 - 1.5
    assert p.tolist() == [-2.0]


@pytest.mark.parametrize("dtype", [rg.float32, rg.float64, rg.float16])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize(("make", "decay"), [(optim.Adam, 0.1), (optim.Adam, 0.0), (optim.AdamW, 0.1)])
def test_adam_is_its_formula(make, decay, amsgrad, dtype):
    p = rg.tensor(2.0, dtype=dtype, requires_grad=True)
    optimizer = make([p], lr=0.1, betas=(0.5, 0.75), eps=0.01, weight_decay=decay, amsgrad=amsgrad, maximize=True)
    x, m, v, largest = 2.0, 0.0, 0.0, 0.0
    for step, slope in enumerate([1.0, -3.0, 0.5, 0.25], 1):
        p.grad = rg.tensor(slope, dtype=dtype)
        optimizer.step()
        g = -slope + (decay * x if make is optim.Adam else 0)
        x *= 1 - (0.1 * decay if make is optim.AdamW else 0)
        m, v = 0.5 * m + 0.5 * g, 0.75 * v + 0.25 * g * g
        largest = max(largest, v) if amsgrad else v
        x -= 0.1 * m / (1 - 0.5**step) / (math.sqrt(largest / (1 - 0.75**step)) + 0.01)
    assert p.item() == pytest.approx(x, rel=16 * rg.finfo(dtype).eps)


def test_adam_moves_by_the_learning_rate_in_its_first_step_and_adamw_also_decays():
    for make, decay, expected in ((optim.Adam, 0.0, 0.9), (optim.AdamW, 1.0, 0.8)):
        p = parameter(1.0)
        optimizer = make([p], lr=0.1, weight_decay=decay)
        p.grad = rg.tensor([7.0])
        optimizer.step()
        assert p.tolist() == pytest.approx([expected], rel=1e-5)


@pytest.mark.parametrize("make", [*(make for make in EVERY if make is not optim.Adadelta), optim.Rprop])
def test_every_optimizer_finds_the_minimum(make):
    p = parameter(1.0, -2.0)
    lr = 1.0 if make in (optim.Adagrad, optim.Adafactor) else 0.1
    descend(make([p], lr=lr), [p], 200)
    assert max(abs(value) for value in p.tolist()) < 1e-2


def test_lion_is_its_formula():
    p = parameter(1.0, 1.0)
    optimizer = optim.Lion([p], lr=0.25, betas=(0.5, 0.75), weight_decay=0.5)
    p.grad = rg.tensor([4.0, -4.0])
    optimizer.step()  # p (1 - 1 / 8) ∓ 1 / 4, m = ± 1
    assert p.tolist() == [0.625, 1.125]
    p.grad = rg.tensor([-0.5, 0.0])
    optimizer.step()  # the direction is (0.5 - 0.25, -0.5): its signs stay
    assert p.tolist() == [0.625 * 0.875 - 0.25, 1.125 * 0.875 + 0.25]
    assert optimizer.state[p]["exp_avg"].tolist() == [0.625, -0.75]


def test_lbfgs_solves_a_quadratic_in_as_many_steps_as_it_has_dimensions_and_needs_a_closure():
    p = parameter(3.0, -2.0)
    optimizer = optim.LBFGS([p], line_search_fn="strong_wolfe", max_iter=10)

    def closure():
        optimizer.zero_grad()
        loss = (p * p * rg.tensor([1.0, 10.0])).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 49.0
    assert max(abs(value) for value in p.tolist()) < 1e-3
    with pytest.raises(TypeError, match="pass a closure"):
        optimizer.step()


def test_muon_moves_by_a_nearly_orthogonal_matrix():
    p = nn.Parameter(rg.zeros(3, 5))
    p.grad = rg.randn(3, 5)
    optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    sizes = rg.linalg.svdvals(p.detach()).tolist()
    assert 0.5 < min(sizes) < max(sizes) < 1.3


@pytest.mark.parametrize("make", EVERY)
def test_parameters_without_gradient_are_skipped(make):
    p, q = parameter(1.0), parameter(1.0)
    optimizer = make([p, q], lr=0.1, weight_decay=0.5)
    p.grad = rg.tensor([1.0])
    optimizer.step()
    assert q.tolist() == [1.0]
    assert not optimizer.state[q].get("step")


@pytest.mark.parametrize("make", EVERY)
def test_a_step_records_nothing_and_leaves_gradients_alone(make):
    p = parameter(1.0)
    p.grad = rg.tensor([1.0])
    make([p], lr=0.1, weight_decay=0.5, maximize=True).step()
    assert p.is_leaf
    assert p.requires_grad
    assert p.grad.tolist() == [1.0]


def test_a_step_is_detected_by_graphs_that_saved_the_parameter():
    p = parameter(2.0)
    loss = (p * p).sum()
    p.grad = rg.tensor([1.0])
    optim.SGD([p], lr=0.1).step()
    with pytest.raises(RuntimeError):
        loss.backward()


def test_the_momentum_never_shares_memory_with_the_gradient():
    p = parameter(0.0)
    optimizer = optim.SGD([p], lr=1.0, momentum=0.5)
    p.grad = rg.tensor([1.0])
    optimizer.step()
    with rg.no_grad():
        p.grad.mul_(100)
    assert optimizer.state[p]["momentum_buffer"].tolist() == [1.0]


def test_step_runs_a_closure_with_gradients_and_returns_its_loss():
    p = parameter(3.0)
    optimizer = optim.SGD([p], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with rg.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert p.tolist() == [0.0]
    assert optimizer.step() is None


def test_zero_grad_forgets_gradients_or_sets_them_to_zero():
    p = parameter(1.0)
    optimizer = optim.SGD([p])
    p.grad = rg.tensor([1.0])
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_gradients_that_become_zero_stay_the_same_tensors_outside_of_graphs():
    p = parameter(2.0)
    (p * 3).sum().backward()
    grad = p.grad
    optim.SGD([p]).zero_grad(set_to_none=False)
    assert p.grad is grad
    (p.grad,) = rg.autograd.grad((p**3).sum(), p, create_graph=True)
    recorded = p.grad
    optim.SGD([p]).zero_grad(set_to_none=False)
    assert not p.grad.requires_grad
    assert p.grad.tolist() == [0.0]
    assert recorded.requires_grad


def test_groups_override_defaults_and_may_be_added_later():
    p, q, r = parameter(1.0), parameter(1.0), parameter(1.0)
    optimizer = optim.SGD([{"params": [p]}, {"params": q, "lr": 0.5}], lr=0.25)
    optimizer.add_param_group({"params": [r], "momentum": 0.9})
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.5, 0.25]
    for x in (p, q, r):
        x.grad = rg.tensor([1.0])
    optimizer.step()
    assert (p.tolist(), q.tolist(), r.tolist()) == ([0.75], [0.5], [0.75])
    assert list(optimizer.state[r]) == ["momentum_buffer"]


def test_named_parameters_are_taken_too():
    layer = nn.Linear(2, 1)
    optimizer = optim.Adam(layer.named_parameters())
    assert [p is q for p, q in zip(optimizer.param_groups[0]["params"], layer.parameters(), strict=True)] == [True] * 2


@group_cases
@pytest.mark.parametrize(
    ("make", "error", "pattern"),
    [
        (lambda p: optim.SGD(p), TypeError, "iterable of tensors"),
        (lambda p: optim.SGD([]), ValueError, "empty"),
        (lambda p: optim.SGD([3]), TypeError, "expected tensors, got int"),
        (lambda p: optim.SGD([p * 2]), ValueError, "can't optimize"),
        (lambda p: optim.SGD([p, p]), ValueError, "listed more than once"),
        (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}]), ValueError, "listed more than once"),
        (lambda p: optim.SGD([{"params": {p}}]), TypeError, "set"),
        (lambda p: optim.SGD([{"lr": 1.0}]), TypeError, "'params'"),
        (lambda p: optim.SGD([p], lr=-1.0), ValueError, "lr must be at least 0, got -1.0"),
        (lambda p: optim.SGD([p], momentum=-0.1), ValueError, "momentum must be at least 0, got -0.1"),
        (lambda p: optim.SGD([p], weight_decay=float("nan")), ValueError, "weight_decay"),
        (lambda p: optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires a momentum"),
        (lambda p: optim.SGD([{"params": [p], "lr": -2.0}]), ValueError, "lr must be at least 0, got -2.0"),
        (lambda p: optim.Adam([p], betas=(0.9, 1.0)), ValueError, r"not including 1, got \(0.9, 1.0\)"),
        (lambda p: optim.AdamW([p], eps=-1.0), ValueError, "eps must be at least 0, got -1.0"),
        (lambda p: optim.Adafactor([rg.tensor([1j], requires_grad=True)]), RuntimeError, "not support complex"),
        (lambda p: optim.Muon([rg.tensor([[1j]], requires_grad=True)]), RuntimeError, "not support complex"),
        (lambda p: optim.SparseAdam([rg.tensor([1j], requires_grad=True)]), ValueError, r"indices \[\[0, 0\]\]"),
        (lambda p: optim.Adam([p], lr=rg.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda p: optim.Adam([("a", p), parameter(1.0)]), ValueError, "Some param names are missing"),
        (
            lambda p: optim.Adam([{"params": [p]}, {"params": [("a", parameter(1.0))]}]),
            ValueError,
            "cannot add param group with names",
        ),
        (lambda p: optim.Adagrad([p], lr_decay=-1.0), ValueError, "lr_decay must be at least 0, got -1.0"),
        (lambda p: optim.Adadelta([p], rho=1.5), ValueError, "rho must lie between 0 and 1, got 1.5"),
        (lambda p: optim.RMSprop([p], momentum=-1), ValueError, "momentum"),
        (lambda p: optim.NAdam([p], momentum_decay=-1), ValueError, "momentum_decay"),
        (lambda p: optim.RAdam([p], betas=(1.0, 0.5)), ValueError, "betas"),
        (lambda p: optim.Rprop([p], etas=(1.5, 2.0)), ValueError, r"etas .* got \(1.5, 2.0\)"),
        (lambda p: optim.Rprop([p], step_sizes=(2, 1)), ValueError, "step_sizes"),
        (lambda p: optim.ASGD([p], lr=-1), ValueError, "lr"),
        (lambda p: optim.Adafactor([p], d=0.5), ValueError, "d=0.5"),
        (lambda p: optim.Adafactor([p], beta2_decay=0.5), ValueError, "beta2_decay must be at most 0"),
        (lambda p: optim.Muon([p]), ValueError, "matrices only"),
        (lambda p: optim.Muon([nn.Parameter(rg.ones(1, 1))], adjust_lr_fn="x"), ValueError, "got 'x'"),
        (lambda p: optim.LBFGS([p], line_search_fn="x"), ValueError, "got 'x'"),
        (lambda p: optim.LBFGS([p], max_iter=0), ValueError, "max_iter and history_size"),
        (lambda p: optim.LBFGS([{"params": [p]}, {"params": [parameter(1.0)]}]), ValueError, "one group"),
    ],
)
def test_objects_that_are_no_parameters_are_refused_by_name(make, error, pattern):
    with pytest.raises(error, match=pattern):
        make(parameter(1.0))


def test_a_refused_group_changes_nothing():
    optimizer = optim.SGD([parameter(1.0)])
    with pytest.raises(ValueError, match="lr"):
        optimizer.add_param_group({"params": [parameter(1.0)], "lr": -1.0})
    assert len(optimizer.param_groups) == 1


# ----------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (optim.SGD, {"momentum": 0.9}),
        (optim.Adam, {"amsgrad": True}),
        (optim.RMSprop, {"momentum": 0.9, "centered": True}),
        *((make, {}) for make in [*EVERY[2:], optim.Rprop]),
    ],
)
def test_a_loaded_optimizer_continues_exactly_as_the_saved_one(make, settings):
    params = [parameter(1.0, 2.0), parameter(-1.0)]
    optimizer = make(params, lr=0.1, **settings)
    descend(optimizer, params, 3)
    state = copy.deepcopy(optimizer.state_dict())
    others = [nn.Parameter(rg.tensor(p.tolist())) for p in params]
    other = make(others, lr=0.7)
    other.load_state_dict(state)
    descend(optimizer, params, 3)
    descend(other, others, 3)
    assert [p.tolist() for p in params] == [p.tolist() for p in others]


def test_a_state_has_the_layout_of_pytorch():
    p, q = parameter(1.0), parameter(2.0)
    optimizer = optim.Adam([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.25)
    descend(optimizer, [p, q])
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert [group["lr"] for group in state["param_groups"]] == [0.25, 0.5]
    assert {n: list(s) for n, s in state["state"].items()} == {n: ["step", "exp_avg", "exp_avg_sq"] for n in (0, 1)}


def test_loading_copies_and_takes_the_dtype_of_the_parameters():
    p = parameter(1.0)
    optimizer = optim.Adam([p])
    descend(optimizer, [p])
    state = optimizer.state_dict()
    q = nn.Parameter(rg.tensor([1.0], dtype=rg.float64))
    other = optim.Adam([q])
    other.load_state_dict(state)
    assert other.state[q]["exp_avg"].dtype == rg.float64
    with rg.no_grad():
        state["state"][0]["exp_avg"].zero_()
    assert other.state[q]["exp_avg"].tolist() != [0.0]
    descend(other, [q])
    assert other.state[q]["step"] == 2
    assert optimizer.state[p]["step"] == 1


def test_a_state_of_other_groups_is_refused_and_changes_nothing():
    p = parameter(1.0)
    optimizer = optim.SGD([p], lr=0.5)
    other = optim.SGD([parameter(1.0), parameter(1.0)], lr=0.25).state_dict()
    with pytest.raises(ValueError, match=r"groups have \[1\] parameters, the state's \[2\]"):
        optimizer.load_state_dict(other)
    good = optimizer.state_dict()
    with pytest.raises(ValueError, match=r"parameters \[7\]"):
        optimizer.load_state_dict({**good, "state": {7: {}}, "param_groups": [{**good["param_groups"][0], "lr": 9}]})
    assert optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(("settings", "pattern"), [({"lr": -5.0}, "got -5.0"), ({"betas": (0.9, 1.5)}, "betas")])
def test_a_state_with_settings_out_of_range_is_refused_and_changes_nothing(settings, pattern):
    p, q = parameter(1.0), parameter(2.0)
    optimizer = optim.Adam([{"params": [p]}, {"params": [q]}], lr=0.5)
    descend(optimizer, [p, q])
    before = optimizer.state_dict()
    bad = copy.deepcopy(before)
    bad["param_groups"][0]["lr"] = 0.125
    bad["param_groups"][1].update(settings)
    bad["state"][0]["step"] = 77
    with pytest.raises(ValueError, match=pattern):
        optimizer.load_state_dict(bad)
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    assert after["state"][0]["step"] == before["state"][0]["step"] == 1


def test_an_optimizer_without_update_names_itself():
    p = parameter(1.0)
    p.grad = rg.tensor([1.0])
    with pytest.raises(NotImplementedError, match=r"Optimizer has no update\(\)"):
        optim.Optimizer([p], {}).step()


def test_an_optimizer_prints_its_groups():
    groups = [{"params": [parameter(1.0)]}, {"params": [parameter(2.0)], "lr": 1.5}]
    settings = "dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n    lr: {}\n    maximize: "
    settings += "False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n"
    first, second = (f"Parameter Group {number}\n    {settings}".format(lr) for number, lr in enumerate((0.5, 1.5)))
    assert repr(optim.SGD(groups, lr=0.5)) == f"SGD (\n{first}\n{second})"


def test_a_state_dict_has_states_of_stepped_parameters_and_lists_parameters_last():
    p = parameter(1.0)
    optimizer = optim.SGD([p], lr=0.5)
    optim.lr_scheduler.StepLR(optimizer, 2)
    descend(optimizer, [p])
    saved = optimizer.state_dict()
    assert saved["state"] == {}  # descent without momentum has none
    assert list(saved["param_groups"][0])[-2:] == ["initial_lr", "params"]


def test_rprop_multiplies_its_steps_in_the_precision_of_the_parameter():
    p = rg.tensor([1.0], dtype=rg.float64, requires_grad=True)
    optimizer = optim.Rprop([p], lr=0.1)
    for _ in range(3):
        p.grad = rg.ones(1, dtype=rg.float64)
        optimizer.step()
    assert optimizer.state[p]["step_size"].item() == pytest.approx(0.144, rel=1e-15)


def test_lbfgs_leaves_a_tensor_of_its_learning_rate_as_it_was():
    p, lr = parameter(3.0), rg.tensor(0.5)
    optimizer = optim.LBFGS([p], lr=lr, max_iter=2)
    optimizer.step(lambda: lbfgs_loss(optimizer, p))
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == 0.5


def test_a_line_search_ends_after_the_evaluations_that_are_left():
    p, calls = parameter(-1.2, 1.0), []
    optimizer = optim.LBFGS([p], lr=1e-6, max_iter=1, max_eval=4, line_search_fn="strong_wolfe")
    optimizer.step(lambda: (calls.append(1), lbfgs_loss(optimizer, p))[1])
    assert len(calls) == 1 + 1 + 3  # at the start, of the first trial, and of as many others as are left


def test_lbfgs_stores_the_length_of_a_step_that_it_does_not_take():
    p = parameter(3.0)
    optimizer = optim.LBFGS([p], lr=0.25, max_iter=1, tolerance_change=1e9)
    optimizer.step(lambda: lbfgs_loss(optimizer, p))
    assert optimizer.state[p]["t"] == 0.25 / 6  # lr / sum of the magnitudes of the gradient


def lbfgs_loss(optimizer, p):
    optimizer.zero_grad()
    loss = p.square().sum()
    loss.backward()
    return loss


def test_a_group_must_have_settings_that_are_required():
    class Descent(rg.optim.Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr})

    x, y = (rg.ones(1, requires_grad=True) for _ in range(2))
    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr"):
        Descent([x])
    optimizer = Descent([{"params": [x], "lr": 0.5}])
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        optimizer.add_param_group({"params": [y]})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5]
    assert repr(required) == "<required parameter>"


def test_states_whose_keys_are_names_are_saved_and_loaded():
    class Counting(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})
            self.state["total"] = rg.zeros(1)

        def update(self, param, grad, state, group):
            self.state["total"].add_(1)

    x = rg.ones(1, requires_grad=True)
    x.grad = rg.ones(1)
    one, other = Counting([x]), Counting([x])
    one.step()
    assert list(one.state_dict()["state"]) == ["total"]  # without those of parameters that are empty
    other.load_state_dict(one.state_dict())
    one.step()
    assert (one.state["total"].item(), other.state["total"].item()) == (2.0, 1.0)


def test_an_optimizer_takes_a_list_of_parameters():
    weights = nn.ParameterList([rg.ones(2), None, rg.zeros(3)])
    assert [p.shape for p in optim.SGD(weights, lr=0.1).param_groups[0]["params"]] == [(2,), (3,)]
