"""In-place writes to a tensor and to a part of it: values, gradients, flags, versions."""

import pytest

from .adapter import leaf, outcome, parity, refused
from .observing import gradients, grid, state

# ---------------------------------------------------------------------------- writes to a whole tensor

WRITES = {
    "add_": lambda m, y, w: y.add_(w),
    "add_ with alpha": lambda m, y, w: y.add_(w, alpha=3),
    "sub_": lambda m, y, w: y.sub_(w),
    "mul_": lambda m, y, w: y.mul_(w),
    "mul_ by a number": lambda m, y, w: y.mul_(3),
    "div_": lambda m, y, w: y.div_(w),
    "pow_": lambda m, y, w: y.pow_(2),
    "copy_": lambda m, y, w: y.copy_(w),
    "zero_": lambda m, y, w: y.zero_(),
    "fill_": lambda m, y, w: y.fill_(7),
    "fill_ with a tensor": lambda m, y, w: y.fill_(w[0]),
    "clamp_": lambda m, y, w: y.clamp_(1, 2),
    "neg_": lambda m, y, w: y.neg_(),
    "exp_": lambda m, y, w: y.exp_(),
    "sqrt_": lambda m, y, w: y.sqrt_(),
    "tanh_": lambda m, y, w: y.tanh_(),
    "sigmoid_": lambda m, y, w: y.sigmoid_(),
    "relu_": lambda m, y, w: y.relu_(),
    "masked_fill_": lambda m, y, w: y.masked_fill_(m.tensor([True, False, False]), 5.0),
    "index_add_": lambda m, y, w: y.index_add_(0, m.tensor([2, 0, 2]), w),
    "augmented": lambda m, y, w: y.__iadd__(w),
    "two": lambda m, y, w: y.mul_(w).add_(w),
}


@pytest.mark.parametrize("write", WRITES)
@parity
def test_a_write_is_recorded(m, write):
    x, w = (m.tensor(v, dtype=m.float64, requires_grad=True) for v in ([0.5, 2, 3], [1.5, 3, 0.25]))
    y = x * 1
    same = WRITES[write](m, y, w) is y
    return same, state(y), gradients(m, y, x, w)


@parity(known="ours keeps a copy of what is written over", ours="[[1.0, 8.0]]")
def test_a_tensor_multiplied_by_itself(m):
    x = leaf(m, 0.5, 2)
    y = x * 1
    y.mul_(y)
    return outcome(lambda: gradients(m, y, x))


@parity
def test_two_derivatives_through_writes(m):
    x = leaf(m, 1, 2)
    y = x * 3
    y.mul_(x)
    y[0] = y[1].clone() * x[0]
    (g,) = m.autograd.grad((y * y).sum(), x, create_graph=True)
    return g, m.autograd.grad(g.sum(), x)


@parity
def test_a_plain_tensor_becomes_part_of_the_graph(m):
    x, y = leaf(m, 1, 2), m.zeros(2)
    before = state(y)
    y.copy_(x * 2)
    return before, state(y), gradients(m, y, x)


@parity
def test_a_plain_tensor_stays_plain_when_plain_values_are_written(m):
    y = m.zeros(2)
    y.add_(1).mul_(3)
    return state(y)


@parity
def test_a_copy_that_broadcasts_sums_the_gradient(m):
    x, y = leaf(m, 1, 2), m.zeros(3, 2)
    y.copy_(x)
    return state(y), gradients(m, y, x)


@parity
def test_a_copy_that_converts_gives_a_gradient_in_the_dtype_of_the_source(m):
    x, y = leaf(m, 1, 2), m.zeros(2, dtype=m.float64)
    y.copy_(x)
    (g,) = gradients(m, y, x)
    return y.dtype, g.dtype, g


@parity
def test_a_copy_into_integers_is_not_recorded(m):
    x, y = leaf(m, 1.75, 2), m.zeros(2, dtype=m.int64)
    y.copy_(x)
    return state(y)


@parity
def test_a_copy_overwrites_the_old_history(m):
    x, y = leaf(m, 1, 2), leaf(m, 3, 4)
    z = x.sin()
    z.copy_(y)
    return z, gradients(m, z, x, y)


@parity
def test_zeros_end_the_gradient_but_not_the_graph(m):
    x = leaf(m, 1, 2)
    y = (x * 2).zero_()
    return state(y), gradients(m, y, x)


@parity
def test_a_write_that_does_not_fit_changes_nothing(m):
    x, y = leaf(m, 1, 2), m.zeros(2)
    seen = [refused(f) for f in (lambda: y.copy_(m.ones(3)), lambda: y.add_(m.ones(2, 2)), lambda: y.add_(x[:0]))]
    return seen, state(y)


@parity
def test_a_result_of_a_higher_kind_is_refused(m):
    y = m.tensor([1, 2])
    seen = [outcome(lambda: y.add_(1.5)), outcome(lambda: y.div_(2)), outcome(lambda: y.mul_(m.ones(2)))]
    return seen, state(y), y.mul_(2)


@parity
def test_augmented_assignment_writes_in_place(m):
    x = leaf(m, 1, 2)
    y = alias = x * 1
    y += 1
    y *= x
    y -= 2
    y /= 4
    return alias is y, state(y), gradients(m, y, x)


# ---------------------------------------------------------------------------- index assignment

KEYS = {
    "integer": lambda m: 1,
    "negative integer": lambda m: -1,
    "two integers": lambda m: (1, 2),
    "slice": lambda m: slice(1, None),
    "stepped slices": lambda m: (slice(None, None, 2), slice(1, None, 2)),
    "ellipsis": lambda m: ...,
    "ellipsis and integer": lambda m: (..., 0),
    "None": lambda m: None,
    "None and slice": lambda m: (None, slice(1, 3)),
    "empty slice": lambda m: slice(0, 0),
    "mask": lambda m: m.arange(12).reshape(3, 4) % 3 == 0,
    "mask of rows": lambda m: m.tensor([True, False, True]),
    "mask of nothing": lambda m: m.tensor([False, False, False]),
    "index tensor": lambda m: m.tensor([2, 0]),
    "list": lambda m: [2, 0],
    "two index tensors": lambda m: (m.tensor([0, 2]), m.tensor([3, 1])),
    "index tensors that broadcast": lambda m: (m.tensor([[0], [2]]), m.tensor([3, 1])),
    "slice and index tensor": lambda m: (slice(None), m.tensor([3, 1])),
    "integer and index tensor": lambda m: (1, m.tensor([3, 1])),
    "integer tensor": lambda m: m.tensor(2),
    "row mask and integer": lambda m: (m.tensor([True, False, True]), 1),
}


@pytest.mark.parametrize("key", KEYS)
@parity
def test_assignment_to_part_of_a_tensor(m, key):
    x = grid(m)
    y = x * 1
    key = KEYS[key](m)
    v = (y[key].detach() * 10).requires_grad_()
    y[key] = v
    return state(y), gradients(m, y, x, v)


@pytest.mark.parametrize("key", KEYS)
@parity
def test_assignment_of_a_number(m, key):
    x = grid(m)
    y = x * 1
    y[KEYS[key](m)] = 7
    return state(y), gradients(m, y, x)


@pytest.mark.parametrize("key", KEYS)
@parity
def test_augmented_assignment_to_part_of_a_tensor(m, key):
    x = grid(m)
    y = x * 1
    y[KEYS[key](m)] *= 3
    return state(y), gradients(m, y, x)


@parity
def test_an_assigned_value_broadcasts(m):
    v, y = leaf(m, 1, 2), m.zeros(3, 2, 2)
    y[1:] = v
    y[0, :, :1] = v[0]
    return state(y), gradients(m, y, v)


@parity
def test_an_assigned_value_may_have_leading_ones(m):
    v, y = leaf(m, 1, 2), m.zeros(3, 2)
    y[1] = v.reshape(1, 1, 2)
    return y, gradients(m, y, v)


@parity
def test_an_assigned_value_is_converted(m):
    v, y = leaf(m, 1, 2), m.zeros(3, dtype=m.float64)
    y[:2] = v
    return y.dtype, y, gradients(m, y, v)[0].dtype


@parity
def test_assignments_that_do_not_fit(m):
    y = m.zeros(3, 4)

    def put(key, value):
        y[key] = value

    wrong = [(0, m.ones(3)), (m.tensor([0, 1]), m.ones(3, 4)), (5, 1.0), ((0, 0, 0), 1.0), (m.tensor([3]), 1.0)]
    return [refused(lambda k=k, v=v: put(k, v)) for k, v in wrong], state(y)


@parity
def test_a_loop_fills_a_tensor(m):
    x, out = leaf(m, 1, 2, 3), m.zeros(3)
    for i in range(3):
        out[i] = x[i] * out[i - 1].clone() + i
    return state(out), gradients(m, out, x)


@parity
def test_rows_are_swapped(m):
    x = grid(m, 2, 2)
    y = x * 1
    first, second = y[0].clone(), y[1].clone()
    y[0], y[1] = second, first
    return state(y), gradients(m, y, x)


@parity
def test_rows_that_are_views_are_not_swapped(m):
    x = grid(m, 2, 2)
    y = x * 1
    y[0], y[1] = y[1], y[0]
    return state(y), gradients(m, y, x)
