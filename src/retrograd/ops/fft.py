"""Discrete Fourier transforms, of complex and of real signals, over one dimension or several.

Three operators do the work.  `dft` is a symmetric matrix, its own transpose.  The transposes of `half_dft` (real values
to half of their spectrum) and `full_dft` (back) are each other, except for weights: all but the ends of the half
spectrum count twice in the full one.
"""

import math

from retrograd.core import Aval, Internal, Tensor, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.complex import view_as_complex
from retrograd.ops.create import arange, factory
from retrograd.ops.family import AlongDims, Composite, canonical_dim, canonical_dims, existing_dims
from retrograd.ops.index import index_put_sum
from retrograd.ops.pointwise import logical_and, real_part, to, where
from retrograd.ops.view import cat, narrow, reshape, roll

NORMS = ("backward", "ortho", "forward")

# ------------------------------------------------------------------------------------------ the three operators


def _refuse_size(name, size):
    raise RuntimeError(f"{name}: Invalid number of data points ({size}) specified: no transform of {size} numbers")


def _check(name, x, dims, norm):
    if norm not in NORMS:
        raise RuntimeError(f"{name}: norm must be None, 'backward', 'ortho' or 'forward', got {norm!r}")
    if not dtypes.is_differentiable(x.dtype) or dtypes.is_half(x.dtype):
        raise RuntimeError(f"{name}: no transform of {x.dtype}; convert with .to(rg.float32) first")
    if any(x.shape[d] == 0 for d in dims):
        raise RuntimeError(
            f"{name}: Invalid number of data points (0) specified: no transform of 0 numbers: the shape is {x.shape}, "
            f"the dimensions are {dims}"
        )


@op("dft(Tensor x, int[] dim, *, bool inverse=False, str norm='backward') -> Tensor")
class dft(Internal, AlongDims, linear="x", node_name="FftC2CBackward0"):
    """The sums of x * exp(-2 pi i j k / n) over each of the dimensions, or, inverse, of x * exp(2 pi i j k / n).

    `norm` says what is divided by n: the "forward" sums, the "backward" (inverse) ones, or "ortho" both by sqrt(n).
    """

    def impl(xp, x, *, dim, inverse, norm):
        _check("dft", x, dim, norm)
        if not dim:
            return x.astype(dtypes.complex_of(x.dtype))
        return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, axes=dim, norm=norm)

    def shape(x, *, dim, inverse, norm):
        _check("dft", x, canonical_dims("dft", dim, x.ndim) if dim else (), norm)
        return Aval(x.shape, dtypes.complex_of(x.dtype))

    def vjp_x(g, x_aval, dim, inverse, norm):
        out = dft(g, dim, inverse=inverse, norm=norm)
        return out if x_aval.dtype.kind == "c" else real_part(out)

    exempt = {"bfloat16": "the transforms that call it refuse half precision"}

    oracle = "retrograd.testing.references.fft.dft"

    def samples(r):
        yield (view_as_complex(r(3, 2)),), {"dim": (0,)}
        yield (r(3, 4),), {"dim": (1,), "inverse": True}
        yield (view_as_complex(r(2, 3, 2)),), {"dim": (0, 1), "norm": "ortho"}


@op("half_dft(Tensor x, int dim, *, bool inverse=False, str norm='backward') -> Tensor")
class half_dft(Internal, AlongDims, linear="x", node_name="FftR2CBackward0"):
    """The first n // 2 + 1 values of the `dft` of n real ones; the others are their conjugates."""

    def impl(xp, x, *, dim, inverse, norm):
        _check_real("half_dft", x)
        _check("half_dft", x, (dim,), norm)
        return (xp.fft.ihfft if inverse else xp.fft.rfft)(x, axis=dim, norm=norm)

    def shape(x, *, dim, inverse, norm):
        _check_real("half_dft", x)
        at = canonical_dim("half_dft", dim, x.ndim)
        _check("half_dft", x, (at,), norm)
        return Aval(_resized_shape(x.shape, at, x.shape[at] // 2 + 1), dtypes.complex_of(x.dtype))

    def vjp_x(g, x_aval, dim, inverse, norm):
        n = x_aval.shape[dim]
        return full_dft(_scale_half_spectrum(g, dim, n, 0.5), dim, n, inverse=inverse, norm=norm)

    exempt = {"bfloat16": "the transforms that call it refuse half precision"}

    oracle = "retrograd.testing.references.fft.half_dft"

    def samples(r):
        yield (r(4),), {"dim": 0}
        yield (r(3, 5),), {"dim": 1, "inverse": True}
        yield (r(6, 2),), {"dim": 0, "norm": "ortho"}


@op("full_dft(Tensor x, int dim, int n, *, bool inverse=True, str norm='backward') -> Tensor")
class full_dft(Internal, AlongDims, linear="x", node_name="FftC2RBackward0"):
    """The n real values of the `dft` of a spectrum with first half x, n // 2 + 1 values, and their conjugates.

    The imaginary parts of the first value of x, and if n is even of the last, are ignored.
    """

    def impl(xp, x, *, dim, n, inverse, norm):
        _check_half("full_dft", x, dim, n)
        _check("full_dft", x, (dim,), norm)
        return (xp.fft.irfft if inverse else xp.fft.hfft)(x, n, axis=dim, norm=norm)

    def shape(x, *, dim, n, inverse, norm):
        at = canonical_dim("full_dft", dim, x.ndim)
        _check_half("full_dft", x, at, n)
        _check("full_dft", x, (at,), norm)
        return Aval(_resized_shape(x.shape, at, n), dtypes.real_of(x.dtype))

    def vjp_x(g, dim, n, inverse, norm):
        return _scale_half_spectrum(half_dft(g, dim, inverse=inverse, norm=norm), dim, n, 2.0)

    oracle = "retrograd.testing.references.fft.full_dft"

    def samples(r):
        yield (view_as_complex(r(3, 2)),), {"dim": 0, "n": 4}
        yield (view_as_complex(r(2, 3, 2)),), {"dim": 1, "n": 5, "inverse": False}
        yield (view_as_complex(r(4, 2)),), {"dim": 0, "n": 6, "norm": "ortho"}


def _check_real(name, x):
    if x.dtype.kind == "c":
        raise RuntimeError(f"{name}: expected real numbers, got {x.dtype}; of complex ones take fft or ifft")


def _check_half(name, x, dim, n):
    if x.dtype.kind != "c":
        raise RuntimeError(f"{name}: expected complex numbers, got {x.dtype}")
    if n < 1 or x.shape[dim] != n // 2 + 1:
        raise RuntimeError(f"{name}: {n} numbers need {n // 2 + 1} of their spectrum, got {x.shape[dim]}")


def _resized_shape(shape, dim, size):
    return (*shape[:dim], size, *shape[dim + 1 :])


def _scale_half_spectrum(x, dim, n, weight):
    """Scale a half spectrum of n values, except its ends, which occur only once in the full one."""
    size, at = x.shape[dim], dim % x.ndim
    numbers = reshape(registry["arange"](0, size, 1), (size, *(1,) * (x.ndim - 1 - at)))
    inner = logical_and(numbers > 0, numbers < (size if n % 2 else size - 1))
    return x * to(where(inner, weight, 1.0), dtypes.real_of(x.dtype))


# ------------------------------------------------------------------------------------- sizes and dimensions


def _dims_and_sizes(name, shape, s, dim):
    """Return the dimensions to transform, counted from the front, and their requested sizes (None: not given)."""
    ndim = len(shape)
    if dim is None and s is not None and len(s) > ndim:
        raise RuntimeError(f"{name}: {len(s)} sizes are given for a tensor of {ndim} dimensions")
    last = range(0 if s is None else ndim - len(s), ndim)
    dims = tuple(last) if dim is None else existing_dims(name, dim, ndim)
    s = (-1,) * len(dims) if s is None else s
    if len(s) != len(dims):
        raise RuntimeError(f"{name}: {len(s)} sizes are given for {len(dims)} dimensions")
    return dims, [None if size == -1 else size for size in s]


def _resize(x, dim, size):
    """Truncate x to `size` along dim, or pad it with zeros at the end."""
    if size is None or x.shape[dim] == size:
        return x
    if x.shape[dim] > size:
        return narrow(x, dim, 0, size)
    spec = (*(slice(None),) * dim, slice(0, x.shape[dim]))
    return index_put_sum(x, (), shape=_resized_shape(x.shape, dim, size), spec=spec)


def _prepare(name, x, dims, sizes, norm):
    """Return x in a floating dtype and with the requested sizes, and the norm."""
    x = x if dtypes.is_differentiable(x.dtype) else to(x, dtypes.float_of(x.dtype))
    for d, size in zip(dims, sizes, strict=True):
        if size is not None and size < 1:
            _refuse_size(name, size)
        x = _resize(x, d, size)
    norm = "backward" if norm is None else norm
    _check(name, x, dims, norm)
    return x, norm


# The three kinds of transform, over several dimensions.


def _c2c(name, x, s, dim, norm, inverse):
    dims, sizes = _dims_and_sizes(name, x.shape, s, dim)
    x, norm = _prepare(name, x, dims, sizes, norm)
    return dft(x, dims, inverse=inverse, norm=norm)


def _check_dims_given(name, dims):
    if not dims:
        raise RuntimeError(f"{name}: at least one dimension must be transformed")


def _r2c(name, x, s, dim, norm, inverse):
    _check_real(name, x)
    dims, sizes = _dims_and_sizes(name, x.shape, s, dim)
    _check_dims_given(name, dims)
    x, norm = _prepare(name, x, dims, sizes, norm)
    out = half_dft(x, dims[-1], inverse=inverse, norm=norm)
    return dft(out, dims[:-1], inverse=inverse, norm=norm) if dims[:-1] else out


def _c2r(name, x, s, dim, norm, inverse):
    dims, sizes = _dims_and_sizes(name, x.shape, s, dim)
    _check_dims_given(name, dims)
    n = 2 * (x.shape[dims[-1]] - 1) if sizes[-1] is None else sizes[-1]
    if n < 1:
        _refuse_size(name, n)
    x, norm = _prepare(name, x, dims, [*sizes[:-1], n // 2 + 1], norm)
    x = x if x.dtype.kind == "c" else to(x, dtypes.complex_of(x.dtype))
    x = dft(x, dims[:-1], inverse=inverse, norm=norm) if dims[:-1] else x
    return full_dft(x, dims[-1], n, inverse=inverse, norm=norm)


# --------------------------------------------------------------------------------------- public operators

_PARAMS_1D = "int? n=None, int dim=-1"
_PARAMS_2D = "int[]? s=None, int[] dim=(-2, -1)"
_PARAMS_ND = "int[]? s=None, int[]? dim=None"


def _transform(name, params, kind, inverse, doc, *, real=False):
    """Define the operator `fft.<name>`: `params` gives its dimensions, `kind` is one of `_c2c`, `_r2c`, `_c2r`."""

    def one(x, *, n, dim, norm):
        if n == -1:  # among several sizes, it is the tensor's own
            _refuse_size(f"fft.{name}", n)
        return kind(f"fft.{name}", x, None if n is None else (n,), (dim,), norm, inverse)

    def several(x, *, s, dim, norm):
        return kind(f"fft.{name}", x, s, dim, norm, inverse)

    compose, samples = (one, _samples_1d) if params is _PARAMS_1D else (several, _samples_nd)
    oracle = f"retrograd.testing.references.fft.{name}"
    body = {"__doc__": doc, "compose": compose, "oracle": oracle, "samples": samples(real), "errors": _errors}
    return op(f"fft.{name}(Tensor x, {params}, str? norm=None) -> Tensor")(type(name, (Composite,), body))


def _samples_1d(real):
    def samples(r):
        yield (r(6),), {}
        if not real:
            yield (view_as_complex(r(3, 4, 2)),), {"n": 3, "dim": 0}
            yield (view_as_complex(r(3, 2)),), {"n": 5, "norm": "forward"}
        yield (r(4, 2),), {"n": 7, "dim": 0, "norm": "ortho"}

    return samples


def _samples_nd(real):
    def samples(r):
        yield (r(3, 4),), {}
        if not real:
            yield (view_as_complex(r(3, 4, 2)),), {"s": (2, 5), "norm": "ortho"}
        yield (r(2, 3, 4),), {"s": (4, -1), "dim": (0, 2), "norm": "forward"}

    return samples


def _errors(r):
    yield (r(3, 4),), {"norm": "half"}, RuntimeError, "norm must be None, 'backward', 'ortho' or 'forward'"
    yield (r(0, 0),), {}, RuntimeError, "no transform of "
    yield (r(3, 4),), {"dim": 5}, IndexError, "dim 5 is out of range"


# fmt: off
fft = _transform("fft", _PARAMS_1D, _c2c, False,
    """Discrete Fourier transform along dim: the sums over j of x[j] * exp(-2 pi i j k / n), k from 0 to n - 1.

    n: the size to which x is truncated or padded with zeros (None: its size).  norm: "backward" (None) as
    above, "forward" divided by n, "ortho" by sqrt(n).  Single precision stays single.

    >>> import retrograd as rg
    >>> rg.fft.fft(rg.tensor([1.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """)
ifft = _transform("ifft", _PARAMS_1D, _c2c, True,
    """Inverse of `fft` along dim: the sums over j of x[j] * exp(2 pi i j k / n), divided by n by default.

    norm: "backward" (None), "forward" not divided, "ortho" divided by sqrt(n).
    """)
rfft = _transform("rfft", _PARAMS_1D, _r2c, False,
    """Discrete Fourier transform of real values: the first n // 2 + 1 values of `fft`; the others are their conjugates.

    >>> import retrograd as rg
    >>> rg.fft.rfft(rg.tensor([1.0, 1.0, 1.0, 1.0])).tolist()
    [(4+0j), 0j, 0j]
    """, real=True)
irfft = _transform("irfft", _PARAMS_1D, _c2r, True,
    """Inverse of `rfft`: n real values (None: 2 * (size - 1), an even number) from the first half of a spectrum.

    >>> import retrograd as rg
    >>> rg.fft.irfft(rg.fft.rfft(rg.tensor([1.0, 2.0, 6.0])), n=3).tolist()
    [1.0, 2.0, 6.0]
    """)
hfft = _transform("hfft", _PARAMS_1D, _c2r, False,
    "Real `fft` of n values (None: 2 * (size - 1)) with first half x, and its conjugates as the second half.")
ihfft = _transform("ihfft", _PARAMS_1D, _r2c, True,
    "Inverse of `hfft`: the first n // 2 + 1 values of `ifft` of real values.", real=True)

fft2 = _transform("fft2", _PARAMS_2D, _c2c, False, "`fft` over two dimensions, truncated or padded to the sizes s.")
ifft2 = _transform("ifft2", _PARAMS_2D, _c2c, True, "`ifft` over two dimensions, truncated or padded to the sizes s.")
rfft2 = _transform("rfft2", _PARAMS_2D, _r2c, False, "`rfft` over the second, `fft` over the first dimension.",
    real=True)
irfft2 = _transform("irfft2", _PARAMS_2D, _c2r, True, "The inverse of `rfft2`; s are the sizes of the result.")
hfft2 = _transform("hfft2", _PARAMS_2D, _c2r, False, "`fft` over the first, `hfft` over the second dimension.")
ihfft2 = _transform("ihfft2", _PARAMS_2D, _r2c, True, "The inverse of `hfft2`.", real=True)

fftn = _transform("fftn", _PARAMS_ND, _c2c, False,
    "`fft` over several dimensions (None: all, or as many of the last as s has), truncated or padded to s.")
ifftn = _transform("ifftn", _PARAMS_ND, _c2c, True, "The inverse of `fftn`.")
rfftn = _transform("rfftn", _PARAMS_ND, _r2c, False, "`rfft` over the last dimension, `fft` over the others.",
    real=True)
irfftn = _transform("irfftn", _PARAMS_ND, _c2r, True, "The inverse of `rfftn`; s are the sizes of the result.")
hfftn = _transform("hfftn", _PARAMS_ND, _c2r, False, "`hfft` over the last dimension, `fft` over the others.")
ihfftn = _transform("ihfftn", _PARAMS_ND, _r2c, True, "The inverse of `hfftn`.", real=True)
# fmt: on


# ----------------------------------------------------------------------------------------------- frequencies


def _roll_half(name, x, dim, sign):
    if dim == ():  # no dimensions, where reductions would take all
        return registry["clone"](x)
    for d in canonical_dims(name, dim, x.ndim):
        x = roll(x, sign * (x.shape[d] // 2), d)
    return x


def _shift_samples(r):
    yield (r(5),), {}
    yield (r(3, 4),), {"dim": (1,)}
    yield (r(3, 4),), {}


@op("fft.fftshift(Tensor x, int[]? dim=None) -> Tensor")
class fftshift(Composite):
    """Rotate each of the dimensions (None: all) so that frequency 0 is in the middle.

    >>> import retrograd as rg
    >>> rg.fft.fftshift(rg.tensor([0, 1, 2, -2, -1])).tolist()
    [-2, -1, 0, 1, 2]
    """

    def compose(x, *, dim):
        return _roll_half("fft.fftshift", x, dim, 1)

    def oracle(np, x, dim):
        return np.fft.fftshift(x, dim)

    samples = _shift_samples


@op("fft.ifftshift(Tensor x, int[]? dim=None) -> Tensor")
class ifftshift(Composite):
    """Invert `fftshift`: rotate frequency 0 from the middle to the front."""

    def compose(x, *, dim):
        return _roll_half("fft.ifftshift", x, dim, -1)

    def oracle(np, x, dim):
        return np.fft.ifftshift(x, dim)

    samples = _shift_samples


def _frequency_tensor(numbers, n, d, dtype):
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if not dtypes.is_differentiable(dtype):
        raise RuntimeError(f"fft: frequencies have a floating point or complex dtype, not {dtype}")
    return to(numbers, dtype) * (1 / (n * d) if n * d else math.inf)


def fftfreq(n: int, d: float = 1.0, *, dtype=None) -> Tensor:
    """Return the frequencies of `fft` of n values with spacing d, in its order: 0, positive, negative.

    >>> import retrograd as rg
    >>> rg.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    upper = (n + 1) // 2  # from here on k - n
    return _frequency_tensor(cat([arange(upper), arange(upper - n, 0)]), n, d, dtype)


def rfftfreq(n: int, d: float = 1.0, *, dtype=None) -> Tensor:
    """Return the frequencies of `rfft` of n values with spacing d.

    >>> import retrograd as rg
    >>> rg.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequency_tensor(arange(n // 2 + 1), n, d, dtype)


fftfreq = factory(fftfreq, "fft.fftfreq")
rfftfreq = factory(rfftfreq, "fft.rfftfreq")
