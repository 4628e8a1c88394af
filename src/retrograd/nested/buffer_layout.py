"""How the dimensions of a nested tensor lie in its buffer: what its shape tells."""

from typing import NamedTuple

from retrograd.backend.ragged import Ragged, RaggedSize, Structure, no_sizes
from retrograd.core import Tensor
from retrograd.core.tensor import unwrap_all


class Layout(NamedTuple):
    """The structure of the components, and where their dimensions lie: see `backend.ragged.Ragged`.

    A nested tensor of shape (*lead sizes, components, *before, *ragged sizes, *after) has a buffer of shape
    (*lead sizes, *before, rows, *after).
    """

    structure: Structure
    axis: int
    lead: int
    ndim: int

    @property
    def several(self) -> int:
        """How many dimensions are ragged."""
        count: int = self.structure.sizes.shape[1]
        return count

    @property
    def ragged(self) -> range:
        """The ragged dimensions."""
        first = self.lead + 1 + self.axis
        return range(first, first + self.several)

    @property
    def row(self) -> int:
        """Which dimension of the buffer the rows are."""
        return self.lead + self.axis

    @property
    def holes(self) -> bool:
        """Whether parts of the buffer belong to no component."""
        return self.structure.starts is not None

    def in_buffer(self, dim: int) -> int | None:
        """Where a dimension, counted from the front, lies in the buffer; None for the components and ragged ones."""
        if dim == self.lead or dim in self.ragged:
            return None
        return dim if dim < self.lead else dim - 1 if dim < self.ragged.start else dim - self.several


def layout_of(shape: tuple) -> Layout:
    """The layout of a nested tensor of a shape.

    Of an example of a batch of components, which is no nested tensor to the code that has it, `lead` is -1.
    """
    for d, size in enumerate(shape):
        if isinstance(size, RaggedSize):
            return Layout(size.structure, size.axis, d - 1 - size.axis, len(shape))
    return Layout(no_sizes(shape[-1] if shape else 0), 0, len(shape) - 1, len(shape))


def is_nested(x: object) -> bool:
    """Whether something is a tensor with components, as the code that has it sees it."""
    if not isinstance(x, Tensor):
        return False
    if x.level is None:
        return type(x.value) is Ragged
    return type(unwrap_all(x)) is Ragged and layout_of(x.shape).lead >= 0


def layout(x: Tensor) -> Layout:
    """The layout of a nested tensor, as the code that has it sees it."""
    if x.level is not None:
        return layout_of(x.shape)
    array = x.value
    if array.known is None:
        array.known = Layout(array.structure, array.axis, array.lead, array.ndim)
    known: Layout = array.known
    return known


def component_shapes(x: Tensor) -> list[tuple]:
    """The shapes of the components; of sets of sets, with ragged sizes in them."""
    known = layout(x)
    before, after = x.shape[known.lead + 1 : known.ragged.start], x.shape[known.ragged.stop :]
    return [(*x.shape[: known.lead], *before, *sizes, *after) for sizes in known.structure.sizes.tolist()]
