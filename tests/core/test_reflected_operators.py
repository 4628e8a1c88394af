"""Python's operators with operands that no operator takes: the other class has its turn, as for numbers of Python."""

import operator

import pytest

import retrograd as rg

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "pow", "and", "or", "xor", "lshift", "rshift")
COMPARISONS = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


class Length:
    """A class with all reflected operators, which answer with their names."""

    __hash__ = None


for _name in BINARY:
    setattr(Length, f"__r{_name}__", lambda self, other, name=_name: name)
for _name in COMPARISONS:
    setattr(Length, f"__{_name}__", lambda self, other, name=_name: name)


def function_of(name):
    return getattr(operator, f"{name}_" if name in ("and", "or") else name)


@pytest.mark.parametrize("name", BINARY)
def test_the_reflected_method_of_another_class_is_called(name):
    assert function_of(name)(rg.arange(3), Length()) == name
    assert rg.vmap(lambda x: rg.tensor(float(function_of(name)(x, Length()) == name)))(rg.arange(3)).sum() == 3


@pytest.mark.parametrize("name", [n for n in BINARY if n != "matmul"])
def test_an_augmented_assignment_calls_it_too(name):
    x = rg.arange(3)
    assert getattr(operator, f"i{name}")(x, Length()) == name
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_is_that_of_the_other_class(name):
    assert function_of(name)(rg.arange(3), Length()) == COMPARISONS[name]


@pytest.mark.parametrize("other", [None, "same", [0, 1, 2], (0, 1, 2), {}, object(), len, ...])
def test_a_tensor_equals_nothing_that_is_no_operand(other):
    x = rg.arange(3)
    assert (x == other) is False
    assert (x != other) is True
    assert (other == x) is False
    assert x not in [other]
    with pytest.raises(RuntimeError, match="__contains__ only supports Tensor or scalar"):
        other in x  # noqa: B015


def test_an_operand_without_the_reflected_method_has_the_error_of_the_operator():
    for other in (None, "a", object(), {}):
        with pytest.raises(TypeError, match="add: expected a Tensor"):
            rg.ones(2) + other
        with pytest.raises(TypeError, match="not supported between instances"):
            rg.ones(2) < other  # noqa: B015
