"""Read and write safetensors files: named tensors and text, loaded without running code."""

import json
import os
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from safetensors import SafetensorError, safe_open

import retrograd.ops  # noqa: F401  (tensors get their methods)
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.atomic_write import atomic_replace, open_regular_file, shorten
from retrograd.ops.create import from_numpy

__all__ = ["load_file", "load_metadata", "load_slices", "save_file"]

ZIP = b"PK\x03\x04"  # how files of rg.save begin
# The format also has floats of 4 and 6 bits.
DTYPES = {name: facts.safetensors for name, facts in dtypes.TABLE.items() if facts.safetensors}


def save_file(
    tensors: Mapping[str, Tensor], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors by name, and `metadata` (text by name), as one safetensors file.

    tensors: any shapes; integers of 8 bits or more, bool, floats of 8 bits, bfloat16, float16 to float64 and complex64.
    A view is written as its own elements, a tensor that requires grad without its graph. An existing file is replaced
    atomically.

    Raises TypeError, before anything is written, for a name that is not a string, a value that is not a tensor, a dtype
    that the format lacks, and metadata that is not text.

    Source of the format: https://github.com/huggingface/safetensors, "Format".

    >>> import retrograd as rg, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"weight": rg.ones(2)}, f"{folder}/a.safetensors", {"made by": "a doctest"})
    ...     load_file(f"{folder}/a.safetensors"), load_metadata(f"{folder}/a.safetensors")
    ({'weight': tensor([1., 1.])}, {'made by': 'a doctest'})
    """
    if not isinstance(tensors, Mapping):
        way = "save its state_dict()" if callable(getattr(tensors, "state_dict", None)) else "give each tensor a name"
        raise TypeError(f"save_file: expected a dict of tensors by name, got {type(tensors).__name__}; {way}")
    arrays = {_checked_name(name): _array(name, tensor) for name, tensor in tensors.items()}
    text = _checked_text(metadata or {})
    with atomic_replace(path) as unfinished, open(unfinished, "wb") as file:
        _write(file, arrays, text)


def _write(file, arrays, text):
    """Write a header, and the memory of the arrays without copies: the wider dtypes first, so that all are aligned."""
    header, end = {} if text is None else {"__metadata__": text}, 0
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    for name, array in ordered:
        header[name] = {
            "dtype": DTYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [end, end + array.nbytes],
        }
        end += array.nbytes
    data = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    data += b" " * (-len(data) % 8)
    file.write(len(data).to_bytes(8, "little") + data)
    for _, array in ordered:
        file.write(array.reshape(-1).view(np.uint8).data)


def load_file(path: str | os.PathLike[str], *, names: Collection[str] | None = None) -> dict[str, Tensor]:
    """Load the tensors of a safetensors file by name, in new memory; none requires grad.

    names: those to read, of which the file may lack some; None: all.

    Raises FileNotFoundError if there is no file, ValueError for a damaged one, and TypeError for dtypes that NumPy
    lacks, such as floats of 4 bits.
    """
    return {name: from_numpy(array) for name, array in _read(path, lambda file: _arrays(file, path, names)).items()}


def load_ranges(path: str | os.PathLike[str], name: str, ranges: Sequence[tuple[int, int]]) -> list[Tensor]:
    """Load several ranges of elements of a tensor of a safetensors file, as `load_slices` loads one.

    >>> import retrograd as rg, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"x": rg.arange(6.0)}, f"{folder}/a.safetensors")
    ...     load_ranges(f"{folder}/a.safetensors", "x", [(0, 2), (5, 6)])
    [tensor([0., 1.]), tensor([5.])]
    """
    with open_regular_file(path) as file:
        start, header = _read_header(file, path)
        return [_read_range(file, path, start, header[name], name, low, high) for low, high in ranges]


def load_slices(path: str | os.PathLike[str], ranges: Mapping[str, tuple[int, int]]) -> dict[str, Tensor]:
    """Load a range of elements of each named tensor of a safetensors file, and read no others, in new memory.

    ranges: by name, the first element and the one after the last, in row-major order.

    Raises KeyError for a name that the file lacks, ValueError for a damaged file or a range outside of the tensor,
    TypeError for dtypes that NumPy lacks.

    >>> import retrograd as rg, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"x": rg.arange(6.0).reshape(2, 3)}, f"{folder}/a.safetensors")
    ...     load_slices(f"{folder}/a.safetensors", {"x": (2, 4)})
    {'x': tensor([2., 3.])}
    """
    with open_regular_file(path) as file:
        start, header = _read_header(file, path)
        return {name: _read_range(file, path, start, header[name], name, *ranges[name]) for name in ranges}


def _read_header(file, path):
    """Return the first position after the header of a safetensors file, and the header."""
    size = os.fstat(file.fileno()).st_size
    start = int.from_bytes(file.read(8), "little")
    if start > size:
        raise ValueError(f"{os.fspath(path)} is damaged or no safetensors file: its header is {start} bytes long")
    return 8 + start, json.loads(file.read(start))


def _read_range(file, path, start, entry, name, low, high):
    """Return the elements from `low` to `high` of a tensor, which is described by an entry of the header."""
    kinds = {kind: name for name, kind in DTYPES.items()}
    if entry["dtype"] not in kinds:
        raise TypeError(f"{os.fspath(path)}: {name!r} is of type {entry['dtype']}, which NumPy does not have")
    dtype = np.dtype(dtypes.as_dtype(kinds[entry["dtype"]]))
    begin, end = entry["data_offsets"]
    if not 0 <= low <= high <= (end - begin) // dtype.itemsize:
        raise ValueError(f"{os.fspath(path)}: elements {low} to {high} of {name!r}, which has {entry['shape']}")
    file.seek(start + begin + low * dtype.itemsize)
    data = bytearray((high - low) * dtype.itemsize)
    if file.readinto(data) != len(data):
        raise ValueError(f"{os.fspath(path)} is damaged or no safetensors file: it ends early")
    return from_numpy(np.frombuffer(data, dtype))


def load_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Load the text of a safetensors file by name; errors as those of `load_file`."""
    return _read(path, lambda file: dict(file.metadata() or {}))


def _read(path, take):
    with open_regular_file(path) as file:  # gives a clear error if it cannot be read, and does not block on a pipe
        start = file.read(len(ZIP))
    if start == ZIP:
        raise ValueError(f"{os.fspath(path)} is no safetensors file, but one of rg.save or torch.save: name it .pt")
    try:
        with safe_open(path, framework="np") as file:
            return take(file)
    except SafetensorError as error:
        raise ValueError(f"{os.fspath(path)} is damaged or no safetensors file: {shorten(str(error))}") from error


def _arrays(file, path, names):
    stored = [name for name in file.keys() if names is None or name in names]  # noqa: SIM118 (not a mapping)
    kinds = {name: file.get_slice(name).get_dtype() for name in stored}
    for name, kind in kinds.items():
        if kind not in DTYPES.values():
            raise TypeError(f"{os.fspath(path)}: {name!r} is of type {kind}, which NumPy does not have")
    return _read_stored(path, kinds) if kinds else {}


def _read_stored(path, kinds):
    """Read tensors of a file that has been checked, by name, into new memory; no mapping of the file stays resident."""
    named = {kind: name for name, kind in DTYPES.items()}
    with open_regular_file(path) as file:
        start = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(start))
        arrays = {}
        for name, kind in kinds.items():
            begin, end = header[name]["data_offsets"]
            data = np.empty(end - begin, np.uint8)
            file.seek(8 + start + begin)
            if file.readinto(data) != data.size:
                raise ValueError(f"{os.fspath(path)} is damaged or no safetensors file: it ends early")
            arrays[name] = data.view(dtypes.as_dtype(named[kind])).reshape(header[name]["shape"])
    return arrays


def _checked_name(name):
    if not isinstance(name, str):
        raise TypeError(f"save_file: names of tensors must be strings, got {name!r}")
    return name


_OTHER_FORMAT = "a safetensors file holds dense tensors by name; rg.save to a name without .safetensors saves more"


def _way_out(name, value):
    """Return what to do about a value that is not a tensor."""
    if isinstance(value, Mapping) and value and all(isinstance(x, Tensor) for x in value.values()):
        return f"save the inner dict, or name its tensors '{name}.{next(iter(value))}'; {_OTHER_FORMAT}"
    return "rg.tensor(...) makes one of it" if isinstance(value, np.ndarray) else _OTHER_FORMAT


def _array(name, tensor):
    if not isinstance(tensor, Tensor):
        raise TypeError(f"save_file: {name!r} must be a Tensor, got {type(tensor).__name__}; {_way_out(name, tensor)}")
    if tensor.is_nested or tensor.is_sparse or tensor.is_sparse_csr:
        raise TypeError(f"save_file: {name!r} is a nested or sparse tensor; {_OTHER_FORMAT}")
    if tensor.dtype.name not in DTYPES:
        raise TypeError(
            f"save_file: {name!r} is of dtype {tensor.dtype}; safetensors holds {', '.join(sorted(DTYPES))}"
        )
    return np.asarray(tensor.detach().cpu().numpy(), order="C")  # ascontiguousarray would turn 0-d arrays into 1-d


def _checked_text(metadata):
    for name, text in metadata.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise TypeError(f"save_file: metadata must be text by name, got {name!r}: {text!r}; json.dumps makes text")
    return dict(metadata) or None


suggest_in_module(globals())
