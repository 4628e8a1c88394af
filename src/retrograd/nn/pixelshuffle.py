"""Rearrange channels into pixels and back, and shuffle channels."""

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.settings import Settings, layer


@layer
class PixelShuffle(Settings):
    """Rearrange channels into pixels: (..., c · r², h, w) to (..., c, h · r, w · r), where r is `upscale_factor`.

    Shi et al., arXiv 1609.05158.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.PixelShuffle(2)(rg.ones(1, 8, 3, 4)).shape
    (1, 2, 6, 8)
    """

    upscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        """Fewer channels, larger images."""
        return F.pixel_shuffle(input, self.upscale_factor)


@layer
class PixelUnshuffle(Settings):
    """The inverse of `PixelShuffle`: (..., c, h · r, w · r) to (..., c · r², h, w), where r is `downscale_factor`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.PixelUnshuffle(2)(rg.ones(1, 2, 6, 8)).shape
    (1, 8, 3, 4)
    """

    downscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        """More channels, smaller images."""
        return F.pixel_unshuffle(input, self.downscale_factor)


@layer
class ChannelShuffle(Settings):
    """Interleave the `groups` equal groups of channels of (n, channels, ...): all first channels, all second, ...

    Zhang et al., arXiv 1707.01083.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ChannelShuffle(2)(rg.arange(4).reshape(1, 4, 1)).flatten()
    tensor([0, 2, 1, 3])
    """

    groups: int

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.channel_shuffle(input, self.groups)
