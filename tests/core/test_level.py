"""The state of a thread: its own, and never one that has died."""

import threading

from retrograd.core import level
from retrograd.core.level import State, at, current


def test_every_thread_has_a_state_of_its_own():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(current()))
    thread.start()
    thread.join()
    assert seen[0] is not current()


def test_a_state_that_died_is_not_used_again():
    seen = []

    def work():
        assert current() is level._thread.state
        level._thread.state = State()  # as when a foreign thread's storage is thrown away between two callbacks
        seen.append(current() is level._thread.state)

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
