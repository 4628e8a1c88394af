"""The graph: names, edges, metadata, saved tensors, and a second backward pass."""

import gc
import weakref

import pytest

from .adapter import data, leaf, outcome, parity, two_outputs


def name_of(node):
    """Return the last part of a node's name: 'AccumulateGrad'."""
    return node.name().rpartition(":")[2]


# --------------------------------------------------------------------------------------------------- nodes and edges


@parity
def test_nodes_are_named_after_operators(m):
    x = leaf(m, 1, 2)
    made = [x + x, x - x, x * x, x / x, -x, x.exp(), x.tanh(), x.relu(), x.sigmoid(), x.reshape(2, 1).transpose(0, 1)]
    return [y.grad_fn.name() for y in made], x.grad_fn


@parity
def test_more_names(m):
    x, a = leaf(m, 1, 2), m.ones(2, 2, requires_grad=True)
    made = [x.sum(), x.mean(), x.log(), x.sqrt(), x.sin(), x.cos(), x.abs(), x.clone(), x**2, x.expand(2, 2)]
    return [y.grad_fn.name() for y in [*made, m.cat([x, x]), a.permute(1, 0), x[:1], x.unsqueeze(0), a.diagonal()]]


@parity
def test_a_node_is_one_object_as_long_as_someone_holds_it(m):
    y = leaf(m, 1) * 2
    node = y.grad_fn
    return node is y.grad_fn, node == y.grad_fn, len({node, y.grad_fn}), node == leaf(m, 1).exp().grad_fn


@parity
def test_next_functions_lead_to_the_leaf(m):
    x = leaf(m, 1, 2)
    y = (x * 2).exp()
    product, number = y.grad_fn.next_functions[0]
    end, _ = product.next_functions[0]
    return product.name(), number, name_of(end), end.variable is x, end.next_functions


@parity
def test_next_functions_have_none_for_what_needs_no_gradient(m):
    x = leaf(m, 1)
    edges = [(x * m.ones(1)).grad_fn.next_functions, (m.ones(1) * x).grad_fn.next_functions]
    return [[(node and name_of(node), number) for node, number in e] for e in edges]


@parity
def test_next_functions_name_the_output(m):
    first, second = two_outputs(m, leaf(m, 2))
    edges = (second * first).grad_fn.next_functions
    return [number for _, number in edges], edges[0][0] is edges[1][0], first.output_nr, second.output_nr


@parity
def test_next_functions_of_a_join(m):
    x, y = leaf(m, 1), leaf(m, 2)
    joined = m.cat([x, y, x * 2])
    return [name_of(node) for node, _ in joined.grad_fn.next_functions]


@parity
def test_a_leaf_used_twice_has_one_accumulator(m):
    x = leaf(m, 1)
    (a, _), (b, _) = (x * x).grad_fn.next_functions
    return a is b, a.variable is x


@parity
def test_metadata_belongs_to_the_node(m):
    y = leaf(m, 1) * 2
    y.grad_fn.metadata["note"] = [1, 2]
    return y.grad_fn.metadata, (y * 1).grad_fn.metadata, (y + 1).grad_fn.next_functions[0][0].metadata


@parity
def test_nodes_are_registered_as_nodes(m):
    x = leaf(m, 1)
    y = x * 2
    end = y.grad_fn.next_functions[0][0]
    return [isinstance(thing, m.autograd.graph.Node) for thing in (y.grad_fn, end, x)]


@parity
def test_leaves_and_results(m):
    x, c = leaf(m, 1), m.ones(1)
    made = [x, c, x * 2, c * 2, x.detach(), x[0], c.clone().requires_grad_()]
    return [(t.is_leaf, t.grad_fn is None, t.requires_grad) for t in made]


@parity
def test_no_node_without_gradients(m):
    x = leaf(m, 1)
    with m.no_grad():
        y = x * 2
    return y.grad_fn, y.is_leaf, (y * x).grad_fn.next_functions[0][0]


@parity
def test_a_node_does_not_keep_its_tensor_alive(m):
    x = leaf(m, 1)
    y = x.exp()
    node, gone = y.grad_fn, weakref.ref(y)
    del y
    return gone() is None, node.name()


@parity
def test_a_dropped_graph_goes_without_the_collector(m):
    x, freed = leaf(m, 1), []
    gc.disable()
    y = (x.exp() * x).tanh()
    weakref.finalize(y, freed.append, "result")
    del y
    gc.enable()
    return freed


@parity
def test_flags_of_results_cannot_be_taken_away(m):
    y = leaf(m, 1) * 2
    return outcome(lambda: y.requires_grad_(False), "detach"), outcome(lambda: y.requires_grad_(True).requires_grad)


@parity
def test_integers_cannot_require_gradients(m):
    return outcome(lambda: m.tensor([1, 2], requires_grad=True)), outcome(lambda: m.ones(2).long().requires_grad_())


@parity
def test_comparisons_and_integers_are_not_recorded(m):
    x = leaf(m, 1, 2)
    return (x > 1).requires_grad, x.argmax().requires_grad, x.long().requires_grad


@parity
def test_a_detached_tensor_shares_memory_and_no_graph(m):
    x = leaf(m, 1, 2)
    y = x.detach()
    y.zero_()
    return y.requires_grad, y.is_leaf, x


@parity
def test_detaching_in_place(m):
    x = leaf(m, 2)
    y = x * 3
    z = y * 5
    same = y.detach_() is y
    z.backward()
    return same, y.requires_grad, y.is_leaf, y.grad_fn, x.grad


@parity
def test_a_view_cannot_be_detached_in_place(m):
    y = leaf(m, 1, 2) * 1
    return outcome(y[:1].detach_, "view"), outcome(leaf(m, 1)[:1].detach_, "view")


@parity
def test_a_tensor_saved_as_an_input_and_then_detached_in_place_is_an_error_at_backward(m):
    x = leaf(m, 2)
    y = x * 3
    z = y * y
    y.detach_()
    return outcome(z.backward, "detach"), x.grad


@parity
def test_a_tensor_saved_as_an_output_may_be_detached_in_place(m):
    x = leaf(m, 0)
    y = x.exp()
    z = y * 3
    y.detach_()
    return outcome(z.backward), x.grad


# -------------------------------------------------------------------------------------------------- a second walk


SECOND = {
    "add": lambda x: x + x,
    "constant product": lambda x: x * 3,
    "negation": lambda x: -x,
    "square": lambda x: x * x,
    "exp": lambda x: x.exp(),
    "reshape": lambda x: x.reshape(2, 1),
    "indexing": lambda x: x[0],
    "power": lambda x: x**2,
    "quotient by constant": lambda x: x / 2,
    "quotient": lambda x: 2 / x,
    "relu": lambda x: x.relu(),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "flip": lambda x: x.flip(0),
}


@pytest.mark.parametrize("name", SECOND)
@parity
def test_a_second_walk_fails_only_where_values_were_freed(m, name):
    x = leaf(m, 0.5, 0.25)
    y = SECOND[name](x).sum()
    y.backward()
    return outcome(y.backward), x.grad


@parity
def test_the_error_of_a_second_walk_says_how_to_keep_the_graph(m):
    x = leaf(m, 1, 2)
    y = (x * x).sum()
    y.backward()
    return outcome(y.backward, "mul", "second time", "retain_graph=True")


@parity
def test_retain_graph_allows_a_second_walk(m):
    x = leaf(m, 1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return outcome(y.backward), x.grad


@parity
def test_two_results_that_share_a_freed_part(m):
    x = leaf(m, 2)
    shared = x * x
    first, second = shared * 1, shared + 1
    first.backward()
    return outcome(second.backward), x.grad


@parity
def test_two_results_that_share_a_part_that_saved_nothing(m):
    x = leaf(m, 2)
    shared = x + 1
    first, second = shared * shared, shared.exp() * 0
    first.backward()
    return outcome(second.backward), x.grad


# ------------------------------------------------------------------------------------------- what is saved


def changed_afterwards(m, make):
    """Return whether backward still works after the operand y has been written to."""
    x, y = leaf(m, 1, 2), m.tensor([3.0, 4.0])
    z = make(x, y).sum()
    y.add_(1)
    return outcome(z.backward), x.grad


SAVED = {
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "x / y": lambda x, y: x / y,
    "x ** y": lambda x, y: x**y,
    "x @ y": lambda x, y: x @ y,
    "y * x by the other": lambda x, y: y * x,
}


@pytest.mark.parametrize("name", SAVED)
@parity
def test_a_constant_operand_is_saved_only_if_needed(m, name):
    return changed_afterwards(m, SAVED[name])


@parity
def test_a_constant_numerator_is_not_saved(m):
    return changed_afterwards(m, lambda x, y: y / x)


UNSAVED = {
    "times a number": lambda y: y * 3,
    "plus": lambda y: y + y,
    "exp": lambda y: y.exp(),
    "tanh": lambda y: y.tanh(),
    "sin": lambda y: y.sin(),
    "relu": lambda y: y.relu(),
    "index": lambda y: y[m_index(y)],
    "slice then clone": lambda y: y[:1].clone(),
    "sum": lambda y: y.sum(),
    "log": lambda y: y.log(),
    "square": lambda y: y**2,
    "times a constant": lambda y: y * y.detach().clone(),
}


def m_index(y):
    """Select the first element twice, by an index tensor."""
    return y.detach().long() * 0


@pytest.mark.parametrize("name", UNSAVED)
@parity
def test_a_source_is_saved_only_if_needed(m, name):
    x = leaf(m, 1, 2)
    y = x * 1
    z = UNSAVED[name](y).sum()
    with m.no_grad():
        y.add_(1)
    return outcome(z.backward), x.grad


@parity
def test_an_output_that_is_saved_may_not_change(m):
    x = leaf(m, 1, 2)
    y, z = x.exp(), x.sin()
    with m.no_grad():
        y.add_(1)
        z.add_(1)
    return outcome(y.sum().backward, "exp"), outcome(z.sum().backward), data(x.grad)
