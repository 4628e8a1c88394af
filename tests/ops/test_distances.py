"""Distances: at 0, far from the origin, of many dimensions, of empty inputs."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close


def pair(rng, *shape, dtype="float64", shift=0.0):
    return [rg.tensor((rng.normal(size=shape) + shift).astype(dtype), requires_grad=True) for _ in range(2)]


def plain(a, b, p):
    d = np.abs(a[..., :, None, :] - b[..., None, :, :])
    return np.linalg.norm(d, p, axis=-1)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, math.inf])
def test_the_derivative_at_distance_0_is_0(p):
    x = rg.tensor([[1.0, 2.0]], dtype="float64", requires_grad=True)
    for out in (rg.cdist(x, x.detach(), p), rg.dist(x, x.detach(), p), rg.pdist(rg.cat([x, x]), p)):
        assert rg.autograd.grad(out.sum(), x)[0].tolist() == [[0, 0]]


def test_the_second_derivative_at_distance_0_is_finite():
    x = rg.tensor([[1.0, 2.0], [4.0, 6.0]], dtype="float64", requires_grad=True)
    (g,) = rg.autograd.grad(rg.cdist(x, x.detach()).sum(), x, create_graph=True)
    assert np.isfinite(rg.autograd.grad((g * g).sum(), x)[0].numpy()).all()


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_distances_and_gradients_are_exact_far_from_the_origin_too(shift, rng):
    a, b = pair(rng, 30, 3, shift=shift)
    b.detach()[0], b.detach()[1] = a.detach()[5], a.detach()[6] + 1e-6
    out = rg.cdist(a, b)
    expected = plain(a.detach().numpy(), b.detach().numpy(), 2)
    assert_close(out.detach().numpy(), expected, rtol=1e-12, atol=0)
    g = rg.autograd.grad(out[2:, 2:].sum(), a)[0].numpy()
    d = a.detach().numpy()[2:, None] - b.detach().numpy()[2:]
    assert_close(g[2:], (d / expected[2:, 2:, None]).sum(1), rtol=1e-8)


def test_single_precision_distances_of_near_points_keep_their_digits(rng):
    a, b = pair(rng, 40, 8, dtype="float32", shift=100.0)
    exact = plain(a.detach().numpy().astype(float), b.detach().numpy().astype(float), 2)
    assert_close(rg.cdist(a, b).detach().numpy().astype(float), exact, rtol=2e-6, atol=0)


def test_an_infinite_coordinate_spoils_only_its_own_distances():
    out = rg.cdist(rg.tensor([[math.inf, 0.0], [0.0, 0.0]]), rg.tensor([[3.0, 4.0]]))
    assert out.tolist() == [[math.inf], [5.0]]


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize(("m", "n", "d"), [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_of_no_points_or_no_coordinates_there_are_distances_all_the_same(m, n, d, p):
    x, y = rg.zeros(m, d, requires_grad=True), rg.zeros(n, d, requires_grad=True)
    out = rg.cdist(x, y, p)
    assert out.tolist() == np.zeros((m, n)).tolist()
    assert [g.shape for g in rg.autograd.grad(out.sum(), [x, y])] == [x.shape, y.shape]


def test_stacks_of_points_broadcast(rng):
    (a, _), (_, b) = pair(rng, 4, 1, 2, 3), pair(rng, 5, 7, 3)
    assert_close(rg.cdist(a, b).detach().numpy(), plain(a.detach().numpy(), b.detach().numpy(), 2))


def test_pdist_is_the_upper_triangle_row_by_row():
    x = rg.tensor([[0.0], [1.0], [3.0]])
    assert rg.pdist(x).tolist() == rg.nn.functional.pdist(x).tolist() == [1, 3, 2]
    assert rg.pdist(rg.ones(1, 3)).shape == (0,)


def test_pairwise_distances_broadcast_and_add_eps():
    x = rg.tensor([[1.0, 2.0]])
    assert rg.nn.functional.pairwise_distance(x, rg.tensor([1.0, 2.0])).item() == pytest.approx(math.sqrt(2) * 1e-6)
    assert rg.pairwise_distance(x, x, keepdim=True).shape == (1, 1)


def test_points_have_fractions_and_however_they_are_computed_the_same_distances():
    with pytest.raises(TypeError, match="cdist: expected a real floating dtype, got int64"):
        rg.cdist(rg.ones(2, 2, dtype="int64"), rg.ones(2, 2, dtype="int64"))
    x = rg.tensor([[1.0, 2.0], [4.0, 6.0]])
    assert rg.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").tolist() == [[0, 5], [5, 0]]
