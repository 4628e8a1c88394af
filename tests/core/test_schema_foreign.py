"""Objects that override `__tensor_function__` are found among the params of operators as among the inputs."""

import pytest

import retrograd as rg


class Later:
    """Return the function and arguments it was called with."""

    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs):
        return func.__name__, types, args, kwargs


class Unwilling:
    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs):
        return NotImplemented


class Sizes(tuple):
    pass


x, later = rg.ones(2, 3), Later()
CALLS = {
    "size": (lambda: rg.zeros(later), "zeros", (later,), {}),
    "sizes": (lambda: rg.zeros((later, 2)), "zeros", ((later, 2),), {}),
    "one by one": (lambda: rg.reshape(x, later, -1), "reshape", (x, later, -1), {}),
    "a subclass of tuple": (lambda: rg.reshape(x, Sizes((later, -1))), "reshape", (x, Sizes((later, -1))), {}),
    "dim": (lambda: rg.cat([x, x], dim=later), "cat", ([x, x],), {"dim": later}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_parameter_of_another_class_overrides_the_operators(name):
    call, *expected = CALLS[name]
    func, types, args, kwargs = call()
    assert types == (Later,)
    assert [func, kwargs] == [expected[0], expected[2]]
    assert repr(args) == repr(expected[1])


def test_a_class_that_does_not_know_the_operator_is_named():
    for call in (lambda: rg.zeros(Unwilling()), lambda: rg.cat([x], dim=Unwilling())):
        with pytest.raises(TypeError, match=r"Multiple dispatch failed for .* returned NotImplemented: Unwilling"):
            call()


def test_the_other_parameters_are_checked_as_ever():
    with pytest.raises(TypeError, match="keepdim must be bool"):
        rg.sum(x, dim=later, keepdim=3)
