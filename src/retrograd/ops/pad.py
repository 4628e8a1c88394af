"""Padding: constant, reflect, replicate, circular."""

from retrograd.backend.type_info import check_number_fits
from retrograd.core import Aval, op, registry
from retrograd.ops.family import Composite, CoreDims
from retrograd.ops.interpolate import resample


def margins(name, pad, shape):
    """(before, after) for each dimension, from PyTorch's list, which starts with the last dimension."""
    if len(pad) % 2 or len(pad) > 2 * len(shape):
        raise ValueError(
            f"{name}: pad must hold a number before and after for each of the last dimensions, of {len(shape)} at "
            f"most, got {pad}"
        )
    pairs = [(0, 0)] * (len(shape) - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    for dim, (size, (before, after)) in enumerate(zip(shape, pairs, strict=True)):
        cropped = before < 0 or after < 0
        if cropped and (min(before, 0) + min(after, 0) + size < 0 or size + before + after < 0):
            raise ValueError(f"{name}: dimension {dim} has size {size}, and can't be padded by {before} and {after}")
    return pairs


@op("constant_pad_nd(Tensor x, int[] pad, number value=0) -> Tensor")
class constant_pad_nd(CoreDims, method=False, cores=(0,), elements="moved", memory="images"):
    """x padded with `value`, from the last dimension on; negative amounts crop.

    >>> import retrograd as rg
    >>> rg.constant_pad_nd(rg.tensor([1.0, 2.0]), (1, -1), 5.0).tolist()
    [5.0, 1.0]
    """

    def impl(xp, x, *, pad, value):
        check_number_fits("constant_pad_nd", value, x.dtype)
        return xp.pad_constant(x, margins("constant_pad_nd", pad, x.shape), value)

    def shape(x, *, pad, value):
        pairs = margins("constant_pad_nd", pad, x.shape)
        return Aval(tuple(n + b + a for n, (b, a) in zip(x.shape, pairs, strict=True)), x.dtype)

    def vjp_x(g, pad):
        return constant_pad_nd(g, tuple(-p for p in pad))  # cropped elements get cotangent 0

    def jvp_x(t, pad):
        return constant_pad_nd(t, pad)

    def dependence(i, out, x, *, pad, value):
        pairs = margins("constant_pad_nd", pad, x.shape)
        return {d: d for d, amounts in enumerate(pairs) if not any(amounts)}

    oracle = "retrograd.testing.references.pad.constant_pad_nd"

    def samples(r):
        yield (r(3, 2),), {"pad": (1, 2)}
        yield (r(2, 4, 3),), {"pad": (1, -1, -2, 1), "value": 2.5}
        yield (r(4),), {"pad": (-1, -2)}

    def errors(r):
        yield (r(3),), {"pad": (1,)}, ValueError, "constant_pad_nd: pad must hold a number before and after"
        yield (r(3),), {"pad": (-2, -2)}, ValueError, "constant_pad_nd: dimension 0 has size 3, and can't be padded by"
        yield (r(3),), {"pad": (-4, 4)}, ValueError, "constant_pad_nd: dimension 0 has size 3, and can't be padded by"


# The largest amount of padding that each mode allows for a dimension of a given size.
_REACH = {"reflect": lambda size: size - 1, "circular": lambda size: size, "replicate": lambda size: size and 1 << 62}


@op("pad(Tensor x, int[] pad, str mode='constant', number? value=None) -> Tensor")
class pad(Composite, home="nn.functional"):
    """x padded before and after, from the last dimension on, by `pad` elements; negative amounts crop.

    mode: "constant", with `value`; "reflect", mirrored at the boundary element; "replicate", the boundary element;
    "circular", elements from the opposite end.

    >>> import retrograd as rg
    >>> x = rg.tensor([[1.0, 2.0, 3.0]])
    >>> [rg.nn.functional.pad(x, (2, 1), mode).tolist()[0] for mode in ("constant", "reflect")]
    [[0.0, 0.0, 1.0, 2.0, 3.0, 0.0], [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]
    """

    def compose(x, *, pad, mode, value):
        if mode == "constant":
            margins("pad", pad, x.shape)
            return constant_pad_nd(x, pad, 0 if value is None else value)
        _check_mode(mode, value)
        if any(p < 0 for p in pad) and mode != "replicate":  # replicate repeats the last element even if it is cropped
            margins("pad", pad, x.shape)
            x, pad = constant_pad_nd(x, tuple(min(p, 0) for p in pad)), tuple(max(p, 0) for p in pad)
        pairs = margins("pad", pad, x.shape)
        if not any(map(any, pairs)):
            return registry["clone"](x)
        for dim, (before, after) in enumerate(pairs):
            if before or after:
                x = _pad_dim(x, dim, before, after, mode)
        return x

    oracle = "retrograd.testing.references.pad.pad_array"

    def samples(r):
        yield (r(2, 3),), {"pad": (1, 2)}
        yield (r(2, 3),), {"pad": (1, -1, 0, 2), "value": 1.5}
        yield (r(1, 2, 3, 4),), {"pad": (2, 1, 1, 2), "mode": "reflect"}
        yield (r(2, 3, 4),), {"pad": (1, 3), "mode": "replicate"}
        yield (r(2, 3, 4),), {"pad": (-4, 6, 2, -1), "mode": "replicate"}
        yield (r(1, 2, 3, 4),), {"pad": (1, -1, 3, 0), "mode": "circular"}

    def errors(r):
        yield (r(2, 3),), {"pad": (3, 0), "mode": "reflect"}, ValueError, "pad: .* at most 2"
        yield (r(2, 3),), {"pad": (0, 4), "mode": "circular"}, ValueError, "pad: .* at most 3"
        yield (r(2, 3),), {"pad": (0, 1), "mode": "mirror"}, ValueError, "pad: mode must be constant"
        yield (r(2, 3),), {"pad": (0, 1), "mode": "reflect", "value": 1.0}, ValueError, "takes no value"
        yield (r(3),), {"pad": (1, 1, 1, 1)}, ValueError, "pad: pad must hold"


def _check_mode(mode, value):
    if mode not in _REACH:
        raise ValueError(f"pad: mode must be constant, {', '.join(_REACH)}, got {mode!r}")
    if value is not None and value != 0:
        raise ValueError(f"pad: mode {mode!r} takes no value, got {value}")


def _pad_dim(x, dim, before, after, mode):
    size = x.shape[dim]
    if max(before, after) > _REACH[mode](size):
        raise ValueError(
            f"pad: Padding size should be less than the corresponding input dimension: mode {mode!r} can pad "
            f"dimension {dim} of shape {x.shape} by at most {max(_REACH[mode](size), 0)}, got {before} and {after}"
        )
    return resample(x, dim=dim, how=(mode, size, before + size + after, before))
