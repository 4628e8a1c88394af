"""Function: permitted results of backward, and how often it is differentiable."""

import pytest

from .adapter import leaf, outcome, parity, refused
from .functions import returning

# ------------------------------------------------------------------------------ results of backward


@parity
def test_too_few_gradients(m):
    y = returning(m, lambda g: g).apply(leaf(m, 1), leaf(m, 2))
    return outcome(y.backward, "Returning", "2", "1")


@parity
def test_too_many_gradients(m):
    y = returning(m, lambda g: g, lambda g: g).apply(leaf(m, 1))
    return outcome(y.backward, "Returning", "1", "2")


@parity
def test_extra_gradients_may_be_none(m):
    x = leaf(m, 1)
    returning(m, lambda g: g, None, None).apply(x).backward()
    return x.grad


@parity
def test_none_for_an_input_that_needs_a_gradient(m):
    x, y = leaf(m, 1), leaf(m, 2)
    returning(m, None, lambda g: g).apply(x, y).backward()
    return x.grad, y.grad


@parity
def test_a_gradient_for_an_input_that_needs_none_is_dropped(m):
    x, y = leaf(m, 1), m.ones(1)
    returning(m, lambda g: g, lambda g: g).apply(x, y).backward()
    return x.grad, y.grad


WRONG = {
    "another shape": lambda m: m.ones(3),
    "more dimensions": lambda m: m.ones(1, 2),
    "fewer elements": lambda m: m.ones(1),
    "no tensor": lambda m: 1.5,
    "a text": lambda m: "gradient",
    "another float": lambda m: m.ones(2, dtype=m.float64),
    "integers": lambda m: m.ones(2, dtype=m.int64),
    "a complex number": lambda m: m.ones(2, dtype=m.complex64),
}


@pytest.mark.parametrize("wrong", WRONG)
@parity
def test_a_gradient_of_another_kind(m, wrong):
    x = leaf(m, 1, 2)
    y = returning(m, WRONG[wrong](m)).apply(x)
    return refused(lambda: y.backward(m.ones(2)), "Returning"), x.grad, x.grad is None or x.grad.dtype


@parity
def test_a_gradient_of_a_shape_that_broadcasting_made_is_summed(m):
    x, y = leaf(m, 1, 2), leaf(m, 5)
    add = returning(m, lambda g: g, lambda g: g).apply(x, y)
    add.sum().backward()
    return x.grad, y.grad


@parity
def test_the_names_of_class_and_position_in_the_error(m):
    y = returning(m, lambda g: g, m.ones(7)).apply(leaf(m, 1, 2), leaf(m, 3, 4))
    return outcome(y.sum().backward, "ReturningBackward", "1", "7", "2")


@parity
def test_the_gradient_that_is_passed_on_is_not_shared_with_the_leaf(m):
    x, y = leaf(m, 1, 2), leaf(m, 3, 4)
    g = m.ones(2)
    returning(m, lambda g: g, lambda g: g).apply(x, y).backward(g)
    with m.no_grad():
        x.grad.mul_(10)
    return x.grad, y.grad, g


# ---------------------------------------------------------------------------- once_differentiable


def once(m, log):
    """Return a Function whose backward has no derivative."""

    class Once(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @m.autograd.function.once_differentiable
        def backward(ctx, g):
            log.append(m.is_grad_enabled())
            return g * 2 * ctx.saved_tensors[0]

    return Once


@parity
def test_once_differentiable_gives_one_derivative(m):
    log, x = [], leaf(m, 3)
    (g,) = m.autograd.grad(once(m, log).apply(x), x)
    return g, g.requires_grad, log


@parity
def test_once_differentiable_refuses_a_second(m):
    log, x = [], leaf(m, 3)
    cotangent = m.ones(1, requires_grad=True)
    (g,) = m.autograd.grad(once(m, log).apply(x), x, cotangent, create_graph=True)
    return g, g.requires_grad, log, outcome(g.backward, "once_differentiable")
