"""An optimizer works on other parameters and another state in a block, and has its own afterwards."""

import copy

import pytest

import retrograd as rg
from retrograd.optim import swap_in_optimizer_params_and_state as swap_in


def trained(seed: int = 0) -> tuple[list[rg.Tensor], rg.optim.Adam]:
    """Return parameters in two groups and an optimizer that has taken a step."""
    rg.manual_seed(seed)
    params = [rg.randn(3, requires_grad=True), rg.randn(2, requires_grad=True)]
    optimizer = rg.optim.Adam([{"params": params[:1], "lr": 0.1}, {"params": params[1:], "lr": 0.2}])
    step(optimizer, params)
    return params, optimizer


def step(optimizer: rg.optim.Optimizer, params: list[rg.Tensor]) -> None:
    optimizer.zero_grad()
    sum((p * p).sum() for p in params).backward()
    optimizer.step()


def values(params: list[rg.Tensor]) -> list[list[float]]:
    return [p.tolist() for p in params]


def test_steps_in_the_block_are_those_of_an_optimizer_of_the_other_parameters():
    optimizer = trained()[1]
    (others, of_others), (twins, of_twins) = trained(seed=1), trained(seed=1)
    with swap_in(optimizer, dict(zip("ab", others, strict=True)), of_others.state_dict()):
        step(optimizer, others)
    step(of_twins, twins)
    assert values(others) == values(twins)


def test_the_optimizer_is_as_before_afterwards_also_after_an_error():
    params, optimizer = trained()
    lists = [group["params"] for group in optimizer.param_groups]
    before, state = values(params), copy.deepcopy(optimizer.state_dict())
    others, of_others = trained(seed=1)

    def fail_in_the_block() -> None:
        with swap_in(optimizer, dict(zip("ab", others, strict=True)), of_others.state_dict()):
            step(optimizer, others)
            optimizer.param_groups[0]["lr"] = 7.0
            optimizer.add_param_group({"params": [rg.ones(1, requires_grad=True)]})
            raise KeyError

    with pytest.raises(KeyError):
        fail_in_the_block()
    assert values(params) == before
    assert len(optimizer.param_groups) == len(lists)
    assert all(group["params"] is own for group, own in zip(optimizer.param_groups, lists, strict=True))
    after = optimizer.state_dict()
    assert after["param_groups"] == state["param_groups"]
    for number, entries in state["state"].items():
        assert all(rg.equal(rg.as_tensor(after["state"][number][name]), rg.as_tensor(e)) for name, e in entries.items())


def test_settings_of_the_given_state_hold_in_the_block():
    params, optimizer = trained()
    given = copy.deepcopy(optimizer.state_dict())
    given["param_groups"][1]["lr"] = 0.7
    with swap_in(optimizer, dict(zip("ab", params, strict=True)), given):
        assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.7]
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.2]


def test_steps_write_to_the_tensors_of_the_given_state():
    _, optimizer = trained()
    others, of_others = trained(seed=1)
    given = of_others.state_dict()
    average = given["state"][0]["exp_avg"]
    before = average.tolist()
    with swap_in(optimizer, dict(zip("ab", others, strict=True)), given):
        step(optimizer, others)
        optimizer.state[others[0]]["new"] = 1
    assert average.tolist() != before
    assert "new" not in given["state"][0]


ONE = r"have \[1, 1\] parameters, the state's \[1\]"


@pytest.mark.parametrize(("params", "groups", "message"), [
    ({"a": rg.ones(3)}, 2, "expected 2 parameters, one for each of the optimizer, got 1"),
    ({}, 1, ONE),
])  # fmt: skip
def test_other_counts_are_refused_before_anything_changes(params, groups, message):
    own, optimizer = trained()
    state = optimizer.state
    given = optimizer.state_dict()
    given["param_groups"] = given["param_groups"][:groups]
    with pytest.raises(ValueError, match=message), swap_in(optimizer, params, given):
        raise AssertionError
    assert optimizer.state is state
    with (
        pytest.raises(TypeError, match="swap_in_optimizer_params_and_state: expected a mapping with 'state'"),
        swap_in(optimizer, {"a": own[0], "b": own[1]}, {}),
    ):
        raise AssertionError
