"""Fractional max pooling: PyTorch does not differentiate with respect to its random samples."""

NO_GRADIENT = {
    "fractional_max_pool2d": ("_random_samples",),
    "fractional_max_pool3d": ("_random_samples",),
}
