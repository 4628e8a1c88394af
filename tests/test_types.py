"""mypy checks the rules of operators: the plugin gives them the types of the schema, and calls their signature."""

import subprocess
import sys
from pathlib import Path

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


def errors(folder):
    """Return mypy's errors in each of the programs: file -> lines."""
    programs = {"right.py": ("g * n", "softmax(t, 0)")} | {
        f"wrong_{i}.py": (vjp, jvp) for i, (vjp, (jvp, _)) in enumerate(WRONG.items())
    }
    for name, (vjp, jvp) in programs.items():
        (folder / name).write_text(OPERATOR.format(vjp=vjp, jvp=jvp))
    files = [str(folder / name) for name in programs]
    command = [sys.executable, "-m", "mypy", *files]  # with the cache and the options of `make types`
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "errors in" in found.stdout, found.stdout + found.stderr
    return {name: [line for line in found.stdout.splitlines() if name in line] for name in programs}


def test_right_rules_pass_and_wrong_rules_are_errors(tmp_path):
    """One test, because two workers that share these would both run mypy: 10 s of CPU."""
    found = errors(tmp_path)
    assert found["right.py"] == []
    for number, (_, message) in enumerate(WRONG.values()):
        (line,) = (line for line in found[f"wrong_{number}.py"] if "error:" in line)
        assert message in line
