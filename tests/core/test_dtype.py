"""Whatever is no dtype of numbers is refused where a dtype is expected."""

import pytest

import retrograd as rg
from retrograd.core.dtype import as_dtype

NO_NUMBERS = ["c", "S4", "U3", "O", "V4", "M8[s]", "m8", "float31", [], [("x", "f4")], object, str, bytes, 3, "?f"]
FUNCTIONS = {
    "zeros": lambda dtype: rg.zeros(2, dtype=dtype),
    "zeros_like": lambda dtype: rg.zeros_like(rg.ones(2), dtype=dtype),
    "arange": lambda dtype: rg.arange(2, dtype=dtype),
    "rand": lambda dtype: rg.rand(2, dtype=dtype),
    "tensor": lambda dtype: rg.tensor([1.0], dtype=dtype),
    "as_tensor": lambda dtype: rg.as_tensor([1.0], dtype=dtype),
    "to": lambda dtype: rg.ones(2).to(dtype=dtype),
    "sum": lambda dtype: rg.ones(2).sum(dtype=dtype),
    "cumsum": lambda dtype: rg.cumsum(rg.ones(2), 0, dtype=dtype),
    "view": lambda dtype: rg.ones(2).view(dtype=dtype),
    "Linear": lambda dtype: rg.nn.Linear(2, 2, dtype=dtype),
    "promote_types": lambda dtype: rg.promote_types(dtype, rg.float32),
    "set_default_dtype": rg.set_default_dtype,
}


@pytest.mark.parametrize("value", NO_NUMBERS, ids=str)
def test_what_is_no_dtype_of_numbers_is_refused(value):
    with pytest.raises(TypeError, match="expected a dtype or the name of one, got "):
        as_dtype(value)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_that_they_expect_a_dtype(name, value):
    with pytest.raises(TypeError, match="dtype") as found:
        FUNCTIONS[name](value)
    assert "dtype?" not in str(found.value)


@pytest.mark.parametrize("value", ["float32", "bfloat16", "f4", "<i8", float, bool, complex, rg.int8])
def test_names_and_types_of_numbers_are_dtypes(value):
    assert rg.zeros(1, dtype=value).dtype == as_dtype(value)
