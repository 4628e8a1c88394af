"""Grad modes: contexts, decorators on functions, generators, classes and coroutines."""

import asyncio
import collections

import pytest

from .adapter import in_thread, leaf, outcome, parity, warned

# ------------------------------------------------------------------------------------------------------- contexts


@parity
def test_modes_nest(m):
    x, seen = leaf(m, 1), []
    with m.no_grad():
        seen.append((x * 2).requires_grad)
        with m.enable_grad():
            seen.append((x * 2).requires_grad)
        seen.append(m.is_grad_enabled())
    with m.set_grad_enabled(False):
        seen.append(m.is_grad_enabled())
    return [*seen, m.is_grad_enabled()]


@parity
def test_a_mode_ends_with_an_exception(m):
    def fail():
        with m.no_grad():
            raise ValueError

    return outcome(fail), m.is_grad_enabled()


@parity
def test_a_mode_may_be_entered_again(m):
    mode, seen = m.no_grad(), []
    for _ in range(2):
        with mode:
            seen.append(m.is_grad_enabled())
        seen.append(m.is_grad_enabled())
    return seen


@parity
def test_a_factory_under_no_grad_may_require_gradients(m):
    with m.no_grad():
        return m.ones(2, requires_grad=True).requires_grad


@parity
def test_requiring_gradients_under_no_grad(m):
    with m.no_grad():
        x = m.ones(2).requires_grad_()
        y = x * 2
    return x.requires_grad, y.requires_grad, (x * 2).requires_grad


@parity
def test_set_grad_enabled_switches_at_once(m):
    m.set_grad_enabled(False)
    first = m.is_grad_enabled()
    m.set_grad_enabled(True)
    return first, m.is_grad_enabled()


@parity
def test_set_grad_enabled_as_a_context_goes_back_to_what_was(m):
    with m.no_grad():
        with m.set_grad_enabled(True):
            inside = m.is_grad_enabled()
        after = m.is_grad_enabled()
    return inside, after, m.is_grad_enabled()


@parity
def test_set_grad_enabled_made_before_it_is_entered(m):
    mode = m.set_grad_enabled(False)
    made = m.is_grad_enabled()
    with mode:
        inside = m.is_grad_enabled()
    after = m.is_grad_enabled()
    m.set_grad_enabled(True)
    return made, inside, after


@parity
def test_modes_are_found_under_autograd_too(m):
    names = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode"]
    return [getattr(m.autograd, n) is getattr(m, n) for n in names]


@parity
def test_a_mode_is_that_of_its_thread(m):
    with m.no_grad():
        return in_thread(m.is_grad_enabled), m.is_grad_enabled()


@parity
def test_a_mode_set_in_a_thread_stays_there(m):
    return in_thread(lambda: m.set_grad_enabled(False) and None), m.is_grad_enabled()


@parity
def test_a_new_grad_mode_needs_no_parentheses(m):
    @m.no_grad
    def bare():
        return m.is_grad_enabled()

    return bare(), m.is_grad_enabled()


# ------------------------------------------------------------------------------------------- functions and classes


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "inference_mode"])
@parity
def test_decorated_functions_run_in_the_mode(m, name):
    @getattr(m, name)()
    def decorated(a, *, b):
        """Its text."""
        return a, b, m.is_grad_enabled()

    return decorated(1, b=2), decorated.__name__, decorated.__doc__, m.is_grad_enabled()


@parity
def test_a_decorated_function_goes_back_to_the_mode_of_its_caller(m):
    @m.enable_grad()
    def decorated():
        return m.is_grad_enabled()

    with m.no_grad():
        return decorated(), m.is_grad_enabled()


@parity
def test_a_decorated_function_that_raises(m):
    @m.no_grad()
    def fail():
        raise ValueError

    return outcome(fail), m.is_grad_enabled()


@parity
def test_a_decorated_function_that_calls_itself(m):
    @m.no_grad()
    def count(n):
        return [m.is_grad_enabled(), *(count(n - 1) if n else [])]

    return count(2), m.is_grad_enabled()


@parity
def test_decorated_methods(m):
    class Model:
        @m.no_grad()
        def run(self):
            return m.is_grad_enabled()

        @staticmethod
        @m.enable_grad()
        def static():
            return m.is_grad_enabled()

    with m.no_grad():
        return Model().run(), Model.static()


@parity
def test_set_grad_enabled_as_a_decorator_leaks_nothing(m):
    @m.set_grad_enabled(False)
    def decorated():
        return m.is_grad_enabled()

    return m.is_grad_enabled(), decorated(), m.is_grad_enabled()


@parity
def test_set_grad_enabled_as_a_decorator_under_no_grad(m):
    with m.no_grad():
        decorated = m.set_grad_enabled(True)(m.is_grad_enabled)
        return m.is_grad_enabled(), decorated(), m.is_grad_enabled()


@parity
def test_decorating_a_class_covers_its_construction(m):
    class Model:
        def __init__(self):
            self.seen = m.is_grad_enabled()

        def run(self):
            return self.seen, m.is_grad_enabled()

    return warned(lambda: m.no_grad()(Model)().run())


# ------------------------------------------------------------------------------------------------------ generators


@parity
def test_a_generator_runs_in_the_mode_and_its_user_does_not(m):
    @m.no_grad()
    def generate():
        yield m.is_grad_enabled()
        yield m.is_grad_enabled()

    return [(inside, m.is_grad_enabled()) for inside in generate()]


@parity
def test_a_generator_switches_at_each_resume(m):
    log = []

    @m.no_grad()
    def generate():
        for _ in range(2):
            log.append(("inside", m.is_grad_enabled()))
            yield

    steps = generate()
    for mode in (True, False):
        with m.set_grad_enabled(mode):
            next(steps)
            log.append(("outside", m.is_grad_enabled()))
    return log


@parity
def test_a_mode_set_inside_a_generator_lasts_until_it_yields(m):
    @m.no_grad()
    def generate():
        m.set_grad_enabled(True)
        yield m.is_grad_enabled()
        yield m.is_grad_enabled()

    return [(inside, m.is_grad_enabled()) for inside in generate()]


@parity
def test_values_sent_to_a_generator(m):
    @m.no_grad()
    def generate():
        got = yield m.is_grad_enabled()
        while got:
            got = yield got * 2, m.is_grad_enabled()
        return "done"

    steps, seen = generate(), []
    seen.append(next(steps))
    seen.append(steps.send(3))
    try:
        steps.send(0)
    except StopIteration as end:
        seen.append(end.value)
    return seen, m.is_grad_enabled()


@parity
def test_an_exception_thrown_into_a_generator(m):
    @m.no_grad()
    def generate():
        try:
            yield m.is_grad_enabled()
        except ValueError:
            yield "caught", m.is_grad_enabled()

    steps = generate()
    return next(steps), steps.throw(ValueError), m.is_grad_enabled()


@parity
def test_closing_a_generator(m):
    log = []

    @m.no_grad()
    def generate():
        try:
            yield
        finally:
            log.append(m.is_grad_enabled())

    steps = generate()
    next(steps)
    steps.close()
    return log, m.is_grad_enabled()


@parity
def test_closing_a_generator_that_never_started(m):
    log = []

    @m.no_grad()
    def generate():
        log.append("started")
        yield

    generate().close()
    return log, m.is_grad_enabled()


@parity
def test_a_generator_that_raises(m):
    @m.no_grad()
    def generate():
        yield 1
        raise ValueError

    return outcome(lambda: list(generate())), m.is_grad_enabled()


@parity
def test_yield_from_a_decorated_generator(m):
    @m.no_grad()
    def inner():
        got = yield m.is_grad_enabled()
        return got

    def outer():
        result = yield from inner()
        yield result, m.is_grad_enabled()

    steps = outer()
    return next(steps), steps.send("sent")


@parity
def test_an_abandoned_generator_changes_no_mode(m):
    @m.no_grad()
    def generate():
        yield 1
        yield 2

    next(generate())
    return m.is_grad_enabled()


@parity
def test_two_generators_interleaved(m):
    @m.no_grad()
    def off():
        while True:
            yield m.is_grad_enabled()

    @m.enable_grad()
    def on():
        while True:
            yield m.is_grad_enabled()

    a, b = off(), on()
    return [(next(a), next(b), m.is_grad_enabled()) for _ in range(2)]


@parity
def test_set_grad_enabled_on_a_generator(m):
    @m.set_grad_enabled(False)
    def generate():
        yield m.is_grad_enabled()
        yield m.is_grad_enabled()

    return [(inside, m.is_grad_enabled()) for inside in generate()], m.is_grad_enabled()


@parity
def test_a_bare_context_in_a_generator_leaks_to_its_user(m):
    def generate():
        with m.no_grad():
            yield m.is_grad_enabled()

    steps = generate()
    seen = [next(steps), m.is_grad_enabled(), next(steps, "over"), m.is_grad_enabled()]
    return seen


# ------------------------------------------------------------------------------------------------------ coroutines


@parity(
    known="here a coroutine keeps its mode; PyTorch runs it in the mode of whoever awaits it",
    ours="[[False, False], True]",
)
def test_a_decorated_coroutine_function(m):
    @m.no_grad()
    async def decorated():
        before = m.is_grad_enabled()
        await asyncio.sleep(0)
        return before, m.is_grad_enabled()

    return asyncio.run(decorated()), m.is_grad_enabled()


@parity(
    known="here an asynchronous generator keeps its mode; PyTorch runs it in the mode of its user",
    ours="[[False], True]",
)
def test_a_decorated_asynchronous_generator(m):
    @m.no_grad()
    async def generate():
        yield m.is_grad_enabled()

    async def collect():
        return [inside async for inside in generate()]

    return asyncio.run(collect()), m.is_grad_enabled()


@parity
def test_a_context_in_a_coroutine(m):
    async def run():
        with m.no_grad():
            await asyncio.sleep(0)
            inside = m.is_grad_enabled()
        return inside, m.is_grad_enabled()

    return asyncio.run(run())


# ------------------------------------------------------------------------------------------- the remaining switches


@parity
def test_multithreading_can_be_switched(m):
    seen = [m.autograd.is_multithreading_enabled()]
    with m.autograd.set_multithreading_enabled(False):
        seen.append(m.autograd.is_multithreading_enabled())
    return [*seen, m.autograd.is_multithreading_enabled()]


@parity
def test_multithreading_can_be_switched_at_once(m):
    m.autograd.set_multithreading_enabled(False)
    off = m.autograd.is_multithreading_enabled()
    m.autograd.set_multithreading_enabled(True)
    return off, m.autograd.is_multithreading_enabled()


@parity(known="in PyTorch the mode leaks out of the decorator", ours="[True, False, True]")
def test_multithreading_has_a_decorator(m):
    @m.autograd.set_multithreading_enabled(False)
    def decorated():
        return m.autograd.is_multithreading_enabled()

    seen = m.autograd.is_multithreading_enabled(), decorated(), m.autograd.is_multithreading_enabled()
    m.autograd.set_multithreading_enabled(True)
    return seen


@parity(known="here views are always replayed", ours="[True, True, [2.0], True]")
def test_view_replay_can_be_forced(m):
    seen = [m.autograd.is_view_replay_enabled()]
    with m.autograd._force_original_view_tracking(True):
        seen.append(m.autograd.is_view_replay_enabled())
        y = leaf(m, 1, 2) * 1
        part = y[:1]
        y.mul_(2)
        seen.append(part)
    return [*seen, m.autograd.is_view_replay_enabled()]


@parity
def test_backward_works_under_no_grad(m):
    x = leaf(m, 3)
    y = x * x
    with m.no_grad():
        y.backward()
    return x.grad


@parity
def test_clones_of_modes_have_the_same_setting(m):
    found = []
    with m.enable_grad():  # which restores the mode that the first one sets at once
        for mode in (m.set_grad_enabled(False), m.inference_mode(True)):
            with mode.clone():
                found.append((m.is_grad_enabled(), m.is_inference_mode_enabled()))
    return found, m.is_grad_enabled()


@parity
def test_a_handle_of_user_defined_hooks(m):
    first, second = collections.OrderedDict(), collections.OrderedDict()
    handle = type(m.ones(1, requires_grad=True).register_hook(print))(first, extra_dict=second)
    first[handle.id] = second[handle.id] = "hook"
    before = len(first), len(second)
    handle.remove()
    handle.remove()
    return before, len(first), len(second)
