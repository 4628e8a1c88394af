"""Hooks on nodes and on accumulators: arguments, return values, order."""

import pytest

from .adapter import data, leaf, outcome, parity, two_outputs


def accumulator(m, tensor):
    """Return the node that adds to the .grad of a leaf."""
    return m.autograd.graph.get_gradient_edge(tensor).node


# ------------------------------------------------------------------------------------------------------------ nodes


@parity
def test_a_pre_hook_sees_the_gradients_of_the_outputs(m):
    x, log = leaf(m, 2), []
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: log.append((type(gs).__name__, data(gs))))
    (y * 5).backward()
    return log


@parity
def test_a_hook_sees_the_gradients_of_the_inputs_then_of_the_outputs(m):
    x, w, log = leaf(m, 2), leaf(m, 3), []
    y = x * w
    y.grad_fn.register_hook(lambda inputs, outputs: log.append((type(inputs).__name__, data(inputs), data(outputs))))
    (y * 5).backward()
    return log


@parity
def test_a_hook_sees_none_for_inputs_that_need_no_gradient(m):
    x, log = leaf(m, 2), []
    y = x * m.tensor([3.0])
    y.grad_fn.register_hook(lambda inputs, outputs: log.append(data(inputs)))
    y.backward()
    return log


@parity
def test_a_pre_hook_replaces_what_the_node_gets(m):
    x = leaf(m, 2)
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
    y.backward()
    return x.grad


@parity
def test_a_hook_replaces_what_the_node_gives(m):
    x, w = leaf(m, 2), leaf(m, 3)
    y = x * w
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1] * 100))
    y.backward()
    return x.grad, w.grad


@parity
def test_a_hook_may_answer_with_none_for_one_input(m):
    x, w = leaf(m, 2), leaf(m, 3)
    y = x * w
    y.grad_fn.register_hook(lambda inputs, outputs: (None, inputs[1]))
    return outcome(y.backward), x.grad, w.grad


@parity
def test_a_pre_hook_may_take_the_gradient_away(m):
    x, w = leaf(m, 2), leaf(m, 3)
    y = x * w
    y.grad_fn.register_prehook(lambda gs: (None,))
    return outcome(y.backward), x.grad, w.grad


@parity
def test_a_hook_may_take_every_gradient_away(m):
    x = leaf(m, 2)
    y = x.exp()
    y.grad_fn.register_hook(lambda i, o: (None,))
    return outcome((y * 2).backward), x.grad


@parity
def test_pre_hooks_run_in_order_and_feed_each_other(m):
    x, log = leaf(m, 2), []
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: log.append(data(gs)) or (gs[0] * 2,))
    y.grad_fn.register_prehook(lambda gs: log.append(data(gs)) or (gs[0] * 5,))
    y.backward()
    return log, x.grad


@parity
def test_hooks_run_in_order_and_feed_each_other(m):
    x, log = leaf(m, 2), []
    y = x * 3
    for factor in (2, 5):
        y.grad_fn.register_hook(lambda i, o, f=factor: log.append((data(i[0]), data(o))) or (i[0] * f, *i[1:]))
    y.backward()
    return log, x.grad


@parity
def test_tensor_hooks_run_before_pre_hooks_whatever_the_order_of_registration(m):
    x, log = leaf(m, 2), []
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: log.append("pre"))
    y.register_hook(lambda g: log.append("tensor"))
    y.grad_fn.register_hook(lambda i, o: log.append("post"))
    y.retain_grad()
    y.backward()
    return log


@parity
def test_captured_gradients_see_tensor_hooks_but_not_pre_hooks(m):
    x = leaf(m, 2)
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,))
    y.register_hook(lambda g: g * 10)
    return m.autograd.grad(y * 1, y, retain_graph=True), m.autograd.grad(y, x)


@parity(known="PyTorch forgets tensor hooks for what it captures on its way", ours="[[10.0], [3000.0]]")
def test_captured_gradients_see_tensor_hooks_also_where_the_node_runs(m):
    x = leaf(m, 2)
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,))
    y.register_hook(lambda g: g * 10)
    return m.autograd.grad(y * 1, [y, x])


@parity
def test_the_pre_hook_of_a_captured_node_runs_only_if_the_node_does(m):
    x, log = leaf(m, 2), []
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: log.append("pre"))
    y.grad_fn.register_hook(lambda i, o: log.append("post"))
    m.autograd.grad(y * 1, y, retain_graph=True)
    first = list(log)
    m.autograd.grad(y * 1, [y, x])
    return first, log


@parity
def test_a_removed_node_hook_is_silent(m):
    x, log = leaf(m, 2), []
    y = x * 3
    first = y.grad_fn.register_hook(lambda i, o: log.append("first"))
    second = y.grad_fn.register_prehook(lambda gs: log.append("second"))
    y.backward(retain_graph=True)
    first.remove()
    second.remove()
    y.backward()
    return log


@parity
def test_a_node_hook_removed_while_it_runs(m):
    x, log, handles = leaf(m, 2), [], []
    y = x * 3
    handles.append(y.grad_fn.register_hook(lambda i, o: (log.append("once"), handles[0].remove())[1]))
    y.grad_fn.register_hook(lambda i, o: log.append("always"))
    y.backward(retain_graph=True)
    y.backward()
    return log


@parity
def test_a_node_of_several_outputs_has_one_hook_call(m):
    log = []
    first, second = two_outputs(m, leaf(m, 2))
    first.grad_fn.register_prehook(lambda gs: log.append(data(gs)))
    (first * 7 + second * 11).backward()
    return first.grad_fn is second.grad_fn, log


@parity
def test_the_missing_gradient_of_an_output_is_none_in_a_pre_hook(m):
    log = []
    first, _ = two_outputs(m, leaf(m, 2))
    first.grad_fn.register_prehook(lambda gs: log.append(data(gs)))
    first.backward()
    return log


@pytest.mark.parametrize("answer", ["a number", "too many", "too few", "a list", "a tensor"])
@parity
def test_wrong_answers_of_a_pre_hook(m, answer):
    x = leaf(m, 2)
    y = x * 3
    answers = {"a number": 1.0, "too many": (m.ones(1), m.ones(1)), "too few": (), "a list": [m.ones(1)]}
    y.grad_fn.register_prehook(lambda gs: answers.get(answer, m.ones(1)))
    return outcome(y.backward), x.grad


@pytest.mark.parametrize("answer", ["a number", "too many", "too few", "another shape", "a list", "a tensor"])
@parity
def test_wrong_answers_of_a_hook(m, answer):
    x = leaf(m, 2, 3)
    y = x.exp()
    tuples = {"too many": (m.ones(2), m.ones(2)), "too few": (), "another shape": (m.ones(5),)}
    answers = {"a number": 1.0, "a list": [m.ones(2)], "a tensor": m.ones(2), **tuples}
    y.grad_fn.register_hook(lambda i, o: answers[answer])
    return outcome(y.sum().backward), x.grad


@parity
def test_the_error_of_a_node_hook_comes_out_as_it_is(m):
    x = leaf(m, 2)
    y = x * 3

    def fail(*gradients):
        raise KeyError("mine")

    y.grad_fn.register_prehook(fail)
    return outcome(y.backward, "mine"), x.grad


@parity
def test_node_hooks_run_without_recording_unless_the_graph_is_created(m):
    x, log = leaf(m, 2), []
    y = x * x
    y.grad_fn.register_prehook(lambda gs: log.append(m.is_grad_enabled()))
    m.autograd.grad(y, x, retain_graph=True)
    m.autograd.grad(y, x, create_graph=True)
    return log


@parity
def test_a_hook_on_the_node_of_a_value_before_a_change_in_place(m):
    x, log = leaf(m, 2), []
    y = x * 1
    y.grad_fn.register_hook(lambda i, o: log.append(("old", data(o))))
    y.mul_(3)
    y.grad_fn.register_hook(lambda i, o: log.append(("new", data(o))))
    y.backward()
    return log


# ----------------------------------------------------------------------------------------------------- accumulators


@parity
def test_the_order_at_a_leaf(m):
    x, log = leaf(m, 2), []
    node = accumulator(m, x)
    node.register_hook(lambda i, o: log.append("post-hook"))
    x.register_post_accumulate_grad_hook(lambda p: log.append("post-accumulate"))
    node.register_prehook(lambda gs: log.append("pre-hook"))
    x.register_hook(lambda g: log.append("tensor hook"))
    (x * 3).backward()
    return log


@parity
def test_a_pre_hook_of_an_accumulator_replaces_the_gradient(m):
    x = leaf(m, 2)
    node = accumulator(m, x)
    node.register_prehook(lambda gs: (gs[0] * 10,))
    (x * 3).backward()
    return x.grad


@parity
def test_a_post_hook_of_an_accumulator_has_no_inputs(m):
    x, log = leaf(m, 2), []
    node = accumulator(m, x)
    node.register_hook(lambda i, o: log.append((data(i), data(o), data(x.grad))))
    (x * 3).backward()
    return log


def with_all_hooks(m):
    """Return a leaf with one hook of each kind, what they log, and the node of the leaf, which must stay alive."""
    x, log = leaf(m, 2), []
    node = accumulator(m, x)
    node.register_prehook(lambda gs: log.append("pre"))
    node.register_hook(lambda i, o: log.append("post"))
    x.register_post_accumulate_grad_hook(lambda p: log.append("accumulate"))
    x.register_hook(lambda g: log.append("tensor"))
    return x, log, node


@parity
def test_grad_runs_tensor_hooks_of_a_leaf_and_none_of_its_accumulator(m):
    x, log, _ = with_all_hooks(m)
    m.autograd.grad(x * 3, x)
    return log


@parity
def test_backward_with_inputs_runs_all_hooks_of_a_leaf(m):
    x, log, _ = with_all_hooks(m)
    (x * 3).backward(inputs=[x])
    return log


@parity
def test_the_accumulator_of_a_leaf_is_one_while_someone_holds_it(m):
    x = leaf(m, 2)
    node = accumulator(m, x)
    return node is accumulator(m, x), node is (x * 3).grad_fn.next_functions[0][0]


@parity
def test_the_hooks_of_an_accumulator_that_is_held_run_for_graphs_made_later(m):
    x, log = leaf(m, 2), []
    node = accumulator(m, x)
    node.register_hook(lambda i, o: log.append(data(x.grad)))
    (x * 3).backward()
    (x * 4).backward()
    return log


# -------------------------------------------------------------------------------------------------- post-accumulate


@parity
def test_a_post_accumulate_hook_gets_the_leaf_with_its_grad(m):
    x, log = leaf(m, 2), []
    x.register_post_accumulate_grad_hook(lambda p: log.append((p is x, data(p.grad))))
    (x * 3).backward()
    (x * 4).backward()
    return log


@parity
def test_an_optimizer_step_in_a_post_accumulate_hook(m):
    x = leaf(m, 2)

    def step(p):
        with m.no_grad():
            p.sub_(p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    for _ in range(2):
        (x * x).backward()
    return x, x.grad


@parity
def test_a_leaf_is_filled_before_the_next_node_runs(m):
    x, w, log = leaf(m, 2), leaf(m, 3), []
    w.register_post_accumulate_grad_hook(lambda p: log.append("leaf filled"))
    y = x.exp()
    y.grad_fn.register_prehook(lambda gs: log.append("exp runs"))
    (y * w).backward()
    return log


@parity
def test_leaves_are_filled_in_the_order_in_which_their_gradients_are_complete(m):
    leaves, log = [leaf(m, k) for k in range(3)], []
    y = leaves[0] * 1
    for k, x in enumerate(leaves):
        x.register_post_accumulate_grad_hook(lambda p, k=k: log.append(k))
        y = y * x
    y.backward()
    return log


@parity
def test_several_post_accumulate_hooks_run_in_order(m):
    x, log = leaf(m, 2), []
    first = x.register_post_accumulate_grad_hook(lambda p: log.append(1))
    x.register_post_accumulate_grad_hook(lambda p: log.append(2))
    x.backward()
    first.remove()
    x.backward()
    return log


@parity
def test_post_accumulate_hooks_are_for_leaves(m):
    x = leaf(m, 2)
    y = x * 3
    return outcome(lambda: y.register_post_accumulate_grad_hook(print), "leaf"), outcome(
        lambda: m.ones(1).register_post_accumulate_grad_hook(print), "require"
    )


@parity
def test_a_post_accumulate_hook_must_return_none(m):
    x = leaf(m, 2)
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    return outcome(x.backward, "None")


@parity
def test_a_post_accumulate_hook_may_clear_the_grad(m):
    x = leaf(m, 2)

    def clear(p):
        p.grad = None

    x.register_post_accumulate_grad_hook(clear)
    (x * 3).backward()
    return x.grad


@parity
def test_a_post_accumulate_hook_comes_once_per_pass(m):
    x, log = leaf(m, 2), []
    x.register_post_accumulate_grad_hook(lambda p: log.append(data(p.grad)))
    (x + x * 3 + x.exp() * 0).backward()
    return log


@parity
def test_the_error_of_a_post_accumulate_hook_comes_after_the_gradient(m):
    x = leaf(m, 2)

    def fail(p):
        raise ValueError("mine")

    x.register_post_accumulate_grad_hook(fail)
    return outcome((x * 3).backward, "mine"), x.grad


# ------------------------------------------------------------------------------------------------- engine callbacks


def queue(m, callback):
    """Queue a callback that the engine calls at the end of the running pass."""
    m.autograd.Variable._execution_engine.queue_callback(callback)


@parity
def test_a_callback_runs_when_the_pass_has_ended(m):
    x, log = leaf(m, 2), []
    y = x * 3
    y.register_hook(lambda g: queue(m, lambda: log.append(("callback", data(x.grad)))))
    x.register_hook(lambda g: log.append("leaf"))
    y.backward()
    return log


@parity
def test_callbacks_run_in_the_order_of_queueing_and_may_queue_more(m):
    x, log = leaf(m, 2), []

    def first():
        log.append("first")
        queue(m, lambda: log.append("queued by the first"))

    def hook(g):
        queue(m, first)
        queue(m, lambda: log.append("second"))

    x.register_hook(hook)
    x.backward()
    return log


@parity
def test_a_callback_runs_once(m):
    x, log = leaf(m, 2), []
    handle = x.register_hook(lambda g: queue(m, lambda: log.append("callback")))
    x.backward()
    handle.remove()
    x.backward()
    return log


@parity
def test_a_callback_outside_a_pass_is_refused(m):
    return outcome(lambda: queue(m, print), "backward")


@parity
def test_the_error_of_a_callback_comes_out(m):
    x = leaf(m, 2)

    def fail():
        raise ValueError("mine")

    x.register_hook(lambda g: queue(m, fail))
    return outcome(x.backward, "mine"), x.grad


@parity
def test_a_callback_of_an_inner_pass(m):
    x, log = leaf(m, 2), []

    def inner(g):
        with m.enable_grad():
            z = leaf(m, 5) * 2
        z.register_hook(lambda h: queue(m, lambda: log.append("callback")))
        z.backward()
        log.append("inner pass over")

    (x * 1).register_hook(inner)
    y = x * 3
    y.register_hook(inner)
    y.backward()
    return log
