"""Planning: measure a model, split it, and simulate every schedule before a launch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograd.core import Tensor, registry
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.kernels.processors import available_processors
from retrograd.nn import Module
from retrograd.pipelining.microbatch import Spec, TensorChunkSpec, split_batch, tensors_in
from retrograd.pipelining.planning.auto_schedule import AutoSchedule
from retrograd.pipelining.planning.choose import Planner, Settings
from retrograd.pipelining.planning.link_cost import LinearCost, MessageCost, message_cost
from retrograd.pipelining.planning.operator_cost import preserve_state
from retrograd.pipelining.planning.report import Choice, Plan, SplitPolicy, merge_plans
from retrograd.pipelining.planning.schedule_search import FoundSchedule, search_schedule
from retrograd.pipelining.planning.storage_cost import common_storage_cost
from retrograd.pipelining.schedules import SCHEDULES, get_schedule
from retrograd.pipelining.schedules.program import AUTO
from retrograd.pipelining.transports import Transport, get_transport

__all__ = ["AutoSchedule", "Choice", "FoundSchedule", "Plan", "SplitPolicy", "plan", "search_schedule"]


def plan(
    model: Module,
    example_args: Sequence[Any],
    ranks: int,
    micro_batches: int,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    target: Any = None,
    loss_fn: Callable[[Any, Any], Tensor] | None = None,
    schedules: Sequence[str] | None = None,
    stages_per_rank: Sequence[int] | None = None,
    replicas: Sequence[int] = (1,),
    memory_limit: float | None = None,
    optimizer_copies: float = 2.0,
    transport: str = "auto",
    latency: float | None = None,
    bandwidth: float | None = None,
    cores: int | None = None,
    rounds: int = 5,
    search_seconds: float = 5.0,
    alone: bool = False,
    args_chunk_spec: Sequence[Spec] | None = None,
    kwargs_chunk_spec: Mapping[str, Spec] | None = None,
    target_chunk_spec: Spec | None = None,
) -> Plan:
    """Measure a model, split it, and recommend a schedule for a number of ranks.

    Every operator is timed forward and backward on the first microbatch.  Dynamic programming finds the contiguous
    stages that minimize the slowest one.  Ranks run these over the transport, timed, and each schedule is simulated
    with the measured costs.  The model runs on one thread, and its gradients, buffers and the generator states are
    restored afterwards.

    example_args, example_kwargs, target: a whole batch, as for `Pipeline.step`.
    loss_fn: as for `Pipeline`; None: the sum of the model's outputs.
    schedules: names; None: all.  With "auto" among them, a schedule is searched for, see `search_schedule`, for the
     splits of the others (of all schedules if it is the only one), within `search_seconds`.
    stages_per_rank: to try for each schedule; None: the schedule's own.
    replicas: numbers of replicas to try, into which the ranks are divided, see `Pipeline`.
    memory_limit: bytes per rank for parameters, gradients, optimizer state and saved tensors.  A schedule that needs
     more is tried with microbatches that offload activations to a file or recompute them, too, see `with_offload` and
     `with_recomputation`.
    optimizer_copies: bytes of optimizer state per byte of parameters: 2 for Adam, 0 for plain SGD.
    transport: messages are timed over it, unless `latency` (seconds) and `bandwidth` (bytes per second) are given.
    cores: how many the ranks share; None: one for each rank.
    rounds: how often everything is timed, after a warm-up round; medians are used, and lower deciles for stages.
    alone: time stages one at a time.  Otherwise ranks are timed concurrently, up to the number of cores, since they
     slow each other down; ranks that are processes always run concurrently.
    args_chunk_spec, kwargs_chunk_spec, target_chunk_spec: as for `Pipeline`.

    With several stages per rank, each may use an even part of the memory limit, which is stricter than necessary.

    Raises ValueError if nothing fits, with the smallest sufficient limit; if there are more stages than
    operators; for an unknown schedule or transport; and for values out of range.  RuntimeError for a model that
    cannot be captured.

    Source of the split: D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training" (2019),
    section 3.1, without its replicated stages.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(*[rg.nn.Linear(32, 32) for _ in range(4)])
    >>> found = plan(model, (rg.ones(16, 32),), ranks=2, micro_batches=4, rounds=1, latency=0.0, bandwidth=1e9)
    >>> found.recommended.step <= 1.01 * min(choice.step for choice in found.choices)
    True
    """
    for name, number in (
        ("ranks", ranks),
        ("micro_batches", micro_batches),
        ("rounds", rounds),
        ("cores", 1 if cores is None else cores),
    ):
        if not isinstance(number, int) or number < 1:
            raise ValueError(f"plan: {name} must be an integer of at least 1, got {describe(number)}")
    if not replicas or not all(isinstance(count, int) and 1 <= count <= micro_batches for count in replicas):
        raise ValueError(f"plan: replicas must be numbers from 1 to the {micro_batches} microbatches, got {replicas!r}")
    if uneven := [count for count in replicas if ranks % count]:
        raise ValueError(f"plan: {ranks} ranks cannot be divided among {uneven[0]} replicas")
    above_zero = {"memory_limit": memory_limit, "bandwidth": bandwidth, "search_seconds": search_seconds}
    for name, size in above_zero.items():
        if size is not None and not size > 0:
            raise ValueError(f"plan: {name} must be a number above 0, got {describe(size)}")
    for name, size in (("latency", latency), ("optimizer_copies", optimizer_copies)):
        if size is not None and not size >= 0:
            raise ValueError(f"plan: {name} must be a number of at least 0, got {describe(size)}")
    named = [name for name in (schedules or SCHEDULES) if name != AUTO]
    names = [get_schedule(name).name for name in (named or SCHEDULES)]
    search_seconds = search_seconds if AUTO in (schedules or ()) else 0.0
    link = get_transport(transport)
    messages = _message_cost(link, latency, bandwidth)
    specs = {**(kwargs_chunk_spec or {}), "target": target_chunk_spec or TensorChunkSpec()}
    keywords = {**(example_kwargs or {}), "target": target}
    batch = split_batch(tuple(example_args), keywords, micro_batches, args_chunk_spec, specs)[0]
    batch_target, compare = batch.kwargs.pop("target"), loss_fn or _sum_outputs

    def loss(output: Any) -> Any:
        return compare(output, batch_target)

    workers = link.world or (1 if alone else min(ranks, cores or ranks, available_processors()))
    settings = Settings(
        ranks,
        micro_batches,
        1,
        memory_limit,
        2 + optimizer_copies,
        cores,
        messages,
        rounds,
        workers,
        search_seconds / len(replicas),
        None if memory_limit is None else common_storage_cost(link, workers),
    )
    plans: list[Plan] = []
    failures: list[ValueError] = []
    with preserve_state(model):
        planner = None
        for count in replicas:
            own = settings._replace(ranks=ranks // count, replicas=count)
            planner = Planner(model, batch, loss, batch_target, link, own, planner)
            try:
                plans.append(planner.plan(names, stages_per_rank))
            except ValueError as failure:
                failures.append(failure)
    if not plans:
        raise failures[0]
    return merge_plans(plans)


def _sum_outputs(output: Any, target: Any) -> Any:
    parts = [registry["sum"](tensor) for tensor in tensors_in(output) if tensor.requires_grad]
    return sum(parts[1:], start=parts[0])


def _message_cost(transport: Transport, latency: float | None, bandwidth: float | None) -> MessageCost:
    """Return the given latency and bandwidth, or measured ones for those that are None."""
    if latency is not None and bandwidth is not None:
        return MessageCost(LinearCost(latency, 1 / bandwidth))
    found = message_cost(transport)
    fixed = found.latency.fixed if latency is None else latency
    per_byte = found.latency.per_byte if bandwidth is None else 1 / bandwidth
    return found._replace(latency=LinearCost(fixed, per_byte))


suggest_in_module(globals())
