"""Hooks of optimizers' steps."""

import pytest

import retrograd as rg
from retrograd.optim import LBFGS, SGD, Optimizer


@pytest.fixture
def x():
    return rg.tensor([1.0], requires_grad=True)


def test_hooks_run_before_and_after_each_step_until_they_are_removed(x):
    seen = []
    optimizer = SGD([x], lr=0.5)
    before = optimizer.register_step_pre_hook(lambda opt, args, kwargs: seen.append(("pre", x.item(), args, kwargs)))
    after = optimizer.register_step_post_hook(lambda opt, args, kwargs: seen.append(("post", x.item(), args, kwargs)))
    x.grad = rg.ones(1)
    optimizer.step()
    assert seen == [("pre", 1.0, (optimizer,), {}), ("post", 0.5, (optimizer,), {})]
    before.remove()
    optimizer.step()
    assert [name for name, *_ in seen] == ["pre", "post", "post"]
    after.remove()
    optimizer.step()
    assert len(seen) == 3


def test_a_pre_hook_may_change_the_arguments(x):
    optimizer = SGD([x], lr=0.5)
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((opt, lambda: 7.0), {}))
    assert optimizer.step() == 7.0


def test_a_pre_hook_that_returns_something_else_is_refused_before_the_step(x):
    optimizer = SGD([x], lr=0.5)
    x.grad = rg.ones(1)
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="must return None or"):
            optimizer.step()
    assert x.item() == 1.0
    with pytest.raises(TypeError, match="callable"):
        optimizer.register_step_post_hook(3)


def test_a_step_of_a_subclass_runs_the_hooks_once(x):
    class Twice(SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    seen = []
    optimizer = Twice([x], lr=0.25)
    optimizer.register_step_post_hook(lambda *args: seen.append(x.item()))
    x.grad = rg.ones(1)
    optimizer.step()
    assert seen == [0.5]
    lbfgs = LBFGS([x])
    lbfgs.register_step_post_hook(lambda *args: seen.append("lbfgs"))
    lbfgs.step(lambda: (x * x).sum())
    assert seen[1:] == ["lbfgs"]


def test_a_step_written_for_pytorch_finds_an_empty_state(x):
    class Counting(Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["step"] = state["step"] + 1 if len(state) else 1

    optimizer = Counting([x])
    optimizer.step()
    optimizer.step()
    assert optimizer.state_dict()["state"] == {0: {"step": 2}}
