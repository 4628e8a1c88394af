"""PyTorch's objects for the folder of a checkpoint."""

import os
from pathlib import Path
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module


class FileSystemWriter:
    """The folder that `save` writes; other arguments have no effect.

    >>> FileSystemWriter("folder").path.name
    'folder'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        serialization_format: Any = None,
    ) -> None:
        self.path = Path(path)


class FileSystemReader:
    """The folder that `load` reads."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)


suggest_in_module(globals())
