"""Hooks on several tensors: called with all gradients together, or with the first."""

from .adapter import data, in_thread, leaf, outcome, parity, refused, warned


def register(m, tensors, hook, **mode):
    """Register a hook on several tensors."""
    return m.autograd.graph.register_multi_grad_hook(tensors, hook, **mode)


@parity
def test_all_is_called_once_with_every_gradient(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    register(m, (x, y), lambda gs: log.append(data(gs)))
    (x * y).backward()
    return log


@parity
def test_all_follows_the_order_of_the_tensors_not_of_the_pass(m):
    x, log = leaf(m, 2), []
    y = x * 3
    register(m, [x, y], lambda gs: log.append(data(gs)))
    (y * y).backward()
    return log


@parity
def test_all_is_called_in_each_pass(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    register(m, [x, y], lambda gs: log.append(data(gs)))
    for factor in (1, 10):
        (x * y * factor).backward()
    return log


@parity
def test_all_has_none_for_what_the_pass_does_not_reach(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    register(m, [x, y], lambda gs: log.append(data(gs)))
    (x * 2).backward()
    (y * 5).backward()
    return log


@parity
def test_all_waits_only_for_what_the_inputs_need(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    register(m, [x, y], lambda gs: log.append(data(gs)))
    (x * y).backward(inputs=[x])
    return log


@parity
def test_all_at_inner_results_works_in_grad(m):
    x, log = leaf(m, 2), []
    y, z = x * 3, x * 5
    register(m, [y, z], lambda gs: log.append(data(gs)))
    m.autograd.grad(y * z, x)
    m.autograd.grad(y * z, z)
    return log


@parity(
    known="PyTorch does not support it; here a leaf under grad() is like any other tensor",
    ours="[[[3.0], [2.0]], [[[3.0], [2.0]]]]",
)
def test_all_at_a_leaf_in_grad(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    register(m, [x, y], lambda gs: log.append(data(gs)))
    return outcome(lambda: m.autograd.grad(x * y, [x, y])), log


@parity
def test_all_comes_as_soon_as_the_last_gradient_is_there(m):
    x, log = leaf(m, 2), []
    y = x * 3
    z = y * 5
    register(m, [y, z], lambda gs: log.append("both"))
    x.register_hook(lambda g: log.append("leaf"))
    (z * 1).backward()
    return log


@parity
def test_any_is_called_once_with_the_first_gradient(m):
    x, log = leaf(m, 2), []
    y = x * 3
    z = y * 5
    register(m, [x, y, z], lambda g: log.append(data(g)), mode="any")
    z.backward(m.tensor([7.0]))
    return log


@parity
def test_any_is_called_in_each_pass(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    register(m, [x, y], lambda g: log.append(data(g)), mode="any")
    (x * 2).backward()
    (y * 5).backward()
    return log


@parity
def test_a_bad_mode_is_a_value_error(m):
    return outcome(lambda: register(m, [leaf(m, 1)], print, mode="some"), "some")


@parity
def test_every_tensor_must_need_a_gradient(m):
    return refused(lambda: register(m, [leaf(m, 2), m.ones(1)], print), "require")


@parity
def test_removing_the_handle_silences_it(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    handle = register(m, [x, y], lambda gs: log.append("hook"))
    (x * y).backward()
    handle.remove()
    (x * y).backward()
    return log


@parity
def test_the_handle_is_a_context_manager(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    with register(m, [x, y], lambda g: log.append("hook"), mode="any"):
        (x * y).backward()
    (x * y).backward()
    return log


@parity
def test_the_answer_is_ignored(m):
    x, y = leaf(m, 2), leaf(m, 3)
    register(m, [x, y], lambda gs: [g * 10 for g in gs])
    (x * y).backward()
    return x.grad, y.grad


@parity
def test_the_state_is_that_of_one_pass_also_after_a_failure(m):
    x, log, failing = leaf(m, 2), [], [True]
    y = x * 3

    def fail(g):
        if failing.pop():
            failing.append(False)
            raise ValueError

    register(m, [x, y], lambda gs: log.append(data(gs)))
    y.register_hook(fail)
    first = outcome(lambda: (y * 5).backward())
    (y * 7).backward()
    return first, log


@parity
def test_the_state_is_that_of_one_pass_also_across_threads(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    register(m, [x, y], lambda gs: log.append(data(gs)))
    in_thread((x * 2).backward)
    in_thread((x * y).backward)
    return log


@parity
def test_an_inner_pass_has_a_state_of_its_own(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    register(m, [x, y], lambda gs: log.append(data(gs)))
    z = x * 1

    def inner(g):
        with m.enable_grad():
            w = x * y * 100
        w.backward()

    z.register_hook(inner)
    (z * y).backward()
    return log


@parity
def test_all_with_gradients_that_have_a_history(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    register(m, [x, y], lambda gs: log.append([g.requires_grad for g in gs]))
    warned(lambda: (x * y).backward(create_graph=True))
    return log


@parity
def test_one_tensor_and_none_at_all(m):
    x, log = leaf(m, 2), []
    register(m, [x], lambda gs: log.append(data(gs)))
    register(m, [], lambda gs: log.append("never"))
    (x * 3).backward()
    return log


@parity
def test_the_same_tensor_twice(m):
    x, log = leaf(m, 2), []
    register(m, [x, x], lambda gs: log.append(data(gs)))
    (x * 3).backward()
    return log
