"""Results of custom operators: tensors, lists and tuples of tensors, and other values."""

import numbers
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.core.dtype import DType, bool_
from retrograd.core.op import AuxOutput
from retrograd.library.schema import Results


class Structure(AuxOutput):
    """The structure of a result: its tree, and the leaves that are no tensors."""

    def __init__(self, spec: Any, leaves: list) -> None:
        self.spec = spec
        self.leaves = leaves  # TENSOR marks the next tensor

    def path(self, number: int) -> tuple:
        """Return the path of one of the tensors in the result."""
        paths = [p for p, leaf in zip(self.spec.paths(), self.leaves, strict=True) if leaf is TENSOR]
        return paths[number]

    def rebuild(self, tensors: Any) -> Any:
        """Return the result with these tensors."""
        rest = iter(tensors)
        return optree.tree_unflatten(self.spec, [next(rest) if leaf is TENSOR else leaf for leaf in self.leaves])

    def rebuild_tensors(self, tensors: Any) -> Any:
        """Return the result with None for leaves that are no tensors."""
        rest = iter(tensors)
        return optree.tree_unflatten(self.spec, [next(rest) if leaf is TENSOR else None for leaf in self.leaves])

    def flatten_like(self, name: str, tree: Any) -> list:
        """Return for each tensor the corresponding value in a tree like the result; None covers its whole subtree."""
        try:
            found = self.spec.flatten_up_to(tree)
        except ValueError as error:
            raise RuntimeError(f"{name}: expected something like the result: {error}") from None
        return [x for x, leaf in zip(found, self.leaves, strict=True) if leaf is TENSOR]


TENSOR = object()
TYPES: dict[str, Any] = {  # the Python types of results
    "Tensor": Tensor,
    "int": numbers.Integral,
    "float": numbers.Real,
    "number": numbers.Number,
    "bool": (bool, bool_.type),
    "str": str,
    "dtype": DType,
    "any": object,
}


def check_and_flatten(name: str, result: Any, results: Results) -> tuple[list[Tensor], Structure]:
    """Return the tensors of a result, after checking it against the schema, and its structure."""
    _check(name, result, results, "the result")
    return flatten(result)


def flatten(tree: Any) -> tuple[list[Tensor], Structure]:
    """Return the tensors of a tree, and its structure."""
    leaves, spec = optree.tree_flatten(tree, none_is_leaf=True)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    return tensors, Structure(spec, [TENSOR if isinstance(leaf, Tensor) else leaf for leaf in leaves])


def _check(name: str, value: Any, kind: Results, what: str) -> None:
    """Raise if a result does not match the schema."""
    if isinstance(kind, tuple):
        _check_members(name, value, kind, what)
    elif kind.endswith("?") and value is None:
        return
    elif kind.rstrip("?").endswith("[]"):
        if not isinstance(value, (list, tuple)):
            raise _mismatch_error(name, what, "a list", value)
        for i, member in enumerate(value):
            _check(name, member, kind.rstrip("?")[:-2], f"{what}[{i}]")
    elif not isinstance(value, TYPES[kind.rstrip("?")]) or (
        isinstance(value, Tensor) and not kind.startswith("Tensor")
    ):
        raise _mismatch_error(name, what, kind, value)


def _check_members(name: str, value: Any, kinds: tuple, what: str) -> None:
    if not kinds:
        if value is not None and not (isinstance(value, tuple) and len(value) == 0):
            raise _mismatch_error(name, what, "None", value)
        return
    if not isinstance(value, tuple):
        raise _mismatch_error(name, what, f"a tuple of {len(kinds)}", value)
    if len(value) != len(kinds):
        raise RuntimeError(
            f"{name}: {what} must be a tuple of {len(kinds)}, as the schema says, got {len(value)} values"
        )
    for i, (member, kind) in enumerate(zip(value, kinds, strict=True)):
        _check(name, member, kind, f"{what}[{i}]")


def _mismatch_error(name: str, what: str, expected: str, value: Any) -> RuntimeError:
    return RuntimeError(f"{name}: {what} must be {expected}, as the schema says, got {type(value).__name__}")
