"""Gradient edges: references to a value in the graph, as input and as output of a pass."""

import gc
import weakref

from .adapter import leaf, outcome, parity, two_outputs, warned


def edge_of(m, tensor):
    """Return the gradient edge of a tensor."""
    return m.autograd.graph.get_gradient_edge(tensor)


# --------------------------------------------------------------------------------------------------------- as input


@parity
def test_the_gradient_at_an_edge_is_that_of_its_tensor(m):
    x = leaf(m, 1, 2)
    y = x * 3
    return outcome(lambda: m.autograd.grad((y * y).sum(), edge_of(m, y)))


@parity
def test_the_edge_of_a_leaf(m):
    x = leaf(m, 1, 2)
    return outcome(lambda: m.autograd.grad((x * x).sum(), edge_of(m, x)))


@parity
def test_edges_and_tensors_mix_as_inputs(m):
    x, w = leaf(m, 1, 2), leaf(m, 3, 4)
    y = x * w
    return outcome(lambda: m.autograd.grad((y * y).sum(), [w, edge_of(m, y), edge_of(m, x)]))


@parity
def test_an_edge_of_one_of_several_outputs(m):
    first, second = two_outputs(m, leaf(m, 2))
    edges = [edge_of(m, first), edge_of(m, second)]
    return [e.output_nr for e in edges], m.autograd.grad(first * second, edges)


@parity
def test_an_unused_edge_is_an_error_or_none(m):
    x, y = leaf(m, 1), leaf(m, 2)
    edge = edge_of(m, y * 2)
    return outcome(lambda: m.autograd.grad(x * 2, [x, edge]), "index 1"), outcome(
        lambda: m.autograd.grad(x * 2, [x, edge], allow_unused=True)
    )


@parity(known="an edge knows shape and dtype, so zeros can be made; PyTorch refuses", ours="[[2.0], [0.0, 0.0]]")
def test_zeros_for_an_unused_edge(m):
    x, y = leaf(m, 1), leaf(m, 2, 3)
    return outcome(lambda: m.autograd.grad(x * 2, [x, edge_of(m, y)], materialize_grads=True))


@parity
def test_backward_with_the_edge_of_a_leaf_as_input_accumulates(m):
    x, y = leaf(m, 2), leaf(m, 3)
    (x * y).backward(inputs=[edge_of(m, x)])
    return x.grad, y.grad


@parity
def test_backward_with_the_edge_of_an_inner_result_as_input(m):
    x = leaf(m, 2)
    y = x * 3
    return outcome(lambda: (y * y).backward(inputs=[edge_of(m, y)])), x.grad


@parity
def test_an_edge_names_the_value_before_a_mutation(m):
    x = leaf(m, 2, 3)
    y = x * 1
    before = edge_of(m, y)
    y.mul_(10)
    return m.autograd.grad(y.sum(), [before, edge_of(m, y)])


@parity
def test_an_edge_before_a_write_through_a_view(m):
    x = leaf(m, 2, 3)
    y = x * 1
    before = edge_of(m, y)
    y[:1].mul_(10)
    return m.autograd.grad(y.sum(), [before, edge_of(m, y), x])


# -------------------------------------------------------------------------------------------------------- as output


@parity
def test_an_edge_as_output_needs_no_cotangent_if_it_has_one_element(m):
    x = leaf(m, 1, 2)
    edge = edge_of(m, (x * x).sum())
    return outcome(lambda: m.autograd.grad(edge, x))


@parity
def test_an_edge_as_output_with_its_cotangent(m):
    x = leaf(m, 1, 2)
    return outcome(lambda: m.autograd.grad(edge_of(m, x * x), x, m.tensor([1.0, 10.0])))


@parity
def test_an_edge_of_many_elements_needs_a_cotangent(m):
    x = leaf(m, 1, 2)
    return outcome(lambda: m.autograd.grad(edge_of(m, x * x), x), "output 0", "(2,)")


@parity
def test_a_cotangent_of_another_shape_than_the_edge_is_refused(m):
    x = leaf(m, 1, 2)
    return outcome(lambda: m.autograd.grad(edge_of(m, x * x), x, m.ones(3)), "(3,)", "(2,)")


@parity
def test_edges_and_tensors_mix_as_outputs(m):
    x = leaf(m, 2)
    return outcome(lambda: m.autograd.grad([edge_of(m, x * x), x * 3], x))


@parity
def test_backward_from_an_edge(m):
    x = leaf(m, 1, 2)
    m.autograd.backward(edge_of(m, (x * x).sum()))
    m.autograd.backward([edge_of(m, x * x)], [m.ones(2)])
    return x.grad


@parity
def test_backward_from_the_edge_of_a_leaf(m):
    x = leaf(m, 3)
    return outcome(lambda: m.autograd.backward(edge_of(m, x), m.ones(1))), x.grad


@parity
def test_a_pass_in_two_halves(m):
    x = leaf(m, 2)
    y = x.exp()
    edge = edge_of(m, y)
    (upper,) = m.autograd.grad(y * y, edge)
    return upper, m.autograd.grad(edge, x, upper)


@parity
def test_second_order_through_edges(m):
    x = leaf(m, 2)
    (g,) = m.autograd.grad(edge_of(m, x**3), edge_of(m, x), m.ones(1), create_graph=True)
    return g, m.autograd.grad(edge_of(m, g), x)


# ----------------------------------------------------------------------------------------------------------- edges


@parity
def test_an_edge_begins_with_node_and_number(m):
    y = leaf(m, 1) * 2
    edge = edge_of(m, y)
    return edge.node is y.grad_fn, edge.output_nr, edge[0] is edge.node, edge[1], isinstance(edge, tuple)


@parity
def test_the_edge_of_a_leaf_has_its_accumulator(m):
    x = leaf(m, 1)
    node = edge_of(m, x).node
    return node is (x * 2).grad_fn.next_functions[0][0], node.variable is x


@parity
def test_inputs_that_do_not_require_grad_have_no_edge(m):
    return outcome(lambda: edge_of(m, m.ones(2)), "require"), outcome(lambda: edge_of(m, leaf(m, 1).detach()))


@parity
def test_an_edge_may_be_made_by_hand(m):
    x = leaf(m, 2)
    y = x * 3
    edge = m.autograd.graph.GradientEdge(y.grad_fn, 0)
    return outcome(lambda: m.autograd.grad(y * y, edge))


@parity
def test_an_edge_lets_the_value_be_freed(m):
    x = leaf(m, 2)
    y = x * 3
    z, edge, gone = y + 1, edge_of(m, y), weakref.ref(y)
    del y
    gc.collect()
    return gone() is None, m.autograd.grad(z, edge)


@parity
def test_an_edge_keeps_the_graph_alive(m):
    x = leaf(m, 2)
    edge = edge_of(m, (x * x).exp())
    gc.collect()
    return m.autograd.grad(edge, x, m.ones(1))


@parity
def test_an_edge_keeps_the_node_of_a_function_alive(m):
    class Scale(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 5
            return x * 5

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor

    x = leaf(m, 2)
    edge = edge_of(m, Scale.apply(x))
    gc.collect()
    return m.autograd.grad(edge, x, m.ones(1)), edge.node.factor


@parity
def test_hooks_on_the_tensor_act_on_the_gradient_captured_at_its_edge(m):
    x = leaf(m, 2)
    y = x * 3
    y.register_hook(lambda g: g * 100)
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 7,))
    return outcome(lambda: m.autograd.grad(y * 1, edge_of(m, y)))


@parity
def test_edges_of_the_same_value_are_equal(m):
    x = leaf(m, 2)
    y = x * 3
    return edge_of(m, y) == edge_of(m, y), edge_of(m, y) == edge_of(m, x), edge_of(m, x) == edge_of(m, x)


@parity
def test_retained_grads_are_filled_when_the_pass_starts_at_edges(m):
    x = leaf(m, 2)
    y = x * 3
    y.retain_grad()
    m.autograd.backward(edge_of(m, y * y))
    return warned(lambda: y.grad), x.grad
