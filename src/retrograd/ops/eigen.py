"""Eigenvalues and eigenvectors.

The factors are computed together by an operator without derivative; one more operator per result has the derivative
of that result alone.  So a loss of the eigenvalues does not involve the eigenvectors, whose derivative is infinite
where eigenvalues are equal.  Derivatives of complex eigenvectors, and of singular vectors in `svd`, are those of
vectors with fixed phase: use them only in functions that do not depend on the phase.

Sources: S. F. Walter and L. Lehmann, Algorithmic differentiation of linear algebra functions (2010); C. Boeddeker et
al., On the computation of complex-valued gradients, arXiv 1701.00392.
"""

from retrograd.core import Aval, Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.hooks import conjugate
from retrograd.core.level import transform_level
from retrograd.core.state import is_recording
from retrograd.ops.complex import conjugate_transpose as adjoint
from retrograd.ops.decompose import hermitian
from retrograd.ops.diagonal import diagonal
from retrograd.ops.family import Composite, CoreDims, cast_to
from retrograd.ops.linalg import matmul
from retrograd.ops.matrix_functions import MatrixOperator, check_square, mT
from retrograd.ops.pointwise import real_part, where
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.solve import linalg_solve
from retrograd.ops.view import unsqueeze


def needs_vectors(A):
    """Whether derivatives may be requested: else eigenvalues and singular values are computed alone."""
    return transform_level() is not None or (A.requires_grad and is_recording())


def as_row(values):
    """Return values[j] in column j of a row that broadcasts."""
    return unsqueeze(values, -2)


def as_column(values):
    """Return values[i] in row i of a column that broadcasts."""
    return unsqueeze(values, -1)


def diagonal_sample(r, m, n, *lead):
    """Return matrices whose values are equal, to the last bit, with and without vectors."""
    return r(*lead, m, n) * registry["eye"](m, n, dtype=dtypes.float64)


# ----------------------------------------------------------------------------------- eigenvalues, Hermitian


@op("eigh_factors(Tensor A, *, str UPLO) -> (Tensor values, Tensor vectors)")
class eigh_factors(Internal, CoreDims, differentiable=False):
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read."""

    def impl(xp, A, *, UPLO):
        return xp.eigen_hermitian(A, UPLO)

    def shape(A, *, UPLO):
        check_square("linalg.eigh", A)
        return Aval(A.shape[:-1], dtypes.real_of(A.dtype)), Aval(A.shape, A.dtype)

    def observe(values, vectors):
        return values, weighted_product(vectors, adjoint(vectors))

    def oracle(np, A, UPLO):
        return np.linalg.eigh(A)

    def samples(r):
        yield (hermitian(r(2, 3, 3)),), {"UPLO": "L"}


@op("eigenvalues_hermitian(Tensor A, *, str UPLO) -> Tensor")
class eigenvalues_hermitian(Internal, CoreDims, differentiable=False):
    """The eigenvalues alone, where no derivatives are requested."""

    def impl(xp, A, *, UPLO):
        return xp.eigenvalues_hermitian(A, UPLO)

    def shape(A, *, UPLO):
        return eigh_factors.definition.shape(A, UPLO=UPLO)[0]

    def oracle(np, A, UPLO):
        return np.linalg.eigh(A)[0]

    def samples(r):
        yield (hermitian(r(2, 3, 3)),), {"UPLO": "U"}


class HermitianResult(Internal, MatrixOperator, snapshots="A"):
    """One result of the eigendecomposition of Hermitian matrices A, whose factors are inputs."""

    @staticmethod
    def constrain(A, values, vectors):
        """Keep A Hermitian when laws perturb it, and update the factors with it."""
        A = hermitian(A)
        return A, *eigh_factors(A, UPLO="L")

    @staticmethod
    def samples(r):
        """Yield samples with distinct eigenvalues."""
        for A in (hermitian(r(3, 3)), hermitian(r(2, 2, 2))):
            yield (A, *eigh_factors(A, UPLO="L")), {}


@op("eigh_values(Tensor A, Tensor values, Tensor vectors) -> Tensor")
class eigh_values(HermitianResult, node_name="LinalgEighBackward0"):
    """The eigenvalues of Hermitian matrices, with given factors."""

    def impl(xp, A, values, vectors):
        return xp.copy_result(A, values)

    def shape(A, values, vectors):
        return Aval(values.shape, values.dtype)

    def vjp_A(g, A, values, vectors):
        V = eigh_vectors(A, values, vectors)
        return matmul(conjugate(V) * as_row(g), mT(V))

    def jvp_A(t, A, values, vectors):
        V = eigh_vectors(A, values, vectors)
        return real_part(sum_over(conjugate(V) * matmul(_hermitian_part(t), V), -2))

    def oracle(np, A, values, vectors):
        return np.linalg.eigvalsh(A)


@op("eigh_vectors(Tensor A, Tensor values, Tensor vectors) -> Tensor")
class eigh_vectors(HermitianResult, node_name="LinalgEighBackward0"):
    """The eigenvectors of Hermitian matrices, with given factors."""

    def impl(xp, A, values, vectors):
        return xp.copy_result(A, vectors)

    def shape(A, values, vectors):
        return Aval(vectors.shape, vectors.dtype)

    def vjp_A(g, A, out, values, vectors):
        inner = _hermitian_part(matmul(mT(out), g) * _inverse_gaps(eigh_values(A, values, vectors)))
        return matmul(conjugate(out), matmul(inner, mT(out)))

    def jvp_A(t, A, out, values, vectors):
        inner = matmul(adjoint(out), matmul(_hermitian_part(t), out))
        return matmul(out, inner * _inverse_gaps(eigh_values(A, values, vectors)))

    def observe(V):
        return (weighted_product(V, adjoint(V)),)

    def oracle(np, A, values, vectors):
        return np.linalg.eigh(A)[1]


def _hermitian_part(x):
    return (x + adjoint(x)) * 0.5


def _inverse_gaps(values):
    """Return 1 / (values[j] - values[i]) at i, j, and 0 on the diagonal; infinite where values are equal."""
    gaps = as_row(values) - as_column(values)
    same = registry["eye"](values.shape[-1], dtype=dtypes.bool_)
    return where(same, 0.0, 1 / where(same, 1.0, gaps))  # 1 / inf is not 0 in every library: complex numbers in CuPy's


def weighted_product(left, right):
    """Return left times right with weights between, which distinguish the vectors but not their phases."""
    weights = registry["arange"](1, left.shape[-1] + 1, 1, dtype=left.dtype)
    return matmul(left * weights, right)



def _triangle(name, A, UPLO):
    """Return which triangle of a square A is read: "L" or "U"."""
    check_square(name, A)
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"{name}: UPLO must be 'L' or 'U', got {UPLO!r}")
    return UPLO.upper()


@op("linalg.eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)")
class linalg_eigh(Composite):
    """Eigenvalues, real and ascending, and orthonormal eigenvectors, as columns, of Hermitian matrices.

    Only the lower triangle is read, or the upper with UPLO="U".  The gradient of the eigenvectors is infinite or NaN
    where eigenvalues are equal; that of the eigenvalues is not.

    >>> import retrograd as rg
    >>> rg.linalg.eigh(rg.tensor([[3.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 3.0]
    """

    def compose(A, *, UPLO):
        UPLO = _triangle("linalg.eigh", A, UPLO)
        factors = eigh_factors(A, UPLO=UPLO)
        return eigh_values(A, *factors), eigh_vectors(A, *factors)

    def constrain(A):
        return (hermitian(A),)

    def observe(values, vectors):
        return values, weighted_product(vectors, adjoint(vectors))

    def oracle(np, A, UPLO):
        return np.linalg.eigh(A, UPLO)

    def samples(r):
        yield (hermitian(r(3, 3)),), {}
        yield (hermitian(r(2, 2, 2)),), {"UPLO": "U"}

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"linalg.eigh: .*expected square matrices, got shape \(2, 3\)"
        yield (r(2, 2),), {"UPLO": "X"}, ValueError, "linalg.eigh: UPLO must be 'L' or 'U', got 'X'"


@op("linalg.eigvalsh(Tensor A, str UPLO='L') -> Tensor")
class linalg_eigvalsh(Composite):
    """Eigenvalues of Hermitian matrices, ascending; their gradient is finite even where they are equal."""

    def compose(A, *, UPLO):
        UPLO = _triangle("linalg.eigvalsh", A, UPLO)
        if needs_vectors(A):
            return eigh_values(A, *eigh_factors(A, UPLO=UPLO))
        return eigenvalues_hermitian(A, UPLO=UPLO)

    def constrain(A):
        return (hermitian(A),)

    def oracle(np, A, UPLO):
        return np.linalg.eigh(A)[0]

    def samples(r):
        yield (diagonal_sample(r, 3, 3),), {}
        yield (diagonal_sample(r, 2, 2, 2),), {"UPLO": "U"}


# -------------------------------------------------------------------------------------- eigenvalues, general


@op("eig_factors(Tensor A) -> (Tensor values, Tensor vectors)")
class eig_factors(Internal, CoreDims, differentiable=False):
    """Eigenvalues and eigenvectors, complex, of square matrices."""

    def impl(xp, A):
        return xp.eigen(A)

    def shape(A):
        check_square("linalg.eig", A)
        dtype = dtypes.complex_of(A.dtype)
        return Aval(A.shape[:-1], dtype), Aval(A.shape, dtype)

    exempt = {"bfloat16": "the decompositions that call it refuse half precision"}

    oracle = "numpy.linalg.eig"

    def samples(r):
        yield (r(2, 3, 3),), {}


@op("eigenvalues_general(Tensor A) -> Tensor")
class eigenvalues_general(Internal, CoreDims, differentiable=False):
    """The eigenvalues alone, where no derivatives are requested."""

    def impl(xp, A):
        return xp.eigenvalues(A)

    def shape(A):
        return eig_factors.definition.shape(A)[0]

    exempt = {"bfloat16": "the decompositions that call it refuse half precision"}

    oracle = "numpy.linalg.eigvals"

    def samples(r):
        yield (r(2, 3, 3),), {}


class GeneralResult(Internal, MatrixOperator, snapshots="A"):
    """One result of the eigendecomposition of square matrices A, whose factors are inputs."""

    @staticmethod
    def constrain(A, values, vectors):
        """Update the factors with A."""
        return A, *eig_factors(A)

    @staticmethod
    def samples(r):
        """Yield samples with pairs of complex eigenvalues, and without."""
        for A in (r(3, 3), r(2, 2, 2)):
            yield (A, *eig_factors(A)), {}


def _real_if_real(x, A):
    """Return the real part of x if A is real."""
    return real_part(x) if A.dtype.kind != "c" else x


@op("eig_values(Tensor A, Tensor values, Tensor vectors) -> Tensor")
class eig_values(GeneralResult, node_name="LinalgEigBackward0"):
    """The eigenvalues of square matrices, with given factors."""

    def impl(xp, A, values, vectors):
        return xp.copy_result(A, values)

    def shape(A, values, vectors):
        return Aval(values.shape, values.dtype)

    def vjp_A(g, A, values, vectors):
        Vt = mT(eig_vectors(A, values, vectors))
        return _real_if_real(linalg_solve(Vt, as_column(g) * Vt), A)

    def jvp_A(t, A, values, vectors):
        V = eig_vectors(A, values, vectors)
        return diagonal(linalg_solve(V, matmul(cast_to(t, V.dtype), V)), 0, -2, -1).clone()

    def oracle(np, A, values, vectors):
        return np.linalg.eigvals(A)


@op("eig_vectors(Tensor A, Tensor values, Tensor vectors) -> Tensor")
class eig_vectors(GeneralResult, node_name="LinalgEigBackward0"):
    """The eigenvectors of square matrices, of length 1, with given factors."""

    def impl(xp, A, values, vectors):
        return xp.copy_result(A, vectors)

    def shape(A, values, vectors):
        return Aval(vectors.shape, vectors.dtype)

    def vjp_A(g, A, out, values, vectors):
        g = g - conjugate(out) * _projections(conjugate(out), g)
        inner = matmul(mT(out), g) * _inverse_gaps(eig_values(A, values, vectors))
        return _real_if_real(linalg_solve(mT(out), matmul(inner, mT(out))), A)

    def jvp_A(t, A, out, values, vectors):
        inner = linalg_solve(out, matmul(cast_to(t, out.dtype), out))
        t_vectors = matmul(out, inner * _inverse_gaps(eig_values(A, values, vectors)))
        return t_vectors - out * _projections(out, t_vectors)

    def observe(V):
        return (real_part(V * conjugate(V)),)

    def oracle(np, A, values, vectors):
        return np.linalg.eig(A)[1]


def _projections(V, x):
    """Return the real components of the columns of x along those of V, in V's dtype."""
    return cast_to(real_part(sum_over(conjugate(V) * x, -2, keepdim=True)), V.dtype)



@op("linalg.eig(Tensor A) -> (Tensor eigenvalues, Tensor eigenvectors)")
class linalg_eig(Composite):
    """Eigenvalues, and eigenvectors as columns of length 1, of square matrices: both complex.

    The gradient of the eigenvectors is infinite or NaN where eigenvalues are equal; that of the eigenvalues needs a
    diagonalisable matrix.

    >>> import retrograd as rg
    >>> rg.linalg.eig(rg.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.tolist()
    [1j, -1j]
    """

    def compose(A):
        check_square("linalg.eig", A)
        factors = eig_factors(A)
        return eig_values(A, *factors), eig_vectors(A, *factors)

    def observe(values, vectors):
        return values, real_part(vectors * conjugate(vectors))

    oracle = "numpy.linalg.eig"

    def samples(r):
        yield (r(3, 3),), {}
        yield (r(2, 2, 2),), {}

    def errors(r):
        yield (r(2, 3),), {}, ValueError, r"linalg.eig: .*expected square matrices, got shape \(2, 3\)"


@op("linalg.eigvals(Tensor A) -> Tensor")
class linalg_eigvals(Composite):
    """Eigenvalues of square matrices, complex, in no particular order."""

    def compose(A):
        check_square("linalg.eigvals", A)
        return eig_values(A, *eig_factors(A)) if needs_vectors(A) else eigenvalues_general(A)

    oracle = "numpy.linalg.eigvals"

    def samples(r):
        yield (r(2, 2, 2),), {}
