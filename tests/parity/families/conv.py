"""Convolutions."""

import warnings

import torch


def quiet(function):
    """PyTorch's function without its warnings."""

    def call(*args):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)

    return call


CALLS = {  # PyTorch warns that padding="same" is slow with even kernels
    "conv2d": quiet(torch.conv2d),
    "conv3d": quiet(torch.conv3d),
}
