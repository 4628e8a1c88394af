"""Upsampling layers."""

from collections.abc import Sequence

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.constructor_fields import field
from retrograd.nn.settings import Settings, layer

Size = int | Sequence[int]
Factor = float | Sequence[float]


@layer
class Upsample(Settings):
    """Resize images (n, channels, l), (n, channels, h, w) or (n, channels, d, h, w).

    Give either the output's `size` or the `scale_factor`: one number for all spatial dimensions or one per dimension.
    `mode`: "nearest", "linear" (1 dimension), "bilinear" and "bicubic" (2), "trilinear" (3); `align_corners` aligns the
    centres of the corner elements, not their outer edges.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Upsample(scale_factor=2)(rg.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    size: Size | None = None
    scale_factor: Factor | None = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def __post_init__(self) -> None:
        """Store factors as floats, as PyTorch does."""
        self.name = type(self).__name__
        factor = self.scale_factor
        if factor is not None:
            self.scale_factor = tuple(map(float, factor)) if isinstance(factor, Sequence) else float(factor)

    def forward(self, input: Tensor) -> Tensor:
        """Map images to images of the new size."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )


@layer
class UpsamplingNearest2d(Upsample):
    """`Upsample` with mode "nearest" of images (n, channels, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.UpsamplingNearest2d(size=(2, 3))(rg.ones(1, 1, 1, 1)).shape
    (1, 1, 2, 3)
    """

    mode: str = field(default="nearest", init=False)
    align_corners: bool | None = field(default=None, init=False)
    recompute_scale_factor: bool | None = field(default=None, init=False)


@layer
class UpsamplingBilinear2d(Upsample):
    """`Upsample` with mode "bilinear" and aligned corners of images (n, channels, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.UpsamplingBilinear2d(size=(1, 3))(rg.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    mode: str = field(default="bilinear", init=False)
    align_corners: bool | None = field(default=True, init=False)
    recompute_scale_factor: bool | None = field(default=None, init=False)
