"""Promotion of every pair of dtypes, of tensors with and without dimensions and of numbers, as in PyTorch."""

import itertools

import pytest
import torch

import retrograd as rg

from ..tables import DTYPES

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
KINDS = ("dimensions", "none")
NUMBERS = (True, 2, 0.5, 1j)
LACKING = ("refused", "complex32")  # the dtype of docs/decisions/0030
OPERATORS = ("add", "mul", "div", "eq", "maximum", "where")
WITH_NUMBERS = {  # not 1.7 / x and x // 0.3, which PyTorch rounds twice
    "mul": lambda x: x * 0.1,
    "div": lambda x: x / 0.3,
    "add": lambda x: x + 0.1,
    "rsub": lambda x: 1.7 - x,
    "clamp": lambda x: x.clamp(min=0.1),
    "eq": lambda x: (x == 0.1) * x,
    "remainder": lambda x: x % 0.3,
}


def operand(m, dtype, kind):
    return m.ones((2,) if kind == "dimensions" else (), dtype=getattr(m, dtype))


def results(m, name, a, b):
    """Return the dtype of a result, or "refused"."""
    f = (lambda a, b: m.where(m.tensor([True, False]), a, b)) if name == "where" else getattr(m, name)
    try:
        return str(f(a, b).dtype).removeprefix("torch.")
    except (RuntimeError, TypeError, NotImplementedError):
        return "refused"


@pytest.mark.parametrize("name", OPERATORS)
def test_every_pair_of_tensors_meets_in_pytorchs_dtype(name):
    for (a, b), (x, y) in itertools.product(itertools.product(DTYPES, DTYPES), itertools.product(KINDS, KINDS)):
        theirs = results(torch, name, operand(torch, a, x), operand(torch, b, y))
        if theirs not in LACKING:
            found = results(rg, name, operand(rg, a, x), operand(rg, b, y))
            assert found == theirs, f"{name} of {a} and {b}, with {x} and {y}"


@pytest.mark.parametrize("number", NUMBERS)
def test_every_dtype_meets_numbers_as_in_pytorch(number):
    for dtype, kind, name in itertools.product(DTYPES, KINDS, ("add", "mul", "div", "eq")):
        theirs = results(torch, name, operand(torch, dtype, kind), number)
        if theirs not in LACKING:
            assert results(rg, name, operand(rg, dtype, kind), number) == theirs, f"{name} of {dtype} and {number}"


def test_the_functions_of_promotion_agree():
    for a, b in itertools.product(DTYPES, DTYPES):
        assert str(rg.promote_types(a, b)) == str(torch.promote_types(getattr(torch, a), getattr(torch, b)))[6:]
        assert rg.can_cast(a, b) == torch.can_cast(getattr(torch, a), getattr(torch, b)), (a, b)


def test_products_with_numbers_have_pytorchs_bits():
    torch.manual_seed(0)
    theirs = torch.randn(1000).bfloat16()
    ours = rg.tensor(theirs.float().numpy()).bfloat16()
    for name, f in WITH_NUMBERS.items():
        assert f(ours).tolist() == f(theirs).tolist(), name
