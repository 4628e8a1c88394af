"""Functions of plain tensors for divided ones, as in `torch.distributed.tensor.experimental`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.tensor.dispatch import plain_as_copies
from retrograd.distributed.tensor.dtensor import DTensor
from retrograd.distributed.tensor.placements import Placement
from retrograd.foundation.function_arguments import check_function_arguments

__all__ = ["implicit_replication", "local_map"]

implicit_replication = plain_as_copies
Placements = Sequence[Placement] | None


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Sequence[Placements] | None = None,
    in_grad_placements: Sequence[Placements] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Any:
    """Return a function of divided tensors that calls a function of plain ones with this rank's parts.

    Without `func`, it returns a decorator.  All ranks of the mesh must call the function.  Gradients pass through it.

    - out_placements: how the results of all ranks are parts of whole tensors: placements, or for several results a
      tuple of them, None for a result that is no tensor.
    - in_placements: those that each positional argument must have, None for one that is no divided tensor.
      redistribute_inputs: give them to an argument that has others, instead of an error.
    - in_grad_placements: how the gradient of each argument is divided, by default as the argument.
    - device_mesh: by default that of the first divided tensor.  Without one, the function is called as it is.

    Raises ValueError for another number of placements than arguments or results, and for an argument that has others.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.tensor import Replicate, Shard, distribute_tensor
    >>> def script():
    ...     mesh = dist.init_device_mesh("cpu", (2,))
    ...     product = local_map(lambda x, w: x @ w, [Shard(0)], ([Shard(0)], [Replicate()]))
    ...     x = distribute_tensor(rg.ones(4, 2), mesh, [Shard(0)])
    ...     y = product(x, distribute_tensor(rg.ones(2, 3), mesh))
    ...     return y.shape, y.to_local().shape
    >>> dist.run_threads(script, 2)[0]
    ((4, 3), (2, 3))
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )
    check_function_arguments("local_map", [(0, "func")], (func,), {})

    @functools.wraps(func)
    def on_parts(*args: Any, **kwargs: Any) -> Any:
        given_args: Any = args
        leaves, spec = optree.tree_flatten(given_args, none_is_leaf=True)
        mesh = device_mesh or next((x.device_mesh for x in leaves if isinstance(x, DTensor)), None)
        expected = _one_each("in_placements", in_placements, len(leaves))
        gradients = _one_each("in_grad_placements", in_grad_placements, len(leaves))
        parts = [
            _part(x, own, grad, redistribute_inputs) for x, own, grad in zip(leaves, expected, gradients, strict=True)
        ]
        result = func(*optree.tree_unflatten(spec, parts), **kwargs)
        if not any(isinstance(x, DTensor) for x in leaves):
            return result
        found, form = optree.tree_flatten(result, none_is_leaf=True)
        is_one = not isinstance(out_placements, tuple) or isinstance(out_placements[0], Placement)
        given = _one_each("out_placements", [out_placements] if is_one else out_placements, len(found))
        return optree.tree_unflatten(form, [_wrap_result(x, mesh, own) for x, own in zip(found, given, strict=True)])

    return on_parts


def _one_each(name: str, placements: Sequence[Placements] | None, count: int) -> list[Placements]:
    if placements is not None and len(placements) != count:
        raise ValueError(f"local_map: {name} has {len(placements)} entries, and there are {count} values")
    return [None] * count if placements is None else list(placements)


def _part(x: Any, expected: Placements, gradient: Placements, redistributes: bool) -> Any:
    """Return this rank's part of a divided tensor; other values as they are."""
    if not isinstance(x, DTensor):
        return x
    if expected is not None and tuple(expected) != x.placements:
        if not redistributes:
            raise ValueError(
                f"local_map: an argument has the placements {x.placements} instead of {tuple(expected)}; redistribute "
                f"it, or pass redistribute_inputs=True"
            )
        x = x.redistribute(placements=expected)
    return x.to_local(grad_placements=gradient)


def _wrap_result(x: Any, mesh: DeviceMesh | None, placements: Placements) -> Any:
    """Return the whole tensor of which the results of the ranks are parts; other values as they are."""
    if isinstance(x, Tensor) != (placements is not None):
        raise ValueError(f"local_map: out_placements are for results that are tensors, got {placements} for {type(x)}")
    return DTensor.from_local(x, mesh, placements) if isinstance(x, Tensor) else x
