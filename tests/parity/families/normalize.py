"""PyTorch's calls and known differences of normalisation."""

from torch.nn.functional import batch_norm, instance_norm

CALLS = {
    # of these all but x are required, or have other names as torch.batch_norm
    "batch_norm": batch_norm,
    "instance_norm": instance_norm,
}
# PyTorch refuses to differentiate by the running mean and variance.
NO_GRADIENT = {
    "batch_norm": ("running_mean", "running_var"),
    "instance_norm": ("running_mean", "running_var"),
}
