"""Dtypes and values of results where PyTorch's rules are easy to miss."""

import pytest

import retrograd as rg
from retrograd.nn import functional as F


@pytest.mark.filterwarnings("ignore:.*they broadcast")
@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss])
def test_a_number_that_a_loss_broadcasts_takes_part_in_promotion(loss):
    one = rg.tensor(0.5, dtype=rg.float64)
    assert loss(one, rg.ones(2)).dtype == rg.float64
    assert loss(rg.ones(2), one).dtype == rg.float64


def test_a_divergence_keeps_float16():
    x = rg.rand(3).to(rg.float16)
    assert F.kl_div(x, x, reduction="none").dtype == rg.float16


def test_steps_of_integers_are_counted_between_integers():
    assert rg.arange(0.5, 5.7, 1.5, dtype=rg.int64).tolist() == [0, 1, 2, 3, 4]
    assert rg.linspace(4.3, -3, 9, dtype=rg.int64).tolist() == [4, 3, 2, 1, 0, 0, -1, -2, -3]
    assert rg.logspace(0, 1.9, 5, dtype=rg.int64).tolist() == [1, 1, 3, 5, 10]
    with pytest.raises(ValueError, match="no steps of 0"):
        rg.arange(0, 5, 0.5, dtype=rg.int64)


def test_factors_of_integer_products_count_without_their_fractions():
    x, a, b = rg.tensor([10, 20]), rg.ones(2, 2, dtype=rg.int64), rg.tensor([1, 2])
    out = rg.addmv(x, a, b, beta=1.5, alpha=2.9)
    assert (out.dtype, out.tolist()) == (rg.int64, [16, 26])


def test_windows_of_integers_have_whole_means():
    assert F.avg_pool1d(rg.tensor([[1, -4, 7, 8]]), 2).tolist() == [[-1, 7]]


def test_a_quotient_rounded_down_has_the_gradient_zero():
    x = rg.tensor([3.0, 5.0], requires_grad=True)
    (g,) = rg.autograd.grad((x // 2.0).sum(), x)
    assert g.tolist() == [0.0, 0.0]


def test_a_tensor_without_dimensions_is_one_slice():
    x, index = rg.tensor(2.0), rg.tensor([0])
    assert rg.index_select(x, 0, index).tolist() == 2.0
    assert rg.index_add(x, 0, index, rg.tensor(3.0)).tolist() == 5.0
    assert rg.index_copy(x, 0, index, rg.tensor(7.0)).tolist() == 7.0
    assert rg.index_reduce(x, 0, index, rg.tensor(4.0), "prod").tolist() == 8.0
    with pytest.raises(ValueError, match="one slice"):
        rg.index_select(x, 0, rg.tensor([0, 0]))


def test_a_size_of_one_is_contracted_with_every_number():
    a, b = rg.arange(8.0).reshape(2, 1, 4), rg.arange(24.0).reshape(4, 3, 2)
    out = rg.tensordot(a, b, dims=([1, 2], [1, 0]))
    assert out.tolist() == rg.tensordot(a, b.sum(1, keepdim=True), dims=([1, 2], [1, 0])).tolist()


def test_padding_repeats_the_last_element_even_if_it_was_cut_off():
    x = rg.arange(4.0).reshape(1, 4)
    assert F.pad(x, (-4, 3), mode="replicate").tolist() == [[3.0, 3.0, 3.0]]
