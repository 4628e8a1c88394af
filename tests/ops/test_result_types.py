"""The results of all samples of operators have the types that the stubs declare."""

import ast
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.core import call, registry
from retrograd.testing import samples_of, seeded

from ..case_groups import group_cases

PACKAGE = Path(rg.__file__).parent
STUBS = {"": "__init__", "nn.functional": "nn/functional", "linalg": "linalg", "special": "special", "fft": "fft"}


def declared_results(path: str) -> dict[str, set[str]]:
    """Return the annotations of the results of each function in a stub, one per overload."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse((PACKAGE / f"{path}.pyi").read_text())):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            found.setdefault(node.name, set()).add(ast.unparse(node.returns))
    return found


DECLARED = {home: declared_results(path) for home, path in STUBS.items()}
PUBLIC = sorted(name for name in registry if any(n.rpartition(".")[0] in STUBS for n in registry[name].public_names))


def agrees(result: object, declared: set[str]) -> bool:
    """Whether a result is of one of the declared types."""
    if hasattr(result, "_fields"):
        kinds = [text.removeprefix("return_types.") for text in declared if text.startswith("return_types.")]
        return any(getattr(rg.return_types, kind) is type(result) for kind in kinds)
    return any(text.startswith("tuple[") if isinstance(result, tuple) else text == "Tensor" for text in declared)


@group_cases
@pytest.mark.parametrize("name", PUBLIC)
def test_the_results_of_operators_have_the_types_of_the_stubs(name):
    op = registry[name]
    for args, params in samples_of(op) if getattr(op.definition, "samples", None) else ():
        with seeded():
            result = call(op, args, {**op.params, **params})
        for public in op.public_names:
            home, _, short = public.rpartition(".")
            if home in STUBS and (isinstance(result, tuple) or not op.definition.compose):
                declared = DECLARED[home].get(short, set())
                assert agrees(result, declared), f"{public} returned {type(result)}, the stub says {declared}"
