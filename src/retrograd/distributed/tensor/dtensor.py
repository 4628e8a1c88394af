"""`DTensor`: the part of a whole tensor that this rank has."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from retrograd.core import Tensor, operator_named, registry
from retrograd.core.overrides import as_subclass
from retrograd.distributed.collectives import all_gather_into_tensor, all_reduce, broadcast_all
from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.local_slice import LocalSlice, move_back, move_to_front
from retrograd.nn.parameter import is_on_meta
from retrograd.nn.tensor_part import TensorPart
from retrograd.ops.functions import functions

_alias = operator_named("alias")
_gradient: Any = Tensor.grad


class Placement:
    """Base class of `Shard` and `Replicate`."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether a dimension is divided; dim: whether it is this one."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether each rank has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return False: each rank has values, not terms of a sum."""
        return False


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part of the indices of a dimension; a negative one counts from the last."""

    dim: int = 0


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor."""


class Division(NamedTuple):
    """How a tensor of some shape is divided, and which elements this rank has.

    Rank i of n has the indices from i·⌈size/n⌉ on of the divided dimension, the last ranks fewer or none.

    - mesh: the ranks among which it is divided, of one dimension.
    - low, high: the range of this rank's elements, in row-major order with the divided dimension moved to the front.
    - padded: the elements of the part of rank 0, which is the largest.
    - hybrid: the mesh of two dimensions, of which `mesh` is the second and along the first of which ranks have copies;
      None: there are none.
    """

    shape: tuple[int, ...]
    mesh: DeviceMesh
    placement: Shard | Replicate
    low: int
    high: int
    padded: int
    hybrid: DeviceMesh | None = None

    @property
    def dim(self) -> int:
        """Return the divided dimension; 0 if there is none."""
        return self.placement.dim if isinstance(self.placement, Shard) else 0

    def taken(self, whole: Tensor) -> Tensor:
        """Return a view of this rank's part of a whole tensor; that of a scalar has one dimension."""
        if isinstance(self.placement, Replicate):
            return whole
        rows = whole if self.shape else whole.reshape(1)
        row = max(rows.numel() // max(rows.shape[self.dim], 1), 1)
        return rows.narrow(self.dim, self.low // row, (self.high - self.low) // row)

    def flattened(self, x: Tensor) -> Tensor:
        """Return the elements of a part, or of a whole tensor, in the order in which parts are ranges."""
        return move_to_front(x, self.dim).reshape(-1)

    def restored(self, flat: Tensor, local: Sequence[int] | None = None) -> Tensor:
        """Return the tensor of elements in this order; local: the shape of a part, otherwise it is whole."""
        shape = list(self.shape if local is None else local)
        front = [*shape[self.dim : self.dim + 1], *shape[: self.dim], *shape[self.dim + 1 :]]
        return move_back(flat.reshape(front), self.dim).contiguous()


def _divide(shape: tuple[int, ...], mesh: DeviceMesh, placements: Sequence[Shard | Replicate]) -> Division:
    if mesh.ndim > 1:
        if mesh.ndim > 2 or placements[0] != Replicate() or not isinstance(placements[1], Shard):
            raise NotImplementedError(
                f"DTensor: a mesh of {mesh.ndim} dimensions takes [Replicate(), Shard(dim)], got {placements}"
            )
        divided = DeviceMesh.from_group(mesh.get_group(1), mesh.device_type)
        return _divide(shape, divided, placements[1:])._replace(hybrid=mesh)
    count, placement = prod(shape), placements[0]
    if isinstance(placement, Replicate):
        return Division(shape, mesh, placement, 0, count, count)
    sizes = shape or (1,)
    if not -len(sizes) <= placement.dim < len(sizes):
        raise ValueError(f"DTensor: {placement} needs that dimension, and the tensor has shape {shape}")
    placement = Shard(placement.dim % len(sizes))
    rows = sizes[placement.dim]
    row, each, group = count // max(rows, 1), -(-rows // mesh.size()), mesh.get_group()
    low, high = (min(rank * each, rows) * row for rank in (group.rank(), group.rank() + 1))
    return Division(shape, mesh, placement, low, high, each * row)


class DTensor(TensorPart):
    """The part of a whole tensor that this rank has.

    Unlike in PyTorch, its shape is that of the part, and operators compute with the part and return plain tensors.
    Parameters of `fully_shard` are parts, and so are their gradients, and the tensors of the state dicts of their
    modules and optimizers: `distributed.checkpoint` saves them as whole tensors.  Make it by `distribute_tensor`.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.tensor import Shard, distribute_tensor
    >>> def script():
    ...     mesh = dist.init_device_mesh("cpu", (2,))
    ...     x = distribute_tensor(rg.arange(3), mesh, [Shard(0)])
    ...     return x.to_local(), x.full_tensor(), x.placements
    >>> dist.run_threads(script, 2)[1]
    (tensor([2]), tensor([0, 1, 2]), (Shard(dim=0),))
    """

    division: Division

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """Return the shape of the whole tensor."""
        return self.division.shape

    @property
    def device_mesh(self) -> DeviceMesh:
        """Return the ranks that have parts."""
        return self.division.hybrid or self.division.mesh

    @property
    def mesh_and_placement(self) -> tuple[DeviceMesh, Shard | Replicate]:
        """Return the mesh, and how the tensor is divided over it."""
        return self.division.mesh, self.division.placement

    @property
    def placements(self) -> tuple[Shard | Replicate, ...]:
        """Return how the tensor is divided along each dimension of the mesh."""
        own = self.division.placement
        return (own,) if self.division.hybrid is None else (Replicate(), own)

    @property
    def local_slice(self) -> LocalSlice:
        """Return the elements of the part, and which ones they are."""
        d, copies = self.division, (0, 1)
        if d.hybrid is not None or isinstance(d.placement, Replicate):
            group = d.mesh.get_group() if d.hybrid is None else d.hybrid.get_group(0)
            copies = group.rank(), group.size()
        return LocalSlice(move_to_front(self.detach(), d.dim), d.shape, d.low, *copies, d.dim)

    @property
    def grad(self) -> Tensor | None:
        """The gradient of the part, which is the same part of the gradient of the whole tensor; None: there is none.

        One that requires grad, by `create_graph=True`, is a plain tensor.
        """
        found: Tensor | None = _gradient.__get__(self)
        if found is None or isinstance(found, DTensor) or found.requires_grad:
            return found
        self.grad = part = self.as_part(found)  # kept, so that it is the same object each time
        return part

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        _gradient.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        _gradient.__delete__(self)

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Shard | Replicate] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Any = None,
    ) -> "DTensor":
        """Return the part of a whole tensor that has the memory of this rank's one; all ranks of the mesh must call it.

        device_mesh, placements: as in `distribute_tensor`.  shape: of the whole tensor; None: the ranks add up their
        sizes of the divided dimension.  run_check: give all ranks the values of rank 0 where they have copies.

        Raises ValueError for a part that `distribute_tensor` would not make, and what that raises.
        """
        mesh = DeviceMesh.from_group(initialized_group(), "cpu") if device_mesh is None else device_mesh
        given = _checked("from_local", mesh, [Replicate()] * mesh.ndim if placements is None else placements)
        local, last = local_tensor.detach(), given[-1]
        whole = list(local.shape if shape is None else shape)
        if shape is None and isinstance(last, Shard) and whole:
            size = functions["tensor"](whole[last.dim])
            all_reduce(size, group=mesh.get_group(mesh.ndim - 1))
            whole[last.dim] = int(size)
        division = _divide(tuple(whole), mesh, given)
        expected = division.taken(functions["empty"](whole, device="meta")).shape
        if tuple(local.shape) != tuple(expected):
            raise ValueError(
                f"from_local: rank {mesh.get_rank()} has a part of shape {tuple(local.shape)}, and that of "
                f"distribute_tensor has {tuple(expected)}"
            )
        if run_check:
            for dim, placement in enumerate(given):
                if placement.is_replicate():
                    broadcast_all([local], mesh.get_group(dim))
        return _part(local, division)

    def to_local(self) -> Tensor:
        """Return the part as a plain tensor with the same memory, through which gradients pass."""
        found: Tensor = _alias(self)
        return found

    def full_tensor(self) -> Tensor:
        """Return the whole tensor, outside of the graph; all ranks of the mesh must call it."""
        return gather_whole([self])[0]

    def as_part(self, x: Tensor) -> "DTensor":
        """Return a tensor with the shape of this part, such as a state of an optimizer, as the same part of another."""
        return _part(x, self.division)

    def part_of(self, whole: Tensor) -> Tensor:
        """Return the elements of this part, given those of the whole tensor.  ValueError for another shape."""
        d = self.division
        if tuple(whole.shape) != d.shape:
            raise ValueError(f"expected a whole tensor of shape {d.shape}, got {tuple(whole.shape)}")
        return d.taken(whole.detach())

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Shard | Replicate] | None = None
    ) -> "DTensor":
        """Return the whole tensor divided in another way, outside of the graph; all ranks of the mesh must call it.

        device_mesh: by default that of this tensor, and no other.  placements: by default the same.  If neither the old
        nor the new division is `Replicate`, the whole tensor exists on every rank for a while.

        Raises ValueError for another mesh, and what `distribute_tensor` raises.
        """
        mesh = self.device_mesh
        if device_mesh is not None and device_mesh != mesh:
            raise ValueError(f"redistribute: the tensor is on {mesh}, and cannot be moved to {device_mesh}")
        division = _divide(self.whole_shape, mesh, _checked("redistribute", mesh, placements or self.placements))
        return _part(division.taken(self.full_tensor()).clone(), division)

    def stack_over_ranks(self, x: Tensor) -> Tensor:
        """Return the scalars of all ranks of the mesh, or this one if they have the same part; all must call it."""
        if isinstance(self.division.placement, Replicate):
            return x.detach().reshape(1)
        found: Tensor = functions["empty"](self.division.mesh.size(), dtype=x.dtype)
        all_gather_into_tensor(found, x.detach().reshape(1), self.division.mesh.get_group())
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> "DTensor":
        memo[id(self)] = copied = self.as_part(self.detach().clone())  # of the same ranks
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the part as a plain tensor, since a file or another process does not have the ranks."""
        return self.detach().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return (
            f"DTensor(local_tensor={self.detach()!r}, device_mesh={self.device_mesh!r}, placements={self.placements})"
        )


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Shard | Replicate] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Return this rank's part of a whole tensor; all ranks of the mesh must call it.

    device_mesh: of one dimension, by default all ranks, or of two.
    placements: [Shard(dim)] or [Replicate()], which is the default; for two dimensions, [Replicate(), Shard(dim)].
    src_data_rank: the rank of the mesh whose values count; None: those of each rank, without an exchange.

    Raises ValueError for another number of placements, or a dimension that the tensor lacks, NotImplementedError for
    other ones of two dimensions.
    """
    mesh = DeviceMesh.from_group(initialized_group(), "cpu") if device_mesh is None else device_mesh
    given = _checked("distribute_tensor", mesh, [Replicate()] * mesh.ndim if placements is None else placements)
    whole = tensor.detach()
    if src_data_rank is not None and not is_on_meta(whole):
        whole = whole.clone()
        broadcast_over(mesh, [whole], src_data_rank)
    division = _divide(tuple(whole.shape), mesh, given)
    return _part(division.taken(whole).clone(), division)


def _checked(call: str, mesh: DeviceMesh, placements: Sequence[Shard | Replicate]) -> list[Shard | Replicate]:
    """Return the placements; ValueError unless there is one for each dimension of the mesh."""
    if len(placements) != mesh.ndim:
        raise ValueError(f"{call}: expected a placement for each of {mesh.ndim} dimensions, got {placements}")
    return list(placements)


def broadcast_over(mesh: DeviceMesh, tensors: Sequence[Tensor], source: int = 0) -> None:
    """Write the values of one rank of a mesh, which is given by its index, into the tensors of all its ranks."""
    for dim, index in enumerate((mesh.mesh == mesh.mesh.reshape(-1)[source]).nonzero()[0].tolist()):
        broadcast_all(list(tensors), mesh.get_group(dim), index)


def _part(x: Tensor, division: Division) -> DTensor:
    found: DTensor = as_subclass(x.detach(), DTensor)
    found.division = division
    return found


def gather_whole(parts: Sequence[DTensor], dtype: Any = None) -> list[Tensor]:
    """Return whole tensors, given the parts of all ranks of one mesh, by one exchange for each dtype.

    dtype: convert the parts to it first.
    """
    found: dict[int, Tensor] = {}
    for each in by_dtype([p for p in parts if isinstance(p.division.placement, Shard)]):
        group = each[0].division.mesh.get_group()
        sizes = [p.division.padded for p in each]
        own = registry["cat"]([padded(p.division.flattened(p.detach()), p.division.padded) for p in each])
        own = own if dtype is None else own.to(dtype)
        everything = functions["empty"]((group.size(), own.numel()), dtype=own.dtype)
        all_gather_into_tensor(everything, own, group)
        for p, rows in zip(each, everything.split(sizes, 1), strict=True):
            found[id(p)] = p.division.restored(rows.reshape(-1)[: prod(p.division.shape)].clone())
    return [found[id(p)] if id(p) in found else p.detach().clone() for p in parts]


def by_dtype(parts: Sequence[DTensor]) -> list[list[DTensor]]:
    """Return the parts in lists of one dtype each."""
    found: dict[Any, list[DTensor]] = {}
    for p in parts:
        found.setdefault(p.dtype, []).append(p)
    return list(found.values())


def padded(x: Tensor, length: int) -> Tensor:
    """Return the elements of a tensor, followed by zeros."""
    found: Tensor = registry["cat"]([x.reshape(-1), functions["zeros"](length - x.numel(), dtype=x.dtype)])
    return found
