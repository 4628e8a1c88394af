"""`torch._functorch.vmap`: a `vmap` whose steps a library may replace, so that it maps over classes of its own.

TensorDict assigns its own functions to `_process_batched_inputs`, `_create_batched_inputs` and `_unwrap_batched`. Then
`torch.vmap` and `torch.func.vmap` call these; before, they are `rg.vmap`.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import optree

from retrograd import func as transforms
from retrograd.core import Tensor as Tensor
from retrograd.core import registry
from retrograd.core.tensor import make
from retrograd.foundation.source_location import describe_function as _get_name
from retrograd.levels.batch import VmapLevel
from retrograd.utils._pytree import _NAMESPACE
from retrograd.utils._pytree import tree_flatten as tree_flatten
from retrograd.utils._pytree import tree_unflatten as tree_unflatten

__all__ = ["_get_name"]

_plain_vmap = transforms.vmap

# The steps, which a library replaces together.
_process_batched_inputs: Callable | None = None  # (in_dims, args, func) -> examples, dimensions, leaves, structure
_create_batched_inputs: Callable | None = None  # (dimensions, leaves, level, structure) -> arguments
_unwrap_batched: Callable | None = None  # (results, out_dims, level, examples, func) -> results


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """Return a function of batches, as `rg.vmap` does; by the steps of a library that has replaced them."""
    plain = _plain_vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)

    @wraps(func, updated=())
    def batched(*args: Any, **kwargs: Any) -> Any:
        if _process_batched_inputs is None or _create_batched_inputs is None or _unwrap_batched is None:
            return plain(*args, **kwargs)
        size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
        with VmapLevel(size, randomness, func) as level:
            out = func(*_create_batched_inputs(dims, leaves, level, spec), **kwargs)
            return _unwrap_batched(out, out_dims, level, size, func)

    return batched


def _add_batch_dim(x: Tensor, in_dim: int, level: VmapLevel) -> Tensor:
    """Return a tensor of a level of `vmap` with the examples along a dimension of a tensor."""
    with level.below():
        return make(registry["movedim"](x, in_dim, 0), level, "the argument")


def _remove_batch_dim(x: Tensor, level: VmapLevel, batch_size: int, out_dim: int) -> Tensor:
    """Return all examples of a tensor, along a dimension."""
    with level.below():
        return registry["movedim"](level.all_examples(x), 0, out_dim)


def _maybe_remove_batch_dim(name: str, x: Any, level: VmapLevel, batch_size: int, out_dim: int | None) -> Any:
    """Return all examples of a result, or the result itself if it is the same for all of them."""
    if out_dim is None:
        if isinstance(x, Tensor) and level.differs(x):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return x.value if isinstance(x, Tensor) and x.level is level else x
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to set out_dims= "
            f"to None for output?"
        )
    return _remove_batch_dim(x, level, batch_size, out_dim)


def _broadcast_to_and_flatten(prefix: Any, spec: Any) -> list | None:
    """Return the entry of a prefix for each leaf of a structure; None if it does not fit.

    >>> _, spec = tree_flatten((1, [2, 3]))
    >>> _broadcast_to_and_flatten((0, None), spec), _broadcast_to_and_flatten((0, (1, 2)), spec)
    ([0, None, None], None)
    """
    tree = optree.tree_unflatten(spec, [object()] * spec.num_leaves)
    broadcast = partial(optree.tree_broadcast_prefix, none_is_leaf=True, namespace=_NAMESPACE)
    try:
        return optree.tree_leaves(broadcast(prefix, tree), none_is_leaf=True, namespace=_NAMESPACE)
    except ValueError:
        return None
