"""retrograd.scipy.integrate on integrals: SciPy's values, and derivatives of all modes."""

import numpy as np
import pytest
import scipy.integrate

import retrograd as rg
from retrograd import numpy as rnp
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.func import grad, hessian, vmap
from retrograd.scipy import integrate

INF = float("inf")
INTEGRALS = {
    "finite": lambda m, p: m.quad(lambda x: rnp.exp(-p[0] * x) * rnp.sin(x * p[1]), 0, 2)[0],
    "limits": lambda m, p: m.quad(lambda x, p: x**3 / p[0], p[0], 3 * p[1], (p,))[0],
    "to infinity": lambda m, p: m.quad(lambda x: rnp.exp(-p[0] * x) / (1 + x * p[1]), p[1], INF)[0],
    "from infinity": lambda m, p: m.quad(lambda x: rnp.exp(p[0] * x), -INF, p[1])[0],
    "all numbers": lambda m, p: m.quad(lambda x: rnp.exp(-p[0] * x**2 + p[1] * x), -INF, INF)[0],
    "backwards": lambda m, p: m.quad(lambda x: rnp.exp(-p[0] * x), INF, p[1])[0],
    "a corner": lambda m, p: m.quad(lambda x: rnp.abs(x - 0.3) * p[0] + p[1], 0, 1, points=[0.3])[0],
}
P = np.array([1.2, 0.7])


@pytest.mark.parametrize("case", INTEGRALS)
def test_integrals_and_their_derivatives(case):
    def ours(p):
        return INTEGRALS[case](integrate, p)

    expected = INTEGRALS[case](scipy.integrate, P)
    assert ours(rg.tensor(P)).item() == pytest.approx(expected, rel=1e-9)
    (p,) = given = [rg.tensor(P, requires_grad=True)]
    assert gradcheck(ours, given, check_forward_ad=True)
    assert gradgradcheck(ours, given)
    batch = rg.stack([p.detach(), 1.3 * p.detach()])
    loop = np.stack([grad(ours)(q).numpy() for q in batch])
    np.testing.assert_allclose(vmap(grad(ours))(batch).numpy(), loop, rtol=1e-6)


def test_published_integrals_and_their_derivatives():
    # I. S. Gradshteyn and I. M. Ryzhik, Table of Integrals, Series, and Products, 3.381.4: the gamma function.
    def gamma(a):
        return integrate.quad(lambda x: x ** (a - 1) * rnp.exp(-x), 0, INF)[0]

    a = rg.tensor(3.5, dtype=rg.float64)
    for ours, known in ((gamma, rg.special.gammaln), (grad(gamma), None), (hessian(gamma), None)):
        if known is not None:
            assert ours(a).log().item() == pytest.approx(known(a).item(), rel=1e-9)
    exact = scipy.special.gamma(3.5) * scipy.special.psi(3.5)
    assert grad(gamma)(a).item() == pytest.approx(exact, rel=1e-7)


def test_an_integrand_that_reads_values_is_integrated_in_a_loop():
    p = rg.tensor(2.0, dtype=rg.float64, requires_grad=True)
    found, _ = integrate.quad(lambda x: p * x if x < 0.5 else p, 0, 1, points=[0.5])
    assert found.item() == pytest.approx(1.25)
    assert rg.autograd.grad(found, p)[0].item() == pytest.approx(0.625)


def test_integrals_without_tensors_are_scipys():
    assert type(integrate.quad(lambda x: x**2, 0, 1)[0]) is float
    assert integrate.quad(lambda x: x**2, 0, 1, full_output=1)[2]["neval"] == 21
    assert type(integrate.simpson(np.ones(3))) is np.float64


def test_singular_integrands_and_weights_are_refused():
    p = rg.tensor(1.0, dtype=rg.float64)
    with pytest.raises(TypeError, match=r"integrate\.quad: .* the integrand is singular\. Substitute another variable"):
        integrate.quad(lambda x: p * x**-0.9, 0, 1)
    with pytest.raises(TypeError, match=r"integrate\.quad: weight='sin' is not supported for tensors"):
        integrate.quad(lambda x: p * x, 0, 1, weight="sin")
    with pytest.raises(ValueError, match="cumulative_trapezoid: initial must be None or 0, got 3"):
        integrate.cumulative_trapezoid(rg.ones(3), initial=3)
    with pytest.raises(ValueError, match="simpson: 2 points for 3 samples"):
        integrate.simpson(rg.ones(3), rg.ones(2))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("axis", [0, -1])
def test_rules_for_samples_are_scipys(count, axis):
    r = np.random.default_rng(3)
    x, y = np.sort(r.normal(size=count)), r.normal(size=(2, count))
    y = y.T if axis == 0 else y
    for name in ("simpson", "cumulative_trapezoid"):
        for given in ((), (x,)):
            ours, theirs = (getattr(m, name) for m in (integrate, scipy.integrate))
            found = ours(rg.tensor(y), *map(rg.tensor, given), axis=axis)
            np.testing.assert_allclose(found.numpy(), theirs(y, *given, axis=axis), rtol=1e-12)
        tensors = [rg.tensor(y, requires_grad=True), rg.tensor(x, requires_grad=True)]
        assert gradcheck(lambda y, x, ours=ours: ours(y, x, axis=axis), tensors)
