"""PyTorch's calls and known differences of reductions."""

import torch

from .basics import _spread

CALLS = {"var_mean": _spread(torch.var_mean), "std_mean": _spread(torch.std_mean)}

KNOWN = {
    ("prod", "poisoned"): "ours multiplies the other factors, PyTorch divides the product: NaN wherever that is NaN",
}
