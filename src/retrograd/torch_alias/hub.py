"""The names of `torch.hub`: those of `rg.hub`, and those around files of weights."""

import hashlib
import os
import re
import shutil
import tempfile
import urllib.request
from typing import Any
from urllib.parse import urlparse as urlparse

from retrograd.hub import _get_torch_home as _get_torch_home
from retrograd.hub import get_dir as get_dir
from retrograd.hub import help as help
from retrograd.hub import list as list
from retrograd.hub import load as load
from retrograd.hub import set_dir as set_dir
from retrograd.serialization import load as _load

try:
    from tqdm.auto import tqdm as tqdm  # type: ignore[import-untyped]
except ImportError:  # libraries that draw bars by it require it

    def tqdm(iterable: Any = (), **settings: Any) -> Any:
        """Return the iterable: there is no package that draws bars."""
        return iterable


HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the beginning of the digest, in the name of a file


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Write what a URL names to a file; RuntimeError if its SHA-256 digest does not begin with `hash_prefix`."""
    folder = os.path.dirname(os.path.abspath(dst))
    with urllib.request.urlopen(url) as response, tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        try:
            shutil.copyfileobj(response, file)
            file.flush()
            digest = _digest(file.name)
            if hash_prefix and not digest.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
            os.replace(file.name, dst)
        except BaseException:
            os.unlink(file.name)
            raise


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load a state dict from a URL, which is downloaded unless the folder `model_dir` has the file."""
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress)
    return _load(path, map_location=map_location)


load_url = load_state_dict_from_url  # its name in `torch.utils.model_zoo`
