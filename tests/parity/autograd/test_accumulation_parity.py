"""Accumulation: which gradients are summed, in which order, and in whose memory."""

import numpy as np

from .adapter import data, leaf, outcome, parity, refused, warned


def strides(value):
    """Return strides in elements, of either library's tensor."""
    array = value.detach().numpy()
    return [step // array.itemsize for step in array.strides]


@parity
def test_gradients_accumulate(m):
    x = leaf(m, 1, 2)
    for _ in range(3):
        (x * x).sum().backward()
    return x.grad


@parity
def test_accumulation_is_in_place_on_the_same_object(m):
    x = leaf(m, 1, 2)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    return x.grad is first, first


@parity
def test_accumulation_in_place_counts_as_a_change_of_the_gradient(m):
    x = leaf(m, 1, 2)
    (x * x).sum().backward()
    before = x.grad._version
    (x * x).sum().backward()
    return x.grad._version > before


@parity
def test_with_create_graph_accumulation_makes_a_new_object(m):
    x = leaf(m, 1, 2)
    (x * x).sum().backward()
    first = x.grad
    warned(lambda: (x * x).sum().backward(create_graph=True))
    return x.grad is first, first, x.grad, x.grad.requires_grad


@parity
def test_a_gradient_put_there_by_hand_is_added_to_in_place(m):
    x, start = leaf(m, 1, 2), m.tensor([10.0, 20.0])
    x.grad = start
    (x * 2).sum().backward()
    return x.grad is start, start


@parity
def test_a_gradient_that_is_a_view_is_added_to_in_place(m):
    x, base = leaf(m, 1, 2), m.zeros(4)
    x.grad = base[1:3]
    (x * 2).sum().backward()
    return base


@parity(known="a gradient that can't be added into is replaced by the sum", ours="None")
def test_an_expanded_gradient_put_there_by_hand(m):
    x = leaf(m, 1, 2)
    x.grad = m.tensor(5.0).expand(2)
    return refused((x * m.tensor([1.0, 10.0])).sum().backward)


@parity
def test_a_plain_pass_after_one_that_created_a_graph(m):
    x = leaf(m, 1, 2)
    warned(lambda: (x * x).sum().backward(create_graph=True))
    first = x.grad
    (x * x).sum().backward()
    return first is x.grad, x.grad, x.grad.requires_grad


@parity
def test_the_gradient_of_an_empty_leaf(m):
    x = m.ones(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    return list(x.grad.shape)


@parity
def test_two_leaves_never_share_a_gradient(m):
    x, y = leaf(m, 1, 2), leaf(m, 3, 4)
    (x + y).sum().backward()
    with m.no_grad():
        x.grad.mul_(10)
    return x.grad, y.grad


@parity
def test_a_gradient_is_not_the_memory_of_a_captured_one(m):
    x, seen = leaf(m, 1, 2), []
    y = x + 0
    y.register_hook(seen.append)
    y.backward(m.ones(2))
    with m.no_grad():
        x.grad.mul_(10)
    return seen, x.grad


@parity
def test_a_leaf_used_twice_gets_both(m):
    x = leaf(m, 1, 2)
    (x + x + x * 2).sum().backward()
    return x.grad


@parity
def test_a_gradient_has_the_dtype_of_its_leaf(m):
    x = leaf(m, 1, 2)
    (x * m.ones(2, dtype=m.float64)).sum().backward()
    return x.grad.dtype


@parity
def test_a_gradient_of_an_expanded_one_is_dense(m):
    x = m.ones(2, 3, requires_grad=True)
    x.sum().backward()
    return strides(x.grad)


@parity
def test_a_gradient_takes_the_strides_of_a_dense_leaf(m):
    x = m.ones(3, 2).transpose(0, 1).detach().requires_grad_()
    (x * x).sum().backward()
    y = m.ones(3, 2).transpose(0, 1).detach().requires_grad_()
    y.sum().backward()
    return strides(x.grad), strides(y.grad)


@parity
def test_a_gradient_of_a_leaf_with_gaps_is_row_major(m):
    x = m.ones(4, 6)[::2, ::3].detach().requires_grad_()
    (x * x).sum().backward()
    return strides(x.grad), x.grad


@parity
def test_zeroing_the_gradient_starts_again(m):
    x = leaf(m, 1, 2)
    (x * x).sum().backward()
    x.grad.zero_()
    (x * 3).sum().backward()
    return x.grad


@parity
def test_nodes_run_by_descending_creation(m):
    x, log = leaf(m, 1), []
    made = [x * 2, x * 3, x * 4]
    for i, y in enumerate(made):
        y.grad_fn.register_prehook(lambda gs, i=i: log.append(i))
    (made[2] + made[0] + made[1]).backward()
    return log


@parity
def test_a_node_waits_for_all_of_its_gradients(m):
    x, log = leaf(m, 1), []
    y = x * 2
    y.register_hook(lambda g: log.append(data(g)))
    z = y * 3
    (y.exp() * 0 + z * z + y).backward()
    return log, x.grad


@parity
def test_a_gradient_of_many_summands_is_summed_before_the_leafs_hook(m):
    x, log = leaf(m, 1), []
    x.register_hook(lambda g: log.append(data(g)))
    sum((x * k for k in range(1, 5)), start=x).backward()
    return log


@parity
def test_a_summand_passed_to_a_hook_does_not_change_later(m):
    x, seen = leaf(m, 1, 2), []
    parts = [x * 1, x * 1, x * 1]
    for part in parts:
        part.register_hook(seen.append)
    (parts[0] + parts[1] + parts[2]).backward(m.ones(2))
    return seen, x.grad


# ------------------------------------------------------------------------------------------------- the setter


@parity
def test_the_grad_refuses_what_does_not_fit(m):
    x = leaf(m, 1, 2)

    def put(value):
        x.grad = value

    return [
        outcome(lambda: put(m.ones(3)), "3", "2"),
        outcome(lambda: put(m.ones(2, dtype=m.float64)), "float64", "float32"),
        outcome(lambda: put(1.0), "float"),
        outcome(lambda: put(np.ones(2)), "ndarray"),
        outcome(lambda: put(x)),
        outcome(lambda: put(None)),
    ], x.grad


@parity
def test_a_grad_that_was_set_is_that_object(m):
    x, g = leaf(m, 1, 2), m.ones(2)
    x.grad = g
    return x.grad is g, x.grad


@parity
def test_a_grad_may_be_set_where_none_is_required(m):
    x = m.ones(2)
    x.grad = m.ones(2)
    return x.grad


@parity
def test_a_deleted_grad_is_none(m):
    x = leaf(m, 1)
    x.sum().backward()
    del x.grad
    return x.grad


@parity
def test_a_refused_data_leaves_the_tensor_alone(m):
    x = leaf(m, 1, 2)

    def put(value):
        x.data = value

    return outcome(lambda: put(m.tensor([1, 2])), "int64"), outcome(lambda: put([1.0])), x, x.requires_grad


@parity
def test_data_of_another_shape_is_taken(m):
    x = leaf(m, 1, 2)
    x.data = m.tensor([3.0, 4.0, 5.0])
    (x * x).sum().backward()
    return x, x.grad, x.requires_grad
