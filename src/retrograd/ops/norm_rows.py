"""Fused normalization of rows with weights and bias; forward and backward take one pass over memory each.

With y = (x - mean) s and s = 1 / sqrt(variance + eps), the Jacobian of y is symmetric: J v = s (v - mean(v) - y mean(v
y)).  Without `center` the mean of x counts as 0, and mean(v) is not subtracted.
"""

import math

from retrograd.core import Aval, Internal, call, op, registry
from retrograd.core.dispatch import call_fast
from retrograd.ops.batching import batch_all
from retrograd.ops.family import kernels_support
from retrograd.ops.pointwise import rsqrt
from retrograd.ops.reduce import mean
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import reshape

# ------------------------------------------------------------------------------------------- shapes


def _check(name, x, weight=None, *others):
    """Check rows x (..., m, n), and weights (..., n), whose batch dimensions, if any, are those of x."""
    if not kernels_support(x, weight, *others):
        raise TypeError(
            f"{name}: expected float32 or float64, all alike, got {x.dtype}"
            f"{'' if weight is None else f' and {weight.dtype}'}"
        )
    if weight is None:
        return
    lead = weight.ndim - 1
    if not 0 <= lead <= x.ndim - 2 or weight.shape != (*x.shape[:lead], *x.shape[-1:]):
        raise ValueError(f"{name}: weights {weight.shape} do not fit rows of {x.shape}")


def _per_row(weight, x):
    """Weights unsqueezed to broadcast against rows."""
    return reshape(weight, (*weight.shape[:-1], *(1,) * (x.ndim - weight.ndim), weight.shape[-1]))


def _sum_over_rows(x, weight):
    """The sum over the rows that share weights."""
    return sum_over(x, tuple(range(weight.ndim - 1, x.ndim - 1)))


# --------------------------------------------------------------------------------------- parts of derivatives


def _standardize(x, eps, center):
    """y and s, from an operator whose derivatives are composed of them, so that high orders stay cheap."""
    rows = reshape(x, (1, math.prod(x.shape[:-1]), x.shape[-1]))
    y, _, variance = registry["channel_standardize"](rows, eps=eps, center=center)
    return reshape(y, x.shape), reshape(rsqrt(variance + eps), (*x.shape[:-1], 1))


def _jacobian_product(v, y, s, center):
    """The Jacobian times v, J v."""
    projected = v - y * mean(v * y, -1, keepdim=True)
    return s * (projected - mean(v, -1, keepdim=True) if center else projected)


def _jacobian_product_jvp(t, v, y, s, center):
    """The derivative of J v along t: -s / n ((y t) J v + (v y) J t + y (t J v))."""
    jv = _jacobian_product(v, y, s, center)
    means = mean(y * t, -1, keepdim=True), mean(v * y, -1, keepdim=True), mean(jv * t, -1, keepdim=True)
    return -s * (means[0] * jv + means[1] * _jacobian_product(t, y, s, center) + y * means[2])


def _sum_gradients(a, b):
    return b if a is None else a if b is None else a + b


# ------------------------------------------------------------------------------------------- the operators


@op("norm_rows(Tensor[] tensors, *, float eps, bool center=True) -> Tensor")
class norm_rows(Internal, snapshots="tensors", memory="rows"):
    """(x - mean) / sqrt(variance + eps) * weight + bias, of tensors x (..., m, n), weight and bias, or of x alone."""

    def impl(xp, x, *weights, eps, center):
        _check("norm_rows", x, *weights)
        return xp.norm_rows(x, *weights or xp.unit_weights(x.shape[-1], x.dtype), eps, center)

    def shape(x, *weights, eps, center):
        _check("norm_rows", x, *weights)
        return Aval(x.shape, x.dtype)

    def vjp_tensors(g, tensors, eps, center):
        x, *weights = tensors
        weight = weights[0] if weights else registry["ones"](x.shape[-1:], dtype=x.dtype)
        return list(norm_rows_grad([g, x, weight], eps=eps, center=center))[: len(tensors)]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """The tangent: J times that of x, and linear in the weights."""
        y, s = _standardize(primals[0], **params)
        if len(primals) == 1:
            return _jacobian_product(tangents[0], y, s, params["center"])
        (x, weight, _), (t_x, t_weight, t_bias) = primals, tangents
        total = None if t_x is None else _jacobian_product(t_x, y, s, params["center"]) * _per_row(weight, x)
        total = total if t_weight is None else _sum_gradients(total, y * _per_row(t_weight, x))
        return total if t_bias is None else _sum_gradients(total, registry["expand"](_per_row(t_bias, x), x.shape))

    def dependence(i, out, x, *weights, eps, center):
        if i == 0:
            return {d: d for d in range(x.ndim - 1)}
        return {0: 0} if weights[0].ndim > 1 else {}

    def batch(batched, n, *tensors, **params):
        # Where weights have more than one dimension, the first is the batch dimension.
        if any(batched[1:]) or (len(tensors) > 1 and tensors[1].ndim > 1):
            tensors = batch_all(tensors, batched, n)
        return norm_rows(list(tensors), **params)

    oracle = "retrograd.testing.references.normalize.norm_rows"

    def samples(r):
        yield (r(3, 4), r(4), r(4)), {"eps": 0.1}
        yield (r(2, 3, 4), r(2, 4), r(2, 4)), {"eps": 1e-5, "center": False}
        yield (r(3, 4),), {"eps": 0.1}

    def errors(r):
        yield (r(3, 4), r(3), r(4)), {"eps": 0.1}, ValueError, r"weights \(3,\) do not fit"


@op(
    "norm_rows_grad(Tensor[] tensors, *, float eps, bool center=True) "
    "-> (Tensor dx, Tensor dweight, Tensor dbias)"
)
class norm_rows_grad(Internal):
    """The backward pass of `norm_rows`, of the tensors g (cotangent), x and weight."""

    def impl(xp, g, x, weight, *, eps, center):
        _check("norm_rows_grad", x, weight, g)
        return xp.norm_rows_grad(g, x, weight, eps, center)

    def shape(g, x, weight, *, eps, center):
        _check("norm_rows_grad", x, weight, g)
        if g.shape != x.shape:
            raise ValueError(f"norm_rows_grad: rows {x.shape} and cotangents {g.shape} differ")
        return x, weight, weight

    def vjp_tensors(g, tensors, eps, center):
        (a, b, c), (h, x, weight) = g, tensors
        y, s = _standardize(x, eps, center)
        a_back, b, c, w = _jacobian_product(a, y, s, center), _per_row(b, x), _per_row(c, x), _per_row(weight, x)
        of_h = w * a_back + b * y + c
        of_x = _jacobian_product_jvp(a, h * w, y, s, center) + _jacobian_product(h * b, y, s, center)
        return [of_h, of_x, _sum_over_rows(h * a_back, weight)]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """The tangents by the product rule; those of weight and bias are summed over rows."""
        (h, x, weight), (t_h, t_x, t_weight) = primals, tangents
        w, center = _per_row(weight, x), params["center"]
        y, s = _standardize(x, **params)
        t_unit = None if t_h is None else t_h * w
        t_unit = t_unit if t_weight is None else _sum_gradients(t_unit, h * _per_row(t_weight, x))
        dx = None if t_unit is None else _jacobian_product(t_unit, y, s, center)
        each = None if t_h is None else t_h * y
        if t_x is not None:
            dx = _sum_gradients(dx, _jacobian_product_jvp(t_x, h * w, y, s, center))
            each = _sum_gradients(each, h * _jacobian_product(t_x, y, s, center))
        zeros = registry["zeros_like"](weight)
        return (dx, *[zeros if part is None else _sum_over_rows(part, weight) for part in (each, t_h)])

    def batch(batched, n, *tensors, **params):
        return norm_rows_grad(list(batch_all(tensors, batched, n)), **params)

    oracle = "retrograd.testing.references.normalize.norm_rows_grad"

    def samples(r):
        yield (r(3, 4), r(3, 4), r(4)), {"eps": 0.1}
        yield (r(2, 3, 4), r(2, 3, 4), r(2, 4)), {"eps": 0.2, "center": False}


def norm_trailing_dims(x, ndim, weight, bias, eps, center=True):
    """Rows of the last `ndim` dimensions of x, standardized, times weight, plus bias; either may be None."""
    shape = x.shape
    count = math.prod(shape[len(shape) - ndim :])
    rows = x if ndim == 1 < len(shape) else reshape(x, (math.prod(shape[: len(shape) - ndim]), count))
    weights: tuple = ()
    if weight is not None or bias is not None:
        weights = _as_row(weight, count, "ones", x.dtype), _as_row(bias, count, "zeros", x.dtype)
    out = call(norm_rows, (rows, *weights), {"eps": eps, "center": center})
    return out if rows is x else reshape(out, shape)


def _as_row(tensor, count, absent, dtype):
    """Return a weight or bias as a vector; None as ones or zeros."""
    if tensor is None:
        return call_fast(registry[absent], (), {"size": (count,), "dtype": dtype})
    return tensor if tensor.ndim == 1 else reshape(tensor, (count,))
