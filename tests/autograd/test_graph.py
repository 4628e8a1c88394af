"""The graph as users see it: nodes, edges, metadata, versions, and freed values."""

import pytest

import retrograd as rg
from retrograd.autograd import graph
from retrograd.autograd.graph import GradientEdge, Node, get_gradient_edge, increment_version


def leaf(*values):
    return rg.tensor(list(values), requires_grad=True)


class Pair(rg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2, x.sum()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2 * g + h * rg.ones_like(x)


# ------------------------------------------------------------------------------------------------------- nodes


def test_next_functions_lead_to_the_leaves_with_none_for_constants():
    x = leaf(1.0, 2.0)
    y = (x * rg.ones(2)).sum()
    assert y.grad_fn.name() == "SumBackward0"
    ((product, number),) = y.grad_fn.next_functions
    assert (product.name(), number) == ("MulBackward0", 0)
    (accumulator, _), nothing = product.next_functions
    assert accumulator.name() == "torch::autograd::AccumulateGrad"
    assert (accumulator.variable is x, accumulator.next_functions) == (True, ())
    assert nothing == (None, 0)


def test_next_functions_show_which_output_of_a_node_was_used():
    first, second = Pair.apply(leaf(1.0, 2.0))
    assert [n for _, n in (first * second).grad_fn.next_functions] == [0, 1]
    assert (first.output_nr, second.output_nr) == (0, 1)
    assert first.grad_fn is second.grad_fn


def test_the_node_at_a_leaf_is_the_same_from_every_edge():
    x = leaf(1.0)
    nodes = {n for y in (x * 2, x + 1, x.exp()) for n, _ in y.grad_fn.next_functions if n is not None}
    assert len(nodes) == 1
    assert get_gradient_edge(x).node in nodes


def test_nodes_are_instances_of_node_hashable_and_equal_to_themselves_only():
    x = leaf(1.0)
    a, b = (x * 2).grad_fn, (x * 2).grad_fn
    assert isinstance(a, Node)
    assert isinstance(get_gradient_edge(x).node, Node)
    assert not isinstance(x, Node)
    assert len({a, b, a}) == 2
    assert a == a
    assert a != b


def test_metadata_stays_with_its_node_and_is_no_other_nodes():
    x = leaf(1.0)
    y = x * 2
    z = y * 3
    y.grad_fn.metadata["note"] = 1
    z.grad_fn.next_functions[0][0].metadata["more"] = 2
    assert y.grad_fn.metadata == {"note": 1, "more": 2}
    assert z.grad_fn.metadata == {}
    accumulator = get_gradient_edge(x).node
    accumulator.metadata["leaf"] = 3
    del accumulator
    assert get_gradient_edge(x).node.metadata == {"leaf": 3}


def test_results_have_a_node_and_leaves_have_none():
    x = leaf(1.0)
    assert (x.is_leaf, x.grad_fn) == (True, None)
    assert ((x * 2).is_leaf, rg.ones(1).is_leaf) == (False, True)
    assert (x * 2).detach().grad_fn is None


def test_a_second_pass_over_freed_values_names_the_operator_and_the_way_out():
    x = leaf(2.0)
    y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"second time.*exp.*retain_graph=True"):
        y.sum().backward()
    assert x.grad.tolist() == pytest.approx([rg.exp(rg.tensor(2.0)).item()])


def test_nodes_off_the_path_to_the_inputs_are_not_run_nor_freed():
    a, b = leaf(2.0), leaf(3.0)
    left, right = a * a, b * b
    ran = []
    right.grad_fn.register_hook(lambda *_: ran.append("right"))
    (left * right).sum().backward(inputs=[a], retain_graph=True)
    assert ran == []
    assert b.grad is None
    rg.autograd.grad((left + right).sum(), a)
    right.sum().backward()
    assert b.grad.tolist() == [6.0]


def test_a_node_whose_gradient_is_requested_is_itself_not_run():
    x, ran = leaf(2.0), []
    y = x * x
    handles = [
        y.grad_fn.register_prehook(lambda _: ran.append("pre")),
        y.grad_fn.register_hook(lambda *_: ran.append(1)),
    ]
    assert rg.autograd.grad((y * 3).sum(), y)[0].tolist() == [3.0]
    assert ran == []
    for handle in handles:
        handle.remove()
    y.sum().backward()  # nothing that it saved was freed
    assert x.grad.tolist() == [4.0]


def test_later_nodes_run_first():
    x, order = leaf(1.0), []
    branches = [x * i for i in range(4)]
    for i, branch in enumerate(branches):
        branch.register_hook(lambda g, i=i: order.append(i))
    (branches[2] + branches[0] + branches[3] + branches[1]).sum().backward()
    assert order == [3, 2, 1, 0]


# ------------------------------------------------------------------------------------------------------- edges


def test_an_edge_knows_node_number_and_type():
    first, second = Pair.apply(leaf(1.0, 2.0))
    edge = get_gradient_edge(second)
    assert isinstance(edge, GradientEdge)
    assert (edge.node is first.grad_fn, edge.output_nr) == (True, 1)
    assert (edge.shape, edge.dtype, edge.device) == ((), rg.float32, "cpu")
    node, number, token = get_gradient_edge(first)
    assert (node, number, token) == (first.grad_fn, 0, None)


def test_an_edge_serves_as_input_and_as_output():
    x = leaf(2.0)
    y = x * x
    z = (y * 3).sum()
    assert rg.autograd.grad(z, get_gradient_edge(y), retain_graph=True)[0].tolist() == [3.0]
    assert rg.autograd.grad(get_gradient_edge(y), x, rg.tensor([5.0]), retain_graph=True)[0].tolist() == [20.0]
    rg.autograd.backward(get_gradient_edge(z), inputs=[get_gradient_edge(x)])
    assert x.grad.tolist() == [12.0]


def test_an_edge_names_the_value_from_before_a_write():
    x = leaf(2.0)
    y = x * 1
    before = get_gradient_edge(y)
    y.mul_(5)
    after = get_gradient_edge(y)
    assert before.node is not after.node
    old, new = rg.autograd.grad((y * 3).sum(), [before, after])
    assert (old.tolist(), new.tolist()) == ([15.0], [3.0])


def test_an_unused_edge_is_an_error_none_or_zeros_as_requested():
    x, other = leaf(1.0), rg.ones(2, 3, requires_grad=True)
    unused = get_gradient_edge(other * 1)
    with pytest.raises(RuntimeError, match=r"index 1 appears to not have been used"):
        rg.autograd.grad((x * 1).sum(), [x, unused])
    assert rg.autograd.grad((x * 1).sum(), [x, unused], allow_unused=True)[1] is None
    zeros = rg.autograd.grad((x * 1).sum(), [x, unused], materialize_grads=True)[1]
    assert (zeros.shape, zeros.dtype, zeros.sum().item()) == ((2, 3), rg.float32, 0.0)


def test_an_edge_made_by_hand_knows_its_shape():
    x = leaf(2.0)
    y = x * x
    edge = GradientEdge(y.grad_fn, 0)
    assert (edge.shape, edge.dtype, edge.device) == (y.shape, y.dtype, y.device)
    rg.autograd.backward(edge)
    assert x.grad.tolist() == [4.0]


def test_every_node_knows_shapes_and_dtypes_of_its_outputs_at_every_rank():
    for shape in [(), (3,), (2, 3), (1, 2, 1, 2), (1,) * 5, (1,) * 6, (2, 1) * 4]:
        y = rg.ones(shape, dtype=rg.float64, requires_grad=True) * 2
        known = y.grad_fn._input_metadata[0]
        assert (known.shape, known.dtype, known.device, known.is_nested_tensor) == (shape, y.dtype, "cpu", False)


def test_an_edge_needs_a_gradient():
    with pytest.raises(RuntimeError, match="does not require gradients"):
        get_gradient_edge(rg.ones(1))


# ---------------------------------------------------------------------------------------------------- versions


def test_increment_version_records_writes_outside_of_autograd():
    x, w, v = leaf(1.0), rg.tensor([3.0]), rg.ones(1)
    y = (x * w).sum()
    w.numpy()[0] = 7.0
    increment_version([w, v])
    assert (w._version, v._version) == (1, 1)
    with pytest.raises(RuntimeError, match=r"version 1; expected version 0.*test_graph.py:\d+ in test_increment"):
        y.backward()


def test_the_module_names_all_that_it_promises():
    assert all(hasattr(graph, name) for name in graph.__all__)
    assert rg.autograd.get_gradient_edge is graph.get_gradient_edge
