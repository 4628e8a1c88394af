"""The plain pass of `make test` (conftest.py) names files that exist, and nothing else decides about it."""

from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def settings(pytestconfig: pytest.Config) -> ModuleType:
    """Return the conftest.py of the root."""
    (found,) = (plugin for plugin in pytestconfig.pluginmanager.get_plugins() if hasattr(plugin, "PLAIN_PASS"))
    return found


def test_each_entry_names_tests(settings):
    named = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("src/retrograd/**/*.py")]
    files = [path.relative_to(ROOT).as_posix() for path in named]
    assert [entry for entry in settings.PLAIN_PASS if not any(file.startswith(entry) for file in files)] == []


def test_the_folders_of_the_core_belong_to_it_and_no_file_outside_the_repository(settings, tmp_path):
    assert settings.in_plain_pass(ROOT / "src/retrograd/core/engine.py")
    assert settings.in_plain_pass(ROOT / "tests/core/test_engine.py")
    assert not settings.in_plain_pass(ROOT / "tests/pipelining/test_schedules.py")
    assert not settings.in_plain_pass(tmp_path / "tests/core/test_engine.py")


def test_files_that_it_leaves_out_are_not_imported(settings, pytestconfig):
    inside, outside = ROOT / "tests/core/test_engine.py", ROOT / "tests/pipelining/test_schedules.py"
    given = pytestconfig.option.markexpr
    try:
        pytestconfig.option.markexpr = settings.PLAIN_EXPRESSION
        assert settings.pytest_ignore_collect(outside, pytestconfig)
        assert not settings.pytest_ignore_collect(inside, pytestconfig)
        pytestconfig.option.markexpr = ""
        assert not settings.pytest_ignore_collect(outside, pytestconfig)
    finally:
        pytestconfig.option.markexpr = given
    assert f'-m "{settings.PLAIN_EXPRESSION}"' in (ROOT / "Makefile").read_text()


def test_single_tests_are_only_left_out_of_files_that_belong_to_it(settings):
    marked = [path for path in ROOT.glob("tests/**/*.py") if "pytest.mark.once(" in path.read_text()]
    assert [str(path) for path in marked if path != Path(__file__) and not settings.in_plain_pass(path)] == []
