"""The regularized incomplete beta function."""

from retrograd.core import op, xp
from retrograd.ops.gamma import _cast_parameter as cast_parameter
from retrograd.ops.gamma import betaln
from retrograd.ops.parameter_slopes import betainc_by_shapes
from retrograd.ops.pointwise import exp, log1p
from retrograd.ops.special import PROBABILITIES, Special, xlogy


@op("special.betainc(Tensor a, Tensor b, Tensor x) -> Tensor")
class betainc(Special):
    """Regularized incomplete beta function: the beta distribution function of shapes a and b at x.

    Its derivatives by a and b are series, to about 12 digits; they are NaN where a + b is above 2000.
    """

    impl = xp.betainc

    def vjp_a(g, a, b, x):
        return g * betainc_by_shapes(cast_parameter(x, a), cast_parameter(x, b), x)[0]

    def vjp_b(g, a, b, x):
        return g * betainc_by_shapes(cast_parameter(x, a), cast_parameter(x, b), x)[1]

    def vjp_x(g, a, b, x):
        log_beta = betaln(cast_parameter(x, a), cast_parameter(x, b))
        return g * exp(xlogy(a - 1, x) + (b - 1) * log1p(-x) - log_beta)

    oracle = "retrograd.testing.references.gamma.betainc"

    def samples(r):
        yield (r(3, within=(0.5, 4.0)), r(2, 1, within=(0.5, 4.0)), r(2, 3, within=PROBABILITIES)), {}
        yield (r.ints(4, (3,)) + 1, r.ints(4, (2, 1)) + 1, r(2, 3, within=PROBABILITIES)), {}
        yield (2.5, 0.5, r(3, within=PROBABILITIES)), {}
