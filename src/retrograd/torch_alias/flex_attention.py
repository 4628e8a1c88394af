"""The names of `torch.nn.attention.flex_attention`, computed densely: every score exists, and blocks save no work.

`scaled_dot_product_attention` takes masks and nested tensors, and needs less memory where no scores are modified.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.func import vmap
from retrograd.ops.functions import functions

_DEFAULT_SPARSE_BLOCK_SIZE = 128
Mod = Callable[..., Tensor]


class AuxRequest(NamedTuple):
    """The further results of `flex_attention` that are wanted."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The further results of `flex_attention`; None for those that are not wanted."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return True: the mask that masks nothing."""
    return batch.new_ones((), dtype="bool")


def and_masks(*mask_mods: Mod) -> Mod:
    """Return the mask that is True where all of some masks are."""
    _check_callable(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype="bool")
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: Mod) -> Mod:
    """Return the mask that is True where one of some masks is."""
    _check_callable(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype="bool")
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _check_callable(mask_mods: tuple) -> None:
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


class BlockMask:
    """A mask, and which blocks of scores it leaves: for each row of blocks their number, and their columns in order.

    Blocks that the mask leaves whole are listed apart, as `full_kv_num_blocks` and `full_kv_indices`; None for both if
    they are not told apart. `create_block_mask` and `from_kv_blocks` make one.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int],
        mask_mod: Mod,
    ) -> None:
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Mod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> "BlockMask":
        """Return the mask with these blocks: numbers of shape (b, h, rows), columns of shape (b, h, rows, columns)."""
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        sizes = _block_sizes(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])
        full = full_kv_num_blocks, full_kv_indices
        return cls(seq_lengths, kv_num_blocks, kv_indices, *full, sizes, mask_mod or noop_mask)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of batches, of heads, of queries and of keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of scores."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Return 1 for the blocks that the mask leaves, at least in part, and 0 for the others."""
        dense = _unordered(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            dense = dense | _unordered(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def sparsity(self) -> float:
        """Return the percentage of the scores that are in blocks without any score that the mask leaves."""
        return 100 * (1 - float(self.to_dense().sum()) * math.prod(self.BLOCK_SIZE) / self.numel())

    def to(self, device: Any) -> "BlockMask":
        """Return the mask: there is one device."""
        return self

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _unordered(counts: Tensor, columns: Tensor) -> Tensor:
    """Return 1 at the first `counts` columns of each row, and 0 elsewhere."""
    listed = functions["arange"](columns.shape[-1]) < counts[..., None]
    return columns.new_zeros(columns.shape).scatter(-1, columns.long(), listed.to(columns.dtype))


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each row the number of ones, and their columns in order before those of zeros."""
    blocks = blocks.to("int32")
    return blocks.sum(-1).to("int32"), blocks.argsort(-1, descending=True, stable=True).to("int32")


def _block_sizes(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _at_each_score(mod: Mod, has_score: bool) -> Mod:
    """Return a function of a score and its four indices as one of all scores: it gets arrays of the indices."""
    scores = (0,) if has_score else ()
    for axis in (3, 2, 1, 0):
        indices = [None] * 4
        indices[axis] = 0  # type: ignore[call-overload]
        mod = vmap(mod, in_dims=(*scores, *indices))
    return mod


def _indices(*sizes: int) -> list[Tensor]:
    return [functions["arange"](size) for size in sizes]


def create_mask(
    mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:  # fmt: skip
    """Return the mask (B, H, Q_LEN, KV_LEN) of a function of the indices of the batch, head, query and key.

    Of a function of a score and these, return the scores that it makes of zeros.
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    required = [p for p in inspect.signature(mod_fn).parameters.values() if p.default is p.empty]
    if len(required) == 5:
        return _at_each_score(mod_fn, True)(functions["zeros"](*sizes), *_indices(*sizes))
    return _at_each_score(mod_fn, False)(*_indices(*sizes))


def create_block_mask(
    mask_mod: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """Return the mask of a function of the indices of the batch, head, query and key, and its blocks."""
    rows, columns = _block_sizes(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN)
    padded = mask.new_zeros((*mask.shape[:2], -(-Q_LEN // rows) * rows, -(-KV_LEN // columns) * columns))
    padded[..., :Q_LEN, :KV_LEN] = mask
    counts = padded.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows)).sum((-1, -3))
    whole = (counts == rows * columns) & separate_full_blocks
    numbers, indices = _ordered((counts > 0) & ~whole)
    full, full_indices = _ordered(whole) if separate_full_blocks else (None, None)
    sizes, lengths = (rows, columns), (Q_LEN, KV_LEN)
    return BlockMask.from_kv_blocks(numbers, indices, full, full_indices, sizes, mask_mod, lengths)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return attention (b, h, q, ev) whose scores a function modifies: `score_mod(score, b, h, q_idx, kv_idx)`.

    query, key and value have shapes (b, h, q, e), (b, h, k, e) and (b, h, k, ev). With `enable_gqa`, several heads of
    queries share one of keys. Scores outside the mask are left out; queries without any get zeros. `return_lse` adds
    the logarithms of the sums of the exponentials of scores, `return_aux` an `AuxOutput`.
    """
    _check_sizes(query, key, block_mask, enable_gqa)
    groups = query.shape[-3] // key.shape[-3]
    keys, values = (x.repeat_interleave(groups, -3) if groups > 1 else x for x in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    wide = "float64" if query.dtype == "float64" else "float32"
    scores = (query.to(wide) @ keys.to(wide).mT) * scale
    indices = _indices(*scores.shape)
    if score_mod is not None:
        scores = _at_each_score(score_mod, True)(scores, *indices).to(wide)
    if block_mask is not None:
        scores = scores.masked_fill(~_at_each_score(block_mask.mask_mod, False)(*indices), -math.inf)
    empty = (scores == -math.inf).all(-1, keepdim=True)  # whose softmax would have no gradient
    weights = scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)
    out = (weights @ values.to(wide)).to(query.dtype)
    if return_aux is not None:
        lse = scores.logsumexp(-1) if return_aux.lse else None
        return out, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
    return (out, scores.logsumexp(-1)) if return_lse else out


def _check_sizes(query: Tensor, key: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if query.ndim != 4:
        raise NotImplementedError("flex_attention: NYI: query, key, and value must be 4D tensors")
    if query.shape[-3] != key.shape[-3] and not enable_gqa:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.shape[-3]} and "
            f"Hkv={key.shape[-3]}. Try setting enable_gqa=True for GQA."
        )
    if query.shape[-3] % key.shape[-3]:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={query.shape[-3]} and "
            f"Hkv={key.shape[-3]}."
        )
    if block_mask is not None and block_mask.seq_lengths != (query.shape[-2], key.shape[-2]):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.shape[-2]} and "
            f"kv_len={key.shape[-2]}; make one for these lengths"
        )
