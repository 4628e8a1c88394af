"""Results are kept for plain numbers only: a traced size must reach the function in each call."""

import pytest

from retrograd.foundation.plain_cache import cache_plain


class Traced(int):
    """A number that equals a plain one, and hashes like it."""


@pytest.fixture
def counter():
    calls = []

    def count(*args):
        calls.append(args)
        return len(calls)

    return calls, cache_plain(count)


@pytest.mark.parametrize("args", [(1, "same"), ((3, 4), None), (((1, 2), (3, 4)), 2.5)])
def test_plain_arguments_run_the_function_once(counter, args):
    calls, function = counter
    assert [function(*args), function(*args)] == [1, 1]
    assert calls == [args]


@pytest.mark.parametrize(
    ("args", "plain"),
    [((Traced(3),), (3,)), (((3, Traced(4)),), ((3, 4),)), ((((1, 2), (3, Traced(4))),), (((1, 2), (3, 4)),))],
)
def test_traced_sizes_run_the_function_each_time_and_leave_no_result_for_plain_ones(counter, args, plain):
    _, function = counter
    assert args == plain
    assert [function(*args), function(*args)] == [1, 2]
    assert [function(*plain), function(*args), function(*plain)] == [3, 4, 3]


def test_equal_numbers_of_other_types_have_results_of_their_own():
    function = cache_plain(lambda number: type(number))
    assert [function(number) for number in (1, True, 1.0)] == [int, bool, float]
