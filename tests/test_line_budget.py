"""No package grows beyond its budget of lines without somebody who decides it."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.once("sources are counted, nothing of them runs")

PACKAGE = Path(__file__).parents[1] / "src" / "retrograd"
# Lines of code, C++ included; blank lines, comments and docstrings count too. A package that needs more: move what it
# has twice, delete what nothing uses, and only then raise its number, to the next 100.
BUDGET = {
    "amp": 500,
    "autograd": 8700,
    "backend": 6000,
    "backends": 100,
    "bench": 1100,
    "cli": 2400,
    "core": 6400,
    "cuda": 200,
    "distributed": 200,
    "distributions": 5500,
    "export": 5000,
    "func": 3300,
    "fx": 7600,
    "higher_order": 900,
    "hips": 1000,
    "interop": 6000,
    "kernels": 7700,
    "levels": 1700,
    "library": 3300,
    "nested": 6300,
    "nn": 10300,
    "numpy": 300,
    "ops": 31700,
    "optim": 3200,
    "pipelining": 14100,
    "scipy": 1000,
    "signal": 100,
    "sklearn": 400,
    "testing": 5400,
    "utils": 3800,
}


def lines(folder):
    """Return the number of lines of the sources in a package."""
    endings = ("py", "pxd", "cpp", "hpp", "js", "css", "html")
    files = [path for ending in endings for path in folder.rglob(f"*.{ending}")]
    return sum(path.read_text().count("\n") for path in files)


PACKAGES = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_keeps_its_budget_of_lines(package):
    assert package in BUDGET, f"give the new package {package} a budget in {Path(__file__).name}"
    assert lines(PACKAGE / package) <= BUDGET[package]


def test_every_budget_is_that_of_a_package_and_near_its_size():
    assert sorted(BUDGET) == PACKAGES
    loose = {name: limit for name, limit in BUDGET.items() if limit - lines(PACKAGE / name) > max(500, limit // 5)}
    assert loose == {}, "the package has shrunk: lower its budget"
