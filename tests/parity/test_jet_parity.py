"""Taylor mode: the same functions and series give the same results as jax.experimental.jet."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.jet import jet as jax_jet

import retrograd as rg
from retrograd.func import jet

ORDER = 6
W = np.random.default_rng(3).normal(size=(4, 3))

# The same function of vectors of length 3 in both: of ours and of JAX's functions.
FUNCTIONS = {
    "sin(exp(x))": lambda m, x: m.sin(m.exp(x)),
    "polynomial": lambda m, x: x**3 - 2 * x * x + x / 3,
    "rational": lambda m, x: (1 + x) / (2 + x * x),
    "sqrt, log": lambda m, x: m.sqrt(1 + x * x) * m.log(2 + m.cos(x)),
    "cosh, sinh": lambda m, x: m.cosh(x) - m.sinh(x) * x,
    "tanh layer": lambda m, x: m.tanh(m.asarray(W) @ x),
    "logsumexp": lambda m, x: m.log(m.exp(x).sum()),
    "square, power": lambda m, x: m.square(x) + (2 + x) ** 1.5,
    "maximum": lambda m, x: m.where(x > 0, x * x, m.exp(x)) + m.abs(x),
    "reductions": lambda m, x: (x * x).sum() + m.stack([x, x * x]).max(),
    "views": lambda m, x: m.reshape(m.flip(x, (0,)), (1, 3)) * x[1:2],
    "cumsum": lambda m, x: m.cumsum(x * x, 0) * m.exp(-x),
}


def terms(seed):
    return np.random.default_rng(seed).uniform(-1, 1, (ORDER + 1, 3))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scaled", [True, False])
def test_derivatives_along_a_curve(name, scaled):
    f, (x, *series) = FUNCTIONS[name], terms(1)
    with jax.enable_x64(True):
        expected, derivatives = jax_jet(
            lambda x: f(jnp, x), (jnp.asarray(x),), (list(map(jnp.asarray, series)),), factorial_scaled=scaled
        )
    out, found = jet(lambda x: f(rg, x), (rg.asarray(x),), (list(map(rg.asarray, series)),), factorial_scaled=scaled)
    assert isinstance(found, list)
    for ours, theirs in zip([out, *found], [expected, *derivatives], strict=True):
        assert np.allclose(ours.numpy(), np.asarray(theirs), rtol=1e-9, atol=1e-9)


def test_several_arguments_and_outputs():
    def f(m, x, y):
        return {"product": m.sin(x) * y, "others": (x / (2 + y), x)}

    (x, *dx), (y, *dy) = terms(1), terms(2)
    with jax.enable_x64(True):
        args = [jnp.asarray(x), jnp.asarray(y)], [list(map(jnp.asarray, dx)), list(map(jnp.asarray, dy))]
        expected = jax.tree.map(np.asarray, jax_jet(lambda *xs: f(jnp, *xs), *args))
    args = [rg.asarray(x), rg.asarray(y)], [list(map(rg.asarray, dx)), list(map(rg.asarray, dy))]
    found = jet(lambda *xs: f(rg, *xs), *args)
    leaves, structure = jax.tree.flatten(found, is_leaf=lambda leaf: isinstance(leaf, rg.Tensor))
    assert structure == jax.tree.structure(expected)
    for ours, theirs in zip(leaves, jax.tree.leaves(expected), strict=True):
        assert np.allclose(ours.numpy(), theirs, rtol=1e-9, atol=1e-9)


def test_both_refuse_series_of_different_lengths():
    for function, one in [(jax_jet, jnp.ones(())), (jet, rg.ones(()))]:
        with pytest.raises(ValueError, match="jet"):
            function(lambda x, y: x * y, (one, one), ([one], [one, one]))
