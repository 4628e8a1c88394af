"""Programs as graphs of operators: traced from Python, changed, printed, drawn, and run again."""

from retrograd.fx import immutable_collections, subgraph_rewriter
from retrograd.fx.drawing import draw
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.interpreter import Interpreter
from retrograd.fx.node import Node, has_side_effect, map_nodes
from retrograd.fx.proxy import Proxy, TraceError
from retrograd.fx.signature import Signature
from retrograd.fx.split import split_module
from retrograd.fx.subgraph_matching import Match, replace_pattern
from retrograd.fx.symbolic_tracer import PH, Tracer, symbolic_trace
from retrograd.fx.tracer import TraceLevel, trace
from retrograd.fx.transformer import Transformer
from retrograd.fx.wrapped_functions import wrap

__all__ = [
    "PH",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "Proxy",
    "Signature",
    "TraceError",
    "TraceLevel",
    "Tracer",
    "Transformer",
    "draw",
    "has_side_effect",
    "immutable_collections",
    "map_nodes",
    "replace_pattern",
    "split_module",
    "subgraph_rewriter",
    "symbolic_trace",
    "trace",
    "wrap",
]
