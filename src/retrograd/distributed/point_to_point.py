"""Messages from one rank to another."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributed.exchange import send_direct, take_direct
from retrograd.distributed.groups import chosen_rank, initialized_group, is_member
from retrograd.distributed.objects import arrived_from, senders_of
from retrograd.distributed.work import Steps, Work
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.transports.process_group import ProcessGroup


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to rank `dst`, which receives it by `recv` with the same tag.

    It returns when the tensor may be written to again.  Raises TypeError for no tensor, and ValueError for this rank
    itself, a rank that does not exist, and before `init_process_group`.
    """
    isend(tensor, dst, group, tag, group_dst)


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start to send a tensor to rank `dst`; return the handle.

    Raises what `send` raises.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    target = _other("isend", tensor, members, dst, group_dst)
    send_direct(members, target, ("p2p", tag), tensor.detach().clone())
    return Work(members, "isend", _ended(tensor))


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Wait for a tensor from rank `src`, None: from any rank, and write it into `tensor`; return the sender's rank.

    Messages of one sender and tag arrive in order.  Raises TypeError for no tensor; ValueError for another number of
    elements or dtype than the sender's; PeerLost if a rank's script has ended; TimeoutError.
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return initialized_group(group).ranks[work.source_rank()]


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start to receive a tensor from rank `src`, None: from any rank; return the handle.

    Raises what `recv` raises; errors about the message are raised by `wait`.
    """
    if not is_member(group):
        return None
    members = initialized_group(group)
    if src is None and group_src is None:
        _check_tensor("irecv", tensor)
        source = None
    else:
        source = _other("irecv", tensor, members, src, group_src)
    return _Receive(members, tensor, source, ("p2p", tag))


class _Receive(Work):
    """The handle of a receive.  Receives from one rank with one tag complete in the order in which they started."""

    def __init__(self, group: ProcessGroup, tensor: Tensor, source: int | None, subject: Any) -> None:
        self._tensor, self._from, self._subject = tensor, source, subject
        waiting = group.peers.receives
        waiting.append(self)
        super().__init__(group, "recv", self._steps_of_receive(), senders=senders_of(group, source))

    def _steps_of_receive(self) -> Steps:
        found: list[int] = []
        group = self._group
        yield lambda: self._is_next() and arrived_from(group, self._subject, self._from, found)
        group.peers.receives.remove(self)
        self.source = found[0]
        value = take_direct(group, found[0], self._subject)
        target = self._tensor
        if value.numel() != target.numel() or value.dtype != target.dtype:
            raise ValueError(
                f"recv: rank {group.ranks[found[0]]} has sent {value.aval}, which does not fit {target.detach().aval}"
            )
        with no_grad():
            target.detach().copy_(value.reshape(target.shape))
        return [target]

    def _is_next(self) -> bool:
        for other in [*self._group.peers.receives]:  # those that end leave the list
            if other is self:
                return True
            if other.overlaps(self):
                other.advance()
                if other in self._group.peers.receives:
                    return False
        return True

    def overlaps(self, other: "_Receive") -> bool:
        """Return whether both wait for the messages of one sender with one tag."""
        return self._subject == other._subject and (None in (self._from, other._from) or self._from == other._from)


class P2POp:
    """A send or a receive for `batch_isend_irecv`: `P2POp(isend, tensor, dst)` or `P2POp(irecv, tensor, src)`.

    Raises ValueError for another function.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        _check_tensor("P2POp", tensor)
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer

    def __repr__(self) -> str:
        peer = f"group rank {self.group_peer}" if self.peer is None else f"rank {self.peer}"
        return f"P2POp({self.op.__name__}, {self.tensor.detach().aval}, {peer}, tag {self.tag})"


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several sends and receives; return their handles.

    >>> import retrograd as rg
    >>> from retrograd.distributed import run_threads, get_rank
    >>> def exchange():
    ...     mine, other = rg.full((2,), float(get_rank())), 1 - get_rank()
    ...     found = rg.empty(2)
    ...     for work in batch_isend_irecv([P2POp(isend, mine, other), P2POp(irecv, found, other)]):
    ...         work.wait()
    ...     return found.tolist()
    >>> run_threads(exchange, 2)
    [[1.0, 1.0], [0.0, 0.0]]

    Raises ValueError for an empty list or another entry.
    """
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``.")
    sends_first = [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
    return [work for work in sends_first if work is not None]


def _ended(tensor: Tensor) -> Steps:
    """Do nothing: what is sent is a copy."""
    return [tensor]
    yield  # makes it a generator


def _other(call: str, tensor: Any, group: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    """Return the number in the group of another rank.  Raises TypeError for no tensor, ValueError for this rank."""
    _check_tensor(call, tensor)
    found = chosen_rank(call, group, rank, group_rank, None)
    if found == group.rank():
        raise ValueError(f"Invalid rank: {call} cannot reach this rank itself, {group.ranks[found]}")
    return found


def _check_tensor(call: str, tensor: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{call}: expected a Tensor, got {type(tensor).__name__}")


suggest_in_module(globals())
