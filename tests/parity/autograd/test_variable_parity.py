"""Variable is an alias of Tensor, as in PyTorch."""

from .adapter import data, leaf, outcome, parity


@parity
def test_a_variable_is_a_tensor(m):
    x = m.autograd.Variable(m.tensor([1.0, 2.0]), requires_grad=True)
    (x * x).sum().backward()
    return isinstance(x, m.Tensor), type(x) is m.Tensor, x.requires_grad, x.is_leaf, x.grad


@parity
def test_without_a_flag_it_needs_no_gradient(m):
    return m.autograd.Variable(m.ones(2)).requires_grad, m.autograd.Variable(m.ones(2), True).requires_grad


@parity
def test_every_tensor_is_an_instance(m):
    kind = m.autograd.Variable
    return isinstance(m.ones(1), kind), isinstance(leaf(m, 1) * 2, kind), isinstance(3, kind), isinstance([], kind)


@parity
def test_it_shares_memory_but_no_graph(m):
    x = m.ones(2)
    v = m.autograd.Variable(x, requires_grad=True)
    x.mul_(3)
    return v is x, v, x.requires_grad


@parity
def test_a_result_is_detached(m):
    y = leaf(m, 1, 2) * 3
    v = m.autograd.Variable(y, requires_grad=True)
    return v.is_leaf, v.requires_grad, v.grad_fn is None


@parity
def test_integers_cannot_require_gradients(m):
    return outcome(lambda: m.autograd.Variable(m.tensor([1, 2]), requires_grad=True))


@parity
def test_only_tensors_become_variables(m):
    return outcome(lambda: m.autograd.Variable([1.0, 2.0])), outcome(lambda: m.autograd.Variable(3.0))


@parity
def test_the_function_of_lower_case_points_to_tensor(m):
    return outcome(lambda: m.autograd.variable([1.0]), "tensor")


@parity
def test_variables_in_the_functions_of_autograd(m):
    x = m.autograd.Variable(m.tensor([1.0, 2.0]), requires_grad=True)
    m.autograd.backward([(x * 2).sum()])
    return data(x.grad), m.autograd.grad((x**2).sum(), x)
