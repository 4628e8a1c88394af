"""Padding of images (n, channels, l), (n, channels, h, w) or (n, channels, d, h, w); n may be absent.

`padding` is one integer for all sides, or two for each dimension beginning with the last: (left, right, top, bottom,
front, back). Negative integers crop.
"""

from collections.abc import Sequence

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.settings import Settings


class _Pad(Settings):
    """Padding of the last `dims` dimensions, by `mode`."""

    _repr_template = "{padding}"
    dims: int
    mode = "constant"
    value: float | None = None

    def __init__(self, padding: int | Sequence[int]) -> None:
        sides = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)
        if len(sides) != 2 * self.dims:
            raise ValueError(f"{type(self).__name__}: padding must be one or {2 * self.dims} integers, got {padding}")
        super().__init__(padding=sides)

    def forward(self, input: Tensor) -> Tensor:
        """Map images to larger ones."""
        return F.pad(input, self.padding, mode=self.mode, value=self.value)


class _ConstantPadNd(_Pad):
    _repr_template = "padding={padding}, value={value}"

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


class ConstantPad1d(_ConstantPadNd):
    """Images (n, channels, l), padded with `value`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ConstantPad1d((1, 2), 5.0)(rg.ones(1, 1))
    tensor([[5., 1., 5., 5.]])
    """

    dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Images (n, channels, h, w), padded with `value`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ConstantPad2d((1, 0, 0, 0), 5.0)(rg.ones(1, 1, 1))
    tensor([[[5., 1.]]])
    """

    dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Images (n, channels, d, h, w), padded with `value`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ConstantPad3d(1, 5.0)(rg.ones(1, 1, 2, 3)).shape
    (1, 3, 4, 5)
    """

    dims = 3


class _ZeroPad(_ConstantPadNd):
    _repr_template = "{padding}"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Images (n, channels, l), padded with zeros.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ZeroPad1d(1)(rg.ones(1, 2))
    tensor([[0., 1., 1., 0.]])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Images (n, channels, h, w), padded with zeros.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ZeroPad2d((1, 0, 0, 0))(rg.ones(1, 1, 2))
    tensor([[[0., 1., 1.]]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Images (n, channels, d, h, w), padded with zeros.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ZeroPad3d(1)(rg.ones(1, 1, 2, 3)).shape
    (1, 3, 4, 5)
    """


class _ReflectionPadNd(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Images (n, channels, l), padded by mirroring at the border elements.

    Each side must be smaller than the image.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ReflectionPad1d(2)(rg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Images (n, channels, h, w), padded by mirroring at the border elements.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ReflectionPad2d((2, 0, 0, 0))(rg.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[3., 2., 1., 2., 3.]]])
    """

    dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Images (n, channels, d, h, w), padded by mirroring at the border elements.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ReflectionPad3d(1)(rg.ones(1, 2, 3, 4)).shape
    (1, 4, 5, 6)
    """

    dims = 3


class _ReplicationPadNd(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Images (n, channels, l), padded by repeating the border elements.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ReplicationPad1d(2)(rg.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 1., 2., 2., 2.]])
    """

    dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Images (n, channels, h, w), padded by repeating the border elements.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ReplicationPad2d((2, 0, 0, 0))(rg.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 1., 2.]]])
    """

    dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Images (n, channels, d, h, w), padded by repeating the border elements.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ReplicationPad3d(1)(rg.ones(1, 2, 3, 4)).shape
    (1, 4, 5, 6)
    """

    dims = 3


class _CircularPadNd(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Map images to larger ones."""
        if input.ndim not in (self.dims + 1, self.dims + 2):
            wanted = f"{self.dims + 1}D or {self.dims + 2}D"
            raise ValueError(
                f"{type(self).__name__}: expected {wanted} input (got {input.ndim}D input), of shape {input.shape}"
            )
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Images (n, channels, l), padded as if opposite ends met.

    No side may be larger than the image.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.CircularPad1d(1)(rg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    dims = 1


class CircularPad2d(_CircularPadNd):
    """Images (n, channels, h, w), padded as if opposite ends met.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.CircularPad2d((2, 0, 0, 0))(rg.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[2., 3., 1., 2., 3.]]])
    """

    dims = 2


class CircularPad3d(_CircularPadNd):
    """Images (n, channels, d, h, w), padded as if opposite ends met.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.CircularPad3d(1)(rg.ones(1, 2, 3, 4)).shape
    (1, 4, 5, 6)
    """

    dims = 3
