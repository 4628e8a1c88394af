"""Sum the gradients of stages over the replicas of a pipeline."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, pairwise

from retrograd import autograd
from retrograd.core import Tensor, registry
from retrograd.nn import Parameter
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.schedules.replicas import ReplicaMesh
from retrograd.pipelining.transports import Link

Slices = list[Tensor | None]  # a part of each parameter's flat gradient, or None


class ReplicaSums:
    """Sums the gradients of the parameters that only one stage uses, when the stage's last backward has run.

    The elements of a stage's parameters are divided among its replicas.  Each replica sends the others their parts,
    sums its own part in the order of the replicas, and sends the sums back (the algorithm is reduce-scatter, then
    all-gather, as in R. Rabenseifner, "Optimization of Collective Reduction Operations", 2004).  Gradients are sent
    as they are, without being copied into buckets.  All replicas get the same bits.

    shared_memory: whether the ranks are threads, whose replicas have the same parameters; the first one adds the sums.
    """

    def __init__(self, mesh: ReplicaMesh, shared_memory: bool) -> None:
        self._mesh = mesh
        self._shared_memory = shared_memory
        # By rank and stage: the parameters, and their aliases in the stages for each kind of microbatch.
        self._aliases: dict[tuple[int, int], dict[int, list[Parameter]]] = defaultdict(lambda: defaultdict(list))
        self._parameters: dict[int, Parameter] = {}
        self._parts: dict[tuple[int, int], list[Slices]] = {}  # by rank and stage, the part of each replica

    def add(self, rank: int, stage: int, parameter: Parameter, alias: Parameter) -> None:
        """Register the alias of a parameter in a stage of a rank."""
        self._parameters[id(parameter)] = parameter
        self._aliases[rank, stage][id(parameter)].append(alias)

    def start(self, link: Link, stage: int) -> None:
        """Send the other replicas their parts of a stage's gradients."""
        peers = self._mesh.peers(link.rank)
        parts = self._split(link.rank, stage)
        self._parts[link.rank, stage] = parts
        for peer, part in zip(peers, parts, strict=True):
            if peer != link.rank:
                link.send(peer, Message("R", link.rank, peer, stage), part)

    def finish(self, link: Link, stage: int) -> None:
        """Sum this replica's part, exchange the sums, and add them to the gradients of the parameters."""
        rank, peers = link.rank, self._mesh.peers(link.rank)
        own_part = self._parts.pop((rank, stage))[self._mesh.replica(rank)]
        columns = [own_part if p == rank else link.receive(p, Message("R", p, rank, stage)) for p in peers]
        sums = [_sum(column) for column in zip(*columns, strict=True)]
        writers = peers[:1] if self._shared_memory else peers
        for peer in writers:
            if peer != rank:
                link.send(peer, Message("S", rank, peer, stage), sums)
        if rank in writers:
            parts = [sums if p == rank else link.receive(p, Message("S", p, rank, stage)) for p in peers]
            self._add(rank, stage, parts)

    def _split(self, rank: int, stage: int) -> list[Slices]:
        """Return the part of each replica: of all elements, one after the other, an equal share."""
        found = [(self._parameters[key], aliases) for key, aliases in self._aliases[rank, stage].items()]
        ends = list(accumulate((parameter.numel() for parameter, _ in found), initial=0))
        bounds = [ends[-1] * replica // self._mesh.replicas for replica in range(self._mesh.replicas + 1)]
        parts: list[Slices] = [[] for _ in range(self._mesh.replicas)]
        with autograd.no_grad():
            for (start, end), (_, aliases) in zip(pairwise(ends), found, strict=True):
                gradient = _take_gradient(aliases)
                for part, (low, high) in zip(parts, pairwise(bounds), strict=True):
                    first, last = max(low, start), min(high, end)
                    here = gradient is not None and first < last
                    part.append(gradient.reshape(-1)[first - start : last - start] if here else None)  # type: ignore[union-attr]
        return parts

    def _add(self, rank: int, stage: int, parts: Sequence[Slices]) -> None:
        with autograd.no_grad():
            for key, slices in zip(self._aliases[rank, stage], zip(*parts, strict=True), strict=True):
                parameter, present = self._parameters[key], [part for part in slices if part is not None]
                if present:
                    flat = present[0] if len(present) == 1 else registry["cat"](present)
                    gradient = flat.reshape(parameter.shape)
                    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


def _take_gradient(aliases: Sequence[Parameter]) -> Tensor | None:
    """Return the sum of the gradients of a parameter's aliases, and remove these."""
    total: Tensor | None = None
    for alias in aliases:
        if alias.grad is not None:
            total = alias.grad if total is None else total + alias.grad
            alias.grad = None
    return total


def _sum(parts: Sequence[Tensor | None]) -> Tensor | None:
    """Return the sum of the parts in order, or None if there are none."""
    present = [part for part in parts if part is not None]
    if len(present) < 2:
        return present[0] if present else None
    with autograd.no_grad():
        total = present[0] + present[1]
        for part in present[2:]:
            total += part
    return total
