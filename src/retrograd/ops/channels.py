"""Per-channel operators on images (n, c, l): normalization, sums over n and l, affine combinations."""

from retrograd.core import Aval, Internal, Tensor, op
from retrograd.core import dtype as dtypes
from retrograd.ops.batching import batch_all
from retrograd.ops.family import check_real, numel
from retrograd.ops.pointwise import rsqrt
from retrograd.ops.reduce import mean as mean_over
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import expand, movedim, reshape


@op("channel_standardize(Tensor x, *, float eps, bool center=True) -> (Tensor out, Tensor mean, Tensor variance)")
class channel_standardize(Internal):
    """(x - mean) / sqrt(variance + eps), x (n, c, l), with the mean and the variance of each channel over n and l.

    center=False: the mean is taken to be 0, and the variance is the mean of the squares.
    With s = 1 / sqrt(variance + eps) and y the result, the Jacobian is s (1 - 1/N - y y^T / N): symmetric.
    """

    def impl(xp, x, *, eps, center):
        _check_channels("channel_standardize", x)
        return _compute_in_float32(x, lambda x: _standardize(xp, x, eps, center))

    def shape(x, *, eps, center):
        _check_channels("channel_standardize", x)
        each = Aval(x.shape[1:2], x.dtype)
        return x, each, each

    def vjp_x(g, x, mean, variance, eps, center):  # not of the result, which an activation may overwrite
        g, of_mean, of_variance = g
        count, scale, middle = _count(x), rsqrt(variance + eps), mean if center else None
        slope = (of_variance * 2 - scale * scale * scale * channel_dot(g, x, middle)) / count
        level = (of_mean - scale * sum_over(g, (0, 2))) / count if center else None
        return channel_mix(g, scale, level, x, slope, middle)

    def jvp_x(t, out, eps, center):
        y, _, variance = out
        count, scale = _count(y), rsqrt(variance + eps)
        along, shift = channel_dot(t, y) / count, mean_over(t, (0, 2))
        t_out = channel_mix(t, scale, -scale * shift if center else None, y, -scale * along)
        return t_out, shift if center else shift * 0, 2 * along / scale

    def dependence(i, out, x, *, eps, center):
        return {1: 1 if out.ndim == 3 else 0}

    def batch(batched, n, x, *, eps, center):
        return _unfold_statistics(channel_standardize(_fold_channels(x), eps=eps, center=center), x.shape)

    oracle = "retrograd.testing.references.normalize.channel_standardize"

    def samples(r):
        yield (r(3, 2, 4),), {"eps": 0.1}
        yield (r(3, 2, 1),), {"eps": 1e-5}
        yield (r(1, 2, 4),), {"eps": 0.1, "center": False}

    def errors(r):
        yield (r(3, 4),), {"eps": 0.1}, ValueError, r"channel_standardize: expected shape \(n, c, l\), got \(3, 4\)"


def _fold_channels(x):
    """Fold the channels of all examples, (examples, n, c, l), into one channel dimension; also (examples, c)."""
    if x is None:
        return None
    if x.ndim == 2:
        return reshape(x, (numel(x.shape),))
    examples, n, c, size = x.shape
    return reshape(movedim(x, 0, 1), (n, examples * c, size))


def _unfold_channels(x, shape):
    """Return channels that `_fold_channels` folded as those of examples, of this shape (examples, n, c, l)."""
    examples, n, c, size = shape
    return movedim(reshape(x, (n, examples, c, size)), 1, 0)


def _unfold_statistics(found, shape):
    """Unfold channels, their means and variances for examples of this shape (examples, n, c, l)."""
    out, *statistics = found
    return _unfold_channels(out, shape), *[reshape(each, (shape[0], shape[2])) for each in statistics]


def _compute_in_float32(x, work):
    """Return work(x), computed in float32 if x is float16."""
    if x.dtype != dtypes.float16:
        return work(x)
    return tuple(a.astype(x.dtype) for a in work(x.astype(dtypes.float32)))


def _standardize(xp, x, eps, center):
    if center and x.shape[0] == 1:
        out, average, variance = xp.standardize_rows(x[0], x.dtype.type(eps))
        return out[None], average, variance
    zero = xp.zeros(x.shape[1], x.dtype)
    average, variance = xp.channel_moments(x) if center else (zero, xp.channel_dots(x, x, zero) / _count(x))
    return xp.channel_shift(x, average, 1 / xp.sqrt(variance + eps), zero), average, variance


def _count(x):
    """Return the number of elements per channel; 1 if there are none, to avoid division by 0."""
    return max(x.shape[0] * x.shape[2], 1)


def _check_channels(name, x):
    check_real(name, x)
    if x.ndim != 3:
        raise ValueError(f"{name}: expected shape (n, c, l), got {x.shape}")


def _check_per_channel(name, x, *each):
    _check_channels(name, x)
    for e in each:
        if e is not None and e.shape != x.shape[1:2]:
            raise ValueError(f"{name}: shape {e.shape} does not fit the channels of {x.shape}")


@op("channel_dot(Tensor x, Tensor y, Tensor? a=None) -> Tensor")
class channel_dot(Internal):
    """The sums of x * (y - a) over n and l, for x and y (n, c, l) and a (c,)."""

    def impl(xp, x, y, a):
        _check_pair("channel_dot", x, y, a)
        if x.dtype == dtypes.float16:
            return xp.einsum("ncl,ncl->c", x, y if a is None else y - a[:, None])
        return xp.channel_dots(x, y, xp.zeros(x.shape[1], x.dtype) if a is None else a)

    def shape(x, y, a):
        _check_pair("channel_dot", x, y, a)
        return Aval(x.shape[1:2], x.dtype)

    def vjp_x(g, y, a):
        return channel_mix(y, g, None if a is None else -a * g)

    def vjp_y(g, x):
        return channel_mix(x, g)

    def vjp_a(g, x):
        return -g * sum_over(x, (0, 2))

    def jvp_x(t, y, a):
        return channel_dot(t, y, a)

    def jvp_y(t, x):
        return channel_dot(x, t)

    def jvp_a(t, x):
        return -t * sum_over(x, (0, 2))

    def dependence(i, out, x, y, a):
        return {1: 0} if i < 2 else {0: 0}

    def batch(batched, n, *tensors):
        x, y, a = batch_all(tensors, batched, n)
        return reshape(channel_dot(*map(_fold_channels, (x, y, a))), (n, x.shape[2]))

    oracle = "retrograd.testing.references.normalize.channel_dot"

    def samples(r):
        yield (r(3, 2, 4), r(3, 2, 4), None), {}
        yield (r(3, 2, 1), r(3, 2, 1), r(2)), {}

    def errors(r):
        yield (r(3, 2, 4), r(3, 2, 4), r(3)), {}, ValueError, r"channel_dot: shape \(3,\) does not fit"


def _check_pair(name, x, y, *each):
    _check_per_channel(name, x, *each)
    if x.shape != y.shape:
        raise ValueError(f"{name}: shapes {x.shape} and {y.shape} differ")


@op("channel_mix(Tensor x, Tensor p, Tensor? q=None, Tensor? y=None, Tensor? r=None, Tensor? a=None) -> Tensor")
class channel_mix(Internal, snapshots="p r", memory="channels"):
    """x * p + q + (y - a) * r: x and y are (n, c, l), the others (c,), one value per channel."""

    def impl(xp, x, p, q, y, r, a):
        _check_per_channel("channel_mix", x, p, q, r, a)
        if x.dtype != dtypes.float16:
            zero = xp.zeros(x.shape[1], x.dtype)
            q = zero if q is None else q
            if y is None:
                return xp.channel_shift(x, zero, p, q)
            return xp.channel_mix(x, p, q, y, r, zero if a is None else a)
        out = x * p[:, None]
        if y is not None:
            out += (y if a is None else y - a[:, None]) * r[:, None]
        if q is not None:
            out += q[:, None]
        return out

    def shape(x, p, q, y, r, a):
        _check_per_channel("channel_mix", x, p, q, r, a)
        if y is not None:
            _check_pair("channel_mix", x, y)
        return x

    def vjp_x(g, p):
        return channel_mix(g, p)

    def vjp_p(g, x):
        return channel_dot(g, x)

    def vjp_q(g):
        return sum_over(g, (0, 2))

    def vjp_y(g, r):
        return channel_mix(g, r)

    def vjp_r(g, y, a):
        return channel_dot(g, y, a)

    def vjp_a(g, r: Tensor):
        return -r * sum_over(g, (0, 2))

    def jvp_x(t, p):
        return channel_mix(t, p)

    def jvp_p(t, x):
        return channel_mix(x, t)

    def jvp_q(t, x):
        return expand(reshape(t, (-1, 1)), x.shape) * 1

    def jvp_y(t, r):
        return channel_mix(t, r)

    def jvp_r(t, y, a):
        return channel_mix(y, t, None if a is None else -a * t)

    def jvp_a(t, x, r: Tensor):
        return expand(reshape(-t * r, (-1, 1)), x.shape) * 1

    def dependence(i, out, x, p, q, y, r, a):
        return {0: 0, 1: 1, 2: 2} if i in (0, 3) else {0: 1}

    def batch(batched, n, x, p, q, y, r, a):
        if not (batched[1] or batched[2] or batched[4] or batched[5]):  # the examples share all channel values
            x, y = batch_all((x, y), (batched[0], batched[3]), n)
            rows = [b if b is None else reshape(b, (n * b.shape[1], *b.shape[2:])) for b in (x, y)]
            return reshape(channel_mix(rows[0], p, q, rows[1], r, a), x.shape)
        args = batch_all((x, p, q, y, r, a), batched, n)
        return _unfold_channels(channel_mix(*map(_fold_channels, args)), args[0].shape)

    oracle = "retrograd.testing.references.normalize.channel_mix"

    def samples(r):
        yield (r(3, 2, 4), r(2), None, None, None, None), {}
        yield (r(3, 2, 4), r(2), r(2), None, None, None), {}
        yield (r(3, 2, 1), r(2), r(2), r(3, 2, 1), r(2), None), {}
        yield (r(3, 2, 4), r(2), None, r(3, 2, 4), r(2), r(2)), {}

    def errors(r):
        yield (r(3, 2, 4), r(3), None, None, None, None), {}, ValueError, r"channel_mix: shape \(3,\) does not fit"


@op("norm_channels(Tensor[] tensors, *, float eps) -> (Tensor out, Tensor mean, Tensor variance)")
class norm_channels(Internal, snapshots="tensors", memory="channels"):
    """(x - mean) / sqrt(variance + eps) * weight + bias; tensors are x (n, c, l), the weight and the bias, (c,).

    The mean and the variance (over n * l) are per channel.  With s = 1 / sqrt(variance + eps) and d = x - mean, the
    cotangent of x is s * weight * (g - sum(g) / N - d s^2 sum(g d) / N).
    """

    def impl(xp, x, weight, bias, *, eps):
        _check_per_channel("norm_channels", x, weight, bias)

        def normed(x):
            average, variance = xp.channel_moments(x)
            scale = (weight / xp.sqrt(variance + eps)).astype(x.dtype)
            return xp.channel_shift(x, average, scale, bias.astype(x.dtype)), average, variance

        return _compute_in_float32(x, normed)

    def shape(x, weight, bias, *, eps):
        _check_per_channel("norm_channels", x, weight, bias)
        each = Aval(x.shape[1:2], x.dtype)
        return x, each, each

    def vjp_tensors(g, tensors, mean, variance, eps):
        (g, of_mean, of_variance), (x, weight, _) = g, tensors
        count, s = _count(x), rsqrt(variance + eps)
        total, along = sum_over(g, (0, 2)), channel_dot(g, x, mean) * s
        scale = s * weight
        slope = (of_variance * 2 - scale * s * along) / count
        return [channel_mix(g, scale, (of_mean - scale * total) / count, x, slope, mean), along, total]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """With respect to x as in the cotangents; linear in the weight and the bias."""
        (x, weight, bias), (t_x, t_weight, t_bias), (_, average, variance) = primals, tangents, out
        t_weight, t_bias = (a * 0 if t is None else t for t, a in ((t_weight, weight), (t_bias, bias)))
        s, count = rsqrt(variance + params["eps"]), _count(x)
        if t_x is None:
            return channel_mix(x, s * t_weight, t_bias - s * t_weight * average), average * 0, average * 0
        shift, along = mean_over(t_x, (0, 2)), channel_dot(t_x, x, average) / count
        scale = s * weight
        slope = s * t_weight - scale * s * s * along
        return channel_mix(t_x, scale, t_bias - scale * shift, x, slope, average), shift, 2 * along

    def dependence(i, out, x, weight, bias, *, eps):
        if i == 0:
            return {1: 1 if out.ndim == 3 else 0}
        return {0: 1} if out.ndim == 3 else {}

    def batch(batched, n, *tensors, eps):
        tensors = batch_all(tensors, batched, n)
        return _unfold_statistics(norm_channels([_fold_channels(a) for a in tensors], eps=eps), tensors[0].shape)

    oracle = "retrograd.testing.references.normalize.norm_channels"

    def samples(r):
        yield (r(3, 2, 4), r(2), r(2)), {"eps": 0.1}
        yield (r(3, 2, 1), r(2), r(2)), {"eps": 1e-5}

    def errors(r):
        yield (r(3, 2, 4), r(3), r(2)), {"eps": 0.1}, ValueError, r"norm_channels: shape \(3,\) does not fit"
