"""Backward passes inside backward passes, nested deeper than a thread's stack allows."""

import threading

import pytest

import retrograd as rg
from retrograd.core import current, reentrant


class Deep(rg.autograd.Function):
    """The identity, whose backward runs another backward pass, recursively; `visit` is called in each."""

    @staticmethod
    def forward(ctx, x, n, visit):
        ctx.n, ctx.visit = n, visit
        return x * 1

    @staticmethod
    def backward(ctx, g):
        ctx.visit(ctx.n)
        if not ctx.n:
            return g, None, None
        with rg.enable_grad():
            x = rg.tensor(1.0, requires_grad=True)
            Deep.apply(x, ctx.n - 1, ctx.visit).backward()
        return g + x.grad, None, None


def run(n, visit=lambda n: None):
    x = rg.tensor(1.0, requires_grad=True)
    Deep.apply(x, n, visit).backward()
    return x.grad.item()


@pytest.mark.parametrize("n", [1, 23, 24, 25, 49, 2000])
def test_passes_nest_2000_deep(n):
    assert run(n) == n + 1


def test_they_take_the_state_of_their_thread_along():
    seen, values = set(), {"grad": set(), "saving": set(), "kept": set(), "generator": set()}

    def visit(n):
        seen.add(threading.get_ident())
        values["grad"].add(rg.is_grad_enabled())
        values["saving"].add(current().saving is not None)
        values["kept"].add(current().multithreading)
        with rg.autograd.graph.disable_saved_tensors_hooks("no") if n < 0 else rg.no_grad():
            values["generator"].add(rg.initial_seed())

    with (
        rg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        rg.autograd.set_multithreading_enabled(False),
    ):
        run(100, visit)
    assert len(seen) == 5
    assert values["grad"] == {False}
    assert values["saving"] == {True}
    assert values["kept"] == {False}


def test_an_error_far_below_comes_up_and_leaves_the_state_as_it_was():
    def visit(n):
        if not n:
            raise KeyError("deep")

    with pytest.raises(KeyError, match="deep"):
        run(200, visit)
    state = current()
    assert (state.level, state.grad_enabled, state.running, state.saving, state.depth) == (None, True, None, None, 0)
    assert run(100) == 101


def test_endless_passes_are_a_recursion_error(monkeypatch):
    monkeypatch.setattr(reentrant, "LIMIT", 100)
    with pytest.raises(RecursionError, match="100 passes have started inside of each other"):
        run(200)
    assert current().depth == 0
    assert run(50) == 51


def test_an_interrupt_waits_for_the_pass_that_it_can_not_stop():
    interrupted = []

    class Waiting(threading.Thread):
        def join(self, timeout=None):
            if not interrupted:
                interrupted.append(1)
                done.set()  # not before: a thread that has ended is not waited for
                raise KeyboardInterrupt
            super().join(timeout)

    done = threading.Event()
    thread = Waiting(target=done.wait)
    thread.start()
    assert isinstance(reentrant._wait(thread), KeyboardInterrupt)
    assert not thread.is_alive()
