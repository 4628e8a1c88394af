"""Write docs/catalogue.md: every public operator, in sections by use, from the registry.

python tools/catalogue.py            # write
python tools/catalogue.py --check    # exit with 1 if the page is out of date
"""

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import retrograd as rg
from retrograd import pipelining  # noqa: F401 (registers its operator)
from retrograd.core import Operator, registry
from retrograd.nested.dispatch import execution_kind
from retrograd.ops.batch_loop import DataDependent, PerExample

PAGE = Path(__file__).parents[1] / "docs" / "catalogue.md"
HEAD = """\
# Operators

<!-- Made from the registry by tools/catalogue.py: run `make stubs` after a change. -->

This page lists every operator that has a public name, {count} of them, in sections by use. {others} more operators are
internal: the public ones are composed of them. `help(rg.einsum)` shows the full text of each, with examples. Names are
PyTorch's; an operator with several names is listed once, with all of them. Operators without a dot in their name are
also methods of tensors.

- **derivatives**: "any" order, in forward and in reverse mode; "none" where the result is an integer, a boolean or a
  constant. [Derivatives](derivatives.md) says which value is used at points without a derivative.
- **nested**: how the operator runs on [nested tensors](nested.md). "at once": on the rows of all components;
  "composed": as other operators, each in its own way; "one by one": on each component, with a `PerformanceWarning` the
  first time. Operands that do not fit the fast path, such as different ragged dimensions, run one by one too. An
  operator that would act across components, which have no common shape, raises an error.

Under [`vmap`](transforms.md) operators run on all examples at once, with these exceptions:

{looped}
- The size of the result depends on the values, so `vmap` refuses {refused} and what is composed of them.
"""

# Sections in the order of use, and the modules whose operators and factories each lists. Another module's operators
# get a section of their own, at the end.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Creation": ("ops.as_tensor", "ops.create", "ops.linspace"),
    "Random numbers": ("ops.random", "ops.distributions"),
    "Elementwise arithmetic, rounding and comparison": ("ops.pointwise", "ops.floats"),
    "Bits and integers": ("ops.bitwise",),
    "Complex numbers": ("ops.complex",),
    "Reductions": ("ops.reduce",),
    "max, min, argmax, argmin": ("ops.max_min",),
    "Medians, quantiles, covariance, histograms": ("ops.statistics", "ops.histograms", "ops.checksum"),
    "Cumulative sums, differences and integrals": ("ops.scan",),
    "Sorting, topk, searching, unique": ("ops.sort",),
    "Shapes and views": ("ops.view", "ops.matrices", "ops.diagonal", "ops.as_strided", "ops.view_copies"),
    "Joining, repeating and splitting": ("ops.join", "ops.split"),
    "Indexing, gathering and scattering": ("ops.index", "ops.gather", "ops.scatter"),
    "Masks": ("ops.masked",),
    "Matrix products": ("ops.linalg", "ops.products"),
    "Linear systems and inverses": ("ops.solve", "ops.lstsq", "ops.matrix_functions"),
    "Matrix decompositions": (
        "ops.decompose", "ops.lu", "ops.ldl", "ops.householder", "ops.eigen", "ops.svd", "ops.lowrank", "ops.lobpcg",
    ),
    "Norms and distances": ("ops.norm", "ops.distances"),
    "Fourier transforms and signals": ("ops.fft", "ops.stft", "ops.signal_windows"),
    "Special functions": tuple(
        f"ops.{name}" for name in ("special", "gamma", "incomplete_beta", "zeta", "bessel", "orthogonal_polynomials")
    ),
    "Activations": ("ops.activation",),
    "Softmax, attention and similarity": ("ops.nn", "ops.attention", "ops.multihead_attention"),
    "Convolution": ("ops.conv", "ops.im2col"),
    "Pooling": ("ops.pooling", "ops.fractional_pool"),
    "Normalization": ("ops.normalize",),
    "Dropout and embedding": ("ops.dropout", "ops.embedding"),
    "Padding and resizing images": ("ops.pad", "ops.interpolate", "ops.grid_sample"),
    "Losses": ("ops.losses", "ops.cross_entropy", "ops.pairwise_losses"),
    "Masked reductions (`masked`)": ("ops.masked_reductions",),
    "Nested tensors": ("nested.padding",),
}  # fmt: skip


def module_of(operator: Operator) -> str:
    """Return the module that defines the operator, below the package."""
    return operator.definition.__module__.removeprefix("retrograd.")


def factories(modules: tuple[str, ...]) -> list[tuple[str, Callable]]:
    """Return the public functions of these modules that create tensors, such as `zeros`, by name."""
    created = {name: getattr(rg, name) for name in rg.__all__}
    named = ((name, f) for name, f in created.items() if inspect.isfunction(f) and _below(f.__module__) in modules)
    return sorted((name, f) for name, f in named if "requires_grad" in inspect.signature(f).parameters)


def _below(module: str) -> str:
    return module.removeprefix("retrograd.")


def derivative(operator: Operator) -> str:
    """Return the page's text on an operator's derivatives."""
    return "any" if operator.differentiable or operator.composite else "none"


def row(operator: Operator) -> str:
    """Return an operator's row of the table."""
    names = ", ".join(f"`{name}`" for name in operator.public_names)
    arguments = str(operator.called_as).partition("(")[2].rpartition(") ->")[0].replace("|", "\\|")
    first = inspect.getdoc(operator.definition).splitlines()[0].replace("|", "\\|")
    return f"| {names} | `{arguments}` | {first} | {derivative(operator)} | {execution_kind(operator)} |"


def factory_row(name: str, function: Callable) -> str:
    """Return a factory's row of the table, without the keywords that all factories accept."""
    shared = ("out", "device", "layout", "pin_memory", "memory_format", "requires_grad")
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in shared]
    arguments = ", ".join(str(p.replace(annotation=p.empty)) for p in parameters).replace("|", "\\|")
    first = inspect.getdoc(function).splitlines()[0].replace("|", "\\|")
    return f"| `{name}` | `{arguments}` | {first} | | |"


def operators_in_loops() -> str:
    """Return a list of the operators that `vmap` runs one example at a time, and why."""
    found = [(name, o.definition) for name, o in sorted(registry.items()) if issubclass(o.definition, PerExample)]
    return "\n".join(f"- `{name}` runs one example at a time: {of.vmap_fallback}." for name, of in found)


def section_of(module: str) -> str:
    """Return the section that lists a module's operators: by default, what its docstring says that it contains."""
    doc = sys.modules[f"retrograd.{module}"].__doc__ or module
    return next((title for title, modules in SECTIONS.items() if module in modules), re.split("[:.]", doc)[0])


def sections() -> dict[str, list[tuple[str, str]]]:
    """Return the operators' names and lines by section."""
    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for title, modules in SECTIONS.items():
        found[title] = [(name, factory_row(name, f)) for name, f in factories(modules)]
    for operator in sorted((o for o in registry.values() if o.public_names), key=lambda o: o.name):
        found[section_of(module_of(operator))].append((operator.public_names[0], row(operator)))
    return {title: rows for title, rows in found.items() if rows}


def anchor(title: str) -> str:
    """Return the anchor of a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def page() -> str:
    """Return the page."""
    public = [o for o in registry.values() if o.public_names]
    refused = ", ".join(f"`{name}`" for name, o in sorted(registry.items()) if issubclass(o.definition, DataDependent))
    made = sections()
    index = [
        f"| [{title}](#{anchor(title)}) | {', '.join(f'`{name}`' for name, _ in rows)} |"
        for title, rows in made.items()
    ]
    parts = [
        HEAD.format(
            count=len(public), others=len(registry) - len(public), looped=operators_in_loops(), refused=refused
        ),
        "## Index\n\n| section | names |\n| --- | --- |\n" + "\n".join(index) + "\n",
    ]
    for title, rows in made.items():
        lines = ["| names | arguments | | derivatives | nested |", "| --- | --- | --- | --- | --- |"]
        parts.append(f"## {title}\n\n" + "\n".join([*lines, *(line for _, line in rows)]) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Write the page, or compare it."""
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
