"""Operators on integers."""

import torch

CALLS = {
    "gcd": lambda a, b: torch.gcd(a, torch.as_tensor(b)),
    "lcm": lambda a, b: torch.lcm(a, torch.as_tensor(b)),
}
