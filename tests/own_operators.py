"""Operators defined by a test module are registered while its tests run, and not during collection of others.

The conftest of a folder with such modules imports both functions.
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
