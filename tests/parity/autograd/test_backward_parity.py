"""backward(): roots, cotangents, inputs, freed graphs, refused calls and their messages."""

import pytest

from .adapter import data, leaf, outcome, parity, warned

# --------------------------------------------------------------------------------------------- roots and cotangents


@parity
def test_a_leaf_is_its_own_root(m):
    x = leaf(m, 3)
    x.backward()
    x.sum().backward()
    return x.grad


@parity
def test_many_elements_need_a_cotangent(m):
    return outcome((leaf(m, 1, 2) * 2).backward, "output 0", "(2,)")


@parity
def test_one_element_of_any_shape_needs_none(m):
    x = leaf(m, 2)
    (x * x).reshape(1, 1).backward()
    return x.grad


@parity
def test_a_root_without_elements_needs_a_cotangent(m):
    x = leaf(m)
    return outcome((x * 2).backward, "(0,)"), outcome(lambda: (x * 2).backward(m.ones(0))), x.grad


@parity
def test_a_cotangent_of_another_shape_is_refused(m):
    return outcome(lambda: (leaf(m, 1, 2) * 2).backward(m.ones(3)), "grad_output[0]", "(3,)", "(2,)")


@parity
def test_a_cotangent_does_not_broadcast(m):
    y = leaf(m, 1, 2) * 2
    shapes = [(1,), (), (1, 2), (2, 1)]
    return [outcome(lambda s=s: y.backward(m.ones(*s) if s else m.tensor(1.0)), "(2,)") for s in shapes]


@parity
def test_a_real_cotangent_of_a_complex_root_is_refused(m):
    z = m.tensor([1 + 2j], requires_grad=True)
    return outcome(lambda: (z * 2).backward(m.ones(1)), "grad_output[0]", "float32", "complex64")


@parity
def test_a_complex_cotangent_of_a_real_root_is_refused(m):
    g = m.tensor([1 + 2j])
    return outcome(lambda: (leaf(m, 1) * 2).backward(g), "grad_output[0]", "complex64", "float32")


@parity
def test_a_complex_root_needs_a_cotangent(m):
    z = m.tensor([1 + 2j], requires_grad=True)
    return outcome((z * 2).backward, "output 0", "complex64"), outcome((z * z.conj()).backward, "complex64")


@parity
def test_the_position_of_an_unfit_cotangent_is_named(m):
    x = leaf(m, 1, 2)
    roots, wrong = [x * 2, x * 3], [m.ones(2), m.ones(4)]
    return outcome(lambda: m.autograd.backward(roots, wrong), "grad_output[1]", "(4,)", "(2,)"), x.grad


@parity
def test_a_cotangent_is_a_tensor_or_none(m):
    x = leaf(m, 1)
    return outcome(lambda: m.autograd.backward([x * 2], [2.0]), "float")


@parity
def test_a_root_that_needs_no_gradient_is_refused(m):
    return outcome(m.tensor([1.0]).backward, "element 0"), outcome(lambda: m.ones(2).backward(m.ones(2)), "element 0")


@parity
def test_a_root_made_under_no_grad_is_refused(m):
    x = leaf(m, 1)
    with m.no_grad():
        y = x * 2
    return outcome(y.backward, "no_grad"), outcome((x.detach() * 2).backward, "detach")


@parity
def test_a_root_that_needs_no_gradient_is_refused_among_others_too(m):
    x = leaf(m, 1, 2)
    return outcome(lambda: m.autograd.backward([(x * 2).sum(), m.ones(3)], [None, None])), x.grad


@parity
def test_several_roots_are_summed(m):
    x = leaf(m, 1, 2)
    m.autograd.backward([(x * 2).sum(), x * x], [None, m.tensor([1.0, 10.0])])
    return x.grad


@parity
def test_the_same_root_twice_counts_twice(m):
    x = leaf(m, 1, 2)
    y = (x * x).sum()
    m.autograd.backward([y, y])
    return x.grad


@parity
def test_a_root_that_leads_to_another_root(m):
    x = leaf(m, 3)
    y = x * x
    m.autograd.backward([y, y * 2])
    return x.grad


@parity
def test_a_leaf_among_the_roots(m):
    x = leaf(m, 3)
    m.autograd.backward([x, x * x])
    return x.grad


@parity
def test_too_few_cotangents_are_refused(m):
    x = leaf(m, 1)
    return outcome(lambda: m.autograd.backward([x * 2, x * 3], [None])), x.grad


@parity(known="PyTorch drops the last without a word", ours="[RuntimeError, None]")
def test_too_many_cotangents_are_refused(m):
    x = leaf(m, 1)
    return outcome(lambda: m.autograd.backward([x * 2, x * 3], [None] * 3)), x.grad


@parity
def test_a_tuple_and_a_bare_tensor_are_fine_as_roots(m):
    x = leaf(m, 1, 2)
    m.autograd.backward((x.sum(),))
    m.autograd.backward(x * 2, m.ones(2))
    return x.grad


@parity
def test_backward_returns_none(m):
    x = leaf(m, 1)
    return x.backward(), m.autograd.backward(x)


@parity
def test_the_cotangent_passed_in_is_left_alone(m):
    x, g = leaf(m, 1, 2), m.tensor([1.0, 1.0])
    for _ in range(2):
        (x + 0).backward(g)
    return data([g, x.grad]), x.grad is g


@parity
def test_a_cotangent_may_be_expanded(m):
    x, g = leaf(m, 1, 2), m.tensor(3.0).expand(2)
    (x + 0).backward(g)
    (x + 0).backward(g)
    return x.grad, g


@parity
def test_a_cotangent_of_another_precision_is_converted(m):
    x = leaf(m, 1, 2)
    (x * 2).backward(m.ones(2, dtype=m.float64))
    return x.grad, x.grad.dtype


# ---------------------------------------------------------------------------------------------- names of arguments


@parity
def test_the_old_name_of_the_cotangents_warns(m):
    x = leaf(m, 1, 2)
    return warned(lambda: m.autograd.backward(x * 2, grad_variables=m.ones(2))), x.grad


@parity
def test_both_names_of_the_cotangents_are_refused(m):
    x, g = leaf(m, 1, 2), m.ones(2)
    return warned(lambda: m.autograd.backward(x * 2, g, grad_variables=g))


@parity
def test_create_graph_warns_in_backward_and_not_in_grad(m):
    x = leaf(m, 1)
    first = warned(lambda: (x * x).backward(create_graph=True))
    return first, warned(lambda: m.autograd.grad(x * x, x, create_graph=True))


@parity
def test_create_graph_keeps_the_graph(m):
    x = leaf(m, 3)
    y = x * x
    warned(lambda: y.backward(create_graph=True))
    y.backward()
    return outcome(y.backward), x.grad


@parity
def test_retain_graph_false_with_create_graph_frees(m):
    x = leaf(m, 3)
    y = x * x
    warned(lambda: y.backward(create_graph=True, retain_graph=False))
    return outcome(y.backward), x.grad


@parity
def test_create_graph_makes_a_gradient_with_a_history(m):
    x = leaf(m, 3)
    warned(lambda: (x**3).backward(create_graph=True))
    g = x.grad
    (second,) = m.autograd.grad(g, x)
    return g.requires_grad, g.is_leaf, second


# ----------------------------------------------------------------------------------------------------------- inputs


@parity
def test_inputs_leave_other_leaves_alone(m):
    x, y = leaf(m, 1, 2), leaf(m, 3, 4)
    (x * y).sum().backward(inputs=[x])
    return x.grad, y.grad


@parity
def test_a_bare_tensor_is_fine_as_inputs(m):
    x, y = leaf(m, 1, 2), leaf(m, 3, 4)
    (x * y).sum().backward(inputs=x)
    return x.grad, y.grad


@pytest.mark.parametrize("empty", [[], ()])
@parity
def test_empty_inputs_are_an_error(m, empty):
    x = leaf(m, 1)
    return outcome(lambda: x.backward(inputs=empty), "inputs"), x.grad


@parity
def test_unreachable_inputs_stay_without(m):
    x, y = leaf(m, 1, 2), leaf(m, 3, 4)
    return outcome(lambda: (x * 2).sum().backward(inputs=[x, y])), data([x.grad, y.grad])


@parity
def test_an_inner_result_as_input_gets_a_grad(m):
    x = leaf(m, 2)
    y = x * 3
    (y * y).backward(inputs=[y])
    return warned(lambda: y.grad)[1], x.grad


@parity
def test_an_inner_result_and_its_leaf_as_inputs(m):
    x = leaf(m, 2)
    y = x * 3
    (y * y).backward(inputs=[x, y])
    return warned(lambda: y.grad)[1], x.grad


@parity
def test_inputs_that_need_no_gradient_are_refused(m):
    x = leaf(m, 2)
    return outcome(lambda: (x * 2).backward(inputs=[x, m.ones(1)]), "inputs[1]"), x.grad


@parity
def test_nodes_off_the_path_to_the_inputs_do_not_run(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    side = y.exp()
    side.register_hook(lambda g: log.append("side"))
    (x * side).backward(inputs=[x])
    return log, x.grad, y.grad


@parity
def test_values_off_the_path_to_the_inputs_are_kept(m):
    x, y = leaf(m, 2), leaf(m, 3)
    side = y.exp()
    z = x * side
    z.backward(inputs=[x])
    return outcome(side.backward), outcome(z.backward), y.grad


@parity
def test_the_method_takes_inputs_by_name_or_as_the_fourth(m):
    x, y = leaf(m, 2), leaf(m, 3)
    (x * y).backward(None, None, False, [y])
    return x.grad, y.grad


@parity
def test_the_grad_of_an_inner_result_warns_unless_it_is_kept(m):
    x = leaf(m, 2)
    y, z = x * 3, x * 4
    z.retain_grad()
    (y + z).backward()
    return warned(lambda: y.grad), warned(lambda: z.grad), warned(lambda: x.grad)


# ---------------------------------------------------------------------------------------------------------- failure


@parity
def test_a_refused_backward_changes_nothing(m):
    x = leaf(m, 1, 2)
    y = x * x
    return outcome(lambda: y.backward(m.ones(3))), x.grad, outcome(lambda: y.backward(m.ones(2))), x.grad


@parity
def test_a_very_deep_chain_is_walked_and_freed(m):
    x = leaf(m, 1)
    y = x
    for _ in range(150_000):
        y = y + 1
    y.backward()
    del y
    return x.grad


@parity
def test_a_backward_within_a_backward_ends_first(m):
    x, log = leaf(m, 2), []

    def inner(g):
        with m.enable_grad():
            z = leaf(m, 5)
            z.register_hook(lambda h: log.append(("inner", data(h))))
            (z * z).backward()
        log.append("outer")

    y = x * 3
    y.register_hook(inner)
    x.register_hook(lambda g: log.append("leaf"))
    y.backward()
    return log, x.grad


@parity
def test_backward_within_backward_fifty_deep(m):
    x, log = leaf(m, 2), []

    def nested(depth):
        with m.enable_grad():
            y = x * 1
        if depth:
            y.register_hook(lambda g: nested(depth - 1))
        log.append(depth)
        y.backward()

    nested(50)
    return len(log), x.grad


@parity
def test_a_backward_within_a_backward_on_the_same_leaf(m):
    x = leaf(m, 2)

    def again(g):
        with m.enable_grad():
            (x * 10).backward()

    y = x * 3
    y.register_hook(again)
    (y + x).backward()
    return x.grad


@parity
def test_the_error_of_a_backward_within_a_backward_comes_out(m):
    x = leaf(m, 1, 2)
    y = x * 3
    y.register_hook(lambda g: (leaf(m, 1, 2) * 2).backward())
    return outcome(y.sum().backward), x.grad
