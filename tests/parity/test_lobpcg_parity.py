"""lobpcg compared with PyTorch's: eigenvalues, projections on eigenvectors, gradients with respect to A."""

import inspect

import numpy as np
import pytest
import torch

import retrograd as rg

rng = np.random.default_rng(0)
A = rng.normal(size=(30, 30))
A = A + A.T + np.diag(np.arange(30.0))
B = A @ A.T / 100 + np.eye(30)
GUESS = rng.normal(size=(30, 3))
CALLS = {
    "largest": {"k": 2},
    "smallest": {"k": 2, "largest": False},
    "generalized": {"k": 3, "B": B},
    "guess": {"X": GUESS},
    "fewer than guessed": {"k": 2, "X": GUESS, "method": "basic"},
    "preconditioned": {"k": 2, "largest": False, "iK": np.linalg.inv(A + 9 * np.eye(30)), "method": "ortho"},
}


@pytest.mark.parametrize("name", CALLS)
def test_eigenpairs_and_gradients_agree(name):
    found = []
    for m in (rg, torch):
        given = {key: m.tensor(v) if isinstance(v, np.ndarray) else v for key, v in CALLS[name].items()}
        x = m.tensor(A)
        x = x if "B" in given else x.requires_grad_()
        E, X = m.lobpcg(x, tol=1e-12, niter=400, **given)
        outcome = [E, X @ X.mT]
        if x.requires_grad:
            outcome.append(m.autograd.grad((E**2).sum() + ((X @ X.mT) ** 3).sum(), x)[0])
        found.append([np.asarray(t.detach()) for t in outcome])
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7 * abs(theirs).max())


def test_arguments_have_the_same_names_order_and_defaults():
    mine, its = (inspect.signature(m.lobpcg) for m in (rg, torch))
    assert [(p.name, p.default) for p in mine.parameters.values()] == [
        (p.name, p.default) for p in its.parameters.values()
    ]
