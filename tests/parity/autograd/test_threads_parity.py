"""Threads: concurrent graphs and backward passes lose no gradient, and thread state is separate."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from .adapter import data, in_thread, leaf, outcome, parity


def all_at_once(actions):
    """Start the calls together, each in a thread of its own, and return their results in order."""
    barrier = threading.Barrier(len(actions))

    def run(action):
        barrier.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result() for future in [pool.submit(run, action) for action in actions]]


@pytest.mark.parametrize("retain", [False, True])
@parity
def test_threads_that_share_a_leaf_lose_no_gradient(m, retain):
    x = leaf(m, 1, 2)

    def work():
        for _ in range(50):
            (x * x).sum().backward(retain_graph=retain)

    all_at_once([work] * 4)
    return x.grad


@parity
def test_threads_that_share_a_graph_lose_no_gradient(m):
    x = leaf(m, 1, 2)
    y = (x * x).sum()

    def work():
        for _ in range(20):
            y.backward(retain_graph=True)

    all_at_once([work] * 4)
    return x.grad


@parity
def test_threads_that_share_a_part_of_a_graph(m):
    x = leaf(m, 2)
    shared = x.exp().log()
    all_at_once([lambda k=k: (shared * k).backward(retain_graph=True) for k in (1, 10, 100)])
    return x.grad


@parity
def test_grad_in_several_threads_answers_each(m):
    x = leaf(m, 1, 2)
    return all_at_once([lambda k=k: m.autograd.grad((x * k).sum(), x) for k in (1, 2, 3)]), x.grad


@parity
def test_graphs_built_in_one_thread_are_walked_in_another(m):
    x, made = leaf(m, 3), []
    in_thread(lambda: made.append(x * x))
    made[0].backward()
    y = x * x
    return in_thread(y.backward), x.grad


@parity
def test_the_error_of_a_pass_comes_out_in_its_thread(m):
    x = leaf(m, 1, 2)
    return in_thread((x * 2).backward), x.grad


@parity
def test_an_error_in_one_thread_stays_there(m):
    x, bad = leaf(m, 2), leaf(m, 3)

    def fail(g):
        raise ValueError("mine")

    y, z = x * x, bad * bad
    z.register_hook(fail)
    results = all_at_once([lambda: outcome(z.backward), lambda: outcome(y.backward)])
    return results, x.grad, bad.grad


@parity
def test_hooks_run_in_the_thread_that_called_backward(m):
    x, log = leaf(m, 2), []
    x.register_hook(lambda g: log.append(threading.current_thread().name))
    thread = threading.Thread(target=(x * 3).backward, name="worker")
    thread.start()
    thread.join()
    return log


@parity
def test_hooks_of_shared_tensors_run_in_every_pass(m):
    x, log = leaf(m, 2), []
    x.register_hook(lambda g: log.append(data(g)))
    all_at_once([lambda k=k: (x * k).backward() for k in (1, 2, 3, 4)])
    return sorted(log), x.grad


@parity
def test_grad_modes_of_threads_are_apart(m):
    barrier = threading.Barrier(2)

    def run(mode):
        with m.set_grad_enabled(mode):
            barrier.wait()
            seen = m.is_grad_enabled()
            barrier.wait()
        return seen, m.is_grad_enabled()

    return all_at_once([lambda: run(True), lambda: run(False)]), m.is_grad_enabled()


@parity
def test_grad_mode_of_a_new_thread_is_on(m):
    x = leaf(m, 2)
    with m.no_grad():
        return in_thread(lambda: (x * 2).requires_grad), (x * 2).requires_grad


@parity
def test_a_pass_in_a_thread_leaves_the_mode_of_others(m):
    x = leaf(m, 2)
    with m.no_grad():
        in_thread(lambda: (x * x).backward())
        return m.is_grad_enabled(), x.grad


@parity
def test_a_generator_resumed_in_another_thread_keeps_its_mode(m):
    @m.no_grad()
    def generate():
        while True:
            yield m.is_grad_enabled()

    steps = generate()
    first = next(steps)
    return first, in_thread(lambda: (next(steps), m.is_grad_enabled())), m.is_grad_enabled()


@parity
def test_a_pass_inside_a_hook_of_another_thread(m):
    x, inner = leaf(m, 2), leaf(m, 5)

    def hook(g):
        in_thread(lambda: (inner * inner).backward())

    y = x * 3
    y.register_hook(hook)
    y.backward()
    return x.grad, inner.grad


@parity
def test_callbacks_belong_to_the_pass_of_their_thread(m):
    log = []
    queue = m.autograd.Variable._execution_engine.queue_callback

    def work(k):
        x = leaf(m, k)
        x.register_hook(lambda g: queue(lambda: log.append((k, threading.current_thread().name == str(k)))))
        x.backward()

    threads = [threading.Thread(target=work, args=(k,), name=str(k)) for k in (1, 2, 3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return sorted(log)


@parity
def test_post_accumulate_hooks_see_a_gradient_in_every_thread(m):
    x, seen = leaf(m, 2), []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad is not None))
    all_at_once([lambda: (x * 3).backward()] * 4)
    return seen, x.grad


@parity
def test_hooks_registered_in_many_threads_all_run(m):
    def work():
        count = []
        for k in range(100):
            x = leaf(m, k)
            x.register_hook(count.append)
            x.register_post_accumulate_grad_hook(lambda p: count.append(p))
            (x * 2).backward()
        return len(count)

    return all_at_once([work] * 4)


@parity
def test_multi_grad_hooks_in_threads(m):
    x, y, log = leaf(m, 2), leaf(m, 3), []
    m.autograd.graph.register_multi_grad_hook([x, y], lambda gs: log.append(data(gs)))
    all_at_once([lambda k=k: (x * y * k).backward() for k in (1, 2, 3, 4)])
    return sorted(log), x.grad, y.grad


@parity
def test_saved_tensor_hooks_in_threads(m):
    def work(k):
        x = leaf(m, k)
        with m.autograd.graph.saved_tensors_hooks(lambda t: (k, t), lambda packed: packed[1] * 0 + packed[0]):
            y = x * x
        y.backward()
        return x.grad

    return all_at_once([lambda k=k: work(k) for k in (1, 2, 3)])


@parity
def test_double_backward_in_threads(m):
    def work(k):
        x = leaf(m, k)
        (g,) = m.autograd.grad(x**3, x, create_graph=True)
        return m.autograd.grad(g, x)

    return all_at_once([lambda k=k: work(k) for k in (1, 2, 3)])
