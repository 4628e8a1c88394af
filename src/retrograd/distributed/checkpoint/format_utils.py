"""Conversion of checkpoints to files of `rg.save`, and back, by one process."""

import os
from pathlib import Path
from typing import Any

from retrograd.distributed.checkpoint import layout
from retrograd.distributed.checkpoint.api import save
from retrograd.distributed.local_slice import LocalSlice
from retrograd.interop.files import load as load_file
from retrograd.interop.files import save as save_file
from retrograd.ops.functions import functions


def read_whole(checkpoint_id: str | os.PathLike[str]) -> dict[str, Any]:
    """Return everything that a checkpoint has, with whole tensors.

    Raises FileNotFoundError if the folder has no complete checkpoint, ValueError for a damaged one.
    """
    folder = Path(checkpoint_id)
    manifest, found = layout.read_manifest(folder), dict[Any, Any]()
    for name in manifest["paths"]:
        if name in manifest["values"]:
            value = manifest["values"][name]
        else:
            entry = manifest["tensors"][name]
            value = functions["empty"](tuple(entry["shape"]), dtype=entry["dtype"])
            layout.read_into(LocalSlice(value, tuple(value.shape), 0), folder, entry)
        layout.put(found, layout.path_of(manifest, name), value)
    return found


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write what a checkpoint has into a file of `rg.save`, which PyTorch reads too.

    >>> import retrograd as rg, tempfile
    >>> import retrograd.distributed.checkpoint as checkpoint
    >>> from retrograd.distributed.checkpoint.format_utils import dcp_to_torch_save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save({"weight": rg.ones(2), "betas": [0.5, 0.25]}, checkpoint_id=folder)
    ...     dcp_to_torch_save(folder, f"{folder}/whole.pt")
    ...     rg.load(f"{folder}/whole.pt")
    {'weight': tensor([1., 1.]), 'betas': [0.5, 0.25]}
    """
    save_file(read_whole(dcp_checkpoint_dir), torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Write a checkpoint of what a file of `rg.save` or `torch.save` has.  Raises what `rg.load` and `save` raise."""
    save(load_file(torch_save_path), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
