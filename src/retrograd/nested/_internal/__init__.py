"""Private names of PyTorch's nested tensors, for programs that use them."""

from retrograd.foundation.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "nested_tensor": "retrograd.nested._internal.nested_tensor",
    },
)
