"""PyTorch's calls and known differences of integer operators."""

import torch

CALLS = {
    "gcd": lambda a, b: torch.gcd(a, torch.as_tensor(b)),
    "lcm": lambda a, b: torch.lcm(a, torch.as_tensor(b)),
}
