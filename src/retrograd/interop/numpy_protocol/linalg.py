"""`numpy.linalg` on tensors."""

import numpy as np

from retrograd.interop.numpy_protocol.products import dot
from retrograd.interop.numpy_protocol.reductions import abs_squared
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    axes,
    implements,
    only_default,
    promote_operands,
    refuse,
    tensor,
    values,
)

_NONE = np._NoValue


def linalg(*names):
    """Decorator: the function is NumPy's of `numpy.linalg`."""
    return lambda function: implements(*names, home="linalg")(function)


@linalg()
def solve(a, b):
    """Return x with a x = b; b is a vector only if it has one axis."""
    a, b = promote_operands(as_floating(a), as_floating(b))
    return O.linalg.solve(a, O.unsqueeze(b, -1))[..., 0] if b.ndim == 1 else O.linalg.solve(a, b)


@linalg()
def qr(a, mode="reduced"):
    """Orthonormal columns times an upper triangle."""
    if mode == "raw":
        refuse("linalg.qr", "mode 'raw' is not supported for tensors")
    both = O.linalg.qr(as_floating(a), "reduced" if mode == "r" else mode)
    return both.R if mode == "r" else both


@linalg()
def eigh(a, UPLO="L"):
    """Eigenvalues and eigenvectors of Hermitian matrices, given by one triangle."""
    return O.linalg.eigh(_from_triangle(as_floating(a), UPLO))


@linalg()
def eigvalsh(a, UPLO="L"):
    """Eigenvalues of Hermitian matrices."""
    return O.linalg.eigvalsh(_from_triangle(as_floating(a), UPLO))


def _from_triangle(x, UPLO):
    """Return the Hermitian matrices given by one triangle; only that triangle gets a gradient."""
    if str(UPLO).upper() not in ("L", "U"):
        raise ValueError(f"np.linalg: UPLO must be 'L' or 'U', got {UPLO!r}")
    strict = O.tril(x, -1) if str(UPLO).upper() == "L" else O.triu(x, 1)
    diagonal = O.diagonal(O.real(x) if x.dtype.kind == "c" else x, 0, -2, -1)
    return strict + O.conj(strict.mT) + O.diag_embed(diagonal)


@linalg()
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """The singular value decomposition, or the singular values alone."""
    x = as_floating(a)
    return O.linalg.svd(x, full_matrices) if compute_uv else O.linalg.svdvals(x)


@linalg()
def pinv(a, rcond=None, hermitian=False, *, rtol=_NONE):
    """The pseudo-inverse; singular values below a fraction of the largest count as 0."""
    x = as_floating(a)
    share = rcond if rtol is _NONE else rtol
    share = 1e-15 if share is None and rtol is _NONE else share
    return O.linalg.pinv(x) if share is None else pinv_of_each(x, share)


def pinv_of_each(x, rtol):
    """Return pseudo-inverses; rtol is a number, or an array with one per matrix."""
    shares = np.asarray(values(rtol))
    if not shares.ndim:
        return O.linalg.pinv(x, rtol=float(shares))
    shares = np.broadcast_to(shares, np.broadcast_shapes(shares.shape, x.shape[:-2]))
    stack = O.broadcast_to(x, (*shares.shape, *x.shape[-2:]))
    inverses = [O.linalg.pinv(stack[at], rtol=float(share)) for at, share in np.ndenumerate(shares)]
    shape = (*shares.shape, x.shape[-1], x.shape[-2])
    return O.reshape(O.stack(inverses), shape) if inverses else O.zeros(shape, dtype=x.dtype)


@linalg()
def matrix_power(a, n):
    """The n-th power of square matrices; below 0, of the inverse."""
    return O.linalg.matrix_power(as_floating(a) if n < 0 else tensor(a), n)


@linalg()
def multi_dot(arrays, *, out=None):
    """The product of several matrices; the first may be a row and the last a column."""
    product, *rest = arrays
    for factor in rest:
        product = dot(product, factor)
    return product


@linalg()
def tensorsolve(a, b, axes=None):
    """Return x with tensordot(a, x, x.ndim) = b."""
    only_default("linalg.tensorsolve", axes=(axes, None))
    a, b = promote_operands(as_floating(a), as_floating(b))
    shape = a.shape[b.ndim :]
    size = int(np.prod(shape, dtype=int))
    return O.reshape(solve(O.reshape(a, (size, size)), O.reshape(b, (size,))), shape)


@linalg()
def tensorinv(a, ind=2):
    """The inverse with respect to `tensordot(..., ind)`."""
    x = as_floating(a)
    size = int(np.prod(x.shape[ind:], dtype=int))
    return O.reshape(O.linalg.inv(O.reshape(x, (size, size))), (*x.shape[ind:], *x.shape[:ind]))


# ----------------------------------------------------------------------------------------------------------- norms


@linalg()
def norm(x, ord=None, axis=None, keepdims=False):
    """The norm of vectors along one axis, of matrices along two, or of all elements."""
    x = as_floating(x)
    if axis is None and ord is None:
        return O.linalg.vector_norm(x, keepdim=keepdims)
    axis = tuple(range(x.ndim)) if axis is None else axes(axis, x.ndim)
    if len(axis) == 1:
        return O.linalg.vector_norm(x, 2 if ord is None else ord, axis, keepdims)
    if len(axis) > 2:
        raise ValueError("np.linalg.norm: Improper number of dimensions to norm.")
    return O.linalg.matrix_norm(x, "fro" if ord is None else ord, axis, keepdims)


@linalg()
def cond(x, p=None):
    """The ratio of the largest to the smallest singular value, or the product of the norms of x and its inverse."""
    x = as_floating(x)
    if p in (None, 2, -2):
        sizes = O.linalg.svdvals(x)
        ratio = sizes[..., 0] / sizes[..., -1]
        return 1 / ratio if p == -2 else ratio
    return O.linalg.matrix_norm(x, p) * O.linalg.matrix_norm(O.linalg.inv(x), p)


@linalg()
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    """The number of nonzero singular values."""
    x = tensor(A)
    if x.ndim < 2:
        return O.any(x != 0).long()
    sizes = O.linalg.svdvals(as_floating(x))
    share = max(x.shape[-2:]) * np.finfo(sizes.dtype).eps if rtol is None else rtol
    if not sizes.shape[-1]:
        return O.zeros(sizes.shape[:-1], dtype=np.int64)
    limit = O.amax(sizes, -1) * tensor(share) if tol is None else tensor(tol)
    return O.sum(sizes > O.unsqueeze(limit, -1), -1)


@linalg()
def lstsq(a, b, rcond=None):
    """The least-squares solution x of a x = b, the squared residuals, the rank and the singular values of a."""
    a, b = promote_operands(as_floating(a), as_floating(b))
    share = max(a.shape) * np.finfo(a.dtype).eps if rcond is None else rcond
    x = dot(pinv(a, share), b)
    sizes, rank = O.linalg.svdvals(a), matrix_rank(a, rtol=share)
    missed = O.sum(abs_squared(b - dot(a, x)), 0)
    whole = rank.item() == a.shape[1] < a.shape[0]
    return x, O.reshape(missed, (-1,))[: None if whole else 0], rank, sizes
