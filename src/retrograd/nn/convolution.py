"""Convolutions and their transposes, of images with one to three spatial dimensions.

Weights and biases start uniform within ±1 / sqrt(n), where n is the number of terms in each output (of a transpose: the
number of elements in one slice of `weight` along its first dimension).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.settings import empty_parameter
from retrograd.ops.conv import check_images, per_dim

Sizes = int | Sequence[int]
MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base of convolutions and their transposes: settings, a weight and a bias; PyTorch's, for subclasses."""

    dims: int  # of a subclass without it, as many as its kernel has sizes
    bias: Any
    padding: Any
    transposed = False
    padding_mode = "zeros"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: str | Sizes,
        dilation: Sizes,
        transposed: bool,
        output_padding: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if padding_mode not in MODES:
            raise ValueError(f"{name}: padding_mode must be {', '.join(MODES)}, got {padding_mode!r}")
        if not hasattr(self, "dims"):
            self.dims = 1 if isinstance(kernel_size, int) else len(kernel_size)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.transposed, self.padding_mode = transposed, padding_mode
        self._check_channels()
        self.kernel_size = per_dim(name, "kernel_size", kernel_size, self.dims, 1)
        self.stride = per_dim(name, "stride", stride, self.dims, 1)
        self.dilation = per_dim(name, "dilation", dilation, self.dims, 1)
        self.output_padding = per_dim(name, "output_padding", output_padding, self.dims, 0)
        self.padding = self._check_padding(padding)
        self._reversed_padding_repeated_twice = self._padding_of_sides()
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = empty_parameter(True, (first, second // groups, *self.kernel_size), device, dtype)
        self.register_parameter("bias", empty_parameter(bias, (out_channels,), device, dtype))
        self.reset_parameters()

    def _check_channels(self) -> None:
        channels = {"in_channels": self.in_channels, "out_channels": self.out_channels}
        if self.groups < 1:
            raise ValueError(f"{type(self).__name__}: groups must be at least 1, got {self.groups}")
        for what, number in channels.items():
            if number < 0 or number % self.groups:
                raise ValueError(
                    f"{type(self).__name__}: {what}={number} does not divide into groups={self.groups}; {what} must be "
                    "divisible by groups"
                )

    def _check_padding(self, padding: Any) -> Any:
        if not isinstance(padding, str):
            return per_dim(type(self).__name__, "padding", padding, self.dims, 0)
        if padding not in ("same", "valid"):
            raise ValueError(
                f"{type(self).__name__}: Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}: "
                f"padding must be 'same', 'valid' or integers, got {padding!r}"
            )
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ValueError(
                f"{type(self).__name__}: padding='same' needs stride 1, got {self.stride}; padding='same' is not "
                "supported for strided convolutions"
            )
        return padding

    def _padding_of_sides(self) -> list[int]:
        """Return the padding on each side, in the order of `F.pad`: from the last dimension on."""
        if self.padding == "valid":
            return [0] * (2 * self.dims)
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [side for t in reversed(totals) for side in (t // 2, t - t // 2)]
        return [p for p in reversed(self.padding) for _ in range(2)]

    def reset_parameters(self) -> None:
        """Reinitialize the parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        count = math.prod(self.weight.shape[1:])
        if self.bias is not None and count:
            init.uniform_(self.bias, -1 / math.sqrt(count), 1 / math.sqrt(count))

    def extra_repr(self) -> str:
        """Return channels, kernel size, and the settings that differ from the defaults."""
        defaults = {
            "padding": (0,) * self.dims,
            "dilation": (1,) * self.dims,
            "output_padding": (0,) * self.dims,
            "groups": 1,
            "padding_mode": "zeros",
        }
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += [f"{n}={getattr(self, n)}" for n, value in defaults.items() if getattr(self, n, value) != value]
        if self.bias is None:
            parts.insert(-1 if self.padding_mode != "zeros" else len(parts), "bias=False")
        return ", ".join(parts)


class _Conv(_ConvNd):
    """Base of convolutions; padding with other values than zeros is a separate operation."""

    convolve: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: str | Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = (kernel_size, stride, padding, dilation)
        super().__init__(in_channels, out_channels, *sizes, False, 0, groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Map images (n, in_channels, ...) or (in_channels, ...) to images with out_channels."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with another weight and bias: PyTorch's private name, which subclasses call."""
        padding = self.padding
        if self.padding_mode != "zeros":
            check_images(type(self).__name__, input, self.dims)
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return type(self).convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """Base of transposed convolutions: the transpose of a convolution from out_channels to in_channels."""

    convolve: Callable[..., Tensor]

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}: padding_mode must be 'zeros', got {padding_mode!r}")
        sizes = (kernel_size, stride, padding, dilation)
        super().__init__(
            in_channels, out_channels, *sizes, True, output_padding, groups, bias, padding_mode, device, dtype
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Sequence[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """Return the output padding that gives images of that size: PyTorch's private name, which libraries call."""
        if output_size is None:
            return self.output_padding
        requested = tuple(output_size)[-num_spatial_dims:]
        settings = zip(kernel_size, stride, padding, dilation or (1,) * num_spatial_dims, strict=True)
        smallest = tuple(
            (size - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1
            for size, (kernel, stride, pad, dilation) in zip(input.shape[-num_spatial_dims:], settings, strict=True)
        )
        missing = tuple(size - start for size, start in zip(requested, smallest, strict=False))
        if len(output_size) not in (num_spatial_dims, input.ndim) or not all(
            0 <= m < step for m, step in zip(missing, stride, strict=True)
        ):
            largest = tuple(start + step - 1 for start, step in zip(smallest, stride, strict=True))
            raise ValueError(
                f"{type(self).__name__}: output_size must have {num_spatial_dims} sizes from {smallest} to {largest}, "
                f"got {tuple(output_size)}"
            )
        return missing

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Map images (n, in_channels, ...) or (in_channels, ...) to images with out_channels.

        If the stride is more than 1, several output sizes are valid; `output_size` selects one.
        """
        check_images(type(self).__name__, input, self.dims)
        sizes = (self.stride, self.padding, self.kernel_size, self.dims, self.dilation)
        extra = self._output_padding(input, output_size, *sizes)
        return type(self).convolve(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class Conv1d(_Conv):
    """Return the sums of windows of images (n, in_channels, l), weighted by `weight`, plus `bias`.

    `weight` (out_channels, in_channels / groups, k), `bias` (out_channels). Both ends are padded by `padding` elements:
    zeros, or by `padding_mode` "reflect", "replicate" or "circular"; "same" keeps the size, "valid" pads nothing. The
    size of the result is (l + 2 padding - dilation (k - 1) - 1) // stride + 1. Images may be unbatched (no n), or
    nested tensors (n, in_channels, j).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Conv1d(2, 4, 3, stride=2, padding=1)(rg.ones(5, 2, 8)).shape
    (5, 4, 4)
    >>> nn.Conv1d(2, 4, 3, groups=2, padding="same", bias=False)
    Conv1d(2, 4, kernel_size=(3,), stride=(1,), padding=same, groups=2, bias=False)
    """

    dims = 1
    convolve = F.conv1d


class Conv2d(_Conv):
    """`Conv1d` of images (n, in_channels, h, w); each size is one integer or two, one per dimension.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Conv2d(3, 8, (3, 5), padding=(1, 2))(rg.ones(2, 3, 4, 6)).shape
    (2, 8, 4, 6)
    """

    dims = 2
    convolve = F.conv2d


class Conv3d(_Conv):
    """`Conv1d` of images (n, in_channels, d, h, w); each size is one integer or three, one per dimension.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Conv3d(1, 2, 3)(rg.ones(1, 1, 4, 5, 6)).shape
    (1, 2, 2, 3, 4)
    """

    dims = 3
    convolve = F.conv3d


class ConvTranspose1d(_ConvTransposeNd):
    """Apply the gradient of `Conv1d` with the same settings: map images (n, in_channels, l) to larger ones.

    `weight` (in_channels, out_channels / groups, k), `bias` (out_channels). The size of the result is
    (l - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1. Zeiler et al., CVPR 2010.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.ConvTranspose1d(4, 2, 3, stride=2, padding=1)
    >>> layer(rg.ones(5, 4, 4)).shape, layer(rg.ones(5, 4, 4), output_size=[8]).shape
    ((5, 2, 7), (5, 2, 8))
    """

    dims = 1
    convolve = F.conv_transpose1d


class ConvTranspose2d(_ConvTransposeNd):
    """`ConvTranspose1d` of images (n, in_channels, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ConvTranspose2d(8, 3, 2, stride=2)(rg.ones(2, 8, 4, 6)).shape
    (2, 3, 8, 12)
    """

    dims = 2
    convolve = F.conv_transpose2d


class ConvTranspose3d(_ConvTransposeNd):
    """`ConvTranspose1d` of images (n, in_channels, d, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ConvTranspose3d(2, 1, 3)(rg.ones(1, 2, 2, 3, 4)).shape
    (1, 1, 4, 5, 6)
    """

    dims = 3
    convolve = F.conv_transpose3d
