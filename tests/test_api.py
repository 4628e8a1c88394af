"""The public names, with their arguments and defaults, are those of tests/api.txt."""

import importlib
import importlib.util
import operator
import subprocess
import sys
import types
from pathlib import Path

import pytest

import retrograd as rg

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def api():
    """Return the module tools/api.py."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        spec = importlib.util.spec_from_file_location("api", ROOT / "tools" / "api.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(ROOT / "tools"))


def test_the_snapshot_of_public_names_is_up_to_date():
    found = subprocess.run(
        [sys.executable, "tools/api.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, (
        f"public names differ from tests/api.txt:\n{found.stdout}{found.stderr}\n"
        "If the change is meant, and docs/compatibility.md allows it, run `make stubs` and commit tests/api.txt."
    )


def test_public_functions_are_those_that_their_modules_have():
    """A decorator that registers a function before another one wraps it leaves two, and pickle finds the other."""
    lost = []
    for line in (ROOT / "tests" / "api.txt").read_text().splitlines():
        path = line.split(": ")[0].split("(")[0].removeprefix("rg.")
        member = operator.attrgetter(path)(rg) if line.startswith("rg.") else None
        if isinstance(member, types.FunctionType) and "<locals>" not in member.__qualname__:
            found = importlib.import_module(member.__module__)
            for name in member.__qualname__.split("."):
                found = getattr(found, name, None)
            if found is not member:
                lost.append(path)
    assert lost == []


def function(x, /, y, *, key=len):
    """A function for the tests."""


class Class:
    """A class for the tests."""

    def __init__(self, size: int, bias: bool = True) -> None: ...

    def method(self, n: int = 1) -> None: ...

    @property
    def value(self) -> int:
        return 1

    def _private(self) -> None: ...


def test_functions_and_classes_are_listed_with_arguments_and_defaults(api):
    assert list(api._entry("rg.f", function)) == ["rg.f(x, /, y, *, key=len)"]
    assert list(api._entry("rg.C", Class)) == [
        "rg.C: class(size, bias=True)",
        "rg.C.method(n=1)",
        "rg.C.value: attribute",
    ]


def test_removed_names_and_changed_defaults_are_reported(api, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(api, "SNAPSHOT", tmp_path / "api.txt")
    monkeypatch.setattr(api, "lines", lambda: ["rg.f(x, n=1)", "rg.g(x)"])
    assert api.main() == 0
    monkeypatch.setattr(api, "lines", lambda: ["rg.f(x, n=2)", "rg.h(x)"])
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["api.py", "--check"])
    assert api.main() == 1
    assert capsys.readouterr().out.splitlines() == ["-rg.f(x, n=1)", "-rg.g(x)", "+rg.f(x, n=2)", "+rg.h(x)"]
    monkeypatch.setattr(sys, "argv", ["api.py"])
    assert api.main() == 0
    said = capsys.readouterr().out
    assert "removed or changed" in said
    assert "-rg.g(x)" in said
    assert "+rg.h(x)" not in said
    assert api.differences() == []


def test_every_module_of_the_reference_is_an_attribute(api):
    """In a new process: other tests import modules, which makes them attributes."""
    code = "import sys, operator, retrograd as rg; [operator.attrgetter(name)(rg) for name in sys.argv[1:]]"
    subprocess.run([sys.executable, "-c", code, *api.modules()], check=True)
