"""Functions that check a condition of a program raise one class of error each."""

import pytest

import retrograd as rg

CHECKS = {
    "_check": RuntimeError,
    "_check_index": IndexError,
    "_check_value": ValueError,
    "_check_type": TypeError,
    "_check_not_implemented": NotImplementedError,
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_condition_that_does_not_hold_is_an_error_of_one_class(name):
    check = getattr(rg, name)
    check(True)
    with pytest.raises(CHECKS[name], match=r"^Expected cond to be True, but got False$"):
        check(False)
    with pytest.raises(CHECKS[name], match=r"^tensor"):
        check(False, lambda: rg.arange(2))
    for cond in ("yes", 1, rg.tensor(True)):
        with pytest.raises(TypeError, match="cond must be a bool"):
            check(cond)
    with pytest.raises(TypeError, match="message must be a callable"):
        check(False, "text")


def test_a_negative_number_is_no_size():
    rg._check_is_size(0)
    with pytest.raises(RuntimeError, match=r"^got -1$"):
        rg._check_is_size(-1, lambda: "got -1")


def test_all_elements_of_a_condition_are_checked():
    rg._check_tensor_all(rg.ones(2, 2, dtype=rg.bool))
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        rg._check_tensor_all(rg.tensor([True, False]))
    with pytest.raises(TypeError, match="cond tensor must have dtype bool, but got float32"):
        rg._check_tensor_all(rg.ones(2))
    with pytest.raises(TypeError, match="cond must be a tensor"):
        rg._check_tensor_all(True)


def test_a_zero_is_asserted_not_to_be_there():
    rg._assert_async(rg.tensor([0.1j]))
    with pytest.raises(RuntimeError, match="single nonzero value, but got zero"):
        rg._assert_async(rg.tensor(0))
    with pytest.raises(RuntimeError, match=r"^mine$"):
        rg._assert_async(rg.tensor(0.0), "mine")
