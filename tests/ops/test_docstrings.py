"""Doctests of operators: pytest does not find them itself, because operators are objects."""

import doctest

import pytest

import retrograd.ops  # noqa: F401 (registers the operators)
from retrograd.core import registry

from ..case_groups import group_cases

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
EXAMPLES = {name: op.__doc__ for name, op in sorted(registry.items()) if ">>>" in op.__doc__}


@group_cases
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name):
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {}, name, None, None)
    said: list[str] = []
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append).failed == 0, "".join(said)


def test_many_operators_have_examples():
    assert len(EXAMPLES) > 150
