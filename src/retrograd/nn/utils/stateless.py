"""`functional_call`, which is in `retrograd.func`, under its older name."""

from retrograd.core import lazy_imports as _lazy

__getattr__, __dir__ = _lazy.lazy_names("retrograd.nn.utils.stateless", {})
