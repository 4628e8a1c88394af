"""Collective operations that gradients pass through.

Each is a linear map of the tensors of all ranks, and its gradient is the adjoint map, which is a collective operation
too.  So all ranks must run the backward pass.  Gradients of gradients pass through it likewise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from retrograd.autograd import Function, no_grad
from retrograd.core import Tensor, registry
from retrograd.distributed import collectives
from retrograd.distributed.groups import chosen_rank, initialized_group
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.ops.functions import functions
from retrograd.pipelining.transports.process_group import ProcessGroup

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip

Tensors = Sequence[Tensor]


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """Return the combination of the tensors of all ranks.

    The gradient is the sum, for `ReduceOp.AVG` the mean, of the gradients of all ranks.

    Raises NotImplementedError in the backward pass for other operations, which are not linear.

    >>> import retrograd as rg
    >>> from retrograd.distributed import get_rank, run_threads
    >>> def script():
    ...     x = rg.tensor([float(get_rank() + 1)], requires_grad=True)
    ...     all_reduce(x * x).sum().backward()
    ...     return x.grad.item()
    >>> run_threads(script, 2)
    [4.0, 8.0]
    """
    return apply_linear(_AllReduce(initialized_group(group), op), tensor)[0]


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """Return the tensor of rank `src`, whose gradient is the sum of those of all ranks; the others' are zero."""
    members = initialized_group(group)
    return apply_linear(_Broadcast(members, chosen_rank("broadcast", members, src, None, None)), tensor)[0]


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """Return the combination of the tensors of all ranks on rank `dst`, and the rank's own tensor on the others.

    The gradient is that of rank `dst`.  Raises NotImplementedError in the backward pass as `all_reduce` does.
    """
    members = initialized_group(group)
    return apply_linear(_Reduce(members, chosen_rank("reduce", members, dst, None, None), op), tensor)[0]


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks on rank `dst`, and zeros on the others."""
    members = initialized_group(group)
    return apply_linear(_Gather(members, chosen_rank("gather", members, dst, None, None)), tensor)


def scatter(tensors: Tensors, src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """Return entry `rank` of the tensors of rank `src`; the other ranks pass tensors of the same shapes."""
    members = initialized_group(group)
    return apply_linear(_Scatter(members, chosen_rank("scatter", members, src, None, None)), *tensors)[0]


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks, which have the same shape, in the order of ranks."""
    return apply_linear(_AllGather(initialized_group(group)), tensor)


def reduce_scatter(
    output: Tensor, input_list: Tensors, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """Return entry `rank` of the combination of the lists of all ranks; its values are written to `output` too."""
    return _into(output, apply_linear(_ReduceScatter(initialized_group(group), op), *input_list)[0])


def all_to_all(
    output_tensor_list: Tensors, input_tensor_list: Tensors, group: ProcessGroup | None = None
) -> tuple[Tensor, ...]:
    """Return the tensors that all ranks have sent to this one; their values are written to the output list too.

    The shapes are those of the output list.
    """
    shapes = tuple(tuple(x.shape) for x in output_tensor_list)
    found = apply_linear(_AllToAll(initialized_group(group), shapes), *input_tensor_list)
    return tuple(_into(target, x) for target, x in zip(output_tensor_list, found, strict=True))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Return the parts that all ranks have sent to this one, along dimension 0, in the shape of `output`.

    Raises what `all_to_all_single` of `retrograd.distributed` raises.
    """
    members = initialized_group(group)
    received = collectives.split_sizes("output", output, output_split_sizes, members)
    parts = input.split(collectives.split_sizes("input", input, input_split_sizes, members))
    shapes = tuple((rows, *output.shape[1:]) for rows in received)
    return _into(output, registry["cat"](list(apply_linear(_AllToAll(members, shapes), *parts))))


class _Linear(Function):
    """Apply a linear map of the tensors of all ranks; the gradient is that of the adjoint map."""

    @staticmethod
    def forward(ctx: Any, operation: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the values of the map on this rank."""
        ctx.operation = operation
        ctx.shapes = tuple(tuple(x.shape) for x in tensors)
        return tuple(operation.run(tensors))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        """Return the values of the adjoint map."""
        return None, *apply_linear(ctx.operation.adjoint(ctx.shapes), *(g for g in gradients if g is not None))


def apply_linear(operation: Any, *tensors: Any) -> tuple[Tensor, ...]:  # Any: errors name the callers' arguments
    found: tuple[Tensor, ...] = _Linear.apply(operation, *tensors)
    return found


@dataclass(frozen=True)
class _AllReduce:
    group: ProcessGroup
    op: ReduceOp

    def run(self, tensors: Tensors) -> list[Tensor]:
        x = tensors[0].clone()
        collectives.all_reduce(x, self.op, self.group)
        return [x]

    def adjoint(self, shapes: Any) -> Any:
        return _AllReduce(self.group, _linear("all_reduce", self.op))


@dataclass(frozen=True)
class _Broadcast:
    group: ProcessGroup
    src: int

    def run(self, tensors: Tensors) -> list[Tensor]:
        x = tensors[0].clone()
        collectives.broadcast(x, group=self.group, group_src=self.src)
        return [x]

    def adjoint(self, shapes: Any) -> Any:
        return _Reduce(self.group, self.src, ReduceOp.SUM, zero_elsewhere=True)


@dataclass(frozen=True)
class _Reduce:
    group: ProcessGroup
    dst: int
    op: ReduceOp
    zero_elsewhere: bool = False

    def run(self, tensors: Tensors) -> list[Tensor]:
        x = tensors[0].clone()
        collectives.reduce(x, op=self.op, group=self.group, group_dst=self.dst)
        return [x.zero_() if self.zero_elsewhere and self.group.rank() != self.dst else x]

    def adjoint(self, shapes: Any) -> Any:
        op = _linear("reduce", self.op)
        return _Broadcast(self.group, self.dst) if op is ReduceOp.SUM else _BroadcastMean(self.group, self.dst)


@dataclass(frozen=True)
class _BroadcastMean(_Broadcast):
    """A broadcast divided by the number of ranks: the adjoint of a mean."""

    def run(self, tensors: Tensors) -> list[Tensor]:
        return [x / self.group.size() for x in super().run(tensors)]

    def adjoint(self, shapes: Any) -> Any:
        return _Reduce(self.group, self.src, ReduceOp.AVG, zero_elsewhere=True)


@dataclass(frozen=True)
class _Gather:
    group: ProcessGroup
    dst: int

    def run(self, tensors: Tensors) -> list[Tensor]:
        found = [registry["zeros_like"](tensors[0]) for _ in range(self.group.size())]
        targets = found if self.group.rank() == self.dst else None
        collectives.gather(tensors[0], targets, group=self.group, group_dst=self.dst)
        return found

    def adjoint(self, shapes: Any) -> Any:
        return _Scatter(self.group, self.dst)


@dataclass(frozen=True)
class _Scatter:
    group: ProcessGroup
    src: int

    def run(self, tensors: Tensors) -> list[Tensor]:
        found = registry["zeros_like"](tensors[0])
        sources = list(tensors) if self.group.rank() == self.src else None
        collectives.scatter(found, sources, group=self.group, group_src=self.src)
        return [found]

    def adjoint(self, shapes: Any) -> Any:
        return _Gather(self.group, self.src)


@dataclass(frozen=True)
class _AllGather:
    group: ProcessGroup
    divisor: int = 1

    def run(self, tensors: Tensors) -> list[Tensor]:
        x = tensors[0].detach().contiguous() / self.divisor if self.divisor > 1 else tensors[0].contiguous()
        whole = functions["empty"]((self.group.size(), *x.shape), dtype=x.dtype)
        collectives.all_gather_into_tensor(whole, x, self.group)
        return [part.clone() for part in whole.unbind(0)]

    def adjoint(self, shapes: Any) -> Any:
        return _ReduceScatter(self.group, ReduceOp.SUM if self.divisor == 1 else ReduceOp.AVG)


@dataclass(frozen=True)
class _ReduceScatter:
    group: ProcessGroup
    op: ReduceOp

    def run(self, tensors: Tensors) -> list[Tensor]:
        found = registry["zeros_like"](tensors[0])
        collectives.reduce_scatter(found, list(tensors), self.op, self.group)
        return [found]

    def adjoint(self, shapes: Any) -> Any:
        op = _linear("reduce_scatter", self.op)
        return _AllGather(self.group, 1 if op is ReduceOp.SUM else self.group.size())


@dataclass(frozen=True)
class _AllToAll:
    group: ProcessGroup
    shapes: tuple[tuple[int, ...], ...]  # of the results

    def run(self, tensors: Tensors) -> list[Tensor]:
        found = [functions["empty"](shape, dtype=tensors[0].dtype) for shape in self.shapes]
        collectives.all_to_all(found, list(tensors), self.group)
        return found

    def adjoint(self, shapes: Any) -> Any:
        return _AllToAll(self.group, shapes)


def _linear(call: str, op: ReduceOp) -> ReduceOp:
    """Return an operation that is linear.  Raises NotImplementedError for another one."""
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(f"{call}: only ReduceOp.SUM and ReduceOp.AVG have a gradient, not {op}")
    return op


def _into(target: Tensor, x: Tensor) -> Tensor:
    """Return `x`, whose values are written to `target` too."""
    with no_grad():
        target.detach().copy_(x)
    return x


suggest_in_module(globals())
