"""Collective operations of MPI on the memory of tensors, without copies and without messages of our own."""

from array import array as NumberArray
from collections.abc import Callable, Generator, Sequence
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.core.tensor import bump_version, preserve_snapshots
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.distributed.work import Steps

# MPI's names of the dtypes that it computes with, by NumPy's character, and of its operations.
DATATYPES = {
    "b": "SIGNED_CHAR", "B": "UNSIGNED_CHAR", "h": "SHORT", "H": "UNSIGNED_SHORT", "i": "INT", "I": "UNSIGNED",
    "l": "LONG", "L": "UNSIGNED_LONG", "q": "LONG_LONG", "Q": "UNSIGNED_LONG_LONG", "f": "FLOAT", "d": "DOUBLE",
    "F": "C_FLOAT_COMPLEX", "D": "C_DOUBLE_COMPLEX",
}  # fmt: skip
OPERATIONS = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}


def reduces_natively(x: Tensor, op: ReduceOp) -> bool:
    """Return whether MPI combines tensors of this dtype itself."""
    kind = x.value.dtype.kind
    if op in (ReduceOp.MIN, ReduceOp.MAX):
        # MPI's results are not defined for NaN, which is contagious here.
        return x.value.dtype.char in DATATYPES and kind in "iu"
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR):
        return x.value.dtype.char in DATATYPES and kind in "iu"
    return x.value.dtype.char in DATATYPES and (op is not ReduceOp.AVG or kind in "fc")


def all_reduce(comm: Any, x: Tensor, op: ReduceOp) -> Steps:
    """Combine tensors of all ranks in place."""
    array, target = _writable(x)
    mpi = _mpi()
    request = comm.Iallreduce(mpi.IN_PLACE, _typed(array), getattr(mpi, OPERATIONS[op]))
    yield request.Test
    return [_finish(target, x, comm.size if op is ReduceOp.AVG else 1)]


def reduce(comm: Any, x: Tensor, root: int, op: ReduceOp) -> Steps:
    """Combine tensors of all ranks on one of them."""
    mpi = _mpi()
    operation = getattr(mpi, OPERATIONS[op])
    if comm.rank != root:
        request = comm.Ireduce(_typed(_readable(x)), None, operation, root)
        yield request.Test
        return [x]
    array, target = _writable(x)
    request = comm.Ireduce(mpi.IN_PLACE, _typed(array), operation, root)
    yield request.Test
    return [_finish(target, x, comm.size if op is ReduceOp.AVG else 1)]


def broadcast(comm: Any, tensors: Sequence[Tensor], root: int) -> Steps:
    """Write tensors of one rank into those of the others."""
    pairs = [(x, *(_writable(x) if comm.rank != root else (_readable(x), x))) for x in tensors]
    requests = [comm.Ibcast(_bytes(array), root) for _, array, _ in pairs]
    mpi = _mpi()
    yield lambda: mpi.Request.Testall(requests)
    return [x if comm.rank == root else _finish(target, x) for x, _, target in pairs]


def all_gather(comm: Any, output: Tensor, x: Tensor) -> Steps:
    """Write the tensors of all ranks into one, in the order of ranks."""
    source, (array, target) = _readable(x), _writable(output)
    request = comm.Iallgather(_bytes(source), _bytes(array))
    yield request.Test
    return [_finish(target, output)]


def reduce_scatter(comm: Any, output: Tensor, x: Tensor, op: ReduceOp) -> Steps:
    """Combine the tensors of all ranks, and write one part of the result into a tensor on each rank."""
    source, (array, target) = _readable(x), _writable(output)
    request = comm.Ireduce_scatter_block(_typed(source), _typed(array), getattr(_mpi(), OPERATIONS[op]))
    yield request.Test
    return [_finish(target, output, comm.size if op is ReduceOp.AVG else 1)]


def all_to_all(comm: Any, output: Tensor, x: Tensor, received: Sequence[int], sent: Sequence[int]) -> Steps:
    """Send parts of a tensor to all ranks, and write theirs one after the other; the sizes are in bytes."""
    source, (array, target) = _readable(x), _writable(output)
    byte = _mpi().BYTE
    request = comm.Ialltoallv(
        [_view(source), (sent, _starts(sent)), byte], [_view(array), (received, _starts(received)), byte]
    )
    yield request.Test
    return [_finish(target, output)]


def gather_numbers(comm: Any, numbers: Sequence[int]) -> Generator[Callable[[], Any], None, list[list[int]]]:
    """Return as many whole numbers of each rank, by rank."""
    found, size = NumberArray("q", [0]) * (len(numbers) * comm.size), len(numbers)
    request = comm.Iallgather(NumberArray("q", numbers), found)
    yield request.Test
    return [list(found[rank * size : (rank + 1) * size]) for rank in range(comm.size)]


def _mpi() -> Any:
    from mpi4py import MPI as mpi  # noqa: N811

    return mpi


def _readable(x: Tensor) -> Any:
    """Return the array of a tensor, without gaps."""
    return x.detach().contiguous().value


def _writable(x: Tensor) -> tuple[Any, Tensor]:
    """Return the array that an operation may write to, and its tensor: `x`, or a copy if it has gaps."""
    plain = x.detach()
    if not (plain.value.flags.c_contiguous and plain.value.flags.writeable):
        plain = plain.contiguous().clone()
    preserve_snapshots(plain)
    return plain.value, plain


def _finish(target: Tensor, x: Tensor, divisor: int = 1) -> Tensor:
    """Return `x` after the operation has written to `target`."""
    bump_version(target)
    with no_grad():
        if divisor != 1:
            target.div_(divisor)
        if target.data_ptr() != x.data_ptr():
            x.detach().copy_(target)
    return x


def _view(array: Any) -> Any:
    return array.reshape(-1).view("u1")


def _bytes(array: Any) -> list[Any]:
    return [_view(array), _mpi().BYTE]


def _typed(array: Any) -> list[Any]:
    return [array, getattr(_mpi(), DATATYPES[array.dtype.char])]


def _starts(sizes: Sequence[int]) -> list[int]:
    starts = [0]
    for size in sizes[:-1]:
        starts.append(starts[-1] + size)
    return starts
