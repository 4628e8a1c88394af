"""Resizing and sampling."""

import warnings

from torch.nn import functional


def quiet(function):
    """PyTorch's function without the warning that the name is old."""

    def call(*args):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)

    return call


CALLS = {name: quiet(getattr(functional, name)) for name in ("upsample", "upsample_bilinear", "upsample_nearest")}
