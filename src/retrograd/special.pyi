# Made from the registry of operators by tools/stubs.py: change those, then run `make stubs`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd import return_types as return_types
from retrograd.core.tensor_class import Tensor as Tensor

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

def airy_ai(x: _Operand) -> Tensor:
    """Airy's function Ai, a solution of y'' = x y: it falls for positive x and swings for negative."""

def bessel_j0(x: _Operand) -> Tensor:
    """The Bessel function of the first kind, of order 0."""

def bessel_j1(x: _Operand) -> Tensor:
    """The Bessel function of the first kind, of order 1."""

def bessel_y0(x: _Operand) -> Tensor:
    """The Bessel function of the second kind, of order 0: -inf at 0, NaN below."""

def bessel_y1(x: _Operand) -> Tensor:
    """The Bessel function of the second kind, of order 1: -inf at 0, NaN below."""

def beta(a: _Operand, b: _Operand) -> Tensor:
    """Beta function: gamma(a) gamma(b) / gamma(a + b)."""

def betainc(a: _Operand, b: _Operand, x: _Operand) -> Tensor:
    """Regularized incomplete beta function: the beta distribution function of shapes a and b at x."""

def betaln(a: _Operand, b: _Operand) -> Tensor:
    """Logarithm of |beta(a, b)|."""

def chebyshev_polynomial_t(x: _Operand, n: _Operand) -> Tensor:
    """The Chebyshev polynomial of the first kind: cos(n a) where x is cos(a)."""

def chebyshev_polynomial_u(x: _Operand, n: _Operand) -> Tensor:
    """The Chebyshev polynomial of the second kind: sin((n + 1) a) / sin(a) where x is cos(a)."""

def chebyshev_polynomial_v(x: _Operand, n: _Operand) -> Tensor:
    """The Chebyshev polynomial of the third kind: cos((n + 1/2) a) / cos(a / 2) where x is cos(a)."""

def chebyshev_polynomial_w(x: _Operand, n: _Operand) -> Tensor:
    """The Chebyshev polynomial of the fourth kind: sin((n + 1/2) a) / sin(a / 2) where x is cos(a)."""

def digamma(x: _Operand) -> Tensor:
    """Derivative of `lgamma`; NaN at the negative integers, infinite at 0."""

def entr(x: _Operand) -> Tensor:
    """The elementwise entropy -x log(x); 0 at 0, -inf for negative x."""

def erf(x: _Operand) -> Tensor:
    """The error function of x."""

def erfc(x: _Operand) -> Tensor:
    """The complementary error function 1 - erf(x), accurate where erf(x) is near 1."""

def erfcinv(x: _Operand) -> Tensor:
    """The inverse of `erfc` on (0, 2); infinite at the ends, NaN outside."""

def erfcx(x: _Operand) -> Tensor:
    """The scaled complementary error function exp(x^2) erfc(x), which decays like 1 / x."""

def erfinv(x: _Operand) -> Tensor:
    """The inverse of `erf` on (-1, 1); infinite at the ends, NaN outside."""

def exp1(x: _Operand) -> Tensor:
    """The exponential integral E1, of exp(-t) / t over t from x to infinity; NaN for negative x."""

def exp2(x: _Operand) -> Tensor:
    """The power 2**x."""

def expi(x: _Operand) -> Tensor:
    """The exponential integral Ei, of exp(t) / t over t from -infinity to x, as principal value."""

def expit(x: _Operand) -> Tensor:
    """The logistic sigmoid 1 / (1 + exp(-x))."""

def expm1(x: _Operand) -> Tensor:
    """exp(x) - 1, accurate for small x."""

def expn(n: _int, x: _Operand) -> Tensor:
    """The exponential integral of order n >= 0, of exp(-x t) / t**n over t from 1 to infinity."""

def gamma(x: _Operand) -> Tensor:
    """Gamma function: (x - 1)! for the integers, NaN at the negative ones."""

def gammainc(a: _Operand, x: _Operand) -> Tensor:
    """Regularized lower incomplete gamma function: the gamma distribution function of shape a at x."""

def gammaincc(a: _Operand, x: _Operand) -> Tensor:
    """Regularized upper incomplete gamma function: 1 - igamma(a, x), accurate where that is small."""

def gammaln(x: _Operand) -> Tensor:
    """Logarithm of |gamma(x)|; infinite at 0 and the negative integers."""

def gammasgn(x: _Operand) -> Tensor:
    """Sign of gamma(x), -1 or 1; its derivative is 0."""

def hermite_polynomial_h(x: _Operand, n: _Operand) -> Tensor:
    """The physicists' Hermite polynomial: orthogonal with weight exp(-x^2)."""

def hermite_polynomial_he(x: _Operand, n: _Operand) -> Tensor:
    """The probabilists' Hermite polynomial: orthogonal with weight exp(-x^2 / 2)."""

def i0(x: _Operand) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""

def i0e(x: _Operand) -> Tensor:
    """exp(-|x|) times `i0`; its derivative at 0 is 0."""

def i1(x: _Operand) -> Tensor:
    """The modified Bessel function of the first kind, of order 1."""

def i1e(x: _Operand) -> Tensor:
    """exp(-|x|) times `i1`."""

def iv(v: _Operand, x: _Operand) -> Tensor:
    """The modified Bessel function of the first kind, of order v."""

def ive(v: _Operand, x: _Operand) -> Tensor:
    """exp(-|x|) times the modified Bessel function of the first kind, of order v."""

def j0(x: _Operand) -> Tensor:
    """The Bessel function of the first kind, of order 0."""

def j1(x: _Operand) -> Tensor:
    """The Bessel function of the first kind, of order 1."""

def jn(v: _Operand, x: _Operand) -> Tensor:
    """The Bessel function of the first kind, of order v."""

def jv(v: _Operand, x: _Operand) -> Tensor:
    """The Bessel function of the first kind, of order v."""

def k0(x: _Operand) -> Tensor:
    """The modified Bessel function of the second kind, of order 0: inf at 0, NaN below."""

def k0e(x: _Operand) -> Tensor:
    """exp(x) times `modified_bessel_k0`."""

def k1(x: _Operand) -> Tensor:
    """The modified Bessel function of the second kind, of order 1: inf at 0, NaN below."""

def k1e(x: _Operand) -> Tensor:
    """exp(x) times `modified_bessel_k1`."""

def kl_div(a: _Operand, b: _Operand) -> Tensor:
    """The elementwise Kullback-Leibler divergence a log(a / b) - a + b, which is never negative."""

def kv(v: _Operand, x: _Operand) -> Tensor:
    """The modified Bessel function of the second kind, of order v: inf at 0, NaN below."""

def kve(v: _Operand, x: _Operand) -> Tensor:
    """exp(x) times the modified Bessel function of the second kind, of order v."""

def laguerre_polynomial_l(x: _Operand, n: _Operand) -> Tensor:
    """The Laguerre polynomial: orthogonal on [0, inf) with weight exp(-x)."""

def legendre_polynomial_p(x: _Operand, n: _Operand) -> Tensor:
    """The Legendre polynomial: orthogonal on [-1, 1] with weight 1, and 1 at 1."""

def log1p(x: _Operand) -> Tensor:
    """log(1 + x), accurate for small x."""

def log_ndtr(x: _Operand) -> Tensor:
    """The logarithm of `ndtr`, the standard normal CDF, accurate far into the left tail."""

def log_softmax(x: _Operand, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
    """The logarithm of the softmax along dim, accurate for small values; computed in `dtype` (None: that of x)."""

def logit(x: _Operand, eps: _float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first clamped to [eps, 1 - eps]."""

def logsumexp(x: _Operand, dim: _Ints | None = None, keepdim: _bool = False) -> Tensor:
    """log(sum(exp(x))) over `dim` (None or (): all), without overflow; -inf for empty slices."""

def modified_bessel_i0(x: _Operand) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""

def modified_bessel_i1(x: _Operand) -> Tensor:
    """The modified Bessel function of the first kind, of order 1."""

def modified_bessel_k0(x: _Operand) -> Tensor:
    """The modified Bessel function of the second kind, of order 0: inf at 0, NaN below."""

def modified_bessel_k1(x: _Operand) -> Tensor:
    """The modified Bessel function of the second kind, of order 1: inf at 0, NaN below."""

def multigammaln(x: _Operand, p: _int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p at x, which is (degrees of freedom) / 2."""

def ndtr(x: _Operand) -> Tensor:
    """The CDF of the standard normal distribution."""

def ndtri(x: _Operand) -> Tensor:
    """The inverse of `ndtr`, the standard normal CDF, on (0, 1); infinite at the ends, NaN outside."""

def polygamma(n: _int, x: _Operand) -> Tensor:
    """Derivative of `digamma` of order n, at least 0."""

def psi(x: _Operand) -> Tensor:
    """Derivative of `lgamma`; NaN at the negative integers, infinite at 0."""

def rel_entr(a: _Operand, b: _Operand) -> Tensor:
    """The elementwise relative entropy a log(a / b); 0 where a is 0, inf where a or b is negative."""

def rgamma(x: _Operand) -> Tensor:
    """1 / gamma(x), which is 0 at 0 and the negative integers, where the derivative is not defined here."""

def round(x: _Operand, *, decimals: _int = 0) -> Tensor:
    """x rounded to `decimals` decimals, halves to even; negative decimals round to tens.  Its derivative is 0."""

def scaled_modified_bessel_k0(x: _Operand) -> Tensor:
    """exp(x) times `modified_bessel_k0`."""

def scaled_modified_bessel_k1(x: _Operand) -> Tensor:
    """exp(x) times `modified_bessel_k1`."""

def shifted_chebyshev_polynomial_t(x: _Operand, n: _Operand) -> Tensor:
    """`chebyshev_polynomial_t` at 2 x - 1: orthogonal on [0, 1]."""

def shifted_chebyshev_polynomial_u(x: _Operand, n: _Operand) -> Tensor:
    """`chebyshev_polynomial_u` at 2 x - 1: orthogonal on [0, 1]."""

def shifted_chebyshev_polynomial_v(x: _Operand, n: _Operand) -> Tensor:
    """`chebyshev_polynomial_v` at 2 x - 1: orthogonal on [0, 1]."""

def shifted_chebyshev_polynomial_w(x: _Operand, n: _Operand) -> Tensor:
    """`chebyshev_polynomial_w` at 2 x - 1: orthogonal on [0, 1]."""

def sici(x: _Operand) -> return_types.special_sici:
    """The sine and the cosine integral, as a named tuple (si, ci)."""

def sinc(x: _Operand) -> Tensor:
    """The normalized sinc sin(pi x) / (pi x), 1 at 0; derivatives of every order hold there, too."""

def softmax(x: _Operand, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
    """The softmax exp(x) / sum(exp(x)) along dim, without overflow; computed in `dtype` (None: that of x)."""

def spherical_bessel_j0(x: _Operand) -> Tensor:
    """The spherical Bessel function of order 0: sin(x) / x, and 1 at 0."""

def spherical_jn(n: _int, x: _Operand) -> Tensor:
    """The spherical Bessel function of the first kind, of integer order n, at least 0."""

def xlog1py(a: _Operand, b: _Operand) -> Tensor:
    """a * log(1 + b), and 0 where a is 0, unless b is NaN."""

def xlogy(a: _Operand, b: _Operand) -> Tensor:
    """a * log(b), and 0 where a is 0, unless b is NaN."""

def y0(x: _Operand) -> Tensor:
    """The Bessel function of the second kind, of order 0: -inf at 0, NaN below."""

def y1(x: _Operand) -> Tensor:
    """The Bessel function of the second kind, of order 1: -inf at 0, NaN below."""

def yn(v: _Operand, x: _Operand) -> Tensor:
    """The Bessel function of the second kind, of order v: -inf at 0, NaN below."""

def yv(v: _Operand, x: _Operand) -> Tensor:
    """The Bessel function of the second kind, of order v: -inf at 0, NaN below."""

def zeta(x: _Operand, q: _Operand) -> Tensor:
    """Hurwitz zeta function: the sum of (k + q)^-x over k from 0, for x above 1."""
