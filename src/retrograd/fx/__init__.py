"""Programs as graphs of operators: traced from Python, changed, printed, and run again."""

from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.interpreter import Interpreter
from retrograd.fx.node import Node, map_nodes
from retrograd.fx.signature import Signature
from retrograd.fx.tracer import TraceLevel, trace

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Signature", "TraceLevel", "map_nodes", "trace"]
