"""The names of `torch.nn.attention.flex_attention`, which libraries import; none of them exists here.

`scaled_dot_product_attention` takes masks, and nested tensors.
"""

from typing import Any, NoReturn

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class BlockMask:
    """A mask by blocks: there is none."""


class AuxRequest:
    """A request for further results of `flex_attention`; it has none."""


def flex_attention(*args: Any, **settings: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError("flex_attention: retrograd has none; use scaled_dot_product_attention with a mask")


create_block_mask = create_mask = flex_attention
