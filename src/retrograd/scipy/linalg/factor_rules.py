"""The operator of matrix factors that LAPACK computes, differentiated by a linear rule for their tangents."""

from collections.abc import Callable
from typing import Any, NamedTuple

from retrograd.autograd import Function
from retrograd.core import Tensor
from retrograd.func import jvp, vjp
from retrograd.implicit.closures import example_of
from retrograd.interop.numpy_protocol.table import O, tensor, values


class Factorization(NamedTuple):
    """How factors are computed from arrays, and how they change with these.

    `compute(*arrays)` returns a tuple of arrays.  `tangents(inputs, factors, changes)` returns the changes of the
    factors, is linear in the changes of the inputs, and consists of operators.
    """

    compute: Callable[..., tuple]
    tangents: Callable[[list, list, list], list]


class MatrixFactors(Function):
    """Return the factors of matrices as a tuple; reverse mode transposes the rule for tangents."""

    @staticmethod
    def forward(rule, *inputs):
        return tuple([tensor(factor) for factor in rule.compute(*[values(x) for x in inputs])])

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.rule, *matrices = inputs
        ctx.count = len(matrices)
        ctx.save_for_backward(*matrices, *output)
        ctx.save_for_forward(*matrices, *output)

    @staticmethod
    def vmap(info, in_dims, rule, *inputs):
        """Factor one example after the other."""
        first = [x if d is None else O.movedim(x, d, 0) for x, d in zip(inputs, in_dims[1:], strict=True)]
        pairs = list(zip(first, in_dims[1:], strict=True))
        found = [
            MatrixFactors.apply(rule, *[x if d is None else x[i] for x, d in pairs]) for i in range(info.batch_size)
        ]
        stacked = tuple([O.stack(list(group)) for group in zip(*found, strict=True)])
        return stacked, (0,) * len(stacked)

    @staticmethod
    def backward(ctx, *gs):
        inputs, factors = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        gs = [O.zeros_like(f) if g is None else g for g, f in zip(gs, factors, strict=True)]

        def along(*changes):
            return tuple(ctx.rule.tangents(list(inputs), list(factors), list(changes)))

        _, pull = vjp(along, *[O.zeros_like(x) for x in inputs])
        return None, *pull(tuple(gs))

    @staticmethod
    def jvp(ctx, _, *changes):
        inputs, factors = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        changes = [O.zeros_like(x) if c is None else c for x, c in zip(inputs, changes, strict=True)]
        return tuple(ctx.rule.tangents(list(inputs), list(factors), changes))


def factors_of(rule: Factorization, *inputs: Tensor) -> Any:
    """Return the factors of some matrices, a tuple of tensors."""
    return MatrixFactors.apply(rule, *inputs)


# ------------------------------------------------------------------------------------------------- rules


def adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose of a matrix."""
    return O.conj(x.mT)


def _columns(parts: list[Tensor], size: int, dtype: Any) -> Tensor:
    """Return the strictly lower matrix with these columns below the diagonal."""
    made = [O.cat([O.zeros((size - part.shape[0],), dtype=dtype), part], 0) for part in parts]
    return O.stack([*made, O.zeros((size,), dtype=dtype)], 1)


def schur_tangents(inputs: list, factors: list, changes: list) -> list:
    """Return the changes of T and Z in A = Z T Z^H.

    With Z^H dZ = L - L^H for a strictly lower L, the part of Z^H dA Z + T L - L T below the diagonal is zero: one
    triangular system for each column of L.
    """
    T, Z = factors
    size = T.shape[0]
    moved = adjoint(Z) @ changes[0] @ Z
    columns: list[Tensor] = []
    for j in range(size - 1):
        known = -moved[j + 1 :, j]
        for k, column in enumerate(columns):
            known = known + column[j - k :] * T[k, j]
        system = T[j + 1 :, j + 1 :] - T[j, j] * O.eye(size - j - 1, dtype=T.dtype)
        columns.append(O.linalg.solve_triangular(system, O.unsqueeze(known, 1), upper=True)[:, 0])
    lower = _columns(columns, size, T.dtype)
    turn = lower - adjoint(lower)
    return [O.triu(moved + T @ turn - turn @ T), Z @ turn]


def qz_tangents(inputs: list, factors: list, changes: list) -> list:
    """Return the changes of S, T, Q and Z in A = Q S Z^H and B = Q T Z^H.

    With Q^H dQ = X - X^H and Z^H dZ = Y - Y^H + D for strictly lower X and Y, both changes of triangles vanish below
    the diagonal: a system for each column of X and Y. The imaginary diagonal D keeps the diagonal of T real.
    """
    S, T, Q, Z = factors
    size = S.shape[0]
    moved = [adjoint(Q) @ change @ Z for change in changes]
    left: list[Tensor] = []
    right: list[Tensor] = []
    for j in range(size - 1):
        known = []
        for triangle, change in ((S, moved[0]), (T, moved[1])):
            row = -change[j + 1 :, j]
            for k, column in enumerate(left):
                row = row + column[j - k :] * triangle[k, j]
            known.append(row)
        unit = O.eye(size - j - 1, dtype=S.dtype)
        system = O.cat([
            O.cat([-S[j, j] * unit, S[j + 1 :, j + 1 :]], 1), O.cat([-T[j, j] * unit, T[j + 1 :, j + 1 :]], 1),
        ], 0)  # fmt: skip
        found = O.linalg.solve(system, O.cat(known, 0))
        left.append(found[: size - j - 1])
        right.append(found[size - j - 1 :])
    x, y = _columns(left, size, S.dtype), _columns(right, size, S.dtype)
    turn_left, turn_right = x - adjoint(x), y - adjoint(y)
    new_t = moved[1] - turn_left @ T + T @ turn_right
    if S.dtype.kind == "c":
        phase = O.imag(O.diagonal(new_t)) / O.real(O.diagonal(T))
        turn_right = turn_right - 1j * O.diag(phase)
    new = [O.triu(m - turn_left @ t + t @ turn_right) for m, t in zip(moved, (S, T), strict=True)]
    return [*new, Q @ turn_left, Z @ turn_right]


def ldl_tangents(order: list, blocks: Tensor, lower: bool, hermitian: bool) -> Callable:
    """Return the rule for L and D in A = L D L^H.

    The rows `order` of L are triangular, and `blocks` is 1 in the blocks of D, 0 elsewhere.
    """

    def rule(inputs: list, factors: list, changes: list) -> list:
        L, D = factors
        triangle = L[order]
        change = changes[0][order][:, order]
        options = {"upper": not lower, "unitriangular": True}
        left = O.linalg.solve_triangular(triangle, change, **options)
        moved = O.linalg.solve_triangular(O.conj(triangle) if hermitian else triangle, left.mT, **options).mT
        outside = (O.tril(moved) if lower else O.triu(moved)) * (1 - blocks)
        growth = triangle @ O.linalg.solve(D.mT, outside.mT).mT
        inverse = sorted(range(len(order)), key=order.__getitem__)
        return [growth[inverse], moved * blocks]

    return rule


def riccati_tangents(residual: Callable, solve: Callable) -> Callable:
    """Return the rule for X with residual(X, *inputs) = 0; `solve(X, inputs, r)` inverts the derivative by X."""

    def rule(inputs: list, factors: list, changes: list) -> list:
        _, along = jvp(lambda *given: residual(factors[0], *given), tuple(inputs), tuple(changes))
        return [solve(factors[0], inputs, -along)]

    return rule


def hessenberg_tangents(inputs: list, factors: list, changes: list) -> list:
    """Return the changes of H and Q in A = Q H Q^H.

    With dQ = Q W for a skew-Hermitian W whose first column is zero, each column of M + H W - W H that is zero below
    the subdiagonal, and real on it, gives the next column of W.
    """
    H, Q = factors
    size = H.shape[0]
    moved = adjoint(Q) @ changes[0] @ Q
    complex_ = H.dtype.kind == "c"
    columns = [O.zeros_like(H[:, 0])]
    for j in range(size - 1):
        known = moved[:, j] + H @ columns[j]
        for i, column in enumerate(columns):
            known = known - H[i, j] * column
        known = known / H[j + 1, j]
        above = O.stack([-O.conj(column[j + 1]) for column in columns])
        middle = 1j * O.imag(known[j + 1 : j + 2]) if complex_ else O.zeros_like(known[:1])
        columns.append(O.cat([above, middle, known[j + 2 :]], 0))
    turn = O.stack(columns, 1)
    return [O.triu(moved + H @ turn - turn @ H, -1), Q @ turn]


def rsf2csf_tangents(inputs: list, factors: list, changes: list) -> list:
    """Return the changes of the complex Schur factors of A = Z T Z^H, from those of the real factors T and Z."""
    (T, Z), (dT, dZ) = inputs, changes
    moved = dZ @ T @ Z.mT + Z @ dT @ Z.mT + Z @ T @ dZ.mT
    return schur_tangents([], factors, [O.complex(moved, O.zeros_like(moved))])


def null_space_tangents(inputs: list, factors: list, changes: list) -> list:
    """Return the change of a basis N with A N = 0, without turns inside the basis."""
    return [-O.linalg.pinv(inputs[0]) @ changes[0] @ factors[0]]


def balance_tangents(inputs: list, factors: list, changes: list) -> list:
    """Return the change of T^-1 A T for a constant T."""
    T = factors[1]
    return [O.linalg.solve(T, changes[0] @ T), O.zeros_like(T)]


def cossin_tangents(p: int, q: int) -> Callable:
    """Return the rule for U, D and V^H in X = U D V^H; U and V have blocks of p and q rows first.

    With dU = U W and dV = V Y for skew-Hermitian W and Y, M = U^H dX V is W D + dD - D Y. Where D is zero, and in
    imaginary parts, dD is zero: linear equations for W and Y, of which the solution with the least norm is taken.
    """

    def rule(inputs: list, factors: list, changes: list) -> list:
        U, D, Vh = factors
        size = D.shape[0]
        moved = adjoint(U) @ changes[0] @ adjoint(Vh)
        complex_ = D.dtype.kind != "f" or U.dtype.kind == "c"
        left, right = (tensor(_skew_basis(size, cut, complex_)).to(U.dtype) for cut in (p, q))
        D_ = D.to(U.dtype)
        images = O.cat([left @ D_, -(D_ @ right)], 0)
        zero = values(example_of(O.detach(D))) == 0
        system, known = images[:, zero], moved[zero]
        if complex_:
            system = O.cat([O.real(system), O.imag(system), O.imag(images[:, ~zero])], 1)
            known = O.cat([O.real(known), O.imag(known), O.imag(moved[~zero])], 0)
        weights = (O.linalg.pinv(system.mT) @ known).to(U.dtype)
        count = left.shape[0]
        W, Y = (
            O.reshape(w @ O.reshape(basis, (basis.shape[0], -1)), (size, size))
            for w, basis in ((weights[:count], left), (weights[count:], right))
        )
        change = moved - W @ D_ + D_ @ Y
        change = O.where(tensor(zero), 0.0, O.real(change) if D.dtype.kind == "f" and complex_ else change)
        return [U @ W, change, -Y @ Vh]

    return rule


def _skew_basis(size: int, cut: int, complex_: bool) -> Any:
    """Return a basis of the skew-Hermitian matrices with blocks of `cut` and of the other rows."""
    found: list[dict[tuple[int, int], complex]] = []
    for i in range(size):
        for j in range(i + 1, size):
            if (i < cut) == (j < cut):
                found.append({(i, j): 1.0, (j, i): -1.0})
                found += [{(i, j): 1j, (j, i): 1j}] if complex_ else []
        found += [{(i, i): 1j}] if complex_ else []
    found = found or [{}]  # real blocks of one row do not turn
    basis = values(O.zeros((len(found), size, size), dtype="complex128" if complex_ else "float64")).copy()
    for k, one in enumerate(found):
        for position, value in one.items():
            basis[k][position] = value
    return basis
