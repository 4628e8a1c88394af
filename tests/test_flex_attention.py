"""Gradients of `flex_attention` of the module for PyTorch's scripts, which PyTorch does not compute on processors."""

import pytest

import retrograd as rg
from retrograd.testing import assert_close
from retrograd.torch_alias.flex_attention import BlockMask, create_block_mask, flex_attention


def operands():
    rg.manual_seed(0)
    return [rg.randn(1, 2, 4, 3, dtype=rg.float64, requires_grad=True) for _ in range(3)]


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def gradients(out, given):
    return rg.autograd.grad(out.square().sum(), given)


def test_gradients_are_those_of_attention_with_the_mask():
    given = operands()
    ours = flex_attention(*given, block_mask=create_block_mask(causal, None, None, 4, 4))
    theirs = rg.nn.functional.scaled_dot_product_attention(*given, is_causal=True)
    assert_close(ours, theirs)
    assert_close(gradients(ours, given), gradients(theirs, given))


def test_gradients_flow_to_tensors_of_the_function_of_scores():
    slope = rg.ones(2, dtype=rg.float64, requires_grad=True)
    given = operands()
    inputs = (*given, slope)
    assert rg.autograd.gradcheck(
        lambda q, k, v, s: flex_attention(q, k, v, lambda score, b, h, i, j: score + s[h] * (i - j)), inputs
    )


def test_queries_without_scores_have_no_gradient():
    given = operands()
    out = flex_attention(*given, block_mask=create_block_mask(lambda b, h, q, k: q > k, None, None, 4, 4))
    assert out[0, :, 0].tolist() == [[0.0] * 3] * 2
    assert all(bool(g.isfinite().all()) for g in gradients(out, given))


def test_a_mask_of_blocks_has_the_lengths_of_whole_blocks_unless_others_are_given():
    mask = BlockMask.from_kv_blocks(rg.tensor([[[1]]]), rg.tensor([[[[0, 1]]]]), BLOCK_SIZE=4)
    assert mask.shape == (1, 1, 4, 8)
    assert mask.to_dense().tolist() == [[[[1, 0]]]]
    with pytest.raises(ValueError, match="make one for these lengths"):
        flex_attention(*operands(), block_mask=mask)
