"""Import the user's files as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from retrograd.cli.errors import UsageError


def import_file(path: Path) -> ModuleType:
    """Return the module of a file; it can import files in its folder, as in `python module.py`.

    While it runs, `sys.argv` is the file alone: a script that parses its arguments gets none of this command's.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    before, sys.modules[path.stem] = sys.modules.get(path.stem), module
    arguments, sys.argv = sys.argv, [str(path)]
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path} can't be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.argv = arguments
        sys.path.pop(0)
        if before is not None:  # a file may have the name of a loaded module
            sys.modules[path.stem] = before
    return module
