"""Passes over graphs: types of values, split and fused modules, managers of passes."""

from retrograd.fx.passes import (
    graph_manipulation,
    infra,
    operator_support,
    shape_prop,
    split_utils,
    tools_common,
    utils,
)

__all__ = [
    "graph_manipulation",
    "infra",
    "operator_support",
    "shape_prop",
    "split_utils",
    "tools_common",
    "utils",
]
