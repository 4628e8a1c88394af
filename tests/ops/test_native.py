"""Older and lower-level names give the same results as the functions and layers they correspond to."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.testing import assert_close


def test_normalisations_return_what_they_divide_by():
    x = rg.randn(2, 4, 3, dtype=rg.float64)
    for (out, mean, scale), dims in (
        (rg.native_layer_norm(x, (3,), None, None, 0.0), (2,)),
        (rg.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0), (0, 2)),
    ):
        shape = [1 if d in dims else n for d, n in enumerate(x.shape)]
        assert_close((x - mean.reshape(shape)) * scale.reshape(shape), out)
    out, mean, scale = rg.native_group_norm(x, None, None, 2, 4, 3, 2, 0.0)
    groups = (x.reshape(2, 2, 6) - mean[..., None]) * scale[..., None]
    assert_close(groups.reshape(2, 4, 3), out)


def test_dropout_says_what_it_kept():
    x = rg.ones(1000)
    out, kept = rg.native_dropout(x, 0.25, True)
    assert_close(out, kept / 0.75)
    assert 650 < kept.sum().item() < 850
    for p, answer in ((0.0, 1), (1.0, 0)):
        out, kept = rg.native_dropout(x, p, True)
        assert out.tolist() == kept.to(x.dtype).tolist() == [answer] * 1000
    with pytest.raises(ValueError, match="p must be from 0 to 1"):
        rg.native_dropout(x, 1.5, True)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_steps_of_recurrences_are_those_of_the_layers(kind):
    layer, x, h = getattr(nn, f"{kind}Cell")(3, 4), rg.randn(2, 3), rg.randn(2, 4)
    state = (h, h + 1) if kind == "LSTM" else h
    step = {"LSTM": rg.lstm_cell, "GRU": rg.gru_cell, "RNN": rg.rnn_tanh_cell}[kind]
    found, expected = step(x, state, *layer.parameters()), layer(x, state)
    for mine, its in zip(found, expected, strict=True):
        assert_close(mine.detach(), its.detach(), 1e-5, 1e-6)


def test_copies_have_memory_of_their_own():
    x = rg.arange(6.0).reshape(2, 3).requires_grad_()
    copies = (rg.alias_copy(x), rg.t_copy(x), rg.slice_copy(x, 1, 0, 2), *rg.unbind_copy(x))
    assert not {c.data_ptr() for c in copies} & {x.data_ptr(), x[1].data_ptr()}
    sum(c.sum() for c in copies).backward()
    assert x.grad.tolist() == [[4, 4, 3], [4, 4, 3]]


def test_dimensions_in_the_order_of_memory():
    assert rg.ones(2, 3, 4).permute(2, 0, 1).dim_order(ambiguity_check=True) == (1, 2, 0)
    image = rg.ones(2, 3, 4, 5).to(memory_format=rg.channels_last)
    both = [rg.contiguous_format, rg.channels_last]
    assert image.dim_order(ambiguity_check=both) == (0, 2, 3, 1)
    for x, check in ((rg.ones(1, 2, 3), True), (image, both[:1])):
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            x.dim_order(ambiguity_check=check)
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
        image.dim_order(ambiguity_check="channels_last")


def test_results_of_a_power_have_the_wide_dtype():
    with pytest.raises(RuntimeError, match="float_power_: the result is float64"):
        rg.ones(2).float_power_(2)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_convolution_is_that_of_the_dimensions_of_its_weight(ndim):
    x, weight = rg.randn(2, 4, *(5,) * ndim), rg.randn(6, 2, *(3,) * ndim)
    settings = [(2,) * ndim, (1,) * ndim, (1,) * ndim]
    forward = getattr(rg, f"conv{ndim}d")(x, weight, None, 2, 1, 1, 2)
    assert_close(rg.convolution(x, weight, None, *settings, False, (0,) * ndim, 2), forward)
    back = getattr(rg, f"conv_transpose{ndim}d")(forward, weight, None, 2, 1, 1, 2)
    assert_close(rg.convolution(forward, weight, None, *settings, True, (1,) * ndim, 2), back)
    with pytest.raises(RuntimeError, match="the weight must have 3, 4 or 5 dimensions"):
        rg.convolution(x, rg.ones(2, 2), None, *settings, False, (0,) * ndim, 1)


def test_losses_at_the_top_take_names_and_numbers_of_reductions():
    x, target = rg.randn(3, 4), rg.rand(3, 4)
    for number, name in enumerate(("none", "mean", "sum")):
        expected = nn.functional.kl_div(x, target, reduction=name)
        assert_close(rg.kl_div(x, target, number), expected)
        assert_close(rg.kl_div(x, target, reduction=name), expected)
    with pytest.raises(ValueError, match="kl_div: reduction must be 0, 1 or 2"):
        rg.kl_div(x, target, 3)


def test_embedding_at_the_top_takes_the_weight_first_and_may_have_a_padding_row():
    weight, ids = rg.randn(3, 2, requires_grad=True), rg.tensor([2, 0])
    assert_close(rg.embedding(weight, ids).detach(), nn.functional.embedding(ids, weight).detach())
    rg.embedding(weight, ids, padding_idx=2).sum().backward()
    assert weight.grad.tolist() == [[1, 1], [0, 0], [0, 0]]
