"""Parse components given as tensors, arrays, numbers, and nested lists of these."""

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.ops.create import as_tensor, tensor

NUMBERS = {bool, int, float, complex}


class Leaf(NamedTuple):
    """A component, or one of a nested component; `weak` if Python numbers, which take the dtype of others."""

    given: Any
    value: Tensor
    weak: bool
    path: str


def is_list(obj: object) -> bool:
    """Whether an object is a list of components or numbers."""
    return isinstance(obj, (list, tuple))


def shape_of(given: Any) -> tuple | None:
    """Return the shape of a number or of lists of numbers; None if members differ, or are not numbers."""
    if not is_list(given):
        scalar = hasattr(given, "dtype") and not isinstance(given, Tensor) and not given.ndim
        return () if type(given) in NUMBERS or scalar else None
    if set(map(type, given)) <= NUMBERS:
        return (len(given),)
    shapes = set(map(shape_of, given))
    first = shapes.pop()
    return None if shapes or first is None else (len(given), *first)


def parse_components(name: str, given: Any, dtype: Any, apart: bool) -> list:
    """Convert the listed components to tensors of one dtype, nested components to lists; `apart` detaches them."""
    tree = _parse_list(name, given, dtype, "")
    common = _find_dtype(name, list(_leaves(tree))) if dtype is None else dtypes.DType(dtype)
    settled: list = _cast_leaves(tree, common, apart)
    return settled


def _parse_list(name: str, given: Any, dtype: Any, path: str) -> list:
    return [_parse_member(name, member, dtype, f"{path}, {i}" if path else str(i)) for i, member in enumerate(given)]


def _parse_member(name: str, given: Any, dtype: Any, path: str) -> Any:
    numbers = shape_of(given) is not None
    if numbers or hasattr(given, "ndim"):
        weak = numbers and not hasattr(given, "dtype")
        return Leaf(given, tensor(given, dtype) if weak else as_tensor(given), weak, path)
    if is_list(given):
        return _parse_list(name, given, dtype, path)
    raise TypeError(f"{name}: component {path} must be a tensor, an array or a list, got {type(given).__name__}")


def _leaves(tree: list) -> Iterator[Leaf]:
    for member in tree:
        if isinstance(member, Leaf):
            yield member
        else:
            yield from _leaves(member)


def _find_dtype(name: str, leaves: list[Leaf]) -> Any:
    """Return the dtype of the tensors and arrays, which have to agree; without any, that of all numbers."""
    given = [leaf for leaf in leaves if not leaf.weak]
    for leaf in given[1:]:
        if leaf.value.dtype != given[0].value.dtype:
            raise RuntimeError(
                f"{name}: When constructing a nested tensor, all tensors in list must have the same dtype, but "
                f"component {given[0].path} has {given[0].value.dtype}, component {leaf.path} has {leaf.value.dtype}; "
                f"give dtype="
            )
    filled = [leaf.value.dtype for leaf in leaves if leaf.weak and leaf.value.numel()]
    if given:
        _check_numbers(name, given[0], [leaf for leaf in leaves if leaf.weak])
        return given[0].value.dtype
    return reduce(dtypes.promote, filled) if filled else dtypes.get_default_dtype()


def _check_numbers(name: str, given: Leaf, weak: list[Leaf]) -> None:
    """Refuse Python numbers of a kind that the dtype of the tensors cannot represent, as 1.5 for int64."""
    for leaf in weak:
        if leaf.value.numel() and dtypes.category(leaf.value.dtype) > dtypes.category(given.value.dtype):
            raise RuntimeError(
                f"{name}: component {given.path} has dtype {given.value.dtype}, which can't hold the numbers of "
                f"component {leaf.path}; give dtype="
            )


def _cast_leaves(tree: Any, dtype: Any, apart: bool) -> Any:
    """Convert the leaves to one dtype; numbers are parsed again, because they may have lost digits."""
    if not isinstance(tree, Leaf):
        return [_cast_leaves(member, dtype, apart) for member in tree]
    if tree.weak and tree.value.dtype != dtype:
        return tensor(tree.given, dtype)
    out = as_tensor(tree.value, dtype)
    return out.detach() if apart else out
