"""The traits of operators: each is described once, in docs/operators.md, and some operator uses it."""

import re
from pathlib import Path

import pytest

from retrograd.core import Definition, registry
from retrograd.ops.family import Rowwise
from retrograd.ops.opmath import Family

PAGE = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
# Attributes in the class of an operator that are no traits: rules, which are functions or None, and the tests' facts.
TRAITS = sorted(
    name
    for name, value in {**vars(Definition), **vars(Family)}.items()
    if (not name.startswith("_") and type(value) in (bool, str)) or name == "promotion"
)


def test_the_page_describes_every_trait_and_no_other():
    table = PAGE[PAGE.index("Traits are class attributes") : PAGE.index("**Sparsity patterns.**")]
    assert sorted(re.findall(r"^\| `(\w+)=", table, re.M)) == TRAITS


@pytest.mark.parametrize("name", TRAITS)
def test_operators_differ_in_every_trait(name):
    used = {getattr(operator.definition, name) for operator in registry.values() if hasattr(operator.definition, name)}
    assert len(used) > 1


def test_a_promotion_is_refused_in_a_family_that_does_not_promote():
    with pytest.raises(TypeError, match="ripple: promotion='float', but its family does not promote"):
        type("ripple", (Rowwise,), {}, promotion="float")
