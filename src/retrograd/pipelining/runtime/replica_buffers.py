"""Give the buffers that stages write to, such as running means, the values of the first replica."""

from collections.abc import Iterable

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.pipelining.runtime.stage import PipelineStageBase
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.schedules.replicas import ReplicaMesh
from retrograd.pipelining.schedules.stage_placement import Directions
from retrograd.pipelining.transports import Link


class ReplicaBuffers:
    """The buffers of this process's stages, for replicas that are processes.

    After a run, the first replica sends those that it has written to, and the others take them over.
    """

    def __init__(self, stages: Iterable[PipelineStageBase], directions: Directions, mesh: ReplicaMesh) -> None:
        self._mesh = mesh
        self._buffers: dict[int, dict[int, Tensor]] = {}  # by rank of a replica and id; the order is that of the stages
        for stage in stages:
            own = self._buffers.setdefault(directions.rank(stage.stage_index, 0), {})
            own.update((id(buffer), buffer) for buffer in stage.submod.buffers())
        self._versions = {key: buffer._version for own in self._buffers.values() for key, buffer in own.items()}

    def finish(self, link: Link) -> None:
        """Exchange what has been written."""
        first, *others = self._mesh.peers(link.rank)
        buffers = self._buffers.get(first, {})
        if link.rank == first:
            # Copies, because the next step may write to the buffers before they are delivered.
            changed = [buffer._version != self._versions[key] for key, buffer in buffers.items()]
            written = [b.detach().clone() if has else None for b, has in zip(buffers.values(), changed, strict=True)]
            for other in others:
                link.send(other, Message("R", first, other, -1), written)
            return
        values = link.receive(first, Message("R", first, link.rank, -1))
        with autograd.no_grad():
            for buffer, value in zip(buffers.values(), values, strict=True):
                if value is not None:
                    buffer.copy_(value)
