"""Models of local directories with a `hubconf.py`, under the names of torch.hub; nothing is downloaded.

The public functions of `hubconf.py` return models; its `dependencies` are the modules that it needs.
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from retrograd.foundation.suggestions import did_you_mean, suggest_in_module

_directory: str | None = None


def _get_torch_home() -> str:
    """Return the folder of PyTorch's files: TORCH_HOME, or that of the user's cache."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the folder for downloaded files: that of `set_dir`, or `hub` in TORCH_HOME or in the user's cache.

    >>> import retrograd as rg
    >>> rg.hub.set_dir("weights")
    >>> rg.hub.get_dir()
    'weights'
    >>> rg.hub.set_dir(None)
    """
    return _directory or os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str] | None) -> None:
    """Set the folder for downloaded files; None restores the default."""
    global _directory
    _directory = None if d is None else os.path.expanduser(os.fspath(d))


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Return what the function `model` of the `hubconf.py` in a directory returns for the further arguments.

    source: "local"; "github" is refused with a ValueError, because nothing is downloaded here. The last four keywords
    are for downloads, and have no effect.

    Raises FileNotFoundError for a directory without `hubconf.py`, RuntimeError for missing dependencies and for a
    function that it lacks.

    >>> import pathlib, tempfile, retrograd as rg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "hubconf.py").write_text("def double(x): return 2 * x")
    ...     rg.hub.load(folder, "double", 3, source="local")
    6
    """
    if source not in ("github", "local"):
        raise ValueError(f"hub.load: Unknown source: {source!r}. Allowed values: 'github' | 'local'.")
    if source == "github":
        raise ValueError(
            f"hub.load: nothing is downloaded here; clone the repository {repo_or_dir!r}, and load its directory with "
            f"source='local'"
        )
    return _entry(_hubconf("load", repo_or_dir), model)(*args, **kwargs)


def list(
    github: Any,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
    verbose: bool = True,
) -> Any:
    """Return the names of the public functions of the `hubconf.py` in a directory."""
    members = vars(_hubconf("list", github))
    return [name for name, value in members.items() if callable(value) and not name.startswith("_")]


def help(
    github: Any,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
) -> str | None:
    """Return the docstring of the function `model` of the `hubconf.py` in a directory."""
    found: str | None = _entry(_hubconf("help", github), model).__doc__
    return found


def _hubconf(name: str, folder: Any) -> Any:
    """Run the `hubconf.py` of a directory, which may import its neighbours; return the module."""
    path = Path(folder) / "hubconf.py"
    if not path.is_file():
        raise FileNotFoundError(
            f"hub.{name}: {str(path)!r} does not exist; nothing is downloaded here: clone a repository, and pass its "
            f"directory"
        )
    spec: Any = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    missing = [needed for needed in getattr(module, "dependencies", ()) if importlib.util.find_spec(needed) is None]
    if missing:
        raise RuntimeError(f"hub.{name}: Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: Any, model: Any) -> Any:
    """Return the public function of a `hubconf.py` that makes a model."""
    if not isinstance(model, str):
        raise ValueError(f"hub: Invalid input: model should be a string of function name, got {model!r}")
    function = getattr(module, model, None)
    if not callable(function):
        raise RuntimeError(f"hub: Cannot find callable {model} in hubconf{did_you_mean(model, vars(module))}")
    return function


suggest_in_module(globals())
