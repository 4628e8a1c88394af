"""Passes, their managers, and partitions by capability."""

from retrograd.foundation.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "partitioner": "retrograd.fx.passes.infra.partitioner",
        "pass_base": "retrograd.fx.passes.infra.pass_base",
        "pass_manager": "retrograd.fx.passes.infra.pass_manager",
    },
)
