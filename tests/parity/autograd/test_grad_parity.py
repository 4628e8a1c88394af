"""grad(): a tuple of gradients, unused inputs, higher orders; nothing is added to any leaf."""

import pytest

from .adapter import data, leaf, outcome, parity, warned


@parity
def test_it_adds_to_no_leaf(m):
    x, y = leaf(m, 1, 2), leaf(m, 3, 4)
    return outcome(lambda: m.autograd.grad((x * y).sum(), [y, x])), x.grad, y.grad


@parity
def test_it_leaves_an_earlier_grad_alone(m):
    x = leaf(m, 1, 2)
    (x * 2).sum().backward()
    (g,) = m.autograd.grad((x * 5).sum(), x)
    return x.grad, g, g is x.grad


@parity
def test_it_answers_with_a_tuple(m):
    x = leaf(m, 1)
    return [type(m.autograd.grad(x * 2, i)).__name__ for i in (x, [x], (x,))]


@parity
def test_an_unused_input_is_an_error_that_names_it(m):
    x, y = leaf(m, 1), leaf(m, 2)
    return outcome(lambda: m.autograd.grad(x * 2, [x, y]), "index 1", "allow_unused")


@parity
def test_an_input_that_needs_no_gradient_is_an_error(m):
    x, c = leaf(m, 1), m.tensor([1.0])
    return outcome(lambda: m.autograd.grad(x * c, [x, c]), "inputs[1]", "require"), outcome(
        lambda: m.autograd.grad(x * c, [c], allow_unused=True)
    )


@parity
def test_an_output_that_needs_no_gradient_is_an_error(m):
    x, c = leaf(m, 1), m.tensor([1.0])
    return outcome(lambda: m.autograd.grad(c, x), "element 0"), outcome(
        lambda: m.autograd.grad([x * 2, c], x, [m.ones(1), m.ones(1)]), "element 1"
    )


@pytest.mark.parametrize("options", [{"allow_unused": True}, {"materialize_grads": True}, {"allow_unused": False}])
@parity
def test_unused_inputs_are_none_zeros_or_an_error(m, options):
    x, y = leaf(m, 1), leaf(m, 2, 3)
    return outcome(lambda: m.autograd.grad(x * 2, [x, y], **options))


@parity
def test_zeros_of_an_unused_input_are_like_it(m):
    x, y = leaf(m, 1), m.ones(2, 3, dtype=m.float64, requires_grad=True)
    _, g = m.autograd.grad(x * 2, [x, y], materialize_grads=True)
    return g, g.dtype, g.requires_grad


@parity
def test_materialize_grads_with_allow_unused_true(m):
    x, y = leaf(m, 1), leaf(m, 2)
    return outcome(lambda: m.autograd.grad(x * 2, [x, y], materialize_grads=True, allow_unused=True))


@parity
def test_materialize_grads_with_allow_unused_false_is_an_error(m):
    x, y = leaf(m, 1), leaf(m, 2)
    return outcome(
        lambda: m.autograd.grad(x * 2, [x, y], materialize_grads=True, allow_unused=False),
        "materialize_grads",
        "allow_unused",
    )


@parity
def test_only_inputs_false_warns(m):
    x = leaf(m, 1)
    return warned(lambda: m.autograd.grad(x * 2, x, only_inputs=False))


@parity
def test_with_respect_to_an_inner_result(m):
    x = leaf(m, 1, 2)
    y = x * 3
    return outcome(lambda: m.autograd.grad((y * y).sum(), [y, x]))


@parity
def test_with_respect_to_an_inner_result_goes_no_further(m):
    x, log = leaf(m, 2), []
    x.register_hook(lambda g: log.append("leaf"))
    y = x * 3
    return m.autograd.grad(y * y, y), log


@parity
def test_the_same_input_twice(m):
    x = leaf(m, 1, 2)
    return outcome(lambda: m.autograd.grad((x * x).sum(), [x, x]))


@parity
def test_the_output_as_input(m):
    y = leaf(m, 2) * 3
    return outcome(lambda: m.autograd.grad(y, y))


@parity
def test_a_leaf_as_output_and_input(m):
    x = leaf(m, 2, 3)
    return outcome(lambda: m.autograd.grad(x, x, m.tensor([5.0, 7.0])))


@parity
def test_several_outputs_with_their_cotangents(m):
    x = leaf(m, 1, 2)
    return outcome(lambda: m.autograd.grad([x * 2, x.sum()], x, [m.tensor([1.0, 10.0]), None]))


@parity
def test_as_many_cotangents_as_outputs(m):
    x = leaf(m, 1)
    return outcome(lambda: m.autograd.grad([x * 2, x * 3], x, [m.ones(1)]))


@parity
def test_an_unfit_cotangent_is_refused(m):
    x = leaf(m, 1, 2)
    return outcome(lambda: m.autograd.grad(x * 2, x, m.ones(3)), "grad_output[0]", "(3,)", "(2,)"), outcome(
        lambda: m.autograd.grad(x * 2, x), "output 0", "(2,)"
    )


@parity
def test_third_derivatives(m):
    x = leaf(m, 2)
    y = x**4
    for _ in range(3):
        (y,) = m.autograd.grad(y.sum(), x, create_graph=True)
    return data(y), y.requires_grad


@parity
def test_without_create_graph_gradients_are_constants(m):
    x = leaf(m, 2)
    (g,) = m.autograd.grad((x * x).sum(), x)
    return g.requires_grad, g.is_leaf


@parity
def test_the_derivative_with_respect_to_the_cotangent(m):
    x, v = leaf(m, 2, 3), leaf(m, 1, 1)
    (g,) = m.autograd.grad(x * x, x, v, create_graph=True)
    return g, m.autograd.grad(g.sum(), v)


@parity
def test_create_graph_needs_grad_mode_on_only_inside(m):
    x = leaf(m, 2)
    y = x**3
    with m.no_grad():
        (g,) = m.autograd.grad(y, x, create_graph=True)
    return g, g.requires_grad


@parity
def test_it_frees_what_it_walked(m):
    x = leaf(m, 1, 2)
    y = (x * x).sum()
    return outcome(lambda: m.autograd.grad(y, x)), outcome(lambda: m.autograd.grad(y, x), "retain_graph=True")


@parity
def test_retain_graph_allows_another(m):
    x = leaf(m, 1, 2)
    y = (x * x).sum()
    return [outcome(lambda r=r: m.autograd.grad(y, x, retain_graph=r)) for r in (True, False, False)]


@parity
def test_a_gradient_of_a_constant_second_derivative(m):
    x = leaf(m, 2)
    (g,) = m.autograd.grad(x * 3, x, create_graph=True)
    return g, g.requires_grad


@parity
def test_a_hessian_vector_product(m):
    x, v = leaf(m, 1, 2), m.tensor([1.0, -1.0])
    (g,) = m.autograd.grad((x**3).sum() + x.prod(), x, create_graph=True)
    return m.autograd.grad((g * v).sum(), x)


@parity
def test_no_inputs_are_an_error(m):
    x = leaf(m, 1)
    return outcome(lambda: m.autograd.grad(x * 2, []))
