"""PyTorch's words for operators that refuse nested tensors, for the messages of ours that refuse them too.

Nothing is looked up here before an operator has failed.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from retrograd.core import Op, Tensor
from retrograd.core.errors import RUNTIME_CLASSES, OperandValueError, raise_as_runtime_error
from retrograd.nested.buffer_layout import component_shapes, get_layout, is_nested
from retrograd.ops.layout import jagged

Words = Callable[[str, tuple, dict], str | None]

_by_name: dict[str, Words] = {}


class FinalError(OperandValueError):
    """A refusal after which no other rule is tried, also if PyTorch raises a ValueError for it."""


def raise_in_pytorchs_words(op: Op, args: tuple, params: dict, error: Exception) -> None:
    """Raise an operator's error again as one that is a RuntimeError too, and begins with PyTorch's words if any fit."""
    words = _by_name.get(op.name, _binary if _is_binary(op) else _no_words)(op.name, args, params)
    raise_with_words(words, error)


def raise_with_words(words: str | None, error: Exception) -> None:
    """Raise an error again as one that is a RuntimeError too, and begins with the words."""
    if words is None or words in str(error):
        raise_as_runtime_error(error)
        return
    kind = type(error)
    if kind is RuntimeError:
        kind = FinalError
    elif not issubclass(kind, RuntimeError):
        kind = RUNTIME_CLASSES.get(kind, OperandValueError)
    raise kind(f"{words} ({error})").with_traceback(error.__traceback__) from error.__cause__


def _no_words(name: str, args: tuple, params: dict) -> str | None:
    return None


def _for(*names: str) -> Callable[[Words], Words]:
    def register(function: Words) -> Words:
        _by_name.update(dict.fromkeys(names, function))
        return function

    return register


def _is_binary(op: Op) -> bool:
    return bool(op.promotes) and len(op.schema.inputs) == 2


def _is_jagged(x: Any) -> bool:
    return isinstance(x, Tensor) and is_nested(x) and x.layout is jagged


def _nested(x: Any) -> bool:
    return isinstance(x, Tensor) and is_nested(x)


def _are_tensors(args: tuple) -> bool:
    return all(isinstance(a, Tensor) for a in args[:2])


def _mixed(both: str, args: tuple) -> str | None:
    """Return the words for one nested operand and one that is dense; None for others."""
    first, second = map(_nested, args[:2])
    if first == second:
        return None
    kinds = ("nested", "non-nested") if first else ("non-nested", "nested")
    return f"Expected {both} to be nested, but got a {kinds[0]} self and {kinds[1]} other"


def _dim(x: Tensor, dim: Any) -> Any:
    """Return a dimension counted from the front; out of range, or not one integer, unchanged."""
    return dim + x.ndim if isinstance(dim, int) and -x.ndim <= dim < 0 else dim


def _in_range(x: Tensor, dim: Any) -> bool:
    return isinstance(dim, int) and 0 <= dim < x.ndim


# ------------------------------------------------------------------------------------------ elementwise operators


def _binary(name: str, args: tuple, params: dict) -> str | None:
    if len(args) < 2:
        return None
    if any(map(_is_jagged, args[:2])):
        if not all(isinstance(a, Tensor) for a in args[:2]):
            other = next(a for a in args[:2] if not isinstance(a, Tensor))
            return f"NestedTensor {name}.Tensor: invalid argument {other}"
        shapes = " and ".join(str(tuple(a.shape)) for a in args[:2])
        return f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {shapes}"
    return _mixed("both self and other", args)


def copy_words(x: Tensor, src: Any) -> str | None:
    """Return the words for a copy of a nested tensor to one of another structure."""
    if not _nested(src):
        return None
    if _is_jagged(x):
        return f"copy_(): expected compatible input and src shapes, but got: {tuple(x.shape)} and {tuple(src.shape)}"
    return "copy_ only supports tensors that are the same size for Nested implementations"


# ----------------------------------------------------------------------------------------------------- reductions


def dims_words(name: str, x: Tensor, dims: Sequence[int]) -> str | None:
    """Return the words for a reduction along these dimensions, counted from the front."""
    if 0 not in dims:
        return None
    if _is_jagged(x):
        return (
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested "
            f"tensors"
        )
    if len(dims) > 1:
        return "NestedTensor only allows reduction of a single dimension for now."
    return f"NestedTensor can only be reduced across the last dimension for now got dimension {dims[0]} instead."


@_for("sum", "mean", "amax", "amin", "max_values", "min_values", "prod", "any", "all", "var", "std")
def _reduction(name: str, args: tuple, params: dict) -> str | None:
    dims = params.get("dim")
    if dims is None or not _nested(args[0]):
        return None
    found = [_dim(args[0], d) for d in ((dims,) if isinstance(dims, int) else dims)]
    return dims_words(name, args[0], found)


@_for("softmax", "log_softmax")
def _softmax(name: str, args: tuple, params: dict) -> str | None:
    if not _nested(args[0]) or _dim(args[0], params["dim"]) != 0:
        return None
    if _is_jagged(args[0]):
        return f"{name}(): not supported when reducing across the batch dimension for NestedTensor"
    return "Cannot apply softmax across nested dimension 0"


@_for("layer_norm")
def _layer_norm(name: str, args: tuple, params: dict) -> str | None:
    x, shape = args[0], params["normalized_shape"]
    if not _nested(x):
        return None
    if not _is_jagged(x):
        return _strided_layer_norm(x, shape)
    first = x.ndim - len(shape)
    if x.ndim <= 2:
        return "layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions"
    if first <= 0:
        return "layer_norm(): not supported when normalizing over the batch dimension for NestedTensor"
    if get_layout(x).has_holes and first <= get_layout(x).ragged.start:
        holes = "not supported where lengths is not None if operating on the ragged dimension for NestedTensor"
        return f"layer_norm(): {holes}"
    return None


def _strided_layer_norm(x: Tensor, shape: Sequence[int]) -> str | None:
    regular = [size if isinstance(size, int) else None for size in x.shape[x.ndim - len(shape) :]]
    if x.ndim - len(shape) < get_layout(x).ragged.stop:
        return "normalized_shape extends into irregular dimensions for the nested tensor"
    for d, (given, size) in enumerate(zip(shape, regular, strict=True)):
        if given != size:
            return f"The shape at dimension {d} of normalized_shape doesn't match the input"
    return None


# ------------------------------------------------------------------------------------------------- joins and parts


@_for("cat")
def _cat(name: str, args: tuple, params: dict) -> str | None:
    if not all(map(_nested, args)):
        return "cat(): expected each tensor in given list to be nested"
    return "cat(): expected all nested tensors to have matching ragged structures outside of the concatenated dim"


@_for("chunk", "split", "split_with_sizes")
def _parts(name: str, args: tuple, params: dict) -> str | None:
    x = args[0]
    dim = _dim(x, params.get("dim", 0))
    if not _nested(x) or not _in_range(x, dim):
        return None
    if _is_jagged(x):
        sizes = any(isinstance(given, (tuple, list)) for given in params.values())
        called = "split_with_sizes" if sizes else name
        return f"{called}(): not supported for NestedTensor on ragged dim" if dim in get_layout(x).ragged else None
    start = "Chunk" if name == "chunk" else "split_with_sizes"
    if not x.is_contiguous():
        return f"{start.lower()} expects `self` to be contiguous."
    return (
        f"{start} for nested tensors is currently only supported for the last dimension." if dim < x.ndim - 1 else None
    )


# ----------------------------------------------------------------------------------------------- shapes and views


@_for("transpose")
def _transpose(name: str, args: tuple, params: dict) -> str | None:
    x = args[0]
    dims = [_dim(x, params[key]) for key in ("dim0", "dim1")]
    if not _nested(x) or not all(_in_range(x, d) for d in dims):
        return None
    return "Nested tensor dimension 0 cannot be transposed"


@_for("permute")
def _permute(name: str, args: tuple, params: dict) -> str | None:
    x, dims = args[0], params["dims"]
    if not _is_jagged(x):
        return None
    if len(dims) != x.ndim:
        return (
            f"permute(): number of dimensions in the tensor input ({x.ndim}) does not match the length of the desired "
            f"ordering of dimensions ({len(dims)})."
        )
    found = [_dim(x, d) for d in dims]
    if len(set(found)) < len(found):
        return "permute(): duplicate dims are not allowed."
    return "Permute is not supported on the batch dimension for jagged NT" if found[0] else None


@_for("view", "reshape")
def _view(name: str, args: tuple, params: dict) -> str | None:
    x, shape = args[0], list(params.get("shape", params.get("size", ())))
    if not _nested(x):
        return None
    if not len(x):
        return "empty nested tensor cannot be reshaped"
    if not shape:
        return "shape '[]' is invalid for a nested tensor"
    if shape[0] not in (-1, len(x)) or (shape[0] == -1 and not _is_jagged(x)):
        return f"{name}: For now nested {name} cannot change or infer the implicit batch dimension"
    if shape.count(-1) > 1 and not _is_jagged(x):
        return "only one dimension can be inferred"
    for sizes in component_shapes(x):
        known = [size for size in shape[1:] if size != -1]
        if all(isinstance(s, int) for s in (*known, *sizes)) and prod(known) != prod(sizes):
            return f"shape '{shape}' is invalid for input of size {prod(sizes)}"
    return None


# -------------------------------------------------------------------------------------------------------- products


@_for("bmm")
def _bmm(name: str, args: tuple, params: dict) -> str | None:
    if not _are_tensors(args):
        return None
    for number, x in enumerate(args[:2], 1):
        if x.ndim != 3:
            return f"batch{number} must be a 3D tensor"
    a, b = args[:2]
    if len(a) != len(b):
        return f"Expected size for the 1st dimension of batch2 tensor to be: {len(a)} but got: {len(b)}."
    for number, (left, right) in enumerate(zip(_shapes(a), _shapes(b), strict=True)):
        if left[-1] != right[-2]:
            return (
                f"{number}-th nested matrices in batch cannot be multiplied ({left[0]}x{left[1]} and "
                f"{right[0]}x{right[1]})"
            )
    return None


@_for("matmul")
def _matmul(name: str, args: tuple, params: dict) -> str | None:
    if not _are_tensors(args):
        return None
    a, b = args[:2]
    mixed = _mixed("both", args)
    if mixed is not None:
        return mixed
    for place, x in (("1st", a), ("2nd", b)):
        if x.ndim < 3:
            return (
                f"matmul: For nested tensors, only inputs with >= 3 dims are currently supported. {place} input has "
                f"rank: {x.ndim}"
            )
    if len(a) != len(b):
        return f"matmul: Expected size for the 1st dimension of 2nd input tensor to be: {len(a)} but got: {len(b)}."
    for left, right in zip(_shapes(a), _shapes(b), strict=True):
        if left[:-2] != right[:-2]:
            return (
                f"matmul: For nested tensors, batch dimensions must have the same sizes, no broadcasting is currently "
                f"performed. Got batch shapes for self {left[:-2]} and batch shapes for mat2 {right[:-2]}"
            )
        if left[-1] != right[-2]:
            return (
                f"matmul: Nested tensors cannot be matrix multiplied, last dimension of self has sizes {left[-1]}, "
                f"second last dimension of mat2 has sizes {right[-2]}"
            )
    return None


def _shapes(x: Tensor) -> list[tuple]:
    """Return the shapes of the components, or of the slices of a dense tensor."""
    return component_shapes(x) if is_nested(x) else [tuple(x.shape[1:])] * len(x)


@_for("linear")
def _linear(name: str, args: tuple, params: dict) -> str | None:
    x, weight = args[:2]
    if not _are_tensors(args) or not _nested(x):
        return None
    if _nested(weight):
        return "Linear does not support nested weight when input is a nested tensor."
    if x.ndim != 3 or weight.ndim != 2:
        return (
            f"Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: {x.ndim}. Dense "
            f"tensor dim: {weight.ndim}"
        )
    if not x.is_contiguous():
        return "for now linear only supports contiguous nested tensor"
    last = [sizes[-1] for sizes in component_shapes(x)]
    if len(set(last)) > 1:
        return (
            f"Expected all tensors in nested tensor to have the same trailing dimension, instead last dimension "
            f"equals: {last}"
        )
    return (
        f"Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' to equal "
        f"'weight.size(1), but got: last_dim = {last[0]}, and weight.size(1) = {weight.shape[1]}"
    )
