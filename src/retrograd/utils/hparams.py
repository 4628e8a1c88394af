"""Data for TensorBoard's hyperparameter page: an experiment, and its sessions with their values.

The fields are those of tensorboard/plugins/hparams, plugin_data.proto and api.proto.
"""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from retrograd.core import Tensor
from retrograd.utils.event_files import double, message, whole

PLUGIN = "hparams"
SUCCESS = 1  # status of a session
TYPES = {str: 1, bool: 2, float: 3}


def summaries(
    values: Mapping[str, Any], metrics: Sequence[str], domains: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, bytes]]:
    """Yield tags and plugin data: of the experiment, of the start of a session with these values, and of its end.

    Raises TypeError for a value that is neither a number nor text, ValueError for a domain without a value.
    """
    known = {name: _plain(name, value) for name, value in values.items()}
    unknown = sorted(domains.keys() - known.keys())
    if unknown:
        raise ValueError(f"add_hparams: hparam_domain_discrete has {unknown}, which hparam_dict has not")
    infos = [message(4, _info(name, value, domains.get(name, ()))) for name, value in known.items()]
    names = [message(5, message(1, message(2, name))) for name in metrics]
    yield "experiment", message(2, b"".join(infos + names))
    pairs = [message(1, message(1, name) + message(2, _value(value))) for name, value in known.items()]
    yield "session_start_info", message(3, b"".join(pairs))
    yield "session_end_info", message(4, whole(1, SUCCESS))


def _plain(name: str, value: Any) -> str | bool | float:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, (str, bool)):
        return value
    if not isinstance(value, Real):
        raise TypeError(f"add_hparams: {name!r} must be a number, a truth or text, got {type(value).__name__}")
    return float(value)


def _info(name: str, value: str | bool | float, domain: Sequence[Any]) -> bytes:
    """Encode a hyperparameter: its name, its type, and if given its domain."""
    listed = b"".join(message(1, _value(_plain(name, choice))) for choice in domain)
    return message(1, name) + whole(4, TYPES[type(value)]) + (message(5, listed) if listed else b"")


def _value(value: str | bool | float) -> bytes:
    if isinstance(value, str):
        return message(3, value)
    return whole(4, value) if isinstance(value, bool) else double(2, value)
