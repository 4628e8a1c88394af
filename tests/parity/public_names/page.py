"""Write docs/names.md: how many of PyTorch's public names exist in retrograd, and the reasons of the others.

python -m tests.parity.public_names.page
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from .absent import reason_of
from .namespaces import APART, COUNTED, NAMESPACES, RANKS, Name, names

PAGE = Path(__file__).parents[3] / "docs" / "names.md"
HEAD = """\
# PyTorch's public names

<!-- Written by `python -m tests.parity.public_names.page`, in the environment of `make parity`. -->

{existing:,} of {documented:,} documented public names of PyTorch {version} exist in retrograd: **{rate:.1%}**.

A name is public if it is in the `__all__` of its module. Where a module has no `__all__`, its public names are the
functions and classes that are defined there and do not begin with an underscore; those of `Tensor` are all attributes
without one. Submodules are not counted. A name is documented if it has a docstring of its own, or is a constant such
as a dtype. Most of the other names are parts of TorchScript, or kernels for one kind of device, which PyTorch's
documentation does not mention: the last two columns count them as well.

That a name exists does not say that it does the same: [the operator tests](parity.md) compare results.
"""
TABLE = """
| namespace | documented | here | share | public | here |
| --- | ---: | ---: | ---: | ---: | ---: |
"""
APART_HEAD = """
## Not part of the total

Most of these are special to PyTorch's machinery.
"""
RANKS_HEAD = """
## Ranks of a script

[The guide](distributed.md) says what these do.
"""
ABSENT_HEAD = """
## Names that do not exist

*Names in italics are not documented by PyTorch.*
"""


def page() -> str:
    """Return the text of the page."""
    total = [name for namespace in COUNTED for name in names(namespace) if name.documented]
    head = HEAD.format(
        existing=_existing(total), documented=len(total), version=torch.__version__.partition("+")[0], rate=_rate(total)
    )
    rows = [_row(namespace, names(namespace)) for namespace in COUNTED]
    every = [name for namespace in COUNTED for name in names(namespace)]
    rows.append(_row("**total**", every))
    apart = [_row(namespace, names(namespace)) for namespace in APART]
    ranks = [_row(namespace, names(namespace)) for namespace in RANKS]
    parts = [head, TABLE, *rows, APART_HEAD, TABLE, *apart, RANKS_HEAD, TABLE, *ranks, ABSENT_HEAD, *_absent()]
    return "".join(parts)


def _row(namespace: str, found: Iterable[Name]) -> str:
    public = list(found)
    documented = [name for name in public if name.documented]
    label = namespace if namespace.startswith("*") else f"`{namespace}`"
    return (
        f"| {label} | {len(documented):,} | {_existing(documented):,} | {_rate(documented):.1%} | {len(public):,} | "
        f"{_existing(public):,} |\n"
    )


def _existing(found: list[Name]) -> int:
    return sum(name.exists for name in found)


def _rate(found: list[Name]) -> float:
    return _existing(found) / len(found)


def _absent() -> Iterator[str]:
    """Yield the sections of the absent names, by reason and namespace."""
    groups: dict[str, list[Name]] = {}
    for namespace in NAMESPACES:
        for name in names(namespace):
            if not name.exists:
                groups.setdefault(reason_of(name.path), []).append(name)
    for reason, found in sorted(groups.items()):
        listed = ", ".join(f"`{name.path}`" if name.documented else f"*`{name.path}`*" for name in found)
        yield f"\n### {reason[0].upper()}{reason[1:]}\n\n{listed}.\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
