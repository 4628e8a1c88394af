"""Forward mode through nested tensors: tangents of every component."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import forward_ad as fwd
from retrograd.func import jet, jvp, linearize
from retrograd.nested import as_nested_tensor, nested_tensor, nested_tensor_from_jagged

LENGTHS = (2, 0, 4, 1)


def rows(lengths=LENGTHS, seed=0):
    r = np.random.default_rng(seed)
    return [rg.tensor(r.uniform(0.1, 1, (n, 3))) for n in lengths]


def assert_parts(found, expected):
    assert found.is_nested
    for a, b in zip(found.unbind(), expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)


def f(c):
    return (c * 2).sin() * c


def expected():
    return [jvp(f, (p,), (t,))[1] for p, t in zip(rows(), rows(seed=1), strict=True)]


def test_a_dual_tensor_carries_a_nested_tangent():
    with fwd.dual_level():
        dual = fwd.make_dual(nested_tensor(rows()), nested_tensor(rows(seed=1)))
        value, tangent = fwd.unpack_dual(f(dual))
        assert_parts(value, [f(p) for p in rows()])
        assert_parts(tangent, expected())
        assert_parts(fwd.unpack_dual(dual).tangent, rows(seed=1))


def test_tangents_of_components_travel_into_a_nested_tensor_and_out_again():
    with fwd.dual_level():
        duals = [fwd.make_dual(p, t) for p, t in zip(rows(), rows(seed=1), strict=True)]
        out = f(as_nested_tensor(duals))
        assert_parts(fwd.unpack_dual(out).tangent, expected())
        for part, t in zip(out.unbind(), expected(), strict=True):
            np.testing.assert_allclose(fwd.unpack_dual(part).tangent.numpy(), t.numpy())


def test_a_tensor_without_a_tangent_has_none():
    with fwd.dual_level():
        assert fwd.unpack_dual(nested_tensor(rows())).tangent is None


def test_a_tangent_of_another_structure_is_refused_with_the_first_component_that_differs():
    with fwd.dual_level(), pytest.raises(RuntimeError, match="in component 2 the size j is 4 and 3"):
        fwd.make_dual(nested_tensor(rows()), nested_tensor(rows((2, 0, 3, 2))))


def test_a_write_in_place_brings_the_tangent_along():
    with fwd.dual_level():
        x = nested_tensor(rows())
        x.mul_(fwd.make_dual(nested_tensor(rows(seed=2)), nested_tensor(rows(seed=1))))
        found = fwd.unpack_dual(x)
        assert_parts(found.tangent, [p * t for p, t in zip(rows(), rows(seed=1), strict=True)])
        assert_parts(x.detach(), [p * q for p, q in zip(rows(), rows(seed=2), strict=True)])


def test_a_dual_of_a_nested_tensor_with_holes_has_the_tangents_of_its_components():
    def holes(values):
        return nested_tensor_from_jagged(values, rg.tensor([0, 3, 5]), lengths=rg.tensor([2, 1]))

    values = rg.arange(5.0)
    with fwd.dual_level():
        dual = fwd.make_dual(holes(values), holes(values * 10))
        found = fwd.unpack_dual(dual * dual).tangent
        assert [p.tolist() for p in found.unbind()] == [[0.0, 20.0], [180.0]]


def test_levels_nest_around_nested_tensors():
    with fwd.dual_level():
        outer = fwd.make_dual(nested_tensor(rows()), nested_tensor(rows(seed=1)))
        with fwd.dual_level():
            inner = fwd.make_dual(outer, rg.ones_like(outer))
            slope = fwd.unpack_dual(inner.sin()).tangent
        found = fwd.unpack_dual(slope).tangent
    assert_parts(found, [-p.sin() * t for p, t in zip(rows(), rows(seed=1), strict=True)])


def test_backward_passes_through_tangents():
    x = nested_tensor(rows(), requires_grad=True)
    with fwd.dual_level():
        tangent = fwd.unpack_dual(fwd.make_dual(x, nested_tensor(rows(seed=1))).sin()).tangent
        tangent.values().sum().backward()
    assert_parts(x.grad, [-p.sin() * t for p, t in zip(rows(), rows(seed=1), strict=True)])


# -------------------------------------------------------------------------------------------- as transforms


def test_jvp_and_linearize_give_the_tangents_of_a_loop():
    x, t = nested_tensor(rows()), nested_tensor(rows(seed=1))
    value, tangent = jvp(f, (x,), (t,))
    assert_parts(value, [f(p) for p in rows()])
    assert_parts(tangent, expected())
    value, push = linearize(f, x)
    assert_parts(value, [f(p) for p in rows()])
    assert_parts(push(t), expected())


def test_jvp_refuses_a_tangent_of_another_structure():
    with pytest.raises(RuntimeError, match="in component 0 the size j is 2 and 1"):
        jvp(f, (nested_tensor(rows()),), (nested_tensor(rows((1, 1, 4, 1))),))


def test_taylor_series_of_nested_tensors_are_those_of_a_loop():
    series = ([nested_tensor(rows(seed=1)), nested_tensor(rows(seed=2))],)
    value, terms = jet(f, (nested_tensor(rows()),), series)
    alone = [jet(f, (p,), ([s, t],)) for p, s, t in zip(rows(), rows(seed=1), rows(seed=2), strict=True)]
    assert_parts(value, [v for v, _ in alone])
    for k in range(2):
        assert_parts(terms[k], [ts[k] for _, ts in alone])
