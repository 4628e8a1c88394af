"""Custom operators: defining, extending and checking them; they share the registry of the built-in operators."""

from retrograd.foundation.lazy_imports import lazy_names
from retrograd.library.api import (
    define,
    impl,
    impl_abstract,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)
from retrograd.library.custom_ops import custom_op
from retrograd.library.fake_context import get_ctx
from retrograd.library.kernel_lookup import fallthrough_kernel, get_kernel
from retrograd.library.library_scope import Library
from retrograd.library.operator import CustomOperator
from retrograd.library.operator import CustomOperator as CustomOpDef
from retrograd.library.sanitizer import sanitize
from retrograd.library.schema_inference import infer_schema
from retrograd.library.tags import Tag
from retrograd.library.unsupported import triton_op, wrap_triton

__all__ = [
    "CustomOpDef",
    "CustomOperator",
    "Library",
    "Tag",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "sanitize",
    "triton_op",
    "wrap_triton",
]

_scoped_library = Library  # which undoes its registrations at the end of a block

__getattr__, __dir__ = lazy_names(__name__, {})  # opcheck is above this layer: the root adds it
