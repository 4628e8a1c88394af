"""Max, average and Lp pooling over windows of images."""

import math
from typing import Annotated

from retrograd.core import Aval, Internal, Tensor, op, registry
from retrograd.core import dtype as dtypes
from retrograd.foundation.plain_cache import cache_plain
from retrograd.ops.batching import batch_all
from retrograd.ops.conv import check_images, per_dim
from retrograd.ops.create import as_tensor
from retrograd.ops.family import Composite, CoreDims, broadcast_dims, check_real, numel
from retrograd.ops.gather import take_along_dim
from retrograd.ops.interpolate import resample
from retrograd.ops.layout import arrange_like
from retrograd.ops.max_min import amax
from retrograd.ops.pointwise import abs, detach, isinf, logical_or, pow, where
from retrograd.ops.reduce import mean
from retrograd.ops.view import reshape

# ------------------------------------------------------------------------------------------------ the primitives

# `windows`: for each of the last dimensions (kernel, stride, before, dilation, size), where window i of `size`
# begins at i * stride - before; or (size,) for adaptive windows.


class Pooling(Internal, CoreDims, cores=(0,), memory="images"):
    """Base of operators on windows of the last dimensions."""

    @classmethod
    def dependence(cls, i, out, /, x, *others, windows, **params):
        """Each element depends on the elements of its window in the same image."""
        return broadcast_dims(x.ndim - len(windows), x.ndim - len(windows))


def _check_windows(name, x, windows):
    if x.ndim < len(windows) or any(n == 0 for n in x.shape[x.ndim - len(windows) :]):
        raise ValueError(f"{name}: images of shape {x.shape} have no elements along the last {len(windows)} dimensions")


def _pooled_shape(x, windows):
    return (*x.shape[: x.ndim - len(windows)], *(w[-1] for w in windows))


@op("pooled_sum(Tensor x, *, any windows) -> Tensor")
class pooled_sum(Pooling, linear="x", saves_input=True):
    """The sum over each window, with zero padding."""

    def impl(xp, x, *, windows):
        _check_windows("pooled_sum", x, windows)
        return xp.pooled_sum(x, windows)

    def shape(x, *, windows):
        _check_windows("pooled_sum", x, windows)
        return Aval(_pooled_shape(x, windows), x.dtype)

    def vjp_x(g, x_aval, windows):
        return pooled_sum_backward(g, windows=windows, sizes=x_aval.shape[x_aval.ndim - len(windows) :])

    oracle = "retrograd.testing.references.pooling.pooled_sum"

    def samples(r):
        yield (r(2, 4, 5),), {"windows": ((2, 2, 0, 1, 2), (3, 1, 1, 2, 3))}
        yield (r(4),), {"windows": ((3, 3, 1, 1, 2),)}


@op("pooled_sum_backward(Tensor x, *, any windows, int[] sizes) -> Tensor")
class pooled_sum_backward(Pooling, linear="x"):
    """The transpose of `pooled_sum`: each window's value is added to all its elements of images of `sizes`."""

    def impl(xp, x, *, windows, sizes):
        _check_pooled(x, windows)
        return xp.pooled_sum_backward(x, windows, sizes)

    def shape(x, *, windows, sizes):
        _check_pooled(x, windows)
        return Aval((*x.shape[: x.ndim - len(windows)], *sizes), x.dtype)

    def vjp_x(g, windows):
        return pooled_sum(g, windows=windows)

    oracle = "retrograd.testing.references.pooling.pooled_sum_backward"

    def samples(r):
        yield (r(2, 2, 3),), {"windows": ((2, 2, 0, 1, 2), (3, 1, 1, 2, 3)), "sizes": (4, 5)}


def _check_pooled(x, windows):
    if x.shape[max(x.ndim - len(windows), 0) :] != tuple(w[-1] for w in windows):
        raise ValueError(f"pooled_sum_backward: shape {x.shape} does not end with the numbers of windows")


@op("max_pool_indices(Tensor x, *, any windows) -> Tensor")
class max_pool_indices(Pooling, differentiable=False):
    """The index in each flattened image of the maximum of each window; the first of equals, the last NaN."""

    def impl(xp, x, *, windows):
        _check_comparable("max_pool_indices", x, windows)
        return xp.max_pool_indices(x, windows)

    def shape(x, *, windows):
        _check_comparable("max_pool_indices", x, windows)
        return Aval(_pooled_shape(x, windows), dtypes.int64)

    oracle = "retrograd.testing.references.pooling.max_pool_indices"

    def samples(r):
        yield (r(2, 4, 5),), {"windows": ((2, 2, 0, 1, 2), (3, 1, 1, 2, 3))}
        yield (r(2, 4, 5),), {"windows": ((3,), (2,))}


def _check_comparable(name, x, windows):
    _check_windows(name, x, windows)
    if dtypes.category(x.dtype) not in (1, 2):
        raise TypeError(f"{name}: expected real numbers, got {x.dtype}")


@op("pooled_max(Tensor x, *, any windows) -> Tensor")
class pooled_max(Pooling):
    """The maximum of each window; the gradient goes to the first of equals.  NaN wins."""

    def impl(xp, x, *, windows):
        _check_comparable("pooled_max", x, windows)
        return xp.pooled_max(x, windows)

    def shape(x, *, windows):
        _check_comparable("pooled_max", x, windows)
        return Aval(_pooled_shape(x, windows), x.dtype)

    def vjp_x(g, x, windows):
        return pooled_max_backward(g, x, windows=windows)

    def jvp_x(t, x, windows):
        return gather_flat(t, max_pool_indices(x, windows=windows), len(windows))

    oracle = "retrograd.testing.references.pooling.pooled_max"

    def samples(r):
        yield (r(2, 4, 5),), {"windows": ((2, 2, 0, 1, 2), (3, 1, 1, 2, 3))}
        yield (r(2, 4, 5),), {"windows": ((3,), (2,))}
        yield (r(4),), {"windows": ((3, 3, 1, 1, 2),)}


@op("pooled_max_backward(Tensor y, Tensor x, *, any windows) -> Tensor")
class pooled_max_backward(Pooling, linear="y"):
    """The transpose of `pooled_max`: each window's value in y is added at the maximum of x in that window."""

    def impl(xp, y, x, *, windows):
        _check_cotangent(y, x, windows)
        return xp.pooled_max_backward(y, x, windows)

    def shape(y, x, *, windows):
        _check_cotangent(y, x, windows)
        return Aval(x.shape, y.dtype)

    def batch(batched, n, y, x, *, windows):
        y, x = batch_all((y, x), batched, n)
        return pooled_max_backward(y, x, windows=windows)

    def vjp_y(g, x, windows):
        return gather_flat(g, max_pool_indices(x, windows=windows), len(windows))

    def vjp_x(g, x_aval):
        return registry["zeros"](x_aval.shape, dtype=x_aval.dtype)

    def jvp_x(t, out):
        return registry["zeros_like"](out)

    oracle = "retrograd.testing.references.pooling.pooled_max_backward"

    def samples(r):
        yield (r(2, 2, 3), r(2, 4, 5)), {"windows": ((2, 2, 0, 1, 2), (3, 1, 1, 2, 3))}
        yield (r(2, 3, 2), r(2, 4, 5)), {"windows": ((3,), (2,))}


def _check_cotangent(y, x, windows):
    _check_comparable("pooled_max_backward", x, windows)
    if y.shape != _pooled_shape(x, windows):
        raise ValueError(f"pooled_max_backward: expected numbers of shape {_pooled_shape(x, windows)}, got {y.shape}")


def gather_flat(x, indices, ndim):
    """The elements of images at indices of the flattened images."""
    lead = x.shape[: x.ndim - ndim]
    flat = reshape(x, (*lead, numel(x.shape[len(lead) :])))
    found = take_along_dim(flat, reshape(indices, (*lead, numel(indices.shape[len(lead) :]))), len(lead))
    return reshape(found, indices.shape)


# ------------------------------------------------------------------------------------------------------ windows


def _windows(name, x, ndim, kernel_size, stride, padding, dilation, ceil_mode):
    """The `windows` of a pooling along the last dimensions of images."""
    check_images(name, x, ndim)
    return _windows_of(name, x.shape[x.ndim - ndim :], kernel_size, stride, padding, dilation, ceil_mode)


@cache_plain
def _windows_of(name, sizes, kernel_size, stride, padding, dilation, ceil_mode):
    own = (("kernel_size", kernel_size, 1), ("stride", kernel_size if stride in (None, ()) else stride, 1))
    given = (*own, ("padding", padding, 0), ("dilation", dilation, 1))
    kernel, stride, padding, dilation = (per_dim(name, what, value, len(sizes), least) for what, value, least in given)
    windows = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        extent = d * (k - 1) + 1
        if 2 * p > extent:
            raise ValueError(
                f"{name}: pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}: padding {p} must be at most half of what the kernel spans, {extent}"
            )
        windows.append((k, s, p, d, _window_count(n, extent, s, p, ceil_mode)))
    if any(w[-1] < 1 for w in windows):
        raise ValueError(
            f"{name}: nothing is left: images of size {sizes} are smaller than the kernel {kernel}: Output size is too "
            f"small, {tuple(max(w[-1], 0) for w in windows)}"
        )
    return tuple(windows)


def _window_count(size, extent, stride, padding, ceil_mode):
    """The number of windows; in ceil mode the last may begin in the image and extend beyond its end."""
    room = size + 2 * padding - extent
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if count - 1 >= -(-(size + padding) // stride) else count


def _adaptive_windows(name, x, ndim, output_size):
    """The adaptive windows of the last dimensions; regular windows where the sizes divide."""
    check_images(name, x, ndim)
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * ndim
    if len(given) != ndim or any(n is not None and n < 0 for n in given):
        raise ValueError(f"{name}: output_size must be one size or {ndim}, None to keep one, got {output_size}")
    if 0 in x.shape[-ndim:]:
        raise ValueError(f"{name}: images of shape {x.shape} have no elements")
    windows = []
    for size, out in zip(x.shape[-ndim:], given, strict=True):
        out = size if out is None else out
        even = out and size and size % out == 0
        windows.append((size // out, size // out, 0, 1, out) if even else (out,))
    return tuple(windows)


# ------------------------------------------------------------------------------------------------- the largest



# Maxima and their indices in the flattened image if `return_indices` is true, else a tensor
PooledWithIndices = Annotated[Tensor | tuple[Tensor, Tensor], "return_indices"]


def _max_pool_windows(x, windows, return_indices):
    if not return_indices:
        return pooled_max(x, windows=windows)
    indices = max_pool_indices(x, windows=windows)
    return arrange_like(gather_flat(x, indices, len(windows)), indices), indices


_MAX = """The largest element of each window of images (n, c, *sizes) or (c, *sizes) with {n} spatial dimensions.

    stride: the kernel size if None.  Outside there is nothing, at most half a kernel of it (padding).  ceil_mode: also
    windows that are cut off at the end.  The gradient goes to the first of equals; NaN wins.  return_indices: a named
    tuple (values, indices), the places being those of the flattened image.{example}
    """

_MAX_EXAMPLE = """

    >>> import retrograd as rg
    >>> x = rg.tensor([[1.0, 3.0, 2.0, 0.0]])
    >>> values, indices = rg.nn.functional.max_pool1d(x, 2, return_indices=True)
    >>> values.tolist(), indices.tolist()
    ([[3.0, 2.0]], [[1, 2]])"""


def _image_sample(r, ndim, *lead):
    return r(*lead, *(5, 4, 3)[:ndim])


def _max_pool(ndim):
    """Return the operator max_pool1d, max_pool2d or max_pool3d."""
    name = f"max_pool{ndim}d"

    @op(
        f"{name}(Tensor x, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] dilation=1, "
        "bool ceil_mode=False, bool return_indices=False) -> Tensor"
    )
    class max_pool(Composite, aliases=f"nn.functional.{name}", method=False):
        __doc__ = _MAX.format(n=ndim, example=_MAX_EXAMPLE if ndim == 1 else "")

        def compose(x, *, kernel_size, stride, padding, dilation, ceil_mode, return_indices) -> PooledWithIndices:
            _check_differentiable(name, x)
            windows = _windows(name, x, ndim, kernel_size, stride, padding, dilation, ceil_mode)
            return _max_pool_windows(x, windows, return_indices)

        oracle = f"retrograd.testing.references.pooling.{name}"

        def samples(r):
            yield (_image_sample(r, ndim, 2, 2),), {"kernel_size": 2}
            yield (_image_sample(r, ndim, 2),), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
            dilated = {"kernel_size": 2, "stride": 1, "dilation": 2, "return_indices": True}
            yield (_image_sample(r, ndim, 1, 2),), dilated

        def errors(r):
            x = _image_sample(r, ndim, 2, 2)
            yield (r(3),), {"kernel_size": 2}, ValueError, f"{name}: .*expected images"
            yield (x,), {"kernel_size": 2, "padding": 2}, ValueError, f"{name}: .*padding 2 must be at most half"
            yield (x,), {"kernel_size": 9}, ValueError, f"{name}: .*nothing is left"
            yield (x,), {"kernel_size": 2, "stride": 0}, ValueError, f"{name}: .*stride must be an integer from 1"

    return max_pool


def _check_differentiable(name, x):
    if dtypes.category(x.dtype) not in (1, 2):
        raise TypeError(f"{name}: expected real numbers, got {x.dtype}")


_ADAPTIVE_MAX = """The largest element of each of `output_size` windows that cover images with {n} spatial dimensions.

    Window i of n covers the places from i * size / n, rounded down, to (i + 1) * size / n, rounded up.  output_size:
    one for all dimensions or one for each, None to keep a size.  return_indices: as in `max_pool{n}d`.
    """


def _adaptive_max_pool(ndim):
    """Return the operator adaptive_max_pool1d, adaptive_max_pool2d or adaptive_max_pool3d."""
    name = f"adaptive_max_pool{ndim}d"

    @op(f"{name}(Tensor x, any output_size, bool return_indices=False) -> Tensor")
    class adaptive_max_pool(Composite, home="nn.functional"):
        __doc__ = _ADAPTIVE_MAX.format(n=ndim)

        def compose(x, *, output_size, return_indices) -> PooledWithIndices:
            _check_differentiable(name, x)
            return _max_pool_windows(x, _adaptive_windows(name, x, ndim, output_size), return_indices)

        oracle = f"retrograd.testing.references.pooling.{name}"

        def samples(r):
            yield (_image_sample(r, ndim, 2, 2),), {"output_size": (3, 2, 2)[:ndim]}
            yield (_image_sample(r, ndim, 2),), {"output_size": (1, 2, 3)[:ndim], "return_indices": True}

        def errors(r):
            yield (_image_sample(r, ndim, 2, 2),), {"output_size": (2,) * 4}, ValueError, f"{name}: output_size must be"
            yield (r(3),), {"output_size": 2}, ValueError, f"{name}: .*expected images"

    return adaptive_max_pool


_UNPOOL = """`max_pool{n}d` undone as far as it can be: the values at `indices` of larger images of zeros.

    The size is that of the smallest images that are pooled to this one, or `output_size`.  Where windows overlap, and
    places come twice, one of the values stays.
    """


def _max_unpool(ndim):
    """Return the operator max_unpool1d, max_unpool2d or max_unpool3d."""
    name = f"max_unpool{ndim}d"

    @op(
        f"{name}(Tensor x, Tensor indices, int[] kernel_size, int[]? stride=None, int[] padding=0, "
        "int[]? output_size=None) -> Tensor"
    )
    class max_unpool(Composite, home="nn.functional", memory="images"):
        __doc__ = _UNPOOL.format(n=ndim)

        def compose(x, indices, *, kernel_size, stride, padding, output_size):
            check_images(name, x, ndim)
            if indices.shape != x.shape or indices.dtype.kind not in "iu":
                got = f"{indices.dtype} of shape {indices.shape}"
                raise ValueError(f"{name}: indices must be integers of shape {x.shape}, got {got}")
            sizes = _unpooled_sizes(name, x, ndim, kernel_size, stride, padding, output_size)
            lead, count = x.shape[:-ndim], numel(x.shape[-ndim:])
            empty = registry["zeros"]((*lead, numel(sizes)), dtype=x.dtype)
            flat = (reshape(indices, (*lead, count)), reshape(x, (*lead, count)))
            return reshape(registry["scatter"](empty, -1, *flat), (*lead, *sizes))

        oracle = f"retrograd.testing.references.pooling.{name}"

        def samples(r):
            count = 2**ndim
            indices = registry["stack"]([registry["arange"](i, count * 2**ndim, 2**ndim) for i in (0, 1)])
            yield (r(1, 2, *(2,) * ndim), reshape(indices, (1, 2, *(2,) * ndim))), {"kernel_size": (2,) * ndim}
            yield (
                (r(2, *(2,) * ndim), reshape(indices, (2, *(2,) * ndim))),
                {"kernel_size": (2,) * ndim, "output_size": (5,) * ndim},
            )

        def errors(r):
            x = r(1, 2, *(2,) * ndim)
            yield (x, r(1, 2)), {"kernel_size": 2}, ValueError, f"{name}: indices must be integers"
            indices = r.ints(3, x.shape)
            yield (x, indices), {"kernel_size": 2, "output_size": 9}, ValueError, f"{name}: output_size must be"
            yield (x, indices + 900), {"kernel_size": 2}, IndexError, "902"

    return max_unpool


def _unpooled_sizes(name, x, ndim, kernel_size, stride, padding, output_size):
    own = (("kernel_size", kernel_size, 1), ("stride", kernel_size if stride is None else stride, 1))
    given = (*own, ("padding", padding, 0))
    kernel, stride, padding = (per_dim(name, what, value, ndim, least) for what, value, least in given)
    per = zip(x.shape[-ndim:], kernel, stride, padding, strict=True)
    usual = tuple((n - 1) * s + k - 2 * p for n, k, s, p in per)
    if output_size is None:
        return usual
    sizes = output_size[-ndim:] if len(output_size) == ndim + 2 else per_dim(name, "output_size", output_size, ndim, 0)
    if not all(u - s < n < u + s for n, u, s in zip(sizes, usual, stride, strict=True)):
        raise ValueError(f"{name}: output_size must be less than a stride from {usual}, got {tuple(sizes)}")
    return tuple(sizes)


# -------------------------------------------------------------------------------------------------- the mean


def _average_windows(name, x, windows, count_include_pad, divisor):
    """The sum over each window divided by its number of elements, or by `divisor`."""
    if x.dtype.kind not in "iu":
        check_real(name, x)
    total = pooled_sum(x, windows=windows)
    if divisor is not None:
        return _divide(total, divisor)
    each = 1
    for d, (window, size) in enumerate(zip(windows, x.shape[x.ndim - len(windows) :], strict=True)):
        counts = _window_sizes(size, *window, count_include_pad)  # type: ignore[call-arg]
        if len(set(counts)) == 1:
            each *= counts[0]
        else:
            total = _divide(total, reshape(as_tensor(counts), (-1, *(1,) * (len(windows) - 1 - d))))
    return total if each == 1 else _divide(total, each)


def _divide(total, count):
    """The sum divided by the divisor; truncated for integers."""
    return total / count if dtypes.is_floating(total.dtype) else registry["div"](total, count, rounding_mode="trunc")


def _window_sizes(size, kernel, stride, before, _, out, padded):
    """The number of elements of each window, in the image or in the padded image; once where all are equal."""
    low, high = (-before, size + before) if padded else (0, size)
    if low == -before and out <= (high + before - kernel) // stride + 1:  # all windows lie inside
        return [kernel]
    starts = [i * stride - before for i in range(out)]
    return [max(min(start + kernel, high) - max(start, low), 1) for start in starts]


_AVERAGE = """The mean of each window of images (n, c, *sizes) or (c, *sizes) with {n} spatial dimensions.

    stride: the kernel size if None.  padding: zeros on both sides, at most half a kernel; they count unless
    count_include_pad is False.  ceil_mode: also windows that are cut off at the end; what is cut off never counts.
    {more}
    """

_AVERAGE_EXAMPLE = """
    >>> import retrograd as rg
    >>> rg.nn.functional.avg_pool1d(rg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
    [[2.0, 1.0]]"""


def _avg_pool(ndim):
    """Return the operator avg_pool1d, avg_pool2d or avg_pool3d."""
    name, divisor = f"avg_pool{ndim}d", ", int? divisor_override=None" if ndim > 1 else ""

    @op(
        f"{name}(Tensor x, int[] kernel_size, int[]? stride=None, int[] padding=0, bool ceil_mode=False, "
        f"bool count_include_pad=True{divisor}) -> Tensor"
    )
    class avg_pool(Composite, home="nn.functional", aliases=name if ndim == 1 else "", method=False, opmath="x"):
        __doc__ = _AVERAGE.format(
            n=ndim,
            more=_AVERAGE_EXAMPLE if ndim == 1 else "divisor_override: what sums are divided by instead.",
        )

        def compose(x, *, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
            if divisor_override == 0:
                raise ValueError(f"{name}: divisor_override must not be 0")
            windows = _windows(name, x, ndim, kernel_size, stride, padding, 1, ceil_mode)
            return _average_windows(name, x, windows, count_include_pad, divisor_override)

        oracle = f"retrograd.testing.references.pooling.{name}"

        def samples(r):
            yield (_image_sample(r, ndim, 2, 2),), {"kernel_size": 2}
            padded = {"kernel_size": 3, "stride": 2, "padding": 1}
            yield (_image_sample(r, ndim, 2),), {**padded, "ceil_mode": True}
            yield (_image_sample(r, ndim, 1, 2),), {**padded, "count_include_pad": False}
            if ndim > 1:
                yield (_image_sample(r, ndim, 1, 2),), {"kernel_size": 2, "divisor_override": 3}

        def errors(r):
            x = _image_sample(r, ndim, 2, 2)
            yield (r(3),), {"kernel_size": 2}, ValueError, f"{name}: .*expected images"
            yield (x,), {"kernel_size": 2, "padding": 2}, ValueError, f"{name}: .*padding 2 must be at most half"
            yield (r.booleans(*x.shape),), {"kernel_size": 2}, TypeError, f"{name}: expected a real floating dtype"
            if ndim > 1:
                yield (x,), {"kernel_size": 2, "divisor_override": 0}, ValueError, "divisor_override must not be 0"

    return avg_pool


_ADAPTIVE_AVERAGE = """The mean of each of `output_size` windows that cover images with {n} spatial dimensions.

    Window i of n covers the places from i * size / n, rounded down, to (i + 1) * size / n, rounded up.  output_size:
    one for all dimensions or one for each, None to keep a size.
    """


def _adaptive_avg_pool(ndim):
    """Return the operator adaptive_avg_pool1d, adaptive_avg_pool2d or adaptive_avg_pool3d."""
    name = f"adaptive_avg_pool{ndim}d"

    @op(f"{name}(Tensor x, any output_size) -> Tensor")
    class adaptive_avg_pool(
        Composite, home="nn.functional", aliases=name if ndim == 1 else "", method=False, opmath="x"
    ):
        __doc__ = _ADAPTIVE_AVERAGE.format(n=ndim)

        def compose(x, *, output_size):
            check_real(name, x)
            windows = _adaptive_windows(name, x, ndim, output_size)
            if all(w[-1] == 1 for w in windows):
                return mean(x, tuple(range(-ndim, 0)), keepdim=True)
            if all(len(w) > 1 for w in windows):
                return _average_windows(name, x, windows, True, None)
            for d, window in enumerate(windows):
                dim = x.ndim - ndim + d
                x = resample(x, dim=dim, how=("area", x.shape[dim], window[-1]))
            return x

        oracle = f"retrograd.testing.references.pooling.{name}"

        def samples(r):
            yield (_image_sample(r, ndim, 2, 2),), {"output_size": (3, 2, 2)[:ndim]}
            yield (_image_sample(r, ndim, 2),), {"output_size": 1}
            yield (_image_sample(r, ndim, 2, 1),), {"output_size": (5, 2, None)[:ndim]}

        def errors(r):
            yield (_image_sample(r, ndim, 2, 2),), {"output_size": (2,) * 4}, ValueError, f"{name}: output_size must be"
            yield (r(3),), {"output_size": 2}, ValueError, f"{name}: .*expected images"

    return adaptive_avg_pool


_LP = """The p-norm of each window, sum(x^p)^(1/p), p being norm_type, of images with {n} spatial dimensions.

    x^p is a plain power, without the absolute value, as in PyTorch; p infinite, or its negative, is the largest or
    smallest absolute value.  In ceil_mode a window that is cut off is scaled up
    to a whole one.  Where the sum is 0 the derivative is taken as 0.
    """


def _channel_scale(x, ndim):
    """The largest absolute value of each channel of each image, detached; 1 where it cannot be a scale."""
    top = amax(abs(detach(x)), tuple(range(-ndim, 0)), keepdim=True)
    return where(logical_or(top == 0, isinf(top)), 1, top)


def _lp_pool(ndim, averages, maxima):
    """Return the operator lp_pool1d, lp_pool2d or lp_pool3d."""
    name = f"lp_pool{ndim}d"

    @op(f"{name}(Tensor x, number norm_type, int[] kernel_size, int[]? stride=None, bool ceil_mode=False) -> Tensor")
    class lp_pool(Composite, home="nn.functional", opmath="x"):
        __doc__ = _LP.format(n=ndim)

        def compose(x, *, norm_type, kernel_size, stride, ceil_mode):
            check_real(name, x)
            check_images(name, x, ndim)
            kernel = per_dim(name, "kernel_size", kernel_size, ndim, 1)
            if math.isinf(norm_type):
                sign = math.copysign(1, norm_type)
                return sign * maxima(sign * abs(x), kernel, stride, ceil_mode=ceil_mode)
            scale = _channel_scale(x, ndim)
            total = averages(pow(x / scale, norm_type), kernel, stride, ceil_mode=ceil_mode) * numel(kernel)
            zero = total == 0
            return scale * where(zero, detach(total), pow(where(zero, 1, total), 1 / norm_type))

        oracle = f"retrograd.testing.references.pooling.{name}"

        def samples(r):
            x = r(2, 2, *(5, 4, 3)[:ndim], within=(0.3, 2.0))
            yield (x,), {"norm_type": 2, "kernel_size": 2}
            yield (x[0],), {"norm_type": 3.5, "kernel_size": 3, "stride": 2, "ceil_mode": True}
            yield (x,), {"norm_type": -math.inf, "kernel_size": 2}

        def errors(r):
            yield (r(3),), {"norm_type": 2, "kernel_size": 2}, ValueError, f"{name}: .*expected images"

    return lp_pool


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_max_pool, (1, 2, 3))
max_unpool1d, max_unpool2d, max_unpool3d = map(_max_unpool, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pool, (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg_pool, (1, 2, 3))
_averages, _maxima = (avg_pool1d, avg_pool2d, avg_pool3d), (max_pool1d, max_pool2d, max_pool3d)
lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3), _averages, _maxima)
