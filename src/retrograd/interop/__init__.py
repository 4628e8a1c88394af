"""Exchange with other libraries and with files."""

from retrograd.foundation.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {"array_api": "retrograd.interop.array_api", "safetensors": "retrograd.interop.safetensors"},
)
