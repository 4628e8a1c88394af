"""Objects in checkpoints that are no plain data: NumPy arrays and scalars, paths, and classes that users allow.

NumPy's own pickling writes an array as `_reconstruct(ndarray, (0,), b"b")` with a state: version, shape, dtype, whether
it is in Fortran's order, bytes.  The reader checks each part before NumPy gets it.
"""

import copyreg
import math
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.foundation.own_attributes import restore_state
from retrograd.interop.pickle_writer import Name, Write, Writer
from retrograd.interop.safe_unpickler import AllowedGlobal, short_repr

_KINDS = "biufcSU"  # of dtypes whose elements are plain memory
_NUMPY = ("numpy._core.multiarray", "numpy.core.multiarray")  # NumPy 2, and NumPy 1
_NATIVE = ("=", "|", "<" if sys.byteorder == "little" else ">")
_PATHS = (pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath)
_safe: dict[str, Any] = {}  # the classes and functions that users allow, by "module.name"


class _NumpyDtype(str):
    """The code of a dtype that is written as NumPy's pickling does, not as a dtype of PyTorch."""


# ------------------------------------------------------------------------------------------------------ writing


def writers() -> dict[type, Write]:
    """Return the functions that write such objects, by type."""
    allowed = {one: _write_allowed for one in _safe.values() if isinstance(one, type) and not issubclass(one, Tensor)}
    return {**allowed, np.ndarray: _write_array, _NumpyDtype: _write_dtype, pathlib.PurePath: _write_path}


def _write_array(writer: Writer, array: Any, where: str) -> None:
    if array.dtype.kind not in _KINDS or array.dtype.isbuiltin == 2:
        raise TypeError(f"{where} is an array of dtype {array.dtype}, which a file of plain data can't hold")
    native = np.asarray(array, array.dtype.newbyteorder("="))
    writer.call(f"{_NUMPY[0]} _reconstruct", (Name("numpy ndarray"), (0,), b"b"), where)
    writer.keep(array)
    writer.build((1, native.shape, _NumpyDtype(native.dtype.str[1:]), False, native.tobytes()), where)


def _write_dtype(writer: Writer, code: Any, where: str) -> None:
    writer.call("numpy dtype", (str(code), False, True), where)
    dtype = np.dtype(code)
    order = _NATIVE[2] if dtype.itemsize > 1 and dtype.kind not in "S" else "|"
    sizes = (dtype.itemsize, dtype.alignment) if dtype.kind in "SU" else (-1, -1)
    writer.build((3, order, None, None, None, *sizes, 0), where)


def _write_path(writer: Writer, path: Any, where: str) -> None:
    kind = next(kind for kind in _PATHS if isinstance(path, kind))
    writer.call(f"pathlib {kind.__name__}", path.parts, where)


def _write_allowed(writer: Writer, value: Any, where: str) -> None:
    """Write an object of a class that is allowed, as Python's pickling describes it."""
    function, arguments, state, *items = (*value.__reduce_ex__(2), None, None, None)[:5]
    if function is copyreg.__newobj__ and not any(items):  # type: ignore[attr-defined]
        writer.create(_spaced_name(arguments[0]), arguments[1:], where)
    elif function is type(value) and not any(items):
        writer.call(_spaced_name(function), arguments, where)
    else:
        raise TypeError(f"{where} is of type {type(value).__qualname__}, whose way of pickling is not supported")
    writer.keep(value)
    if state is not None:
        writer.build(state, where)


def allowed_name(kind: type) -> str | None:
    """Return the name, "module name", that files have for a class which users allow; None for another."""
    found = [name for name, one in _safe.items() if one is kind]
    return found[0].replace(f".{kind.__qualname__}", f" {kind.__qualname__}") if found else None


def _spaced_name(one: Any) -> str:
    return f"{one.__module__} {one.__qualname__}"


# ------------------------------------------------------------------------------------------------------ reading


def allowed_globals() -> dict[str, AllowedGlobal]:
    """Return the names that pickled data may call for such objects."""
    calls: dict[str, Callable[..., Any]] = {"numpy.dtype": _dtype}
    calls |= dict.fromkeys(("__builtin__.bytes", "builtins.bytes"), _empty_bytes)
    for module in _NUMPY:
        calls |= {f"{module}._reconstruct": _empty_array, f"{module}.scalar": _scalar}
    for kind in _PATHS:
        calls |= {f"{module}.{kind.__name__}": _path_maker(kind) for module in ("pathlib", "pathlib._local")}
    found = {name: AllowedGlobal(name, call) for name, call in calls.items()}
    found["numpy.ndarray"] = AllowedGlobal("numpy.ndarray", value="ndarray")
    return found | {name: AllowedGlobal(name, one, one, _creator(one)) for name, one in _safe.items()}


def restorers() -> dict[type, Callable[[Any, Any], None]]:
    """Return the functions that give such an object the state that pickled data has for it, by type."""
    own = {one: restore_state for one in _safe.values() if isinstance(one, type)}
    return {np.ndarray: _restore_array, np.dtype: _check_dtype_state, **own}


def _empty_array(kind: Any, shape: Any, code: Any) -> np.ndarray:
    if kind != "ndarray":
        raise ValueError(f"damaged: an array of class {short_repr(kind)}")
    return np.empty(0, np.int8)


def _empty_bytes() -> bytes:
    """Return the bytes of an array without elements, which pickling in protocol 2 writes as a call."""
    return b""


def _dtype(code: Any, align: Any = False, copy: Any = False) -> np.dtype:
    dtype = np.dtype(code) if isinstance(code, str) else None
    if dtype is None or dtype.kind not in _KINDS:
        raise ValueError(f"an array of dtype {short_repr(code)} is not supported")
    return dtype


def _check_dtype_state(dtype: np.dtype, state: Any) -> None:
    if type(state) is not tuple or len(state) < 3 or state[1] not in _NATIVE or state[2] is not None:
        raise ValueError(f"an array of another byte order or structure is not supported: {short_repr(state)}")


def _restore_array(array: np.ndarray, state: Any) -> None:
    _, shape, dtype, fortran, data = state
    is_shape = type(shape) is tuple and all(type(n) is int and 0 <= n < sys.maxsize for n in shape) and len(shape) <= 32
    if not is_shape or not isinstance(dtype, np.dtype) or type(data) is not bytes or type(fortran) is not bool:
        raise ValueError(f"damaged: the state of an array is {short_repr(state)}")
    if dtype.kind not in _KINDS or len(data) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"damaged: an array of shape {shape} and dtype {dtype} has {len(data)} bytes")
    array.__setstate__((1, shape, dtype, fortran, data))  # type: ignore[arg-type]  # fortran is a bool in pickles


def _scalar(dtype: Any, data: Any) -> Any:
    if not isinstance(dtype, np.dtype) or type(data) is not bytes or len(data) != dtype.itemsize:
        raise ValueError(f"damaged: a scalar of {short_repr(dtype)}")
    return np.frombuffer(data, dtype, 1)[0]


def _path_maker(kind: type[pathlib.PurePath]) -> Callable[..., pathlib.PurePath]:
    """Return the function that makes a path of parts; on another system a path without access to files."""
    here = isinstance(pathlib.Path(), kind)
    pure = pathlib.PurePosixPath if issubclass(kind, pathlib.PurePosixPath) else pathlib.PureWindowsPath

    def make(*parts: Any) -> pathlib.PurePath:
        if not all(type(part) is str for part in parts):
            raise ValueError(f"damaged: a path of {short_repr(parts)}")
        return (kind if here or kind in _PATHS[2:] else pure)(*parts)

    return make


def _creator(one: Any) -> Callable[..., Any] | None:
    return (lambda *arguments: one.__new__(one, *arguments)) if isinstance(one, type) else None


# ---------------------------------------------------------------------------------------------- allowed classes


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow classes and functions in files: `rg.save` writes objects of these classes, `rg.load` calls and makes them.

    Only allow what does no harm with any arguments.  An entry may be (class, "module.name") for another name in files.

    >>> import argparse, io
    >>> import retrograd as rg
    >>> with rg.serialization.safe_globals([argparse.Namespace]):
    ...     rg.save({"args": argparse.Namespace(lr=0.1)}, file := io.BytesIO())
    ...     rg.load(file)
    {'args': Namespace(lr=0.1)}
    """
    for entry in safe_globals:
        one, name = entry if isinstance(entry, tuple) else (entry, None)
        if not callable(one):
            raise TypeError(f"add_safe_globals: expected classes or functions, got {one!r}")
        _safe[name or f"{one.__module__}.{one.__qualname__}"] = one


def get_safe_globals() -> list[Any]:
    """Return the classes and functions that `add_safe_globals` has allowed."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Allow no classes and functions but the library's own."""
    _safe.clear()


@generator_block
def safe_globals(safe_globals: Iterable[Any]) -> Iterator[None]:
    """Return a block in which `add_safe_globals` has allowed these classes and functions."""
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe.clear()
        _safe.update(before)
