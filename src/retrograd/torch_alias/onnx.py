"""The names of `torch.onnx` that libraries ask for: no program is exported to ONNX."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

symbolic_opset9 = symbolic_opset11 = SimpleNamespace()


def is_in_onnx_export() -> bool:
    """Return False: nothing is exported."""
    return False


def export(*args: Any, **settings: Any) -> NoReturn:
    """Raise RuntimeError."""
    raise RuntimeError("torch.onnx.export: retrograd writes no ONNX files; use rg.export.save")


dynamo_export = export


def register_custom_op_symbolic(*args: Any, **settings: Any) -> None:
    """Do nothing: exports of operators are not used."""


unregister_custom_op_symbolic = register_custom_op_symbolic


def parse_args(*descriptors: str) -> Callable:
    """Return a decorator that returns functions unchanged."""
    return lambda function: function
