"""The adapter itself: scripts that should fail do fail."""

import pytest

import retrograd as rg

from .adapter import compare, data, outcome, parity, refused


def fail(text="shape (2,)"):
    """Raise."""
    raise ValueError(text)


@parity
def equal(m):
    return m.ones(2), m.float32, 0.1 + 0.2


@parity
def different(m):
    return m is rg


@parity(known="they agree")
def superfluous(m):
    return 1


@parity(known="they differ", ours="False")
def unexpected(m):
    return m is rg


@parity(known="they differ", ours="True")
def expected(m):
    return m is rg


@parity
def silent(m):
    return {"error": [outcome(fail, "(3,)")]}


@pytest.mark.parametrize("script", [different, superfluous, unexpected, silent])
def test_a_script_fails_where_answers_or_texts_are_wrong(script):
    with pytest.raises(AssertionError):
        script()


@pytest.mark.parametrize("script", [equal, expected])
def test_a_script_passes_where_they_are_right(script):
    script()


def test_errors_compare_by_their_built_in_kind():
    class MineError(ValueError):
        pass

    def raise_mine():
        raise MineError

    assert repr([outcome(raise_mine), refused(fail)]) == "[ValueError, an error]"


def test_the_type_of_a_number_counts():
    with pytest.raises(AssertionError):
        compare(lambda: 1, lambda: True, "", "")


def test_data_is_a_copy():
    x = rg.ones(2)
    before = data(x)
    x.zero_()
    assert before == [1.0, 1.0]
