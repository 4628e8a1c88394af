"""Calls in forms that PyTorch has deprecated give the results of today's forms, with a warning."""

import itertools
from contextlib import nullcontext  # the suite makes warnings errors

import pytest
from tests.case_groups import group_cases

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

x, y, z = rg.tensor([0.2, 0.4, 0.7]), rg.tensor([1.0, 0.0, 1.0]), rg.tensor([3.0, 2.0, 5.0])
a, b = rg.arange(6.0).reshape(2, 3), rg.arange(6.0).reshape(3, 2)
square = rg.eye(2)

NUMBERS = {
    "add": (lambda: rg.add(x, 2, y), lambda: rg.add(x, y, alpha=2)),
    "a method": (lambda: x.sub(2, y), lambda: x.sub(y, alpha=2)),
    "add_": (lambda: x.clone().add_(2, y), lambda: x + 2 * y),
    "sub_": (lambda: x.clone().sub_(0.5, y), lambda: x - 0.5 * y),
    "addcmul": (lambda: rg.addcmul(x, 0.5, y, z), lambda: rg.addcmul(x, y, z, value=0.5)),
    "addcmul_": (lambda: x.clone().addcmul_(0.5, y, z), lambda: x + 0.5 * y * z),
    "addcdiv_": (lambda: x.clone().addcdiv_(-0.1, y, z), lambda: x - 0.1 * y / z),
    "two numbers": (lambda: rg.addmm(2, square, 3, a, b), lambda: 2 * square + 3 * (a @ b)),
    "the first of two": (lambda: rg.addmm(2, square, a, b), lambda: 2 * square + a @ b),
    "a method with two": (lambda: square.addmm(2, 3, a, b), lambda: 2 * square + 3 * (a @ b)),
    "addmv": (lambda: rg.addmv(2, x[:2], 3, a, x), lambda: 2 * x[:2] + 3 * (a @ x)),
}


@pytest.mark.parametrize("form", NUMBERS)
def test_numbers_before_tensors_are_scales(form):
    older, today = NUMBERS[form]
    with pytest.warns(UserWarning, match="This overload of .* is deprecated"):
        found = older()
    rg.testing.assert_close(found, today())


def test_calls_that_have_no_older_form_either_have_the_error_of_today():
    for call in (
        lambda: rg.add(x, 2, 3),
        lambda: rg.add(x, y, 2),
        lambda: rg.addcmul(x, 0.5, 0.5, y, z),
        lambda: rg.addcmul(x, 0.5, y, z, value=2),
        lambda: x.clone().add_(x, y),
        lambda: F.l1_loss(x, y, False, False, "sum", None, 1),
        lambda: F.l1_loss(x, y, False, size_average=True),
        lambda: nn.MSELoss(True, size_average=False),
        lambda: F.softmax(x, 0, dim=0),
        lambda: rg.einsum(x, y),
    ):
        with pytest.raises(TypeError):
            call()


@group_cases
@pytest.mark.parametrize(("average", "reduce"), itertools.product([None, True, False], repeat=2))
def test_size_average_and_reduce_choose_the_reduction(average, reduce):
    reduction = "none" if reduce is False else "sum" if average is False else "mean"
    expected = (x - y).abs() if reduction == "none" else getattr((x - y).abs(), reduction)()
    with (
        pytest.warns(UserWarning, match="please use reduction") if (average, reduce) != (None, None) else nullcontext()
    ):
        rg.testing.assert_close(F.l1_loss(x, y, average, reduce), expected)
        rg.testing.assert_close(F.l1_loss(x, y, size_average=average, reduce=reduce), expected)
        rg.testing.assert_close(nn.L1Loss(average, reduce)(x, y), expected)
        rg.testing.assert_close(nn.L1Loss(size_average=average, reduce=reduce)(x, y), expected)


def test_reduction_is_taken_from_its_position_in_pytorchs_order():
    target, weight = rg.tensor([0, 1]), rg.tensor([1.0, 3.0])
    rg.testing.assert_close(
        F.cross_entropy(square, target, weight, None, -100, None, "sum", 0.1),
        F.cross_entropy(square, target, weight, reduction="sum", label_smoothing=0.1),
    )
    assert nn.CrossEntropyLoss(weight, None, 1, None, "none").reduction == "none"
    assert nn.SmoothL1Loss(None, None, "sum", 2.0).beta == 2.0


def test_softmax_without_dim_takes_one_by_the_rank():
    for shape, dim in (((), 0), ((3,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4, 5), 1)):
        numbers = rg.randn(*shape)
        for function, layer in ((F.softmax, nn.Softmax()), (F.log_softmax, nn.LogSoftmax()), (F.softmin, nn.Softmin())):
            with pytest.warns(UserWarning, match="Implicit dimension choice for .* has been deprecated"):
                found = function(numbers)
            rg.testing.assert_close(found, function(numbers, dim=dim))
            with pytest.warns(UserWarning, match="Implicit dimension choice"):
                rg.testing.assert_close(layer(numbers), found)


def test_einsum_takes_lists_of_dimensions_after_each_operand():
    rg.testing.assert_close(rg.einsum(a, [0, 1], b, [1, 2], [2, 0]), (a @ b).T)
    rg.testing.assert_close(rg.einsum(a, [0, 30], b, [30, 2]), a @ b)
    rg.testing.assert_close(rg.einsum(rg.stack([a, a]), [..., 1, 0], [..., 0, 1]), rg.stack([a.T, a.T]))
    with pytest.raises(ValueError, match="numbers from 0 to 51"):
        rg.einsum(a, [0, 52])
