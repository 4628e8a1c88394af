"""The public API of automatic differentiation: `backward`, `grad`, and the related classes and modes."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from retrograd.autograd import grad_mode as grad_mode
from retrograd.autograd import graph as graph
from retrograd.autograd.backward import backward, grad
from retrograd.autograd.grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from retrograd.autograd.graph import GradientEdge, get_gradient_edge
from retrograd.autograd.saved_names import SavedTensor as SavedTensor
from retrograd.foundation.lazy_imports import lazy_names

if TYPE_CHECKING:  # imported on first use, as more names below
    from retrograd.autograd import function as function
    from retrograd.autograd.anomaly_mode import (
        detect_anomaly,
        is_anomaly_check_nan_enabled,
        is_anomaly_enabled,
        set_detect_anomaly,
    )
    from retrograd.autograd.explain import explain
    from retrograd.autograd.function import Function
    from retrograd.autograd.variable import Variable, _is_checkpoint_valid, variable

__all__ = [
    "Function",
    "GradcheckError",
    "GradientEdge",
    "NestedIOFunction",
    "Variable",
    "_force_original_view_tracking",
    "_is_checkpoint_valid",
    "_unsafe_preserve_version_counter",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "explain",
    "forward_ad",
    "function",
    "functional",
    "get_gradient_edge",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]


_FUNCTIONS = ("explain", "gradcheck", "variable")


class _Package(ModuleType):
    """The class of this package: the modules named in `_FUNCTIONS` are its attributes as the functions of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; Python itself sets that of a module in the package, after it has run it."""
        if name in _FUNCTIONS and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Function": "retrograd.autograd.function",
        "GradcheckError": "retrograd.autograd.gradcheck",
        "NestedIOFunction": "retrograd.autograd.function.nested_io",
        "Variable": "retrograd.autograd.variable",
        "_is_checkpoint_valid": "retrograd.autograd.variable",
        "anomaly_mode": "retrograd.autograd.anomaly_mode",
        "detect_anomaly": "retrograd.autograd.anomaly_mode",
        "explain": "retrograd.autograd.explain",
        "forward_ad": "retrograd.autograd.forward_ad",
        "function": "retrograd.autograd.function",
        "functional": "retrograd.autograd.functional",
        "gradcheck": "retrograd.autograd.gradcheck",
        "gradgradcheck": "retrograd.autograd.gradcheck",
        "is_anomaly_check_nan_enabled": "retrograd.autograd.anomaly_mode",
        "is_anomaly_enabled": "retrograd.autograd.anomaly_mode",
        "profiler": "retrograd.autograd.profiler",
        "set_detect_anomaly": "retrograd.autograd.anomaly_mode",
        "variable": "retrograd.autograd.variable",
    },
)
