"""Run training scripts that are written for PyTorch under PyTorch or retrograd: only their import statements change.

A script is a file of `scripts/`. Its function `main(steps=5)` trains for so many steps and returns the losses, or the
losses and a dictionary of other numbers to compare. It fills all parameters and data from seeded NumPy generators, so
that both libraries start from the same numbers, and it does without random numbers of the library that reach the loss.
A script whose losses need not fall, such as a game between two networks, has a global `LOSSES_FALL = False`.
"""

import ast
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent / "scripts"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


@dataclass
class Run:
    """The results of a script."""

    losses: list[float]
    numbers: dict
    losses_fall: bool


class Imports(ast.NodeTransformer):
    """Replace the root package of PyTorch in import statements by another."""

    def __init__(self, package: str) -> None:
        self.package = package

    def renamed(self, module: str) -> str:
        """Return `torch.nn` as `retrograd.nn`, and modules of other packages as they are."""
        root, dot, rest = module.partition(".")
        return self.package + dot + rest if root == "torch" else module

    def visit_Import(self, node: ast.Import) -> ast.Import:
        names = []
        for alias in node.names:
            module = self.renamed(alias.name)
            bare = alias.asname is None and module != alias.name  # binds the name of the root package
            if not bare or "." in module:
                names.append(ast.alias(module, alias.asname))
            if bare:
                names.append(ast.alias(self.package, "torch"))
        return ast.copy_location(ast.Import(names), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.level or node.module is None:
            return node
        return ast.copy_location(ast.ImportFrom(self.renamed(node.module), node.names, 0), node)


def load(name: str, package: str = "retrograd") -> ModuleType:
    """Return the script as a module, with `package` imported in the place of PyTorch."""
    path = FOLDER / f"{name}.py"
    tree = ast.parse(path.read_text(), path)
    if package != "torch":
        tree = ast.fix_missing_locations(Imports(package).visit(tree))
    module = ModuleType(f"ported_{name}")
    exec(compile(tree, path, "exec"), module.__dict__)
    return module


def run(name: str, package: str = "retrograd", steps: int = 5) -> Run:
    """Run the script's main for some steps."""
    module = load(name, package)
    found = module.main(steps=steps)
    losses, numbers = found if isinstance(found, tuple) else (found, {})
    return Run(losses, numbers, getattr(module, "LOSSES_FALL", True))
