"""Pooling: reduces each window of an image to one element.

Images have shape (n, channels, l), (n, channels, h, w) or (n, channels, d, h, w), or omit n. Each size is one integer
for all spatial dimensions or one per dimension; the stride defaults to the kernel size. A dimension of size l becomes
(l + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1, rounded up with `ceil_mode`.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.constructor_fields import field
from retrograd.nn.settings import Settings, buffer, layer

Sizes = int | Sequence[int]


class _Pool(Settings):
    """Base of pooling layers: an operator with settings by name."""

    pool: ClassVar[Callable[..., Any]]
    ndim: ClassVar[int]

    def forward(self, input: Tensor) -> Any:
        """Map images to smaller images."""
        return type(self).pool(input, **{name: getattr(self, name) for name in self._settings})


@layer
class _WindowPool(_Pool):
    """Base of pooling whose first arguments are the windows; the stride defaults to the window's size."""

    kernel_size: Sizes
    stride: Sizes | None = None

    def __post_init__(self) -> None:
        """Use the window's size as the stride if there is none."""
        self.stride = self.kernel_size if self.stride is None else self.stride


def _store_per_dim(layer: Any, ndim: int, *names: str) -> None:
    """Store sizes of one integer as tuples of one for each dimension."""
    for name in names:
        size = getattr(layer, name)
        setattr(layer, name, (size,) * ndim if isinstance(size, int) else size)


# --------------------------------------------------------------------------------------------------- maximum


@layer
class _MaxPoolNd(_WindowPool):
    _repr_template = (
        "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"
    )
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False


@layer
class _MaxUnpoolNd(Settings):
    pool: ClassVar[Callable[..., Tensor]]
    ndim: ClassVar[int]
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0

    def __post_init__(self) -> None:
        """Use the window's size as the stride if there is none; store a size for each dimension, as PyTorch does."""
        self.stride = self.kernel_size if self.stride is None else self.stride
        _store_per_dim(self, self.ndim, "kernel_size", "stride", "padding")

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return larger images from the values and indices of a pool."""
        return type(self).pool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window of images (n, channels, l).

    Padding counts as -inf. `return_indices` also returns the flat index of each within its channel, for `MaxUnpool1d`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MaxPool1d(2)(rg.ones(1, 1, 5)).shape
    (1, 1, 2)
    """

    pool = F.max_pool1d


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of images (n, channels, h, w); see `MaxPool1d`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MaxPool2d(2)(rg.ones(1, 1, 5, 6)).shape
    (1, 1, 2, 3)
    """

    pool = F.max_pool2d


class MaxPool3d(_MaxPoolNd):
    """The largest element of each window of images (n, channels, d, h, w); see `MaxPool1d`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MaxPool3d(2)(rg.ones(1, 1, 5, 6, 7)).shape
    (1, 1, 2, 3, 3)
    """

    pool = F.max_pool3d


class MaxUnpool1d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool1d`: the elements at their indices, zeros elsewhere.

    Several sizes can pool to the same size; `output_size` selects one. Zeiler et al., ICCV 2011.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> x = rg.tensor([[[1.0, 4.0, 3.0, 2.0]]])
    >>> nn.MaxUnpool1d(2)(*nn.MaxPool1d(2, return_indices=True)(x))
    tensor([[[0., 4., 3., 0.]]])
    """

    pool = F.max_unpool1d
    ndim = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool2d`; see `MaxUnpool1d`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> x = rg.ones(1, 1, 4, 4)
    >>> nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(x)).sum()
    tensor(4.)
    """

    pool = F.max_unpool2d
    ndim = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool3d`; see `MaxUnpool1d`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> x = rg.ones(1, 1, 4, 4, 4)
    >>> nn.MaxUnpool3d(2)(*nn.MaxPool3d(2, return_indices=True)(x)).sum()
    tensor(8.)
    """

    pool = F.max_unpool3d
    ndim = 3


@layer
class _AdaptiveMaxPoolNd(_Pool):
    _repr_template = "output_size={output_size}"
    output_size: Any
    return_indices: bool = False


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest element of each of `output_size` equal parts of images (n, channels, l).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AdaptiveMaxPool1d(2)(rg.ones(1, 1, 5)).shape
    (1, 1, 2)
    """

    pool = F.adaptive_max_pool1d


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """`AdaptiveMaxPool1d` of images (n, channels, h, w); None as a size keeps that of the input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AdaptiveMaxPool2d((2, None))(rg.ones(1, 1, 5, 6)).shape
    (1, 1, 2, 6)
    """

    pool = F.adaptive_max_pool2d


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """`AdaptiveMaxPool1d` of images (n, channels, d, h, w); None as a size keeps that of the input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AdaptiveMaxPool3d((2, None, 1))(rg.ones(1, 1, 5, 6, 7)).shape
    (1, 1, 2, 6, 1)
    """

    pool = F.adaptive_max_pool3d


@layer
class _FractionalMaxPool(_Pool):
    _repr_template = ""
    kernel_size: Sizes
    output_size: Sizes | None = None
    output_ratio: float | Sequence[float] | None = None
    return_indices: bool = False
    _random_samples: Any = buffer(default=None)

    def __post_init__(self) -> None:
        """Check that there is one of the output's sizes."""
        name, size, ratio = type(self).__name__, self.output_size, self.output_ratio
        if (size is None) == (ratio is None):
            raise ValueError(f"{name}: expected either an output_size or an output_ratio, got {size} and {ratio}")
        ratios = (ratio,) if isinstance(ratio, (int, float)) else ratio or ()
        if not all(0 < one < 1 for one in ratios):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1, got {ratio}")
        _store_per_dim(self, self.ndim, "kernel_size", "output_size")

    def forward(self, input: Tensor) -> Any:
        """Map images to smaller images."""
        settings = {name: getattr(self, name) for name in self._settings}
        return type(self).pool(input, _random_samples=self._random_samples, **settings)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of each of several randomly spaced windows of images (n, channels, h, w).

    `output_size` is the number of windows, or `output_ratio`, between 0 and 1, its ratio to the input's size: B.
    Graham, arXiv 1412.6071. `_random_samples` (n, channels, 2) replaces the random numbers.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.FractionalMaxPool2d(2, output_size=3)(rg.ones(1, 1, 5, 6)).shape
    (1, 1, 3, 3)
    """

    pool = F.fractional_max_pool2d
    ndim = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """`FractionalMaxPool2d` of images (n, channels, d, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.FractionalMaxPool3d(2, output_ratio=0.5)(rg.ones(1, 1, 4, 5, 6)).shape
    (1, 1, 2, 2, 3)
    """

    pool = F.fractional_max_pool3d
    ndim = 3


# ------------------------------------------------------------------------------------------------------ mean


@layer
class _AvgPoolNd(_WindowPool):
    """Base of means of windows."""

    _repr_template = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of images (n, channels, l).

    Padding counts as zeros; without `count_include_pad` it is excluded from the mean.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AvgPool1d(2)(rg.tensor([[1.0, 3.0, 5.0, 9.0]]))
    tensor([[2., 7.]])
    """

    pool = F.avg_pool1d

    def __post_init__(self) -> None:
        """Store the sizes as tuples of one integer, as PyTorch does in this class alone."""
        super().__post_init__()
        _store_per_dim(self, 1, "kernel_size", "stride", "padding")


@layer
class _DivisorPool(_AvgPoolNd):
    divisor_override: int | None = None


class AvgPool2d(_DivisorPool):
    """`AvgPool1d` of images (n, channels, h, w); `divisor_override` replaces the window's size.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AvgPool2d(2)(rg.ones(1, 1, 5, 6)).shape
    (1, 1, 2, 3)
    """

    pool = F.avg_pool2d


class AvgPool3d(_DivisorPool):
    """`AvgPool1d` of images (n, channels, d, h, w); `divisor_override` replaces the window's size.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AvgPool3d(2)(rg.ones(1, 1, 5, 6, 7)).shape
    (1, 1, 2, 3, 3)
    """

    pool = F.avg_pool3d


@layer
class _AdaptiveAvgPoolNd(_Pool):
    output_size: Any


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean of each of `output_size` equal parts of images (n, channels, l).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AdaptiveAvgPool1d(2)(rg.ones(1, 1, 5)).shape
    (1, 1, 2)
    """

    pool = F.adaptive_avg_pool1d


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """`AdaptiveAvgPool1d` of images (n, channels, h, w); None as a size keeps that of the input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AdaptiveAvgPool2d((2, None))(rg.ones(1, 1, 5, 6)).shape
    (1, 1, 2, 6)
    """

    pool = F.adaptive_avg_pool2d


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """`AdaptiveAvgPool1d` of images (n, channels, d, h, w); None as a size keeps that of the input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AdaptiveAvgPool3d((2, None, 1))(rg.ones(1, 1, 5, 6, 7)).shape
    (1, 1, 2, 6, 1)
    """

    pool = F.adaptive_avg_pool3d


# ------------------------------------------------------------------------------------------------------ the norm


def _check_norm_type(name: str, value: float) -> None:
    if not value:
        raise ValueError(f"{name} must not be 0")


@layer
class _LPPoolNd(_Pool):
    _repr_template = "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}"
    norm_type: float = field(check=_check_norm_type)
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


class LPPool1d(_LPPoolNd):
    """The norm sum(x^p)^(1/p) of each window of images (n, channels, l), where p is `norm_type`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LPPool1d(2, 2)(rg.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """

    pool = F.lp_pool1d


class LPPool2d(_LPPoolNd):
    """`LPPool1d` of images (n, channels, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LPPool2d(2, 2)(rg.ones(1, 1, 5, 6)).shape
    (1, 1, 2, 3)
    """

    pool = F.lp_pool2d


class LPPool3d(_LPPoolNd):
    """`LPPool1d` of images (n, channels, d, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LPPool3d(2, 2)(rg.ones(1, 1, 5, 6, 7)).shape
    (1, 1, 2, 3, 3)
    """

    pool = F.lp_pool3d
