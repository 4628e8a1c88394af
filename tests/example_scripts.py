"""Import the scripts of examples/ for the tests."""

import importlib.util
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "examples"


def imported(name: str) -> ModuleType:
    """Return an example as a module, newly run; `name` is its path in the folder without the ending."""
    path = FOLDER / f"{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
