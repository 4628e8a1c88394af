"""Checkpoints give the gradients of the plain program and recompute as often as PyTorch's."""

import pytest

from ...functions import cube
from .adapter import data, leaf, outcome, parity, refused, warned
from .checkpoints import BOTH, block, counting_calls, run

# ---------------------------------------------------------------------------- gradients, recomputing


@BOTH
@parity
def test_gradients_are_those_of_the_plain_call(m, reentrant):
    x, y = leaf(m, 0.5, 1), leaf(m, 0.5, 1)
    out = run(m, block, x, reentrant=reentrant)
    out.sum().backward()
    block(y).sum().backward()
    return out, x.grad, data(x.grad) == data(y.grad), out.requires_grad, out.is_leaf


@BOTH
@parity
def test_the_function_runs_twice(m, reentrant):
    f = counting_calls(block)
    y = run(m, f, leaf(m, 0.5, 1), reentrant=reentrant)
    before = f.calls
    y.sum().backward()
    return before, f.calls


@BOTH
@parity
def test_a_chain_of_checkpoints(m, reentrant):
    f, x = counting_calls(block), leaf(m, 0.1, 0.2)
    y = x
    for _ in range(4):
        y = run(m, f, y, reentrant=reentrant) * 0.5
    y.sum().backward()
    return x.grad, f.calls


@BOTH
@parity
def test_nested_checkpoints(m, reentrant):
    inner, x = counting_calls(block), leaf(m, 0.1, 0.2)
    middle = counting_calls(lambda v: run(m, inner, v * 2, reentrant=reentrant) + v)

    def outer():  # the inner reentrant kind warns that no gradient is asked for: the outer one runs it without
        run(m, lambda v: run(m, middle, v, reentrant=reentrant).sin(), x, reentrant=reentrant).sum().backward()

    return warned(outer)[1], x.grad, reentrant or (inner.calls, middle.calls)


@BOTH
@parity
def test_without_gradients_it_is_a_plain_call(m, reentrant):
    f = counting_calls(block)
    with m.no_grad():
        y = run(m, f, leaf(m, 0.5, 1), reentrant=reentrant)
    return y.requires_grad, f.calls


@parity
def test_inputs_that_need_no_gradient(m):
    f = counting_calls(block)
    y = run(m, f, m.ones(2))
    return y.requires_grad, f.calls


@parity
def test_the_reentrant_kind_warns_if_no_input_needs_a_gradient(m):
    w = leaf(m, 3, 4)
    return warned(lambda: run(m, lambda x: x * w, m.ones(2), reentrant=True).requires_grad)


@parity
def test_a_captured_leaf_gets_its_gradient(m):
    w = leaf(m, 3, 4)
    run(m, lambda x: (x * w).sin(), m.ones(2)).sum().backward()
    return w.grad


@BOTH
@parity
def test_a_captured_leaf_and_an_input(m, reentrant):
    w, x = leaf(m, 3, 4), leaf(m, 0.5, 1)
    run(m, lambda x: (x * w).sin(), x, reentrant=reentrant).sum().backward()
    return w.grad, x.grad


@BOTH
@parity
def test_arguments_that_are_no_tensors(m, reentrant):
    x = leaf(m, 0.5, 1)
    y = run(m, lambda a, n, flag, names: a**n if flag else a, x, 3, True, ["text"], reentrant=reentrant)
    y.sum().backward()
    return y, x.grad


@parity
def test_keyword_arguments_reach_the_function(m):
    x, y = leaf(m, 0.5, 1), leaf(m, 3, 4)
    run(m, lambda a, *, b, n=1: (a * b) ** n, x, b=y, n=2).sum().backward()
    return x.grad, y.grad


@parity(known="ours takes keyword arguments in either kind", ours="[2.0]")
def test_keyword_arguments_of_the_reentrant_kind(m):
    return outcome(lambda: run(m, lambda a, b: a * b, leaf(m, 1), b=leaf(m, 2), reentrant=True))


@BOTH
@parity
def test_several_outputs(m, reentrant):
    x = leaf(m, 0.5, 1)
    a, b, n = run(m, lambda v: (v.sin(), v.exp() * 2, 3), x, reentrant=reentrant)
    (a * b).sum().backward()
    return a, b, n, x.grad


@parity
def test_outputs_in_a_structure(m):
    x = leaf(m, 0.5, 1)
    out = run(m, lambda v: {"a": v.sin(), "b": [v.exp()]}, x)
    (out["a"] * out["b"][0]).sum().backward()
    return out, x.grad


@parity
def test_inputs_in_a_structure(m):
    x, y = leaf(m, 0.5, 1), leaf(m, 3, 4)
    run(m, lambda d: (d["x"] * d["y"][0]).sin(), {"x": x, "y": [y]}).sum().backward()
    return x.grad, y.grad


@parity
def test_it_works_under_grad(m):
    f, x = counting_calls(block), leaf(m, 0.5, 1)
    y = run(m, f, x)
    return m.autograd.grad(y.sum(), x), f.calls, x.grad


@parity
def test_it_works_with_inputs_of_backward(m):
    x, w = leaf(m, 0.5, 1), leaf(m, 3, 4)
    run(m, lambda v: (v * w).sin(), x).sum().backward(inputs=[w])
    return x.grad, w.grad


@parity(known="ours lets the reentrant kind work under grad()", ours="[[1.16695, 3.20541]]")
def test_the_reentrant_kind_under_grad(m):
    x = leaf(m, 0.5, 1)
    return outcome(lambda: m.autograd.grad(run(m, block, x, reentrant=True).sum(), x))


@parity(known="ours lets the reentrant kind work with inputs", ours="[None, [1.16695, 3.20541]]")
def test_the_reentrant_kind_with_inputs_of_backward(m):
    x = leaf(m, 0.5, 1)
    y = run(m, block, x, reentrant=True)
    return outcome(lambda: y.sum().backward(inputs=[x])), x.grad


@parity
def test_two_derivatives(m):
    x, y = leaf(m, 0.5, 1), leaf(m, 0.5, 1)
    (g,) = m.autograd.grad(run(m, block, x).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(block(y).sum(), y, create_graph=True)
    (g2,), (h2,) = m.autograd.grad(g.sum(), x), m.autograd.grad(h.sum(), y)
    return g, g2, data(g2) == data(h2)


@parity
def test_a_second_backward_with_a_retained_graph(m):
    f, x = counting_calls(block), leaf(m, 0.5, 1)
    y = run(m, f, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, f.calls, outcome(y.backward)


@BOTH
@parity
def test_a_second_backward_without_a_retained_graph(m, reentrant):
    y = run(m, block, leaf(m, 0.5, 1), reentrant=reentrant).sum()
    y.backward()
    return outcome(y.backward)


@parity
def test_two_backward_passes_from_two_outputs(m):
    f, x = counting_calls(lambda v: (v.sin() * v, v.exp() * v)), leaf(m, 0.5, 1)
    a, b = run(m, f, x)
    a.sum().backward(retain_graph=True)
    b.sum().backward()
    return x.grad, f.calls


@parity
def test_two_backward_passes_of_a_group_recompute_once(m):
    f, x = counting_calls(lambda v: (v.sin() * v, v.exp() * v)), leaf(m, 0.5, 1)
    a, b = run(m, f, x)
    with m.utils.checkpoint.GraphExecGroup():
        a.sum().backward(retain_graph=True)
        b.sum().backward()
    return x.grad, f.calls


@parity
def test_the_function_of_the_reentrant_kind(m):
    f, x = counting_calls(block), leaf(m, 0.5, 1)
    m.utils.checkpoint.CheckpointFunction.apply(
        f,
        True,
        x,
    ).sum().backward()
    return x.grad, f.calls


@parity
def test_a_kind_that_is_not_chosen_warns_and_is_the_reentrant_one(m):
    w, checkpoint = leaf(m, 3, 4), m.utils.checkpoint
    return warned(lambda: checkpoint.checkpoint(lambda x: x * w, m.ones(2)).requires_grad), warned(
        lambda: checkpoint.checkpoint_sequential([lambda x: x * w, m.sin], 2, m.ones(2)).requires_grad
    )


@parity
def test_reading_a_saved_value_recomputes_each_time(m):
    f = counting_calls(lambda v: cube(m).apply(v * 1))
    y = run(m, f, leaf(m, 0, 1))
    seen = [data(y.grad_fn.saved_tensors), data(y.grad_fn.saved_tensors)]
    return seen, f.calls


# ---------------------------------------------------------------------------- early stop


def late(log):
    """Return a function with work after the last saved tensor."""

    def f(x):
        log.append("start")
        y = x.exp() * x
        log.append("saved")
        y = y + 1
        log.append("end")
        return y

    return f


@parity
def test_recomputing_stops_when_all_is_there(m):
    log = []
    run(m, late(log), leaf(m, 0.5, 1)).sum().backward()
    return log


@parity
def test_recomputing_continues_to_the_end_without_early_stop(m):
    log = []
    with m.utils.checkpoint.set_checkpoint_early_stop(False):
        y = run(m, late(log), leaf(m, 0.5, 1))
    y.sum().backward()
    return log


@parity
def test_the_choice_is_made_at_the_forward(m):
    log = []
    y = run(m, late(log), leaf(m, 0.5, 1))
    with m.utils.checkpoint.set_checkpoint_early_stop(False):
        y.sum().backward()
    return log


@parity
def test_the_setting_beats_the_argument(m):
    log = []
    with m.utils.checkpoint.set_checkpoint_early_stop(True):
        y = run(m, late(log), leaf(m, 0.5, 1), early_stop=False)
    y.sum().backward()
    run(m, late(log), leaf(m, 0.5, 1), early_stop=False).sum().backward()
    return log


@parity
def test_a_function_that_saves_nothing_is_not_run_again(m):
    f, x = counting_calls(lambda v: v + 1), leaf(m, 0.5, 1)
    run(m, f, x).sum().backward()
    return x.grad, f.calls


# ---------------------------------------------------------------------------- randomness


@BOTH
@parity
def test_random_numbers_are_the_same_again(m, reentrant):
    m.manual_seed(5)
    x = leaf(m, 1, 2, 3, 4)
    y = run(m, lambda v: v * m.rand(4), x, reentrant=reentrant)
    y.sum().backward()
    return data(x.grad * x) == data(y)


@BOTH
@parity
def test_the_state_after_backward_is_as_if_nothing_had_run(m, reentrant):
    m.manual_seed(5)
    y = run(m, lambda v: v * m.rand(4), leaf(m, 1, 2, 3, 4), reentrant=reentrant)
    m.rand(3)
    state = m.get_rng_state()
    y.sum().backward()
    after = m.rand(3)
    m.set_rng_state(state)
    return data(after) == data(m.rand(3))


@BOTH
@parity
def test_the_state_may_be_left_alone(m, reentrant):
    m.manual_seed(5)
    x = leaf(m, 1, 2, 3, 4)
    y = run(m, lambda v: v * m.rand(4), x, reentrant=reentrant, preserve_rng_state=False)
    y.sum().backward()
    return data(x.grad * x) == data(y)


@BOTH
@parity
def test_dropout_inside(m, reentrant):
    x = leaf(m, *[1] * 20)
    y = run(m, lambda v: m.nn.functional.dropout(v, 0.5, training=True), x, reentrant=reentrant)
    y.sum().backward()
    return data(y) == data(x.grad)


# ---------------------------------------------------------------------------- sequences


@BOTH
@pytest.mark.parametrize("segments", [1, 2, 3])
@parity
def test_a_sequence_in_segments(m, segments, reentrant):
    layers = [counting_calls(lambda x, k=k: (x * (k + 1)).sin()) for k in range(3)]
    x = leaf(m, 0.1, 0.2)
    m.utils.checkpoint.checkpoint_sequential(layers, segments, x, use_reentrant=reentrant).sum().backward()
    return x.grad, [f.calls for f in layers]


@parity
def test_a_sequence_of_modules(m):
    m.manual_seed(0)
    model = m.nn.Sequential(m.nn.Linear(2, 2), m.nn.Tanh(), m.nn.Linear(2, 2))
    x = leaf(m, 0.5, 1)
    m.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False).sum().backward()
    (g,) = m.autograd.grad(model(x).sum(), x)
    return data(g) == data(x.grad), [p.grad is None for p in model.parameters()]


@parity
def test_a_sequence_refuses_unknown_options(m):
    return refused(lambda: m.utils.checkpoint.checkpoint_sequential([block], 1, leaf(m, 1), use_reentrant=False, odd=1))


# ---------------------------------------------------------------------------- queries, parts


@parity
def test_whether_checkpoints_are_valid(m):
    return m.autograd._is_checkpoint_valid()


@parity
def test_detached_inputs_keep_their_flags(m):
    x, y = leaf(m, 1), m.ones(1)
    return [(t.requires_grad, t is x) for t in m.utils.checkpoint.detach_variable((x, y))]


@parity
def test_selective_checkpoints_save_what_the_policy_says(m):
    policy = m.utils.checkpoint.CheckpointPolicy
    names = [p for p in ("MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE") if hasattr(policy, p)]
    x, y = leaf(m, 0.5, 1), leaf(m, 0.5, 1)

    def choose(ctx, op, *args, **kwargs):
        return policy.MUST_SAVE

    def contexts():
        return m.utils.checkpoint.create_selective_checkpoint_contexts(choose)

    run(m, block, x, context_fn=contexts).sum().backward()
    block(y).sum().backward()
    return names, x.grad, data(x.grad) == data(y.grad)
