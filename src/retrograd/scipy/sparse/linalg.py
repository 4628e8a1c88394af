"""`scipy.sparse.linalg`: linear systems, eigenvectors and exponentials of sparse matrices, differentiable.

A matrix is a sparse tensor of any layout, or an array of SciPy, which is a constant; a right-hand side is a dense
tensor or array. Gradients with respect to a matrix are sparse, with its pattern. All other names are SciPy's own.
"""

import math
from collections.abc import Callable
from typing import Any

from retrograd.backend.sparse_pattern import Coordinates, block_diagonal
from retrograd.backend.sparse_solvers import (
    Factorization,
    Iterative,
    Solver,
    Triangular,
    as_linear_operator,
    bordered,
    eigenpairs,
    with_diagonal,
)
from retrograd.core import Tensor, registry
from retrograd.core.tensor import unwrap_all
from retrograd.foundation.function_arguments import Array
from retrograd.implicit.operator import implicit_solution
from retrograd.implicit.problems import Problem
from retrograd.interop.numpy_protocol.table import O, as_floating, only_default, promote_operands, values
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy._mirror import fallback_members, on_tensors
from retrograd.sparse.construct import from_scipy, to_scipy
from retrograd.sparse.primitives import add_at, entries, is_sparse, unique_entries
from retrograd.sparse.rules.products import times_dense
from retrograd.sparse.solve import solve_system

_linalg = on_tensors("scipy.sparse.linalg")


def _matrix(name: str, A: Any) -> tuple[Tensor, Coordinates]:
    """Return the values and the coordinates of a square matrix: a sparse tensor, or an array of SciPy."""
    if hasattr(A, "tocsr"):
        A = from_scipy(A)
    if not isinstance(A, Tensor) or not is_sparse(A):
        raise TypeError(
            f"{name}: A must be a sparse tensor or a sparse array of SciPy, got {type(A).__name__}; a dense tensor has "
            f"to_sparse(), and rg.implicit.root differentiates the solution of a matrix-free system"
        )
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name}: expected a square matrix, got shape {tuple(A.shape)}")
    coordinates, numbers = entries(A)
    if numbers.ndim != 1:
        raise ValueError(f"{name}: A must be a matrix without dense dimensions, got shape {tuple(A.shape)}")
    return as_floating(numbers), coordinates


def _system(name: str, A: Any, b: Any) -> tuple[Tensor, Coordinates, Tensor]:
    """Return (values, coordinates, right-hand side) in one dtype."""
    numbers, pattern = _matrix(name, A)
    if isinstance(b, Tensor) and is_sparse(b):
        raise TypeError(f"{name}: b must be dense, got a sparse tensor of shape {tuple(b.shape)}; use b.to_dense()")
    numbers, b = promote_operands(numbers, as_floating(b))
    if b.ndim not in (1, 2) or b.shape[0] != pattern.sizes[0]:
        raise ValueError(f"{name}: b of shape {tuple(b.shape)} does not fit A of shape {pattern.sizes}")
    return numbers, pattern, b


def _solved(name: str, A: Any, b: Any, solver: Solver, transposed: bool = False) -> Tensor:
    numbers, pattern, b = _system(name, A, b)
    x = solve_system(numbers, pattern, b, solver, transposed)
    return x.squeeze(1) if x.ndim == 2 and x.shape[1] == 1 else x  # as SciPy does


# ------------------------------------------------------------------------------------------------ factorization


@_linalg
def spsolve(A: Tensor | Array, b: ArrayOrSequence, permc_spec: Any = None, use_umfpack: bool = True) -> Tensor:
    """Return x with A x = b, for a vector b (n,) or a matrix (n, k), by LU factors.

    The backward pass solves a system with the transposed matrix by the same factors. RuntimeError for a singular A.

    >>> import retrograd as rg
    >>> from retrograd.scipy.sparse.linalg import spsolve
    >>> A = rg.tensor([[2.0, 0.0], [1.0, 4.0]]).to_sparse().requires_grad_()
    >>> x = spsolve(A, rg.tensor([2.0, 5.0]))
    >>> x
    tensor([1., 1.], grad_fn=<SqueezeBackward1>)
    >>> x.sum().backward()
    >>> A.grad.values()
    tensor([-0.3750, -0.2500, -0.2500])
    """
    return _solved("spsolve", A, b, Factorization(permc_spec=permc_spec))


class FactorizedMatrix:
    """LU factors of a sparse matrix: `solve` is differentiable; other attributes are those of SciPy's `SuperLU`."""

    def __init__(self, name: str, A: Any, options: dict[str, Any]) -> None:
        self._values, self._pattern = _matrix(name, A)
        self._values = registry["clone"](self._values)  # later writes to A don't change what was factorized
        self._solver = Factorization(**options)
        self._factors = self._solver.factors(values(self._values), self._pattern)

    def solve(self, rhs: Any, trans: str = "N") -> Tensor:
        """Return x with A x = rhs; trans="T" or "H" uses the transpose or the adjoint."""
        if trans not in ("N", "T", "H"):
            raise ValueError(f"solve: trans must be 'N', 'T' or 'H', got {trans!r}")
        numbers, b = promote_operands(self._values, as_floating(rhs))
        if trans == "H":
            return O.conj(solve_system(numbers, self._pattern, O.conj(b), self._solver, True))
        return solve_system(numbers, self._pattern, b, self._solver, trans == "T")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._factors, name)

    def __repr__(self) -> str:
        return f"FactorizedMatrix({self._pattern.sizes[0]} x {self._pattern.sizes[1]}, nnz={self._factors.nnz})"


@_linalg
def splu(
    A: Tensor | Array, permc_spec: Any = None, diag_pivot_thresh: Any = None, relax: Any = None, panel_size: Any = None,
    options: Any = None,
) -> FactorizedMatrix:  # fmt: skip
    """Return the LU factors of a matrix, whose `solve(b)` is differentiable in A and b.

    >>> import retrograd as rg
    >>> from retrograd.scipy.sparse.linalg import splu
    >>> factors = splu(rg.tensor([[2.0, 0.0], [1.0, 4.0]]).to_sparse())
    >>> factors.solve(rg.tensor([2.0, 5.0])), factors.solve(rg.tensor([3.0, 4.0]), "T")
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    given = {"permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax, "panel_size": panel_size}
    return FactorizedMatrix("splu", A, {**given, "options": options or {}})


@_linalg
def spilu(A: Any, **options: Any) -> Any:
    """Return SciPy's incomplete LU factors of the values, to precondition an iterative method; no derivatives."""
    return _on_values("spilu")(to_scipy(A.detach()).tocsc(), **options)


@_linalg
def factorized(A: Tensor | Array) -> Callable[[Any], Tensor]:
    """Return the function that solves A x = b for a vector b by LU factors, which are computed once."""
    return FactorizedMatrix("factorized", A, {}).solve


@_linalg
def spsolve_triangular(
    A: Tensor | Array, b: ArrayOrSequence, lower: bool = True, overwrite_A: bool = False, overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Tensor:  # fmt: skip
    """Return x with A x = b for a triangular matrix, by substitution; nothing is overwritten."""
    numbers, pattern, b = _system("spsolve_triangular", A, b)
    return solve_system(numbers, pattern, b, Triangular(lower, unit_diagonal=unit_diagonal))


def _on_values(name: str) -> Callable:
    """Return SciPy's function."""
    found: Callable = fallback_members("scipy.sparse.linalg")[0](name)
    return found


# ----------------------------------------------------------------------------------------------------- iteration


def _krylov(name: str, what: str) -> Callable:
    """Return the face of an iterative solver of SciPy."""

    def solve(
        A: Tensor | Array, b: ArrayOrSequence, x0: Any = None, *, M: Any = None, **options: Any
    ) -> tuple[Tensor, int]:
        numbers, pattern, b = _system(name, A, b)
        if b.ndim == 2 and b.shape[1] != 1:
            raise ValueError(f"{name}: b must be a vector, got shape {tuple(b.shape)}; map over columns by vmap")
        if isinstance(M, Tensor):
            M = to_scipy(M.detach()) if is_sparse(M) else values(M.detach())
        start = values(x0.detach()) if isinstance(x0, Tensor) else x0
        solver = Iterative(name, as_linear_operator(M), start, **options)
        x = solve_system(numbers, pattern, b.reshape((-1,)), solver)
        return x, solver.info

    solve.__name__ = solve.__qualname__ = name
    solve.__doc__ = f"""Return (x, info) with A x = b by {what}; info is 0 if it converged.

    Arguments are SciPy's; M, the preconditioner, may be a tensor. The derivative with respect to A and b solves systems
    with the transposed matrix by the same method, and warns if one does not converge; x0 and M have none.
    """
    face: Callable = _linalg(solve)
    return face


cg = _krylov("cg", "conjugate gradients, for a positive definite A")
cgs = _krylov("cgs", "squared conjugate gradients")
bicg = _krylov("bicg", "biconjugate gradients")
bicgstab = _krylov("bicgstab", "stabilized biconjugate gradients")
gmres = _krylov("gmres", "generalized minimal residuals")
lgmres = _krylov("lgmres", "generalized minimal residuals with error vectors")
gcrotmk = _krylov("gcrotmk", "flexible GCROT")
minres = _krylov("minres", "minimal residuals, for a symmetric A")
tfqmr = _krylov("tfqmr", "quasi-minimal residuals without transposes")


# --------------------------------------------------------------------------------------------------- eigenvectors


class _Eigenpairs(Problem):
    """A V = V diag(w) with columns V of norm 1; z is each column, followed by its eigenvalue."""

    def __init__(self, pattern: Coordinates, count: int, options: dict[str, Any]) -> None:
        self.name = "eigsh"
        self.pattern = pattern
        self.count = count
        self.options = options

    def solve(self, start: Any, tensors: Any) -> Any:
        """Return z by SciPy's eigsh."""
        return eigenpairs(tensors[0], self.pattern, self.count, self.options)

    def parts(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the eigenvectors, a row for each, and the eigenvalues."""
        rows = z.reshape((self.count, -1))
        return rows[:, :-1], rows[:, -1]

    def residual(self, z: Tensor, tensors: Any) -> Tensor:
        """Return A v - w v and (v · v - 1) / 2 for each pair."""
        v, w = self.parts(z)
        moved = times_dense(tensors[0], v.mT, pattern=self.pattern).mT - w.unsqueeze(1) * v
        return O.cat([moved, ((v * v).sum(1, keepdim=True) - 1) / 2], 1).reshape((-1,))

    def solve_linear(self, z: Tensor, tensors: Any, g: Tensor, transposed: bool) -> Tensor:
        """Solve with [[A - w I, -v], [v.T, 0]] for each pair, all of them in one sparse system."""
        v, w = self.parts(z)
        size, shape = v.shape[1], (self.count, -1)
        shifted = [tensors[0].expand(self.count, -1), (-w).unsqueeze(1).expand(self.count, size)]
        numbers = O.cat([*shifted, -v, v, O.zeros_like(w).unsqueeze(1)], 1).reshape((-1,))
        pattern = block_diagonal(bordered(with_diagonal(self.pattern), 1), self.count)
        assert g.reshape(shape).shape[1] == size + 1
        return solve_system(numbers, pattern, g, Factorization(), transposed)


@_linalg
def eigsh(
    A: Tensor | Array, k: int = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None, ncv: Any = None,
    maxiter: Any = None, tol: float = 0, return_eigenvectors: bool = True, Minv: Any = None, OPinv: Any = None,
    mode: str = "normal", rng: Any = None,
) -> Any:  # fmt: skip
    """Return k eigenvalues (k,) of a real symmetric matrix, and eigenvectors (n, k), as SciPy's function chooses them.

    Derivatives come from the equations of the eigenpairs, by sparse systems; RuntimeError where an eigenvalue is not
    simple, since its eigenvectors have none.

    >>> import retrograd as rg
    >>> from retrograd.scipy.sparse.linalg import eigsh
    >>> A = rg.diag(rg.tensor([1.0, 5.0, 2.0], dtype=rg.float64)).to_sparse().requires_grad_()
    >>> largest = eigsh(A, k=1, return_eigenvectors=False)
    >>> largest.sum().backward()
    >>> A.grad.values().round(decimals=6).abs()
    tensor([0., 1., 0.], dtype=float64)
    """
    only_default("eigsh", M=(M, None), Minv=(Minv, None), mode=(mode, "normal"))
    numbers, pattern = _matrix("eigsh", A)
    given = {"sigma": sigma, "which": which, "v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol, "OPinv": OPinv,
             "rng": rng}  # fmt: skip
    start = registry["zeros"]((k * (pattern.sizes[0] + 1),), dtype=numbers.dtype)
    problem = _Eigenpairs(pattern, k, {n: v for n, v in given.items() if v is not None})
    v, w = problem.parts(implicit_solution([start, numbers], problem=problem))
    return (w, v.mT) if return_eigenvectors else w


# ---------------------------------------------------------------------------------------- exponentials and norms

_RADIUS = 3.5  # of the steps: a Taylor series of length `_TERMS` is exact there to the precision of the dtype


@_linalg
def expm_multiply(
    A: Tensor | Array, B: ArrayOrSequence, start: Any = None, stop: Any = None, num: Any = None, endpoint: Any = None,
    traceA: Any = None,
) -> Tensor:  # fmt: skip
    """Return exp(A) @ B for B (n,) or (n, k); with start and stop, exp(t A) @ B at `num` times t, in front.

    By Taylor series in steps, as in A. H. Al-Mohy and N. J. Higham, SIAM J. Sci. Comput. 33 (2011), but with steps of
    one length; every step is recorded, so derivatives of any order follow. `traceA` is not needed.

    >>> import retrograd as rg
    >>> from retrograd.scipy.sparse.linalg import expm_multiply
    >>> A = rg.tensor([[0.0, 1.0], [0.0, 0.0]]).to_sparse()
    >>> expm_multiply(A, rg.tensor([1.0, 2.0]))
    tensor([3., 2.])
    >>> expm_multiply(A, rg.tensor([1.0, 2.0]), start=0.0, stop=2.0, num=3)[:, 0]
    tensor([1., 3., 5.])
    """
    numbers, pattern, b = _system("expm_multiply", A, B)
    columns = b.unsqueeze(1) if b.ndim == 1 else b
    if start is None:
        out = _propagate(numbers, pattern, columns, 1.0)
        return out.squeeze(1) if b.ndim == 1 else out
    count = 50 if num is None else num
    length = (stop - start) / max(count - (endpoint is None or bool(endpoint)), 1)
    points = [_propagate(numbers, pattern, columns, float(start))]
    while len(points) < count:
        points.append(_propagate(numbers, pattern, points[-1], float(length)))
    stacked = O.stack(points, 0)
    return stacked.squeeze(2) if b.ndim == 1 else stacked


def _propagate(numbers: Tensor, pattern: Coordinates, b: Tensor, time: float) -> Tensor:
    """Return exp(time A) b."""
    shift = _mean_of_diagonal(numbers, pattern)
    size = _one_norm(numbers, pattern) + abs(shift)
    steps = math.ceil(size * abs(time) / _RADIUS)
    terms = 30 if numbers.dtype.itemsize >= 8 else 20
    for _ in range(steps):
        term = b
        for number in range(1, terms + 1):
            moved = times_dense(numbers, term, pattern=pattern) - shift * term
            term = moved * (time / steps / number)
            b = b + term
        b = b * math.exp(shift * time / steps)
    return b


def _mean_of_diagonal(numbers: Tensor, pattern: Coordinates) -> float:
    """Return the mean of the diagonal as a constant, of all examples under vmap; 0 for a complex matrix."""
    array = unwrap_all(numbers)
    on_diagonal = pattern.indices[0] == pattern.indices[1]
    return float(array[..., on_diagonal].real.sum() * pattern.nnz / (max(array.size, 1) * pattern.sizes[0]))


def _one_norm(numbers: Tensor, pattern: Coordinates) -> float:
    """Return a bound of the largest sum of a column, as a constant."""
    totals = unwrap_all(add_at(O.abs(numbers.detach()), pattern.indices[1], pattern.sizes[1]))
    return float(totals.max(initial=0))


@_linalg
def norm(x: Any, ord: Any = None, axis: Any = None) -> Tensor:
    """Return the Frobenius norm of a sparse matrix, or its largest or smallest sum of a column (1, -1) or row (inf)."""
    only_default("sparse.linalg.norm", axis=(axis, None))
    pattern, numbers = unique_entries(x)
    if ord in (None, "fro", "f"):
        return O.linalg.vector_norm(numbers)
    if ord not in (1, -1, math.inf, -math.inf):
        raise NotImplementedError(f"norm: ord must be None, 'fro', 1, -1, inf or -inf for sparse tensors, got {ord!r}")
    totals = add_at(O.abs(numbers), pattern.indices[1 if abs(ord) == 1 else 0], pattern.sizes[abs(ord) == 1])
    return O.amax(totals) if ord > 0 else O.amin(totals)


__getattr__, __dir__ = fallback_members("scipy.sparse.linalg")
