"""Thread state: each thread has its own, and none is inherited from a thread that ended."""

import threading
from contextlib import contextmanager, suppress

import pytest

from retrograd.core import state
from retrograd.core.blocks import generator_block
from retrograd.core.state import State, at, current


def test_every_thread_has_a_state_of_its_own():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(current()))
    thread.start()
    thread.join()
    assert seen[0] is not current()


def test_a_state_that_died_is_not_used_again():
    seen = []

    def work():
        assert current() is state._thread.state
        state._thread.state = State()  # as when a foreign thread's storage is thrown away between two callbacks
        seen.append(current() is state._thread.state)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True]


def test_a_block_puts_back_what_it_found_also_when_it_raises():
    before = (current().level, current().grad_enabled)
    try:
        with at(None, False):
            assert not current().grad_enabled
            raise KeyError
    except KeyError:
        pass
    assert (current().level, current().grad_enabled) == before


def _closes(log):
    try:
        yield "value"
    finally:
        log.append("closed")


def _suppresses(log):
    with suppress(KeyError, StopIteration):
        yield "value"
    log.append("closed")


def _replaces(log):
    try:
        yield "value"
    except Exception as error:
        raise ZeroDivisionError(log) from error


def _yields_twice(log):
    with suppress(Exception):
        yield "value"
    yield log.append("twice")


def _observed(decorator, make, error):
    """Return a block's log, result and error when its body raises `error`, or ends normally if that is None."""
    log = []
    try:
        with decorator(make)(log) as value:
            log.append(value)
            if error is not None:
                raise error
        log.append("after")
    except Exception as raised:
        return log, type(raised), raised is error, type(raised.__context__)
    return log


@pytest.mark.parametrize("error", [None, KeyError("key"), StopIteration(3), RuntimeError("no")], ids=repr)
@pytest.mark.parametrize("make", [_closes, _suppresses, _replaces, _yields_twice])
def test_a_block_of_a_generator_ends_as_those_of_contextlib(make, error):
    expected = _observed(contextmanager, make, error)
    assert _observed(generator_block, make, error) == expected


def test_a_block_of_a_generator_decorates_functions():
    log = []

    @generator_block(_closes)(log)
    def named(x):
        log.append(x)
        return x

    assert (named(1), named(2), named.__name__) == (1, 2, "named")
    assert log == [1, "closed", 2, "closed"]


def test_a_block_of_a_generator_makes_one_generator_per_with():
    made, log = [], []

    def make(log):
        made.append(_closes(log))
        return made[-1]

    block = generator_block(make)(log)
    for times in (1, 2):
        with block:
            assert len(made) == times
    block(lambda: None)()
    assert (len(made), log) == (3, ["closed"] * 3)


def test_a_block_of_a_generator_raises_for_wrong_arguments_when_it_is_called():
    with pytest.raises(TypeError, match="_closes"):
        generator_block(_closes)()
