"""Programs that use autograd's other interfaces, inside every transform: equal to the plain computation, or refused."""

import optree
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.func import (
    functional_call,
    functionalize,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)
from retrograd.pipelining import Pipeline
from retrograd.testing import assert_close
from retrograd.utils.checkpoint import checkpoint

from ..case_groups import group_cases

POINTS = rg.tensor([[1.0, -2.0, 3.0], [0.5, 1.5, -1.0]], dtype="float64")
TARGET = rg.tensor([[1.0], [0.0], [2.0]], dtype="float64")
rg.manual_seed(0)
MODEL = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1)).double()


class Cube(rg.autograd.Function):
    """x ** 3, with derivatives of its own."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


def by_grad(x):
    x = x.clone().requires_grad_()
    return rg.autograd.grad((x**3).sum(), x, create_graph=True)[0]


def by_backward(x):
    leaf = x.clone()
    leaf.requires_grad_()
    leaf.retain_grad()
    (leaf**3).sum().backward(inputs=[leaf], create_graph=True)
    return leaf.grad


def by_call(x):
    return functional_call(MODEL[0], {"weight": x.reshape(3, 1), "bias": x}, (x[:1],))


def by_step(transport):
    def step(x):
        pipeline = Pipeline(
            MODEL, stages=2, micro_batches=3, loss_fn=nn.functional.mse_loss, transport=transport, schedule="gpipe"
        )
        return pipeline.step(x.reshape(3, 1), target=TARGET)

    return step


PROGRAMS = {
    "autograd.grad": (by_grad, lambda x: 3 * x * x),
    "backward": (by_backward, lambda x: 3 * x * x),
    "Function": (Cube.apply, lambda x: x**3),
    "checkpoint": (lambda x: checkpoint(lambda x: x.sin() * x, x, use_reentrant=False), lambda x: x.sin() * x),
    "functional_call": (by_call, lambda x: x * x[0] + x),
    "Pipeline.step": (by_step("threads"), lambda x: nn.functional.mse_loss(MODEL(x.reshape(3, 1)), TARGET)),
}
TRANSFORMS = {
    "grad": lambda f: grad(lambda x: (f(x) ** 2).sum()),
    "vjp": lambda f: lambda x: vjp(lambda x: (f(x) ** 2).sum(), x)[1](rg.tensor(2.0, dtype="float64")),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x.cos(),)),
    "jacfwd": jacfwd,
    "jacrev": jacrev,
    "hessian": hessian,
    "jacfwd of jacfwd": lambda f: jacfwd(jacfwd(f)),
    "jacrev of jacfwd": lambda f: jacrev(jacfwd(f)),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x.cos()),
    "functionalize": functionalize,
    "vmap": lambda f: lambda x: vmap(f)(rg.stack([x, 2 * x])),
    "vmap of jacrev": lambda f: lambda x: vmap(jacrev(f))(rg.stack([x, 2 * x])),
    "jacfwd of vmap": lambda f: lambda x: jacfwd(vmap(f))(rg.stack([x, 2 * x])),
}


@pytest.fixture(autouse=True)
def without_gradients():
    """Clear the gradients that a step accumulates."""
    yield
    MODEL.zero_grad()


@group_cases
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:Using backward():UserWarning")
def test_equals_the_plain_computation(program, transform):
    ours, plain = map(TRANSFORMS[transform], PROGRAMS[program])
    for x in POINTS:
        found, expected = optree.tree_leaves(ours(x)), optree.tree_leaves(plain(x))
        for a, b in zip(found, expected, strict=True):
            assert_close(a.detach(), b.detach())


def test_jacfwd_of_a_gradient_with_respect_to_a_tensor_from_outside_that_requires_grad():
    x = POINTS[0].clone().requires_grad_()
    found = jacfwd(lambda x: rg.autograd.grad((x**3).sum(), x, create_graph=True)[0])(x)
    assert_close(found.detach(), rg.diag(6 * POINTS[0]))


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap"])
def test_a_step_in_a_transform_accumulates_the_gradients_of_the_parameters(transform):
    examples = [POINTS[0], 2 * POINTS[0]] if transform == "vmap" else [POINTS[0]]
    sum(PROGRAMS["Pipeline.step"][1](x) for x in examples).backward()
    expected = [p.grad for p in MODEL.parameters()]
    MODEL.zero_grad()
    TRANSFORMS[transform](PROGRAMS["Pipeline.step"][0])(POINTS[0])
    for p, g in zip(MODEL.parameters(), expected, strict=True):
        assert_close(p.grad, g)


def test_outputs_of_a_pipeline_in_a_batch_are_those_of_the_model():
    pipeline = Pipeline(MODEL, stages=2, micro_batches=3)
    batch = POINTS.unsqueeze(-1)
    assert_close(vmap(pipeline.predict)(batch), MODEL(batch).detach())


def test_steps_that_cannot_run_in_a_transform_are_refused_by_name_before_anything_changes():
    x = POINTS[0].reshape(3, 1)
    stages = Pipeline([MODEL[0], MODEL[2]], micro_batches=3, loss_fn=nn.functional.mse_loss)
    with pytest.raises(NotImplementedError, match=r"Pipeline.step .* a model that is given as stages"):
        grad(lambda x: stages.step(x, target=TARGET))(x)
    whole = Pipeline(MODEL, stages=2, micro_batches=3, loss_fn=nn.functional.mse_loss)
    with pytest.raises(NotImplementedError, match=r"Pipeline.step does not run inside a trace"):
        rg.fx.trace(lambda x: whole.step(x, target=TARGET), x)
    with pytest.raises(NotImplementedError, match=r"Pipeline.predict does not run inside a trace"):
        rg.fx.trace(whole.predict, x)
    assert all(p.grad is None for p in MODEL.parameters())


# ------------------------------------------------------------------------------------------- nested structures

PARAMS = {"a": POINTS[0, :2], "b": [POINTS[1], (POINTS[0, 0],)]}
SCALE = POINTS[1, :2]


def nested(p, y):
    return {"u": p["a"] * p["b"][1][0] * y, "v": [p["b"][0].sin().sum() * y.sum(), (p["a"] ** 2,)]}


def flat(a, b, c, y):
    return a * c * y, b.sin().sum() * y.sum(), a**2


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd, hessian])
def test_the_structure_of_the_result_is_outside_and_that_of_the_argument_inside(jacobian):
    found = jacobian(nested, (0, 1))(PARAMS, SCALE)
    assert found.keys() == {"u", "v"}
    inside = optree.tree_structure((PARAMS, SCALE))
    parts = [found["u"], found["v"][0], found["v"][1][0]]
    expected = jacobian(flat, (0, 1, 2, 3))(PARAMS["a"], PARAMS["b"][0], PARAMS["b"][1][0], SCALE)
    for part, rows in zip(parts, expected, strict=True):
        if jacobian is hessian:
            assert optree.tree_structure(part) == inside.compose(inside)
        else:
            assert optree.tree_structure(part) == inside
        for a, b in zip(optree.tree_leaves(part), optree.tree_leaves(rows), strict=True):
            assert_close(a, b)
