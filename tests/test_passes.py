"""The passes of the tests (conftest.py) name files that exist, and nothing else decides about them."""

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
    entries = (*settings.PLAIN_PASS, *settings.INTEGRATION)
    assert [entry for entry in entries if not any(file.startswith(entry) for file in files)] == []


def test_the_folders_of_the_core_belong_to_the_plain_pass_and_no_file_outside_the_repository(settings, tmp_path):
    listed = settings.PLAIN_PASS
    assert settings.is_listed(ROOT / "src/retrograd/core/engine.py", listed)
    assert settings.is_listed(ROOT / "tests/core/test_engine.py", listed)
    assert not settings.is_listed(ROOT / "tests/pipelining/test_schedules.py", listed)
    assert not settings.is_listed(tmp_path / "tests/core/test_engine.py", listed)


PLAIN, UNIT, WHOLE_PROGRAM = "tests/core/test_engine.py", "tests/pipelining/test_schedules.py", "tests/cli/test_demo.py"


@pytest.mark.parametrize(
    ("expression", "files"),
    [
        ("PLAIN_EXPRESSION", [PLAIN]),
        ("UNIT_EXPRESSION", [PLAIN, UNIT]),
        ("INTEGRATION_EXPRESSION", [WHOLE_PROGRAM]),
        ("", [PLAIN, UNIT, WHOLE_PROGRAM]),
    ],
)
def test_files_that_a_pass_leaves_out_are_not_imported(settings, pytestconfig, monkeypatch, expression, files):
    given = getattr(settings, expression, "")
    monkeypatch.setattr(pytestconfig.option, "markexpr", given)
    everything = [PLAIN, UNIT, WHOLE_PROGRAM]
    assert [file for file in everything if not settings.pytest_ignore_collect(ROOT / file, pytestconfig)] == files
    assert f'-m "{given}"' in (ROOT / "Makefile").read_text() or not given


def test_every_test_is_in_the_first_pass_or_in_that_of_integration(settings):
    """`make test` may leave out only what `.ci/run` runs by `make integration`; the plain pass repeats the first."""
    assert f"not {settings.INTEGRATION_EXPRESSION}" == settings.UNIT_EXPRESSION
    assert [entry for entry in settings.INTEGRATION if entry.startswith(settings.PLAIN_PASS)] == []
    targets = (ROOT / ".ci" / "run").read_text().split()
    assert {"test", "integration"} <= set(targets)


def test_single_tests_are_only_left_out_of_files_that_belong_to_it(settings):
    marked = [path for path in ROOT.glob("tests/**/*.py") if "pytest.mark.once(" in path.read_text()]
    assert [
        str(path) for path in marked if path != Path(__file__) and not settings.is_listed(path, settings.PLAIN_PASS)
    ] == []
