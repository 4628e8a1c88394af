"""Nodes as users see them: classes with PyTorch's names, calls, members, and no cost for the graph itself."""

import copy
import gc
import pickle
import weakref

import pytest

import retrograd as rg
from retrograd.autograd.function import BackwardCFunction, FunctionCtx
from retrograd.autograd.graph import Node


class Double(rg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.note = "forward"
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def leaf(*values):
    return rg.tensor(list(values), requires_grad=True)


def test_each_name_of_nodes_has_a_class():
    x = leaf(1.0, 2.0)
    assert type((x * 2).grad_fn).__name__ == "MulBackward0"
    assert type((x * 2).grad_fn) is type((x * x).grad_fn)
    assert type((x * 2).grad_fn) is not type((x + 2).grad_fn)
    assert issubclass(type(x.exp().grad_fn), Node)


def test_the_node_of_a_function_is_an_instance_of_the_class_of_its_ctx():
    node = Double.apply(leaf(1.0)).grad_fn
    assert type(node) is Double._backward_cls
    assert all(isinstance(node, cls) for cls in (Node, BackwardCFunction, FunctionCtx))
    assert not isinstance((leaf(1.0) * 2).grad_fn, BackwardCFunction)


def test_attributes_of_a_functions_node_are_those_of_its_ctx():
    y = Double.apply(leaf(1.0))
    assert y.grad_fn.note == "forward"
    y.grad_fn.note = "changed"
    gc.collect()
    assert y.grad_fn.note == "changed"
    assert y.grad_fn.saved_tensors[0].tolist() == [1.0]


def test_a_node_keeps_the_graph_alive_and_the_graph_does_not_keep_the_view():
    y = leaf(1.0).exp()
    node, record = y.grad_fn, weakref.ref(y._grad_fn)
    assert y.grad_fn is node
    view = weakref.ref(node)
    del y
    assert record() is not None
    del node
    assert (view(), record()) == (None, None)


def test_calling_a_node_returns_the_gradient_of_each_input():
    x = leaf(3.0, 4.0)
    assert [g.tolist() for g in (x * x).grad_fn(rg.ones(2))] == [[3.0, 4.0], [3.0, 4.0]]
    first, second = (x * 2).grad_fn(rg.ones(2))
    assert (first.tolist(), second) == ([2.0, 2.0], None)
    assert x.sum().grad_fn(rg.tensor(2.0)).tolist() == [2.0, 2.0]  # one input: no tuple
    assert x.unbind()[0].grad_fn(rg.ones(()), None).tolist() == [1.0, 0.0]
    assert x.exp().grad_fn(None) is None


def test_calling_a_node_runs_no_hooks_and_frees_nothing():
    x = leaf(3.0)
    y = x * x
    seen = []
    y.grad_fn.register_hook(lambda *gs: seen.append("hook"))
    y.grad_fn.register_prehook(lambda gs: seen.append("prehook"))
    y.register_hook(lambda g: seen.append("tensor"))
    y.grad_fn(rg.ones(1))
    assert seen == []
    y.backward()
    assert seen == ["tensor", "prehook", "hook"]
    with pytest.raises(RuntimeError, match="a second time"):
        y.grad_fn(rg.ones(1))


def test_calling_a_node_is_recorded_in_grad_mode_only():
    x = leaf(3.0)
    y = x * x
    recorded, _ = y.grad_fn(rg.ones(1))
    assert rg.autograd.grad(recorded, x)[0].tolist() == [1.0]
    with rg.no_grad():
        assert not y.grad_fn(rg.ones(1))[0].requires_grad


def test_complex_gradients_of_a_called_node_are_conjugates():
    z = rg.tensor([1 + 2j], requires_grad=True)
    y = z * z
    expected = rg.autograd.grad(y, z, rg.tensor([1j]), retain_graph=True)[0]
    assert sum(y.grad_fn(rg.tensor([1j]))).tolist() == expected.tolist()


def test_calling_the_node_at_a_leaf_adds_to_its_grad():
    x = leaf(1.0, 2.0)
    node = (x * 2).grad_fn.next_functions[0][0]
    assert node(rg.ones(2)) == ()
    node(rg.ones(2))
    node(None)
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda node: node(), "expected 1 arguments, got 0"),
        (lambda node: node(rg.ones(1), rg.ones(1)), "expected 1 arguments, got 2"),
        (lambda node: node(3), "argument 0 is not a Variable"),
        (lambda node: type(node)(), "cannot create 'MulBackward0' instances"),
        (lambda node: Node(), "Can't instantiate abstract class Node"),
        (pickle.dumps, "cannot pickle 'MulBackward0' object"),
        (copy.copy, "cannot pickle 'MulBackward0' object"),
        (lambda node: node._set_sequence_nr("a"), "an integer is required"),
        (lambda node: node._register_hook_dict(3), "expected a variable"),
    ],
)
def test_misuse_of_a_node_is_a_type_error(call, words):
    with pytest.raises(TypeError, match=words):
        call((leaf(1.0) * 2).grad_fn)


def test_members_of_nodes_are_read_only_and_no_others_can_be_added():
    node = (leaf(1.0) * 2).grad_fn
    for name in ("requires_grad", "next_functions", "metadata", "_saved_self", "anything"):
        with pytest.raises(AttributeError, match=name):
            setattr(node, name, 3)
    assert node.requires_grad


def test_dir_lists_what_a_node_saved():
    x = leaf(1.0)
    assert {"_saved_self", "_raw_saved_other", "next_functions"} <= {*dir((x * x).grad_fn)}
    assert [n for n in dir(x.pow(3).grad_fn) if "saved" in n] == ["_raw_saved_self", "_saved_exponent", "_saved_self"]
    assert "_saved_result" in dir(x.exp().grad_fn)
    assert "_record" not in dir((x * x).grad_fn)


def test_a_chosen_sequence_number_is_returned_and_the_order_of_the_pass_stays():
    x = leaf(2.0)
    y = x * x
    z = y * y
    y.grad_fn._set_sequence_nr(10**9)
    assert y.grad_fn._sequence_nr() == 10**9
    assert x.exp().grad_fn.next_functions[0][0]._sequence_nr() > 10**9
    z.backward()
    assert x.grad.tolist() == [32.0]


def test_hooks_of_another_tensor_can_run_at_a_node():
    x, other = leaf(2.0), leaf(1.0)
    y = x * 3
    other.register_hook(lambda g: g * 10)
    y.grad_fn._register_hook_dict(other)
    y.backward()
    assert x.grad.tolist() == [30.0]
