"""Window functions, which multiply signals before a Fourier transform.

Windows in `rg.signal.windows` are symmetric unless sym=False; those in `rg` are periodic unless periodic=False. A
periodic window is a symmetric one with one more element, without the last.  All compute in double precision.
"""

import math

from retrograd.core import Aval, Tensor, op
from retrograd.core import dtype as dtypes
from retrograd.foundation.describe_value import describe
from retrograd.ops.create import Factory, factory


def _define_window(schema, doc, formula, *samples, errors=(), **given):
    """A window from `formula(xp, n, steps, **params)`, with n = 0, 1, ... of `steps` steps.

    Every sample has the params that are `given`.
    """
    name = schema.partition("(")[0]

    def impl(xp, *, M, sym, dtype, **params):
        out = _window_aval(name, M, dtype)
        numbers = formula(xp, xp.arange(M), M - 1 if sym else M, **params) if M > 1 else xp.ones(M)
        return numbers.astype(out.dtype)

    def shape(*, M, sym, dtype, **params):
        return _window_aval(name, M, dtype)

    body = {"__doc__": doc, "impl": impl, "shape": shape, "oracle": f"scipy.{name}"}
    sizes = ({"M": 5}, {"M": 4, "sym": False}, {"M": 1})
    half = {"M": 2, "dtype": "float16"}
    refused = ({"M": -1}, ValueError, "not be negative, got -1"), (half, ValueError, "got: float16")
    body["samples"] = lambda r: (((), {**given, **sample}) for sample in (*sizes, *samples))
    body["errors"] = lambda r: (((), {**given, "M": 4, **params}, *failure) for params, *failure in (*refused, *errors))
    return factory(op(schema)(type(name, (Factory,), body)))


def _window_aval(name, M, dtype):
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name}: expects float32 or float64 dtypes, got: {dtype}")
    if M < 0:
        raise ValueError(f"{name}: the size must not be negative, got {M}")
    return Aval((M,), dtype)


def _general_cosine(xp, n, steps, a):
    if not isinstance(a, (tuple, list)):
        raise TypeError(f"signal.windows.general_cosine: Coefficients must be a list/tuple, got {describe(a)}")
    if not a:
        raise ValueError("signal.windows.general_cosine: Coefficients cannot be empty")
    return sum((-1) ** k * weight * xp.cos(2 * math.pi * k * n / steps) for k, weight in enumerate(a))


def _exponential(xp, n, steps, center, tau):
    if tau <= 0:
        raise ValueError(f"signal.windows.exponential: tau must be positive, got {tau}")
    if center is not None and steps < len(n):
        raise ValueError("signal.windows.exponential: only periodic windows, with sym=False, have another center")
    return xp.exp(-abs(n - (steps / 2 if center is None else center)) / tau)


def _gaussian(xp, n, steps, std):
    if std <= 0:
        raise ValueError(f"signal.windows.gaussian: std must be positive, got {std}")
    return xp.exp(-0.5 * ((n - steps / 2) / std) ** 2)


def _kaiser(xp, n, steps, beta):
    if beta < 0:
        raise ValueError(f"signal.windows.kaiser: beta must not be negative, got {beta}")
    return xp.i0(beta * xp.sqrt(1 - (2 * n / steps - 1) ** 2)) / xp.i0(beta)


general_cosine = _define_window(
    "signal.windows.general_cosine(int M, *, any a, bool sym=True, dtype? dtype=None) -> Tensor",
    "The sum of cosines of 0, 1, ... periods with weights `a` and alternating signs.",
    lambda xp, n, steps, *, a: _general_cosine(xp, n, steps, a),
    errors=[({"a": ()}, ValueError, "cannot be empty")],
    a=(0.4, 0.5, 0.1),
)
bartlett = _define_window(
    "signal.windows.bartlett(int M, *, bool sym=True, dtype? dtype=None) -> Tensor",
    "The Bartlett window: a triangle, from 0 up to 1 in the middle and back to 0.",
    lambda xp, n, steps: 1 - abs(2 * n / steps - 1),
)
cosine = _define_window(
    "signal.windows.cosine(int M, *, bool sym=True, dtype? dtype=None) -> Tensor",
    "The cosine window: half a period of the sine, without its ends.",
    lambda xp, n, steps: xp.sin(math.pi * (n + 0.5) / (steps + 1)),
)
exponential = _define_window(
    "signal.windows.exponential(int M, *, float? center=None, float tau=1.0, bool sym=True, dtype? dtype=None)"
    " -> Tensor",
    "The exponential window exp(-|n - center| / tau); periodic windows may set the center.",
    lambda xp, n, steps, *, center, tau: _exponential(xp, n, steps, center, tau),
    {"M": 4, "center": 1.0, "tau": 2.0, "sym": False},
    errors=[({"center": 1.0}, ValueError, "sym=False"), ({"tau": 0.0}, ValueError, "tau must be positive, got 0.0")],
)
gaussian = _define_window(
    "signal.windows.gaussian(int M, *, float std=1.0, bool sym=True, dtype? dtype=None) -> Tensor",
    "The Gaussian window exp(-(n - middle)^2 / (2 std^2)).",
    lambda xp, n, steps, *, std: _gaussian(xp, n, steps, std),
    {"M": 5, "std": 0.5, "dtype": "float64"},
    errors=[({"std": -1.0}, ValueError, "std must be positive, got -1.0")],
)
kaiser = _define_window(
    "signal.windows.kaiser(int M, *, float beta=12.0, bool sym=True, dtype? dtype=None) -> Tensor",
    "The Kaiser window: I0(beta sqrt(1 - t^2)) / I0(beta) for t from -1 to 1, with I0 the modified Bessel function.\n\n"
    "Kaiser, Nonrecursive digital filter design using the I0-sinh window function, ISCAS 1974.",
    lambda xp, n, steps, *, beta: _kaiser(xp, n, steps, beta),
    {"M": 5, "beta": 3.0},
    errors=[({"beta": -1.0}, ValueError, "beta must not be negative, got -1.0")],
)


# ------------------------------------------------------------------------------------------- sums of cosines


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None) -> Tensor:
    """The generalized Hamming window: alpha - (1 - alpha) cos over one period."""
    return general_cosine(M, a=(alpha, 1 - alpha), sym=sym, dtype=dtype)


def hamming(M, *, sym=True, dtype=None) -> Tensor:
    """The Hamming window: 0.54 - 0.46 cos over one period."""
    return general_hamming(M, sym=sym, dtype=dtype)


def hann(M, *, sym=True, dtype=None) -> Tensor:
    """The Hann window: 0.5 - 0.5 cos over one period."""
    return general_cosine(M, a=(0.5, 0.5), sym=sym, dtype=dtype)


def blackman(M, *, sym=True, dtype=None) -> Tensor:
    """The Blackman window: 0.42 - 0.5 cos of one period + 0.08 cos of two periods."""
    return general_cosine(M, a=(0.42, 0.5, 0.08), sym=sym, dtype=dtype)


def nuttall(M, *, sym=True, dtype=None) -> Tensor:
    """The Nuttall window: cosines of 0 to 3 periods with weights for low side lobes.

    Nuttall, Some windows with very good sidelobe behavior, IEEE Trans. ASSP 29 (1981), 84-91.
    """
    return general_cosine(M, a=(0.3635819, 0.4891775, 0.1365995, 0.0106411), sym=sym, dtype=dtype)


general_hamming, hamming, hann, blackman, nuttall = (
    factory(w, f"signal.windows.{w.__name__}") for w in (general_hamming, hamming, hann, blackman, nuttall)
)


# ------------------------------------------------------------------------------------------ the names in `rg`


def hann_window(window_length: int, periodic=True, *, dtype=None) -> Tensor:
    """The Hann window: 0.5 - 0.5 cos over one period.

    >>> import retrograd as rg
    >>> rg.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return hann(window_length, sym=not periodic, dtype=dtype)


def hamming_window(window_length: int, periodic=True, alpha=0.54, beta=0.46, *, dtype=None) -> Tensor:
    """The Hamming window: alpha - beta cos over one period."""
    return general_cosine(window_length, a=(alpha, beta), sym=not periodic, dtype=dtype)


def blackman_window(window_length: int, periodic=True, *, dtype=None) -> Tensor:
    """The Blackman window: 0.42 - 0.5 cos of one period + 0.08 cos of two periods."""
    return blackman(window_length, sym=not periodic, dtype=dtype)


def bartlett_window(window_length: int, periodic=True, *, dtype=None) -> Tensor:
    """The Bartlett window: a triangle, from 0 up to 1 in the middle and back to 0.

    >>> import retrograd as rg
    >>> rg.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return bartlett(window_length, sym=not periodic, dtype=dtype)


def kaiser_window(window_length: int, periodic=True, beta=12.0, *, dtype=None) -> Tensor:
    """The Kaiser window: I0(beta sqrt(1 - t^2)) / I0(beta) for t from -1 to 1, with I0 the modified Bessel function."""
    return kaiser(window_length, beta=float(beta), sym=not periodic, dtype=dtype)


hann_window, hamming_window, blackman_window = map(factory, (hann_window, hamming_window, blackman_window))
bartlett_window, kaiser_window = map(factory, (bartlett_window, kaiser_window))
