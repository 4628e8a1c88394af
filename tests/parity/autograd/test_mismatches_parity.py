"""Recomputations that differ from the forward pass, errors, and the options of a checkpoint."""

import pytest

from ...functions import cube
from .adapter import data, leaf, outcome, parity, warned
from .checkpoints import BOTH, block, counting_calls, run

# ---------------------------------------------------------------------------- mismatches


def changing(first, then):
    """Return a function that does something else after its first call."""
    f = counting_calls(lambda x: (first if f.calls == 1 else then)(x))
    return f


MISMATCHES = {
    "fewer": (lambda x: x.sin().exp(), lambda x: x.sin()),
    "more": (lambda x: x.sin(), lambda x: x.sin().exp().cos()),
    "another shape": (lambda x: x.sin(), lambda x: x[:1].sin()),
    "another dtype": (lambda x: x.sin(), lambda x: x.double().sin()),
    "none": (lambda x: x.sin(), lambda x: x + 1),
}


@pytest.mark.parametrize("name", MISMATCHES)
@parity
def test_a_function_that_does_another_thing_again(m, name):
    f = changing(*MISMATCHES[name])
    return outcome(run(m, f, leaf(m, 0.5, 1)).sum().backward)


@pytest.mark.parametrize("name", MISMATCHES)
@parity
def test_a_function_that_does_another_thing_again_to_the_end(m, name):
    f = changing(*MISMATCHES[name])
    return outcome(run(m, f, leaf(m, 0.5, 1), early_stop=False).sum().backward)


@pytest.mark.parametrize("name", ["another shape", "another dtype"])
@parity
def test_the_check_may_be_left_out(m, name):
    f = changing(*MISMATCHES[name])
    y = run(m, f, leaf(m, 0.5, 1), determinism_check="none").sum()
    return type(outcome(y.backward)).__name__


@parity
def test_the_messages_distinguish_the_mismatches(m):
    def message(name, *facts):
        y = run(m, changing(*MISMATCHES[name]), leaf(m, 0.5, 1), early_stop=False)
        return outcome(y.sum().backward, *facts)

    return message("fewer", "2", "1"), message("more", "1"), message("another shape", "[2]", "[1]")


@parity
def test_the_error_is_a_checkpoint_error(m):
    kind = m.utils.checkpoint.CheckpointError
    y = run(m, changing(*MISMATCHES["none"]), leaf(m, 0.5, 1)).sum()
    try:
        y.backward()
    except kind:
        return issubclass(kind, RuntimeError)


@parity
def test_an_unknown_check(m):
    return outcome(lambda: run(m, block, leaf(m, 1), determinism_check="sometimes").sum().backward())


@parity
def test_an_error_while_recomputing_is_passed_on(m):
    def fail(x):
        raise KeyError("again")

    y = run(m, changing(block, fail), leaf(m, 0.5, 1)).sum()
    return outcome(y.backward)


@parity
def test_an_error_in_the_forward_is_passed_on(m):
    def fail(x):
        raise KeyError("at once")

    return outcome(lambda: run(m, fail, leaf(m, 1)))


@parity
def test_an_input_changed_after_the_call(m):
    x = leaf(m, 0.5, 1)
    y = x * 1
    z = run(m, lambda v: v.sin(), y).sum()
    y.mul_(2)
    return outcome(z.backward), x.grad


@parity
def test_a_captured_value_changed_after_the_call(m):
    x, w = leaf(m, 0.5, 1), m.ones(2)
    z = run(m, lambda v: v * w, x).sum()
    w.mul_(5)
    return outcome(z.backward), x.grad


# ---------------------------------------------------------------------------- options, contexts


@parity
def test_the_contexts_are_entered_around_each_run(m):
    log = []

    class Noting:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            log.append(["enter", self.name])

        def __exit__(self, *error):
            log.append(["exit", self.name])

    def contexts():
        return Noting("forward"), Noting("recompute")

    y = run(m, lambda v: log.append("run") or v.sin(), leaf(m, 1), context_fn=contexts)
    log.append("backward")
    y.backward()
    return log


@parity
def test_debugging_is_not_for_the_reentrant_kind(m):
    return outcome(lambda: run(m, block, leaf(m, 1), reentrant=True, debug=True))


@parity
def test_debugging_names_the_operators(m):
    y = run(m, changing(*MISMATCHES["none"]), leaf(m, 0.5, 1), debug=True)
    return outcome(y.sum().backward, "sin", "add")


@parity
def test_without_a_choice_of_the_kind_it_runs(m):
    x = leaf(m, 0.5, 1)
    result = warned(lambda: m.utils.checkpoint.checkpoint(block, x).sum().backward())
    return result[1], x.grad


@parity
def test_the_mode_of_the_forward_is_that_of_the_recomputation(m):
    modes = []

    def f(x):
        modes.append(m.is_grad_enabled())
        return x.sin()

    run(m, f, leaf(m, 1)).backward()
    with m.no_grad():
        run(m, f, leaf(m, 1))
    return modes


@parity
def test_no_grad_inside(m):
    x = leaf(m, 0.5, 1)

    def f(v):
        with m.no_grad():
            scale = v.exp()
        return v.sin() * scale

    run(m, f, x).sum().backward()
    return x.grad


@parity
def test_hooks_inside_run_once(m):
    log, x = [], leaf(m, 0.5, 1)

    def f(v):
        y = v.sin()
        y.register_hook(lambda g: log.append(data(g)))
        return y * 2

    run(m, f, x).sum().backward()
    return log, x.grad


@parity
def test_writes_in_place_inside(m):
    x = leaf(m, 0.5, 1)

    def f(v):
        y = v.sin()
        y[0] = y[1].clone() * v[0]
        return y.exp()

    run(m, f, x).sum().backward()
    return x.grad


@parity
def test_a_function_class_inside(m):
    f, x = counting_calls(lambda v: cube(m).apply(v.sin())), leaf(m, 0.5, 1)
    run(m, f, x).sum().backward()
    return x.grad, f.calls


@BOTH
@parity
def test_backward_inside_the_function_of_a_checkpoint(m, reentrant):
    x = leaf(m, 0.5, 1)

    def f(v):
        with m.enable_grad():
            w = v.detach().requires_grad_()
            (g,) = m.autograd.grad((w**3).sum(), w)
        return v * g

    run(m, f, x, reentrant=reentrant).sum().backward()
    return x.grad
