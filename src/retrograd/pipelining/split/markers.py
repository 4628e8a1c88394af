"""Stage boundaries marked by users: in a model's code, or before and after its submodules."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from retrograd.core import Aval, Internal, current, op
from retrograd.core.blocks import generator_block
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn import Module


@op("pipe_split() -> Tensor")
class marker(Internal, differentiable=False, impure=True):
    """A stage boundary in a captured graph."""

    def impl(xp: Any) -> Any:
        return xp.zeros(())

    def shape() -> Aval:
        return Aval((), "float64")

    def oracle(np: Any) -> Any:
        return np.zeros(())

    def samples(r: Any) -> Any:
        yield (), {}


def pipe_split() -> None:
    """Mark a stage boundary here, in a model's forward.  Has an effect only while the model is captured.

    >>> pipe_split()
    """
    if current().level is not None:
        marker()


class SplitPoint(Enum):
    """The position of a boundary: before a submodule runs, or after it."""

    BEGINNING = 1
    END = 2


class PipeSplitWrapper:
    """An older home of `SplitPoint`, which PyTorch still has."""

    SplitPoint = SplitPoint


Spec = Mapping[str, SplitPoint]
ATTRIBUTE = "_split_point"  # of annotated submodules: copied and pickled with them


def annotate_split_points(mod: Module, spec: Mapping[str, SplitPoint | None]) -> None:
    """Record where `pipeline` cuts a module, or a model that contains it: submodule path -> SplitPoint.

    The submodules run as before.  Calls accumulate; for the same submodule the last one counts, and None removes its
    split point.  A copied, moved or unpickled submodule has its split point too.

    Raises AttributeError for a path that does not exist, ValueError for anything but a SplitPoint, and TypeError
    for another type of spec; then nothing is recorded.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import pipeline
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.ReLU(), rg.nn.Linear(8, 2))
    >>> annotate_split_points(model, {"1": SplitPoint.END})
    >>> pipeline(model, (rg.ones(3, 4),)).num_stages
    2
    """
    for submodule, point in _submodules(mod, spec, (*SplitPoint, None)):
        vars(submodule)[ATTRIBUTE] = point
        if point is None:
            del vars(submodule)[ATTRIBUTE]


@generator_block
def insert_markers(module: Module, split_spec: Spec) -> Iterator[None]:
    """Insert the boundaries of a spec and of annotations while the block runs."""
    points = _submodules(module, split_spec, tuple(SplitPoint))
    points += [(part, vars(part)[ATTRIBUTE]) for part in module.modules() if ATTRIBUTE in vars(part)]
    handles = []
    try:
        for submodule, point in dict.fromkeys(points):
            if point is SplitPoint.BEGINNING:
                handles.append(submodule.register_forward_pre_hook(lambda module, args: pipe_split()))
            else:
                handles.append(submodule.register_forward_hook(lambda module, args, output: pipe_split()))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _submodules(module: Module, spec: Mapping[str, Any], kinds: tuple) -> list[tuple[Module, Any]]:
    """Return the submodules that a spec names, with their split points; errors for anything but these kinds."""
    if not isinstance(spec, Mapping) or not all(isinstance(path, str) for path in spec):
        raise TypeError(f"split_spec: expected a dict from submodule paths to SplitPoint, got {spec!r}")
    for path, point in spec.items():
        if not any(point is kind for kind in kinds):
            raise ValueError(
                f"split_spec[{path!r}]: expected SplitPoint.BEGINNING or SplitPoint.END, got {describe(point)}"
            )
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


suggest_in_module(globals())
