"""PyTorch's calls and known differences of activations."""

import torch

CALLS = {
    # PyTorch's own cannot be differentiated twice, and takes 1 / 6 in single precision in its derivative.
    "hardsigmoid": lambda x: torch.nn.functional.relu6(x + 3) / 6,
}
NO_COUNTERPART = {"gumbel_softmax": "random"}
_NAN = "the derivative at NaN: PyTorch's depends on the dtype, and on whether the tensor fills vector registers"
KNOWN = dict.fromkeys(
    [
        ("celu", "special"),
        ("elu", "special"),
        ("selu", "special"),
        ("hardswish", "special"),
        ("hardshrink", "poisoned"),
        ("hardtanh", "poisoned"),
        ("softshrink", "poisoned"),
    ],
    _NAN,
)
