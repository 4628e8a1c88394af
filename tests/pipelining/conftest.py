"""Test modules of this folder define operators."""

import pytest

from retrograd.pipelining.planning import choose
from retrograd.pipelining.planning.operator_cost import operators

from ..own_operators import own_operators, pytest_make_collect_report  # noqa: F401


@pytest.fixture
def even_times(monkeypatch):
    """Let all operators take equally long, so that the split does not depend on the load of the machine."""

    def measured(*args):
        return [one._replace(forward=1.0, backward=2.0) for one in operators(*args)]

    monkeypatch.setattr(choose, "operators", measured)
