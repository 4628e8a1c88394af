"""Errors of operators are caught by the class that PyTorch raises, and by the built-in one of Python."""

import pytest

import retrograd as rg
from retrograd.core.errors import OperandIndexError, OperandTypeError, OperandValueError

BAD_CALLS = {
    "a kernel": (lambda: rg.matmul(rg.ones(2, 3), rg.ones(2, 3)), OperandValueError, ValueError),
    "two operands": (lambda: rg.ones(2) + rg.ones(3), OperandValueError, ValueError),
    "a composition": (lambda: rg.nn.functional.cross_entropy(rg.ones(2, 3), rg.ones(3)), OperandValueError, ValueError),
    "a dtype": (lambda: rg.arange(3).mean(), OperandTypeError, TypeError),
    "a dimension": (lambda: rg.ones(2).sum(3), OperandIndexError, IndexError),
    "an index": (lambda: rg.ones(2).gather(0, rg.tensor([5])), OperandIndexError, IndexError),
    "under vmap": (
        lambda: rg.func.vmap(lambda x: x @ rg.ones(2, 3))(rg.ones(5, 2, 2, 1)),
        OperandValueError,
        ValueError,
    ),
    "under jvp": (
        lambda: rg.func.jvp(lambda x: x + rg.ones(3), (rg.ones(2),), (rg.ones(2),)),
        OperandValueError,
        ValueError,
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_operands_are_runtime_errors_and_of_the_builtin_class(case):
    call, kind, builtin = BAD_CALLS[case]
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, builtin)


def test_the_error_names_the_line_that_raised_it():
    with pytest.raises(RuntimeError) as caught:
        rg.ones(2) + rg.ones(3)
    assert "broadcast" in str(caught.value)
    assert any(entry.path.name == "family.py" for entry in caught.traceback)


@pytest.mark.parametrize("kind", [ValueError, TypeError, IndexError])
def test_the_error_of_a_custom_operator_keeps_its_class(kind):
    @rg.library.custom_op("errors_of_tests::fails", mutates_args=())
    def fails(x: rg.Tensor) -> rg.Tensor:
        raise kind("mine")

    with pytest.raises(kind, match="mine") as caught:
        fails(rg.ones(2))
    assert type(caught.value) is kind
