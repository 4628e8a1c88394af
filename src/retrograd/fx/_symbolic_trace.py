"""The names of `torch.fx._symbolic_trace`, for code that imports them from there."""

from retrograd.fx.concrete_arguments import PH, PHBase, PHWithMeta
from retrograd.fx.symbolic_tracer import Tracer, is_fx_tracing, symbolic_trace
from retrograd.fx.wrapped_functions import ProxyableClassMeta, wrap

__all__ = ["PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]
