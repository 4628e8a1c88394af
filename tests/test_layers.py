"""Layers of the source tree: permitted imports, checked on the syntax without importing anything."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = "retrograd"
SOURCE = Path(__file__).parents[1] / "src" / ROOT

# From the top down. A part (a sub-package or module right below the root) imports itself and lower rows.
LEVELS = (
    ("cli", "module_aliases", "torch_alias"),
    ("hips", "_custom_ops", "_C"),
    ("bench",),
    ("scipy", "sklearn"),
    ("numpy",),
    ("distributed",),
    ("distributions", "ode", "pipelining"),
    ("compiler", "export", "fx", "higher_order", "implicit"),
    ("accelerator",),
    ("cuda", "hub", "multiprocessing", "profiler", "serialization", "version"),
    ("amp",),
    ("interop", "nn", "optim", "nested", "sparse", "library", "func", "autograd", "utils"),
    ("overrides",),
    ("levels",),
    (
        "backends",
        "cpu",
        "fft",
        "futures",
        "linalg",
        "masked",
        "quasirandom",
        "random",
        "return_types",
        "signal",
        "special",
        "types",
    ),
    ("mps", "mtia", "xpu"),
    ("ops",),
    ("backend", "kernels"),
    ("core",),
    ("foundation",),
)
# Further permitted imports: neighbors in the row, and for the command the public names of the root.
EXCEPTIONS = {
    "cli": {""},
    "version": {""},
    "export": {"fx", "higher_order"},
    "higher_order": {"fx"},
    "nn": {"autograd", "compiler"},  # on first use, for Module.compile
    "optim": {"autograd", "nn"},
    "autograd": {"interop"},
    "utils": {"autograd", "fx", "interop", "nn"},  # fx on first use, for SummaryWriter.add_graph
    "library": {"autograd"},
    "interop": {"nested", "sparse"},
    "backend": {"kernels"},
}
ABOVE_ALL = {"", "__main__", "testing"}  # the root's __init__ and these two may import anything, but not be imported
NUMPY = {"core", "backend", "kernels", "interop", "numpy", "testing"}
OPTIONAL = {  # third parties that may be imported inside a function
    "IPython", "PIL", "awkward", "cupy", "matplotlib", "mpi4py", "pyarrow", "ray", "rich", "scipy", "sklearn",
    "tensorboardX", "typer",
}  # fmt: skip
LAZY = ("lazy_module", "lazy_names")  # of foundation.lazy_imports
IMPORTERS = {"lazy_module": 0, "lazy_names": 1, "import_module": 0, "__import__": 0}  # the argument that names modules
DYNAMIC = {  # modules that import by names that only the user, the file system or the imports of another module know
    f"{ROOT}.backend.array_library", f"{ROOT}.foundation.alias_modules", f"{ROOT}.foundation.lazy_imports",
    f"{ROOT}.bench.subjects", f"{ROOT}.cli.plan", f"{ROOT}.hips.aliases", f"{ROOT}.torch_alias",
}  # fmt: skip
LEVEL_OF = {part: level for level, parts in enumerate(reversed(LEVELS)) for part in parts}


@dataclass(frozen=True)
class Import:
    """One imported module, and the importing line."""

    importer: str
    target: str
    line: int
    late: bool = False  # inside a function
    typing: bool = False  # under `if TYPE_CHECKING:`, so it never runs
    lazy: bool = False  # by lazy_module or lazy_names, on first use
    hidden: bool = False  # by a call whose target is unknown before it runs

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


def part(module: str) -> str:
    """Return the sub-package or module right below the root: `retrograd.nn.init` -> `nn`, the root itself -> ''."""
    return module.partition(".")[2].partition(".")[0]


def sources(root: Path) -> dict[str, Path]:
    """Return module name -> file, for every module below the package folder `root`."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        names = path.relative_to(root.parent).with_suffix("").parts
        found[".".join(names[:-1] if names[-1] == "__init__" else names)] = path
    return found


Statement = tuple[ast.stmt, bool, bool]


def statements(node: ast.AST, late: bool = False, typing: bool = False) -> Iterator[Statement]:
    """Yield every import statement below node, with whether a function or `if TYPE_CHECKING:` contains it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late, typing
        elif not isinstance(child, ast.expr):  # expressions contain no statements
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from statements(child, late or inside, typing or guarded)


def base(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """Return the absolute name of the module that `from ... import` imports from."""
    if not node.level:
        return node.module or ""
    parents = module.split(".")
    kept = parents[: len(parents) - node.level + is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def targets(node: ast.stmt, module: str, files: dict[str, Path]) -> set[str]:
    """Return the modules that an import statement names; `from package import submodule` names the submodule."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    origin = base(node, module, files[module].name == "__init__.py")
    full = [f"{origin}.{alias.name}" for alias in node.names]
    return {name if name in files else origin for name in full}


def imports(root: Path) -> list[Import]:
    """Return every import in every module below root."""
    files = sources(root)
    return [edge for module in files for edge in imports_of_module(module, files)]


def imports_of_module(module: str, files: dict[str, Path]) -> list[Import]:
    """Return every import in a module. Its tree goes at once: the garbage collector would visit the trees of all."""
    text = files[module].read_text()
    tree = ast.parse(text, str(files[module]))
    by_statement = [
        Import(module, target, node.lineno, late, typing)
        for node, late, typing in statements(tree)
        for target in sorted(targets(node, module, files))
    ]
    return [*by_statement, *(by_call(tree, module) if any(name in text for name in IMPORTERS) else ())]


def by_call(tree: ast.Module, module: str) -> Iterator[Import]:
    """Yield the imports by calls of lazy_module and lazy_names, and those of our modules by import_module."""
    for node in ast.walk(tree):
        called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and called in IMPORTERS and len(node.args) > IMPORTERS[called]:
            given = node.args[IMPORTERS[called]]
            names = literals(given)
            if called in LAZY and names is not None:
                yield from [Import(module, name, node.lineno, lazy=True) for name in names]
            elif called in LAZY or names is None or any(map(is_ours, names)):
                yield Import(module, ast.unparse(given), node.lineno, hidden=True)


def literals(node: ast.expr) -> list[str] | None:
    """Return the strings of a literal, or of the values of one that is a dict; None for another expression.

    An f-string counts as its constant beginning.
    """
    parts = node.values if isinstance(node, ast.Dict) else [node]
    starts = [part.values[0] if isinstance(part, ast.JoinedStr) else part for part in parts]
    found = [start.value for start in starts if isinstance(start, ast.Constant) and isinstance(start.value, str)]
    return found if len(found) == len(parts) else None


@functools.cache
def imports_of_source() -> list[Import]:
    return imports(SOURCE)


def is_ours(module: str) -> bool:
    return module.split(".")[0] == ROOT


def goes_up(importer: str, target: str) -> str:
    """Return why a part may not import another, or ''."""
    if importer in ABOVE_ALL or importer == target or target in EXCEPTIONS.get(importer, ()):
        return ""
    if target in ABOVE_ALL:
        return f"nobody imports {ROOT}{'.' + target if target else ' itself'}"
    for name in (importer, target):
        if name not in LEVEL_OF:
            return f"{name} has no row in LEVELS"
    if LEVEL_OF[importer] > LEVEL_OF[target]:
        return ""
    return f"{importer} stands {'beside' if LEVEL_OF[importer] == LEVEL_OF[target] else 'below'} {target}"


def hidden(edges: list[Import]) -> Iterator[str]:
    for edge in edges:
        if edge.hidden and edge.importer not in DYNAMIC and part(edge.importer) not in ABOVE_ALL:
            yield f"{edge} by a call: name the module literally, for lazy_module or lazy_names"


def upward(edges: list[Import]) -> Iterator[str]:
    for edge in edges:
        if is_ours(edge.target) and (why := goes_up(part(edge.importer), part(edge.target))):
            yield f"{edge}: {why}"


def cycles(edges: list[Import]) -> Iterator[str]:
    graph: dict[str, set[str]] = {}
    for edge in edges:
        if is_ours(edge.target) and not edge.typing and not edge.lazy:
            graph.setdefault(edge.importer, set()).add(edge.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield "import cycle: " + " -> ".join(reversed(error.args[1]))


def late(edges: list[Import]) -> Iterator[str]:
    for edge in edges:
        if edge.late and edge.target.split(".")[0] not in OPTIONAL:
            yield f"{edge} inside a function"


def numpy_outside(edges: list[Import]) -> Iterator[str]:
    for edge in edges:
        if edge.target.split(".")[0] == "numpy" and part(edge.importer) not in NUMPY:
            yield f"{edge}: only {', '.join(sorted(NUMPY))} see NumPy"


RAGGED = f"{ROOT}.backend.ragged"
# Modules that may use ragged arrays: their package, their kernels, the law about them, writers of structures, and the
# root, which offers nested to the lower layers.
RAGGED_PARTS = {"nested", "backend"}
RAGGED_MODULES = {ROOT, f"{ROOT}.testing.nested_law", f"{ROOT}.interop.json_values", f"{ROOT}.interop.pytorch_nested"}


def ragged_outside(edges: list[Import]) -> Iterator[str]:
    for edge in edges:
        known = part(edge.importer) in RAGGED_PARTS or edge.importer in RAGGED_MODULES
        if not known and (edge.target == RAGGED or edge.target.startswith(f"{ROOT}.nested")):
            yield f"{edge}: only nested and its kernels know of ragged arrays"


RULES = (hidden, upward, cycles, late, numpy_outside, ragged_outside)


def violations(root: Path) -> list[str]:
    edges = imports(root)
    return [text for rule in RULES for text in rule(edges)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_source_tree_keeps_its_layers(rule):
    assert list(rule(imports_of_source())) == []


def test_every_part_of_the_source_tree_has_a_row():
    parts = {part(module) for module in sources(SOURCE)}
    assert parts - ABOVE_ALL - set(LEVEL_OF) == set()


def test_the_source_tree_is_read():
    found = sources(SOURCE)
    assert f"{ROOT}.core.level" in found
    assert any(part(edge.importer) == "core" for edge in imports_of_source())


# Each a small tree with one fault: {file: text}, and a part of the expected message.
FAULTS = {
    "upward": (
        {"core/op.py": "from retrograd.ops import add"},
        "core.op:1 imports retrograd.ops: core stands below ops",
    ),
    "ragged arrays, known outside": (
        {"nn/layer.py": "from retrograd.backend.ragged import Ragged", "backend/ragged.py": "Ragged = 1"},
        "nn.layer:1 imports retrograd.backend.ragged: only nested and its kernels know of ragged arrays",
    ),
    "upward, relative": ({"core/op.py": "from ..ops import add"}, "core.op:1 imports retrograd.ops"),
    "upward, from __init__": ({"core/__init__.py": "from ..ops import add"}, "core:1 imports retrograd.ops"),
    "upward, submodule": ({"ops/add.py": "from ..nn import init"}, "ops.add:1 imports retrograd.nn.init"),
    "upward, typing only": (
        {"core/op.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import retrograd.ops"},
        "core.op:3 imports retrograd.ops",
    ),
    "neighbour": ({"func/grad.py": "import retrograd.autograd"}, "func stands beside autograd"),
    "neighbour the other way": ({"autograd/grad.py": "import retrograd.nn"}, "autograd stands beside nn"),
    "testing": ({"cli/demo.py": "from retrograd.testing import laws"}, "nobody imports retrograd.testing"),
    "the root": ({"nn/init.py": "import retrograd as rg"}, "nobody imports retrograd itself"),
    "unknown part": ({"extras/a.py": "import retrograd.core"}, "extras has no row"),
    "cycle": (
        {"core/op.py": "from . import level", "core/level.py": "from retrograd.core.op import Op"},
        "import cycle: ",
    ),
    "late": ({"cli/demo.py": "def f():\n    import json"}, "cli.demo:2 imports json inside a function"),
    "late, in a method": (
        {"cli/demo.py": "class A:\n    def f(self):\n        from ..core import op"},
        "inside a function",
    ),
    "upward, by import_module": (
        {"core/op.py": "import importlib\ndef f():\n    return importlib.import_module('retrograd.ops')"},
        "core.op:3 imports 'retrograd.ops' by a call: name the module literally, for lazy_module or lazy_names",
    ),
    "by import_module of a computed name": (
        {"nn/layer.py": "from importlib import import_module\nf = import_module(f'{__name__}.init')"},
        "nn.layer:2 imports f'{__name__}.init' by a call",
    ),
    "lazy module, computed": (
        {"nn/layer.py": "from retrograd.foundation.lazy_imports import lazy_module\nf = lazy_module(__name__)"},
        "nn.layer:2 imports __name__ by a call",
    ),
    "upward, by lazy_module": (
        {"core/op.py": "from retrograd.foundation.lazy_imports import lazy_module\nlazy_module('retrograd.ops')"},
        "core.op:2 imports retrograd.ops: core stands below ops",
    ),
    "upward, by lazy_names": (
        {"core/op.py": "__getattr__, _ = lazy_imports.lazy_names(__name__, {'add': 'retrograd.ops'})"},
        "core.op:1 imports retrograd.ops: core stands below ops",
    ),
    "numpy": ({"ops/add.py": "import numpy.linalg as la"}, "ops.add:1 imports numpy.linalg: only"),
    "numpy, from": ({"nn/init.py": "from numpy import prod"}, "nn.init:1 imports numpy: only"),
}

SOUND = {
    "__init__.py": "from retrograd.core import op\nfrom retrograd import nn",
    "testing.py": "import numpy as np\nimport retrograd as rg",
    "core/__init__.py": "import numpy as np\nfrom .op import Op",
    "core/op.py": "import numpy as np\nfrom . import level",
    "core/level.py": "import typing\nif typing.TYPE_CHECKING:\n    from retrograd.core.op import Op",
    "ops/add.py": "from retrograd.core.op import Op\nfrom ..core import level",
    "autograd/grad.py": "from retrograd.ops.add import add",
    "optim/adam.py": "from retrograd.nn import init\nfrom retrograd.autograd.grad import no_grad",
    "nn/__init__.py": "from . import init\n__getattr__, _ = lazy_names(__name__, {'Layer': 'retrograd.nn.init'})",
    "nn/init.py": "from math import prod",
    "pipelining/run.py": "from retrograd.nn import Module\ndef f():\n    from mpi4py import MPI",
    "cli/__init__.py": "import retrograd as rg",
    "cli/page.py": "import importlib\nimportlib.import_module('json')\nimportlib.import_module(f'scipy.{__name__}')",
    "cli/draw.py": "def f():\n    import matplotlib.pyplot as plt",
}


def grow(folder: Path, files: dict[str, str]) -> Path:
    """Write a package tree and return its root; packages get an empty __init__ unless files give one."""
    root = folder / ROOT
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
        (path.parent / "__init__.py").touch()
    return root


@pytest.mark.parametrize("name", FAULTS)
def test_a_seeded_violation_is_found(name, tmp_path):
    files, message = FAULTS[name]
    stubs = {"ops/__init__.py": "", "nn/init.py": ""}
    found = violations(grow(tmp_path, stubs | files))
    assert len(found) == 1
    assert message in found[0]


def test_a_sound_tree_is_clean(tmp_path):
    assert violations(grow(tmp_path, SOUND)) == []
