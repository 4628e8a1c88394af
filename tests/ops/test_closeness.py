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


def test_layouts_are_compared_by_default_and_strides_on_request():
    x = rg.ones(3, 4)
    assert_close(x, rg.ones(4, 3).T)
    with pytest.raises(AssertionError, match="strides differ"):
        assert_close(x, rg.ones(4, 3).T, check_stride=True)
    with pytest.raises(AssertionError, match="layouts differ"):
        assert_close(x, x.to_sparse())
    assert_close(x, x.to_sparse(), check_layout=False)
    with pytest.raises(AssertionError, match="devices differ"):
        assert_close(x, x.to("meta"))


def test_containers_of_tensors_are_compared_part_by_part():
    x = rg.ones(2)
    assert_close({"a": x, "b": [x, (x, 1.0)]}, {"b": (x, [x, 1.0]), "a": x})
    with pytest.raises(AssertionError, match="component b: component 1: 2 of 2 entries"):
        assert_close({"a": x, "b": [x, x]}, {"a": x, "b": [x, x + 1]})
    with pytest.raises(AssertionError, match=r"keys are \['a'\], expected \['b'\]"):
        assert_close({"a": x}, {"b": x})
    with pytest.raises(AssertionError, match="1 components, expected 2"):
        assert_close([x], [x, x])
