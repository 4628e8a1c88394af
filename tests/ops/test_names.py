"""PyTorch's commonly used public names exist here, or are listed below with the feature that will add them."""

import importlib
from functools import reduce
from pathlib import Path

import pytest

import retrograd as rg

from ..case_groups import group_cases

FILE = Path(__file__).parents[1] / "data" / "names.txt"
NAMES = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]

# By the feature that adds them, which also deletes them here.  A final dot stands for all names with that prefix.
LATER = {
    "names of autograd": """
        autograd.gradcheck.get_analytical_jacobian
        autograd.gradcheck.get_numerical_jacobian
    """,
}
MISSING = {
    name
    for entry in " ".join(LATER.values()).split()
    for name in NAMES
    if name == entry or (entry.endswith(".") and name.startswith(entry))
}


def member(name):
    """Return the object of that name; functorch's functions are those of `func`."""
    if name.startswith("autograd.gradcheck."):  # the attribute is the function, so only an import reaches the module
        return getattr(importlib.import_module("retrograd.autograd.gradcheck"), name.rpartition(".")[2])
    return reduce(getattr, name.replace("functorch.", "func.").split("."), rg)


@group_cases
@pytest.mark.parametrize("name", sorted({*NAMES} - MISSING))
def test_the_name_exists(name):
    assert member(name) is not None


@pytest.mark.parametrize("name", sorted(MISSING))
def test_names_listed_as_missing_are_missing(name):
    with pytest.raises(AttributeError):
        member(name)


def test_every_entry_is_a_name():
    entries = " ".join(LATER.values()).split()
    unused = [e for e in entries if not any(n == e or (e.endswith(".") and n.startswith(e)) for n in NAMES)]
    assert unused == []
