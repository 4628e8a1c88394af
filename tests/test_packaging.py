"""The build: all hot modules are compiled, or none; and docs/decisions gives a reason for each dependency."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from retrograd.core import build_config

PROJECT = Path(__file__).parents[1]
CONFIG = tomllib.loads((PROJECT / "pyproject.toml").read_text())
STAND_IN = """
#include <Python.h>
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "native"};
PyMODINIT_FUNC PyInit_native() { return PyModule_Create(&definition); }
"""
HOT = sorted(build_config.HOT)
CORE = sorted([*HOT, "retrograd_cython"])  # with the module that Cython makes for them


def has_compiler():
    """Return whether a C compiler runs here and finds Python's headers."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    headers = Path(sysconfig.get_paths()["include"], "Python.h").exists()
    return headers and compiler is not None and subprocess.call([compiler, "--version"], stdout=subprocess.DEVNULL) == 0


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="needs a C compiler")
needs_gcc = pytest.mark.skipif(
    sys.platform != "linux"
    or "clang" in (os.environ.get("CC") or sysconfig.get_config_var("CC") or "")
    or not has_compiler(),
    reason="needs GCC",
)


def plant(tmp_path):
    """Copy the project with stubs of the hot modules, which compile faster than the real ones."""
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "LICENSE", "README.md"):
        if (PROJECT / name).exists():
            shutil.copy(PROJECT / name, tmp_path)
    core = tmp_path / "src/retrograd/core"
    core.mkdir(parents=True)
    (core.parent / "py.typed").touch()
    (core.parent / "__init__.py").write_text('__version__ = "1.2.3"\n')
    for module in ("__init__", *HOT):
        (core / f"{module}.py").write_text("answer = 42\n")
    shutil.copy(PROJECT / "src/retrograd/core/build_config.py", core)
    for module in HOT:
        (core / f"{module}.pxd").touch()
    kernels = tmp_path / "src/retrograd/kernels"
    kernels.mkdir()
    (kernels / "native.cpp").write_text(STAND_IN)
    return tmp_path


@pytest.fixture
def tree(tmp_path):
    return plant(tmp_path)


@pytest.fixture(scope="session")
def first_build(tmp_path_factory):
    """Return a tree that has been built, and the build's output: to inspect or to copy."""
    made = plant(tmp_path_factory.mktemp("first"))
    return made, build(made)


@pytest.fixture
def built_tree(first_build, tmp_path):
    return shutil.copytree(first_build[0], tmp_path, dirs_exist_ok=True)


def setup(tree, *command, **environment):
    """Run setup.py in the tree and return its output."""
    clean = {name: value for name, value in os.environ.items() if name != "RETROGRAD_PURE"}
    process = subprocess.run(
        [sys.executable, "setup.py", "--quiet", *command],
        cwd=tree, env=clean | environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout
    return process.stdout


def build(tree, **environment):
    return setup(tree, "build_ext", "--inplace", "--parallel", "2", **environment)


def binaries(tree):
    return sorted(path.name.split(".")[0] for path in tree.glob("src/**/*.so"))


def plain_lines(output):
    return [line for line in output.splitlines() if line.startswith("retrograd: the core is not compiled")]


@needs_compiler
def test_the_hot_modules_are_compiled_next_to_their_sources(first_build):
    tree, output = first_build
    assert binaries(tree) == sorted([*CORE, "native"])
    assert plain_lines(output) == []
    assert list(tree.glob("src/**/*.c")) == []
    program = "from retrograd.core import engine; print(engine.__file__, engine.answer)"
    shown = subprocess.check_output([sys.executable, "-c", program], cwd=tree / "src", text=True)
    assert re.search(r"engine\..*so 42$", shown.strip())


def test_without_a_compiler_the_build_succeeds_and_reports_it_once(tree):
    output = build(tree, CC="false")
    assert binaries(tree) == []
    assert len(plain_lines(output)) == 1
    assert all(line.startswith("retrograd: ") for line in output.splitlines())
    assert "the C compiler failed: Command" in output


@needs_compiler
def test_one_module_that_fails_drops_all_and_removes_older_binaries(built_tree):
    tree, core = built_tree, built_tree / "src/retrograd/core"
    assert binaries(tree) == sorted([*CORE, "native"])
    (core / "op.pxd").write_text('cdef extern from *:\n    """\n    #error no such machine\n    """\n')
    output = build(tree)
    assert binaries(tree) == []
    assert "no such machine" in output
    assert len(plain_lines(output)) == 1


@needs_compiler
def test_kernels_that_fail_leave_the_core_as_it_is(built_tree):
    tree = built_tree
    (tree / "src/retrograd/kernels/native.cpp").write_text("#error no such machine\n")
    output = build(tree)
    assert binaries(tree) == CORE
    assert "retrograd: the kernels are not compiled, NumPy does their work" in output


@needs_gcc
def test_kernels_include_headers_that_are_compiled_once(built_tree):
    kernels = built_tree / "src/retrograd/kernels"
    for name in ("ufunc_adapter.hpp", "vectors.hpp"):
        (kernels / name).touch()
    (kernels / "registration.hpp").write_text("#pragma once\nconstexpr int answer = 42;\n")
    (kernels / "other.cpp").write_text("int twice() { return 2 * answer; }\n")
    output = build(built_tree)
    assert "the kernels are compiled" in output
    assert len(list(built_tree.glob("build/**/headers*.cpp.gch"))) == 1


@needs_gcc
def test_modules_of_the_core_include_headers_compiled_with_their_own_flags(first_build):
    """GCC optimizes a module by the flags of compiled headers, not by its own, and says nothing."""
    tree, _ = first_build
    assert len(list(tree.glob("build/**/headers*.c.gch"))) == 2  # one for LESS, one for MORE


def test_an_older_cython_is_named_and_compiles_nothing(tree):
    (tree / "older/Cython").mkdir(parents=True)
    (tree / "older/Cython/__init__.py").write_text('__version__ = "3.2.1"\n')
    output = build(tree, PYTHONPATH=str(tree / "older"))
    assert binaries(tree) == []
    assert "plain Python (Cython 3.3 is needed, and 3.2.1 is installed)" in output


def test_retrograd_pure_builds_nothing(tree):
    output = build(tree, RETROGRAD_PURE="1")
    assert binaries(tree) == []
    assert plain_lines(output) == ["retrograd: the core is not compiled, it runs as plain Python (RETROGRAD_PURE=1)"]


def test_a_tree_without_the_hot_modules_still_builds(tree):
    (tree / "src/retrograd/core/engine.py").unlink()
    assert "engine" in plain_lines(build(tree))[0]


def test_types_and_declarations_are_packaged(tree):
    (tree / "src/retrograd/core/tensor.pyi").touch()
    setup(tree, "build_py", "--build-lib", "out", RETROGRAD_PURE="1")
    packaged = {str(path.relative_to(tree / "out/retrograd")) for path in (tree / "out").rglob("*.*")}
    assert {"py.typed", "core/tensor.py", "core/tensor.pyi", "core/tensor.pxd"} <= packaged


@needs_compiler
def test_the_build_names_each_file_that_it_compiles(first_build):
    _, output = first_build
    told = re.findall(r"^retrograd: (\d+) of (\d+): ([\w.]+), [\d.]+ s$", output, re.MULTILINE)
    assert {name for _, _, name in told} == {"native.cpp", *(f"{name}.c" for name in CORE)}
    files = len(CORE) + 1
    assert [(int(count), int(total)) for count, total, _ in told] == [(k, files) for k in range(1, files + 1)]


def wheel(tree, out, **environment):
    """Build a wheel without network, and return its file name and those of its files."""
    setup(tree, "bdist_wheel", "--dist-dir", str(out), **environment)
    (file,) = out.glob("*.whl")
    return file.name, zipfile.ZipFile(file).namelist()


def test_a_wheel_without_compiled_files_is_for_every_platform(tree, tmp_path_factory):
    name, files = wheel(tree, tmp_path_factory.mktemp("wheel"), RETROGRAD_PURE="1")
    assert name == "retrograd-1.2.3-py3-none-any.whl"  # the version is that of the package
    assert "retrograd/core/engine.py" in files
    assert [file for file in files if file.endswith((".so", ".pyd"))] == []


def test_the_source_distribution_has_all_that_a_build_needs(tree, tmp_path_factory):
    out = tmp_path_factory.mktemp("sdist")
    (tree / "src/retrograd/kernels/loops.hpp").touch()
    setup(tree, "sdist", "--dist-dir", str(out), RETROGRAD_PURE="1")  # the same as with a compiler
    (file,) = out.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        files = {Path(*Path(name).parts[1:]).as_posix() for name in archive.getnames()}
    needed = {"setup.py", "pyproject.toml", "LICENSE", "README.md", "src/retrograd/py.typed"}
    needed |= {f"src/retrograd/core/{name}.{suffix}" for name in HOT for suffix in ("py", "pxd")}
    needed |= {"src/retrograd/kernels/native.cpp", "src/retrograd/kernels/loops.hpp"}
    assert sorted(needed - files) == []
    assert [name for name in files if name.endswith((".c", ".so"))] == []


def test_each_module_to_compile_has_declarations():
    core = PROJECT / "src/retrograd/core"
    assert {path.stem for path in core.glob("*.pxd") if path.with_suffix(".py").exists()} == set(HOT)


def test_every_dependency_has_its_reason():
    lists = [*CONFIG["project"]["optional-dependencies"].values(), *CONFIG["dependency-groups"].values()]
    listed = {*CONFIG["project"]["dependencies"], *(name for names in lists for name in names if isinstance(name, str))}
    names = {re.match(r"[\w-]+", entry)[0] for entry in listed} - {"retrograd"}
    reasons = (PROJECT / "docs/decisions/0003-dependencies.md").read_text()
    assert sorted(name for name in names if f"| `{name}` |" not in reasons) == []


def test_every_stamp_of_the_makefile_installs_extras_and_groups_that_exist():
    makefile = (PROJECT / "Makefile").read_text()
    packages = dict(re.findall(r"^(\w+)_packages := (.*)$", makefile, re.MULTILINE))
    stamps = {*re.findall(r"\)/(\w+)\.stamp", makefile)} - {"build", "weights"}  # which have rules of their own
    assert sorted(packages) == sorted(stamps)
    tested = re.search(r"^TESTED := (.*)$", makefile, re.MULTILINE)[1]
    text = " ".join(packages.values()).replace("$(TESTED)", tested)
    groups = {*re.findall(r"--group (\w+)", makefile)}
    extras = {name for found in re.findall(r"\[(.*?)\]", text) for name in found.split(",")}
    assert groups == {*CONFIG["dependency-groups"]}
    assert sorted(extras - {*CONFIG["project"]["optional-dependencies"]}) == []


def test_every_rule_that_runs_our_python_installs_the_packages_before():
    makefile = (PROJECT / "Makefile").read_text()
    rules = re.findall(r"^([^\s#:=][^:=\n]*):([^=\n]*)\n((?:\t.*\n)*)", makefile, re.MULTILINE)
    runs = re.compile(r"\$\((?:VENV|PEERS)\)/bin/python (?:tools|tests|-m (?!pip))|\$\(PYTEST\)")
    derived = "$(DERIVED)"  # it is made with the packages of the target that needs it
    running = [(target, needs) for target, needs, recipe in rules if runs.search(recipe) or derived in needs]
    assert {"build", "test", "docs", "stubs"} <= {target for target, _ in running}
    packages = re.compile(r"\)/(?!build)\w+\.stamp")
    missing = [target for target, needs in running if not packages.search(needs.partition(derived)[0])]
    assert missing == [derived]


# Targets with packages of their own that .ci/run leaves out, and why they can't lack a package there.
NOT_IN_CI = {
    "arm": "it takes minutes and a package of 411 MB; a job of the forge runs it every night",
    "device": "it needs a GPU; its packages are those of make parity",
    "env": "it installs what lint needs, and runs nothing",
    "coverage": "it takes longer than make test; the packages are those of make lint",
    "format": "it writes what lint checks, with the same program",
    "sanitize": "it takes an hour; its script needs NumPy only",
    "docs-check": "it takes minutes and a browser; the packages are those of make docs and make test",
    "mutations": "it takes hours; test_mutations.py imports it with the packages of make test",
    "damage": "it takes minutes; test_damage.py imports it with the packages of make test",
    "faults": "it takes minutes; the packages are those of make test",
    "instructions": "it builds another version of the library; a job of the forge runs it",
    "pictures": "it takes minutes and writes pictures; the packages are those of make parity",
    "recovery": "it takes minutes; test_recovery.py imports it with the packages of make test",
}


def test_every_target_with_packages_is_run_before_a_change_is_merged():
    rules = re.findall(r"^([\w%-]+):.*\)/\w+\.stamp", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    script = (PROJECT / ".ci/run").read_text()
    words = " ".join(re.findall(r"^(?:run|make|for target in) (.*)$", script, re.MULTILINE))
    run = [rule for rule in rules if re.search(rf"(?<!\S){rule.replace('%', '[a-z]+')}(?![^ ;])", words)]
    assert {"demo", "docs", "test", "lint", "bench-%"} <= set(run)
    assert sorted({*rules} - {*run}) == sorted(NOT_IN_CI)


WORKFLOWS = PROJECT / ".github/workflows"


def test_the_workflows_of_the_forge_run_targets_that_exist():
    text = "".join(path.read_text() for path in sorted(WORKFLOWS.glob("*.yml")))
    lines = re.findall(r"run: make ([a-z -]+)$", text, re.MULTILINE)
    named = {name for line in lines for name in line.split()} | {*re.findall(r"target: ([a-z-]+)", text)}
    assert {"test", "lint", "parity", "docs", "fuzz"} <= named
    assert sorted(named - {*re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE)}) == []


def test_tests_wheels_and_classifiers_are_for_the_same_versions_of_python():
    tested = re.findall(r'python: "([\d.]+)", numpy: "(.*?)"', (WORKFLOWS / "tests.yml").read_text())
    versions = sorted({python for python, _ in tested})
    assert versions == [re.sub(r"cp3(\d+)-\*", r"3.\1", tag) for tag in CONFIG["tool"]["cibuildwheel"]["build"]]
    classified = [c.rpartition(" ")[2] for c in CONFIG["project"]["classifiers"] if "Python :: 3." in c]
    assert versions == classified
    assert CONFIG["project"]["requires-python"] == f">={versions[0]}"
    for python in versions:
        oldest, newest = (numpy for tested_python, numpy in tested if tested_python == python)
        assert (oldest[:2], newest) == ("==", ">=2")


def test_branches_that_add_lines_to_the_changelog_keep_both(tmp_path):
    def git(*command):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True, capture_output=True)

    def commit(text):
        (tmp_path / "CHANGELOG.md").write_text(text)
        git("add", "--all")
        git("commit", "--message", "change")

    shutil.copy(PROJECT / ".gitattributes", tmp_path)
    git("init")
    commit("## Unreleased\n\n- old\n")
    git("checkout", "-b", "branch")
    commit("## Unreleased\n\n- from the branch\n- old\n")
    git("checkout", "main")
    commit("## Unreleased\n\n- from main\n- old\n")
    git("merge", "branch")
    merged = (tmp_path / "CHANGELOG.md").read_text().splitlines()
    assert sorted(merged[2:]) == ["- from main", "- from the branch", "- old"]
