"""Draw the autograd graph of a tensor: the graph that a backward pass visits, as a picture."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from retrograd.autograd.drawing.read import read
from retrograd.autograd.drawing.svg import render
from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.atomic_write import atomic_replace

if TYPE_CHECKING:  # which shows `draw` to users
    from retrograd.autograd.graph import GradientEdge

    Outputs = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]

Names = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]


class SVG:
    """A picture as SVG text: notebooks display it, `save` writes it to a file, `str` returns the text.

    >>> SVG("<svg/>")
    <SVG of 6 characters: save(path) writes it to a file>
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file whose name ends in .svg; an older one is replaced in one step.

        Raises ValueError for another ending, and OSError where the file can't be written.
        """
        target = Path(path)
        if target.suffix.lower() != ".svg":
            raise ValueError(f"save: the picture is SVG, so the file's name must end in .svg, got {target.name!r}")
        with atomic_replace(target) as unfinished:
            unfinished.write_text(self._text, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self._text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<SVG of {len(self._text)} characters: save(path) writes it to a file>"


def draw(outputs: "Tensor | GradientEdge | Sequence[Tensor | GradientEdge]", *, params: Names | None = None) -> SVG:
    """Return a picture of the autograd graph of one or more tensors.

    Leaves are green, with dtype and shape; operators have the names that users call them by; arrows point in the
    direction of the forward pass.  Inputs that need no gradient are not part of the graph.  A tooltip on an operator
    shows its params and saved values.  Equal subgraphs in a row, such as the layers of a network, are drawn once, in a
    frame with their number ("× 48").  The middle of a long row of different operators is left out.

    `params` names leaves: a dict from name to tensor, or pairs, such as `module.named_parameters()`.

    Raises RuntimeError for a tensor that does not require grad, ValueError without outputs, and TypeError for
    objects that are no tensors.

    >>> import retrograd as rg
    >>> w = rg.ones(3, requires_grad=True)
    >>> picture = draw((w * w).sum(), params={"w": w})
    >>> "1 leaf" in str(picture), "2 operators" in str(picture)
    (True, True)
    """
    single = isinstance(outputs, Tensor) or hasattr(outputs, "node")  # a GradientEdge has one, and is a tuple too
    roots = [outputs] if single else list(outputs)
    if not roots:
        raise ValueError("draw: there is nothing to draw; give a tensor, or several")
    return SVG(render(read(roots, _names(params or {}))))


def _names(params: Names) -> dict[int, str]:
    """Return the name of each leaf, by its id."""
    pairs = list(params.items() if isinstance(params, Mapping) else params)
    for name, tensor in pairs:
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(f"draw: params must be tensors by name, got {name!r}: {type(tensor).__name__}")
    return {id(tensor): name for name, tensor in pairs}


suggest_in_module(globals())
