"""Reference implementations of Fourier transforms: products with matrices of powers of a root of unity."""

import numpy as np


def scale(n, inverse, norm):
    divides = {"forward": not inverse, "backward": inverse, None: inverse}
    return n**-0.5 if norm == "ortho" else 1 / n if divides[norm] else 1.0


def along(x, dim, inverse, norm):
    n = x.shape[dim]
    matrix = np.exp((2j if inverse else -2j) * np.pi * np.outer(range(n), range(n)) / n) * scale(n, inverse, norm)
    return np.moveaxis(np.tensordot(matrix, x, axes=(1, dim)), 0, dim)


def resize(x, dim, n):
    out = np.zeros([n if d == dim % x.ndim else size for d, size in enumerate(x.shape)], x.dtype)
    common = tuple(slice(0, min(a, b)) for a, b in zip(x.shape, out.shape, strict=True))
    out[common] = x[common]
    return out


def over(x, s, dim):
    """Return the dimensions and their sizes."""
    dims = range(x.ndim) if dim is None and s is None else range(x.ndim - len(s), x.ndim) if dim is None else dim
    return list(dims), [-1] * len(dims) if s is None else list(s)


def complex_transform(x, s, dim, norm, inverse):
    for d, n in zip(*over(x, s, dim), strict=True):
        x = along(x if n == -1 else resize(x, d, n), d, inverse, norm)
    return x


def half_spectrum(x, s, dim, norm, inverse):
    dims, _ = over(x, s, dim)
    out = complex_transform(x, s, dim, norm, inverse)
    return np.take(out, range(out.shape[dims[-1]] // 2 + 1), axis=dims[-1])


def from_half_spectrum(x, s, dim, norm, inverse):
    dims, sizes = over(x, s, dim)
    last = dims[-1]
    n = 2 * (x.shape[last] - 1) if sizes[-1] == -1 else sizes[-1]
    for d, size in zip(dims[:-1], sizes[:-1], strict=True):
        x = along(x if size == -1 else resize(x, d, size), d, inverse, norm)
    half = np.moveaxis(resize(x, last, n // 2 + 1), last, -1).astype(complex)
    half[..., 0] = half[..., 0].real
    if n % 2 == 0:
        half[..., -1] = half[..., -1].real
    rest = half[..., 1 : (n + 1) // 2][..., ::-1].conj()
    return along(np.moveaxis(np.concatenate([half, rest], -1), -1, last), last, inverse, norm).real


def one_dim(way, inverse):
    return lambda x, n, dim, norm: way(x, None if n is None else (n,), (dim,), norm, inverse)


def n_dim(way, inverse):
    return lambda x, s, dim, norm: way(x, s, dim, norm, inverse)


TRANSFORMS = (
    (complex_transform, False),
    (complex_transform, True),
    (half_spectrum, False),
    (from_half_spectrum, True),
    (from_half_spectrum, False),
    (half_spectrum, True),
)
fft, ifft, rfft, irfft, hfft, ihfft = (one_dim(*way) for way in TRANSFORMS)
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = [
    n_dim(*way) for way in TRANSFORMS
]


def dft(x, dim, inverse, norm):
    return complex_transform(x, None, dim, norm, inverse)


def half_dft(x, dim, inverse, norm):
    return half_spectrum(x, None, (dim,), norm, inverse)


def full_dft(x, dim, n, inverse, norm):
    return from_half_spectrum(x, (n,), (dim,), norm, inverse)
