"""The current metadata for new nodes: annotations, and the metadata of a node that runs again."""

import copy
import functools
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.fx.node import Node

__all__ = [
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

COPIED = ("stack_trace", "nn_module_stack", "custom", "quantization_tag", "partitioner_tag")

_META: ContextVar[dict[str, Any]] = ContextVar("meta", default={})  # noqa: B039  (replaced, never changed)
_PRESERVES: ContextVar[bool] = ContextVar("preserves", default=False)


@generator_block
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Give nodes that are created within the block the current metadata: see `annotate` and `set_current_meta`."""
    preserves, meta = _PRESERVES.set(enable), _META.set(_META.get())
    try:
        yield
    finally:
        _META.reset(meta)
        _PRESERVES.reset(preserves)


def has_preserved_node_meta() -> bool:
    """Return whether the code runs within `preserve_node_meta`."""
    return _PRESERVES.get()


def get_current_meta() -> dict[str, Any]:
    """Return the current metadata."""
    return _META.get()


def copied_meta() -> dict[str, Any]:
    """Return the metadata for a node that is created now; none outside `preserve_node_meta`."""
    meta = _META.get() if _PRESERVES.get() else {}
    return {name: copy.copy(meta[name]) for name in COPIED if name in meta}


@generator_block
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Add entries to `meta["custom"]` of the nodes that are created within the block and `preserve_node_meta`.

    >>> from retrograd import fx
    >>> def f(x):
    ...     with fx.traceback.annotate({"stage": 1}):
    ...         return x + 1
    >>> with fx.traceback.preserve_node_meta():
    ...     module = fx.symbolic_trace(f)
    >>> [node.meta.get("custom") for node in module.graph.nodes]
    [None, {'stage': 1}, None]
    """
    meta = _META.get()
    token = _META.set({**meta, "custom": {**meta.get("custom", {}), **annotation_dict}})
    try:
        yield
    finally:
        _META.reset(token)


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable], Callable]:
    """Return a decorator that runs a function within `annotate`."""

    def decorator(function: Callable) -> Callable:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorator


@generator_block
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Make the metadata of a node the current metadata within the block, under `preserve_node_meta`.

    `pass_name` is accepted for PyTorch's callers; where nodes come from is not recorded.
    """
    token = _META.set(dict(node.meta) if _PRESERVES.get() and node.meta else _META.get())
    try:
        yield
    finally:
        _META.reset(token)


def set_stack_trace(stack: list[str]) -> None:
    """Set the stack trace of the nodes that are created next, under `preserve_node_meta`."""
    if _PRESERVES.get() and stack:
        _META.set({**_META.get(), "stack_trace": "".join(stack)})


def format_stack() -> list[str]:
    """Return the current metadata's stack trace; outside `preserve_node_meta` Python's stack."""
    if _PRESERVES.get():
        return [_META.get().get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])
