"""Splitting of arguments and merging of results, under the name of their module in PyTorch."""

from retrograd.pipelining import (
    TensorChunkSpec,
    _CustomReducer,
    _Replicate,
    merge_chunks,
    split_args_kwargs_into_chunks,
    sum_reducer,
)

__all__ = [
    "TensorChunkSpec",
    "_CustomReducer",
    "_Replicate",
    "merge_chunks",
    "split_args_kwargs_into_chunks",
    "sum_reducer",
]
