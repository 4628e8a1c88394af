"""`assert_close` with its options."""

import pytest

import retrograd as rg
from retrograd.testing import assert_close


def test_dtypes_are_compared_unless_the_caller_says_otherwise():
    with pytest.raises(AssertionError, match="dtypes differ"):
        assert_close(rg.ones(2), rg.ones(2, dtype="float64"))
    assert_close(rg.ones(2), rg.ones(2, dtype="float64"), check_dtype=False)
    parts = rg.nested.nested_tensor([rg.ones(2), rg.ones(3)])
    assert_close(parts, [rg.ones(2, dtype="float64"), rg.ones(3, dtype="float64")], check_dtype=False)


@pytest.mark.parametrize(("msg", "pattern"), [("weights", "^weights$"), ("layer 3: {}".format, "^layer 3: shapes")])
def test_the_message_of_an_error_can_be_chosen(msg, pattern):
    with pytest.raises(AssertionError, match=pattern):
        assert_close(rg.ones(2), rg.ones(3), msg=msg)
    assert_close(rg.ones(2), rg.ones(2), msg=msg)
