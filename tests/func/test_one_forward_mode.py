"""Forward mode and Jacobians exist once: every interface uses the same function for rules, and for unit vectors."""

import ast
from pathlib import Path

import pytest

import retrograd as rg

pytestmark = pytest.mark.once("sources are read, nothing of them runs")

SOURCE = Path(rg.__file__).parent
FILES = [path for part in ("levels", "func", "autograd", "hips") for path in sorted((SOURCE / part).rglob("*.py"))]


def files_that_call(*names):
    """Return the files with a call whose function ends in one of the dotted names."""
    calls = [(path, ast.unparse(n.func)) for path in FILES for n in ast.walk(ast.parse(path.read_text()))
             if isinstance(n, ast.Call)]  # fmt: skip
    return sorted({str(path.relative_to(SOURCE)) for path, function in calls if function.endswith(names)})


def test_one_function_applies_the_forward_rules_of_operators():
    assert files_that_call(".definition.jvp") == ["levels/dual.py"]


def test_one_file_makes_the_standard_basis():
    assert files_that_call("registry['eye']", "registry['arange']") == ["levels/jacobian.py"]
