"""Hooks of parameters, registered outside of a step or in it, run in programs as in eager calls."""

import warnings

import pytest

import retrograd as rg
from retrograd import nn

from .comparison import numbers, observe, state_of

SCALE = 0.5
SAVED = []


def scaled(grad):
    return grad * SCALE


def written(grad):
    grad.mul_(2.0)


def saved(grad):
    SAVED.append(grad)


def clamped(leaf):
    leaf.grad.clamp_(-0.02, 0.02)


def replaced(leaf):
    leaf.grad = leaf.grad * 3


def stepped(leaf):
    with rg.no_grad():
        leaf.sub_(0.1 * leaf.grad)
    leaf.grad = None


def noted(leaf):
    leaf.largest = leaf.grad.abs().max()


def printed(grad):
    print("seen", end="")


GRADS = {"nothing": [], "scaled": [scaled], "written": [written], "both": [scaled, written], "saved": [saved],
         "printed": [printed], "of the library": [nn.Tanh()]}  # fmt: skip
AFTER = {"nothing": [], "clamped": [clamped], "replaced": [replaced], "stepped": [stepped], "noted": [noted]}


def outcomes(hooks, after, compile, in_step=False):
    """Return what is observed of steps with hooks, which change between the steps, and the step."""
    global SCALE
    SCALE = 0.5
    SAVED.clear()
    rg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
    params = [*model.parameters()]
    frozen = numbers(3).requires_grad_()
    handles = [p.register_hook(hook) for p in params for hook in hooks]
    handles += [p.register_post_accumulate_grad_hook(hook) for p in params for hook in after]

    def step(x, y):
        for p in params[1:]:
            p.grad = None
        with params[0].register_hook(lambda grad: grad * 2) if in_step else rg.enable_grad():
            loss = nn.functional.mse_loss(model(x) * model[0].bias[0], y)
            loss.backward()
        return loss.detach(), frozen * 2

    call, seen = compile(step), []
    for i in range(9):
        seen.append((observe(call(numbers(4, 3, seed=i), numbers(4, 3, seed=i + 9))), state_of(params), observe(SAVED)))
        if i == 3:
            SCALE = 2.0
        if i == 5 and handles:
            handles[0].remove()
        if i == 6:
            params[1].register_hook(scaled)
    return seen, call


@pytest.mark.parametrize("in_step", [False, True], ids=["outside", "inside"])
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("hooks", GRADS)
def test_steps_with_hooks_have_the_eager_bits(hooks, after, in_step, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = outcomes(GRADS[hooks], AFTER[after], lambda f: f, in_step)
        found, step = outcomes(GRADS[hooks], AFTER[after], rg.compile, in_step)
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a == b, f"call {number}"
    is_first = in_step and hooks == after == "nothing"  # the parameter has no guarded hooks before the step adds one
    is_whole = not step.refusal() and bool(step.programs)
    assert is_whole is (hooks not in ("printed", "of the library") and not is_first)


def test_a_hook_that_a_step_adds_for_good_is_added_at_each_call():
    def count(compile):
        weight, calls = numbers(3).requires_grad_(), []
        seen = []

        def f(x):
            weight.register_hook(lambda grad: calls.append(1))
            return x * 2

        step = compile(f)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(5):
                step(numbers(3, seed=i))
                (weight * 1).sum().backward()
                seen.append(len(calls))
        return seen

    assert count(rg.compile) == count(lambda f: f)


def test_the_dtype_of_a_gradient_is_guarded():
    def dtypes(compile):
        weight, seen = rg.ones(3, dtype=rg.float16, requires_grad=True), []
        weight.register_hook(scaled)

        def f(x):
            weight.grad = None
            (weight * x).sum().backward()
            return x + 1

        step = compile(f)
        for i in range(6):
            step(rg.ones(3, dtype=rg.float16) * i)
            seen.append(observe(weight.grad))
            weight.grad = None
            weight.grad_dtype = rg.float32 if i == 2 else weight.grad_dtype
        return seen

    assert dtypes(lambda f: rg.compile(f, fullgraph=True)) == dtypes(lambda f: f)
