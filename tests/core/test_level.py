"""The switches of levels."""

import pytest

import retrograd as rg
from retrograd.core.level import Level

# Fields whose value is data of one level, and the state of an active one.
DATA = {"active", "function", "mode_below", "modes_around", "parent", "parent_grad_enabled", "recording"}
SWITCHES = [name for name, value in vars(Level).items() if not callable(value) and name[0] != "_" and name not in DATA]


def levels(cls=Level):
    """Yield the classes of levels of the imported modules."""
    for kind in cls.__subclasses__():
        yield kind
        yield from levels(kind)


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_of_levels_is_used_by_one(switch):
    rg.compile(lambda x: x + 1)(rg.ones(2))  # imports its level
    rg.fx.trace(lambda x: x + 1, rg.ones(2))
    assert any(getattr(kind, switch) != getattr(Level, switch) for kind in levels())


def test_levels_have_no_more_than_eight_switches():
    assert len(SWITCHES) <= 8, "derive it from a method that the level defines, or put it into a table"
