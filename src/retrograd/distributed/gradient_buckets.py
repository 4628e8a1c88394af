"""Average gradients over ranks in buckets, while the backward pass continues."""

from collections.abc import Sequence

from retrograd.autograd import no_grad
from retrograd.core import Tensor, registry
from retrograd.distributed.collectives import reduce_all
from retrograd.distributed.objects import all_gather_object
from retrograd.distributed.reduce_op import ReduceOp
from retrograd.distributed.work import Work
from retrograd.ops.functions import functions
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
        self._buckets = [_Bucket(tensors, as_views) for tensors in partition([p for _, p in reversed(named)], cap_mb)]
        self._bucket_of = {id(p): bucket for bucket in self._buckets for p in bucket.parameters}
        self._allow_unused, self._static = allow_unused or static, static
        self._always_used: set[int] | None = None  # of a static graph, the parameters with a gradient
        self._arrived: set[int] = set()
        self._started = 0

    def begin(self) -> None:
        """Prepare for the gradients of a backward pass."""
        self._arrived = set()
        self._started = 0
        for bucket in self._buckets:
            bucket.missing = {id(p) for p in bucket.parameters}
            if self._always_used is not None:
                bucket.missing &= self._always_used

    def add(self, p: Tensor) -> None:
        """Note that the gradient of a parameter is final; start the reductions of complete buckets."""
        self._arrived.add(id(p))
        self._bucket_of[id(p)].missing.discard(id(p))
        while self._started < len(self._buckets) and not self._buckets[self._started].missing:
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

    def take_part(self) -> None:
        """Take part in the reductions of a pass in which this rank has no gradients."""
        for bucket in self._buckets:
            bucket.start_empty(self.group)
        self._arrived = set()
        self._used_on_any_rank([])
        for bucket in self._buckets:
            bucket.drop()

    def _start_next(self) -> None:
        bucket = self._buckets[self._started]
        self._started += 1
        with no_grad():
            bucket.start(self.group, self.divisor)

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
            f"Expected to have finished reduction: rank {rank} has no gradient of {shown}; use these parameters in the "
            f"loss, or pass find_unused_parameters=True to DistributedDataParallel"
        )


class _Bucket:
    """Gradients that are reduced together."""

    def __init__(self, parameters: Sequence[Tensor], as_views: bool) -> None:
        self.parameters = list(parameters)
        self.missing: set[int] = set()
        self.work: Work | None = None
        self._sizes = [p.numel() for p in parameters]
        self._flat: Tensor | None = self._zeros() if as_views else None
        self._as_views = as_views

    def start(self, group: ProcessGroup, divisor: int) -> None:
        """Start the reduction of the present gradients; divide first, as PyTorch does, so that sums don't overflow."""
        if self._as_views:
            flat = self._flat
            assert flat is not None
            for p, part in zip(self.parameters, flat.split(self._sizes), strict=True):
                if p.grad is None:
                    part.zero_()
                elif p.grad.data_ptr() != part.data_ptr():
                    part.copy_(p.grad.detach().reshape(-1))
        else:
            zeros_like = registry["zeros_like"]
            grads = [zeros_like(p.detach()) if p.grad is None else p.grad.detach() for p in self.parameters]
            flat = registry["cat"]([grad.reshape(-1) for grad in grads])
        self._reduce(flat.div_(divisor), group)

    def start_empty(self, group: ProcessGroup) -> None:
        """Start the reduction of zeros."""
        self._reduce(self._zeros(), group)

    def finish(self, used: set[int]) -> None:
        """Write the means into the gradients of the parameters that some rank has used."""
        flat = self.drop()
        for p, mean in zip(self.parameters, flat.split(self._sizes), strict=True):
            if id(p) not in used:
                continue
            if self._as_views or p.grad is None:
                p.grad = mean.view(p.shape)
            else:
                p.grad.detach().copy_(mean.reshape(p.shape))

    def drop(self) -> Tensor:
        """Return the result of the reduction, after waiting for it."""
        flat, work = self._flat, self.work
        assert flat is not None
        self.work = None
        if work is not None:
            work.wait()
        if not self._as_views:
            self._flat = None
        return flat

    def _reduce(self, flat: Tensor, group: ProcessGroup) -> None:
        self._flat = flat
        self.work = reduce_all(CALL, flat, ReduceOp.SUM, group, True)

    def _zeros(self) -> Tensor:
        found: Tensor = functions["zeros"](sum(self._sizes), dtype=self.parameters[0].dtype)
        return found


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
