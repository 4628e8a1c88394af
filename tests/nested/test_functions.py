"""User-defined Functions and custom operators on nested tensors."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import autograd, library
from retrograd.core.op import registry
from retrograd.nested import as_nested_tensor, nested_tensor, nested_tensor_from_jagged
from retrograd.ops.batch_loop import PerformanceWarning

LENGTHS = (2, 0, 4, 1)


def rows(seed=0):
    r = np.random.default_rng(seed)
    return [rg.tensor(r.uniform(-1, 1, (n, 3))) for n in LENGTHS]


def assert_parts(found, expected):
    assert found.is_nested
    for a, b in zip(found.unbind(), expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)


class Sine(autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos()

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * x.cos()


class Both(autograd.Function):
    """A Function with two nested results."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w):
        return x * w, x.exp()

    @staticmethod
    def setup_context(ctx, inputs, outputs):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        return g * w + h * x.exp(), (g * x).values().sum(0)


def test_a_function_gets_and_gives_nested_tensors_whole():
    x = nested_tensor(rows(), requires_grad=True)
    y = Sine.apply(x)
    assert_parts(y, [p.sin() for p in rows()])
    (y * y).values().sum().backward()
    assert_parts(x.grad, [2 * p.sin() * p.cos() for p in rows()])


def test_a_function_is_differentiated_twice():
    x = nested_tensor(rows(), requires_grad=True)
    (g,) = autograd.grad(Sine.apply(x).values().sum(), x, create_graph=True)
    (h,) = autograd.grad(g.values().sum(), x)
    assert_parts(h, [-p.sin() for p in rows()])


def test_a_function_of_nested_tensors_passes_gradcheck():
    assert autograd.gradcheck(Sine.apply, nested_tensor(rows(), requires_grad=True))


def test_both_results_of_a_function_have_gradients():
    x, w = nested_tensor(rows(), requires_grad=True), rg.tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    y, z = Both.apply(x, w)
    (y + z).values().sum().backward()
    assert_parts(x.grad, [w.detach() + p.exp() for p in rows()])
    np.testing.assert_allclose(w.grad.numpy(), sum(p.sum(0) for p in rows()).numpy())


def test_a_result_that_is_not_used_has_a_cotangent_of_zeros():
    x, w = nested_tensor(rows(), requires_grad=True), rg.tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    y, _ = Both.apply(x, w)
    y.values().sum().backward()
    assert_parts(x.grad, [w.detach().expand(p.shape) for p in rows()])


def test_a_function_inside_function_transforms():
    x = nested_tensor(rows())
    assert_parts(rg.func.grad(lambda x: Sine.apply(x).values().sum())(x), [p.cos() for p in rows()])
    _, t = rg.func.jvp(Sine.apply, (x,), (x,))
    assert_parts(t, [p * p.cos() for p in rows()])


def test_a_gradient_of_another_structure_is_refused():
    class Wrong(Sine):
        @staticmethod
        def backward(ctx, g):
            return nested_tensor(rows()[:2])

    x = nested_tensor(rows(), requires_grad=True)
    with pytest.raises(RuntimeError, match="Wrong"):
        Wrong.apply(x).values().sum().backward()


# ---------------------------------------------------------------------------------------------- users' operators


@pytest.fixture
def names():
    before = set(registry)
    yield
    for name in set(registry) - before:
        del registry[name]


def test_an_operator_of_a_user_is_mapped_over_the_components(names):
    @library.custom_op("nestedtests::centre", mutates_args=())
    def centre(x: rg.Tensor) -> rg.Tensor:
        return rg.tensor(x.numpy() - x.numpy().sum())

    @centre.register_fake
    def _(x):
        return rg.empty_like(x)

    def backward(ctx, g):
        return g - g.sum()

    centre.register_autograd(backward)
    mine, alone = ([p.clone().requires_grad_() for p in rows()] for _ in range(2))
    with pytest.warns(PerformanceWarning, match="one by one"):
        y = centre(as_nested_tensor(mine))
    expected = [centre(p.unsqueeze(0)).squeeze(0) for p in alone]
    assert_parts(y, expected)
    (y * y).values().sum().backward()
    sum((e * e).sum() for e in expected).backward()
    for a, b in zip(mine, alone, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy())


def test_an_operator_of_a_user_takes_the_buffer(names):
    @library.custom_op("nestedtests::double", mutates_args=())
    def double(x: rg.Tensor) -> rg.Tensor:
        return rg.tensor(x.numpy() * 2)

    x = nested_tensor(rows())
    assert_parts(nested_tensor_from_jagged(double(x.values()), x.offsets()), [p * 2 for p in rows()])
