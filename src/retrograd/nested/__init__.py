"""Nested tensors: batches whose components differ in shape."""

from retrograd.nested import elementwise as elementwise
from retrograd.nested import kind as kind
from retrograd.nested import mapping as mapping
from retrograd.nested.construct import as_nested_tensor, nested_tensor

__all__ = ["as_nested_tensor", "nested_tensor"]
