"""Programs as graphs of operators: traced from Python, changed, printed, drawn, and run again."""

from retrograd.foundation.lazy_imports import lazy_names
from retrograd.fx import immutable_collections, passes, proxy, subgraph_rewriter, traceback
from retrograd.fx.concrete_arguments import PH
from retrograd.fx.drawing import draw
from retrograd.fx.graph import CodeGen, Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.interpreter import Interpreter, Transformer
from retrograd.fx.node import Node, has_side_effect, map_aggregate, map_arg, map_nodes
from retrograd.fx.passes.split_module import split_module
from retrograd.fx.proxy import Proxy, TraceError
from retrograd.fx.signature import Signature
from retrograd.fx.subgraph_matching import Match, replace_pattern
from retrograd.fx.symbolic_tracer import Tracer, symbolic_trace
from retrograd.fx.tracer import TraceLevel, trace
from retrograd.fx.wrapped_functions import ProxyableClassMeta, wrap

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Signature",
    "TraceError",
    "TraceLevel",
    "Tracer",
    "Transformer",
    "draw",
    "has_side_effect",
    "immutable_collections",
    "map_aggregate",
    "map_arg",
    "map_nodes",
    "passes",
    "proxy",
    "replace_pattern",
    "split_module",
    "subgraph_rewriter",
    "symbolic_trace",
    "trace",
    "traceback",
    "wrap",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_symbolic_trace": "retrograd.fx._symbolic_trace",
        "experimental": "retrograd.fx.experimental",
    },
)
