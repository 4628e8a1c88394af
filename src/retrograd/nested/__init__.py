"""Nested tensors: batches whose components differ in shape."""

from retrograd.nested import attend_parts as attend_parts
from retrograd.nested import attention as attention
from retrograd.nested import choices as choices
from retrograd.nested import contractions as contractions
from retrograd.nested import elementwise as elementwise
from retrograd.nested import forward as forward
from retrograd.nested import indexing as indexing
from retrograd.nested import joins as joins
from retrograd.nested import kind as kind
from retrograd.nested import layers as layers
from retrograd.nested import mapping as mapping
from retrograd.nested import methods as methods
from retrograd.nested import norms as norms
from retrograd.nested import products as products
from retrograd.nested import reductions as reductions
from retrograd.nested import scans as scans
from retrograd.nested import shapes as shapes
from retrograd.nested.arrow import from_arrow, to_arrow
from retrograd.nested.awkward import from_awkward, to_awkward
from retrograd.nested.construct import as_nested_tensor, nested_tensor, nested_tensor_from_jagged
from retrograd.nested.padding import nested_tensor_from_padded, to_padded_tensor
from retrograd.nested.selection import masked_select, narrow

__all__ = [
    "as_nested_tensor",
    "from_arrow",
    "from_awkward",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "nested_tensor_from_padded",
    "to_arrow",
    "to_awkward",
    "to_padded_tensor",
]
