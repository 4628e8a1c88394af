"""Send exceptions to other processes: types and text, even if they cannot be pickled."""

import pickle
import re
import traceback
from collections.abc import Iterator
from itertools import pairwise

from retrograd.pipelining.transports.rank_messaging import Packed

NOTE = re.compile(r"^on rank (\d+):\n", re.MULTILINE)  # the beginning of the note with the traceback from a rank


def causes(failure: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its cause, and so on."""
    visited: list[BaseException] = []
    while failure not in visited:
        visited.append(failure)
        yield failure
        if failure.__cause__ is None:
            return
        failure = failure.__cause__


def pack_failure(failure: BaseException) -> Packed:
    """Pack an exception with its causes and its traceback as text."""
    text = "".join(traceback.format_exception(failure))
    return pickle.dumps(([_pickle_or_text(cause) for cause in causes(failure)], text), 5), ()


def unpack_failure(packed: Packed, rank: int) -> BaseException:
    """Unpack an exception with its causes; a note has the traceback from its rank.

    >>> failure = unpack_failure(pack_failure(KeyError("first")), rank=3)
    >>> failure, failure.__notes__[0].splitlines()[0]
    (KeyError('first'), 'on rank 3:')
    """
    links, text = pickle.loads(packed[0])
    failures = [_unpickle_or_text(*link) for link in links]
    for failure, cause in pairwise(failures):
        failure.__cause__ = cause
    failures[0].add_note(f"on rank {rank}:\n{text}")
    return failures[0]


def _pickle_or_text(failure: BaseException) -> tuple[bytes, str]:
    """Return an exception as bytes, empty if it cannot be pickled, and its text."""
    try:
        data = pickle.dumps(failure, 5)
        pickle.loads(data)
    except Exception:
        data = b""
    return data, f"{type(failure).__qualname__}: {failure}"


def _unpickle_or_text(data: bytes, text: str) -> BaseException:
    try:
        if data:
            failure: BaseException = pickle.loads(data)
            return failure
    except Exception:  # its class cannot be imported here
        pass
    return RuntimeError(text)
