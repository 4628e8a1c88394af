"""Grad modes: as context managers, as decorators, nested, and per thread."""

import threading

import pytest

import retrograd as rg


def recorded():
    return (rg.ones(1, requires_grad=True) * 2).requires_grad


def test_no_grad_records_nothing_and_ends_with_its_block():
    with rg.no_grad():
        assert not recorded()
    assert recorded()


def test_modes_nest():
    with rg.no_grad():
        with rg.enable_grad():
            assert recorded()
        assert not recorded()


def test_a_mode_ends_when_its_block_raises():
    with pytest.raises(KeyError), rg.no_grad():
        raise KeyError
    assert rg.is_grad_enabled()


def test_modes_decorate_functions():
    @rg.no_grad()
    def quiet():
        return recorded()

    assert not quiet()
    assert recorded()


def test_one_mode_object_may_be_entered_again():
    mode = rg.no_grad()
    with mode, mode:
        assert not recorded()
    assert recorded()


def test_set_grad_enabled_acts_at_once_and_as_a_block():
    try:
        rg.set_grad_enabled(False)
        assert not recorded()
    finally:
        rg.set_grad_enabled(True)
    with rg.set_grad_enabled(False):
        assert not recorded()
    assert recorded()


def test_set_grad_enabled_as_a_decorator_concerns_the_function_alone():
    @rg.set_grad_enabled(False)
    def quiet():
        return recorded()

    assert recorded()
    assert not quiet()


def test_each_thread_has_a_mode_of_its_own():
    seen = []
    with rg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(recorded()))
        thread.start()
        thread.join()
    assert seen == [True]
