"""The stage boundary that users write into a model's code: an operator without inputs."""

from typing import Any

from retrograd.core import Aval, Definition, current, op


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
