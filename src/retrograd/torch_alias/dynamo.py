"""The names of `torch._dynamo` that libraries use: those of `rg.compiler`."""

from contextlib import nullcontext
from typing import Any

from retrograd.compiler import allow_in_graph as allow_in_graph
from retrograd.compiler import assume_constant_result as assume_constant_result
from retrograd.compiler import disable as disable
from retrograd.compiler import explain as explain
from retrograd.compiler import is_compiling as is_compiling
from retrograd.compiler import list_backends as list_backends
from retrograd.compiler import mark_dynamic as mark_dynamic
from retrograd.compiler import mark_static as mark_static
from retrograd.compiler import maybe_mark_dynamic as maybe_mark_dynamic
from retrograd.compiler import reset as reset
from retrograd.compiler.compiled_module import OptimizedModule as OptimizedModule


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Do nothing: compiled programs do not depend on the addresses of tensors."""


def graph_break(msg: str = "") -> None:
    """Do nothing: graphs do not break."""


class TransformGetItemToIndex(nullcontext):
    """Do nothing: `x[i]` takes an index that `vmap` maps over everywhere."""


def is_compile_supported(device_type: str) -> bool:
    """Return whether `compile` compiles programs for a device."""
    return device_type == "cpu"


def is_dynamo_supported() -> bool:
    """Return True."""
    return True
