"""Forward mode and Jacobians exist once: every interface uses the same function for rules, and for unit vectors."""

import ast
from pathlib import Path

import pytest

import retrograd as rg

pytestmark = pytest.mark.once("sources are read, nothing of them runs")

SOURCE = Path(rg.__file__).parent
TRANSFORMS = ("levels", "func", "autograd", "hips")
OPERATORS = ("ops", "nested", "library")


def files_that_call(parts, *names):
    """Return the files of some parts with a call whose function ends in one of the dotted names."""
    files = [path for part in parts for path in sorted((SOURCE / part).rglob("*.py"))]
    calls = [(path, ast.unparse(n.func)) for path in files for n in ast.walk(ast.parse(path.read_text()))
             if isinstance(n, ast.Call)]  # fmt: skip
    return sorted({str(path.relative_to(SOURCE)) for path, function in calls if function.endswith(names)})


def test_one_function_applies_the_forward_rules_of_operators():
    assert files_that_call((*OPERATORS, *TRANSFORMS), "definition.jvp") == ["ops/jvp_rules.py"]


def test_one_file_makes_the_standard_basis():
    assert files_that_call(TRANSFORMS, "registry['eye']", "registry['arange']") == ["levels/jacobian.py"]
