"""Windows of images as columns, and sums of columns into images."""

from retrograd.core import Aval, Internal, op, registry
from retrograd.ops.conv import check_images, per_dim
from retrograd.ops.family import Composite, numel
from retrograd.ops.view import reshape, squeeze, unsqueeze


class Windows(Internal):
    """Works on each image separately."""

    @classmethod
    def batch(cls, batched, n, /, x, **params):
        """Fold the batch dimension into the image dimension."""
        out = registry[cls.__name__](reshape(x, (n * x.shape[1], *x.shape[2:])), **params)
        return reshape(out, (n, x.shape[1], *out.shape[1:]))


@op("window_columns(Tensor x, *, int[] kernel, int[] stride, int[] before, int[] dilation, int[] size) -> Tensor")
class window_columns(Windows, linear="x", elements="moved"):
    """Images (n, c, *sizes) to their windows at `size` positions: (n, c, *kernel, *size), zeros outside."""

    def impl(xp, x, *, kernel, stride, before, dilation, size):
        return xp.window_columns(x, kernel, stride, before, dilation, size)

    def shape(x, *, kernel, stride, before, dilation, size):
        return Aval((*x.shape[:2], *kernel, *size), x.dtype)

    def vjp_x(g, x_aval, kernel, stride, before, dilation, size):
        given = {"kernel": kernel, "stride": stride, "before": before, "dilation": dilation}
        return window_sums(g, size=x_aval.shape[2:], **given)

    oracle = "retrograd.testing.references.conv.window_columns"

    def samples(r):
        given = {"kernel": (2, 1), "stride": (1, 2), "before": (1, 0), "dilation": (2, 1), "size": (3, 2)}
        yield (r(2, 1, 4, 3),), given


@op("window_sums(Tensor x, *, int[] kernel, int[] stride, int[] before, int[] dilation, int[] size) -> Tensor")
class window_sums(Windows, linear="x", elements="summed"):
    """Images (n, c, *size) as the sums of windows (n, c, *kernel, *positions), which may overlap."""

    def impl(xp, x, *, kernel, stride, before, dilation, size):
        return xp.window_sums(x, kernel, stride, before, dilation, size)

    def shape(x, *, kernel, stride, before, dilation, size):
        return Aval((*x.shape[:2], *size), x.dtype)

    def vjp_x(g, x_aval, kernel, stride, before, dilation):
        counts = x_aval.shape[2 + len(kernel) :]
        return window_columns(g, kernel=kernel, stride=stride, before=before, dilation=dilation, size=counts)

    oracle = "retrograd.testing.references.conv.window_sums"

    def samples(r):
        given = {"kernel": (2, 1), "stride": (1, 2), "before": (1, 0), "dilation": (2, 1), "size": (4, 3)}
        yield (r(2, 1, 2, 1, 3, 2),), given


def window_counts(name, size, kernel, stride, padding, dilation):
    """Return the number of windows along each dimension; a ValueError if there are none."""
    per = zip(size, kernel, stride, padding, dilation, strict=True)
    counts = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in per)
    if any(n < 1 for n in counts):
        raise ValueError(
            f"{name}: nothing is left: images of size {size} with padding {padding} are less than the kernel {kernel}"
        )
    return counts


def _window_params(name, kernel_size, stride, padding, dilation):
    """Return the params of the windows of 2-d images."""
    given = (("kernel_size", kernel_size, 1), ("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1))
    kernel, stride, before, dilation = (per_dim(name, what, value, 2, least) for what, value, least in given)
    return {"kernel": kernel, "stride": stride, "before": before, "dilation": dilation}


@op("unfold(Tensor x, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1) -> Tensor")
class unfold(Composite, home="nn.functional"):
    """Extract windows of images (n, c, h, w) as columns (n, c * kernel_h * kernel_w, windows).

    >>> import retrograd as rg
    >>> rg.nn.functional.unfold(rg.arange(4.0).reshape(1, 1, 2, 2), kernel_size=2).flatten().tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    def compose(x, *, kernel_size, dilation, padding, stride):
        batched = check_images("unfold", x, 2)
        window = _window_params("unfold", kernel_size, stride, padding, dilation)
        counts = window_counts("unfold", x.shape[-2:], *window.values())
        batch = x if batched else unsqueeze(x, 0)
        columns = window_columns(batch, size=counts, **window)
        rows = x.shape[-3] * numel(window["kernel"])
        return reshape(columns, (*x.shape[:-3], rows, numel(counts)))

    oracle = "retrograd.testing.references.conv.unfold"

    def samples(r):
        yield (r(2, 2, 4, 3),), {"kernel_size": (2, 2)}
        yield (r(2, 4, 3),), {"kernel_size": (3, 1), "dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)}

    def errors(r):
        yield (r(2, 3),), {"kernel_size": 2}, ValueError, "unfold: .*expected images"
        yield (r(1, 2, 3, 3),), {"kernel_size": 4}, ValueError, "unfold: nothing is left"


@op(
    "fold(Tensor x, int[] output_size, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1) -> Tensor"
)
class fold(Composite, home="nn.functional"):
    """Sum columns (n, c * kernel_h * kernel_w, windows) into images (n, c, *output_size), where windows may overlap.

    The transpose of `unfold`.
    """

    def compose(x, *, output_size, kernel_size, dilation, padding, stride):
        if x.ndim not in (2, 3):
            raise ValueError(f"fold: expected columns (n, rows, positions) or without n, got shape {x.shape}")
        window = _window_params("fold", kernel_size, stride, padding, dilation)
        size = per_dim("fold", "output_size", output_size, 2, 1)
        counts = window_counts("fold", size, *window.values())
        channels, left = divmod(x.shape[-2], numel(window["kernel"]))
        if left or x.shape[-1] != numel(counts):
            raise ValueError(
                f"fold: columns of shape {x.shape} do not fit: {numel(counts)} windows of {numel(window['kernel'])} "
                f"elements per channel are expected"
            )
        lead = x.shape[:-2] or (1,)
        out = window_sums(reshape(x, (*lead, channels, *window["kernel"], *counts)), size=size, **window)
        return out if x.ndim == 3 else squeeze(out, 0)

    oracle = "retrograd.testing.references.conv.fold"

    def samples(r):
        yield (r(2, 4, 6),), {"output_size": (4, 3), "kernel_size": (2, 2)}
        yield (
            (r(6, 4),),
            {"output_size": (4, 4), "kernel_size": (3, 1), "dilation": (1, 2), "padding": (1, 0), "stride": (3, 2)},
        )

    def errors(r):
        yield (r(1, 4, 5),), {"output_size": 3, "kernel_size": 2}, ValueError, "fold: .* do not fit: 4 windows"
