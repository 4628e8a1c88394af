"""An operator is added in one place: one class in one file gets tests, type stubs and an entry of the catalogue."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COPIED = (
    "src/retrograd",
    "tools",
    "tests/ops",
    "tests/conftest.py",
    "tests/case_groups.py",
    "tests/own_operators.py",
    "tests/tables.py",
    "pyproject.toml",
)
OPERATOR = '''

@op("wobble(Tensor x, float depth=0.5) -> Tensor")
class wobble(Pointwise, promotion="float", home="nn.functional"):
    """x + depth * sin(x)."""

    def impl(xp, x, *, depth):
        return x + depth * xp.sin(x)

    def vjp_x(g, x, depth):
        return g * (1 + depth * registry["cos"](x))

    def oracle(np, x, depth):
        return x + depth * np.imag(np.exp(1j * x))

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(4),), {"depth": -2.0}
'''


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the sources in which one file defines one more operator."""
    copy = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        place = copy / name
        place.parent.mkdir(parents=True, exist_ok=True)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, place, ignore=ignored) if (ROOT / name).is_dir() else shutil.copy(
            ROOT / name, place
        )
    (copy / "docs").mkdir()
    with open(copy / "src/retrograd/ops/activation.py", "a") as file:
        file.write(OPERATOR)
    run(copy, "tools/stubs.py")  # which also lists the operators for imports on first use, as `make build` does
    return copy


def run(tree, *command):
    """Return what a Python process prints that sees the copy only."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    found = subprocess.run([sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, f"{found.stdout}{found.stderr}"
    return found.stdout


def test_all_laws_are_checked_on_its_samples(tree):
    tests = "tests/ops/test_laws.py", "tests/ops/test_oracles.py"
    printed = run(
        tree, "-m", "pytest", "-v", "-n", "0", "-p", "no:cacheprovider", *tests, "-k", "wobble or has_an_oracle"
    )
    assert "test_laws[wobble] PASSED" in printed
    assert "test_laws_that_no_build_changes[wobble] PASSED" in printed
    assert "test_every_operator_has_an_oracle_or_a_reason PASSED" in printed


def test_it_is_in_the_stubs_and_in_the_catalogue(tree):
    stub = (tree / "src/retrograd/nn/functional.pyi").read_text()
    assert "def wobble(x: _Operand, depth: _float = 0.5) -> Tensor:" in stub
    run(tree, "tools/catalogue.py")
    page = (tree / "docs/catalogue.md").read_text()
    section = page.partition("## Activations")[2].partition("## ")[0]
    assert "| `nn.functional.wobble` | `Tensor x, float depth=0.5` | x + depth * sin(x). | any |" in section


def test_it_is_a_public_function(tree):
    called = "import retrograd as rg; print(rg.nn.functional.wobble(rg.tensor([0.0]), depth=2.0).tolist())"
    assert run(tree, "-c", called).strip() == "[0.0]"
