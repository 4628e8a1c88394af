"""mypy checks the rules of operators: the plugin gives them the types of the schema, and calls their signature."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OPERATOR = """\
from retrograd.core import op
from retrograd.ops.family import Pointwise
from retrograd.ops.nn import softmax

@op("twice(Tensor x, Tensor? y=None, int n=2, str? how=None) -> Tensor")
class twice(Pointwise):
    def vjp_x(g, y, n): return {vjp}
    def vjp_y(g, y, n): return -y * n
    def jvp_x(t): return {jvp}
"""
WRONG = {
    "g.summ()": ("t", '"Tensor" has no attribute "summ"'),
    "g * y": ("t", 'Unsupported operand types for * ("Tensor" and "None")'),
    "g * n.upper()": ("t", '"int" has no attribute "upper"'),
    "g * softmax(g, dimension=1)": ("t", 'Unexpected keyword argument "dimension" for "softmax"'),
    "g": ("softmax(t, 0).shap", '"Tensor" has no attribute "shap"'),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """mypy's errors in each of the programs."""
    folder = tmp_path_factory.mktemp("types")
    programs = {"right.py": ("g * n", "softmax(t, 0)")} | {
        f"wrong_{i}.py": (vjp, jvp) for i, (vjp, (jvp, _)) in enumerate(WRONG.items())
    }
    for name, (vjp, jvp) in programs.items():
        (folder / name).write_text(OPERATOR.format(vjp=vjp, jvp=jvp))
    files = [str(folder / name) for name in programs]
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), "--follow-imports=silent", *files]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "errors in" in found.stdout, found.stdout + found.stderr
    return found.stdout.splitlines()


def test_a_right_rule_passes(errors):
    assert [line for line in errors if "right.py" in line] == []


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_rule_is_an_error(errors, number):
    _, message = list(WRONG.values())[number]
    found = [line for line in errors if f"wrong_{number}.py" in line and "error:" in line]
    assert len(found) == 1, found
    assert message in found[0]
