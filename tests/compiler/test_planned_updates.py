"""Planned updates: the steps of optimizers whose updates are kernels run as one plan, to the bits of eager steps."""

import pytest

import retrograd as rg
from retrograd import kernels, nn
from retrograd.compiler.planned_update import PlannedUpdate
from retrograd.compiler.program import Eager

from .comparison import assert_same_runs, numbers, observe

SETTINGS = [
    (rg.optim.Adam, {"lr": 0.1}), (rg.optim.Adam, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    (rg.optim.AdamW, {"lr": 0.1}), (rg.optim.SGD, {"lr": 0.1}), (rg.optim.SGD, {"weight_decay": 0.1}),
    (rg.optim.SGD, {"momentum": 0.9}), (rg.optim.SGD, {"momentum": 0.9, "nesterov": True}),
]  # fmt: skip


def model_and_step(kind, options, groups=False, dtype=rg.float32):
    """Return the step of a small model, and all tensors that it changes."""
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)).to(dtype)
    params = list(model.parameters())
    given = [{"params": params[:1], "lr": 0.3}, {"params": params[1:]}] if groups else params
    optimizer = kind(given, **options)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, params, optimizer


def states_of(optimizer):
    return [{k: observe(v) for k, v in optimizer.state[p].items()} for g in optimizer.param_groups for p in g["params"]]


def planned_update(compiled):
    """Return the planned update of the last program."""
    return next(i.function for i in compiled.programs[-1].played if isinstance(i, Eager) and _is_update(i))


def _is_update(instruction):
    return isinstance(instruction.function, PlannedUpdate)


@pytest.mark.parametrize("dtype", [rg.float32, rg.float64])
@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize(("kind", "options"), SETTINGS)
def test_steps_and_states_have_the_eager_bits(kind, options, groups, dtype):
    seen = []
    for compile in (lambda f: f, rg.compile):
        rg.manual_seed(0)
        step, params, optimizer = model_and_step(kind, options, groups, dtype)
        step = compile(step)
        losses = [observe(step(numbers(4, 5, seed=i).to(dtype))) for i in range(6)]
        seen.append((losses, [observe(p) for p in params], states_of(optimizer)))
    assert seen[0] == seen[1]
    update = planned_update(step)
    assert bool(update._plans) is kernels.compiled


# What may happen between two steps.
CHANGES = {
    "the rate": lambda o, p: o.param_groups[0].update(lr=0.01),
    "a state is loaded": lambda o, p: o.load_state_dict(o.state_dict()),
    "a state is cleared": lambda o, p: o.state.clear(),
    "a state's count": lambda o, p: o.state[p[1]].update(step=7),
    "a parameter without gradient": lambda o, p: p[1].requires_grad_(False),
    "a state of another layout": lambda o, p: o.state[p[0]].update(exp_avg=numbers(5, 7).mT),
    "a hook": lambda o, p: o.register_step_pre_hook(lambda o, args, kwargs: o.param_groups[0].update(lr=0.5)),
    "the data of a parameter": lambda o, p: setattr(p[0], "data", numbers(7, 5)),
    "the data of a parameter is that of a state": lambda o, p: setattr(p[0], "data", o.state[p[0]]["exp_avg"]),
    "another kernel": lambda o, p: o.param_groups[0].update(amsgrad=True),
    "a state that shares memory": lambda o, p: o.state[p[0]].update(exp_avg_sq=o.state[p[0]]["exp_avg"]),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt")  # of a sum that is no square any more
@pytest.mark.parametrize("name", CHANGES)
def test_changes_between_steps_have_the_effect_that_they_have_in_eager_code(name):
    change = CHANGES[name]
    seen = []
    for compile in (lambda f: f, rg.compile):
        rg.manual_seed(0)
        step, params, optimizer = model_and_step(rg.optim.Adam, {"lr": 0.1})
        step = compile(step)
        for i in range(6):
            if i == 4:
                change(optimizer, params)
            step(numbers(4, 5, seed=i))
        seen.append(([observe(p) for p in params], states_of(optimizer)))
    assert seen[0] == seen[1]


def test_a_subclass_with_its_own_update_is_not_replaced():
    class Half(rg.optim.SGD):
        def update(self, param, grad, state, group):
            param.sub_(grad, alpha=group["lr"] / 2)

    def make():
        step, params, _ = model_and_step(Half, {"lr": 0.1})
        return step, params

    assert_same_runs(make, lambda i: (numbers(4, 5, seed=i),))


def test_updates_of_more_parameters_than_a_plan_has():
    params = [numbers(3, seed=i).requires_grad_() for i in range(450)]
    others = [p.detach().clone().requires_grad_() for p in params]
    one, two = rg.optim.Adam(params), rg.optim.Adam(others)
    update = PlannedUpdate(one)
    for _ in range(4):
        for i, (p, q) in enumerate(zip(params, others, strict=True)):
            p.grad, q.grad = numbers(3, seed=i), numbers(3, seed=i)
        update()
        two.step()
    assert [observe(p) for p in params] == [observe(q) for q in others]
    assert len(update._plans) == (2 if kernels.compiled else 0)  # 450 are 200, 200 and 50


def test_a_saved_parameter_is_noticed_as_changed():
    """A planned update counts versions, so a backward pass through an older graph raises as after an eager step."""
    step, params, _ = model_and_step(rg.optim.Adam, {})
    compiled = rg.compile(step)
    for i in range(3):
        compiled(numbers(4, 5, seed=i))
    loss = params[2].square().sum()
    compiled(numbers(4, 5))
    with pytest.raises(RuntimeError, match=r"in-place|inplace"):
        loss.backward()
