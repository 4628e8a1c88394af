"""Stage boundaries that users mark: in a model's code, or before and after its submodules."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any
from weakref import WeakKeyDictionary

from retrograd.core import Aval, Definition, current, op
from retrograd.nn import Module


@op("pipe_split() -> Tensor")
class marker(Definition, differentiable=False, impure=True):
    """A stage boundary in a captured graph."""

    public = False
    method = False

    def impl(xp: Any) -> Any:  # type: ignore[override]
        return xp.zeros(())

    def shape() -> Aval:  # type: ignore[misc]
        return Aval((), "float64")

    def samples(r: Any) -> Any:
        yield (), {}


def pipe_split() -> None:
    """Mark a stage boundary here, in a model's forward.  Does nothing but when the model is captured.

    >>> pipe_split()
    """
    if current().level is not None:
        marker()


class SplitPoint(Enum):
    """Where a boundary lies: before a submodule runs, or after it."""

    BEGINNING = "beginning"
    END = "end"


Spec = Mapping[str, SplitPoint]
_annotations: WeakKeyDictionary[Module, Spec] = WeakKeyDictionary()


def annotate_split_points(mod: Module, spec: Spec) -> None:
    """Say where `pipeline` is to cut a module, or a model that contains it: submodule path -> SplitPoint.

    The module itself is not changed, and runs as before.  A later call for the same module replaces what an
    earlier one said; an empty spec takes it back.  A copy of the module is cut nowhere.

    Raises AttributeError for a path that does not exist, ValueError for a kind that is no SplitPoint, and TypeError
    for what is no such dict.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import pipeline
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.ReLU(), rg.nn.Linear(8, 2))
    >>> annotate_split_points(model, {"1": SplitPoint.END})
    >>> pipeline(model, (rg.ones(3, 4),)).num_stages
    2
    """
    _places(mod, spec)
    _annotations[mod] = dict(spec)


@contextmanager
def marked(module: Module, split_spec: Spec) -> Iterator[None]:
    """Boundaries where a spec and annotations say, for as long as the block lasts."""
    places = _places(module, split_spec)
    for part in module.modules():
        places += _places(part, _annotations.get(part, {}))
    handles = []
    try:
        for submodule, point in dict.fromkeys(places):
            if point is SplitPoint.BEGINNING:
                handles.append(submodule.register_forward_pre_hook(lambda module, args: pipe_split()))
            else:
                handles.append(submodule.register_forward_hook(lambda module, args, output: pipe_split()))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _places(module: Module, spec: Spec) -> list[tuple[Module, SplitPoint]]:
    """The submodules that a spec names, with where to cut; errors for what it must not say."""
    if not isinstance(spec, Mapping) or not all(isinstance(path, str) for path in spec):
        raise TypeError(f"split_spec: expected a dict from submodule paths to SplitPoint, got {spec!r}")
    for path, point in spec.items():
        if not isinstance(point, SplitPoint):
            raise ValueError(f"split_spec[{path!r}]: expected SplitPoint.BEGINNING or SplitPoint.END, got {point!r}")
    return [(_submodule(module, path), point) for path, point in spec.items()]


def _submodule(module: Module, path: str) -> Module:
    found = module
    for depth, part in enumerate(parts := path.split(".")):
        try:
            found = found.get_submodule(part or "''")
        except AttributeError:
            place = f" at {'.'.join(parts[:depth])!r}" if depth else ""
            raise AttributeError(
                f"split_spec[{path!r}]: the {type(found).__name__}{place} has no submodule {part!r}; it has "
                f"{', '.join(repr(name) for name, _ in found.named_children()) or 'none'}"
            ) from None
    return found
