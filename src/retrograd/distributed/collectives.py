"""Collective operations: all ranks of a group exchange and combine tensors."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor, registry
from retrograd.distributed import buffers
from retrograd.distributed.exchange import Exchange, nothing, start
from retrograd.distributed.groups import chosen_rank, initialized_group, is_member
from retrograd.distributed.reduce_op import ReduceOp, combine
from retrograd.distributed.work import Steps, Work
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.transports.interface import RankMismatchError
from retrograd.pipelining.transports.process_group import ProcessGroup

NO_FIELDS: Mapping[str, Any] = {}
CHUNK = 1 << 20  # bytes that are sent and combined at a time


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine a tensor elementwise with those of the other ranks, and write the result into it on every rank.

    The tensors have the same shape and dtype on all ranks.  Results are the same on all ranks to the last bit.
    `ReduceOp.AVG` divides the sum by the number of ranks.  async_op: return at once, with a handle to wait for.

    Raises TypeError for another operation or no tensor; RankMismatchError, on every rank, for different shapes, dtypes
    or operations; ValueError before `init_process_group`.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> dist.init_process_group()
    >>> x = rg.tensor([1.0, 2.0])
    >>> dist.all_reduce(x)
    >>> x
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    return reduce_all("all_reduce", tensor, op, group, async_op)


def reduce_all(call: str, x: Tensor, op: ReduceOp, group: ProcessGroup | None, async_op: bool) -> Work | None:
    """Run `all_reduce` under another name in errors."""
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check(call, x, op)
    exchange = Exchange(members, call, {"tensor": x.detach().aval, "op": op.name})
    if members.comm is not None and buffers.reduces_natively(x, op):
        steps = buffers.all_reduce(members.comm, x, op)
    else:
        steps = _all_reduce(exchange, x, op)
    return start(members, exchange, steps, async_op)


def _all_reduce(exchange: Exchange, x: Tensor, op: ReduceOp) -> Steps:
    """Let each rank combine one part, and send it to all.

    A rank that sends a combined chunk has received this rank's own chunk, which may be written to then.
    """
    flat = x.detach().reshape(-1)
    parts = [_chunks(part) for part in flat.tensor_split(exchange.group.size())]
    others = _others(exchange)

    def share(index: int, combined: Tensor) -> None:
        for rank in others:
            exchange.send(rank, combined, ~index)
        _write(exchange, parts[exchange.group.rank()][index], combined)

    yield from _combine_chunks(exchange, parts, op, share)
    for rank in others:
        for index, chunk in enumerate(parts[rank]):
            received = yield from exchange.receive_early([rank], ~index)
            _write(exchange, chunk, received[rank])
    return [x if flat.data_ptr() == x.data_ptr() else _write(exchange, x, flat)]


def _combine_chunks(
    exchange: Exchange, parts: Sequence[Sequence[Tensor]], op: ReduceOp, take: Callable[[int, Tensor], Any]
) -> Steps:
    """Send the chunks of each rank to it; call a function with the index of each own chunk and the ranks' combination.

    A chunk is combined while the next ones arrive, and the processor still has it in its caches.
    """
    own, others = exchange.group.rank(), _others(exchange)
    for rank in others:
        for index, chunk in enumerate(parts[rank]):
            exchange.send(rank, chunk, index)
    for index, chunk in enumerate(parts[own]):
        received = yield from exchange.receive_early(others, index)
        received[own] = chunk
        take(index, combine(op, [received[rank] for rank in range(len(parts))]))
    return []


def _chunks(vector: Tensor) -> Sequence[Tensor]:
    return vector.split(CHUNK // vector.element_size())


def _others(exchange: Exchange) -> list[int]:
    """Return the ranks of the group except this one."""
    return [rank for rank in range(exchange.group.size()) if rank != exchange.group.rank()]


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine the tensors of all ranks, and write the result into that of rank `dst`; the others keep theirs.

    Raises what `all_reduce` raises, and ValueError unless exactly one of dst and group_dst, its number in the group,
    is given.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check("reduce", tensor, op)
    root = chosen_rank("reduce", members, dst, group_dst, None)
    exchange = Exchange(members, "reduce", {"dst": root, "tensor": tensor.detach().aval, "op": op.name})
    if members.comm is not None and buffers.reduces_natively(tensor, op):
        steps = buffers.reduce(members.comm, tensor, root, op)
    else:
        steps = _reduce(exchange, tensor, root, op)
    return start(members, exchange, steps, async_op)


def _reduce(exchange: Exchange, x: Tensor, root: int, op: ReduceOp) -> Steps:
    received = yield from _gathered(exchange, x, root)
    return [_write(exchange, x, combine(op, received)) if received else x]


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write the tensor of rank `src` into the tensors of all other ranks, which have its shape and dtype.

    src: by default 0.  Raises RankMismatchError, on every rank, for different shapes or dtypes; ValueError for a rank
    that does not exist, and before `init_process_group`.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check("broadcast", tensor)
    root = chosen_rank("broadcast", members, src, group_src, 0)
    return broadcast_all([tensor], members, root, async_op)


def broadcast_all(
    tensors: Sequence[Tensor],
    group: ProcessGroup,
    src: int = 0,
    async_op: bool = False,
    fields: Mapping[str, Any] = NO_FIELDS,
) -> Work | None:
    """Write tensors of one rank of the group into those of all others.

    fields: more that must be the same on all ranks, by name.
    """
    exchange = Exchange(group, "broadcast", {**fields, "src": src, "tensors": _kinds(tensors)})
    steps = _broadcast(exchange, tensors, src) if group.comm is None else buffers.broadcast(group.comm, tensors, src)
    return start(group, exchange, steps, async_op)


def _broadcast(exchange: Exchange, tensors: Sequence[Tensor], src: int) -> Steps:
    if exchange.group.rank() == src:
        for rank in _others(exchange):
            exchange.send(rank, list(tensors))
        yield exchange.delivered
        return list(tensors)
    received = yield from exchange.receive([src])
    return [_write(exchange, x, value, src) for x, value in zip(tensors, received[src], strict=True)]


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensor of each rank into the tensors of a list, in the order of ranks, on every rank.

    The tensors of the ranks may differ in shape, but not in dtype.

    Raises ValueError unless the list has a tensor for each rank, with its dtype and as many elements, and before
    `init_process_group`; RankMismatchError, on every rank, for lists of different shapes or dtypes.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check("all_gather", tensor)
    _check_list("all_gather", tensor_list, members, tensor.dtype)
    _check_fit("all_gather", "this rank", tensor, tensor_list[members.rank()])
    exchange = Exchange(members, "all_gather", {"tensors": _kinds(tensor_list)})
    return start(members, exchange, _all_to_all(exchange, tensor_list, [tensor] * members.size()), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks into one, in the order of ranks: concatenated or stacked along dimension 0.

    Raises ValueError unless output_tensor has as many elements as the tensors of all ranks.
    """
    return gather_flat(output_tensor, input_tensor, initialized_group(group), async_op) if is_member(group) else None


def gather_flat(
    output: Tensor, x: Tensor, members: ProcessGroup, async_op: bool = False, fields: Mapping[str, Any] = NO_FIELDS
) -> Work | None:
    """Run `all_gather_into_tensor`; fields: more that must be the same on all ranks, by name."""
    _check("all_gather_into_tensor", output)
    _check("all_gather_into_tensor", x)
    _check_size("all_gather_into_tensor", "output_tensor", output, x, members)
    exchange = Exchange(members, "all_gather_into_tensor", {**fields, "tensor": x.detach().aval})
    if members.comm is not None:
        steps = buffers.all_gather(members.comm, output, x)
    else:
        steps = _all_gather_into(exchange, output, x)
    return start(members, exchange, steps, async_op)


def _all_gather_into(exchange: Exchange, output: Tensor, x: Tensor) -> Steps:
    size = exchange.group.size()
    for rank in range(size):
        exchange.send(rank, x)
    received = yield from exchange.receive(range(size))
    return [_write(exchange, output, registry["cat"]([received[rank].reshape(-1) for rank in range(size)]))]


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the lists of all ranks, and write entry `rank` of the result into `output` on each rank.

    Raises what `all_reduce` raises, and ValueError unless the list has a tensor for each rank.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check("reduce_scatter", output, op)
    _check_list("reduce_scatter", input_list, members, output.dtype)
    _check_fit("reduce_scatter", "this rank", input_list[members.rank()], output)
    exchange = Exchange(members, "reduce_scatter", {"tensors": _kinds(input_list), "op": op.name})
    return start(members, exchange, _reduce_scatter(exchange, output, input_list, op), async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the tensors of all ranks, and write one part of the result into `output` on each rank.

    The parts are equal, along dimension 0, in the order of ranks.  Raises what `all_reduce` raises, and ValueError
    unless `input` has as many elements as the outputs of all ranks.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check("reduce_scatter_tensor", output, op)
    _check("reduce_scatter_tensor", input)
    _check_size("reduce_scatter_tensor", "input", input, output, members)
    fields = {"tensor": input.detach().aval, "op": op.name}
    exchange = Exchange(members, "reduce_scatter_tensor", fields)
    if members.comm is not None and buffers.reduces_natively(input, op):
        steps = buffers.reduce_scatter(members.comm, output, input, op)
    else:
        parts = list(input.detach().reshape(-1).chunk(members.size())) if input.numel() else [input] * members.size()
        steps = _reduce_scatter(exchange, output, parts, op)
    return start(members, exchange, steps, async_op)


def _reduce_scatter(exchange: Exchange, output: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> Steps:
    flat = output.detach().reshape(-1)
    targets = _chunks(flat)

    def write(index: int, combined: Tensor) -> None:
        _write(exchange, targets[index], combined)

    yield from _combine_chunks(exchange, [_chunks(part.detach().reshape(-1)) for part in parts], op, write)
    yield exchange.delivered
    return [output if flat.data_ptr() == output.data_ptr() else _write(exchange, output, flat)]


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensors of all ranks into a list on rank `dst`, by default 0.

    Raises ValueError if rank `dst` has no list with a tensor for each rank, or another rank has a list.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check("gather", tensor)
    root = chosen_rank("gather", members, dst, group_dst, 0)
    _check_root_list("gather", "gather_list", gather_list, root, members, tensor.dtype)
    exchange = Exchange(members, "gather", {"dst": root, "dtype": tensor.dtype})
    return start(members, exchange, _gather(exchange, gather_list or [], tensor, root), async_op)


def _gather(exchange: Exchange, targets: Sequence[Tensor], x: Tensor, root: int) -> Steps:
    received = yield from _gathered(exchange, x, root)
    pairs = zip(targets, received, strict=True)
    return [_write(exchange, target, value, rank) for rank, (target, value) in enumerate(pairs)]


def _gathered(exchange: Exchange, x: Any, root: int) -> Any:
    """Return the tensors of all ranks on one of them; an empty list on the others."""
    exchange.send(root, x)
    if exchange.group.rank() != root:
        yield exchange.delivered
        return []
    received = yield from exchange.receive(range(exchange.group.size()))
    return [received[rank] for rank in range(exchange.group.size())]


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write entry `rank` of a list of rank `src`, by default 0, into the tensor of each rank.

    Raises ValueError if rank `src` has no list with a tensor for each rank, or another rank has a list, and for another
    number of elements than in the tensor; RankMismatchError, on every rank, for different dtypes.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check("scatter", tensor)
    root = chosen_rank("scatter", members, src, group_src, 0)
    _check_root_list("scatter", "scatter_list", scatter_list, root, members, tensor.dtype)
    exchange = Exchange(members, "scatter", {"src": root, "dtype": tensor.dtype})
    return start(members, exchange, _scatter(exchange, tensor, scatter_list or [], root), async_op)


def _scatter(exchange: Exchange, x: Tensor, parts: Sequence[Tensor], root: int) -> Steps:
    for rank, part in enumerate(parts):
        exchange.send(rank, part)
    received = yield from exchange.receive([root])
    return [_write(exchange, x, received[root], root)]


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send entry `i` of a list to rank `i`, and write the tensor from rank `i` into entry `i` of another list.

    Raises ValueError unless both lists have a tensor for each rank, of one dtype, and for another number of elements
    than a rank sends; RankMismatchError, on every rank, for different dtypes.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check_list("all_to_all", input_tensor_list, members, output_tensor_list[0].dtype)
    _check_list("all_to_all", output_tensor_list, members, output_tensor_list[0].dtype)
    exchange = Exchange(members, "all_to_all", {"dtype": output_tensor_list[0].dtype})
    return start(members, exchange, _all_to_all(exchange, output_tensor_list, input_tensor_list), async_op)


def _all_to_all(exchange: Exchange, targets: Sequence[Tensor], parts: Sequence[Tensor]) -> Steps:
    for rank, part in enumerate(parts):
        exchange.send(rank, part)
    received = yield from exchange.receive(range(len(parts)))
    return [_write(exchange, target, received[rank], rank) for rank, target in enumerate(targets)]


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send part `i` of a tensor to rank `i`, and write the parts from all ranks into another, in the order of ranks.

    The parts are along dimension 0; their sizes are equal, unless given.

    Raises ValueError for sizes that do not fit the tensors, and for tensors of different dtypes or rows;
    RankMismatchError, on every rank, if dtypes or rows differ between ranks, or one expects other parts than it gets.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    _check("all_to_all_single", output)
    _check("all_to_all_single", input)
    sent = split_sizes("input", input, input_split_sizes, members)
    received = split_sizes("output", output, output_split_sizes, members)
    width = prod(input.shape[1:])
    if output.dtype != input.dtype or prod(output.shape[1:]) != width:
        raise ValueError(
            f"all_to_all_single: input is {input.detach().aval}, and output {output.detach().aval}: their dtypes and "
            f"rows must be the same"
        )
    exchange = Exchange(members, "all_to_all_single", {"dtype": input.dtype, "elements of a row": width})
    return start(members, exchange, _all_to_all_single(exchange, output, input, received, sent), async_op)


def _all_to_all_single(
    exchange: Exchange, output: Tensor, x: Tensor, expected: Sequence[int], sent: Sequence[int]
) -> Steps:
    """Exchange the parts after all ranks have compared how many rows each of them sends and expects."""
    comm, ranks = exchange.group.comm, range(len(sent))
    if comm is not None:
        rows = yield from buffers.gather_numbers(comm, [*sent, *expected])
        _check_rows(exchange.group, rows)
        row = x.element_size() * prod(x.shape[1:])
        return (yield from buffers.all_to_all(comm, output, x, [n * row for n in expected], [n * row for n in sent]))
    parts = x.detach().split(list(sent))
    for rank in ranks:
        exchange.send(rank, [*sent, *expected])
        exchange.send(rank, parts[rank], 1)
    numbers = yield from exchange.receive(ranks)
    received = yield from exchange.receive(ranks, 1)
    _check_rows(exchange.group, [numbers[rank] for rank in ranks])
    return [_write(exchange, output, registry["cat"]([received[rank] for rank in ranks]))]


def _check_rows(group: ProcessGroup, rows: Sequence[Sequence[int]]) -> None:
    """Raise RankMismatchError unless each rank expects the rows that the others send.

    rows: for each rank, how many it sends to each rank, then how many it expects from each.
    """
    for sender, numbers in enumerate(rows):
        for receiver, sent in enumerate(numbers[: len(rows)]):
            expected = rows[receiver][len(rows) + sender]
            if sent != expected:
                raise RankMismatchError(
                    f"all_to_all_single: rank {group.ranks[sender]} sends {sent} rows to rank "
                    f"{group.ranks[receiver]}, which expects {expected}; pass output_split_sizes that are the "
                    f"input_split_sizes of the other ranks"
                )


def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None
) -> Work | None:
    """Wait until all ranks of the group have called it.

    device_ids has no effect, and the timeout is the group's.  Raises ValueError before `init_process_group`.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    exchange = Exchange(members, "barrier", {})
    steps = _all_to_all(exchange, [], [None] * members.size()) if async_op else nothing()  # type: ignore[list-item]
    return start(members, exchange, steps, async_op)


def _write(exchange: Exchange, target: Tensor, value: Tensor, sender: int | None = None) -> Tensor:
    """Return a tensor after writing a value into it.  Raises ValueError for one that does not fit.

    sender: the rank in the group that has sent it; None: the ranks have made it together.
    """
    source = "the result" if sender is None else f"rank {exchange.group.ranks[sender]}"
    _check_fit(exchange.call, source, value, target)
    with no_grad():
        target.detach().copy_(value.reshape(target.shape))
    return target


def _check(call: str, tensor: Any, op: Any = ReduceOp.SUM) -> None:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{call}: expected one of {', '.join(map(str, ReduceOp))}, got {op!r}")
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{call}: expected a Tensor, got {type(tensor).__name__}")
    if op is ReduceOp.AVG and not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(
            f"{call}: the mean of {tensor.dtype} values is no {tensor.dtype} value: result type Float can't be cast to "
            f"it; sum them, or convert them first"
        )


def _check_list(call: str, tensors: Sequence[Any], group: ProcessGroup, dtype: Any) -> None:
    """Raise unless there is a tensor of this dtype for each rank."""
    if not isinstance(tensors, list | tuple):
        raise TypeError(f"{call}: expected a list of tensors, got {type(tensors).__name__}")
    if len(tensors) != group.size():
        raise ValueError(f"{call}: the list has {len(tensors)} tensors for {group.size()} ranks")
    for x in tensors:
        _check(call, x)
        if x.dtype != dtype:
            raise ValueError(f"{call}: the tensors have different dtypes, {x.dtype} and {dtype}")


def _check_fit(call: str, source: str, value: Tensor, target: Tensor) -> None:
    """Raise ValueError unless a tensor can be written into another one without conversion."""
    if value.numel() != target.numel() or value.dtype != target.dtype:
        raise ValueError(f"{call}: {source} has {value.detach().aval}, which does not fit {target.detach().aval}")


def _kinds(tensors: Sequence[Tensor]) -> str:
    return ", ".join(str(x.detach().aval) for x in tensors)


def _check_root_list(
    call: str, name: str, tensors: list[Tensor] | None, root: int, group: ProcessGroup, dtype: Any
) -> None:
    own, root = group.ranks[group.rank()], group.ranks[root]
    if own != root:
        if tensors:
            raise ValueError(f"{call}: Argument {name} must NOT be specified on rank {own}; only on {root}")
    elif not tensors:
        raise ValueError(f"{call}: Argument {name} must be specified on rank {root}")
    else:
        _check_list(call, tensors, group, dtype)


def _check_size(call: str, name: str, whole: Tensor, part: Tensor, group: ProcessGroup) -> None:
    if whole.numel() != part.numel() * group.size() or whole.dtype != part.dtype:
        raise ValueError(
            f"{call}: {name} is {whole.detach().aval}; it must have {group.size()} times the elements of "
            f"{part.detach().aval}, and its dtype"
        )


def split_sizes(name: str, x: Tensor, sizes: list[int] | None, group: ProcessGroup) -> list[int]:
    """Return the rows of a tensor for each rank: as given, else equal.  Raises ValueError if they do not fit."""
    rows, count = x.shape[0], group.size()
    if not sizes:
        if rows % count:
            raise ValueError(f"all_to_all_single: {name} has {rows} rows, which {count} ranks cannot share equally")
        return [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows:
        raise ValueError(f"all_to_all_single: {name} sizes {sizes} must be {count} with the sum {rows}")
    return list(sizes)


suggest_in_module(globals())
