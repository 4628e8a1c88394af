"""The profiler: time of operators in the forward pass, of nodes in the backward pass, and of named ranges."""

from retrograd.autograd.profiler.recorder import BoundedProfile, profile, record_function
from retrograd.autograd.profiler.report import EventList, FunctionEvent, FunctionEventAvg

__all__ = ["BoundedProfile", "EventList", "FunctionEvent", "FunctionEventAvg", "profile", "record_function"]
