"""PyTorch's import paths of autograd's modules, where a function and its module have the same name."""

import subprocess
import sys

import pytest

import retrograd as rg

pytestmark = pytest.mark.once("which module an import finds does not depend on the core")

# Each is one way to reach gradcheck; what it leaves in `found` is the function.
IMPORTS = (
    "from retrograd.autograd import gradcheck as found",
    "from retrograd.autograd.gradcheck import gradcheck as found, gradgradcheck, GradcheckError",
    "import retrograd.autograd.gradcheck; found = retrograd.autograd.gradcheck",
    "import retrograd; found = retrograd.autograd.gradcheck",
    "import importlib; found = importlib.import_module('retrograd.autograd.gradcheck').gradcheck",
)
CHECK = """
import retrograd as rg
assert rg.autograd.gradcheck is found, rg.autograd.gradcheck
assert found(rg.sin, rg.ones(2, dtype=rg.float64, requires_grad=True))
"""


def run(program):
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("first", range(len(IMPORTS)))
def test_gradcheck_is_the_function_in_every_order_of_imports(first):
    run("\n".join(line + CHECK for line in IMPORTS[first:] + IMPORTS[:first]))


def test_a_replaced_gradcheck_stays_replaced(monkeypatch):
    monkeypatch.setattr(rg.autograd, "gradcheck", len)
    assert rg.autograd.gradcheck is len


def test_names_of_sub_packages_are_those_of_autograd():
    from retrograd.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

    assert (gradcheck, gradgradcheck) == (rg.autograd.gradcheck, rg.autograd.gradgradcheck)
    assert GradcheckError is rg.autograd.GradcheckError
    assert rg.autograd.function.Function is rg.autograd.Function
    assert rg.autograd.function.NestedIOFunction is rg.autograd.NestedIOFunction


@pytest.mark.parametrize("name", ["forward_ad", "function", "functional", "graph", "profiler"])
def test_modules_are_attributes_of_autograd(name):
    run(f"import retrograd as rg, retrograd.autograd.{name} as m; assert rg.autograd.{name} is m")
