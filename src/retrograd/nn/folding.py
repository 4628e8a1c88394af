"""Convert between images and columns of the windows under a kernel."""

from collections.abc import Sequence

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.settings import Settings, layer

Sizes = int | Sequence[int]


@layer
class Unfold(Settings):
    """Map images (n, channels, h, w) to columns (n, channels · kernel height · width, windows), one per window.

    Each size is one integer for both dimensions or two, one per dimension; images may be unbatched (no n).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Unfold(2)(rg.ones(1, 3, 4, 5)).shape
    (1, 12, 12)
    """

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1

    def forward(self, input: Tensor) -> Tensor:
        """Map images to columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


@layer
class Fold(Settings):
    """The transpose of `Unfold`: columns to images of `output_size`; overlapping elements are summed.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Fold((2, 3), 2)(rg.ones(1, 4, 2)).tolist()
    [[[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]]]
    """

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1

    def forward(self, input: Tensor) -> Tensor:
        """Map columns to images."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
