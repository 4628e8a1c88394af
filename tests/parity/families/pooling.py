"""PyTorch's calls and known differences of pooling."""

from torch.nn import functional


def plain(value):
    """Return a number for one-tuples, which PyTorch refuses here."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def lp_pool(function, ndim):
    """Call lp_pool; PyTorch requires an integer for each dimension, or an integer."""

    def call(x, norm_type, kernel_size, stride, ceil_mode):
        kernel = plain(kernel_size)
        kernel = (kernel,) * ndim if ndim > 1 and isinstance(kernel, int) else kernel
        return function(x, norm_type, kernel, plain(stride), ceil_mode)

    return call


CALLS = {
    "lp_pool1d": lp_pool(functional.lp_pool1d, 1),
    "lp_pool2d": lp_pool(functional.lp_pool2d, 2),
    "lp_pool3d": lp_pool(functional.lp_pool3d, 3),
}
