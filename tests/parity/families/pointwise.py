"""PyTorch's calls and known differences of arithmetic, elementwise functions, selection and conversion."""

import torch


def _clamp(x, low, high):
    """Call clamp; PyTorch takes two numbers or two tensors."""
    bounds = [None if b is None else torch.as_tensor(b, dtype=x.dtype) for b in (low, high)]
    return torch.clamp(x, *bounds)


def _to(x, dtype):
    """Call to; PyTorch warns where it drops imaginary parts."""
    return (x.real if x.is_complex() and not dtype.is_complex else x).to(dtype)


CALLS = {"clamp": _clamp, "to": _to}

_NAN_SIGN = "NaN has no sign: as in NumPy the answer is NaN, where PyTorch says 0"
KNOWN = {
    ("abs", "special"): _NAN_SIGN,
    ("sign", "special"): _NAN_SIGN,
    ("gelu", "special"): "PyTorch's vectorized float32 kernel makes NaN of inf",
    (
        "pow",
        "special",
    ): "PyTorch takes 1 / sqrt for the power -0.5, which has another sign at -0.0 and no value at -inf",
    (
        "remainder",
        "special",
    ): "PyTorch divides first, which overflows for the smallest divisors; the remainder does not",
}

# PyTorch has no derivative, and refuses backward.
NO_GRADIENT = {"floor_divide": ("a", "b")}
