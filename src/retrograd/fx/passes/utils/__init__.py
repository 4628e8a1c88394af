"""Tools for passes: parts of graphs as modules, and matches of patterns."""

from retrograd.foundation.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "common": "retrograd.fx.passes.utils.common",
        "matcher_utils": "retrograd.fx.passes.utils.matcher_utils",
    },
)
