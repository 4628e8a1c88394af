"""Write the reference pages of the documentation site from docstrings: one for each module and kind of operator."""

import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import retrograd as rg
from retrograd.core import Operator
from retrograd.foundation.lazy_imports import load_all

# Titles of sections, and the public modules in them.
MODULES = {
    "Gradients": [
        "autograd", "autograd.function", "autograd.graph", "autograd.forward_ad", "autograd.functional",
        "autograd.profiler", "func", "implicit", "ode",
    ],
    "Arrays": [
        "linalg", "fft", "special", "masked", "random", "quasirandom", "distributions", "distributions.constraints",
        "distributions.transforms", "distributions.utils", "signal.windows", "nested", "sparse", "numpy", "scipy",
        "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal",
        "scipy.sparse.linalg", "scipy.special", "scipy.stats", "hips", "hips.core", "hips.extend", "hips.misc",
        "hips.misc.optimizers", "hips.test_util", "hips.wrap_util",
    ],
    "Networks": [
        "nn", "nn.attention", "nn.functional", "nn.init", "nn.modules.module", "nn.parallel", "nn.utils",
        "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.prune", "optim",
        "optim.lr_scheduler", "optim.swa_utils", "sklearn",
    ],
    "Programs": [
        "compiler", "higher_order", "library", "_custom_ops", "export", "fx", "fx.experimental.proxy_tensor",
        "fx.subgraph_rewriter", "fx.passes.infra.partitioner", "fx.passes.infra.pass_manager",
        "fx.passes.operator_support", "fx.passes.shape_prop", "fx.passes.split_module",
    ],
    "Ranks": [
        "pipelining", "pipelining.checkpoint", "pipelining.planning", "pipelining.schedules",
        "pipelining.schedules.lowering", "pipelining.transports", "distributed", "distributed.algorithms",
        "distributed.algorithms.ddp_comm_hooks.default_hooks", "distributed.checkpoint",
        "distributed.checkpoint.state_dict", "distributed.device_mesh", "distributed.fsdp", "distributed.nn",
        "distributed.nn.functional", "distributed.optim", "distributed.tensor", "distributed.tensor.experimental",
        "distributed.tensor.parallel", "multiprocessing",
    ],
    "Tools": [
        "utils", "utils._python_dispatch", "utils.benchmark", "utils.checkpoint", "utils.data", "utils.dlpack",
        "utils.flop_counter", "utils.plot_metrics", "utils.revolve", "utils.tensorboard", "interop.array_api",
        "interop.safetensors", "serialization", "hub", "testing", "amp", "cuda", "mps", "mtia", "xpu", "accelerator",
        "futures", "overrides", "profiler",
    ],
}  # fmt: skip
# Pages of operators whose modules have short names, or names of the implementation.
TITLES = {
    "as_strided": "Strided views",
    "as_tensor": "Tensors from data",
    "conv": "Convolution",
    "create": "Creation",
    "decompose": "Cholesky and QR",
    "fft": "Fourier",
    "floats": "Rounding and signs",
    "join": "Joining and repeating",
    "linalg": "Linear algebra",
    "lowrank": "Low rank",
    "lstsq": "Least squares",
    "lu": "LU",
    "max_min": "Maxima and minima",
    "mutate": "In-place writes",
    "native": "Low-level names",
    "nn": "Networks",
    "norm": "Norms",
    "normalize": "Normalization",
    "pad": "Padding",
    "pool_indices": "Pooling with indices",
    "reduce": "Sums and other reductions",
    "scan": "Cumulative sums",
    "split": "Splitting",
    "stft": "Short-time Fourier",
    "svd": "SVD",
    "to_dtype": "Conversion",
}
TYPES = (
    "Operators are called as their schemas say: `Tensor x, int[]? dim=None, *, float eps` takes a tensor, perhaps "
    "numbers, and, by name, a number. An array or a number may stand for a tensor; `[]` is a sequence, `?` may be None."
)
# Namespaces that no other library has; entries of the others can be searched for by their full names there.
OWN = ("hips", "sklearn", "pipelining.", "interop", "utils.plot_metrics", "utils.revolve")
ELSEWHERE = {"pipelining": "distributed.pipelining"}  # PyTorch's name of a namespace
WIDTH, WIDEST = 88, 104  # of a signature on one line, and of an argument on a line of its own
INDENTS: dict[str, Any] = {"initial_indent": " " * 4, "subsequent_indent": " " * 8, "break_on_hyphens": False}
CODE = re.compile(r"(`+[^`]*`+)")
# An address in memory, and an absolute path of two parts or more.
OF_A_MACHINE = re.compile(r" at 0x|(?<![\w.])(?:/[\w.-]+){2}|[A-Z]:\\\\")
PREFIXES = re.compile(r"\b(?:retrograd|collections|contextlib|typing|numpy|types|pathlib|optree)(?:\.\w+)*\.(?=\w)")


def navigation() -> list[Any]:
    """Return the section of the site's navigation with the pages of `pages`."""
    operators = [{title: path} for title, path, _ in sorted(_kinds())]
    sections = [{section: [{f"rg.{name}": _path(name)} for name in names]} for section, names in MODULES.items()]
    return [
        "api/index.md",
        {"rg": "api/retrograd.md"},
        {"rg.Tensor": "api/tensor.md"},
        *sections,
        {"Operators": operators},
    ]


def pages() -> dict[str, str]:
    """Return all pages, by path."""
    made = {"api/index.md": _index(), "api/retrograd.md": _top(), "api/tensor.md": _tensor()}
    for name in [name for names in MODULES.values() for name in names]:
        module = importlib.import_module(f"retrograd.{name}")
        made[_path(name)] = _page(f"rg.{name}", module.__doc__, f"rg.{name}", _public_names(module))
    for title, path, names in _kinds():
        made[path] = _page(title, names.pop("", None), "rg", names)
    return made


def _path(name: str) -> str:
    return f"api/{name}.md"


def _defining_module(value: Any) -> str:
    """Return the module that defines a value; for operators, that of their class."""
    return getattr(value.definition if isinstance(value, Operator) else value, "__module__", None) or ""


def _is_documented(value: Any) -> bool:
    return isinstance(value, Operator | type) or inspect.isroutine(value)


def _public_names(module: ModuleType) -> dict[str, Any]:
    """Return the public names of a module: those it lists, or those not for internal use."""
    listed = getattr(module, "__all__", None)
    names = listed if listed is not None else [name for name in dir(module) if not name.startswith("_")]
    found = {name: getattr(module, name) for name in names}
    package = bool(getattr(module, "__path__", ()))  # empty in a file below which there are modules of a table
    return {
        name: value
        for name, value in found.items()
        if _is_documented(value)
        and _defining_module(value).startswith("retrograd")
        and (listed is not None or package or isinstance(value, Operator) or _is_defined_in(module, name, value))
    }


def _is_defined_in(module: ModuleType, name: str, value: Any) -> bool:
    """Return whether a single-file module without `__all__` defines a value, rather than importing it."""
    passes_on = module.__name__.rpartition(".")[2] in {"special", "fft", "linalg", "random", "windows", "functional"}
    return _defining_module(value) == module.__name__ or passes_on


# ---- operators and the names of the package itself


def _kinds() -> list[tuple[str, str, dict[str, Any]]]:
    """Return title, path and names of the pages of operators and functions that have names in `rg` itself."""
    found: dict[str, dict[str, Any]] = {}
    for name in rg.__all__:
        value = getattr(rg, name)
        home = _defining_module(value)
        if _is_documented(value) and home.startswith("retrograd.ops.") and not isinstance(value, type):
            found.setdefault(home, {"": importlib.import_module(home).__doc__})[name] = value
    return [(_title(home), f"api/operators/{home.rpartition('.')[2]}.md", names) for home, names in found.items()]


def _title(home: str) -> str:
    name = home.rpartition(".")[2]
    return TITLES.get(name, name.replace("_", " ").capitalize())


def _top() -> str:
    """Return the page of the names in `rg` other than operators."""
    names = {
        name: getattr(rg, name)
        for name in dir(rg)
        if not name.startswith("_") and name not in {"Tensor", "ops"} and _is_documented(getattr(rg, name))
    }
    kept = {
        name: value
        for name, value in names.items()
        if _defining_module(value).startswith("retrograd")
        and (isinstance(value, type) or not _defining_module(value).startswith("retrograd.ops."))
    }
    dtypes = ", ".join(f"`rg.{name}`" for name in dir(rg) if type(getattr(rg, name)).__name__.endswith("DType"))
    return _page("rg", f"{rg.__doc__}\n\nDtypes are NumPy's: {dtypes}.", "rg", kept)


def _tensor() -> str:
    """Return the page of tensors: their attributes and methods, and which operators are methods too."""
    load_all()
    members = {name: inspect.getattr_static(rg.Tensor, name) for name in dir(rg.Tensor) if not name.startswith("_")}
    pages = {id(value): (path, names) for _, path, names in _kinds() for value in names.values()}

    def link(name: str, value: Any) -> str:
        path, names = pages[id(value)]
        first = next(known for known, other in names.items() if other is value)
        return f"[{name}]({path.removeprefix('api/')}#rg.{first})"

    operators = ", ".join(
        link(name, value) if id(value) in pages else f"`{name}`"
        for name, value in members.items()
        if isinstance(value, Operator)
    )
    own = {
        name: value
        for name, value in members.items()
        if not isinstance(value, Operator) and inspect.getdoc(value) and not name.endswith("_")
    }
    written = ", ".join(name for name in members if name.endswith("_"))
    page = _page("rg.Tensor", inspect.getdoc(rg.Tensor), "x", own)
    return (
        f"{page}\n## Operators as methods\n\n{operators}.\n\n## In place\n\n"
        f"The result is written into the tensor:\n{_escape(written)}.\n"
    )


def _index() -> str:
    lines = [
        "# Reference",
        "",
        "Every public name, from its docstring. `help(rg.einsum)` shows the same in Python.",
        "",
        TYPES,
        "",
    ]
    for section, names in MODULES.items():
        lines += [f"## {section}", "", "| | |", "| --- | --- |"]
        for name in names:
            first = inspect.getdoc(importlib.import_module(f"retrograd.{name}")).splitlines()[0]
            lines.append(f"| [`rg.{name}`]({name}.md) | {_prose(first)} |")
        lines.append("")
    lines += ["## Operators", "", "| | |", "| --- | --- |"]
    for title, path, names in sorted(_kinds()):
        first = names[""].splitlines()[0]
        lines.append(f"| [{title}]({path.removeprefix('api/')}) | {_prose(first)} |")
    return "\n".join(lines) + "\n"


# ---- a page


def _page(title: str, head: str | None, prefix: str, names: dict[str, Any]) -> str:
    """Return a page of entries; several names of one object share an entry."""
    entries: dict[int, tuple[list[str], Any]] = {}
    for name, value in names.items():
        entries.setdefault(id(value), ([], value))[0].append(name)
    parts = [f"# {title}", _prose(inspect.cleandoc(head or ""))]
    order = sorted(entries.values(), key=lambda entry: (entry[0][0].lower(), entry[0][0]))
    parts += [_entry(prefix, names, value) for names, value in order]
    return "\n\n".join(parts) + "\n"


def _entry(prefix: str, names: list[str], value: Any) -> str:
    heading = ", ".join(f"`{name}`" for name in names)
    anchor = f"{prefix}.{names[0]}"
    parts = [f"## {heading} {{ #{anchor} }}", _signature_block(anchor, value), _prose(inspect.getdoc(value) or "")]
    parts.append(_searched(prefix, names))
    if isinstance(value, type) and not issubclass(value, BaseException | enum.Enum):
        parts += _members(anchor, value)
    return "\n\n".join(part for part in parts if part)


def _searched(prefix: str, names: list[str]) -> str:
    """Return hidden text with the full names of an entry in another library, which the search then finds."""
    module = "Tensor" if prefix == "x" else prefix.removeprefix("rg").removeprefix(".")
    if module.startswith(OWN):
        return ""
    module = ELSEWHERE.get(module, module)
    library = "" if module.startswith(("numpy", "scipy")) else "torch"
    full = " ".join(".".join(filter(None, (library, module, name))) for name in names)
    return f'<span class="searched">{full}</span>'


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the public members that a class adds to those of its public bases."""
    load_all()
    bases = [base for base in cls.__mro__[1:] if _is_public(base)]
    added = [name for base in cls.__mro__ if base is cls or not _is_public(base) for name in vars(base)]
    for name in dir(cls) if cls is rg.Tensor else dict.fromkeys(added):
        inherited = any(hasattr(base, name) for base in bases) and cls is not rg.Tensor
        if not name.startswith("_") and not inherited:
            yield name, inspect.getattr_static(cls, name)


@cache
def _listed() -> dict[int, Any]:
    """Return the public names' values of all modules by identity."""
    modules = [importlib.import_module(f"retrograd.{name}") for names in MODULES.values() for name in names]
    values = [getattr(rg, name) for name in dir(rg) if not name.startswith("_")]
    values += [value for module in modules for value in _public_names(module).values()]
    return {id(value): value for value in values}


def _is_public(cls: type) -> bool:
    """Return whether the names of a class are listed by itself, not by the classes that inherit from it."""
    inner = cls.__module__.startswith("retrograd") and not cls.__module__.startswith("retrograd.core.")
    return id(cls) in _listed() or not inner  # those of the core, such as Operator, have names of the implementation


def _members(anchor: str, cls: type) -> Iterator[str]:
    """Yield entries of the methods and properties of a class; calling a module is its `forward`."""
    for name, value in members(cls):
        value = getattr(value, "__func__", value)
        plain = (inspect.isroutine(value) or isinstance(value, property)) and not isinstance(value, Operator)
        if plain and name != "forward" and value.__doc__:
            signature, text = _signature_block(name, value), _prose(inspect.getdoc(value))
            heading = f'`{cls.__name__}.{name}` {{ #{anchor}.{name} data-toc-label="{name}" }}'
            yield f"### {heading}\n\n{signature}\n\n{text}"


def _signature_block(name: str, value: Any) -> str:
    """Return a signature as a block of code: on one line, or one argument a line."""
    text = _signature(value, bound=name.startswith("x."))
    if text is None:
        return ""
    arguments, result = text
    line = f"{name}({', '.join(arguments)}){result}"
    if len(line) > WIDTH:
        lines = (textwrap.wrap(f"{argument},", WIDEST, **INDENTS) for argument in arguments)
        line = f"{name}(\n" + "".join(f"{line}\n" for argument in lines for line in argument) + f"){result}"
    return f"```python {{ .signature }}\n{line}\n```"


def _signature(value: Any, bound: bool) -> tuple[list[str], str] | None:
    """Return arguments and result as text; None if the object is not callable.  A bound first argument is left out."""
    if isinstance(value, property) or (isinstance(value, type) and issubclass(value, enum.Enum)):
        return None
    if hasattr(value, "called_as"):
        arguments, _, result = str(value.called_as).partition("(")[2].rpartition(") ->")
        return re.split(r", (?![^\[(]*[\])])", arguments), f" -> {result.strip()}"
    try:
        signature = inspect.signature(value, follow_wrapped=False)
        if {p.kind for p in signature.parameters.values()} <= {
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        }:
            signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    arguments = list(_arguments(list(signature.parameters.values())[bound:]))
    result = signature.return_annotation
    plain = isinstance(value, type) or result in (inspect.Signature.empty, None)
    return arguments, "" if plain else f" -> {_short_type_name(inspect.formatannotation(result))}"


def _arguments(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield arguments as text without `self`, with the marker of those that are keyword-only."""
    named = False
    for parameter in parameters:
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            yield "*"
        named |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        yield _argument(parameter)


def _argument(parameter: inspect.Parameter) -> str:
    """Return name, type and default of an argument."""
    empty = inspect.Parameter.empty
    annotation = inspect.formatannotation(parameter.annotation)
    kind = "" if parameter.annotation is empty else f": {_short_type_name(annotation)}"
    default = _default(parameter.default)
    end = "" if parameter.default is empty else f" = {default}" if kind else f"={default}"
    return f"{parameter.replace(annotation=empty, default=empty)}{kind}{end}"


def _default(value: Any) -> str:
    """Return a default as text that is the same on every machine: no memory address, no path."""
    if type(value) in (tuple, list):
        parts = ", ".join(_default(part) for part in value)
        return f"[{parts}]" if isinstance(value, list) else f"({parts},)" if len(value) == 1 else f"({parts})"
    if inspect.ismodule(value):
        return value.__name__
    if isinstance(value, type) or inspect.isroutine(value):
        return value.__qualname__ if "<" not in value.__qualname__ else "..."
    text = repr(value)
    return "..." if OF_A_MACHINE.search(text) else text


def _short_type_name(annotation: str) -> str:
    """Return the last name of a type."""
    return PREFIXES.sub("", annotation).replace("'", "")


def _prose(text: str) -> str:
    """Return a docstring as Markdown: doctests become blocks of code, and special characters of text are escaped."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{inspect.cleandoc(paragraph)}\n```")
        else:
            parts.append(_lists("".join(_escape(part) for part in CODE.split(paragraph))))
    return "\n\n".join(parts)


def _escape(part: str) -> str:
    if part.startswith("`"):
        return part.replace("``", "`")
    return re.sub(r"([\\*_\[\]])", r"\\\1", part).replace("&", "&amp;").replace("<", "&lt;")


def _lists(paragraph: str) -> str:
    """Insert a blank line before the first item of a list, as Markdown requires."""
    return re.sub(r"\n(?=- )", "\n\n", paragraph, count=1) if not paragraph.startswith("- ") else paragraph
