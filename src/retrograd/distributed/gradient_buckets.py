"""Average gradients over ranks in buckets, while the backward pass continues."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.core.tensor import bump_version, preserve_snapshots
from retrograd.distributed.collectives import reduce_all
from retrograd.distributed.communication_hooks import GradBucket, Hook, HookWork
from retrograd.distributed.objects import all_gather_object
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.distributed.shared_memory import average_shared, has_layout, part_of_rank, shared_vectors
from retrograd.distributed.work import Work
from retrograd.futures import Future
from retrograd.ops.functions import functions
from retrograd.pipelining.transports.interface import RankMismatchError
from retrograd.pipelining.transports.process_group import ProcessGroup

CALL = "the reduction of gradients"  # in errors about ranks that do something else
FIRST_BUCKET_MB = 1.0  # the bucket whose gradients come first is small, so that its reduction starts early


class GradientBuckets:
    """The gradients of parameters, which are reduced in buckets, in the same order on all ranks.

    named: names and parameters; those registered last get their gradients first.  as_views: let gradients be views of
    the buckets, which saves their memory and copies.  allow_unused: parameters without gradients count as zero.
    static: the parameters with a gradient are the same in each pass as in the first.
    """

    def __init__(
        self,
        named: Sequence[tuple[str, Tensor]],
        group: ProcessGroup,
        cap_mb: float,
        *,
        as_views: bool = False,
        allow_unused: bool = False,
        static: bool = False,
    ) -> None:
        self.group = group
        self.divisor = self.active = group.size()  # active: the number of ranks that run backward passes
        self._named = list(named)
        self._buckets = _make_buckets(partition([p for _, p in reversed(named)], cap_mb), group, as_views)
        self._bucket_of = {id(p): bucket for bucket in self._buckets for p in bucket.parameters}
        self._allow_unused, self._static = allow_unused or static, static
        self._always_used: set[int] | None = None  # of a static graph, the parameters with a gradient
        self._arrived: set[int] = set()
        self._started = 0
        self.hook: Hook | None = None

    def set_hook(self, hook: Hook) -> None:
        """Let a function exchange the buckets from now on."""
        self.hook = hook
        for bucket in self._buckets:
            bucket.leave_shared_memory()

    def begin(self) -> None:
        """Prepare for the gradients of a backward pass."""
        self._arrived = set()
        self._started = 0
        for bucket in self._buckets:
            bucket.begin()

    def add(self, p: Tensor) -> None:
        """Take the gradient of a parameter, which is final; start the reductions of complete buckets."""
        self._arrived.add(id(p))
        with no_grad():
            self._bucket_of[id(p)].write(p)
        while self._started < len(self._buckets) and self._is_complete(self._buckets[self._started]):
            self._start_next()
        for bucket in self._buckets[: self._started]:
            if bucket.work is not None and not bucket.work.is_completed():
                break

    def finish(self) -> None:
        """Reduce the remaining buckets, wait for all, and write the means into the gradients.

        Raises RuntimeError, on every rank, if a parameter that must have a gradient has none.
        """
        while self._started < len(self._buckets):
            self._start_next()
        used = self._used_on_any_rank([name for name, p in self._named if id(p) not in self._arrived])
        with no_grad():
            for bucket in self._buckets:
                bucket.finish(used)

    def take_part(self, writes: bool = False) -> None:
        """Take part in the reductions of a pass in which this rank has no gradients; write the means into `.grad`."""
        for number, bucket in enumerate(self._buckets):
            bucket.fill_with_zeros()
            bucket.reduce(self.group, self.divisor, self._exchange(number))
        self._arrived = set()
        used = self._used_on_any_rank([])
        with no_grad():
            for bucket in self._buckets:
                if writes:
                    bucket.finish(used)
                else:
                    bucket.drop()

    def _is_complete(self, bucket: "_Bucket") -> bool:
        return not bucket.missing or (self._always_used is not None and bucket.missing.isdisjoint(self._always_used))

    def _start_next(self) -> None:
        bucket, exchange = self._buckets[self._started], self._exchange(self._started)
        self._started += 1
        with no_grad():
            bucket.fill()
            bucket.reduce(self.group, self.divisor, exchange)

    def _exchange(self, number: int) -> "Callable[[Tensor], Future[Tensor]] | None":
        """Return what exchanges a bucket, if a hook does."""
        if self.hook is None:
            return None
        hook, is_last = self.hook, number == len(self._buckets) - 1
        return lambda flat: hook(GradBucket(number, flat, self._buckets[number].parameters, is_last))

    def _used_on_any_rank(self, missing: list[str]) -> set[int]:
        """Return the ids of the parameters that have a gradient on any rank.

        missing: the names of the parameters that must have a gradient on this rank and have none.
        """
        if self._always_used is not None:
            return self._always_used
        counts = self._count_users()
        if not self._allow_unused and min(counts) < self.active:
            for bucket in self._buckets:
                bucket.drop()
            self._raise_unused(missing)
        used = {id(p) for (_, p), count in zip(self._named, counts, strict=True) if count}
        if self._static:
            self._always_used = used
        return used

    def _count_users(self) -> list[int]:
        """Return on how many ranks each parameter has a gradient."""
        counts = functions["tensor"]([int(id(p) in self._arrived) for _, p in self._named], dtype="int32")
        work = reduce_all(CALL, counts, ReduceOp.SUM, self.group, True)
        if work is not None:
            work.wait()
        found: list[int] = counts.tolist()
        return found

    def _raise_unused(self, missing: list[str]) -> None:
        by_rank: list[list[str]] = [[] for _ in range(self.group.size())]
        all_gather_object(by_rank, missing, self.group)
        rank = next(rank for rank, names in enumerate(by_rank) if names)
        shown = ", ".join(by_rank[rank][:10]) + (", ..." if len(by_rank[rank]) > 10 else "")
        raise RuntimeError(
            f"Expected to have finished reduction: rank {self.group.ranks[rank]} has no gradient of {shown}; use these "
            f"parameters in the loss, or pass find_unused_parameters=True to DistributedDataParallel"
        )


class _Slot:
    """The memory of a gradient in a bucket, from an index on; part: the elements of the bucket that this rank sums."""

    def __init__(self, p: Tensor, flat: Tensor, start: int, part: slice) -> None:
        vector = flat[start : start + p.numel()]
        low, high = [min(max(bound - start, 0), p.numel()) for bound in (part.start, part.stop)]
        self.values = vector.view(p.shape)
        self.summed, self.index = slice(low, high), start + low  # the elements that are in the part
        self.others = [(where, vector.value[where]) for where in (slice(low), slice(high, None))]


class _Bucket:
    """Gradients that are reduced together."""

    def __init__(
        self, parameters: Sequence[Tensor], as_views: bool, flat: Tensor, shared: Sequence[Tensor], part: slice
    ) -> None:
        # shared: the vectors of all ranks, `flat` among them, in memory that they share; part: the one this rank sums.
        self.parameters = list(parameters)
        self.missing: set[int] = set()
        self.work: Work | HookWork | None = None
        self._flat, self._shared = flat, shared
        starts = accumulate([p.numel() for p in parameters], initial=0)
        self._slots = {id(p): _Slot(p, flat, start, part) for p, start in zip(parameters, starts, strict=False)}
        self._as_views = as_views
        self._in_place: dict[int, Tensor] = {}  # gradients of which the part is summed where it is

    def begin(self) -> None:
        """Prepare for the gradients of a backward pass, after the end of a reduction that a failed pass has started."""
        with suppress(RankMismatchError):  # which the failed pass has raised
            self.drop()
        self.missing, self._in_place = set(self._slots), {}

    def write(self, p: Tensor) -> None:
        """Write a gradient into the bucket, at once, while the processor has it in its caches."""
        slot, g = self._slots[id(p)], p.grad
        self.missing.discard(id(p))
        if not self._shared or self._as_views or g is None or not has_layout(g, slot.values):
            self._write_all(p)
            return
        self._in_place[id(p)] = g
        preserve_snapshots(g)
        vector = g.value.reshape(-1)
        for where, memory in slot.others:
            memory[...] = vector[where]

    def _write_all(self, p: Tensor) -> None:
        slot = self._slots[id(p)].values
        if p.grad is None:
            slot.zero_()
        elif not self._as_views or p.grad.data_ptr() != slot.data_ptr():
            slot.copy_(p.grad.detach())

    def leave_shared_memory(self) -> None:
        """Keep whole gradients of this rank only, which a hook exchanges."""
        self.drop()
        self._shared = ()

    def fill(self) -> None:
        """Write the gradients that this pass has not computed: a parameter may have an earlier one."""
        for p in self.parameters:
            if id(p) in self.missing:
                self._write_all(p)

    def fill_with_zeros(self) -> None:
        """Let all gradients of this rank be zero."""
        self.begin()
        self._flat.zero_()

    def finish(self, used: set[int]) -> None:
        """Write the means into the gradients of the parameters that some rank has used."""
        self.drop()
        for p in self.parameters:
            if id(p) not in used:
                continue
            means = self._means(id(p))
            if self._as_views:
                p.grad = means
            elif p.grad is None:
                p.grad = means.clone()
            elif p.grad is not means:
                p.grad.detach().copy_(means)

    def _means(self, key: int) -> Tensor:
        """Return the means, in the gradient itself if a part of it has been summed there."""
        slot, g = self._slots[key], self._in_place.get(key)
        if g is None:
            return slot.values
        vector = g.value.reshape(-1)
        for where, memory in slot.others:
            vector[where] = memory
        bump_version(g)
        return g

    def drop(self) -> None:
        """Wait for the end of the reduction."""
        work, self.work = self.work, None
        if work is not None:
            work.wait()

    def reduce(
        self, group: ProcessGroup, divisor: int, exchange: Callable[[Tensor], Future[Tensor]] | None = None
    ) -> None:
        """Start to average, by a hook if there is one.  Divide first, as PyTorch does, so that sums do not overflow."""
        if exchange is not None:
            self.work = HookWork(exchange(self._flat), self._flat)
            return
        if not self._shared:
            self._flat.mul_(1 / divisor)
            self.work = reduce_all(CALL, self._flat, ReduceOp.SUM, group, True)
            return
        arrays = [(slot, self._in_place.get(key, slot.values).value) for key, slot in self._slots.items()]
        own = [(slot.index, array.reshape(-1)[slot.summed]) for slot, array in arrays]
        self.work = average_shared(CALL, group, self._shared, own, divisor)


def _make_buckets(parts: Sequence[Sequence[Tensor]], group: ProcessGroup, as_views: bool) -> list[_Bucket]:
    """Return a bucket for each list of parameters, in memory that the ranks share if that is possible."""
    sizes = [sum(p.numel() for p in part) for part in parts]
    shared = shared_vectors(group, sizes, [part[0].dtype for part in parts])
    if shared is None:
        flat = [functions["zeros"](size, dtype=part[0].dtype) for size, part in zip(sizes, parts, strict=True)]
        return [_Bucket(part, as_views, vector, (), slice(0, 0)) for part, vector in zip(parts, flat, strict=True)]
    return [
        _Bucket(part, as_views, vectors[group.rank()], vectors, part_of_rank(group.rank(), group.size(), size))
        for part, vectors, size in zip(parts, shared, sizes, strict=True)
    ]


def partition(parameters: Sequence[Tensor], cap_mb: float) -> list[list[Tensor]]:
    """Return parameters in buckets of one dtype, each of one parameter or at most `cap_mb` MiB, the first smaller."""
    buckets: list[list[Tensor]] = []
    size = 0.0
    for p in parameters:
        size += p.nbytes
        cap = min(cap_mb, FIRST_BUCKET_MB) if len(buckets) == 1 else cap_mb
        if not buckets or buckets[-1][0].dtype != p.dtype or size > cap * 2**20:
            buckets.append([])
            size = p.nbytes
        buckets[-1].append(p)
    return buckets
