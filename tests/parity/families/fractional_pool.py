"""Fractional max pooling, whose random numbers PyTorch differentiates nothing by."""

NO_GRADIENT = {
    "fractional_max_pool2d": ("_random_samples",),
    "fractional_max_pool3d": ("_random_samples",),
}
