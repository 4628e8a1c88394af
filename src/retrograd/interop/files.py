"""`rg.save` and `rg.load` for the supported tensor formats, none of which runs code."""

import os
from typing import Any, BinaryIO

from retrograd.interop import pytorch, safetensors

__all__ = ["load", "save"]


def _is_safetensors(f: Any) -> bool:
    return isinstance(f, (str, os.PathLike)) and os.fspath(f).endswith(".safetensors")


def save(obj: Any, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Write tensors, arrays and paths, and dicts, lists, tuples, sets, numbers and text around them, to a file.

    f: a path, or an open binary file.

    The format is PyTorch's, so that `torch.load(f)` reads it too: use it for state dicts of models and optimizers, and
    plain data. If the path ends with `.safetensors`, that format is written, which holds only a dict of tensors by
    name. The file is replaced atomically. Raises TypeError, before anything is written, for values that are not plain
    data, such as modules: save their `state_dict()`. `rg.serialization.add_safe_globals` allows further classes.

    >>> import io
    >>> import retrograd as rg
    >>> model, file = rg.nn.Linear(2, 1), io.BytesIO()
    >>> rg.save({"epoch": 3, "model": model.state_dict()}, file)
    >>> saved = rg.load(file)
    >>> saved["epoch"], model.load_state_dict(saved["model"])
    (3, <All keys matched successfully>)
    """
    if _is_safetensors(f):
        safetensors.save_file(obj, f)  # type: ignore[arg-type]
    else:
        pytorch.save_file(obj, f)


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
) -> Any:
    """Load a file of `rg.save` or `torch.save`, or the tensors of a `.safetensors` file by name; runs no code from it.

    No tensor requires grad. `map_location` may be "cpu", the only device, a dict of devices to
    it, or a function, which is not called. `mmap=True` maps the file of a path into
    memory and reads only what is used. Raises FileNotFoundError; ValueError for damaged files, content that is not
    plain data, and `weights_only=False`, which would run code from the file.
    """
    targets = map_location.values() if isinstance(map_location, dict) else [map_location]
    if not callable(map_location) and any(target not in (None, "cpu") for target in targets):
        raise ValueError(f"load: map_location must be 'cpu' or None, got {map_location!r}")
    if not weights_only:
        raise ValueError(
            "load: weights_only=False would run code that the file brings, which this function never does; "
            "rg.serialization.add_safe_globals([...]) allows the classes that a file may hold"
        )
    if _is_safetensors(f):
        return safetensors.load_file(f)  # type: ignore[arg-type]
    return pytorch.load_file(f, mmap=bool(mmap))
