"""Norms are correct over the whole range of a dtype: no intermediate power, square or sum overflows or underflows."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.testing import assert_close

from ..case_groups import group_cases

F = nn.functional
ORDERS = (0.5, 1, 1.5, 2, 3, 6, 20, math.inf, -math.inf, -1, -3)
# By how much vectors are scaled: powers of 2, so that scaled vectors are exact.
SCALES = {
    "float16": (2.0**-5, 2.0**10),
    "float32": (2.0**-120, 2.0**-70, 2.0**70, 2.0**122),
    "float64": (2.0**-1000, 2.0**-520, 2.0**520, 2.0**1000),
}
TOLERANCE = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-13}
MATRIX = np.array([[1.5, -2.0, 0.5], [0.25, 1.0, -0.75]])
POINTS = np.array([[0.5, 0.25, -1.5], [2.0, 1.0, 0.125]])


def _on_points(distance):
    return lambda x: distance(x, x.detach().flip(0) * 0.5)


# Functions of a matrix that are homogeneous of degree 1: f(s x) = s f(x) for s > 0.
HOMOGENEOUS = {
    **{f"norm-{p}": lambda x, p=p: rg.norm(x, p) for p in ORDERS},
    **{f"vector_norm-{p}": lambda x, p=p: rg.linalg.vector_norm(x, p, dim=0) for p in ORDERS},
    **{f"linalg.norm-{p}": lambda x, p=p: rg.linalg.norm(x, p, dim=-1, keepdim=True) for p in ORDERS},
    **{f"dist-{p}": _on_points(lambda x, y, p=p: rg.dist(x, y, p)) for p in ORDERS},
    **{f"cdist-{p}": _on_points(lambda x, y, p=p: rg.cdist(x, y, p)) for p in ORDERS if p > 0},
    **{f"pdist-{p}": lambda x, p=p: rg.pdist(x, p) for p in ORDERS if p > 0},
    **{f"pairwise_distance-{p}": _on_points(lambda x, y, p=p: F.pairwise_distance(x, y, p, eps=0.0)) for p in ORDERS},
    **{f"matrix_norm-{p}": lambda x, p=p: rg.linalg.matrix_norm(x, p) for p in ("fro", 1, -1, math.inf)},
    **{f"lp_pool-{p}": lambda x, p=p: F.lp_pool1d(abs(x), p, 2, 1) for p in (1, 2, 3, math.inf)},
    **{f"norm_except_dim-{p}": lambda x, p=p: rg.norm_except_dim(x, p) for p in (2, 3)},
    "frobenius_norm": lambda x: rg.frobenius_norm(x, (0, 1)),
    "complex": lambda x: rg.norm(rg.complex(*[t.float() if t.dtype == rg.float16 else t for t in (x, x.flip(0))]), 3),
    "triplet": lambda x: F.triplet_margin_loss(2 * x, x.detach() / 2, x.detach(), 5e-324, p=3, eps=0.0),
    "numpy": lambda x: np.linalg.norm(x),
    "total_norm": lambda x: nn.utils.get_total_norm([x, 2 * x]),
    "nested": lambda x: rg.norm(rg.nested.as_nested_tensor([x[0], x[1, :2]]), 3),
    "nested-2": lambda x: rg.norm(rg.nested.as_nested_tensor([x[0], x[1, :2]])),
    "weight_norm": lambda x: nn.utils.parametrizations.WeightNorm(0)._norm(x),
}
# The same of degree 0: f(s x) = f(x).
INVARIANT = {
    **{f"normalize-{p}": lambda x, p=p: F.normalize(x, p, eps=0.0) for p in ORDERS},
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.detach().flip(0), eps=0.0),
}


def tensors(values, dtype, scale):
    x = rg.tensor((values * scale).astype(dtype))
    assert np.isfinite(x.numpy()).all()
    assert x.numpy().all()
    return x.requires_grad_()


def derivatives(f, x, weights):
    """Return the value of f, the gradient of a product with its values, and the gradient of a product with that."""
    out = f(x)
    (first,) = rg.autograd.grad((out * rg.tensor(weights(out.shape), dtype=out.dtype)).sum(), x, create_graph=True)
    total = (first * rg.tensor(weights(first.shape), dtype=first.dtype)).sum()
    second = rg.autograd.grad(total, x, allow_unused=True)[0] if total.requires_grad else None
    return [None if t is None else t.detach().numpy().astype("float64") for t in (out, first, second)]


def weights(shape):
    return np.linspace(-1.0, 1.5, math.prod(shape)).reshape(shape) + 0.125


@group_cases
@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("name", [*HOMOGENEOUS, *INVARIANT])
@pytest.mark.parametrize("values", [MATRIX, POINTS], ids=["matrix", "points"])
def test_norms_and_their_derivatives_are_homogeneous(name, values, dtype):
    f, degree = (HOMOGENEOUS[name], 1) if name in HOMOGENEOUS else (INVARIANT[name], 0)
    expected = derivatives(f, tensors(values, "float64", 1.0), weights)
    for scale in SCALES[dtype]:
        found = derivatives(f, tensors(values, dtype, scale), weights)
        for order, (ours, exact) in enumerate(zip(found, expected, strict=True)):
            if exact is not None and representable(exact, scale, degree - order, dtype):
                close(ours, exact, scale, degree - order, TOLERANCE[dtype] * (10 if order == 2 else 1), dtype)


def representable(exact, scale, power, dtype):
    """Return whether values times scale^power, with some headroom, are finite in the dtype."""
    return np.abs(exact).max() * np.longdouble(scale) ** power < np.finfo(dtype).max / 64


def close(ours, exact, scale, power, tolerance, dtype):
    """Check values against exact ones times scale^power, as far as the dtype has digits for these."""
    factor = np.longdouble(scale) ** power
    largest = max(1.0, np.abs(exact).max())
    least = 64 * np.finfo(dtype).smallest_subnormal / factor
    assert_close((ours / factor).astype("float64"), exact, rtol=0, atol=float(max(tolerance * largest, least)))


@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("dtype", [rg.float32, rg.float64, rg.complex64, rg.complex128])
def test_the_norm_of_an_infinity_is_infinite(dtype, dim):
    x = rg.full((2, 2), math.inf, dtype=dtype)
    found = rg.linalg.vector_norm(x, dim=dim)
    assert rg.isposinf(found).all()
    assert rg.isnan(rg.linalg.vector_norm(rg.full_like(x, math.nan), dim=dim)).all()
