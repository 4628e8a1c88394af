"""Futures have one result, which is set once."""

import pytest

from retrograd.futures import Future


def set_result(future):
    future.set_result(1)


def set_exception(future):
    future.set_exception(ValueError("no"))


@pytest.mark.parametrize("again", [set_result, set_exception])
@pytest.mark.parametrize("first", [set_result, set_exception])
def test_a_future_is_completed_once(first, again):
    future = Future()
    first(future)
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        again(future)
    assert future.done()


def test_a_future_keeps_the_exception_that_is_set():
    future = Future()
    set_exception(future)
    for ask in (future.wait, future.value, future.then(lambda done: done.wait()).wait):
        with pytest.raises(ValueError, match="no"):
            ask()
