"""Each kernel's formula is written once in Python: in its reference, which the kernel's name finds."""

import ast
import inspect
from collections import Counter
from pathlib import Path

import pytest

import retrograd
from retrograd import kernels
from retrograd.kernels import reference, update_formulas
from retrograd.ops import recurrent

ROOT = Path(retrograd.__file__).parent
ENTRIES = sorted(name for name, value in vars(reference).items() if name[0] != "_" and not inspect.ismodule(value))
# Functions of NumPy.
NUMPYS = {"add", "subtract", "multiply", "true_divide", "multiply_matrices", "empty", "broadcast_to"}
# The names by which operators and namespaces call kernels, also those of rows.
NAMES = {name.removesuffix("_rows") for name in ENTRIES} | {"class_loss", "class_grad", "class_residual"}
# NumPy's functions that formulas of kernels are made of, and that a call of a kernel does not need.
ARITHMETIC = {
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "square",
    "tanh",
    "abs",
    "max",
    "maximum",
    "where",
    "clip",
    "vecdot",
}


def functions(folder):
    """Yield the functions of a folder's files, each with its file's name."""
    for path in sorted((ROOT / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield path.name, node


def numpy_calls(node):
    """Return the names of NumPy's functions in a function."""
    attributes = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
    return {n.attr for n in attributes if n.value.id == "np"}


def test_each_name_of_a_kernel_has_a_reference():
    assert sorted(kernels.KERNELS) == ENTRIES


@pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
def test_compiled_kernels_and_references_have_the_same_names():
    assert sorted(name for name in vars(kernels.chosen) if name[0] != "_") == ENTRIES


def test_each_kernel_has_one_reference():
    defined = Counter(node.name for _, node in functions("kernels"))
    assert {name: defined[name] for name in ENTRIES if defined[name] != 1} == dict.fromkeys(NUMPYS, 0)


def test_namespaces_call_kernels_or_references_and_have_no_formula_of_their_own():
    # NumPy's function of the same name is not a formula.
    repeated = {
        f"{file}:{node.name}": found
        for file, node in functions("backend")
        if node.name.strip("_") in NAMES and (found := numpy_calls(node) & ARITHMETIC - {node.name})
    }
    assert repeated == {}


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_a_formula_would_be_found(name):
    assert numpy_calls(ast.parse(f"def softmax(x): return np.{name}(x)")) & ARITHMETIC


def test_the_formulas_of_optimizers_are_the_references_too():
    for name in ("descent", "momentum", "adam", "amsgrad"):
        assert inspect.unwrap(getattr(reference, name)) is getattr(update_formulas, name)


def called(node):
    """Return the names of the functions that a function calls, directly or by name of a module or an operator."""
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else f.id for f in calls if isinstance(f, (ast.Attribute, ast.Name))}


# Derivatives of steps, of which only the formula's parts are the same.
DERIVATIVES = {"lstm_grad", "gru_grad", "_lstm_gates", "_gru_gates"}


def steps_of_recurrences(folder):
    """Return the functions that combine gates: a sigmoid and a tanh."""
    for file, node in functions(folder):
        if {"sigmoid", "tanh"} <= {name.strip("_") for name in called(node)} and node.name not in DERIVATIVES:
            yield f"{file}:{node.name}"


@pytest.mark.parametrize("folder", ["kernels", "backend", "ops", "nn", "nn/utils", "nested/rules"])
def test_a_step_of_a_recurrence_has_one_formula(folder):
    written = {"recurrent_formulas.py:lstm_step", "recurrent_formulas.py:gru_step"} if folder == "kernels" else set()
    assert set(steps_of_recurrences(folder)) == written


def test_the_references_and_the_steps_of_other_dtypes_use_the_formulas_of_recurrences():
    for module in (reference, recurrent):
        for name in ("lstm", "gru"):
            assert f"recurrent_formulas.{name}_step(" in inspect.getsource(getattr(module, name))
