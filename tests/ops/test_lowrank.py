"""svd_lowrank and pca_lowrank: exact for low rank, close for decaying singular values, reproducible."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

RANDOM = np.random.default_rng(0)


def of_rank(rank, *shape, kind="float64"):
    m, n = shape[-2:]
    left, right = RANDOM.normal(size=(*shape[:-2], m, rank)), RANDOM.normal(size=(*shape[:-2], rank, n))
    return (left @ right * (1 + 0.5j if kind.startswith("c") else 1)).astype(kind)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (2, 9, 7)])
def test_a_matrix_of_low_rank_comes_back(shape, kind):
    A, mean = of_rank(3, *shape, kind=kind), of_rank(1, *shape, kind=kind)
    tolerance = 1e-4 if kind in ("float32", "complex64") else 1e-10
    for M in (None, rg.tensor(mean)):
        U, S, V = rg.svd_lowrank(rg.tensor(A), q=5, M=M)
        rest = A if M is None else A - mean
        assert (U.shape, S.shape, V.shape) == ((*shape[:-1], 5), (*shape[:-2], 5), (*shape[:-2], shape[-1], 5))
        assert (U.dtype, S.dtype) == (A.dtype, A.real.dtype)
        assert_close((U * S.unsqueeze(-2) @ V.mH).numpy(), rest, 0, tolerance * abs(rest).max())
        assert_close(S.numpy(), np.linalg.svd(rest)[1][..., :5], 0, tolerance * abs(rest).max() * 10)
        unit = np.broadcast_to(np.eye(3, dtype=kind), (*shape[:-2], 3, 3))
        assert_close((U.mH @ U).numpy()[..., :3, :3], unit, 0, tolerance)


def test_the_first_singular_values_are_found_of_others():
    U, _ = np.linalg.qr(RANDOM.normal(size=(60, 40)))
    V, _ = np.linalg.qr(RANDOM.normal(size=(40, 40)))
    values = 0.5 ** np.arange(40)
    S = rg.svd_lowrank(rg.tensor(U * values @ V.T), q=8)[1]
    assert_close(S[:5].numpy(), values[:5], 1e-6, 0)


@pytest.mark.parametrize("center", [True, False])
def test_principal_components_are_those_of_the_covariance(center):
    A = of_rank(4, 30, 6) + RANDOM.normal(size=6)
    U, S, V = rg.pca_lowrank(rg.tensor(A), q=6, center=center)
    away = A - A.mean(0) if center else A
    assert_close((V * S**2 @ V.mH).numpy(), away.T @ away, 0, 1e-9 * (away**2).sum())
    assert_close((U * S @ V.mH).numpy(), away, 0, 1e-9)


def test_the_seed_decides():
    A = rg.tensor(of_rank(5, 9, 7))
    found = []
    for seed in (1, 1, 2):
        rg.manual_seed(seed)
        found.append(rg.svd_lowrank(A, q=3)[0].tolist())
    assert found[0] == found[1] != found[2]


def test_batches_require_a_randomness_mode():
    A = rg.tensor(of_rank(2, 3, 5, 4))
    with pytest.raises(RuntimeError, match="random"):
        rg.vmap(lambda a: rg.svd_lowrank(a, q=2)[1])(A)
    S = rg.vmap(lambda a: rg.svd_lowrank(a, q=2)[1], randomness="different")(A)
    assert_close(S.numpy(), np.linalg.svd(A.numpy())[1][:, :2], 1e-9, 0)
