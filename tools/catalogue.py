"""Writes docs/catalogue.md: every public operator, by the module that defines it, from the registry.

python tools/catalogue.py            # write
python tools/catalogue.py --check    # exit with 1 if the page is out of date
"""

import inspect
import sys
from itertools import groupby
from pathlib import Path

from retrograd import pipelining  # noqa: F401 (registers its operator)
from retrograd.core import Operator, registry
from retrograd.nested.dispatch import way

PAGE = Path(__file__).parents[1] / "docs" / "catalogue.md"
HEAD = """\
# The catalogue of operators

<!-- Made from the registry by tools/catalogue.py: run `make stubs` after a change. -->

Every operator that has a public name, {count} of them, by the module that defines it; {others} more are the parts that
these are made of. `help(rg.einsum)` shows the whole text of each, with examples. Names are PyTorch's; where an operator
has several, they stand together. Those without a dot are methods of tensors too, but for those that make tensors.

Derivatives: **any** order, forward and reverse; **none**, where the result is an integer, a truth or a constant.
What holds at points without a derivative is told in [derivatives](derivatives.md).

Batches: under [`vmap`](transforms.md) operators run on all examples at once.  {looped}  How large the result is depends
on the values, so that `vmap` refuses: {ragged}, and what is composed of these.

Nested tensors: **at once**, on the rows of all components; **composed** of other operators, each in its own way; **one
by one**, on each component, with a `PerformanceWarning` when that happens first.  An operator that is not given what
it can do at once, ragged dimensions that are not alike for example, goes one by one too.  Where it would act across
the components, which have no one shape, it is refused.
"""


def module_of(operator: Operator) -> str:
    """The last name of the module that defines the operator."""
    return operator.definition.__module__.removeprefix("retrograd.")


def title(module: str) -> str:
    """What the module's docstring says it holds."""
    return inspect.getdoc(sys.modules[f"retrograd.{module}"]).splitlines()[0].rstrip(".:")


def derivative(operator: Operator) -> str:
    """What the page says of an operator's derivatives."""
    return "any" if operator.differentiable or operator.composite else "none"


def row(operator: Operator) -> str:
    """An operator's line of the table."""
    names = ", ".join(f"`{name}`" for name in operator.public_names)
    arguments = str(operator.called_as).partition("(")[2].rpartition(") ->")[0].replace("|", "\\|")
    first = inspect.getdoc(operator.definition).splitlines()[0].replace("|", "\\|")
    return f"| {names} | `{arguments}` | {first} | {derivative(operator)} | {way(operator)} |"


def looped() -> str:
    """Which operators take the examples of a batch one by one, and why."""
    found = [(name, o.definition.vmap_fallback) for name, o in sorted(registry.items()) if o.definition.vmap_fallback]
    if not found:
        return ""
    return "One by one go " + "; ".join(f"`{name}` ({why})" for name, why in found) + "."


def page() -> str:
    """The whole page."""
    public = sorted((o for o in registry.values() if o.public_names), key=lambda o: (module_of(o), o.name))
    ragged = ", ".join(f"`{name}`" for name, o in sorted(registry.items()) if o.definition.ragged)
    parts = [HEAD.format(count=len(public), others=len(registry) - len(public), looped=looped(), ragged=ragged)]
    for module, operators in groupby(public, module_of):
        lines = [
            "| names | arguments | | derivatives | nested |",
            "| --- | --- | --- | --- | --- |",
            *map(row, operators),
        ]
        parts.append(f"## {title(module)}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Write the page, or compare."""
    stale = not PAGE.exists() or PAGE.read_text() != page()
    if stale and "--check" in sys.argv:
        print(f"{PAGE.name} is out of date")
        return 1
    if stale:
        PAGE.write_text(page())
        print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
