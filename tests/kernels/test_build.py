"""Selection of kernels: the C++ ones if all are available, else the NumPy reference; never a mixture."""

import ast
import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.kernels import reference

needs_compiled = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
NATIVE = "retrograd.kernels.native"


@pytest.fixture
def again(monkeypatch):
    """Import the kernels again, with the given compiled module, or without one."""

    def load(native):
        monkeypatch.setitem(sys.modules, NATIVE, native)
        monkeypatch.delitem(sys.modules, "retrograd.kernels")
        return importlib.import_module("retrograd.kernels")

    monkeypatch.setattr(rg, "kernels", kernels)
    monkeypatch.setitem(sys.modules, "retrograd.kernels", kernels)
    monkeypatch.setenv("RETROGRAD_KEEP_MEMORY", "0")
    monkeypatch.delenv("RETROGRAD_PURE", raising=False)
    return load


def older(*missing):
    """Return a module compiled before these kernels were written."""
    module = ModuleType(NATIVE)
    vars(module).update({name: found for name, found in vars(reference).items() if name not in missing})
    return module


def test_a_compiled_module_with_all_kernels_is_used(again):
    found = again(older())
    assert (found.build, found.compiled) == ("compiled", True)
    assert found.chosen is sys.modules[NATIVE]


def test_without_a_compiled_module_the_references_run(again):
    found = again(None)
    assert (found.build, found.compiled, found.chosen) == ("pure", False, reference)


@pytest.mark.parametrize("missing", [("gelu",), ("segment_sum", "attend"), ("get_vector_bytes",)])
def test_an_older_compiled_module_is_not_used_and_what_it_lacks_is_named(missing, again, capsys):
    names = ", ".join(sorted(missing))
    with pytest.warns(UserWarning, match=rf"they lack {names}: NumPy does their work until .* \(make build"):
        found = again(older(*missing))
    assert (found.build, found.compiled, found.chosen) == ("outdated", False, reference)
    assert found.gelu is reference.gelu
    assert rg.show_config()["kernels"] == "outdated"
    assert "kernels: outdated" in capsys.readouterr().out


def test_a_pure_run_does_not_load_an_older_module(again, monkeypatch):
    monkeypatch.setenv("RETROGRAD_PURE", "1")
    assert again(older("gelu")).build == "pure"


def test_every_public_name_of_the_references_is_a_kernel():
    offered = {name for name, twin in vars(reference).items() if name[0] != "_" and not isinstance(twin, ModuleType)}
    assert all(getattr(kernels, name) is getattr(kernels.chosen, name) for name in offered)


# Functions of one number in C's library, which compilers call element by element instead of vectorizing them.
ELEMENTARY = re.compile(r"\b(?:erfc?|exp2?|expm1|log(?:2|10|1p)?|pow|a?(?:sin|cos|tan)h?|atan2|cbrt|[lt]gamma)f?\(")
ONCE_A_ROW = {"attention.hpp": 1, "rows.cpp": 3, "segments.cpp": 1}


def test_no_loop_of_the_kernels_calls_the_c_library_for_each_element():
    sources = Path(reference.__file__).parent.glob("*.[ch]pp")
    code = {path.name: re.sub("//.*", "", path.read_text()) for path in sources}
    calls = {name: len(ELEMENTARY.findall(text)) for name, text in code.items()}
    assert {name: count for name, count in calls.items() if count} == ONCE_A_ROW


def compile_flags():
    """Return the flags that setup.py compiles kernels with."""
    tree = ast.parse((Path(__file__).parents[2] / "setup.py").read_text())
    (value,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLAGS"
    ]
    return ast.literal_eval(value.orelse)


@pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
@pytest.mark.skipif(not shutil.which("g++") or platform.machine() != "x86_64", reason="needs GCC for x86-64")
def test_elementwise_kernels_are_vectorized_in_each_dtype(tmp_path):
    source, report = Path(reference.__file__).with_name("pointwise.cpp"), tmp_path / "loops.txt"
    includes = [f"-I{folder}" for folder in (np.get_include(), sysconfig.get_paths()["include"])]
    command = ["g++", *compile_flags(), *includes, f"-fopt-info-vec-optimized={report}", "-S", "-o", os.devnull, source]
    subprocess.run(command, check=True)
    loops = re.findall(r"pointwise.cpp:(\d+):.*: loop vectorized using 64 byte", report.read_text())
    lines = list(enumerate(source.read_text().splitlines(), 1))
    made = [(i, re.match(r"(?:KERNEL|SELECTION)_OF\((\w+)", line)) for i, line in lines]
    defined = {i: getattr(kernels, match[1]).ntypes for i, match in made if match}
    marked = {i + 1 for i, line in lines if line.strip() == "IN_ANY_ORDER"}  # loops of other kernels
    assert defined
    assert marked
    found = Counter(map(int, loops))
    assert {line: found.pop(line, 0) for line in defined} == defined
    assert found.keys() == marked
    assert min(found.values()) >= 2  # more where several kernels share a template


@pytest.mark.skipif(not shutil.which("g++") or not shutil.which("nm"), reason="needs GCC and binutils")
def test_code_for_one_processor_has_each_kernel_once(tmp_path):
    """As for 64-bit ARM, where no function is selected at run time: other versions are compiled and never called."""
    sources = Path(kernels.__file__).parent
    found = tmp_path / "tiles.o"
    folders = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}", f"-I{sources}"]
    command = ["g++", "-std=c++17", "-O0", "-fPIC", "-DRETROGRAD_ONE_PROCESSOR", *folders, "-o", str(found), "-c"]
    subprocess.run([*command, str(sources / "tiles.cpp")], check=True)
    symbols = subprocess.run(["nm", "-C", str(found)], check=True, capture_output=True, text=True).stdout
    assert "runs_Narrow" in symbols
    assert not re.findall("runs_(?:Middle|Wide)|(?:wide|widest)\\(", symbols)
