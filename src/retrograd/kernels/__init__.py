"""Kernels for computations that take NumPy many passes: C++ if compiled, else the reference implementations.

They take arrays of float32 or float64, all of one dtype.
"""

import os
import warnings
from types import ModuleType

from retrograd.foundation.lazy_imports import lazy_module
from retrograd.kernels import allocator, processors, reference


def _best() -> tuple[str, ModuleType]:
    """Return the build's name, as shown by `show_config`, and the module with the kernels."""
    if os.environ.get("RETROGRAD_PURE", "") not in ("", "0"):
        return "pure", reference
    try:
        native = lazy_module("retrograd.kernels.native")
    except ImportError:  # there was no C++ compiler
        return "pure", reference
    wanted = (name for name, twin in vars(reference).items() if name[0] != "_" and not isinstance(twin, ModuleType))
    missing = sorted(name for name in wanted if not hasattr(native, name))
    if not missing:
        return "compiled", native
    text = f"the compiled kernels are older than these sources, they lack {', '.join(missing)}: NumPy does their work"
    warnings.warn(f"retrograd: {text} until they are built again (make build, or pip install)", stacklevel=3)
    return "outdated", reference


build, chosen = _best()
compiled = build == "compiled"

add, subtract, multiply, true_divide = chosen.add, chosen.subtract, chosen.multiply, chosen.true_divide
erf, gelu, gelu_grad = chosen.erf, chosen.gelu, chosen.gelu_grad
gelu_tanh, gelu_tanh_grad = chosen.gelu_tanh, chosen.gelu_tanh_grad
sigmoid, sigmoid_grad, silu, silu_grad = chosen.sigmoid, chosen.sigmoid_grad, chosen.silu, chosen.silu_grad
relu, relu_grad = chosen.relu, chosen.relu_grad
tanh_grad, softplus, softplus_grad = chosen.tanh_grad, chosen.softplus, chosen.softplus_grad
float_to_half, half_to_float = chosen.float_to_half, chosen.half_to_float
float_to_bfloat16, bfloat16_to_float = chosen.float_to_bfloat16, chosen.bfloat16_to_float
masked, uniform = chosen.masked, chosen.uniform
recurrent_layer, recurrent_layer_grad = chosen.recurrent_layer, chosen.recurrent_layer_grad
lstm, lstm_grad, gru, gru_grad = chosen.lstm, chosen.lstm_grad, chosen.gru, chosen.gru_grad
are_disjoint, read_flat, write_flat = chosen.are_disjoint, chosen.read_flat, chosen.write_flat
descent, momentum, adam, amsgrad = chosen.descent, chosen.momentum, chosen.adam, chosen.amsgrad
standardize_rows, affine_rows = chosen.standardize_rows, chosen.affine_rows
channel_moments, channel_dots, channel_sums = chosen.channel_moments, chosen.channel_dots, chosen.channel_sums
channel_shift, channel_mix = chosen.channel_shift, chosen.channel_mix
softmax_rows, softmax_grad_rows = chosen.softmax_rows, chosen.softmax_grad_rows
log_softmax_rows, log_softmax_grad_rows = chosen.log_softmax_rows, chosen.log_softmax_grad_rows
softmax_columns, softmax_grad_columns = chosen.softmax_columns, chosen.softmax_grad_columns
log_softmax_columns, log_softmax_grad_columns = chosen.log_softmax_columns, chosen.log_softmax_grad_columns
cumsum_rows, cumsum_columns = chosen.cumsum_rows, chosen.cumsum_columns
class_loss_rows, class_grad_rows = chosen.class_loss_rows, chosen.class_grad_rows
norm_rows, norm_grad_rows = chosen.norm_rows, chosen.norm_grad_rows
sum_windows, conv_weight_sums = chosen.sum_windows, chosen.conv_weight_sums
window_sums, window_sums_backward, window_argmax = chosen.window_sums, chosen.window_sums_backward, chosen.window_argmax
window_maxima, window_maxima_backward = chosen.window_maxima, chosen.window_maxima_backward
segment_sum, segment_max = chosen.segment_sum, chosen.segment_max
segment_softmax, segment_log_softmax = chosen.segment_softmax, chosen.segment_log_softmax
column_sums = chosen.column_sums
sum_rows, take_along, sum_along = chosen.sum_rows, chosen.take_along, chosen.sum_along
attend, attend_grad = chosen.attend, chosen.attend_grad
multiply_matrices = chosen.multiply_matrices
small_matmul, small_linear = chosen.small_matmul, chosen.small_linear
get_num_threads, set_num_threads = chosen.get_num_threads, chosen.set_num_threads
get_vector_bytes, set_vector_bytes = chosen.get_vector_bytes, chosen.set_vector_bytes
get_chunk_size, set_grain_size = chosen.get_chunk_size, chosen.set_grain_size
empty, caching = chosen.empty, chosen.caching
fused_group, planned_calls = chosen.fused_group, chosen.planned_calls
flag_classes, flag_zeros = chosen.flag_classes, chosen.flag_zeros
cached_bytes, set_cache_limit = chosen.cached_bytes, chosen.set_cache_limit
set_cache_limit(allocator.limit())
processors.limit_threads(set_num_threads)
set_vector_bytes(processors.vector_bytes_limit())
