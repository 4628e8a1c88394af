"""Whoever loads a whole checkpoint is told which entry of it is the state."""

import pytest

import retrograd as rg
from retrograd import nn, optim

model = nn.Linear(2, 2)
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = optim.lr_scheduler.StepLR(optimizer, 2)
PARTS = {"net": model, "optim": optimizer, "schedule": schedule}
CHECKPOINT = {"epoch": 3, **{name: part.state_dict() for name, part in PARTS.items()}, "args": {}}


@pytest.mark.parametrize("entry", PARTS)
def test_the_entry_of_a_checkpoint_that_is_the_state_is_named(entry):
    with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
        PARTS[entry].load_state_dict(CHECKPOINT)
    assert f"Its entry '{entry}' is such a state: load_state_dict(checkpoint['{entry}'])" in str(caught.value)


def test_no_entry_is_named_if_none_fits():
    for target in PARTS.values():
        with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
            target.load_state_dict({"epoch": 3, "args": {"width": 2}})
        assert "Its entry" not in str(caught.value)


@pytest.mark.parametrize("load", [rg.set_rng_state, lambda state: rg.Generator().set_state(state)])
def test_a_random_state_of_pytorch_is_refused_with_the_way_out(load):
    with pytest.raises(RuntimeError, match=r"found the input RNG state size to be 5056.*set a seed"):
        load(rg.zeros(5056, dtype="uint8"))
    for state in (rg.zeros(112), rg.zeros(112, dtype="uint8").numpy(), b"state", None):
        with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor, as get_state returns, got "):
            load(state)
    with pytest.raises(RuntimeError, match=r"RNG state is damaged"):
        load(rg.full((112,), 255, dtype="uint8"))
