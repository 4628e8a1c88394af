"""The parameters of a block of a model, of which each rank has a part; the whole ones exist while they are used."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from retrograd.autograd import Function, no_grad
from retrograd.core import Tensor, registry
from retrograd.distributed.collectives import all_gather_into_tensor, reduce_scatter_tensor
from retrograd.distributed.local_slice import note_divided
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.functions import functions
from retrograd.pipelining.transports.process_group import ProcessGroup


class ShardedParameter:
    """A parameter divided along dimension 0: rank i has rows i·rows to (i+1)·rows, the last ranks fewer or none.

    homes: the modules that have it, and its names there.
    """

    def __init__(self, whole: Tensor, homes: Sequence[tuple[Module, str]], group: ProcessGroup) -> None:
        self.shape, self.dtype = tuple(whole.shape), whole.dtype
        self.homes = list(homes)
        self._row = whole.numel() // max(self.shape[0], 1) if self.shape else 1  # elements of a row
        count = self.shape[0] if self.shape else 1
        rows = -(-count // group.size())
        self.padded = rows * self._row  # elements that each rank sends
        self.numel = whole.numel()
        self.low = min(group.rank() * rows, count) * self._row
        self.high = min((group.rank() + 1) * rows, count) * self._row
        part = whole.detach().reshape(-1)[self.low : self.high].clone()
        shape = ((self.high - self.low) // max(self._row, 1), *self.shape[1:]) if self.shape else (part.numel(),)
        self.shard = Parameter(part.reshape(shape), requires_grad=whole.requires_grad)
        self.show(self.shard)
        note_divided(self)

    def show(self, value: Tensor) -> None:
        """Let the modules have the shard, or the whole parameter."""
        for module, name in self.homes:
            vars(module)[name] = value  # unlike an assignment, it takes results of operators too


class Handle(NamedTuple):
    """A saved view of a whole parameter, as its number and layout."""

    number: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int  # in elements


class ParameterBlock:
    """The sharded parameters of a block, which are gathered and freed together."""

    def __init__(self, parameters: Sequence[ShardedParameter], group: ProcessGroup, keeps: bool) -> None:
        self.parameters, self.group, self.keeps = list(parameters), group, keeps
        self.gathers = 0  # how often the whole parameters were gathered
        self._whole: list[Tensor] | None = None

    def gathered(self) -> list[Tensor]:
        """Return the whole parameters outside of the graph; they are kept until `free`."""
        if self._whole is None:
            self.gathers += 1
            with no_grad():
                self._whole = _gather(self.parameters, self.group)
        return self._whole

    def free(self) -> None:
        """Free the whole parameters."""
        self._whole = None

    def enter(self) -> None:
        """Let the modules have the whole parameters, whose gradients are reduced to the shards."""
        self.gathered()
        whole = _Gather.apply(self, *[p.shard for p in self.parameters])
        for p, value in zip(self.parameters, whole, strict=True):
            p.show(value if p.shard.requires_grad else value.detach())

    def leave(self) -> None:
        """Let the modules have the shards again."""
        for p in self.parameters:
            p.show(p.shard)
        if not self.keeps:
            self.free()

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
            return None, *_reduce(block.parameters, gradients, block.group)


def _gather(parameters: Sequence[ShardedParameter], group: ProcessGroup) -> list[Tensor]:
    """Return whole parameters, given the shards of all ranks."""
    found: dict[int, Tensor] = {}
    for each in _by_dtype(parameters):
        own = registry["cat"]([_padded(p.shard.detach(), p.padded) for p in each])
        everything = functions["zeros"]((group.size(), own.numel()), dtype=own.dtype)
        all_gather_into_tensor(everything, own, group)
        for p, parts in zip(each, everything.split([p.padded for p in each], 1), strict=True):
            found[id(p)] = parts.reshape(-1)[: p.numel].clone().reshape(p.shape)
    return [found[id(p)] for p in parameters]


def _reduce(
    parameters: Sequence[ShardedParameter], gradients: Sequence[Tensor | None], group: ProcessGroup
) -> list[Tensor]:
    """Return the mean gradients of this rank's shards."""
    found: dict[int, Tensor] = {}
    gradient_of = {id(p): g for p, g in zip(parameters, gradients, strict=True)}
    size = group.size()
    for each in _by_dtype(parameters):
        columns = []
        for p in each:
            g = gradient_of[id(p)]
            flat = functions["zeros"](0, dtype=p.dtype) if g is None else g.detach().reshape(-1)
            columns.append(_padded(flat, p.padded * size).reshape(size, p.padded))
        everything = registry["cat"](columns, 1).div_(size)  # first, so that sums don't overflow
        own = functions["zeros"](everything.shape[1], dtype=everything.dtype)
        reduce_scatter_tensor(own, everything, group=group)
        for p, part in zip(each, own.split([p.padded for p in each]), strict=True):
            found[id(p)] = part[: p.high - p.low].clone().reshape(p.shard.shape)
    return [found[id(p)] for p in parameters]


def _by_dtype(parameters: Sequence[ShardedParameter]) -> list[list[ShardedParameter]]:
    groups: dict[Any, list[ShardedParameter]] = {}
    for p in parameters:
        groups.setdefault(p.dtype, []).append(p)
    return list(groups.values())


def _padded(x: Tensor, length: int) -> Tensor:
    """Return the elements of a tensor, followed by zeros."""
    found: Tensor = registry["cat"]([x.reshape(-1), functions["zeros"](length - x.numel(), dtype=x.dtype)])
    return found
