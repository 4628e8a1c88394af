"""`Division`: how a tensor of some shape is divided over a mesh, and which elements this rank has."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from retrograd.core import Tensor
from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.local_slice import move_back, move_to_front
from retrograd.distributed.tensor.placements import Partial, Placement, Shard, StridedShard

Range = tuple[int, int]
Placements = tuple[Placement, ...]


@dataclass(frozen=True)
class Division:
    """How a tensor of some shape is divided, and which elements this rank has.

    Along a dimension of the mesh with `Shard`, rank i of n has the indices from i·⌈size/n⌉ on of those that the earlier
    dimensions of the mesh leave to it, the last ranks fewer or none.  Dimensions of the mesh with `StridedShard` divide
    what all others leave.  A scalar is divided like a tensor of one element.

    >>> from retrograd.distributed import get_rank, init_device_mesh, run_threads
    >>> def script():
    ...     return divide((5, 4), init_device_mesh("cpu", (2, 2)), [Shard(0), Shard(1)]).local_shape
    >>> run_threads(script, 4)
    [(3, 2), (3, 2), (2, 2), (2, 2)]
    """

    shape: tuple[int, ...]
    mesh: DeviceMesh
    placements: Placements

    @cached_property
    def coordinate(self) -> list[int]:
        """Return the indices of this rank in the mesh.  Raises RuntimeError if it is not in it."""
        return [self.mesh.get_local_rank(dim) for dim in range(self.mesh.ndim)]

    @cached_property
    def bounds(self) -> list[Range]:
        """Return the range of indices along each dimension that this rank has."""
        return self.bounds_at(self.coordinate)

    def bounds_at(self, coordinate: Sequence[int]) -> list[Range]:
        """Return the range of indices along each dimension that a rank of the mesh has."""
        found = [(0, size) for size in self.shape or (1,)]
        for mesh_dim in self.order:
            placement, index = self.placements[mesh_dim], coordinate[mesh_dim]
            if isinstance(placement, Shard):
                low, high = found[placement.dim]
                each = -(-(high - low) // self.mesh.shape[mesh_dim])
                found[placement.dim] = min(low + index * each, high), min(low + (index + 1) * each, high)
        return found

    @cached_property
    def order(self) -> list[int]:
        """Return the dimensions of the mesh in the order in which they divide the tensor."""
        return sorted(range(len(self.placements)), key=lambda i: isinstance(self.placements[i], StridedShard))

    @cached_property
    def sharded(self) -> list[int]:
        """Return the dimensions of the mesh along which the ranks have different elements."""
        return [i for i, placement in enumerate(self.placements) if isinstance(placement, Shard)]

    @cached_property
    def dims(self) -> set[int]:
        """Return the divided dimensions of the tensor."""
        return {placement.dim for placement in self.placements if isinstance(placement, Shard)}

    @property
    def is_partial(self) -> bool:
        """Return whether the values are combinations of those of several ranks."""
        return any(isinstance(placement, Partial) for placement in self.placements)

    @cached_property
    def local_shape(self) -> tuple[int, ...]:
        """Return the shape of this rank's part; that of a divided scalar has one dimension."""
        if not self.dims:
            return self.shape
        return tuple(high - low for low, high in self.bounds)

    def with_placement(self, mesh_dim: int, placement: Placement) -> "Division":
        """Return the division with another placement along one dimension of the mesh."""
        changed = list(self.placements)
        changed[mesh_dim] = placement
        return Division(self.shape, self.mesh, tuple(changed))

    def taken(self, whole: Tensor) -> Tensor:
        """Return a view of this rank's part of a whole tensor; that of a divided scalar has one dimension."""
        rows = whole if self.shape or not self.dims else whole.reshape(1)
        for dim in self.dims:
            low, high = self.bounds[dim]
            rows = rows.narrow(dim, low, high - low)
        return rows

    # ------------------------------------------------------------------- if at most one dimension is divided

    @property
    def dim(self) -> int:
        """Return the only divided dimension; 0 if there is none."""
        return next(iter(self.dims), 0)

    @cached_property
    def row(self) -> int:
        """Return the number of elements for each index of the divided dimension."""
        return prod(self.shape) // max((self.shape or (1,))[self.dim], 1)

    @property
    def low(self) -> int:
        """Return the index of the first element of the part, in the order of `flattened`."""
        return self.bounds[self.dim][0] * self.row

    @cached_property
    def padded(self) -> int:
        """Return the number of elements of the part of the first rank, which is the largest."""
        low, high = self.bounds_at([0] * self.mesh.ndim)[self.dim]
        return (high - low) * self.row

    def flattened(self, x: Tensor) -> Tensor:
        """Return the elements of a part, or of a whole tensor, in the order in which parts are ranges."""
        return move_to_front(x, self.dim).reshape(-1)

    def restored(self, flat: Tensor, local: Sequence[int] | None = None) -> Tensor:
        """Return the tensor of elements in this order; local: the shape of a part, otherwise it is whole."""
        shape = list(self.shape if local is None else local)
        front = [*shape[self.dim : self.dim + 1], *shape[: self.dim], *shape[self.dim + 1 :]]
        return move_back(flat.reshape(front), self.dim).contiguous()


def divide(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> Division:
    """Return a division, with dimensions counted from the first.  Raises ValueError for one that the tensor lacks."""
    ndim = max(len(shape), 1)
    found = []
    for placement in placements:
        if isinstance(placement, Shard):
            if not -ndim <= placement.dim < ndim:
                raise ValueError(
                    f"DTensor: {placement!r} needs that dimension, and the tensor has shape {tuple(shape)}"
                )
            placement = replace(placement, dim=placement.dim % ndim)
        found.append(placement)
    return Division(tuple(shape), mesh, tuple(found))
