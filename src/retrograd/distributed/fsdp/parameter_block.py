"""The parameters of a block of a model, of which each rank has a part; the whole ones exist while they are used."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from retrograd.autograd import Function, no_grad
from retrograd.core import Tensor, registry
from retrograd.distributed.collectives import all_reduce, gather_flat, reduce_scatter_tensor
from retrograd.distributed.device_mesh import DeviceMesh, joined_mesh
from retrograd.distributed.fsdp.policies import MixedPrecisionPolicy
from retrograd.distributed.tensor.division import Division, divide
from retrograd.distributed.tensor.dtensor import DTensor, local_of, wrap
from retrograd.distributed.tensor.placements import Placement, Replicate, Shard, StridedShard
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.functions import functions


class ShardedParameter:
    """A parameter divided along a dimension.

    homes: the modules that have it, and its names there.  shard: this rank's part, which is a parameter.  division: how
    the whole parameter is divided among the ranks of the block.

    If it is a `DTensor` already, as after `parallelize_module`, its part on this rank is what is divided, gathered and
    has its gradients averaged, and `shard` is a part over both meshes.
    """

    def __init__(self, whole: Tensor, homes: Sequence[tuple[Module, str]], mesh: DeviceMesh, placement: Shard) -> None:
        self.homes = list(homes)
        placements = [*[Replicate()] * (mesh.ndim - 1), placement]
        local = local_of(whole).detach()
        self.division = divide(local.shape, mesh, placements)
        self.outer = whole.division if isinstance(whole, DTensor) else None  # of the whole parameter
        both = self.division if self.outer is None else _division_over_both(self.outer, mesh, placements)
        part = wrap(self.division.taken(local).clone(), both)
        self.shard: Any = Parameter(part, requires_grad=whole.requires_grad)

    @property
    def dtype(self) -> Any:
        """Return the dtype of the parameter."""
        return self.shard.dtype

    def whole_from(self, gathered: Tensor) -> Tensor:
        """Return the whole parameter, or its part in the division that it had before, given the gathered elements."""
        return gathered if self.outer is None else wrap(gathered, self.outer)

    def show(self, value: Tensor) -> None:
        """Let the modules have the shard, or the whole parameter."""
        for module, name in self.homes:
            stored_attributes(module)[name] = value  # unlike an assignment, it takes results of operators too

    def adopt(self) -> None:
        """Take the part that was assigned to the first module, as `load_state_dict(assign=True)` does."""
        module, name = self.homes[0]
        found = stored_attributes(module)[name]
        if found is self.shard:
            return
        if not isinstance(found, DTensor) or found.division != self.shard.division:
            raise RuntimeError(
                f"fully_shard: {name} of {type(module).__name__} was replaced by a tensor that is not this rank's "
                f"part; assign distribute_tensor(whole, mesh, {list(self.shard.placements)})"
            )
        self.shard = found
        self.show(found)


class Handle(NamedTuple):
    """A saved view of a whole parameter, as its number and layout."""

    number: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int  # in elements


class ParameterBlock:
    """The sharded parameters of a block, which are gathered and freed together.

    keeps: whether the whole parameters are kept from the forward to the backward pass.  syncs: whether a backward pass
    reduces the gradients; otherwise they are added to those of the next one that does.  divisor: by which the sum of
    the gradients is divided; None: the number of ranks.  label: different for each block, and the same on all ranks.
    """

    def __init__(
        self,
        parameters: Sequence[ShardedParameter],
        mesh: DeviceMesh,
        keeps: bool,
        policy: MixedPrecisionPolicy,
        label: str,
    ) -> None:
        self.label = label
        self.parameters, self.keeps, self.policy = list(parameters), keeps, policy
        self.group = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None  # the ranks with copies of the shards
        self.ranks = mesh.size()
        self.syncs = True
        self.divisor: float | None = None
        self.gathers = 0  # how often the whole parameters were gathered
        self._whole: list[Tensor] | None = None
        self._versions: list[tuple[int, int]] = []  # of the shards of which the whole parameters were gathered
        self._postponed: list[Tensor | None] = [None] * len(self.parameters)
        self._shows_whole = False

    def gathered(self) -> list[Tensor]:
        """Return the whole parameters outside of the graph; they are kept until `free`."""
        if self._whole is None:
            self.gathers += 1
            self._versions = self._present_versions()
            with no_grad():
                self._whole = _gather_whole(self)
        return self._whole

    def free(self) -> None:
        """Free the whole parameters."""
        self._whole = None

    def unshard(self) -> None:
        """Let the modules have the whole parameters, outside of the graph, until `reshard` or the next call."""
        self._adopt()
        self._show([p.whole_from(x.detach()) for p, x in zip(self.parameters, self.gathered(), strict=True)])

    def reshard(self) -> None:
        """Let the modules have the shards again, and free the whole parameters."""
        self._adopt()
        self._show(None)
        self.free()

    def enter(self) -> None:
        """Let the modules have the whole parameters, whose gradients are reduced to the shards."""
        self._adopt()
        if not self.parameters:
            return
        self.gathered()
        whole = _Gather.apply(self, *[local_of(p.shard) for p in self.parameters])
        pairs = zip(self.parameters, whole, strict=True)
        self._show([p.whole_from(x if p.shard.requires_grad else x.detach()) for p, x in pairs])

    def leave(self) -> None:
        """Let the modules have the shards again."""
        self._show(None)
        if not self.keeps:
            self.free()

    def _adopt(self) -> None:
        """Take parts that were assigned to the modules; free whole parameters if the shards have changed since."""
        if not self._shows_whole:
            for p in self.parameters:
                p.adopt()
            if self._versions != self._present_versions():
                self.free()

    def _present_versions(self) -> list[tuple[int, int]]:
        return [(id(p.shard), p.shard._version) for p in self.parameters]

    def _show(self, whole: Sequence[Tensor] | None) -> None:
        self._shows_whole = whole is not None
        for index, p in enumerate(self.parameters):
            p.show(p.shard if whole is None else whole[index])

    def pack(self, x: Tensor) -> Any:
        """Return a handle for a saved view of a whole parameter, so that it can be freed; other tensors as they are."""
        for index, whole in enumerate(self._whole or ()):
            offset = x.data_ptr() - whole.data_ptr()
            if 0 <= offset < whole.nbytes and x.dtype == whole.dtype:
                return Handle(index, tuple(x.shape), tuple(x.stride()), offset // whole.element_size())
        return x

    def unpack(self, packed: Any) -> Tensor:
        """Return the saved tensor; the whole parameters are gathered if they were freed."""
        if not isinstance(packed, Handle):
            found: Tensor = packed
            return found
        whole = self.gathered()[packed.number].detach()
        view: Tensor = whole.reshape(-1).as_strided(packed.shape, packed.stride, packed.offset)
        return view.detach()

    def reduced(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Return the mean gradients of this rank's shards, those of passes without an exchange included."""
        gradients = [_sum(a, b) for a, b in zip(self._postponed, gradients, strict=True)]
        self._postponed = [None] * len(gradients) if self.syncs else gradients
        return self._reduce(gradients) if self.syncs else [None] * len(gradients)

    def _reduce(self, gradients: Sequence[Tensor | None]) -> list[Tensor]:
        found: dict[int, Tensor] = {}
        gradient_of = {id(p): g for p, g in zip(self.parameters, gradients, strict=True)}
        size, policy = self.group.size(), self.policy
        for each in _by_dtype(self.parameters):
            dtype = policy.reduce_dtype or policy.param_dtype or each[0].dtype
            columns, lengths = [], [p.division.padded for p in each]
            for p, length in zip(each, lengths, strict=True):
                g = gradient_of[id(p)]
                flat = functions["zeros"](0, dtype=dtype) if g is None else p.division.flattened(g.detach()).to(dtype)
                columns.append(_padded(flat, length * size).reshape(size, length))
            # Divided before it is summed, so that sums don't overflow.
            everything = registry["cat"](columns, 1).div_(self.divisor or self.ranks)
            own = functions["zeros"](everything.shape[1], dtype=dtype)
            reduce_scatter_tensor(own, everything, group=self.group)
            if self.replicas is not None:
                all_reduce(own, group=self.replicas)
            for p, part in zip(each, own.split(lengths), strict=True):
                shape = p.division.local_shape
                found[id(p)] = p.division.restored(part[: prod(shape)].to(p.dtype).clone(), shape)
        return [found[id(p)] for p in self.parameters]


class _Gather(Function):
    """The whole parameters, given this rank's shards; each rank gets the mean gradients of them."""

    @staticmethod
    def forward(ctx: Any, block: ParameterBlock, *shards: Tensor) -> tuple[Tensor, ...]:
        """Return the whole parameters."""
        ctx.block = block
        return tuple(block.gathered())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        """Return the mean gradients of the shards; the whole parameters are not needed any more."""
        block: ParameterBlock = ctx.block
        block.free()
        with no_grad():
            return None, *block.reduced(gradients)


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return a if b is None else b.detach() if a is None else a + b.detach()


def _division_over_both(outer: Division, mesh: DeviceMesh, placements: Sequence[Placement]) -> Division:
    """Return how a tensor is divided over its mesh and another one, whose ranks divide the parts.

    Raises ValueError if they are not parts of one mesh, and for terms of values.
    """
    both = joined_mesh(outer.mesh, mesh)
    if both is None or both.mesh_dim_names is None:
        raise ValueError(
            f"fully_shard: FSDP requires the DP and TP mesh to have the same parent mesh, of which each has other "
            f"dimensions, but got {mesh} and {outer.mesh}; make one by init_device_mesh(..., mesh_dim_names=('dp', "
            f"'tp')), and pass mesh['tp'] to parallelize_module and mesh['dp'] to fully_shard"
        )
    if outer.is_partial:
        raise ValueError(f"fully_shard: a parameter is a sum over ranks, with {list(outer.placements)}, not values")
    placement_of = dict(zip(mesh.mesh_dim_names or (), placements, strict=True))
    placement_of |= dict(zip(outer.mesh.mesh_dim_names or (), outer.placements, strict=True))
    found: list[Placement] = []
    for name in reversed(both.mesh_dim_names):
        placement = placement_of[name]
        if name in (mesh.mesh_dim_names or ()) and isinstance(placement, Shard):
            dim = placement.dim % max(len(outer.shape), 1)
            later = [both.size(both.ndim - 1 - i) for i, p in enumerate(reversed(found)) if p.is_shard(dim)]
            placement = StridedShard(dim, prod(later)) if later else Shard(dim)
        found.insert(0, placement)
    return Division(outer.shape, both, tuple(found))


def _gather_whole(block: ParameterBlock) -> list[Tensor]:
    """Return the gathered elements of its parameters, outside of the graph, by one exchange for each dtype.

    Raises RankMismatchError, on every rank, if the ranks run different blocks.
    """
    parameters, group, dtype = block.parameters, block.group, block.policy.param_dtype
    found: dict[int, Tensor] = {}
    for each in _by_dtype(parameters):
        sizes = [p.division.padded for p in each]
        flat = [p.division.flattened(local_of(p.shard).detach()) for p in each]
        own = registry["cat"]([_padded(x, size) for x, size in zip(flat, sizes, strict=True)])
        own = own if dtype is None else own.to(dtype)
        everything = functions["empty"]((group.size(), own.numel()), dtype=own.dtype)
        gather_flat(everything, own, group, fields={"block": block.label})
        for p, rows in zip(each, everything.split(sizes, 1), strict=True):
            found[id(p)] = p.division.restored(rows.reshape(-1)[: prod(p.division.shape)].clone())
    return [found[id(p)] for p in parameters]


def _by_dtype(parameters: Sequence[ShardedParameter]) -> list[list[ShardedParameter]]:
    """Return the parameters in lists of one dtype each."""
    found: dict[Any, list[ShardedParameter]] = {}
    for p in parameters:
        found.setdefault(p.dtype, []).append(p)
    return list(found.values())


def _padded(x: Tensor, length: int) -> Tensor:
    """Return the elements of a tensor, followed by zeros."""
    found: Tensor = registry["cat"]([x.reshape(-1), functions["zeros"](length - x.numel(), dtype=x.dtype)])
    return found
