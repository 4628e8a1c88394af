"""Hooks around the state dicts of optimizers."""

import pickle

import pytest

import retrograd as rg
from retrograd.optim import SGD


@pytest.fixture
def optimizer():
    return SGD([rg.ones(1, requires_grad=True)], lr=0.5)


def test_hooks_of_saving_run_in_order_until_they_are_removed(optimizer):
    seen = []
    handles = [
        optimizer.register_state_dict_pre_hook(lambda opt: seen.append(("second", opt))),
        optimizer.register_state_dict_pre_hook(lambda opt: seen.append(("first", opt)), prepend=True),
        optimizer.register_state_dict_post_hook(lambda opt, found: found.update(epoch=3)),
        optimizer.register_state_dict_post_hook(lambda opt, found: {**found, "more": found["epoch"] + 1}),
    ]
    saved = optimizer.state_dict()
    assert seen == [("first", optimizer), ("second", optimizer)]
    assert (saved["epoch"], saved["more"]) == (3, 4)
    for handle in handles:
        handle.remove()
    assert set(optimizer.state_dict()) == {"state", "param_groups"}
    assert len(seen) == 2


def test_hooks_of_loading_see_a_copy_and_may_return_another(optimizer):
    seen = []
    saved = optimizer.state_dict()

    def rename(opt, given):
        given["param_groups"] = given.pop("groups")

    optimizer.register_load_state_dict_pre_hook(rename)
    optimizer.register_load_state_dict_pre_hook(
        lambda opt, given: {**given, "param_groups": [{**given["param_groups"][0], "lr": 0.25}]}
    )
    optimizer.register_load_state_dict_post_hook(lambda opt: seen.append(opt.param_groups[0]["lr"]))
    given = {"state": saved["state"], "groups": saved["param_groups"]}
    optimizer.load_state_dict(given)
    assert seen == [0.25]
    assert set(given) == {"state", "groups"}


def test_a_subclass_may_complete_unpickled_settings():
    optimizer = pickle.loads(pickle.dumps(Momentum([rg.ones(1, requires_grad=True)], lr=0.5)))
    assert optimizer.param_groups[0]["new"] == 7


class Momentum(SGD):
    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("new", 7)
