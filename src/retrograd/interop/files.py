"""`rg.save` and `rg.load` for the supported tensor formats, none of which runs code."""

import os
from typing import Any, BinaryIO

import optree

from retrograd.backend.devices import device_named
from retrograd.core import Tensor
from retrograd.core.device import ArrayDevice, device
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop import pytorch, safetensors
from retrograd.ops.layout import find_device, is_device, place

__all__ = ["load", "save"]


def _is_safetensors(f: Any) -> bool:
    return isinstance(f, (str, os.PathLike)) and os.fspath(f).endswith(".safetensors")


def save(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write tensors, storages, arrays, paths, and dicts, lists, tuples, sets, numbers and text around them, to a file.

    f: a path, or an open binary file.  The other arguments are PyTorch's and have no effect: the file is a zip with
    protocol 2, which PyTorch reads since version 1.6.

    The format is PyTorch's, so that `torch.load(f)` reads it too: use it for state dicts of models and optimizers,
    and plain data. Parameters stay parameters, and tensors keep `requires_grad` and the attributes that users have
    set; gradients and hooks are not written. Storages share memory with the tensors of their dtype again. If the
    path ends with `.safetensors`, that format is written, which holds only a dict of tensors by name. The file is
    replaced atomically. Raises TypeError, before anything is written, for values that are not plain data, such as
    modules: save their `state_dict()`. `rg.serialization.add_safe_globals` allows further classes, also subclasses
    of Tensor.

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

    Tensors are loaded on the CPU, whatever device they were saved on; `map_location`, a device or its name, moves them.
    It may also be a dict, whose entry "cpu" counts, or a function, which is not called.
    `mmap=True` maps the file of a path into memory and reads only what is used.

    Raises FileNotFoundError; ValueError for damaged files, content that is not plain data, a device that is not there,
    and `weights_only=False`, which would run code from the file; TypeError for another `map_location`.
    """
    target = _target_of(map_location)
    if not weights_only:
        raise ValueError(
            "load: weights_only=False would run code that the file brings, which this function never does; "
            "rg.serialization.add_safe_globals([...]) allows the classes that a file may hold"
        )
    loaded: Any = safetensors.load_file(f) if _is_safetensors(f) else pytorch.load_file(f, mmap=bool(mmap))  # type: ignore
    for x in optree.tree_leaves(loaded) if target is not None else ():
        if isinstance(x, Tensor):
            x.value = place(x.detach(), target).value  # in place: a leaf or parameter stays one
    return loaded


def _target_of(map_location: Any) -> ArrayDevice | None:
    """Return the device that `map_location` asks for, None for host memory.

    Raises ValueError for a device that is not there, TypeError for another kind of object.
    """
    # Entries of a dict for other devices, as {"cuda:0": "cuda:1"}, don't count: files are read on the CPU.
    entry = map_location.get("cpu") if isinstance(map_location, dict) else map_location
    if entry is None or callable(map_location):
        return None
    if not isinstance(entry, str | device):
        raise TypeError(f"load: map_location must be a device, its name, a dict or a function, got {map_location!r}")
    if is_device(entry) and (device_named(device(entry).type) is not None):
        return find_device(entry)
    if entry != "cpu":
        raise ValueError(f"load: map_location must be 'cpu' or None, got {map_location!r}")
    return None


suggest_in_module(globals())
