"""flex_attention and its block masks: the same programs in PyTorch and under the alias's module."""

import pytest
import torch
from torch.nn.attention import flex_attention as theirs

from retrograd.torch_alias import flex_attention as ours

from .programs import assert_agreement

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def module_of(m):
    return theirs if m is torch else ours


def operands(m, queries=5, keys=7, heads=4, key_heads=4):
    def waves(*shape):
        count = shape[0] * shape[1] * shape[2] * shape[3]
        return m.sin(m.arange(count, dtype=m.float64)).reshape(shape)

    return waves(2, heads, queries, 3), waves(2, key_heads, keys, 3), waves(2, key_heads, keys, 2)


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def plain(m):
    return module_of(m).flex_attention(*operands(m))


def modified_scores(m):
    slopes = m.linspace(0.1, 0.5, 4, dtype=m.float64)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx) + b

    return module_of(m).flex_attention(*operands(m), score_mod=alibi, scale=0.5)


def masked(m):
    mask = module_of(m).create_block_mask(causal, None, None, 5, 5, device="cpu")
    return module_of(m).flex_attention(*operands(m, 5, 5), block_mask=mask)


def rows_without_scores(m):
    mask = module_of(m).create_block_mask(lambda b, h, q, k: q > k, None, None, 5, 5, device="cpu")
    return module_of(m).flex_attention(*operands(m, 5, 5), block_mask=mask)


def documents(m):
    lengths = m.tensor([0, 0, 1, 1, 1])
    masks = module_of(m)

    def same(b, h, q_idx, kv_idx):
        return lengths[q_idx] == lengths[kv_idx]

    both = masks.and_masks(same, causal)
    either = masks.or_masks(both, lambda b, h, q, k: k == 0)
    return masks.create_mask(both, 1, 1, 5, 5, device="cpu"), masks.create_mask(either, 2, 1, 5, 5, device="cpu")


def shared_keys(m):
    return module_of(m).flex_attention(*operands(m, 5, 7, 4, 2), enable_gqa=True)


def further_results(m):
    names = module_of(m)
    given = operands(m)
    out, lse = names.flex_attention(*given, return_lse=True)
    _, aux = names.flex_attention(*given, return_aux=names.AuxRequest(lse=True))
    return out, lse, aux.lse, aux.max_scores is None


def blocks(m):
    found = []
    for mask_mod in (causal, lambda b, h, q, k: (q - k).abs() < 3, lambda b, h, q, k: q < 0):
        for separate in (True, False):
            mask = module_of(m).create_block_mask(
                mask_mod, 2, None, 20, 13, device="cpu", BLOCK_SIZE=(4, 8), separate_full_blocks=separate
            )
            found += [mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices]
            found += [mask.to_dense(), tuple(mask.shape), mask.numel(), mask.sparsity(), mask.seq_lengths]
    return found


def wrong_heads(m):
    return module_of(m).flex_attention(*operands(m, 5, 7, 4, 2))


def wrong_lengths(m):
    mask = module_of(m).create_block_mask(causal, None, None, 9, 9, device="cpu")
    return module_of(m).flex_attention(*operands(m, 5, 5), block_mask=mask)


PROGRAMS = {p.__name__: p for p in [
    plain, modified_scores, masked, rows_without_scores, documents, shared_keys, further_results, blocks, wrong_heads,
    wrong_lengths,
]}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_in_both(name):
    assert_agreement(PROGRAMS[name])
