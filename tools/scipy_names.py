"""Write docs/scipy_names.md: which functions of SciPy are differentiable, by module.

python tools/scipy_names.py            # write
python tools/scipy_names.py --check    # exit with 1 if the page is out of date
"""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from retrograd.interop.numpy_protocol.table import ufuncs
from retrograd.scipy._constants import BY_NUMPY, WITHOUT_DERIVATIVE

PAGE = Path(__file__).parents[1] / "docs" / "scipy_names.md"
MODULES = (
    "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse.linalg", "special", "stats",
)  # fmt: skip
DIFFERENTIABLE, JUMPS, REFUSED, CLASS = "differentiable", "without a derivative", "refused", "class"
KINDS = (DIFFERENTIABLE, JUMPS, REFUSED, CLASS)
HEADER = """\
# SciPy's functions by module

<!-- Written by `python tools/scipy_names.py`. -->

For each public name of SciPy {version}, except modules, warnings and errors, this page says what `retrograd.scipy` does
with tensors. [The guide](from_scipy.md) shows how to use them. Tests check that the derivatives of all differentiable
functions are right to second order, and that the others refuse by name.

- Differentiable: tensors may be arguments, and results are tensors.
- Without a derivative: the result changes by jumps or takes no arrays. Tensors that do not require grad are passed as
  arrays; others are refused by name.
- Refused: the same, but the function has a derivative that retrograd does not know yet.
- Class: SciPy's own, for arrays.

| module | differentiable | without a derivative | refused | classes |
| --- | ---: | ---: | ---: | ---: |
"""


def public(module: str) -> dict[str, Any]:
    """Return the public members of a module of SciPy, except modules, warnings and errors."""
    home = importlib.import_module(f"scipy.{module}")
    names = getattr(home, "__all__", None) or [name for name in dir(home) if not name.startswith("_")]
    found = {name: getattr(home, name) for name in sorted(set(names), key=str.lower)}
    return {name: member for name, member in found.items() if not _left_out(member)}


def _left_out(member: Any) -> bool:
    raised = inspect.isclass(member) and issubclass(member, (BaseException,))
    return isinstance(member, ModuleType) or raised


def kind(module: str, name: str, member: Any) -> str:
    """Return what retrograd does with tensors as arguments of a member of SciPy."""
    if name in WITHOUT_DERIVATIVE.get(module, "").split():
        return JUMPS
    ours = vars(importlib.import_module(f"retrograd.scipy.{module}")).get(name)
    if ours is not None or name in BY_NUMPY.get(module, "").split() or (_is_ufunc(member) and name in ufuncs):
        return DIFFERENTIABLE
    return CLASS if inspect.isclass(member) or name in ("errstate",) else REFUSED


def _is_ufunc(member: Any) -> bool:
    return hasattr(member, "nin")


def kinds() -> dict[str, dict[str, list[str]]]:
    """Return the public names of each module, by kind."""
    found: dict[str, dict[str, list[str]]] = {}
    for module in MODULES:
        found[module] = {one: [] for one in KINDS}
        for name, member in public(module).items():
            found[module][kind(module, name, member)].append(name)
    return found


def text() -> str:
    """Return the text of the page."""
    import scipy

    found = kinds()
    rows = [
        f"| [{module}](#{module.replace('.', '')}) | "
        + " | ".join(str(len(names)) for names in parts.values())
        + " |\n"
        for module, parts in found.items()
    ]
    totals = [sum(len(parts[one]) for parts in found.values()) for one in KINDS]
    rows.append("| all | " + " | ".join(map(str, totals)) + " |\n")
    return HEADER.format(version=scipy.__version__) + "".join(rows) + "".join(map(_section, found, found.values()))


def _section(module: str, parts: dict[str, list[str]]) -> str:
    lists = [
        textwrap.fill(f"{one[0].upper()}{one[1:]}: {', '.join(f'`{n}`' for n in names)}.", 120, break_on_hyphens=False)
        for one, names in parts.items()
        if names
    ]
    return f"\n## {module}\n\n" + "\n\n".join(lists) + "\n"


def main(write: Callable[[str], Any] = PAGE.write_text) -> None:
    new = text()
    if "--check" in sys.argv:
        if PAGE.read_text() != new:
            sys.exit("docs/scipy_names.md is out of date: run python tools/scipy_names.py")
    else:
        write(new)
        print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
