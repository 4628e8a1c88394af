"""`DeviceMesh`: the ranks of a script as an array with named dimensions, and a group along each."""

from collections.abc import Sequence
from contextvars import ContextVar
from math import prod
from typing import Any

from retrograd.core import Tensor
from retrograd.distributed.groups import initialized_group, new_group
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.ops.as_tensor import as_tensor
from retrograd.pipelining.transports.process_group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]

_entered: ContextVar[tuple["DeviceMesh", ...]] = ContextVar("entered", default=())  # the last one is the innermost


class DeviceMesh:
    """Ranks in an array; those that differ only in their index along one dimension form a group.

    All ranks of the default group must make it.  mesh: the numbers of ranks.  mesh_dim_names: names of the dimensions.
    A name, or several in the order of the dimensions, as an index give the part of the mesh that has this rank.  In a
    `with` block, the mesh is that of tensors that are divided without saying which.

    Raises ValueError for ranks that repeat or do not exist, another number of names, and before `init_process_group`.

    >>> from retrograd.distributed import run_threads
    >>> def script():
    ...     mesh = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("replica", "stage"))
    ...     return mesh.get_coordinate(), mesh["stage"].mesh.tolist()
    >>> run_threads(script, 4)[2]
    ([1, 0], [2, 3])
    """

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None) -> None:
        world = initialized_group()
        array = mesh if isinstance(mesh, Tensor) else as_tensor(mesh)
        numbers = array.flatten().tolist()
        if len(set(numbers)) < len(numbers) or not all(0 <= rank < world.size() for rank in numbers):
            raise ValueError(f"DeviceMesh: expected different ranks from 0 to {world.size() - 1}, got {mesh}")
        if mesh_dim_names is not None and len(mesh_dim_names) != array.ndim:
            raise ValueError(f"DeviceMesh: {len(mesh_dim_names)} names for a mesh of {array.ndim} dimensions")
        groups = [_groups_along(array, dim, world.rank()) for dim in range(array.ndim)]
        self._fill(device_type, array, mesh_dim_names, groups)

    def _fill(
        self,
        device_type: str,
        mesh: Tensor,
        names: Sequence[str] | None,
        groups: list[Any],
        parent: "DeviceMesh | None" = None,
    ) -> None:
        self.device_type = device_type
        self.mesh = mesh
        self.mesh_dim_names = None if names is None else tuple(names)
        self._groups = groups
        self._parent = parent  # the mesh of which an index gave this one

    @staticmethod
    def from_group(
        group: ProcessGroup, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> "DeviceMesh":
        """Return a mesh of one dimension with the ranks of a group; `mesh` has no effect."""
        found = object.__new__(DeviceMesh)
        found._fill(device_type, as_tensor(list(group.ranks)), mesh_dim_names, [group])
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of ranks along each dimension."""
        return tuple(self.mesh.shape)

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self.mesh.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of ranks, in all or along a dimension."""
        return self.mesh.numel() if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """Return the number of this rank in the default group."""
        return initialized_group().rank()

    def get_coordinate(self) -> list[int] | None:
        """Return the indices of this rank in the mesh, or None if it is not in it."""
        found = (self.mesh == self.get_rank()).nonzero().tolist()
        return found[0] if found else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return the index of this rank along a dimension, which a mesh of one dimension need not say.

        Raises RuntimeError if there are several dimensions and none is given, KeyError for another name.
        """
        place = self.get_coordinate()
        dim = self._dimension("get_local_rank", mesh_dim)
        if place is None:
            raise RuntimeError(f"get_local_rank: rank {self.get_rank()} is not in the mesh {self.mesh.tolist()}")
        return place[dim]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return the group of the ranks along a dimension that has this rank.

        Raises RuntimeError if there are several dimensions and none is given, KeyError for another name.
        """
        found: ProcessGroup = self._groups[self._dimension("get_group", mesh_dim)]
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return the groups of this rank along all dimensions."""
        return list(self._groups)

    def __enter__(self) -> "DeviceMesh":
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        _entered.set(_entered.get()[:-1])

    def __getitem__(self, names: str | tuple[str, ...]) -> "DeviceMesh":
        chosen = (names,) if isinstance(names, str) else tuple(names)
        if self.mesh_dim_names is None:
            raise RuntimeError(f"Cannot slice a DeviceMesh without mesh_dim_names: there is no dimension {names!r}")
        dims = [self._dimension("DeviceMesh", name) for name in chosen]
        if dims != sorted(set(dims)):
            raise KeyError(f"Invalid mesh_dim_names {chosen}: they must be in the order of {self.mesh_dim_names}")
        place = self.get_coordinate()
        if place is None:
            raise RuntimeError(f"rank {self.get_rank()} is not in the mesh {self.mesh.tolist()}")
        part = self.mesh[tuple(slice(None) if dim in dims else place[dim] for dim in range(self.ndim))]
        found = object.__new__(DeviceMesh)
        found._fill(self.device_type, part, chosen, [self._groups[dim] for dim in dims], self._root())
        return found

    def _root(self) -> "DeviceMesh":
        """Return the mesh of which this one is a part, maybe itself."""
        return self if self._parent is None else self._parent

    def _dimension(self, call: str, given: int | str | None) -> int:
        if given is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"{call}: the mesh has {self.ndim} dimensions, so say which one: an index or one of "
                    f"{self.mesh_dim_names}"
                )
            return 0
        if isinstance(given, int):
            return range(self.ndim)[given]
        if given not in (self.mesh_dim_names or ()):
            raise KeyError(f"Invalid mesh_dim_name {given!r}: the mesh has {self.mesh_dim_names}")
        return (self.mesh_dim_names or ()).index(given)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DeviceMesh)
            and self.shape == other.shape
            and self.mesh.tolist() == other.mesh.tolist()
            and self.mesh_dim_names == other.mesh_dim_names
        )

    def __hash__(self) -> int:
        return hash((self.shape, tuple(self.mesh.flatten().tolist()), self.mesh_dim_names))

    def __repr__(self) -> str:
        names = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}{names})"


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Return a mesh of this shape with the first ranks in ascending order; the last dimension varies fastest.

    All ranks of the default group must make it, also if the mesh has fewer.

    Raises TypeError if the shape is no sequence, RuntimeError if the mesh has more ranks than the default group, and
    for names that repeat or whose number differs from that of the dimensions.

    >>> from retrograd.distributed import run_threads
    >>> run_threads(lambda: init_device_mesh("cpu", (2, 2)).get_coordinate(), 4)
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    if not isinstance(mesh_shape, Sequence):
        raise TypeError(f"init_device_mesh: mesh_shape must be a sequence of sizes, got {describe(mesh_shape)}")
    shape, names = tuple(mesh_shape), None if mesh_dim_names is None else tuple(mesh_dim_names)
    if names is not None and (len(set(names)) != len(names) or len(names) != len(shape)):
        raise RuntimeError(f"init_device_mesh: mesh_dim_names {names} must be {len(shape)} different names")
    size, world = prod(shape), initialized_group().size()
    if size > world:
        raise RuntimeError(f"init_device_mesh: a mesh of shape {shape} needs {size} ranks, and there are {world}")
    return DeviceMesh(device_type, as_tensor(list(range(size))).reshape(shape), mesh_dim_names=names)


def current_mesh() -> DeviceMesh | None:
    """Return the mesh of the innermost `with` block; None outside of one."""
    return _entered.get()[-1] if _entered.get() else None


def joined_mesh(first: DeviceMesh, second: DeviceMesh) -> DeviceMesh | None:
    """Return the part of a mesh with the dimensions of two parts of it, in its order.

    None if they are not parts of one mesh, or share a dimension.

    >>> from retrograd.distributed import run_threads
    >>> def script():
    ...     mesh = init_device_mesh("cpu", (2, 2, 1), mesh_dim_names=("a", "b", "c"))
    ...     return joined_mesh(mesh["b"], mesh["a"]).mesh_dim_names
    >>> run_threads(script, 4)[0]
    ('a', 'b')
    """
    root, names = first._root(), {*(first.mesh_dim_names or ()), *(second.mesh_dim_names or ())}
    if root != second._root() or len(names) != first.ndim + second.ndim:
        return None
    return root[tuple([name for name in root.mesh_dim_names or () if name in names])]


def _groups_along(mesh: Tensor, dim: int, rank: int) -> ProcessGroup | None:
    """Return the group of this rank along a dimension; all ranks make all groups, in the same order."""
    rows = mesh.transpose(dim, -1).reshape(-1, mesh.shape[dim]).tolist()
    made = [(new_group(row, sort_ranks=False), row) for row in rows]
    return next((group for group, row in made if rank in row), None)


suggest_in_module(globals())
