"""lobpcg: eigenpairs of symmetric matrices compared with eigh's; derivatives; the tracker; refused arguments."""

import numpy as np
import pytest
from scipy import linalg

import retrograd as rg
from retrograd.testing import assert_close

RANDOM = np.random.default_rng(0)


def symmetric(*shape):
    A = RANDOM.normal(size=shape)
    return A + np.swapaxes(A, -1, -2)


def definite(m):
    L = RANDOM.normal(size=(m, m))
    return L @ L.T / m + np.eye(m)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("generalized", [False, True])
@pytest.mark.parametrize("method", ["basic", "ortho"])
def test_the_extreme_eigenpairs_are_found(largest, generalized, method):
    A, B = symmetric(40, 40), definite(40) if generalized else None
    E, X = rg.lobpcg(rg.tensor(A), 3, None if B is None else rg.tensor(B), largest=largest, method=method, tol=1e-12)
    expected = linalg.eigh(A, B)[0]
    assert_close(E.numpy(), (expected[::-1] if largest else expected)[:3].copy(), 1e-10, 1e-10)
    metric = np.eye(40) if B is None else B
    assert_close(A @ X.numpy(), metric @ X.numpy() * E.numpy(), 0, 1e-8)
    assert_close(X.numpy().T @ metric @ X.numpy(), np.eye(3), 0, 1e-10)


def test_batches_guesses_and_preconditioners():
    A = symmetric(2, 3, 20, 20) * 0.1 + np.diag(np.arange(20.0))
    guess, inverse = np.eye(20)[:, -2:], np.linalg.inv(25 * np.eye(20) - A)  # positive definite, as they must be
    expected = np.linalg.eigvalsh(A)
    for given in ({"k": 2}, {"X": rg.tensor(guess)}, {"k": 2, "iK": rg.tensor(inverse)}, {"k": 2, "n": 5}):
        E, X = rg.lobpcg(rg.tensor(A), tol=1e-12, **given)
        assert (E.shape, X.shape) == ((2, 3, 2), (2, 3, 20, 2))
        assert_close(E.numpy(), expected[..., :-3:-1].copy(), 1e-10, 0)
    single = rg.lobpcg(rg.tensor(A[0, 0].astype("float32")), 2)
    assert single[0].dtype == single[1].dtype == np.float32
    assert_close(single[0].numpy(), expected[0, 0, :-3:-1].astype("float32"), 1e-3, 0)


def test_derivatives_are_those_of_eigh():
    A, B = rg.tensor(symmetric(12, 12)), rg.tensor(definite(12))

    def by_iteration(A, B):
        E, X = rg.lobpcg(A, 3, B, tol=1e-14, niter=200)
        return (E**2).sum() + (X**3).abs().sum()

    def by_eigh(A, B):
        inverse = rg.linalg.inv(rg.linalg.cholesky(B))
        E, V = rg.linalg.eigh(inverse @ A @ inverse.mT)
        X = inverse.mT @ V
        return (E[-3:] ** 2).sum() + (X[:, -3:] ** 3).abs().sum()

    found = []
    for f in (by_iteration, by_eigh):
        a, b = (x.clone().requires_grad_() for x in (A, B))
        grads = rg.autograd.grad(f(a, b), (a, b))
        found.append([(g + g.mT).numpy() / 2 for g in grads])
    for ours, expected in zip(*found, strict=True):
        assert_close(ours, expected, 0, 1e-8 * abs(expected).max())


def test_the_tracker_sees_each_step_and_may_stop():
    seen = []

    def tracker(worker):
        assert worker.X.shape == (30, 2)
        assert worker.iparams == {"m": 30, "n": 2, "k": 2, "niter": 1000}
        seen.append((worker.ivars["istep"], worker.ivars["converged_count"], worker.tvars["rerr"].shape))
        worker.bvars["force_stop"] = worker.ivars["istep"] == 3

    rg.lobpcg(rg.tensor(symmetric(30, 30)), 2, tracker=tracker)
    assert [step for step, *_ in seen] == [0, 1, 2, 3]
    assert all(shape == (2,) for *_, shape in seen)
    seen.clear()
    rg.lobpcg(rg.tensor(symmetric(30, 30)), 2, niter=2, tracker=lambda worker: seen.append(worker.E.shape))
    assert seen == [(2,)] * 3


def test_invariant_guesses_and_zeros_are_no_problem():
    A = rg.diag(rg.arange(9.0))
    E, _ = rg.lobpcg(A, X=rg.eye(9)[:, -2:])
    assert_close(E, [8.0, 7.0], 1e-6, 0)
    assert_close(rg.lobpcg(rg.zeros(6, 6))[0], [0.0])
    assert_close(rg.lobpcg(rg.eye(9), 2)[0], [1.0, 1.0], 1e-6, 0)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"k": 4}, ValueError, "expected at least 3 times"),
        ({"k": 0}, ValueError, "k must be from 1"),
        ({"method": "qr"}, ValueError, "method must be 'basic' or 'ortho'"),
        ({"X": rg.ones(9, 2)}, ValueError, "the first guess has rank 1"),
        ({"X": rg.ones(8, 2)}, ValueError, r"shapes \(9, 9\) and \(8, 2\)"),
        ({"A": rg.ones(9, 8)}, ValueError, "expected square matrices"),
        ({"A": rg.ones(9, 9, dtype=rg.complex64)}, TypeError, "expected a real floating dtype"),
        ({"A": rg.ones(9, 9, dtype=rg.int64)}, TypeError, "expected a floating"),
        ({"ortho_iparams": {"i_max": 3}}, NotImplementedError, "leave them out"),
    ],
)
def test_refusals(given, error, message):
    with pytest.raises(error, match=message):
        rg.lobpcg(**{"A": rg.eye(9), **given})
