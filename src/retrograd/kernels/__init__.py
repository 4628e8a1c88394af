"""Kernels for computations that take NumPy many passes: C++ if compiled, else the reference implementations.

They take arrays of float32 or float64, all of one dtype.
"""

import os
import warnings
from types import ModuleType
from typing import Any

from retrograd.foundation.lazy_imports import lazy_module
from retrograd.kernels import allocator, processors

# The names of all kernels: of the compiled ones, and of the references.
KERNELS = (
    "add", "subtract", "multiply", "true_divide", "erf", "erfc", "erfinv", "hypot", "nextafter", "sign", "gelu",
    "gelu_grad", "gelu_tanh", "gelu_tanh_grad", "sigmoid", "sigmoid_grad", "silu", "silu_grad", "relu", "relu_grad",
    "tanh_grad", "softplus", "softplus_grad", "scale_negative", "between", "outside", "clip", "lerp", "hardshrink",
    "softshrink", "hardsigmoid", "hardswish", "hardswish_grad", "elu", "elu_grad", "squared_difference",
    "squared_difference_grad", "huber", "huber_grad", "fmod", "remainder", "floor_divide", "where", "float_to_half",
    "half_to_float", "float_to_bfloat16", "bfloat16_to_float", "masked", "uniform", "recurrent_layer",
    "recurrent_layer_grad", "lstm", "lstm_grad", "gru", "gru_grad", "are_disjoint", "read_flat", "write_flat",
    "row_major", "checksum", "descent", "momentum", "adam", "amsgrad", "standardize_rows", "affine_rows",
    "channel_moments", "channel_dots", "channel_sums", "channel_shift", "channel_mix", "softmax_rows",
    "softmax_grad_rows", "log_softmax_rows", "log_softmax_grad_rows", "softmax_columns", "softmax_grad_columns",
    "log_softmax_columns", "log_softmax_grad_columns", "cumsum_rows", "cumsum_columns", "cumprod_rows", "cummax_rows",
    "cummin_rows", "product_rows", "class_loss_rows", "class_grad_rows", "variance_rows", "norm_rows", "norm_grad_rows",
    "sum_windows", "conv_weight_sums", "window_sums", "window_sums_backward", "window_argmax", "window_maxima",
    "window_maxima_backward", "segment_sum", "segment_max", "segment_softmax", "segment_log_softmax", "column_sums",
    "sum_rows", "add_rows", "take_along", "sum_along", "attend", "attend_grad", "multiply_matrices", "small_matmul",
    "small_linear", "small_class_loss", "small_class_grad", "get_num_threads", "set_num_threads", "get_vector_bytes",
    "set_vector_bytes", "get_chunk_size", "set_grain_size", "empty", "address", "broadcast_to", "caching", "threaded",
    "sample_points", "sample_points_backward", "sample_slopes", "with_own_loops", "fused_group", "planned_calls",
    "flag_classes", "flag_zeros", "cached_bytes", "set_cache_limit",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return the module of the references, imported on first use: compiled kernels leave it few calls."""
    if name == "reference":
        return _reference()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _reference() -> ModuleType:
    return lazy_module("retrograd.kernels.reference")


def _best() -> tuple[str, ModuleType]:
    """Return the build's name, as shown by `show_config`, and the module with the kernels."""
    if os.environ.get("RETROGRAD_PURE", "") not in ("", "0"):
        return "pure", _reference()
    try:
        native = lazy_module("retrograd.kernels.native")
    except ImportError:  # there was no C++ compiler
        return "pure", _reference()
    missing = sorted(name for name in KERNELS if not hasattr(native, name))
    if not missing:
        return "compiled", native
    text = f"the compiled kernels are older than these sources, they lack {', '.join(missing)}: NumPy does their work"
    warnings.warn(f"retrograd: {text} until they are built again (make build, or pip install)", stacklevel=3)
    return "outdated", _reference()


build, chosen = _best()
compiled = build == "compiled"
globals().update({name: getattr(chosen, name) for name in KERNELS})
chosen.set_cache_limit(allocator.limit())
processors.limit_threads(chosen.set_num_threads)
chosen.set_vector_bytes(processors.vector_bytes_limit())
