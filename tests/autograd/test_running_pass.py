"""Questions that hooks ask about the running backward pass, by PyTorch's private names."""

import pytest

import retrograd as rg
from retrograd import _C


def leaf(value=1.0):
    return rg.tensor(value, requires_grad=True)


def at_leaf(x):
    return (x * 1).grad_fn.next_functions[0][0]


def test_the_order_of_execution_is_known_from_the_first_hook_on():
    a, b = leaf(), leaf(2.0)
    c, d = b.sin(), a.cos()
    out = c * d
    predicted, ran = [], []
    for x in (c, d, out):
        x.register_hook(lambda g, fn=x.grad_fn: ran.append(fn))
    for x, fn in ((a, at_leaf(a)), (b, at_leaf(b))):
        x.register_hook(lambda g, fn=fn: ran.append(fn))
    out.register_hook(lambda g: predicted.append(_C._current_graph_task_execution_order()))
    with rg.autograd.set_multithreading_enabled(False):
        out.backward()
    assert predicted == [ran]
    assert [node.name().split(":")[-1] for node in ran] == [
        "MulBackward0", "CosBackward0", "AccumulateGrad", "SinBackward0", "AccumulateGrad",
    ]  # fmt: skip


def test_the_order_leaves_out_what_the_inputs_do_not_need():
    a, b = leaf(), leaf()
    out = (a * b).sin()
    found = []
    out.register_hook(lambda g: found.append([n.name() for n in _C._current_graph_task_execution_order()]))
    with rg.autograd.set_multithreading_enabled(False):
        rg.autograd.grad(out, a)
    assert found == [["SinBackward0", "MulBackward0", "torch::autograd::AccumulateGrad"]]


def test_the_order_is_refused_outside_of_passes_and_with_multithreading():
    with pytest.raises(RuntimeError, match="only be called during the backward pass"):
        _C._current_graph_task_execution_order()
    x = leaf().sin()
    x.register_hook(lambda g: _C._current_graph_task_execution_order())
    with pytest.raises(RuntimeError, match="with multithreading disabled"):
        x.backward()


def test_a_hook_sees_which_nodes_the_pass_executes():
    a, b = leaf(), leaf()
    product = a * b
    other, out = product.cos(), product.sin()
    nodes = [at_leaf(a), product.grad_fn, out.grad_fn, at_leaf(b), other.grad_fn]
    found = []
    out.register_hook(lambda g: found.append([_C._will_engine_execute_node(n) for n in nodes]))
    out.backward(inputs=a, retain_graph=True)
    out.backward(retain_graph=True)
    assert found == [[True, True, True, False, False], [True, True, True, True, False]]
    out.register_hook(lambda g: _C._will_engine_execute_node(nodes[0]))
    with pytest.raises(RuntimeError, match=r"currently running autograd\.grad\(\)"):
        rg.autograd.grad(out, a)
    with pytest.raises(RuntimeError, match="during the backward pass"):
        _C._will_engine_execute_node(nodes[1])
    with pytest.raises(RuntimeError, match="expects an grad_fn, but got Tensor"):
        _C._will_engine_execute_node(a)


def test_passes_are_numbered():
    x, found = leaf().sin(), []
    x.register_hook(lambda g: found.append(_C._current_graph_task_id()))
    for _ in range(3):
        x.backward(retain_graph=True)
    assert [number - found[0] for number in found] == [0, 1, 2]
    assert _C._current_graph_task_id() == -1


def test_an_undefined_gradient_lets_nodes_run_without_one():
    seen = []

    class Identity(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.append(g)
            return g

    _C._functions.UndefinedGrad()(Identity.apply(leaf())).backward()
    assert seen == [None]


def test_a_delayed_error_is_raised_by_the_backward_pass_that_reaches_it():
    x, y = leaf(), leaf()
    delayed = _C._functions.DelayedError("later", 1)(y)
    assert rg.autograd.grad(x * delayed, x)[0].item() == 1.0
    with pytest.raises(RuntimeError, match="later"):
        (x * delayed).backward()
    assert issubclass(_C._functions.DelayedError, rg.autograd.graph.Node)


def test_version_counters_are_set():
    x = rg.ones(2).add_(1)
    _C._autograd._unsafe_set_version_counter((x,), (5,))
    assert x._version == 5
    with pytest.raises(RuntimeError, match="Cannot set a version_counter to a value below 0"):
        _C._autograd._unsafe_set_version_counter((x,), (-1,))


def test_a_weak_reference_to_a_tensor_expires():
    x = rg.ones(2)
    reference = _C._WeakTensorRef(x)
    assert not reference.expired()
    del x
    assert reference.expired()
