"""The annotation of values with types, which tracing records."""

from typing import Any

from retrograd.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """Return a value; the node of a proxy gets the type.

    Raises RuntimeError for a proxy that has a type already.

    >>> from retrograd import fx
    >>> from retrograd.fx.annotate import annotate
    >>> graph = fx.symbolic_trace(lambda x: annotate(x + 1, int)).graph
    >>> graph.find_nodes(op="call_function")[0].type
    <class 'int'>
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new "
                f"type is {type}. The first is that of an argument, or of an earlier annotate"
            )
        val.node.type = type
    return val
