"""PyTorch's calls and known differences of error functions, entropies and exponential integrals."""

KNOWN = {
    ("sinc", "special"): "PyTorch's derivative cancels near 0: at 1e-8 it has no digit right",
    ("special.log_ndtr", "special"): "PyTorch's derivative is NaN at -inf, where it grows to inf",
}
