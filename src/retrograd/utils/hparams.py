"""Data for TensorBoard's hyperparameter page: an experiment, and its sessions with their values.

The fields are those of tensorboard/plugins/hparams, plugin_data.proto and api.proto.
"""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from retrograd.core import Tensor
from retrograd.utils.event_files import import_tensorboardx

PLUGIN = "hparams"
TYPES = {str: "DATA_TYPE_STRING", bool: "DATA_TYPE_BOOL", float: "DATA_TYPE_FLOAT64"}


def hparams_summaries(
    values: Mapping[str, Any], metrics: Sequence[str], domains: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, bytes]]:
    """Yield tags and plugin data: of the experiment, of the start of a session with these values, and of its end.

    Raises TypeError for a value that is neither a number nor text, ValueError for a domain without a value.
    """
    known = {name: _to_plain_value(name, value) for name, value in values.items()}
    unknown = sorted(domains.keys() - known.keys())
    if unknown:
        raise ValueError(f"add_hparams: hparam_domain_discrete has {unknown}, which hparam_dict has not")
    infos = [_hparam_info(name, value, domains.get(name, ())) for name, value in known.items()]
    names = [{"name": {"tag": name}} for name in metrics]
    session = {"hparams": {name: _value(value) for name, value in known.items()}}
    yield "experiment", _plugin_data(experiment={"hparam_infos": infos, "metric_infos": names})
    yield "session_start_info", _plugin_data(session_start_info=session)
    yield "session_end_info", _plugin_data(session_end_info={"status": "STATUS_SUCCESS"})


def _plugin_data(**fields: Any) -> bytes:
    return import_tensorboardx().proto.plugin_hparams_pb2.HParamsPluginData(**fields).SerializeToString()


def _to_plain_value(name: str, value: Any) -> str | bool | float:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, (str, bool)):
        return value
    if not isinstance(value, Real):
        raise TypeError(f"add_hparams: {name!r} must be a number, a truth or text, got {type(value).__name__}")
    return float(value)


def _hparam_info(name: str, value: str | bool | float, domain: Sequence[Any]) -> dict[str, Any]:
    """Return the fields of a hyperparameter: its name, its type, and if given its domain."""
    choices = [_value(_to_plain_value(name, choice)) for choice in domain]
    fields = {"domain_discrete": {"values": choices}} if domain else {}
    return {"name": name, "type": TYPES[type(value)], **fields}


def _value(value: str | bool | float) -> dict[str, Any]:
    if isinstance(value, str):
        return {"string_value": value}
    return {"bool_value" if isinstance(value, bool) else "number_value": value}
