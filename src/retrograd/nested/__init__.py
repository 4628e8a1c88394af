"""Nested tensors: batches whose components differ in shape."""

from retrograd.foundation.lazy_imports import lazy_names
from retrograd.nested import dual as dual
from retrograd.nested import fallback_loop as fallback_loop
from retrograd.nested import methods as methods
from retrograd.nested import register as register
from retrograd.nested import rules as rules
from retrograd.nested.arrow import from_arrow, to_arrow
from retrograd.nested.awkward import from_awkward, to_awkward
from retrograd.nested.construct import as_nested_tensor, nested_tensor, nested_tensor_from_jagged
from retrograd.nested.padding import nested_tensor_from_padded, to_padded_tensor
from retrograd.nested.rules.masked_index import masked_select, narrow

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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_internal": "retrograd.nested._internal",
    },
)
