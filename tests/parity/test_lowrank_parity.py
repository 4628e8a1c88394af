"""svd_lowrank and pca_lowrank compared with PyTorch's, in results that do not depend on random projections."""

import numpy as np
import pytest
import torch

import retrograd as rg

rng = np.random.default_rng(0)
TALL, WIDE = rng.normal(size=(9, 4)) @ rng.normal(size=(4, 6)), rng.normal(size=(2, 4, 7))
COMPLEX = TALL @ (TALL.T[:, :5] + 1j * TALL.T[:, 2:7])
CALLS = {
    "svd": (TALL, lambda m, a: m.svd_lowrank(a, q=4)),
    "svd of wide ones": (WIDE, lambda m, a: m.svd_lowrank(a, 4, niter=3)),
    "svd of complex ones": (COMPLEX, lambda m, a: m.svd_lowrank(a, 4)),
    "svd less a mean": (TALL, lambda m, a: m.svd_lowrank(a, 4, M=a.mean(0, keepdim=True))),
    "pca": (TALL, lambda m, a: m.pca_lowrank(a, q=4)),
    "pca of wide ones": (WIDE, lambda m, a: m.pca_lowrank(a, center=False)),
}


@pytest.mark.parametrize("name", CALLS)
def test_products_singular_values_and_gradients_agree(name):
    a, function = CALLS[name]
    found = []
    for m in (rg, torch):
        x = m.tensor(a).requires_grad_()
        U, S, V = function(m, x)
        product, values = U[..., :3] * S[..., None, :3] @ V[..., :3].mH, S[..., :3]
        (g,) = m.autograd.grad((product.abs() ** 3).sum() + (values**2).sum(), x)
        found.append([np.asarray(t.detach().resolve_conj()) for t in (product, values, g)])
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8 * abs(theirs).max())


@pytest.mark.parametrize(
    "call",
    [
        "m.svd_lowrank(m.ones(3))", "m.svd_lowrank(m.ones(3, 2, dtype=m.int64))", "m.pca_lowrank(m.ones(4, 3), q=4)",
        "m.pca_lowrank(m.ones(4, 3), niter=-1)", "m.pca_lowrank(m.ones(4, 3, dtype=m.int64))",
        "[t.shape for t in m.svd_lowrank(m.ones(7, 5))]", "[t.shape for t in m.svd_lowrank(m.ones(3, 5), q=4)]",
        "[t.shape for t in m.pca_lowrank(m.ones(2, 9, 8))]", "[t.shape for t in m.pca_lowrank(m.ones(9, 8), q=0)]",
        "[t.shape for t in m.svd_lowrank(m.ones(7, 5), 3, None, m.ones(7, 5))]",
    ],
)  # fmt: skip
def test_shapes_and_refusals_agree(call):
    said = []
    for m in (rg, torch):
        try:
            said.append([tuple(shape) for shape in eval(call, {"m": m})])
        except (RuntimeError, TypeError, ValueError):
            said.append("refused")
    assert said[0] == said[1]
