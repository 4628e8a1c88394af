"""Results that require grad and have zero gradient everywhere, such as the power of order 0 of a matrix."""

from retrograd.core import Internal, op, registry
from retrograd.ops.batching import broadcast_batch
from retrograd.ops.family import broadcast_dims


class Constant(Internal):
    """Base of operators that copy value: a function of x that is constant in it."""

    def impl(xp, value, x):
        return value.copy()

    def shape(value, x):
        return value

    def vjp_value(g):
        return g

    def jvp_x(t, out):
        return registry["zeros_like"](out)

    def dependence(i, out, value, x):
        return broadcast_dims(value.ndim, value.ndim) if i == 0 else {}

    def oracle(np, value, x):
        return value

    def samples(r):
        yield (r(3), r(2, 4)), {}
        yield (r(), r(2)), {}


@op("constant_in(Tensor value, Tensor x) -> Tensor")
class constant_in(Constant, linear="value"):
    """A copy of value, as a function of x that is constant in it."""

    def vjp_x(g, x_aval):
        return registry["zeros"](x_aval.shape, dtype=x_aval.dtype)

    def batch(batched, n, value, x):
        return constant_in(value if batched[0] else broadcast_batch(value, n), x)


@op("constant_without_gradient(Tensor value, Tensor x) -> Tensor")
class constant_without_gradient(Constant, linear="value"):
    """A copy of value that requires grad where x does; no gradient flows to x, not even zeros, which turn NaN into NaN.

    So it is with PyTorch's norm of order 0 and the residuals of its `lstsq`.
    """

    def vjp_x(g):
        return None

    def batch(batched, n, value, x):
        return constant_without_gradient(value if batched[0] else broadcast_batch(value, n), x)
