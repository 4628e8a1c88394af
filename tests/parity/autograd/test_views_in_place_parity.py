"""A write through a view reaches its base and the other views, with its gradient."""

import pytest

from .adapter import leaf, outcome, parity
from .observing import VIEWS, gradients, grid, state, weights


@pytest.mark.parametrize("view", VIEWS)
@parity
def test_a_write_through_a_view_reaches_the_base(m, view):
    x = grid(m)
    y = x * 1
    v = VIEWS[view](y)
    v.mul_(2)
    return state(y), state(v), gradients(m, y, x), gradients(m, v, x) if v.requires_grad else None


@pytest.mark.parametrize("view", VIEWS)
@parity
def test_a_write_of_a_variable_through_a_view_of_plain_memory(m, view):
    y = m.zeros(3, 4, dtype=m.float64)
    v = VIEWS[view](y)
    w = weights(m, v).requires_grad_()
    v.copy_(w)
    return state(y), state(v), gradients(m, y, w) if y.requires_grad else None, gradients(m, v, w)


@pytest.mark.parametrize("view", VIEWS)
@parity
def test_a_write_to_the_base_reaches_a_view(m, view):
    x = grid(m)
    y = x * 1
    v = VIEWS[view](y)
    y.mul_(x)
    return gradients(m, v * 2, x) if view != "detach" else None, state(v)


@pytest.mark.parametrize("view", VIEWS)
@parity
def test_bases_of_views(m, view):
    y = grid(m) * 1
    v = VIEWS[view](y)
    return v._is_view(), v._base is y, y._is_view(), y._base


@parity
def test_the_base_of_a_view_of_a_view_is_the_first(m):
    y = m.zeros(3, 4)
    v = y[1:]
    return v[0]._base is y, v.clone()._is_view(), (v * 1)._base


SIBLINGS = {
    "add_": lambda v, x: v.add_(x[:2]),
    "mul_": lambda v, x: v.mul_(x[:2]),
    "copy_": lambda v, x: v.copy_(x[:2]),
    "zero_": lambda v, x: v.zero_(),
    "assignment": lambda v, x: v.__setitem__(0, x[2]),
}


@pytest.mark.parametrize("write", SIBLINGS)
@parity
def test_a_write_to_a_view_reaches_its_siblings(m, write):
    x = leaf(m, 2, 3, 5)
    y = x * 1
    a, b, c = y[:2], y[1:], y.flip(0)
    SIBLINGS[write](a, x)
    return [(state(t), gradients(m, t, x)) for t in (y, a, b, c)]


@parity
def test_siblings_of_plain_memory_require_gradients_after_a_write(m):
    x, y = leaf(m, 7, 8), m.zeros(3)
    a, b, c = y[:2], y[1:], y[2]
    a.copy_(x)
    return [(state(t), t.requires_grad and gradients(m, t, x)) for t in (y, a, b, c)]


@parity
def test_writes_through_many_views_in_turn(m):
    x = grid(m)
    y = x * 1
    rows, columns, last = y[1:], y.transpose(0, 1), y[-1]
    rows.mul_(2)
    columns[0].add_(x[:, 1])
    last.copy_(columns[1:2, 0].expand(4))
    y[0, 0] = rows.sum()
    return [(state(t), gradients(m, t, x)) for t in (y, rows, columns, last)]


@parity
def test_a_view_of_a_view_after_a_write(m):
    x = leaf(m, 1, 2, 3)
    y = x * 1
    v = y[1:]
    v.mul_(x[0])
    w = v[0]
    w.mul_(x[1])
    return [(state(t), gradients(m, t, x)) for t in (y, v, w)]


@parity
def test_a_write_through_a_view_leaves_earlier_results_alone(m):
    x = leaf(m, 1, 2)
    y = x * 1
    v = y[:1]
    before = v + 1
    v.add_(x[1])
    return before, gradients(m, before, x), gradients(m, v, x), gradients(m, y, x)


@parity
def test_a_view_does_not_depend_on_itself_through_its_base(m):
    x = leaf(m, 1, 2)
    y = x * 1
    v = y[:1]
    v.mul_(2)
    return outcome(lambda: m.autograd.grad(y.sum(), v)), outcome(lambda: m.autograd.grad(v.sum(), y))


@parity(
    known="what a tensor requires does not change behind its back; the write is refused all the same",
    ours="[[[0.0, 0.0], False, True, True, 0], RuntimeError, [[0.0, 0.0], False, True, True, 0], "
    "[[0.0, 0.0], True, False, False, 0]]",
)
def test_a_view_made_before_the_base_required_gradients(m):
    y = m.zeros(3)
    v = y[1:]
    y.requires_grad_()
    return state(v), outcome(lambda: v.add_(1)), state(v), state(y[1:])


@parity
def test_a_view_of_plain_memory_may_be_a_leaf_of_its_own(m):
    y = m.ones(3)
    v = y[1:].requires_grad_()
    before = outcome(lambda: (v * 2).sum().backward())
    return before, state(v), state(y), v.grad, outcome(lambda: v.add_(1))


@parity
def test_a_write_to_a_transposed_view_of_a_slice(m):
    x = grid(m)
    y = x * 1
    v = y[:, 1:].T
    v[0] = x[:, 0] * 2
    v += v[1].clone()
    return state(y), gradients(m, y, x), gradients(m, v, x)


@parity
def test_a_write_to_an_expanded_tensor_is_refused(m):
    y = m.zeros(2, 1)
    v = y.expand(2, 3)
    return outcome(lambda: v.add_(1)), outcome(lambda: v.__setitem__(0, 1.0)), state(y)


@parity
def test_the_base_of_an_expanded_view_may_be_written_to(m):
    x = leaf(m, 1, 2)
    y = x * 1
    v = y.reshape(2, 1).expand(2, 3)
    y.mul_(x)
    return state(v), gradients(m, v, x)


@parity
def test_real_and_imag_are_views(m):
    z = m.tensor([1 + 2j, 3 - 1j], dtype=m.complex128)
    z.real.mul_(10)
    z.imag[0] = 7
    return state(z), z.real._base is z, z.imag


@parity
def test_writes_through_real_and_imag_are_recorded(m):
    x = m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True)
    z = m.zeros(2, dtype=m.complex128)
    z.real.copy_(x)
    z.imag[1:] = x[:1] * 3
    value = (z * z.conj()).real
    return z, z.requires_grad, gradients(m, value, x)
