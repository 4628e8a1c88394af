"""`functional_call`, which is in `retrograd.func`, under its older name."""

from retrograd.foundation import lazy_imports as _lazy

__getattr__, __dir__ = _lazy.lazy_names("retrograd.nn.utils.stateless", {})
