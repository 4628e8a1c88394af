"""Which views may be written to: of leaves, made without grad, one of several."""

import pytest

from .adapter import data, leaf, outcome, parity
from .observing import VIEWS, gradients, grid, state


@parity
def test_a_leaf_that_requires_gradients_is_not_written_to(m):
    x = leaf(m, 1, 2)
    writes = [lambda: x.add_(1), lambda: x.zero_(), lambda: x.copy_(x), lambda: x.__setitem__(0, 1.0)]
    return [outcome(w, "leaf") for w in writes], state(x)


@pytest.mark.parametrize("view", [v for v in VIEWS if v != "detach"])
@parity
def test_a_view_of_a_leaf_is_not_written_to(m, view):
    x = grid(m)
    v = VIEWS[view](x)
    return outcome(lambda: v.add_(1), "leaf"), state(x), state(v)


@parity
def test_under_no_grad_a_leaf_is_written_to(m):
    x = leaf(m, 1, 2)
    v = x[1:]
    with m.no_grad():
        x.add_(1)
        v.mul_(10)
        x[0] = 7
    return state(x), state(v), gradients(m, x * x, x)


@parity
def test_through_detach_a_leaf_is_written_to(m):
    x = leaf(m, 1, 2)
    x.detach().mul_(3)
    return state(x)


@parity
def test_an_unrecorded_write_to_a_result_leaves_its_graph(m):
    x = leaf(m, 1, 2)
    y = x * 2
    with m.no_grad():
        y.mul_(10)
        y[0] = x[1]
    return state(y), gradients(m, y, x)


@parity(
    known="a result of no_grad, views too, requires no gradient",
    ours="[[[1.0], False, True, True, 0], RuntimeError, [[1.0, 2.0], True, False, False, 0]]",
)
def test_a_view_made_without_grad_is_not_written_to_with_it(m):
    x = leaf(m, 1, 2)
    y = x * 1
    with m.no_grad():
        v = y[:1]
    return state(v), outcome(lambda: v.mul_(2), "no_grad"), state(y)


@parity
def test_a_view_made_without_grad_is_written_to_without_it(m):
    x = leaf(m, 1, 2)
    y = x * 1
    with m.no_grad():
        v = y[:1]
        v.mul_(2)
    return data(v), state(y), gradients(m, y, x)


@parity(
    known="a result of no_grad, views too, requires no gradient",
    ours="[[[1.0], False, True, True, 0], RuntimeError, [[1.0, 2.0], True, True, True, 0]]",
)
def test_a_view_of_a_leaf_made_without_grad(m):
    x = leaf(m, 1, 2)
    with m.no_grad():
        v = x[:1]
    return state(v), outcome(lambda: v.mul_(2)), state(x)


@parity
def test_a_view_of_plain_memory_made_without_grad(m):
    x, y = leaf(m, 5), m.zeros(2)
    with m.no_grad():
        v = y[:1]
    return outcome(lambda: v.add_(1)), outcome(lambda: v.copy_(x)), state(y)


@parity
def test_a_view_made_with_grad_inside_no_grad(m):
    x = leaf(m, 1, 2)
    y = x * 1
    with m.no_grad(), m.enable_grad():
        v = y[:1]
    v.mul_(2)
    return state(v), state(y), gradients(m, y, x)


@parity
def test_the_base_of_a_view_made_without_grad_may_be_written_to(m):
    x = leaf(m, 1, 2)
    y = x * 1
    with m.no_grad():
        v = y[:1]
    y.mul_(2)
    return state(y), outcome(lambda: state(v)), gradients(m, y, x)


MANY = {
    "unbind": lambda y: y.unbind(0),
    "iteration": lambda y: tuple(y),
    "split": lambda y: y.split(2),
    "split by sizes": lambda y: y.split([1, 2]),
    "chunk": lambda y: y.chunk(3),
}


@pytest.mark.parametrize("views", MANY)
@parity
def test_one_of_several_views_is_not_written_to(m, views):
    x = grid(m)
    y = x * 1
    parts = MANY[views](y)
    return len(parts), outcome(lambda: parts[0].mul_(2)), state(y), state(parts[1])


@pytest.mark.parametrize("views", MANY)
@parity
def test_one_of_several_views_may_be_written_to_without_grad(m, views):
    x = grid(m)
    y = x * 1
    parts = MANY[views](y)
    with m.no_grad():
        parts[0].mul_(2)
    return state(y), data(parts[0]), gradients(m, y, x)


@pytest.mark.parametrize("views", MANY)
@parity
def test_one_of_several_views_of_plain_memory(m, views):
    y, x = m.zeros(3, 4), leaf(m, 5)
    parts = MANY[views](y)
    parts[0].add_(1)
    return state(y), outcome(lambda: parts[1].copy_(x)), state(y)


@pytest.mark.parametrize("views", MANY)
@parity
def test_gradients_through_several_views(m, views):
    x = grid(m)
    parts = MANY[views](x * 1)
    return gradients(m, parts[0], x), gradients(m, parts[-1], x), [p._is_view() for p in parts]


@pytest.mark.parametrize("views", MANY)
@parity
def test_the_base_of_several_views_is_written_to(m, views):
    x = grid(m)
    y = x * 1
    parts = MANY[views](y)
    y.mul_(2)
    return data(parts[0]), outcome(lambda: gradients(m, parts[0] * 2, x)), gradients(m, y, x)


@parity
def test_a_view_of_one_of_several_views(m):
    x = grid(m)
    y = x * 1
    v = y.unbind(0)[1][:2]
    return outcome(lambda: v.mul_(2)), state(y), state(v)
