"""Names of the max pools that return the indices, too, such as `max_pool2d_with_indices`."""

import inspect

from retrograd.core import Tensor, call
from retrograd.ops.fractional_pool import fractional_max_pool2d, fractional_max_pool3d
from retrograd.ops.functions import function
from retrograd.ops.pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)


def _define_with_indices(pool, *more):
    """Return the pool as a function that returns (values, indices), regardless of `return_indices`."""

    def pooled(*args, **params):
        inputs, given = pool.schema.bind(args, params)
        return call(pool, inputs, {**given, "return_indices": True})

    pooled.__name__ = pooled.__qualname__ = f"{pool.name}_with_indices"
    pooled.__doc__ = f"Return `{pool.name}` as a tuple (values, indices)."
    pooled.__annotations__["return"] = tuple[Tensor, Tensor]
    pooled.__signature__ = inspect.signature(pool).replace(return_annotation=tuple[Tensor, Tensor])  # type: ignore[attr-defined]
    return function(f"nn.functional.{pooled.__name__}", *more)(pooled)


max_pool1d_with_indices = _define_with_indices(max_pool1d, "max_pool1d_with_indices")
max_pool2d_with_indices = _define_with_indices(max_pool2d)
max_pool3d_with_indices = _define_with_indices(max_pool3d)
adaptive_max_pool1d_with_indices = _define_with_indices(adaptive_max_pool1d, "adaptive_max_pool1d")
adaptive_max_pool2d_with_indices = _define_with_indices(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _define_with_indices(adaptive_max_pool3d)
fractional_max_pool2d_with_indices = _define_with_indices(fractional_max_pool2d)
fractional_max_pool3d_with_indices = _define_with_indices(fractional_max_pool3d)
