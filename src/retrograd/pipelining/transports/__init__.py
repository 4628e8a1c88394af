"""How ranks are launched and how their messages travel: one small interface, one module each."""

from retrograd.pipelining.transports.interface import Aborted, Transport
from retrograd.pipelining.transports.threads import Threads

TRANSPORTS = {"threads": Threads}


def get_transport(name: str) -> Transport:
    """A transport by name; a ValueError lists those that exist.

    >>> type(get_transport("threads")).__name__
    'Threads'
    """
    if name not in TRANSPORTS:
        raise ValueError(f"transport {name!r} is unknown; there are: {', '.join(sorted(TRANSPORTS))}")
    return TRANSPORTS[name]()


__all__ = ["TRANSPORTS", "Aborted", "Threads", "Transport", "get_transport"]
