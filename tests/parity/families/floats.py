"""PyTorch's calls and known differences of rounding, signs, scaled sums, comparison within tolerances."""

import torch

CALLS = {
    "isclose": lambda a, b, rtol, atol, equal_nan: torch.isclose(
        a, torch.as_tensor(b, dtype=a.dtype), rtol, atol, equal_nan
    ),
}
KNOWN = {
    ("copysign", "special"): "PyTorch divides by the operand in the derivative, which is NaN where it is infinite",
    ("copysign", "poisoned"): "the same",
    ("lerp", "poisoned"): "for a weight of -inf, the limit, where PyTorch subtracts infinities",
    ("fmod", "special"): "PyTorch divides first, which overflows for the smallest divisors; the remainder does not",
    ("ldexp", "gradient"): "PyTorch takes 0 for 2 to a negative integer power in the derivative",
}
NO_GRADIENT = {"heaviside": ("x", "values")}
