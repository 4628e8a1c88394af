"""`scipy.linalg`: its functions with tensor support; the rest is SciPy's own."""

from retrograd.core import registry
from retrograd.core.dtype import complex_of, is_floating
from retrograd.core.level import ReadError
from retrograd.interop.numpy_protocol import functions
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    cast,
    only_default,
    promote_operands,
    refuse,
    tensor,
    values,
)
from retrograd.scipy._mirror import fallback_members, generate, on_tensors, scipy_member

_linalg = on_tensors("scipy.linalg")

globals().update(generate("linalg"))


def _defaults(name, check_finite=True, **given):
    """Ignore flags about overwriting and checks; refuse other non-default arguments."""
    given = {key: value for key, value in given.items() if not key.startswith("overwrite_")}
    only_default(f"linalg.{name}", **{key: (value, None) for key, value in given.items()})


@_linalg
def sqrtm(A, **kwargs):
    """Return the principal square root of a matrix, which is complex if no real one is."""
    _defaults("sqrtm", **kwargs)
    x = as_floating(A)
    return registry["sqrtm"](cast(x, complex_of(x.dtype)) if _has_complex_root(x) else x)


def _has_complex_root(x):
    """Whether the square root of a real matrix is complex; assumed False under vmap, where values are unknown."""
    try:
        return is_floating(x.dtype) and scipy_member("scipy.linalg").sqrtm(values(x)).dtype.kind == "c"
    except ReadError:
        return False


@_linalg
def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, **kwargs):
    """Return x with a x = b for a triangular matrix; trans=1 or 2 uses its transpose or adjoint."""
    _defaults("solve_triangular", **kwargs)
    a, b = promote_operands(as_floating(a), as_floating(b))
    if trans in (1, "T", 2, "C"):
        a = O.conj(a.mT) if trans in (2, "C") else a.mT
        lower = not lower
    columns = O.unsqueeze(b, -1) if b.ndim == 1 else b
    x = O.linalg.solve_triangular(a, columns, upper=not lower, unitriangular=unit_diagonal)
    return x[..., 0] if b.ndim == 1 else x


@_linalg
def solve_banded(l_and_u, ab, b, **kwargs):
    """Return x with a x = b for a banded matrix, whose diagonals are the rows of `ab`, the highest first."""
    _defaults("solve_banded", **kwargs)
    below, above = l_and_u
    ab = as_floating(ab)
    size = ab.shape[1]
    if ab.shape[0] != below + above + 1:
        raise ValueError(f"solve_banded: {l_and_u} bands need {below + above + 1} rows, got {ab.shape[0]}")
    diagonals = [O.diag(_band(ab[row], above - row, size), above - row) for row in range(ab.shape[0])]
    return functions()["linalg.solve"](sum(diagonals[1:], diagonals[0]), b)


def _band(row, offset, size):
    """Return the part of a row of `ab` that is inside the matrix."""
    return row[offset:] if offset > 0 else row[: size + offset]


@_linalg
def solve(a, b, lower=False, assume_a="gen", transposed=False, **kwargs):
    """Return x with a x = b; assumptions about a are ignored."""
    _defaults("solve", **kwargs)
    if assume_a not in (None, "gen", "general"):
        refuse("linalg.solve", f"assume_a={assume_a!r}, which reads one triangle, is not supported for tensors")
    return functions()["linalg.solve"](tensor(a).T if transposed else a, b)


@_linalg
def inv(a, **kwargs):
    """Return the inverse."""
    _defaults("inv", **kwargs)
    return O.linalg.inv(as_floating(a))


@_linalg
def det(a, **kwargs):
    """Return the determinant."""
    _defaults("det", **kwargs)
    return O.linalg.det(as_floating(a))


@_linalg
def cholesky(a, lower=False, **kwargs):
    """Return the triangular R with R^H R = a, or with lower=True the L with L L^H = a."""
    _defaults("cholesky", **kwargs)
    return O.linalg.cholesky(as_floating(a), upper=not lower)


@_linalg
def norm(a, ord=None, axis=None, keepdims=False, check_finite=True):
    """Return the norm of vectors or matrices, as `numpy.linalg.norm` does."""
    return functions()["linalg.norm"](a, ord, axis, keepdims)


@_linalg
def block_diag(*arrs):
    """Return the matrix with these blocks on its diagonal."""
    blocks = promote_operands(*[functions()["atleast_2d"](tensor(x)) for x in arrs])
    width, rows, start = sum(x.shape[1] for x in blocks), [], 0
    for x in blocks:
        rows.append(functions()["pad"](x, ((0, 0), (start, width - start - x.shape[1]))))
        start += x.shape[1]
    return O.cat(rows, 0)


__getattr__, __dir__ = fallback_members("scipy.linalg")
