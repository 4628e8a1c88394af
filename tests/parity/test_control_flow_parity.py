"""Values and derivatives of control-flow operators equal PyTorch's and JAX's."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops import map as map_slices

import retrograd as rg
from retrograd import higher_order

POINTS = [np.array([0.5, 2.0]), np.array([-1.5, 0.25])]


class Ours:
    """The operators of this library."""

    cond, while_loop, scan = rg.cond, higher_order.while_loop, higher_order.scan
    map, associative_scan, stack = higher_order.map, higher_order.associative_scan, rg.stack


class Theirs:
    """PyTorch's operators, which need no compiler for these programs."""

    cond, while_loop, scan, map, stack = torch.cond, while_loop, scan, map_slices, torch.stack

    @staticmethod
    def associative_scan(f, xs, dim, reverse=False):
        return associative_scan(f, xs, dim, reverse, combine_mode="generic")


PROGRAMS = {
    "cond": lambda lib, x: lib.cond(x.sum() > 0, lambda x: x * x.exp(), lambda x: x.sin() * 2, (x,)),
    "while_loop": lambda lib, x: lib.while_loop(
        lambda x, y: (x * x).sum() < 50, lambda x, y: (x * y, y + 0.5), (x, x + 1)
    )[0],
    "scan": lambda lib, x: lib.scan(
        lambda c, a: (c * a + c.cos(), {"y": c * a}), x, lib.stack([x, x * 2, x.sin()], 1), dim=1, reverse=True
    )[1]["y"],
    "map": lambda lib, x: lib.map(lambda a, b: a * b.exp(), lib.stack([x, x * 2]), x + 1),
    "associative_scan": lambda lib, x: lib.associative_scan(lambda a, b: a * b, lib.stack([x, x + 1, x * 2]), 0, True),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_equal_pytorch(name):
    for point in POINTS:
        found = []
        for lib, tensor, grad in ((Ours, rg.tensor, rg.autograd.grad), (Theirs, torch.tensor, torch.autograd.grad)):
            x = tensor(point).requires_grad_()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out = PROGRAMS[name](lib, x)
            found.append((out.detach().numpy(), grad((out * out).sum(), x)[0].numpy()))
        for ours, theirs in zip(*found, strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


FAULTS = {
    "pred of two elements": lambda lib, x: lib.cond(x > 0, lambda x: x + 1, lambda x: x - 1, (x,)),
    "operands no tuple": lambda lib, x: lib.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x),
    "init no tensor": lambda lib, x: lib.scan(lambda c, a: (c + a, c * a), 0.0, x),
    "no slices": lambda lib, x: lib.scan(lambda c, a: (c + a, c * a), x[0], x[:0]),
    "carry of another shape": lambda lib, x: lib.scan(lambda c, a: (lib.stack([c, a]), c * a), x[0], x),
    "carried of another dtype": lambda lib, x: lib.while_loop(lambda x: x[0] < 3, lambda x: (x.float() + 1,), (x,)),
    "map of no slices": lambda lib, x: lib.map(lambda a: a + 1, x[:0]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_mistakes_have_the_first_words_of_pytorch(name):
    with pytest.raises(RuntimeError) as theirs:
        FAULTS[name](Theirs, torch.tensor(POINTS[0]))
    with pytest.raises(RuntimeError) as ours:
        FAULTS[name](Ours, rg.tensor(POINTS[0]))
    words = str(theirs.value).partition("\n")[0].split()[:6]
    assert str(ours.value).split()[: len(words)] == words


def test_values_and_derivatives_equal_jax():
    def ours(x):
        y = rg.cond(x.sum() > 0, lambda x: x * x.exp(), lambda x: x.sin(), (x,))
        z, _ = higher_order.while_loop(lambda z, n: n < 3, lambda z, n: (z * y + 1, n + 1), (x, 0))
        return higher_order.scan(lambda c, a: (c * a + y, c.sin()), z, rg.stack([x, y, z]))

    def theirs(x):
        y = jax.lax.cond(x.sum() > 0, lambda x: x * jnp.exp(x), jnp.sin, x)
        z, _ = jax.lax.while_loop(lambda s: s[1] < 3, lambda s: (s[0] * y + 1, s[1] + 1), (x, 0))
        return jax.lax.scan(lambda c, a: (c * a + y, jnp.sin(c)), z, jnp.stack([x, y, z]))

    points = np.stack(POINTS)
    with jax.enable_x64(True):
        pairs = [
            (rg.func.vmap(ours)(rg.tensor(points)), jax.vmap(theirs)(points)),
            (rg.func.vmap(rg.func.jacfwd(ours))(rg.tensor(points)), jax.vmap(jax.jacfwd(theirs))(points)),
            (
                rg.func.vmap(rg.func.jacfwd(rg.func.jacfwd(ours)))(rg.tensor(points)),
                jax.vmap(jax.jacfwd(jax.jacfwd(theirs)))(points),
            ),
        ]
        for found, expected in pairs:
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-9)
