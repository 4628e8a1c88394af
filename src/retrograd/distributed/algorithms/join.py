"""`Join`: training with different numbers of batches on the ranks."""

from types import TracebackType
from typing import Any

from retrograd.distributed.data_parallel import DistributedDataParallel


class Join:
    """A context in which a rank that has no more batches takes part in the exchanges of the others.

    joinables: a list with one `DistributedDataParallel`, whose `join` this is.  enable, throw_on_early_termination and
    divide_by_initial_world_size: as there.

    Raises NotImplementedError for other objects, such as a `ZeroRedundancyOptimizer`, whose steps are exchanges too.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.algorithms.join import Join
    >>> def script():
    ...     model = rg.nn.parallel.DistributedDataParallel(rg.nn.Linear(2, 1))
    ...     with Join([model]):
    ...         for _ in range(1 + dist.get_rank()):
    ...             model.zero_grad()
    ...             model(rg.ones(4, 2)).mean().backward()
    ...     return model.module.bias.grad.item()
    >>> dist.run_threads(script, 2)
    [1.0, 0.5]
    """

    def __init__(
        self,
        joinables: list[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        divide_by_initial_world_size: bool = True,
    ) -> None:
        others = [type(x).__name__ for x in joinables if not isinstance(x, DistributedDataParallel)]
        if others or len(joinables) != 1:
            raise NotImplementedError(
                f"Join: only one DistributedDataParallel can be joined, got {others or len(joinables)}; let the "
                f"sampler give all ranks the same number of batches: DistributedSampler(drop_last=True)"
            )
        self._context = joinables[0].join(divide_by_initial_world_size, enable, throw_on_early_termination)

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._context.__exit__(kind, error, traceback)
