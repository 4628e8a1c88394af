"""Linear algebra compared with PyTorch: phase-independent results, equal eigenvalues, singular matrices, errors."""

import warnings

import numpy as np
import pytest
import torch

import retrograd as rg

rng = np.random.default_rng(0)
GENERAL = rng.normal(size=(4, 4))
HERMITIAN = GENERAL + GENERAL.T + 1j * (GENERAL - GENERAL.T)
COMPLEX = GENERAL + 1j * GENERAL[::-1]

# Scalar functions of a matrix in which the phases of vectors cancel; `m` is retrograd and torch.
INVARIANT = {
    "eigenvalues": (COMPLEX, lambda m, a: m.linalg.eig(a)[0].abs().sum()),
    "eigenvectors": (COMPLEX, lambda m, a: m.linalg.eig(a)[1].abs()[0].sum()),
    "real eigenvectors": (GENERAL, lambda m, a: m.linalg.eig(a)[1].abs()[0].sum()),
    "eigenvalues alone": (COMPLEX, lambda m, a: m.linalg.eigvals(a).abs().max()),
    "Hermitian eigenvectors": (HERMITIAN, lambda m, a: m.linalg.eigh(a)[1][1].abs().cumsum(0).sum()),
    "singular vectors": (COMPLEX, lambda m, a: (lambda U, S, Vh: (U[:, :1] @ Vh[:1]).real)(*m.linalg.svd(a))[0].sum()),
    "some singular vectors": (COMPLEX[:3], lambda m, a: m.linalg.svd(a)[2][0].abs().cumsum(0).sum()),
    "orthogonal": (COMPLEX, lambda m, a: m.linalg.qr(a)[0][:, 1].abs().cumsum(0).sum()),
    "triangular": (COMPLEX[:3], lambda m, a: m.linalg.qr(a)[1].abs().cumsum(0).sum()),
    "Hermitian pseudo-inverse": (HERMITIAN, lambda m, a: m.linalg.pinv(a, hermitian=True).abs().cumsum(0).sum()),
}


@pytest.mark.parametrize("name", INVARIANT)
def test_first_and_second_derivatives_agree_where_phases_cancel(name):
    a, f = INVARIANT[name]
    found = []
    for m in (rg, torch):
        x = m.tensor(a).requires_grad_()
        y = f(m, x)
        (g,) = m.autograd.grad(y, x, create_graph=True)
        (h,) = m.autograd.grad((g.abs() ** 2).sum(), x)
        found.append([np.asarray(t.detach()) for t in (y, g, h)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())


# Matrices at which something has no derivative, or is not there.
ODD = {
    "identity": np.eye(3),
    "zero": np.zeros((3, 3)),
    "rank 1": np.outer([1.0, 2.0, 3.0], [1.0, 0.5, 2.0]),
    "rank 2": np.diag([2.0, 1.0, 0.0]),
}
MAPS = {
    "det": lambda m, a: m.linalg.det(a),
    "svdvals": lambda m, a: m.linalg.svdvals(a).sum(),
    "eigvalsh": lambda m, a: m.linalg.eigvalsh(a).sum(),
    "fro": lambda m, a: m.linalg.matrix_norm(a),
    "1": lambda m, a: m.linalg.matrix_norm(a, 1),
    "-inf": lambda m, a: m.linalg.matrix_norm(a, -float("inf")),
    "vector 3": lambda m, a: m.linalg.vector_norm(a, 3),
    "vector 0.5": lambda m, a: m.linalg.vector_norm(a, 0.5),
    "vector inf": lambda m, a: m.linalg.vector_norm(a, float("inf")),
    "renorm": lambda m, a: m.renorm(a, 2, 0, 1.0).sum(),
    "matrix_exp": lambda m, a: m.linalg.matrix_exp(a).sum(),
    "matrix_power 0": lambda m, a: m.linalg.matrix_power(a, 0).sum() + a.sum(),
}


APART = {
    ("svdvals", "rank 1"): "two singular values are 0, whose vectors are arbitrary",
    ("det", "rank 2"): "PyTorch misses that the derivative by the last entry is 2",
}


@pytest.mark.parametrize("matrix", ODD)
@pytest.mark.parametrize("name", MAPS)
def test_gradients_agree_at_odd_matrices(name, matrix):
    if (name, matrix) in APART:
        return
    found = []
    for m in (rg, torch):
        x = m.tensor(ODD[matrix]).requires_grad_()
        y = MAPS[name](m, x)
        (g,) = m.autograd.grad(y, x)
        found.append([np.asarray(t.detach()) for t in (y, g)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


CALLS = [
    "m.linalg.solve(m.zeros(2, 2), m.ones(2))",
    "m.linalg.inv(m.zeros(2, 2))",
    "m.linalg.cholesky(-m.eye(2))",
    "m.linalg.svd(m.full((2, 2), float('nan')))",
    "m.linalg.inv_ex(m.zeros(2, 2)).info",
    "m.linalg.solve_ex(m.zeros(2, 2), m.ones(2)).info",
    "m.linalg.cholesky_ex(m.tensor([[1.0, 2.0], [2.0, 1.0]])).info",
    "m.linalg.lu_factor_ex(m.zeros(2, 2)).info",
    "m.linalg.slogdet(m.zeros(2, 2))",
    "m.logdet(-m.eye(3))",
    "m.linalg.det(m.zeros(0, 0))",
    "m.linalg.cond(m.zeros(0, 0))",
    "m.linalg.cond(m.zeros(2, 2), 'fro')",
    "m.linalg.matrix_rank(m.zeros(2, 3))",
    "m.linalg.matrix_rank(m.eye(3), 0.1, True)",
    "m.linalg.vector_norm(m.zeros(0))",
    "m.linalg.pinv(m.zeros(0, 3))",
    "m.linalg.matrix_power(m.eye(2) * 2, -2)",
    "m.linalg.solve(m.eye(3) * 2, m.ones(2, 3, 1))",
    "m.linalg.solve(m.eye(3)[None] * 2, m.ones(1, 3))",
    "m.linalg.lstsq(m.ones(4, 2) + m.eye(4, 2), m.ones(4)).solution",
    "m.linalg.eigvals(m.eye(2))",
    "m.linalg.qr(m.ones(0, 2))",
    "m.linalg.multi_dot([m.ones(2), m.ones(2, 3), m.ones(3)])",
    "m.linalg.tensorinv(m.eye(4).reshape(2, 2, 4), ind=2).shape[0]",
    "m.linalg.vecdot(m.tensor([1j]), m.tensor([1j]))",
    "m.tensordot(m.ones(2, 3), m.ones(3, 2), dims=([1], [0]))",
    "m.addmm(m.full((2, 2), float('nan')), m.eye(2), m.eye(2), beta=0)",
    "m.cross(m.tensor([1.0, 0.0, 0.0]), m.tensor([0.0, 1.0, 0.0]), dim=0)",
    "m.norm(m.ones(2, 2), 'nuc')",
    "m.renorm(m.ones(2, 2), 2, 0, 1)",
    "m.linalg.householder_product(m.ones(3, 2), m.zeros(0))",
    "m.cholesky_inverse(m.eye(2) * 2)",
    "m.linalg.ldl_factor_ex(m.zeros(2, 2))",
    "m.linalg.ldl_factor_ex(m.eye(3) - 1).pivots",
    "m.linalg.ldl_factor(m.zeros(0, 0))",
    "m.linalg.ldl_solve(m.eye(2), m.tensor([1, 2]), m.ones(2, 1))",
    "m.geqrf(m.zeros(0, 3))",
    "m.geqrf(m.eye(3))",
    "m.geqrf(m.tensor([[1, 1j, 2], [3j, 4, 1j]]))",
    "m.ormqr(m.zeros(3, 0), m.zeros(0), m.ones(3, 2))",
]


@pytest.mark.parametrize("expression", CALLS)
def test_answers_agree(expression, plain):
    said = []
    for m in (rg, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                said.append(plain(eval(expression, {"m": m})))
            except RuntimeError as error:
                said.append("LinAlgError" if isinstance(error, m.linalg.LinAlgError) else "RuntimeError")
    ours, theirs = said
    assert type(ours) is type(theirs)
    flat = (list(s) if isinstance(s, tuple) and isinstance(s[0], tuple) else [s] for s in said)
    for mine, its in zip(*flat, strict=True):
        if isinstance(its, tuple):
            assert mine[0] == its[0]
            np.testing.assert_allclose(mine[1], its[1], rtol=1e-6, atol=1e-6)
        else:
            assert mine == its


@pytest.mark.parametrize("a", [GENERAL + GENERAL.T, COMPLEX + COMPLEX.T, HERMITIAN, np.diag([4.0, 4.0, 4.0], 1) * 1j])
@pytest.mark.parametrize("hermitian", [False, True])
def test_indefinite_systems_are_factored_and_solved_equally(a, hermitian, plain):
    a, b, found = np.tril(a.T), (COMPLEX if np.iscomplexobj(a) else GENERAL)[:, :2], []
    np.fill_diagonal(a, a.diagonal().real)
    for m in (rg, torch):
        LD, pivots = m.linalg.ldl_factor(m.tensor(a), hermitian=hermitian)
        x = m.linalg.ldl_solve(LD, pivots, m.tensor(b), hermitian=hermitian)
        found.append(plain((LD, pivots, x)))
    for (kind, ours), (other, theirs) in zip(*found, strict=True):
        assert kind == other
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_every_name_of_torch_linalg_is_here():
    missing = {n for n in dir(torch.linalg) if not n.startswith("_") and n not in ("common_notes", "torch", "Tensor")}
    missing -= set(dir(rg.linalg))
    assert missing == set()
