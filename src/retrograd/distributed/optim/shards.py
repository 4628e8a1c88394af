"""Which rank owns which elements of parameters, and the exchange of their values and gradients."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from retrograd.autograd import no_grad
from retrograd.autograd.running_pass import OncePerPass
from retrograd.core import Tensor, registry
from retrograd.distributed.collectives import (
    all_gather_into_tensor,
    broadcast_all,
    gather_flat,
    reduce,
    reduce_all,
    reduce_scatter_tensor,
)
from retrograd.distributed.gradient_buckets import partition
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.distributed.work import Work
from retrograd.nn.tensor_part import GradientHolder, note_exchange, set_gradient_holder
from retrograd.ops.functions import functions
from retrograd.pipelining.transports.interface import RankMismatchError
from retrograd.pipelining.transports.process_group import ProcessGroup


class Piece(NamedTuple):
    """Elements of a parameter that one rank owns: low to high of its flat elements, as a leaf that it updates."""

    param: Tensor
    low: int
    high: int
    tensor: Tensor

    def refresh(self) -> None:
        """Let the leaf show the present memory of the parameter."""
        self.tensor.data = self._part(self.param.detach())

    def part_of_gradient(self) -> Tensor | None:
        """Return the gradient of the elements, from that of the parameter."""
        return None if self.param.grad is None else self._part(self.param.grad.detach())

    def _part(self, x: Tensor) -> Tensor:
        return x if self.tensor.ndim != 1 or (x.ndim == 1 and self.is_whole) else x.reshape(-1)[self.low : self.high]

    @property
    def is_whole(self) -> bool:
        """Return whether these are all elements."""
        return self.high - self.low == self.param.numel()


class Shard:
    """Some parameters of one dtype, of which each rank owns an equal share of elements, or one rank owns all.

    owner: the rank that owns them whole; None: each owns a share.
    """

    def __init__(self, params: Sequence[Tensor], group: ProcessGroup, owner: int | None = None) -> None:
        self.params, self.group, self.owner = list(params), group, owner
        self.sizes = [p.numel() for p in params]
        self.total = sum(self.sizes)
        self.share = -(-self.total // group.size())
        self.pieces = self._owned_pieces()
        self.missing: set[int] = set()
        self.work: Work | None = None
        self._gradient: Tensor | None = None

    def exchange_values(self, settings: Mapping[str, Any]) -> None:
        """Give all ranks the values of all elements, from their owners; settings: the same on all ranks."""
        if self.owner is not None:
            broadcast_all(self.params, self.group, self.owner, fields=settings)
            return
        own = self._padded([piece.tensor.detach().reshape(-1) for piece in self.pieces], self.share)
        whole = self._zeros(self.share * self.group.size())
        gather_flat(whole, own, self.group, fields=settings)
        for p, values in zip(self.params, whole[: self.total].split(self.sizes), strict=True):
            p.detach().copy_(values.reshape(p.shape))

    def start_reduction(self) -> None:
        """Start to reduce the mean gradients to their owners, and free those of the parameters."""
        zeros_like, count = registry["zeros_like"], self.group.size()
        grads = [zeros_like(p.detach()) if p.grad is None else p.grad.detach() for p in self.params]
        length = self.total if self.owner is not None else self.share * count
        flat = self._padded([grad.reshape(-1) for grad in grads], length).div_(count)
        for p in self.params:
            p.grad = None
        if self.owner is not None:
            self._gradient = flat
            self.work = reduce(flat, group=self.group, async_op=True, group_dst=self.owner)
        else:
            self._gradient = self._zeros(self.share)
            self.work = reduce_scatter_tensor(self._gradient, flat, group=self.group, async_op=True)

    def drop(self) -> None:
        """Wait for the end of a reduction that a failed pass has started, and drop its result."""
        work, self.work, self._gradient = self.work, None, None
        if work is not None:
            work.wait()

    def finish_reduction(self, used: set[int]) -> None:
        """Wait for the mean gradients, and add them to those of the pieces of parameters that some rank has used."""
        gradient, work = self._gradient, self.work
        self._gradient = self.work = None
        if work is None or gradient is None:
            return
        work.wait()
        sizes = [piece.high - piece.low for piece in self.pieces]
        for piece, part in zip(self.pieces, gradient[: sum(sizes)].split(sizes), strict=True):
            if id(piece.param) in used:
                part = part.reshape(piece.tensor.shape)
                piece.tensor.grad = part if piece.tensor.grad is None else piece.tensor.grad + part

    def _owned_pieces(self) -> list[Piece]:
        """Return the pieces of this rank."""
        rank = self.group.rank()
        if self.owner is not None:
            owned = self.params if self.owner == rank else []
            return [Piece(p, 0, p.numel(), p.detach().requires_grad_()) for p in owned]
        pieces, start = [], 0
        for p, size in zip(self.params, self.sizes, strict=True):
            low, high = max(rank * self.share - start, 0), min((rank + 1) * self.share - start, size)
            if low < high:
                pieces.append(Piece(p, low, high, p.detach().reshape(-1)[low:high].detach().requires_grad_()))
            start += size
        return pieces

    def _padded(self, parts: list[Tensor], length: int) -> Tensor:
        """Return parts one after the other, followed by zeros."""
        rest = length - sum(part.numel() for part in parts)
        found: Tensor = registry["cat"]([*parts, self._zeros(rest)])
        return found

    def _zeros(self, count: int) -> Tensor:
        found: Tensor = functions["zeros"](count, dtype=self.params[0].dtype)
        return found


def divide(params: Sequence[Tensor], group: ProcessGroup, by_elements: bool, cap_mb: float) -> list[Shard]:
    """Return parameters in shards of at most `cap_mb` MiB, those registered last first.

    by_elements: each rank owns an equal share of the elements of each shard.  Otherwise each parameter is owned by one
    rank: the largest ones first, by the rank that owns the fewest elements so far.
    """
    ordered = list(reversed(params))
    if by_elements:
        return [Shard(part, group) for part in _of_one_dtype(ordered, cap_mb)]
    owned: list[list[Tensor]] = [[] for _ in range(group.size())]
    for p in sorted(ordered, key=lambda p: -p.numel()):
        min(owned, key=lambda mine: sum(q.numel() for q in mine)).append(p)
    return [Shard(part, group, owner) for owner, mine in enumerate(owned) for part in _of_one_dtype(mine, cap_mb)]


def _of_one_dtype(params: Sequence[Tensor], cap_mb: float) -> list[list[Tensor]]:
    by_dtype: dict[Any, list[Tensor]] = {}
    for p in params:
        by_dtype.setdefault(p.dtype, []).append(p)
    return [part for each in by_dtype.values() for part in partition(each, cap_mb)]


class GradientShards(GradientHolder):
    """Reduce gradients to the ranks that own them, while the backward pass continues, and free the others."""

    def __init__(self, params: Sequence[Tensor], shards: Sequence[Shard], group: ProcessGroup) -> None:
        self._params, self._shards, self._group = list(params), shards, group
        self._shard_of = {id(p): shard for shard in shards for p in shard.params}
        self._arrived: set[int] = set()
        self._started = 0
        self._reducing = OncePerPass(self._begin, self._finish)
        self.enabled = True
        self._hooks = [p.register_post_accumulate_grad_hook(self._note) for p in self._params if p.requires_grad]
        note_exchange(self._params, self, group.ranks)
        self._hold()

    def _hold(self) -> None:
        for p in self._params:
            set_gradient_holder(p, self)

    def remove(self, hook: Callable[[Any], None] | None = None) -> None:
        """Leave gradients on their ranks from now on."""
        for handle in self._hooks:
            handle.remove()
        for p in self._params:
            set_gradient_holder(p, None)

    def holders(self, params: Iterable[Tensor]) -> list[Tensor]:
        """Return the tensors of this rank whose `.grad` has its elements of the gradients of some parameters."""
        chosen = {id(p) for p in params}
        return [piece.tensor for shard in self._shards for piece in shard.pieces if id(piece.param) in chosen]

    def stack_over_ranks(self, x: Tensor) -> Tensor:
        """Return the scalars of all ranks as a vector; all ranks must call it."""
        found: Tensor = functions["empty"](self._group.size(), dtype=x.dtype)
        all_gather_into_tensor(found, x.detach().reshape(1), self._group)
        return found

    def _note(self, p: Tensor) -> None:
        if not self.enabled:
            return
        self._reducing.enter()
        self._arrived.add(id(p))
        self._shard_of[id(p)].missing.discard(id(p))
        while self._started < len(self._shards) and not self._shards[self._started].missing:
            self._start_next()
        for shard in self._shards[: self._started]:
            if shard.work is not None and not shard.work.is_completed():
                break

    def _begin(self) -> None:
        self._hold()  # a step of a pipeline may have ended it
        self._started, self._arrived = 0, set()
        for shard in self._shards:
            with suppress(RankMismatchError):  # which the failed pass has raised
                shard.drop()
            shard.missing = {id(q) for q in shard.params if q.requires_grad}

    def _start_next(self) -> None:
        shard = self._shards[self._started]
        self._started += 1
        with no_grad():
            shard.start_reduction()

    def _finish(self) -> None:
        while self._started < len(self._shards):
            self._start_next()
        counts = functions["tensor"]([int(id(p) in self._arrived) for p in self._params], dtype="int32")
        work = reduce_all("the reduction of gradients", counts, ReduceOp.SUM, self._group, True)
        if work is not None:
            work.wait()
        used = {id(p) for p, count in zip(self._params, counts.tolist(), strict=True) if count}
        with no_grad():
            for shard in self._shards:
                shard.finish_reduction(used)
