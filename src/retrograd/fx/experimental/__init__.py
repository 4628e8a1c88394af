"""The names of PyTorch's experiments that scripts use."""

from retrograd.foundation.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "const_fold": "retrograd.fx.experimental.const_fold",
        "proxy_tensor": "retrograd.fx.experimental.proxy_tensor",
    },
)
