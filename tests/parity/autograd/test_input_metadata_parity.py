"""`node._input_metadata`: what is known of the gradients that each kind of node receives, compared with PyTorch."""

import numpy as np

from ...functions import doubling
from .adapter import leaf, outcome, parity


def known(m, node):
    """Return shape, dtype, device and the nested flag of each gradient of a node."""
    found = node._input_metadata
    assert type(found) is tuple
    return [
        (list(one.shape), str(one.dtype).removeprefix("torch."), str(one.device), one.is_nested_tensor) for one in found
    ]


def everywhere(m, *roots):
    """Return what is known in the graph behind some tensors, a list for each node, in the order of the search."""
    nodes = [root.grad_fn for root in roots]
    found = []
    while nodes:
        node = nodes.pop()
        found.append(known(m, node))
        nodes.extend(source for source, _ in node.next_functions if source is not None)
    return found


@parity
def test_of_pointwise_operators_that_broadcast_and_promote(m):
    x = leaf(m, 1, 2)
    y = x + m.ones(3, 1)
    z = y * m.ones(2, dtype=m.float64)
    return everywhere(m, y), everywhere(m, z), everywhere(m, z.float())


@parity
def test_of_reductions_views_products_and_indices(m):
    x = m.ones(2, 3, requires_grad=True)
    outs = [x.sum(), x.sum(0), x.mean(1, keepdim=True), x.T, x[0], x[:, None], x.reshape(6), x @ m.ones(3, 4), x.exp()]
    return [everywhere(m, out) for out in outs]


@parity
def test_of_every_output_of_a_node_with_several(m):
    x = m.ones(2, 3, requires_grad=True)
    return [known(m, outs[0].grad_fn) for outs in (x.topk(2), x.unbind(), x.split(2, 1), m.linalg.qr(x[:, :2]))]


@parity
def test_of_a_tensor_that_was_written_to(m):
    x = leaf(m, 1, 2, 3).clone()
    view = x[1:]
    view.mul_(2)
    x[0] = 4
    return known(m, x.grad_fn), known(m, view.grad_fn)


@parity
def test_of_leaves(m):
    x = m.ones(2, 3, requires_grad=True)
    node = (x * 2).grad_fn.next_functions[0][0]
    return known(m, node)


@parity
def test_of_complex_tensors(m):
    x = m.ones(2, dtype=m.complex64, requires_grad=True)
    return everywhere(m, m.view_as_real(x * 2)), everywhere(m, x.abs())


@parity
def test_of_a_freed_graph(m):
    x = leaf(m, 1, 2)
    y = (x * x).exp()
    node = y.grad_fn
    y.sum().backward()
    return known(m, node), known(m, node.next_functions[0][0])


@parity
def test_of_functions_and_in_their_backward(m):
    seen = []

    class Both(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x.sum()

        @staticmethod
        def backward(ctx, g, h):
            seen.append(known(m, ctx))
            return g * 2

    out, total = Both.apply(m.ones(2, 3, requires_grad=True))
    out.sum().backward()
    return seen, known(m, out.grad_fn), known(m, total.grad_fn)


@parity
def test_of_a_function_with_one_output(m):
    return known(m, doubling(m).apply(m.ones(2, 3, requires_grad=True)).grad_fn)


@parity
def test_of_custom_operators(m):
    op = m.library.custom_op(
        f"input_metadata::{m.__name__}", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    op.register_autograd(lambda ctx, g: g)
    return known(m, op(m.ones(2, 3, requires_grad=True)).grad_fn)


@parity
def test_of_the_graph_of_a_backward_pass(m):
    x = m.ones(2, 3, requires_grad=True)
    (g,) = m.autograd.grad((x.exp() * x.sum(0)).sum(), x, create_graph=True)
    return known(m, g.grad_fn)


@parity
def test_of_saved_tensors_and_edges(m):
    x = m.ones(2, 3, requires_grad=True)
    y = x.exp()
    edge = m.autograd.graph.GradientEdge(y.grad_fn, 0)
    saved = y.grad_fn._saved_result
    return known(m, saved.grad_fn), list(known(m, edge.node)), outcome(lambda: m.autograd.backward(edge), "scalar")


@parity
def test_it_is_read_only(m):
    node = (leaf(m, 1) * 2).grad_fn
    return (
        outcome(lambda: setattr(node, "_input_metadata", ())),
        outcome(lambda: setattr(node._input_metadata[0], "shape", ())),
    )


def test_nested_tensors_are_marked():
    import retrograd as rg

    x = rg.nested.nested_tensor([np.ones((2, 3)), np.ones((4, 3))], layout=rg.jagged, requires_grad=True)
    (known_of_nested,) = (x * 2).grad_fn._input_metadata
    assert known_of_nested.is_nested_tensor
    assert known_of_nested.shape == x.shape
