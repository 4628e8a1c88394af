"""Threads and tasks: no gradient is lost, and modes, hooks and backward passes of one do not affect another."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import retrograd as rg
from retrograd.autograd.graph import register_multi_grad_hook, saved_tensors_hooks

THREADS, ROUNDS = 8, 125  # 1,000 rounds in all


def leaf(*values):
    return rg.tensor(list(values), requires_grad=True)


def in_threads(work, count=THREADS):
    """Run `work(number)` in several threads that start together; return their results, or raise the first error."""
    together = threading.Barrier(count)

    def start(number):
        together.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))


def in_a_thread(work):
    return in_threads(lambda _: work(), 1)[0]


# ---------------------------------------------------------------------------------------------- shared leaves


@pytest.mark.parametrize("watched", [False, True])
def test_graphs_over_shared_leaves_from_eight_threads_lose_no_gradient(watched):
    a, b, seen = leaf(1.0, 2.0), leaf(3.0, 5.0), []
    if watched:
        a.register_hook(lambda g: seen.append(1))

    def work(number):
        for step in range(ROUNDS):
            y = (a * b).view(2, 1) * 2
            y[:1].mul_(3)
            loss = y.sum() + (a * float(number)).sum() + rg.relu(b).sum()
            loss.backward(inputs=[a, b] if step % 2 else None)

    in_threads(work)
    rounds = THREADS * ROUNDS
    numbers = ROUNDS * sum(range(THREADS))
    assert a.grad.tolist() == [6 * 3.0 * rounds + numbers, 2 * 5.0 * rounds + numbers]
    assert b.grad.tolist() == [(6 * 1.0 + 1) * rounds, (2 * 2.0 + 1) * rounds]
    assert len(seen) == (rounds if watched else 0)


def test_threads_that_walk_one_retained_graph_lose_no_gradient():
    x = leaf(2.0)
    y = (x.exp() * x).sum()
    (once,) = rg.autograd.grad(y, x, retain_graph=True)

    def work(_):
        for _ in range(20):
            y.backward(retain_graph=True)
            assert rg.autograd.grad(y, x, retain_graph=True)[0].tolist() == once.tolist()

    in_threads(work)
    assert x.grad.tolist() == pytest.approx([once.item() * 20 * THREADS], rel=1e-4)


def test_a_pass_started_in_another_thread_than_its_graph_is_the_same():
    x = leaf(3.0)
    y = (x * x).sum()
    in_a_thread(y.backward)
    assert x.grad.tolist() == [6.0]


def test_an_error_in_one_thread_is_raised_there_and_leaves_the_others_alone():
    x = leaf(1.0)

    def work(number):
        y = x * 1
        if number == 3:
            y.register_hook(lambda g: 1 / 0)
        for _ in range(20):
            try:
                (y * 2).sum().backward(retain_graph=True)
            except ZeroDivisionError:
                return "failed"
        return "done"

    assert in_threads(work) == ["failed" if n == 3 else "done" for n in range(THREADS)]
    assert x.grad.tolist() == [2.0 * 20 * (THREADS - 1)]


# -------------------------------------------------------------------------------------- nothing leaks between


@pytest.mark.parametrize(
    ("mode", "reads", "outside"),
    [
        (rg.no_grad, rg.is_grad_enabled, True),
        (rg.inference_mode, rg.is_inference_mode_enabled, False),
        (rg.inference_mode, rg.is_grad_enabled, True),
        (lambda: rg.autograd.set_multithreading_enabled(False), rg.autograd.is_multithreading_enabled, True),
    ],
)
def test_modes_hold_in_their_own_thread_only(mode, reads, outside):
    with mode():
        assert reads() is not outside
        assert in_a_thread(reads) is outside

    entered, done = threading.Event(), threading.Event()

    def other():
        with mode():
            entered.set()
            done.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(60)
    try:
        assert reads() is outside
    finally:
        done.set()
        thread.join()


def test_hooks_of_saved_tensors_pack_what_their_own_thread_saves():
    def work(number):
        packed, x = [], leaf(float(number))
        for _ in range(50):
            if number % 2:
                with saved_tensors_hooks(lambda t: packed.append(t.item()) or t, lambda t: t):
                    x.exp()
            x.exp()
        return packed

    for number, packed in enumerate(in_threads(work)):
        expected = rg.exp(rg.tensor(float(number))).item()
        assert packed == [expected] * (50 if number % 2 else 0)


def test_allowed_mutation_and_disabled_hooks_concern_their_own_thread():
    with rg.autograd.graph.allow_mutation_on_saved_tensors(), pytest.raises(RuntimeError, match="inplace"):
        in_a_thread(write_to_a_saved_value)

    def enter():
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            return True

    with rg.autograd.graph.disable_saved_tensors_hooks("here only"):
        assert in_a_thread(enter)


def write_to_a_saved_value():
    x, w = leaf(1.0), rg.ones(1)
    y = x * w
    w.add_(1)
    y.sum().backward()


def test_a_hook_runs_on_the_thread_that_runs_the_pass():
    x, names = leaf(1.0), []
    x.register_hook(lambda g: names.append(threading.current_thread().name))
    y = (x * 2).sum()
    thread = threading.Thread(target=y.backward, name="another")
    thread.start()
    thread.join()
    assert names == ["another"]


def test_a_multi_grad_hook_separates_the_passes_of_threads():
    a, b, seen = leaf(1.0), leaf(1.0), []
    register_multi_grad_hook((a, b), lambda gs: seen.append(tuple(g.item() for g in gs)))

    def work(number):
        for _ in range(20):
            (a * float(number) + b * float(number)).sum().backward()

    in_threads(work)
    assert sorted(seen) == sorted((float(n), float(n)) for n in range(THREADS) for _ in range(20))


# ------------------------------------------------------------------------------------ generators and coroutines


def modes():
    return rg.is_grad_enabled(), rg.is_inference_mode_enabled()


def test_a_decorated_generator_is_in_its_mode_while_it_runs_and_nobody_else_is():
    @rg.no_grad()
    def generator():
        received = yield modes()
        try:
            yield modes(), received
        except KeyError:
            yield "thrown", modes()
        finally:
            seen.append(modes())

    seen, g = [], generator()
    assert next(g) == (False, False)
    assert modes() == (True, False)
    with rg.inference_mode():
        assert g.send("hello") == ((False, True), "hello")
    assert g.throw(KeyError) == ("thrown", (False, False))
    g.close()
    assert seen == [(False, False)]
    assert modes() == (True, False)


def test_a_generator_returns_and_raises_through_its_decorator():
    @rg.enable_grad()
    def generator():
        yield 1
        return "result"

    def outer():
        return (yield from generator())

    g = outer()
    assert next(g) == 1
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == "result"


@pytest.mark.parametrize("mode", [rg.no_grad(), rg.inference_mode(), rg.set_grad_enabled(True)])
def test_decorated_coroutines_keep_their_mode_and_lend_it_to_no_other_task(mode):
    async def plain(results):
        for _ in range(5):
            results.append(modes())
            await asyncio.sleep(0)

    @mode
    async def decorated(results):
        for _ in range(5):
            results.append(modes())
            await asyncio.sleep(0)
        return len(results)

    async def main():
        inside, outside = [], []
        counts = await asyncio.gather(decorated(inside), plain(outside), decorated(inside))
        return inside, outside, counts

    rg.set_grad_enabled(True)
    inside, outside, counts = asyncio.run(main())
    assert set(outside) == {(True, False)}
    with mode:
        expected = modes()
    assert set(inside) == {expected}
    assert counts[2] == 10
    assert modes() == (True, False)


def test_decorated_asynchronous_generators_keep_their_mode():
    @rg.no_grad()
    async def generator():
        try:
            for _ in range(3):
                await asyncio.sleep(0)
                yield modes()
        finally:
            closed.append(modes())

    async def main():
        inside, between = [], []
        async for mode in generator():
            inside.append(mode)
            between.append(modes())
        return inside, between

    async def stop_early():
        running = generator()
        await anext(running)
        await running.aclose()
        return list(closed)

    closed = []
    inside, between = asyncio.run(main())
    assert (inside, between, closed) == ([(False, False)] * 3, [(True, False)] * 3, [(False, False)])
    assert asyncio.run(stop_early()) == [(False, False)] * 2


def test_a_cancelled_coroutine_leaves_no_mode_active():
    @rg.no_grad()
    async def endless():
        while True:
            await asyncio.sleep(0)

    async def main():
        task = asyncio.create_task(endless())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return modes()

    assert asyncio.run(main()) == (True, False)
