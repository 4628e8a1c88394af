"""A tensor that a solver's function reads is never dropped: it has its gradient in every mode, or the call is refused.

Each program solves sinh(x) = p * c for x; the tensor p reaches the function in another way in each.
"""

import numpy as np
import pytest

import retrograd as rg
from retrograd import implicit, nn
from retrograd.autograd import forward_ad
from retrograd.func import functional_call, grad, jacfwd, jacrev, jvp, vmap

P = rg.tensor([0.3, -1.2, 2.0], dtype=rg.float64)
EXPECTED = 1 / np.sqrt(1 + (3 * P.numpy()) ** 2) * 3


def newton(fun, x0):
    x, jacobian = x0, rg.jacobian(fun)
    for _ in range(40):
        step = np.linalg.solve(jacobian(x), fun(x))
        x = x - step
        if abs(step).max() < 1e-14:
            break
    return x


def solve(f, args=()):
    return implicit.root(f, np.zeros(3), args, solver=newton)


class Model(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = nn.Parameter(p)

    def forward(self, x):
        return rg.sinh(x) - 3 * self.p


MODEL = Model(P)


class Scaled(rg.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(p):
        return 3 * p

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return 3 * g

    @staticmethod
    def jvp(ctx, t):
        return 3 * t


WAYS = {
    "an argument": lambda p: solve(lambda x, p: rg.sinh(x) - 3 * p, (p,)),
    "an argument in a tree": lambda p: solve(lambda x, d, n: rg.sinh(x) - n * d["p"][0], ({"p": [p]}, 3)),
    "a closure": lambda p: solve(lambda x: rg.sinh(x) - 3 * p),
    "a default": lambda p: solve(lambda x, q=p: rg.sinh(x) - 3 * q),
    "a view of it": lambda p: solve(lambda x, q=p[None]: rg.sinh(x) - 3 * q[0]),
    "a value computed outside": lambda p: solve(lambda x, q=3 * p: rg.sinh(x) - q),
    "its elements": lambda p: (lambda q: solve(lambda x: rg.sinh(x) - 3 * rg.stack(q)))(p.unbind()),
    "an argument and a closure": lambda p: solve(lambda x, q: rg.sinh(x) - 2 * q - p, (p,)),
    "both, of which one has no gradient": lambda p: solve(lambda x, c: rg.sinh(x) - c * p, (rg.tensor(3.0),)),
    "NumPy's functions": lambda p: solve(lambda x: np.sinh(x) - np.multiply(3, p)),
    "a list of results": lambda p: solve(lambda x: [np.sinh(x[i]) - 3 * p[i] for i in range(3)]),
    "a Function": lambda p: solve(lambda x: rg.sinh(x) - Scaled.apply(p)),
    "a parameter of a module": lambda p: solve(lambda x, p: functional_call(MODEL, {"p": p}, (x,)), (p,)),
    "the function of another solver": lambda p: solve(
        lambda x: rg.sinh(x) - implicit.root(lambda y: y + y**3 - 3 * p - (3 * p) ** 3, np.ones(3), solver=newton)
    ),
    "an inner gradient": lambda p: solve(lambda x: rg.sinh(x) - grad(lambda y: (3 * p * y).sum())(x)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
class TestGradientsReachTensors:
    def test_by_backward(self, way):
        p = P.clone().requires_grad_()
        WAYS[way](p).sum().backward()
        np.testing.assert_allclose(p.grad.numpy(), EXPECTED, rtol=1e-10)

    def test_by_grad_of_a_transform(self, way):
        np.testing.assert_allclose(grad(lambda p: WAYS[way](p).sum())(P).numpy(), EXPECTED, rtol=1e-10)

    def test_by_jvp(self, way):
        out, along = jvp(WAYS[way], (P,), (rg.ones_like(P),))
        np.testing.assert_allclose(out.numpy(), np.arcsinh(3 * P.numpy()), rtol=1e-10)
        np.testing.assert_allclose(along.numpy(), EXPECTED, rtol=1e-10)

    def test_by_dual_tensors(self, way):
        with forward_ad.dual_level():
            out = WAYS[way](forward_ad.make_dual(P, rg.ones_like(P)))
            np.testing.assert_allclose(forward_ad.unpack_dual(out).tangent.numpy(), EXPECTED, rtol=1e-10)

    def test_in_a_batch(self, way):
        batch = rg.stack([P, P + 0.5])
        found = vmap(WAYS[way])(batch)
        np.testing.assert_allclose(found.numpy(), np.arcsinh(3 * batch.numpy()), rtol=1e-10)
        slopes = vmap(grad(lambda p: WAYS[way](p).sum()))(batch)
        np.testing.assert_allclose(slopes.numpy(), 3 / np.sqrt(1 + (3 * batch.numpy()) ** 2), rtol=1e-10)

    def test_to_second_order(self, way):
        found = jacfwd(grad(lambda p: WAYS[way](p).sum()))(P)
        y = 3 * P.numpy()
        np.testing.assert_allclose(found.numpy(), np.diag(-9 * y / (1 + y**2) ** 1.5), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(jacrev(jacrev(lambda p: WAYS[way](p).sum()))(P).numpy(), found.numpy(), atol=1e-10)


def test_a_tensor_that_the_function_reads_only_later_is_refused():
    p = rg.tensor(2.0, dtype=rg.float64, requires_grad=True)

    def f(x):
        return rg.sinh(x) - (3 * p if x.detach()[0] > 0.5 else 3.0)

    with pytest.raises(RuntimeError, match=r"root: .*reads a tensor with a gradient.* Pass the tensor in args="):
        solve(f)
    q = rg.tensor(2.0, dtype=rg.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"root: .*reads a tensor with a gradient.* Pass the tensor in args="):
        solve(lambda x: f(x) + 0 * q)
    with pytest.raises(RuntimeError, match="has escaped the function"):
        grad(lambda p: solve(lambda x: rg.sinh(x) - (3 * p if x.detach()[0] > 0.5 else 3.0)).sum())(p.detach())


def test_parameters_that_are_replaced_only_during_the_call_are_refused():
    class Solving(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = MODEL

        def forward(self):
            return solve(self.model)

    with pytest.raises(RuntimeError, match="that it did not read at the start"):
        grad(lambda p: functional_call(Solving(), {"model.p": p}, ()).sum())(P)


def test_parameters_of_a_module_get_gradients():
    model = Model(P)
    solve(model).sum().backward()
    np.testing.assert_allclose(model.p.grad.numpy(), EXPECTED, rtol=1e-10)


def test_a_tensor_without_a_gradient_is_a_constant():
    c = rg.tensor(3.0, dtype=rg.float64)
    found = solve(lambda x: rg.sinh(x) - c * rg.tensor([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found.numpy(), np.arcsinh([3, 6, 9]))
    assert not found.requires_grad


def test_the_solution_has_no_gradient_by_the_start():
    start = rg.ones(3, dtype=rg.float64, requires_grad=True)
    p = P.clone().requires_grad_()
    found = implicit.root(lambda x: rg.sinh(x) - 3 * p, start, solver=newton)
    assert rg.autograd.grad(found.sum(), [start, p], allow_unused=True)[0] is None
