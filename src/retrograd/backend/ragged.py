"""Ragged arrays: one buffer for components whose sizes differ. The kind of array behind nested tensors.

A component of shape (*before, *sizes, *after) is stored in the buffer as (*before, rows, *after): its ragged
dimensions, those whose sizes differ between components, are flattened into one dimension there, along which the
components follow each other. With one ragged dimension that is PyTorch's "jagged" layout; with several, images of
different height and width, say. If components differ in depth too (sets of sets), the buffer is a ragged array itself.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from retrograd.backend.ragged_text import text as text
from retrograd.core.aval import SymbolicSize, symbolic
from retrograd.core.errors import OperandValueError
from retrograd.core.level import NotBatchedError
from retrograd.core.tensor import TensorBase


class RaggedSizeError(NotBatchedError, TypeError):
    """A program asks for the size of a ragged dimension as a number, but each component has another one."""


def _refused_operand(operator):
    """Return a reflected method that refuses a ragged size as operand, in PyTorch's words if the other is a tensor."""

    def refuse(size, other):
        words = f"NestedTensor {operator}.Tensor: invalid argument {size}: " if isinstance(other, TensorBase) else ""
        size._refuse(operand_of=words)

    return refuse


class RaggedSize(SymbolicSize):
    """The size of a ragged dimension, for a shape. Two are equal if the sizes of all components are.

    It is the size of the `column`-th ragged dimension of the structure; components have `axis` dimensions before the
    ragged ones. `number` distinguishes the ragged dimensions of one shape where they are printed: j, j2, j3.
    """

    __slots__ = ("axis", "column", "number", "structure")

    def __init__(self, structure, column, axis, number=1):
        self.structure = structure
        self.column = column
        self.axis = axis
        self.number = number

    @property
    def sizes(self):
        """The sizes in the components, as an array."""
        return self.structure.sizes[:, self.column]

    def __eq__(self, other):
        if not isinstance(other, RaggedSize):
            return False
        if self.structure is other.structure and self.column == other.column:
            return True
        return np.array_equal(self.sizes, other.sizes)

    def size_of_dim(self, dim):
        """Return the size itself in the jagged layout; in the strided one the number, or raise if sizes differ."""
        if not self.structure.strided:
            return self
        if len(self.sizes) and (self.sizes == self.sizes[0]).all():
            return int(self.sizes[0])
        raise RuntimeError(
            f"size: Given dimension {dim} is irregular and does not have a size. It differs between the components "
            f"({self._sizes_text()}); see offsets() and to_padded_tensor()"
        )

    def is_example_dim(self, dim):
        """Return whether a shape with this size at index `dim` is the shape of one component."""
        return dim <= self.axis

    def typical(self):
        """Return the mean over the components."""
        return round(self.sizes.mean()) if len(self.sizes) else 0

    def make_array(self, make, shape):
        """Return the array of a nested tensor of this shape, over a buffer that `make` returns."""
        lead, whole = self._buffer(shape)
        inner = symbolic(whole)
        values = make(whole) if inner is None else inner.make_array(make, whole)
        return Ragged(values, self.structure.packed, self.axis, lead)

    def broadcast(self, array, shape):
        """Return an array broadcast to the shape of a nested tensor.

        The shape of a component, which is passed only to see whether the result would share memory, is broadcast for
        all of them.
        """
        if self.is_example_dim(next(d for d, size in enumerate(shape) if isinstance(size, RaggedSize))):
            return self.broadcast(array, (len(self.structure), *shape))
        lead, whole = self._buffer(shape)
        row, dim = lead + self.axis, lead + 1 + self.axis
        x = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
        x = np.moveaxis(x.reshape(*x.shape[:dim], *x.shape[dim + self.structure.sizes.shape[1] :]), lead, row)
        if x.shape[row] != 1:
            x = np.repeat(x, self.structure.lengths, axis=row)
        inner = symbolic(whole)
        values = np.broadcast_to(x, whole) if inner is None else inner.broadcast(x, whole)
        return Ragged(values, self.structure.packed, self.axis, lead)

    def _buffer(self, shape):
        """Return the number of dimensions before that of the components, and the shape of the buffer."""
        dim = next(d for d, size in enumerate(shape) if isinstance(size, RaggedSize))
        lead, last = dim - 1 - self.axis, dim + self.structure.sizes.shape[1]
        if lead < 0 or shape[lead] != len(self.structure):
            self._refuse()
        return lead, (*shape[:lead], *shape[lead + 1 : dim], self.structure.rows, *shape[last:])

    def differs(self, other):
        """Return a text that names the first component in which this size differs from `other`."""
        pairs = zip(self.sizes.tolist(), other.sizes.tolist(), strict=False)
        for number, (size, its) in enumerate(pairs):
            if size != its:
                return f"in component {number} the size {self} is {size} and {its}"
        return f"there are {len(self.sizes)} and {len(other.sizes)} components"

    def __hash__(self):
        return hash(self.sizes.tobytes())

    def __repr__(self):
        return "j" if self.number == 1 else f"j{self.number}"

    def _sizes_text(self):
        return ", ".join(map(str, self.sizes[:6])) + (", ..." if len(self.sizes) > 6 else "")

    def _refuse(self, *others, operand_of=""):
        raise RaggedSizeError(
            f"{operand_of}the size of a ragged dimension differs between the components ({self._sizes_text()}) and is "
            f"no number; see offsets() and to_padded_tensor(), and for a vmap over components its fallback='loop'"
        )

    __index__ = __int__ = __float__ = __bool__ = _refuse
    __add__ = __sub__ = __mul__ = __floordiv__ = __rfloordiv__ = __truediv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __neg__ = _refuse
    __radd__, __rsub__, __rmul__, __rtruediv__ = map(_refused_operand, ("add", "sub", "mul", "div"))
    __lt__ = __le__ = __gt__ = __ge__ = _refuse


class Structure:
    """The layout of components in the rows of a buffer: the sizes and first row of each. Immutable.

    `sizes` (int64) has a row for each component and a column for each ragged dimension; a component has as many rows as
    the product of its sizes. `starts` holds the first row of each component, or is None if the components follow each
    other without holes. `strided` is whether the tensor is in PyTorch's strided layout: no computation depends on it.
    """

    __slots__ = ("_device_offsets", "_lengths", "_offsets", "sizes", "starts", "strided")

    def __init__(self, sizes, starts=None, offsets=None, strided=False):
        self.sizes = sizes
        self.starts = starts
        self.strided = strided
        self._offsets = offsets
        self._lengths = None
        self._device_offsets = None  # (type of a device's arrays, the offsets there)

    @property
    def lengths(self):
        """The number of rows of each component."""
        if self._lengths is None:
            self._lengths = self.sizes[:, 0] if self.sizes.shape[1] == 1 else np.prod(self.sizes, axis=1)
        return self._lengths

    @property
    def offsets(self):
        """The first row of each component, and the end of the last one, in a buffer without holes."""
        if self._offsets is None:
            offsets = np.zeros(len(self.sizes) + 1, np.int64)
            np.cumsum(self.lengths, out=offsets[1:])
            self._offsets = offsets
        return self._offsets

    def offsets_for(self, kind, copy):
        """Return the offsets as an array of a device, of type `kind`: the last one is kept, copied by a function."""
        if self._device_offsets is None or self._device_offsets[0] is not kind:
            self._device_offsets = kind, copy(self.offsets)
        return self._device_offsets[1]

    @property
    def rows(self):
        """The number of rows of all components."""
        return int(self.offsets[-1])

    @property
    def packed(self):
        """Return the structure with the same sizes and no holes."""
        return self if self.starts is None else Structure(self.sizes, strided=self.strided)

    def in_layout(self, strided):
        """Return the same structure in the strided or the jagged layout."""
        return self if self.strided == strided else Structure(self.sizes, self.starts, self._offsets, strided)

    def __len__(self):
        return len(self.sizes)

    def bounds(self):
        """Return the first row and the end of each component, as Python ints."""
        if self.starts is None:
            offsets = self.offsets.tolist()
            return list(pairwise(offsets))
        return list(zip(self.starts.tolist(), (self.starts + self.lengths).tolist(), strict=True))

    def row_indices(self):
        """Return the index in the buffer of each row, in the order of the components."""
        if self.starts is None:
            return np.arange(self.rows)
        return np.arange(self.rows) + np.repeat(self.starts - self.offsets[:-1], self.lengths)

    def of(self, numbers):
        """Return the structure of some components, in the same buffer."""
        starts = self.offsets[:-1] if self.starts is None else self.starts
        return Structure(self.sizes[numbers], starts[numbers])

    def components(self):
        """Return the component index of each row."""
        return np.repeat(np.arange(len(self.sizes)), self.lengths)

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Structure) or (self.starts is None) != (other.starts is None):
            return False
        return np.array_equal(self.sizes, other.sizes) and np.array_equal(self.starts, other.starts)

    def __hash__(self):
        return hash(self.sizes.tobytes())

    def __repr__(self):
        return f"Structure(sizes={self.sizes.tolist()})"

    def __reduce__(self):
        return Structure, (self.sizes, self.starts, None, self.strided)


class Flags(NamedTuple):
    """The subset of NumPy's array flags that is needed."""

    c_contiguous: bool
    writeable: bool


class Ragged:
    """A buffer, `values`, and the structure of its rows, which are its dimension `lead + axis`.

    The shape is (*lead sizes, components, *before, *ragged sizes, *after). The first `lead` dimensions are the same for
    all components, such as the examples of a batch; `axis` is the number of dimensions in `before`.
    """

    __slots__ = ("__weakref__", "_shape", "axis", "cached_layout", "lead", "structure", "values")
    __array_ufunc__ = None  # keeps NumPy's functions from treating it as an object

    def __init__(self, values, structure, axis=0, lead=0):
        self.values = values
        self.structure = structure
        self.axis = axis
        self.lead = lead
        self._shape = None
        self.cached_layout = None  # cache of retrograd.nested

    @property
    def shape(self):
        """The sizes of the dimensions, those of ragged ones symbolic."""
        if self._shape is None:
            self._shape = shape_over(self.values.shape, self.structure, self.axis, self.lead)
        return self._shape

    @property
    def ndim(self):
        """The number of dimensions."""
        return self.values.ndim + self.structure.sizes.shape[1]

    @property
    def dtype(self):
        """The dtype of the buffer."""
        return self.values.dtype

    @property
    def memory(self):
        """The plain array that holds the elements."""
        return getattr(self.values, "memory", self.values)

    @property
    def flags(self):
        """NumPy's flags of the memory; with holes it is not contiguous."""
        return Flags(self.structure.starts is None and self.values.flags.c_contiguous, self.memory.flags.writeable)

    @property
    def size(self):
        """The number of elements of all components."""
        if self.structure.starts is None:
            return self.values.size
        return sum(rows_of(self.values, self.lead + self.axis, *bounds).size for bounds in self.structure.bounds())

    @property
    def nbytes(self):
        """The number of bytes of the elements."""
        return self.size * self.dtype.itemsize

    def astype(self, dtype, copy=True):
        """Return the same components in another dtype."""
        return self.over(self.values.astype(dtype, copy=copy))

    def copy(self):
        """Return a copy of the components."""
        return self.over(copy_buffer(self.values))

    def layout_key(self):
        """Return all except dtype and values: programs for arrays with an equal key run the same kernels."""
        values = self.values
        inner = values.layout_key() if isinstance(values, Ragged) else (values.shape, values.strides)
        return Ragged, self.structure, self.structure.strided, self.axis, self.lead, inner

    def over(self, values):
        """Return a ragged array with the same structure over another buffer."""
        return Ragged(values, self.structure, self.axis, self.lead)

    def components(self):
        """Return the components, as views of the memory (or ragged arrays, for sets of sets)."""
        row = self.lead + self.axis
        parts = [rows_of(self.values, row, *bounds) for bounds in self.structure.bounds()]
        if self.structure.sizes.shape[1] == 1:
            return parts
        sizes = self.structure.sizes.tolist()
        return [p.reshape((*p.shape[:row], *s, *p.shape[row + 1 :])) for p, s in zip(parts, sizes, strict=True)]

    def between(self, first, last):
        """Return the components from `first` to before `last`, as views of the memory."""
        sizes, starts = self.structure.sizes[first:last], self.structure.starts
        if starts is not None:
            structure = Structure(sizes, starts[first:last], strided=self.structure.strided)
            return Ragged(self.values, structure, self.axis, self.lead)
        start, stop = self.structure.offsets[[first, max(first, last)]].tolist()
        return Ragged(rows_of(self.values, self.lead + self.axis, start, stop), Structure(sizes), self.axis, self.lead)

    def tolist(self):
        """Return the components as nested lists of Python numbers."""
        if self.lead:
            return [self.at(number).tolist() for number in range(self.shape[0])]
        return [component.tolist() for component in self.components()]

    def at(self, number):
        """Return the array at an index along the single leading dimension."""
        values = self.values.at(number) if isinstance(self.values, Ragged) else self.values[number]
        return Ragged(values, self.structure, self.axis, self.lead - 1)

    def item(self):
        """Return the only element of all components."""
        return next(component for component in self.components() if component.size).item()

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(
            f"a nested tensor of shape {self.shape} is no NumPy array: see unbind() for its components, values() for "
            f"the rows of all of them, and to_padded_tensor(padding)"
        )

    @property
    def strides(self):
        raise RuntimeError(
            f"a nested tensor of shape {self.shape} has no strides: each of its components has; see unbind() and "
            f"values()"
        )

    def __deepcopy__(self, memo):
        return self.copy()

    def __getitem__(self, key):
        if key is Ellipsis:
            return self.over(self.values[...])
        raise NotImplementedError  # operators index the buffer

    def __repr__(self):
        return f"Ragged{self.shape}"


# ------------------------------------------------------------------------------------- buffers of both kinds


def rows_of(values, axis, first, last):
    """Return the rows from `first` to before `last` of a buffer, as a view."""
    if isinstance(values, Ragged):
        return values.between(first, last)
    return values[(*(slice(None),) * axis, slice(first, last))]


def copy_buffer(values):
    """Return a copy of a buffer."""
    return values.copy() if isinstance(values, Ragged) else values.copy(order="K")


def concat_buffers(buffers, axis):
    """Return buffers concatenated along the rows, in new memory."""
    if not isinstance(buffers[0], Ragged):
        return np.concatenate(buffers, axis=axis)
    first, row = buffers[0], buffers[0].lead + buffers[0].axis
    values = concat_buffers([pack(b).values for b in buffers], row)
    sizes = np.concatenate([b.structure.sizes for b in buffers])
    return Ragged(values, Structure(sizes), first.axis, first.lead)


def pack(array):
    """Return a ragged array without holes between its components; itself if it has none."""
    if array.structure.starts is None:
        return array
    row = array.lead + array.axis
    parts = [rows_of(array.values, row, *bounds) for bounds in array.structure.bounds()]
    values = concat_buffers(parts, row) if parts else rows_of(array.values, row, 0, 0)
    return Ragged(values, array.structure.packed, array.axis, array.lead)


def shape_over(shape, structure, axis, lead):
    """Return the shape of a ragged array whose buffer has the given shape."""
    row = lead + axis
    ragged_ndim = structure.sizes.shape[1]
    ragged = [RaggedSize(structure, column, axis, column + 1) for column in range(ragged_ndim)]
    behind = shape[row + 1 :] if structure.starts is None else _sizes_of_rows(shape[row + 1 :], structure.row_indices())
    behind = [_renumber(size, ragged_ndim) if isinstance(size, RaggedSize) else size for size in behind]
    return (*shape[:lead], len(structure), *shape[lead:row], *ragged, *behind)


def _renumber(size, more):
    """Return a ragged size of the buffer, numbered after the ragged sizes before it."""
    return RaggedSize(size.structure, size.column, size.axis, size.number + more)


def _sizes_of_rows(sizes, rows):
    """Return the sizes after the rows of a buffer that is ragged itself, for rows that are in no hole."""
    found, whole, part = [], None, None
    for size in sizes:
        if isinstance(size, RaggedSize):
            if size.structure is not whole:
                rows = rows if whole is None else part.row_indices()
                whole, part = size.structure, size.structure.of(rows)
            size = RaggedSize(part.packed, size.column, size.axis, size.number)
        found.append(size)
    return found


def structure_of(shapes):
    """Return the structure of components of these shapes, and the number of dimensions before the ragged ones.

    Ragged are the dimensions from the first to the last whose sizes differ; the first, if none does. A ValueError names
    the first component with another number of dimensions than the first one.
    """
    ndim = len(shapes[0])
    for i, shape in enumerate(shapes):
        if len(shape) != ndim:
            raise OperandValueError(
                f"When constructing a nested tensor, all tensors in list must have the same dimension. Found dimension "
                f"{len(shape)} for Tensor at index {i} and dimension {ndim} for Tensor at index {i - 1}. (component 0 "
                f"has shape {shapes[0]}, component {i} has shape {shape})"
            )
    whole = [d for d in range(ndim) if isinstance(shapes[0][d], RaggedSize)]
    differ = [d for d in range(whole[0] if whole else ndim) if any(s[d] != shapes[0][d] for s in shapes)]
    first, last = (differ[0], differ[-1] + 1) if differ else (0, min(ndim, 1))
    sizes = np.array([shape[first:last] for shape in shapes], np.int64).reshape(len(shapes), last - first)
    return Structure(sizes), first


def no_sizes(count):
    """Return the structure of components without dimensions."""
    return Structure(np.zeros((count, 0), np.int64))


def no_components(ragged_ndim):
    """Return the structure of no components, with the given number of ragged dimensions."""
    return Structure(np.zeros((0, ragged_ndim), np.int64))
