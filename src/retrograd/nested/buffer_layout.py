"""The layout of a nested tensor's dimensions in its buffer, as derived from its shape."""

from typing import NamedTuple

from retrograd.backend.ragged import Ragged, RaggedSize, Structure, no_sizes
from retrograd.core import Tensor
from retrograd.core.tensor import unwrap_all


class Layout(NamedTuple):
    """The structure of the components, and the positions of their dimensions: see `backend.ragged.Ragged`.

    A nested tensor of shape (*lead sizes, components, *before, *ragged sizes, *after) has a buffer of shape
    (*lead sizes, *before, rows, *after).
    """

    structure: Structure
    axis: int
    lead: int
    ndim: int

    @property
    def num_ragged(self) -> int:
        """Return the number of ragged dimensions."""
        count: int = self.structure.sizes.shape[1]
        return count

    @property
    def ragged(self) -> range:
        """Return the ragged dimensions."""
        first = self.lead + 1 + self.axis
        return range(first, first + self.num_ragged)

    @property
    def row(self) -> int:
        """Return the dimension of the buffer that holds the rows."""
        return self.lead + self.axis

    @property
    def has_holes(self) -> bool:
        """Whether some rows of the buffer belong to no component."""
        return self.structure.starts is not None

    def buffer_dim(self, dim: int) -> int | None:
        """Return the buffer dimension of a dimension counted from the front; None for the components and ragged
        ones."""
        if dim == self.lead or dim in self.ragged:
            return None
        return dim if dim < self.lead else dim - 1 if dim < self.ragged.start else dim - self.num_ragged


def layout_of_shape(shape: tuple) -> Layout:
    """Return the layout of a nested tensor of this shape.

    For one component inside a loop or `vmap`, where the tensor is not nested to the code that has it, `lead` is -1.
    """
    for d, size in enumerate(shape):
        if isinstance(size, RaggedSize):
            return Layout(size.structure, size.axis, d - 1 - size.axis, len(shape))
    return Layout(no_sizes(shape[-1] if shape else 0), 0, len(shape) - 1, len(shape))


def is_nested(x: object) -> bool:
    """Whether an object is a nested tensor at its own level."""
    if not isinstance(x, Tensor):
        return False
    if x.level is None:
        return type(x.value) is Ragged
    return type(unwrap_all(x)) is Ragged and layout_of_shape(x.shape).lead >= 0


def get_layout(x: Tensor) -> Layout:
    """Return the layout of a nested tensor at its own level."""
    if x.level is not None:
        return layout_of_shape(x.shape)
    array = x.value
    if array.cached_layout is None:
        array.cached_layout = Layout(array.structure, array.axis, array.lead, array.ndim)
    layout: Layout = array.cached_layout
    return layout


def component_shapes(x: Tensor) -> list[tuple]:
    """Return the shapes of the components; if these are nested, with ragged sizes."""
    layout = get_layout(x)
    before, after = x.shape[layout.lead + 1 : layout.ragged.start], x.shape[layout.ragged.stop :]
    return [(*x.shape[: layout.lead], *before, *sizes, *after) for sizes in layout.structure.sizes.tolist()]
