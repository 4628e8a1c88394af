"""Convolutions: one primitive and its two transposes."""

from retrograd.core import Aval, Internal, call, op, registry
from retrograd.core.errors import OperandValueError
from retrograd.foundation.plain_cache import cache_plain
from retrograd.ops import batch_loop
from retrograd.ops.family import Composite, numel, same_dtype
from retrograd.ops.linalg import Product
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.sparsity_rules import window_labels
from retrograd.ops.view import movedim, reshape, squeeze, unsqueeze

# ------------------------------------------------------------------------------------------------- the primitives

# The three primitives are the derivatives of one trilinear form, the sum over images n, channels c and o, output
# positions p and kernel offsets t of x[n, c, p * stride + t * dilation - before] * w[o, c, t] * y[n, o, p], where x is
# 0 outside.  So the rules of each primitive call the other two.


class Convolution(Internal, Product, memory="images"):
    """A derivative of the trilinear form with respect to one factor: its operands are the other two.

    `parts` names the operands and then the result by their first two dimensions: images n, channels c or o.
    """

    parts: tuple[str, ...] = ()

    @classmethod
    def batch(cls, batched, n, /, a, b, *, groups, **params):
        """Fold examples into the groups; if only one operand is batched, into its dimension that the result shares."""
        operator = registry[cls.__name__]
        if n == 0:
            return batch_loop.empty_batch(operator, batched, (a, b), {"groups": groups, **params})
        *operands, out = cls.parts
        if batched == (True, True):
            a, b = (fold_batch(x, _GROUPED[part]) for x, part in zip((a, b), operands, strict=True))
            return unfold_batch(call(operator, (a, b), {"groups": groups * n, **params}), n, _GROUPED[out])
        which = batched.index(True)
        part, both = operands[which], [a, b]
        (kind,) = set(part) & set(out)
        dim, to = part.index(kind), out.index(kind)
        both[which] = fold_batch(both[which], dim, _has_groups(part, dim, groups))
        result = call(operator, tuple(both), {"groups": groups, **params})
        return unfold_batch(result, n, to, _has_groups(out, to, groups))

    @classmethod
    def dependence(cls, i, out, /, *avals, groups, **params):
        """Images depend on the elements in their windows if channels do not matter, else on shared dimensions."""
        part, result = (*cls.parts[:2], "o")[i], cls.parts[-1]  # a bias has one dimension, the channels
        if "n" in part and "n" in result:
            return window_labels(avals[i].shape, out.shape, groups, lambda x: cls._read_windows(x, avals, params))
        return cls.mapped(i, out, *avals)

    @classmethod
    def mapped(cls, i, out, /, *avals, **params):
        """The examples, or channels, that an operand and the result share."""
        part, result = (*cls.parts[:2], "o")[i], cls.parts[-1]
        shared = {part.index(kind): result.index(kind) for kind in part if kind in result}
        return {d: k for d, k in shared.items() if avals[i].shape[d] == out.shape[k]}

    @classmethod
    def summed(cls, *avals, groups, **params):
        """The examples, or channels, that the operands share and the result lacks."""
        a, b, out = cls.parts
        return [{0: a.index(kind), 1: b.index(kind)} for kind in a if kind in b and kind not in out and groups == 1]

    @classmethod
    def _read_windows(cls, images, avals, params):
        """Return, as channels, the elements of one-channel images that each kernel offset reads."""
        kernel = avals[1].shape[2:]
        taps = registry["eye"](numel(kernel), dtype=images.dtype)
        weight = reshape(taps, (*((-1, 1) if cls.parts[-1] == "no" else (1, -1)), *kernel))
        return call(registry[cls.__name__], (images, weight, *[None] * len(avals[2:])), {**params, "groups": 1})


_GROUPED = {"nc": 1, "oc": 0, "no": 1}  # per part, the dimension that holds the channels of all groups


def _has_groups(part, dim, groups):
    return groups if _GROUPED[part] == dim else 1


def fold_batch(x, dim, parts=1):
    """Move the batch dimension into `dim` of each example, within each of its `parts` equal parts."""
    size = x.shape[dim + 1]
    x = movedim(reshape(x, (*x.shape[: dim + 1], parts, size // parts, *x.shape[dim + 2 :])), 0, dim + 1)
    return reshape(x, (*x.shape[:dim], parts * x.shape[dim + 1] * (size // parts), *x.shape[dim + 3 :]))


def unfold_batch(x, n, dim, parts=1):
    """Undo `fold_batch` for n examples."""
    size = x.shape[dim] // n
    x = movedim(reshape(x, (*x.shape[:dim], parts, n, size // parts, *x.shape[dim + 1 :])), dim + 1, 0)
    return reshape(x, (*x.shape[: dim + 1], size, *x.shape[dim + 3 :]))


def _multiplications(y, w):
    """Return the number of multiplications: each element of y meets all kernel offsets of its input channels."""
    return numel(y.shape) * numel(w.shape[1:])


def _check_shapes(name, x, w, y, groups):
    """Raise unless the shapes of the three parts agree."""
    if not len(x) == len(w) == len(y) or x[0] != y[0] or x[1] != w[1] * groups or w[0] != y[1] or w[0] % groups:
        raise ValueError(f"{name}: images {x}, weight {w} and images {y} do not fit, groups being {groups}")


def _output_shape(x, weight, size, groups):
    """Return the shape of y."""
    shape = (*x.shape[:1], *weight.shape[:1], *size)
    _check_shapes("convolution", x.shape, weight.shape, shape, groups)
    return shape


@op(
    "convolution(Tensor x, Tensor weight, Tensor? bias, int[] size, int[] stride, int[] before, "
    "int[] dilation, int groups) -> Tensor"
)
class convolution(Convolution, parts=("nc", "oc", "no"), snapshots="x"):
    """Convolve images (n, c, *sizes) with weight (o, c / groups, *kernel) to (n, o, *size), plus a bias per channel.

    Position p of the result reads positions p * stride + t * dilation - before for all kernel offsets t; zeros outside.
    """

    def impl(xp, x, weight, bias=None, *, size, stride, before, dilation, groups):
        _output_shape(x, weight, size, groups)
        return xp.conv(
            x, weight, bias, size=size, stride=stride, before=before, dilation=dilation, groups=groups
        )

    def shape(x, weight, bias=None, *, size, stride, before, dilation, groups):
        same_dtype("convolution", (x, weight, bias))
        return Aval(_output_shape(x, weight, size, groups), x.dtype)

    def work(avals, out):
        return _multiplications(out, avals[1])

    def vjp_x(g, weight, x_aval, stride, before, dilation, groups):
        return convolution_input(g, weight, x_aval.shape[2:], stride, before, dilation, groups)

    def vjp_weight(g, x, weight_aval, stride, before, dilation, groups):
        return convolution_weight(x, g, weight_aval.shape[2:], stride, before, dilation, groups)

    def vjp_bias(g):
        return sum_over(g, (0, *range(2, g.ndim)))

    def jvp_x(t, weight, size, stride, before, dilation, groups):
        return convolution(t, weight, None, size, stride, before, dilation, groups)

    def jvp_weight(t, x, size, stride, before, dilation, groups):
        return convolution(x, t, None, size, stride, before, dilation, groups)

    def jvp_bias(t, out):
        return registry["expand"](reshape(t, (-1, *(1,) * (out.ndim - 2))), out.shape)

    @classmethod
    def batch(cls, batched, n, /, x, weight, bias=None, **params):
        """Pass a bias to the kernel if the examples share it and the weight; else add it afterwards."""
        if batched == (True, False, False) and bias is not None and n:
            return unfold_batch(convolution(fold_batch(x, 0), weight, bias, **params), n, 0)
        batches = any(batched[:2])
        out = super().batch(batched[:2], n, x, weight, **params) if batches else convolution(x, weight, None, **params)
        if bias is None:
            return out
        lead, ones = (n, 1) if batched[2] else (), (1,) * len(params["size"])
        return out + reshape(bias, (*lead, bias.shape[-1], *ones))

    oracle = "retrograd.testing.references.conv.convolution"

    def samples(r):
        yield (r(2, 3, 6), r(4, 3, 2), r(4)), {"size": 3, "stride": 2, "before": 1, "dilation": 2, "groups": 1}
        yield (
            (r(2, 4, 5, 4), r(6, 2, 3, 2), None),
            {"size": (5, 3), "stride": (1, 2), "before": (1, 0), "dilation": (1, 2), "groups": 2},
        )
        yield (
            (r(2, 2, 4, 3), r(2, 1, 3, 2), r(2)),
            {"size": (4, 3), "stride": (1, 1), "before": (1, 1), "dilation": (1, 1), "groups": 2},
        )
        yield (
            (r(1, 2, 3, 3), r(3, 2, 1, 1), None),
            {"size": (3, 3), "stride": (1, 1), "before": (0, 0), "dilation": (1, 1), "groups": 1},
        )

    def errors(r):
        given = {"size": 3, "stride": 1, "before": 1, "dilation": 1, "groups": 1}
        yield (r(2, 3, 5), r(4, 2, 3), None), given, ValueError, "convolution: images .* do not fit"


@op(
    "convolution_input(Tensor y, Tensor weight, int[] size, int[] stride, int[] before, int[] dilation, "
    "int groups) -> Tensor"
)
class convolution_input(Convolution, linear="y weight", parts=("no", "oc", "nc")):
    """`convolution` transposed as a map of images: (n, o, *out) and (o, c / groups, *kernel) to (n, c, *size)."""

    def impl(xp, y, weight, *, size, stride, before, dilation, groups):
        _input_shape(y, weight, size, groups)
        return xp.conv_input(
            y, weight, size=size, stride=stride, before=before, dilation=dilation, groups=groups
        )

    def shape(y, weight, *, size, stride, before, dilation, groups):
        return Aval(_input_shape(y, weight, size, groups), y.dtype)

    def work(avals, out):
        return _multiplications(*avals)

    def vjp_y(g, weight, y_aval, stride, before, dilation, groups):
        return convolution(g, weight, None, y_aval.shape[2:], stride, before, dilation, groups)

    def vjp_weight(g, y, weight_aval, stride, before, dilation, groups):
        return convolution_weight(g, y, weight_aval.shape[2:], stride, before, dilation, groups)

    oracle = "retrograd.testing.references.conv.convolution_input"

    def samples(r):
        yield (r(2, 4, 3), r(4, 3, 2)), {"size": 6, "stride": 2, "before": 1, "dilation": 2, "groups": 1}
        yield (
            (r(2, 6, 3, 2), r(6, 2, 3, 2)),
            {"size": (5, 4), "stride": (1, 1), "before": (1, 0), "dilation": (1, 2), "groups": 2},
        )
        yield (
            (r(2, 2, 3, 3), r(2, 1, 3, 2)),
            {"size": (6, 5), "stride": (2, 2), "before": (1, 0), "dilation": (1, 1), "groups": 2},
        )


def _input_shape(y, weight, size, groups):
    """Return the shape of x."""
    shape = (*y.shape[:1], *(c * groups for c in weight.shape[1:2]), *size)
    _check_shapes("convolution_input", shape, weight.shape, y.shape, groups)
    return shape


@op(
    "convolution_weight(Tensor x, Tensor y, int[] kernel, int[] stride, int[] before, int[] dilation, "
    "int groups) -> Tensor"
)
class convolution_weight(Convolution, linear="x y", parts=("nc", "no", "oc")):
    """`convolution` transposed as a map of weights: images (n, c, *sizes) and (n, o, *out) to (o, c / groups, *kernel).

    Entry t of the result sums the products x[p * stride + t * dilation - before] * y[p] over images and positions p.
    """

    def impl(xp, x, y, *, kernel, stride, before, dilation, groups):
        _weight_shape(x, y, kernel, groups)
        return xp.conv_weight(
            x, y, kernel=kernel, stride=stride, before=before, dilation=dilation, groups=groups
        )

    def shape(x, y, *, kernel, stride, before, dilation, groups):
        return Aval(_weight_shape(x, y, kernel, groups), x.dtype)

    def work(avals, out):
        return _multiplications(avals[1], out)

    def vjp_x(g, y, x_aval, stride, before, dilation, groups):
        return convolution_input(y, g, x_aval.shape[2:], stride, before, dilation, groups)

    def vjp_y(g, x, y_aval, stride, before, dilation, groups):
        return convolution(x, g, None, y_aval.shape[2:], stride, before, dilation, groups)

    oracle = "retrograd.testing.references.conv.convolution_weight"

    def samples(r):
        yield (r(2, 3, 6), r(2, 4, 3)), {"kernel": 2, "stride": 2, "before": 1, "dilation": 2, "groups": 1}
        yield (
            (r(2, 4, 5, 4), r(2, 6, 3, 2)),
            {"kernel": (3, 2), "stride": (1, 1), "before": (1, 0), "dilation": (1, 2), "groups": 2},
        )
        yield (
            (r(2, 2, 5, 4), r(2, 2, 3, 2)),
            {"kernel": (3, 2), "stride": (1, 2), "before": (1, 0), "dilation": (1, 1), "groups": 2},
        )


def _weight_shape(x, y, kernel, groups):
    """Return the shape of the weight."""
    shape = (*y.shape[1:2], *(c // groups for c in x.shape[1:2]), *kernel)
    _check_shapes("convolution_weight", x.shape, shape, y.shape, groups)
    return shape


# ------------------------------------------------------------------------------------------------------ arguments


def per_dim(name, what, value, ndim, least):
    """Return one integer per spatial dimension, from an integer or a sequence; OperandValueError for a small one."""
    values = (value,) if isinstance(value, int) else tuple(value)
    values = values * ndim if len(values) == 1 else values
    if len(values) != ndim or any(v < least for v in values):
        small = any(v < least for v in values)
        words = f"{'non-positive' if least else 'negative'} {what} is not supported: " if small else ""
        raise OperandValueError(
            f"{name}: {words}{what} must be an integer from {least} on, or {ndim} of them, got {value}"
        )
    return values


def check_images(name, x, ndim):
    """Return whether images have a batch dimension; a ValueError if the number of dimensions is wrong."""
    if x.ndim not in (ndim + 1, ndim + 2):
        sizes = ("l", "h, w", "d, h, w")[ndim - 1]
        raise OperandValueError(
            f"{name}: Expected {ndim + 1}D (unbatched) or {ndim + 2}D (batched) input to {name}, but got input of "
            f"size: {list(x.shape)}; expected images (n, channels, {sizes}) or without n, got shape {x.shape}"
        )
    return x.ndim == ndim + 2


def _check_operands(name, x, weight, bias, channels, ndim, groups):
    """Raise unless input, weight and bias fit; `channels` is the number of input channels that the weight expects."""
    if weight.ndim != ndim + 2:
        raise ValueError(f"{name}: the weight must have {ndim + 2} dimensions, got shape {weight.shape}")
    check_images(name, x, ndim)
    if x.shape[-ndim - 1] != channels:
        raise ValueError(
            f"{name}: Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(x.shape)} to "
            f"have {channels} channels, but got {x.shape[-ndim - 1]} channels instead: "
            f"the input has {x.shape[-ndim - 1]} channels, the weight expects {channels}"
        )
    if groups < 1 or weight.shape[0] % groups:
        raise ValueError(f"{name}: the weight's {weight.shape[0]} channels do not divide into groups={groups}")
    same_dtype(name, (x, weight, bias))


def _check_bias(name, bias, channels):
    if bias is not None and bias.shape != (channels,):
        raise ValueError(
            f"{name}: expected bias to be 1-dimensional with {channels} elements, but got bias of size "
            f"{list(bias.shape)} instead: the bias must have shape ({channels},), one number per channel"
        )


def _check_size(name, size, what):
    if any(s < 1 for s in size):
        raise ValueError(f"{name}: {what} give an output of size {size}")


# ------------------------------------------------------------------------------------------------- convolutions


def _paddings(name, padding, kernel, stride, dilation):
    """Return the padding before and after, along each dimension."""
    ndim = len(stride)
    if padding == "valid":
        return (0,) * ndim, (0,) * ndim
    if padding == "same":
        if any(s != 1 for s in stride):
            raise ValueError(f"{name}: padding='same' needs stride 1, got {stride}")
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    if isinstance(padding, str):
        raise ValueError(f"{name}: padding must be 'same', 'valid' or integers, got {padding!r}")
    padding = per_dim(name, "padding", padding, ndim, 0)
    return padding, padding


@cache_plain
def _windows(name, sizes, kernel, stride, padding, dilation):
    """Return the params of `convolution` for images of these sizes."""
    ndim = len(sizes)
    stride, dilation = (per_dim(name, *p, ndim, 1) for p in (("stride", stride), ("dilation", dilation)))
    before, after = _paddings(name, padding, kernel, stride, dilation)
    extent = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    padded = tuple(s + b + a for s, b, a in zip(sizes, before, after, strict=True))
    size = tuple((w - e) // s + 1 for w, e, s in zip(padded, extent, stride, strict=True))
    _check_size(
        name,
        size,
        f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
        f"({' x '.join(map(str, extent))}). Kernel size can't be greater than actual input size: nothing is left: "
        f"padded "
        f"images of size {padded} and a kernel that spans {extent}",
    )
    return size, stride, before, dilation


def _convolve(name, ndim, x, weight, bias, stride, padding, dilation, groups):
    _check_operands(name, x, weight, bias, weight.shape[1] * groups if weight.ndim > 1 else 0, ndim, groups)
    _check_bias(name, bias, weight.shape[0])
    padding = tuple(padding) if type(padding) is list else padding
    windows = _windows(name, x.shape[-ndim:], weight.shape[2:], stride, padding, dilation)
    if x.ndim == ndim + 1:
        return squeeze(convolution(unsqueeze(x, 0), weight, bias, *windows, groups), 0)
    return convolution(x, weight, bias, *windows, groups)


def _convolve_transposed(name, ndim, x, weight, bias, stride, padding, output_padding, groups, dilation):
    channels = weight.shape[1] * groups if weight.ndim > 1 else 0
    _check_operands(name, x, weight, bias, weight.shape[0], ndim, groups)
    _check_bias(name, bias, channels)
    stride, dilation = (per_dim(name, *p, ndim, 1) for p in (("stride", stride), ("dilation", dilation)))
    before, extra = (per_dim(name, *p, ndim, 0) for p in (("padding", padding), ("output_padding", output_padding)))
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise ValueError(
            f"{name}: output_padding must be less than stride or dilation, got {extra}, {stride} and {dilation}"
        )
    per = zip(x.shape[-ndim:], stride, before, dilation, weight.shape[2:], extra, strict=True)
    size = tuple((n - 1) * s - 2 * b + d * (k - 1) + 1 + e for n, s, b, d, k, e in per)
    images = f"images of size {x.shape[-ndim:]}, kernel {weight.shape[2:]} and padding {before}"
    _check_size(name, size, f"nothing is left: {images}")
    given = {"size": size, "stride": stride, "before": before, "dilation": dilation, "groups": groups}
    batch = unsqueeze(x, 0) if x.ndim == ndim + 1 else x
    out = convolution_input(batch, weight, **given)
    out = out if bias is None else out + reshape(bias, (channels, *(1,) * ndim))
    return squeeze(out, 0) if x.ndim == ndim + 1 else out


_CONV = """Convolution of images with {n} spatial dimensions: (n, c, *sizes) to (n, o, *size).

    weight: (o, c / groups, *kernel); the kernel is not flipped.  padding: zeros on both sides, one integer or one per
    dimension; "same" preserves the size, "valid" is no padding.  groups: the number of groups of input and output
    channels that are convolved separately.  A single image has no dimension n.  Complex values are supported.

    {example}
    """

_CONV_EXAMPLES = {
    1: """>>> import retrograd as rg
    >>> rg.conv1d(rg.tensor([[[1.0, 2.0, 4.0]]]), rg.tensor([[[-1.0, 1.0]]])).tolist()
    [[[1.0, 2.0]]]""",
    2: """>>> import retrograd as rg
    >>> rg.conv2d(rg.ones(8, 3, 32, 32), rg.ones(16, 3, 5, 5), stride=2, padding=2).shape
    (8, 16, 16, 16)""",
    3: """>>> import retrograd as rg
    >>> rg.conv3d(rg.ones(1, 4, 4, 4), rg.ones(2, 1, 3, 3, 3), padding="same").shape
    (2, 4, 4, 4)""",
}


def _shapes(ndim, *lead):
    """Return a shape with small sizes."""
    return (*lead, *(4, 5, 3)[:ndim])


def _conv(ndim):
    """Make conv1d, conv2d or conv3d."""
    name = f"conv{ndim}d"

    @op(
        f"{name}(Tensor x, Tensor weight, Tensor? bias=None, int[] stride=1, any padding=0, int[] dilation=1, "
        "int groups=1) -> Tensor"
    )
    class conv(Composite, aliases=f"nn.functional.{name}", method=False):
        __doc__ = _CONV.format(n=ndim, example=_CONV_EXAMPLES[ndim])

        def compose(x, weight, bias, *, stride, padding, dilation, groups):
            return _convolve(name, ndim, x, weight, bias, stride, padding, dilation, groups)

        oracle = f"retrograd.testing.references.conv.{name}"

        def samples(r):
            small = (3, 2, 2)[:ndim]
            yield (r(*_shapes(ndim, 2, 2)), r(3, 2, *small), r(3)), {}
            yield (r(*_shapes(ndim, 2, 2)), r(2, 1, *small), None), {"padding": "same", "groups": 2}
            yield (r(*_shapes(ndim, 2)), r(2, 2, *small), r(2)), {"stride": 2, "padding": (1,) * ndim}
            yield (r(*_shapes(ndim, 1, 1)), r(2, 1, *small), None), {"padding": 1, "dilation": 2}

        def errors(r):
            x, weight = r(*_shapes(ndim, 2, 3)), r(2, 4, *(2,) * ndim)
            yield (x, weight, None), {}, ValueError, f"{name}: .*the input has 3 channels, the weight expects 4"
            yield (x, r(3, *(2,) * ndim), None), {}, ValueError, f"{name}: the weight must have {ndim + 2} dim"
            yield (r(3), weight, None), {}, ValueError, f"{name}: .*expected images"
            weight = r(2, 3, *(2,) * ndim)
            yield (x, weight, r(3)), {}, ValueError, rf"{name}: .*the bias must have shape \(2,\)"
            yield (x, weight, None), {"stride": 0}, ValueError, f"{name}: .*stride must be an integer from 1"
            yield (x, weight, None), {"padding": "full"}, ValueError, f"{name}: padding must be 'same'"
            yield (x, weight, None), {"padding": "same", "stride": 2}, ValueError, "needs stride 1"
            yield (x, r(2, 3, *(9,) * ndim), None), {}, ValueError, f"{name}: .*nothing is left"

    return conv


_TRANSPOSED = """Transposed convolution, the transpose of `conv{n}d`: (n, o, *sizes) to (n, c, *size).

    weight: (o, c / groups, *kernel).  The size is (sizes - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 +
    output_padding, which chooses among the sizes that `conv{n}d` maps to `sizes`.
    """


def _conv_transpose(ndim):
    """Make conv_transpose1d, conv_transpose2d or conv_transpose3d."""
    name = f"conv_transpose{ndim}d"

    @op(
        f"{name}(Tensor x, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, "
        "int[] output_padding=0, int groups=1, int[] dilation=1) -> Tensor"
    )
    class conv_transpose(Composite, aliases=f"nn.functional.{name}", method=False):
        __doc__ = _TRANSPOSED.format(n=ndim)

        def compose(x, weight, bias, *, stride, padding, output_padding, groups, dilation):
            return _convolve_transposed(name, ndim, x, weight, bias, stride, padding, output_padding, groups, dilation)

        oracle = f"retrograd.testing.references.conv.{name}"

        def samples(r):
            small = (3, 2, 2)[:ndim]
            yield (r(*_shapes(ndim, 2, 2)), r(2, 3, *small), r(3)), {}
            yield (
                (r(*_shapes(ndim, 2, 2)), r(2, 1, *small), None),
                {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
            )
            yield (r(*_shapes(ndim, 2)), r(2, 2, *small), r(2)), {"dilation": 2, "stride": 3}

        def errors(r):
            x, weight = r(*_shapes(ndim, 2, 3)), r(3, 2, *(2,) * ndim)
            yield (x, r(4, 2, *(2,) * ndim), None), {}, ValueError, f"{name}: .*the input has 3 channels"
            yield (x, weight, None), {"output_padding": 1}, ValueError, f"{name}: output_padding must be less"
            yield (x, weight, None), {"padding": 9}, ValueError, f"{name}: .*nothing is left"

    return conv_transpose


conv1d, conv2d, conv3d = map(_conv, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose, (1, 2, 3))
