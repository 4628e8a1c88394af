"""Hooks on tensors: when they run, and what they may return."""

from .adapter import data, leaf, logger, outcome, parity, two_outputs, warned


@parity
def test_a_hook_sees_the_gradient(m):
    x, log = leaf(m, 2), []
    y = x * 3
    y.register_hook(logger(log, "y"))
    x.register_hook(logger(log, "x"))
    (y * y).backward()
    return log


@parity
def test_a_hook_replaces_the_gradient(m):
    x = leaf(m, 1, 2)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    return x.grad


@parity
def test_hooks_run_in_the_order_of_registration_and_feed_each_other(m):
    x, log = leaf(m, 1), []
    x.register_hook(logger(log, "first", 2))
    x.register_hook(logger(log, "second", 5))
    x.register_hook(logger(log, "third"))
    (x * 3).backward()
    return log, x.grad


@parity
def test_the_same_hook_twice_runs_twice(m):
    x, log = leaf(m, 1), []
    hook = logger(log, "hook", 2)
    x.register_hook(hook)
    x.register_hook(hook)
    x.backward()
    return log, x.grad


@parity
def test_a_hook_runs_in_every_pass(m):
    x, log = leaf(m, 1), []
    y = x * 2
    y.register_hook(logger(log, "y"))
    y.backward(retain_graph=True)
    m.autograd.grad(y, x, retain_graph=True)
    y.backward()
    return log


@parity
def test_a_removed_hook_is_silent(m):
    x, log = leaf(m, 1), []
    keep, drop = x.register_hook(logger(log, "keep")), x.register_hook(logger(log, "drop"))
    drop.remove()
    x.backward()
    drop.remove()
    keep.remove()
    x.backward()
    return log


@parity
def test_a_handle_is_a_context_manager(m):
    x, log = leaf(m, 1), []
    with x.register_hook(logger(log, "inside")):
        x.backward()
    x.backward()
    return log


@parity
def test_a_hook_may_remove_itself(m):
    x, log = leaf(m, 1), []

    def once(g):
        log.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(logger(log, "other"))
    x.backward()
    x.backward()
    return log


@parity
def test_a_hook_that_is_removed_by_an_earlier_one_in_the_same_pass(m):
    x, log, handles = leaf(m, 1), [], []
    y = x * 2
    y.register_hook(lambda g: handles[0].remove())
    handles.append(x.register_hook(logger(log, "x")))
    y.backward()
    return log


@parity
def test_a_hook_that_removes_the_next_one_of_the_same_tensor(m):
    x, log, handles = leaf(m, 1), [], []
    x.register_hook(lambda g: handles[0].remove())
    handles.append(x.register_hook(logger(log, "second")))
    x.backward()
    first = list(log)
    x.backward()
    return first, log


@parity
def test_a_hook_that_registers_another_on_the_same_tensor(m):
    x, log = leaf(m, 1), []
    handle = x.register_hook(lambda g: x.register_hook(logger(log, "new")) and None)
    x.backward()
    first = list(log)
    handle.remove()
    x.backward()
    return first, log


@parity
def test_a_hook_sees_a_complex_gradient_as_users_know_it(m):
    z, log = m.tensor([3 + 4j], requires_grad=True), []
    y = z * (2 + 1j)
    y.register_hook(logger(log, "y"))
    z.register_hook(lambda g: g * 1j)
    y.retain_grad()
    y.abs().sum().backward()
    return [str([round(v.real, 4), round(v.imag, 4)]) for t in (z.grad, y.grad) for v in data(t)], len(log)


@parity
def test_a_hook_may_answer_with_an_expanded_tensor(m):
    x = leaf(m, 1, 2)
    x.register_hook(lambda g: m.tensor(3.0).expand(2))
    for _ in range(2):
        (x * 1).sum().backward()
    return x.grad


@parity
def test_results_of_hooks_are_not_written_to(m):
    x, answer = leaf(m, 1, 2), m.tensor([3.0, 4.0])
    x.register_hook(lambda g: answer)
    for _ in range(3):
        (x * 1).sum().backward()
    return x.grad, answer


@parity
def test_a_hook_registered_during_the_pass_on_a_later_node_runs(m):
    x, log = leaf(m, 1), []
    y = x * 2

    def register(g):
        x.register_hook(logger(log, "x"))

    y.register_hook(register)
    y.backward()
    return log


@parity
def test_a_hook_is_not_run_off_the_path(m):
    x, y, log = leaf(m, 1), leaf(m, 2), []
    y.register_hook(logger(log, "y"))
    (x * y).backward(inputs=[x])
    m.autograd.grad(x * y, x)
    return log


@parity
def test_grad_runs_the_hooks_of_a_leaf_and_captures_what_they_return(m):
    x, log = leaf(m, 1), []
    x.register_hook(logger(log, "x", 10))
    return m.autograd.grad(x * 3, x), log, x.grad


@parity
def test_grad_at_an_inner_result_captures_what_its_hooks_return(m):
    x = leaf(m, 1)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return m.autograd.grad(y * 3, y), m.autograd.grad(y * 3, x)


@parity
def test_tensors_that_do_not_require_grad_refuse_hooks(m):
    return outcome(lambda: m.ones(2).register_hook(print), "require")


@parity
def test_the_hook_of_a_tensor_of_many_outputs_is_for_that_output(m):
    x, log = leaf(m, 2), []
    first, second = two_outputs(m, x)
    second.register_hook(logger(log, "second", 10))
    first.register_hook(logger(log, "first"))
    (first * 7 + second * 11).backward()
    return sorted(log), x.grad


@parity
def test_the_hooks_of_an_output_that_gets_no_gradient_are_called_with_none(m):
    x, log = leaf(m, 2), []
    first, second = two_outputs(m, x)
    second.register_hook(logger(log, "second"))
    first.backward()
    return log, x.grad


# ------------------------------------------------------------------------------------- wrong return values, failures


@parity
def test_an_answer_that_is_no_tensor_is_refused(m):
    x = leaf(m, 1)
    x.register_hook(lambda g: 2.0)
    return outcome(x.backward, "float"), x.grad


@parity
def test_an_answer_of_another_shape_is_refused(m):
    x = leaf(m, 1, 2)
    x.register_hook(lambda g: m.ones(3))
    return outcome(x.sum().backward, "(3,)", "(2,)"), x.grad


@parity
def test_an_answer_of_a_shape_that_could_be_summed_to_that_of_the_gradient(m):
    x = leaf(m, 1, 2)
    x.register_hook(lambda g: m.ones(1, 2))
    return outcome(x.sum().backward), x.grad


@parity
def test_an_answer_of_another_dtype_is_refused(m):
    x = leaf(m, 1, 2)
    x.register_hook(lambda g: g.double())
    return outcome(x.sum().backward, "float64", "float32"), x.grad


@parity
def test_the_error_of_a_hook_comes_out_as_it_is(m):
    x = leaf(m, 1)

    def fail(g):
        raise KeyError("mine")

    x.register_hook(fail)
    return outcome((x * 2).backward, "mine"), x.grad


@parity
def test_after_the_error_of_a_hook_the_graph_may_be_walked_again_where_it_was_not_freed(m):
    x, failing = leaf(m, 3), [True]

    def fail_once(g):
        if failing.pop():
            failing.append(False)
            raise ValueError

    y = x * x
    y.register_hook(fail_once)
    return outcome(y.backward), outcome(y.backward), x.grad


@parity
def test_a_hook_without_arguments_fails_at_backward(m):
    x = leaf(m, 1)
    x.register_hook(lambda: None)
    return outcome(x.backward)


# ------------------------------------------------------------------------------------------------ detached in place


def detached_in_place(m):
    """Return a leaf, a result that had a hook when it was detached in place, another use of it, the hook, its log."""
    x, log = leaf(m, 3), []
    y = x * 2
    used = y * 7
    handle = y.register_hook(logger(log, "before", 10))
    y.detach_()
    return x, y, used, handle, log


@parity
def test_hooks_of_a_tensor_that_was_detached_in_place_run_where_it_is_a_leaf_and_in_its_former_graph(m):
    x, y, used, _, log = detached_in_place(m)
    y.requires_grad_()
    (y * 3 + used).backward()
    return log, x.grad, y.grad


@parity
def test_a_hook_registered_after_detaching_in_place_runs_in_both_graphs(m):
    x, y, used, _, log = detached_in_place(m)
    y.requires_grad_()
    y.register_hook(logger(log, "after", 5))
    (y * 3).backward()
    used.backward()
    return log, x.grad, y.grad


@parity
def test_a_hook_removed_after_detaching_in_place_runs_nowhere(m):
    x, y, used, handle, log = detached_in_place(m)
    y.requires_grad_()
    handle.remove()
    (y * 3 + used).backward()
    return log, x.grad, y.grad


@parity
def test_hooks_of_a_detached_tensor_do_not_see_the_history_of_a_later_write(m):
    x, y, _, _, log = detached_in_place(m)
    y.mul_(x)
    (y * 3).backward()
    return log, x.grad


@parity
def test_a_leaf_that_is_detached_in_place_keeps_its_hooks(m):
    x, log = leaf(m, 3), []
    x.register_hook(logger(log, "x", 10))
    x.detach_().requires_grad_()
    (x * 3).backward()
    return log, x.grad


# ----------------------------------------------------------------------------------------------- grad mode inside


@parity
def test_hooks_run_without_recording_unless_the_graph_is_created(m):
    x, log = leaf(m, 1), []
    x.register_hook(lambda g: log.append((m.is_grad_enabled(), (g * x).requires_grad)))
    (x * 2).backward()
    warned(lambda: (x * 2).backward(create_graph=True))
    return log


@parity
def test_a_hooks_answer_is_differentiated_with_create_graph(m):
    x = leaf(m, 3)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = m.autograd.grad(y, x, create_graph=True)
    return g, m.autograd.grad(g, x)


@parity
def test_the_backward_of_the_backward_runs_no_hooks_of_the_first_twice(m):
    x, log = leaf(m, 3), []
    y = x * x
    y.register_hook(logger(log, "y"))
    (g,) = m.autograd.grad(y, x, create_graph=True)
    m.autograd.grad(g, x)
    return log
