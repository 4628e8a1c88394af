"""Deprecated names: Variable, variable, and its execution engine."""

import pytest

import retrograd as rg
from retrograd.autograd import Variable

queue = Variable._execution_engine.queue_callback


def test_a_variable_is_a_tensor_by_another_name():
    data = rg.tensor([2.0])
    x = Variable(data, requires_grad=True)
    assert isinstance(x, rg.Tensor)
    assert isinstance(x, Variable)
    assert isinstance(rg.ones(1), Variable)
    assert not isinstance(3.0, Variable)
    assert (x.requires_grad, data.requires_grad, Variable(data).requires_grad) == (True, False, False)
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0]


def test_a_variable_of_a_result_is_a_leaf_in_the_same_memory():
    y = rg.ones(2, requires_grad=True) * 2
    x = Variable(y, True)
    assert x.is_leaf
    with rg.no_grad():
        x.fill_(5)
    assert y.tolist() == [5.0, 5.0]


def test_a_variable_needs_a_tensor():
    with pytest.raises(TypeError, match=r"tensor.*list"):
        Variable([1.0])


def test_variable_as_a_function_points_to_tensor():
    with pytest.raises(RuntimeError, match=r"rg\.tensor"):
        rg.autograd.variable([1.0])


def test_callbacks_run_when_the_pass_is_over_and_may_queue_others():
    x, order = rg.ones(1, requires_grad=True), []

    def last():
        order.append(("last", x.grad.tolist()))

    def first():
        order.append(("first", x.grad.tolist()))
        queue(last)

    x.register_hook(lambda g: queue(first))
    x.register_post_accumulate_grad_hook(lambda t: order.append(("accumulated", t.grad.tolist())))
    (x * 3).sum().backward()
    assert order == [("accumulated", [3.0]), ("first", [3.0]), ("last", [3.0])]


def test_callbacks_belong_to_one_pass():
    x, calls = rg.ones(1, requires_grad=True), []
    with x.register_hook(lambda g: queue(lambda: calls.append(1))):
        (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert calls == [1]


def test_callbacks_wait_for_gradients_of_leaves_that_nobody_watches():
    x, seen = rg.ones(1, requires_grad=True), []
    y = x * 3
    y.register_hook(lambda g: queue(lambda: seen.append(x.grad.tolist())))
    y.sum().backward()
    assert seen == [[3.0]]


def test_a_callback_outside_a_pass_is_refused():
    with pytest.raises(RuntimeError, match="during backward"):
        queue(print)
    assert Variable._execution_engine.is_checkpoint_valid()
