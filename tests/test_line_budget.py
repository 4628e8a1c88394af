"""No package grows beyond its budget of lines without somebody who decides it."""

from pathlib import Path

import pytest
from tests.case_groups import group_cases

PACKAGE = Path(__file__).parents[1] / "src" / "retrograd"
# Lines of code, C++ included; blank lines, comments and docstrings count too. A package that needs more: move what it
# has twice, delete what nothing uses, and only then raise its number, to the next 100.
BUDGET = {
    "amp": 500,
    "autograd": 8900,
    "backend": 10400,
    "backends": 240,
    "bench": 1100,
    "cli": 3300,
    "compiler": 10900,
    "core": 8200,
    "cuda": 700,
    "distributed": 10100,
    "distributions": 5900,
    "export": 4000,
    "foundation": 1620,
    "func": 3200,
    "fx": 7300,
    "higher_order": 800,
    "hips": 900,
    "implicit": 700,
    "interop": 7050,
    "kernels": 12400,
    "levels": 1700,
    "library": 3600,
    "nested": 6300,
    "nn": 11600,
    "numpy": 300,
    "ode": 900,
    "ops": 33500,
    "optim": 3970,
    "pipelining": 22300,
    "scipy": 8000,
    "signal": 100,
    "sklearn": 400,
    "sparse": 2400,
    "testing": 5100,
    "torch_alias": 2400,
    "utils": 5900,
}


def lines(folder):
    """Return the number of lines of the sources in a package."""
    endings = ("py", "pxd", "cpp", "cu", "hpp", "js", "css", "html")
    files = [path for ending in endings for path in folder.rglob(f"*.{ending}")]
    return sum(path.read_text().count("\n") for path in files)


PACKAGES = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


@group_cases
@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_keeps_its_budget_of_lines(package):
    assert package in BUDGET, f"give the new package {package} a budget in {Path(__file__).name}"
    assert lines(PACKAGE / package) <= BUDGET[package]


def test_every_budget_is_that_of_a_package_and_near_its_size():
    assert sorted(BUDGET) == PACKAGES
    loose = {name: limit for name, limit in BUDGET.items() if limit - lines(PACKAGE / name) > max(500, limit // 5)}
    assert loose == {}, "the package has shrunk: lower its budget"
