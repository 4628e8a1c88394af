"""Tensors of all dtypes in safetensors files, and the check that a file has the expected ones."""

from collections.abc import Mapping
from pathlib import Path

from retrograd.core import Aval, Tensor, operator_named
from retrograd.core.dtype import is_floating
from retrograd.interop.json_values import StorageError
from retrograd.interop.safetensors import load_file

_detach, _as_real, _as_complex = map(operator_named, ("detach", "view_as_real", "view_as_complex"))


def encode_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor's values in a dtype that the file supports: complex ones as pairs."""
    plain = _detach(tensor)
    return _as_real(plain) if plain.dtype.kind == "c" else plain


def read_tensors(path: Path, expected: Mapping[str, Aval]) -> dict[str, Tensor]:
    """Return the tensors of a file by name; StorageError unless it has those with the expected shapes and dtypes."""
    try:
        found = load_file(path)
    except Exception as error:  # the reader of a damaged file may raise anything
        raise StorageError(f"it can't be read: {error}") from error
    if found.keys() != expected.keys():
        missing, more = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
        raise StorageError(f"its tensors are not those of the graph: {missing} are missing, {more} are not expected")
    return {name: decode_tensor(name, aval, found[name]) for name, aval in expected.items()}


def decode_tensor(name: str, aval: Aval, tensor: Tensor) -> Tensor:
    """Return the tensor of a shape and dtype from its stored values; StorageError on a mismatch."""
    restored = tensor
    if aval.dtype.kind == "c" and tensor.ndim and tensor.shape[-1] == 2 and is_floating(tensor.dtype):
        restored = _as_complex(tensor) if tensor.dtype.itemsize >= 4 else tensor
    if restored.aval != aval:
        raise StorageError(f"{name} is {aval} by the graph, but {tensor.aval} by the tensors' file")
    return restored
