"""PyTorch's calls and known differences of the gamma functions."""

import torch

CALLS = {
    "igamma": lambda a, x: torch.igamma(torch.as_tensor(a, dtype=x.dtype), x),
    "igammac": lambda a, x: torch.igammac(torch.as_tensor(a, dtype=x.dtype), x),
}
# PyTorch has no derivative by the first argument: tests/ops/test_special.py compares ours with differences.
NO_GRADIENT = {"igamma": ("a",), "igammac": ("a",), "special.zeta": ("x",)}
_TRIGAMMA = "PyTorch's trigamma is exact to 9 digits only, in double precision too"
_ZETA = "PyTorch's zeta function is NaN for an infinite q, where it is 0"
KNOWN = {
    ("lgamma", "second order"): _TRIGAMMA,
    ("mvlgamma", "second order"): _TRIGAMMA,
    ("digamma", "gradient"): _TRIGAMMA,
    ("polygamma", "values"): _TRIGAMMA,
    ("polygamma", "gradient"): _TRIGAMMA,
    ("igamma", "special"): "PyTorch's value at NaN is 0 or 1, and its derivative for a = 1 is NaN at 0",
    ("igammac", "special"): "PyTorch's value at NaN is 0 or 1, and its derivative for a = 1 is NaN at 0",
    ("digamma", "special"): "PyTorch's trigamma is some large number at the negative integers, where it is infinite",
    ("digamma", "poisoned"): _TRIGAMMA,
    ("digamma", "equal"): _TRIGAMMA,
    ("polygamma", "special"): "the same, and PyTorch's zeta function is NaN at inf, where it is 0",
    ("polygamma", "poisoned"): _ZETA,
    ("polygamma", "equal"): _TRIGAMMA,
    ("special.zeta", "special"): _ZETA,
    ("special.zeta", "poisoned"): _ZETA,
}
