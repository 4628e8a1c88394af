"""PyTorch's calls and known differences of arithmetic, reductions, views, products and losses."""

import torch


# Operators whose PyTorch counterpart is called in another way: (torch's inputs, params) -> result.
def _spread(function):
    """Call `var` and `std`, whose PyTorch signatures do not take `unbiased` and `correction` together."""

    def call(x, dim, unbiased, keepdim, correction):
        if isinstance(dim, bool):
            return function(x, dim)
        return function(x, dim, correction=correction if unbiased is None else int(unbiased), keepdim=keepdim)

    return call


def _prod(x, dim, keepdim, dtype):
    """Multiply along one dimension at a time, as PyTorch requires."""
    for d in range(x.ndim) if dim is None else sorted({d % x.ndim for d in dim}):
        x = x.prod(d, keepdim=True, dtype=dtype)
    return x if keepdim else x.squeeze(dim) if dim is not None else x.reshape(())


CALLS = {
    "broadcast_tensors": lambda tensors: torch.broadcast_tensors(*tensors),
    "logsumexp": lambda x, dim, keepdim: torch.logsumexp(x, tuple(range(x.ndim)) if dim is None else dim, keepdim),
    "prod": _prod,
    "roll": torch.roll,
    "std": _spread(torch.std),
    "var": _spread(torch.var),
}

# PyTorch's counterpart differs in purpose, or is random.
NO_COUNTERPART = {
    "bernoulli": "random",
}

# Inputs that only ours differentiates by.
NO_GRADIENT = {
    "binary_cross_entropy": ("weight",),
    "binary_cross_entropy_with_logits": ("weight", "pos_weight"),
    "cross_entropy": ("weight",),
    "linear_cross_entropy": ("weight",),
    "nll_loss": ("weight",),
}
