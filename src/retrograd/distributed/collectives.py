"""Collective operations of the ranks of a group, over the messages of its transport."""

import enum
import pickle
from collections.abc import Sequence
from functools import reduce as fold
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor, registry
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports.fingerprint import Fingerprint
from retrograd.pipelining.transports.interface import Link
from retrograd.pipelining.transports.process_group import ProcessGroup, default_group

CHANNEL = "R"  # the direction of the messages of reductions; those of pipelines are F and B


class ReduceOp(enum.Enum):
    """How `all_reduce` combines the tensors of the ranks."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"


_COMBINE = {
    ReduceOp.SUM: "add",
    ReduceOp.AVG: "add",
    ReduceOp.PRODUCT: "mul",
    ReduceOp.MIN: "minimum",
    ReduceOp.MAX: "maximum",
}


def initialized_group(group: ProcessGroup | None = None) -> ProcessGroup:
    """Return the group, or the default one; ValueError if there is none."""
    found = group or default_group()
    if found is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return found


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> None:
    """Combine a tensor elementwise with those of the other ranks, and write the result into it on every rank.

    The tensors have the same shape and dtype on all ranks.  Results are the same on all ranks to the last bit: each
    element is combined on one rank, in the order of ranks.  `ReduceOp.AVG` divides the sum by the number of ranks.

    Raises TypeError for another operation or no tensor; RankMismatchError, on every rank, for different shapes, dtypes
    or operations; NotImplementedError for `async_op`; ValueError before `init_process_group`.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> x = rg.tensor([1.0, 2.0])
    >>> dist.all_reduce(x)
    >>> x
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"all_reduce: expected one of {', '.join(map(str, ReduceOp))}, got {op!r}")
    members = initialized_group(group)
    _check("all_reduce", tensor, async_op)
    with no_grad():
        flat = tensor.detach().reshape(-1)
        tensor.detach().copy_(sum_over_ranks("all_reduce", flat, op, members).reshape(tensor.shape))


def sum_over_ranks(call: str, flat: Tensor, op: ReduceOp, group: ProcessGroup) -> Tensor:
    """Return a vector combined with those of the other ranks: each rank combines one part, and all get all parts.

    call: the name of the caller for errors.
    """
    if group.size() == 1:
        return flat
    parts = flat.tensor_split(group.size())

    def work(link: Link) -> Tensor:
        for rank, part in enumerate(parts):
            if rank != link.rank:
                link.send(rank, _message(link.rank, rank), part)
        received = [
            parts[rank] if rank == link.rank else link.receive(rank, _message(rank, link.rank))
            for rank in range(len(parts))
        ]
        combined = fold(registry[_COMBINE[op]], received)
        return combined / len(parts) if op is ReduceOp.AVG else combined

    return registry["cat"](group.launch(work, Fingerprint.of_call(call, tensor=flat.aval, op=op.name)))


def broadcast(tensor: Tensor, src: int = 0, group: ProcessGroup | None = None, async_op: bool = False) -> None:
    """Write the tensor of rank `src` into the tensors of all other ranks, which have its shape and dtype.

    Raises RankMismatchError, on every rank, for different shapes or dtypes; NotImplementedError for `async_op`;
    ValueError for a rank that does not exist, and before `init_process_group`.
    """
    _check("broadcast", tensor, async_op)
    broadcast_all([tensor], initialized_group(group), src)


def broadcast_all(tensors: Sequence[Tensor], group: ProcessGroup, src: int = 0) -> None:
    """Write tensors of one rank into those of all others."""
    _check_rank("broadcast", src, group)
    kinds = ", ".join(str(x.aval) for x in tensors)

    def work(link: Link) -> Any:
        # Copies, because this rank may write to its tensors before the others have read the message.
        return [x.detach().clone() for x in tensors] if link.rank == src else None

    results = group.launch(work, Fingerprint.of_call("broadcast", src=src, tensors=kinds))
    if group.rank() != src:
        with no_grad():
            for x, value in zip(tensors, results[src], strict=True):
                x.detach().copy_(value)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> None:
    """Write the tensor of each rank into the tensors of a list, in the order of ranks, on every rank.

    Raises ValueError unless the list has a tensor for each rank, and before `init_process_group`; NotImplementedError
    for `async_op`.
    """
    members = initialized_group(group)
    _check("all_gather", tensor, async_op)
    if len(tensor_list) != members.size():
        raise ValueError(f"all_gather: the list has {len(tensor_list)} tensors for {members.size()} ranks")
    with no_grad():
        found = members.launch(lambda link: tensor.detach().clone(), Fingerprint.of_call("all_gather"))
        for target, value in zip(tensor_list, found, strict=True):
            target.copy_(value)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Write the object of each rank, which is pickled, into a list, in the order of ranks, on every rank.

    Raises ValueError unless the list has an entry for each rank, and before `init_process_group`.
    """
    members = initialized_group(group)
    if len(object_list) != members.size():
        raise ValueError(f"all_gather_object: the list has {len(object_list)} entries for {members.size()} ranks")
    object_list[:] = map(
        pickle.loads, members.launch(lambda link: pickle.dumps(obj), Fingerprint.of_call("all_gather_object"))
    )


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: ProcessGroup | None = None, device: Any = None
) -> None:
    """Replace the entries of a list by those of rank `src`, which are pickled."""
    members = initialized_group(group)
    _check_rank("broadcast_object_list", src, members)
    packed = members.launch(
        lambda link: pickle.dumps(list(object_list)) if link.rank == src else None,
        Fingerprint.of_call("broadcast_object_list", src=src),
    )
    object_list[:] = pickle.loads(packed[src])


def _check_rank(name: str, rank: int, group: ProcessGroup) -> None:
    if not 0 <= rank < group.size():
        raise ValueError(f"{name}: there is no rank {rank}; ranks are 0 to {group.size() - 1}")


def _message(source: int, target: int) -> Message:
    return Message(CHANNEL, source, target, 0)


def _check(name: str, tensor: Any, async_op: bool) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: expected a Tensor, got {type(tensor).__name__}")
    if async_op:
        raise NotImplementedError(f"{name}: async_op is not supported; call it without")
