"""Operators are registered while what defines them runs: those of a test module with its tests, others with one test.

The conftest of a folder with such modules imports `pytest_make_collect_report` and `own_operators`; that of all tests
imports `operators_of_a_test`.
"""

import pytest

from retrograd.core import registry
from retrograd.library import CustomOperator

_defined: dict[str, dict] = {}  # by module: what its import has added


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    before = dict(registry)
    yield
    if isinstance(collector, pytest.Module):
        new = {name: operator for name, operator in registry.items() if name not in before}
        added = {name: operator for name, operator in new.items() if isinstance(operator, CustomOperator)}
        _defined.setdefault(str(collector.path), {}).update(added)
        for name in added:
            del registry[name]


@pytest.fixture(autouse=True, scope="module")
def own_operators(request):
    own = _defined.get(str(request.path), {})
    registry.update(own)
    yield
    for name in own:
        registry.pop(name, None)


@pytest.fixture(autouse=True)
def operators_of_a_test():
    """Forget the operators that a test defines, so that no other one finds their names taken, in any order."""
    before = registry.imported()
    yield
    new = {name: operator for name, operator in registry.imported().items() if name not in before}
    for name, operator in new.items():
        if isinstance(operator, CustomOperator):
            del registry[name]
    registry.update(before)
