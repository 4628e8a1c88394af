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


FLOATS = ("float16", "float32", "float64")
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@pytest.mark.filterwarnings("ignore:Using a target size", "ignore:.*they broadcast")
@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_two_dtypes_have_pytorchs(name, reduction):
    for (a, b), (x, y) in itertools.product(itertools.product(FLOATS, FLOATS), itertools.product(KINDS, KINDS)):
        theirs, ours = (
            str(getattr(m.nn.functional, name)(operand(m, a, x), operand(m, b, y), reduction=reduction).dtype)
            for m in (torch, rg)
        )
        assert f"torch.{ours}" == theirs, f"{a} and {b}, with {x} and {y}"


INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


@pytest.mark.parametrize("dtype", [*INTEGERS, "float32"])
@pytest.mark.parametrize("points", [False, True])
def test_the_integral_of_nothing_has_the_dtype_of_the_operand_and_no_graph(dtype, points):
    found = []
    for m in (torch, rg):
        y = m.zeros(2, 0, dtype=getattr(m, dtype))
        out = m.trapezoid(y.requires_grad_() if dtype == "float32" else y, *[m.zeros(0)] * points)
        found.append((str(out.dtype).removeprefix("torch."), out.tolist(), out.requires_grad))
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_coordinates_are_int64_and_hold_sizes_that_the_indices_do_not(dtype):
    theirs, ours = (m.unravel_index(m.tensor([3, 100], dtype=getattr(m, dtype)), (2, 400)) for m in (torch, rg))
    assert [(x.tolist(), str(x.dtype)) for x in ours] == [(x.tolist(), str(x.dtype)[6:]) for x in theirs]
