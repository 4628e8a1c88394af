"""Lay out the weights of convolutions in a memory format."""

from typing import Any, TypeVar

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.convolution import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from retrograd.nn.module import Module
from retrograd.nn.parameter import apply_to_tensor, convert_format

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Lay out the weights of all `Conv2d` and `ConvTranspose2d` in a module in a memory format; return the module.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(3, 4, 2), rg.channels_last)
    >>> layer.weight.is_contiguous(memory_format=rg.channels_last)
    True
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Lay out the weights of all `Conv3d` and `ConvTranspose3d` in a module in a memory format; return the module."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


def _convert(module: M, memory_format: Any, kinds: tuple[type, ...]) -> M:
    for layer in module.modules():
        if isinstance(layer, kinds):
            apply_to_tensor(layer.weight, lambda weight: convert_format(weight, memory_format))
    return module


suggest_in_module(globals())
