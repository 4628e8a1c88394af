"""`vmap`: turn a function of one example into a function of a batch."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from typing import Any

import optree

from retrograd.core import NotBatchedError, Tensor, registry
from retrograd.core.tensor import make
from retrograd.foundation.source_location import describe_function, warn_user
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.argnums import check_chunk_size, check_randomness
from retrograd.levels import VmapLevel, value_at
from retrograd.levels.batch import ArgumentTag
from retrograd.levels.sync_views import sync_views
from retrograd.levels.write_back import was_written, written_value
from retrograd.ops.batch_loop import PerformanceWarning, joins, stack_results
from retrograd.ops.create import as_tensor
from retrograd.ops.family import canonical_dim
from retrograd.ops.generator import replay_draws

__all__ = ["PerformanceWarning", "vmap"]

Dims = int | None | tuple | list | dict


def vmap(
    func: Callable,
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    fallback: str | None = None,
) -> Callable:
    """Return the function over a batch: `func`, written for one example, runs on all examples at once.

    `in_dims` is the batch dimension of each argument, None if all examples share it; `out_dims` that of each result,
    None if it is the same for all examples.  Both are ints, or pytree prefixes of the arguments (a tuple) and of the
    results, which are pytrees of tensors.  Keyword arguments are shared.  `randomness` selects what random operators
    do: raise an "error", or draw "different" or the "same" numbers for each example.  `chunk_size` examples run at a
    time, to save memory.

    Writes to a batched argument take effect when the function has returned; if it returns that argument, the result is
    the argument itself.

    Code that needs the value of a single example, as in `if x.sum() > 0`, raises a NotBatchedError.  With
    `fallback="loop"` the function then runs again for one example after the other, with a PerformanceWarning.  Results
    whose shapes differ are returned as a nested tensor.

    Raises ValueError for in_dims and out_dims that do not fit, for sizes that differ, and for no batched argument.

    >>> import retrograd as rg
    >>> rg.func.vmap(rg.dot)(rg.ones(3, 2), rg.ones(3, 2))
    tensor([2., 2., 2.])
    """
    check_randomness("vmap", randomness)
    check_chunk_size("vmap", chunk_size)
    if fallback not in (None, "loop"):
        raise ValueError(f"vmap: fallback must be None or 'loop', got {fallback!r}")

    @wraps(func, updated=())
    def batched(*args: Any, **kwargs: Any) -> Any:
        inputs = _Inputs(func, in_dims, args)
        run = _BatchedRun(func, inputs, kwargs, out_dims, randomness)
        try:
            return run.in_chunks(chunk_size or inputs.size)
        except NotBatchedError as error:
            run.undo()
            if fallback is None or not inputs.size:
                raise
            warn_user(f"vmap: {describe_function(func)} runs example by example: {error}", PerformanceWarning)
            return run.in_loop()

    return batched


class _Inputs:
    """The arguments of a batched function: their leaves, each with its batch dimension or None."""

    def __init__(self, func: Callable, in_dims: Dims, args: tuple) -> None:
        tree: Any = args
        self.leaves: list
        self.leaves, self.spec = optree.tree_flatten(tree, none_is_leaf=True)
        call = partial(_format_call, func, in_dims)
        dims = [in_dims] * len(self.leaves) if type(in_dims) is int else _broadcast_in_dims(call, in_dims, args)
        self.dims = [_check_in_dim(call, leaf, d) for leaf, d in zip(self.leaves, dims, strict=True)]
        self.size = _count_examples(call, in_dims, self.leaves, self.dims)
        self.given = [
            leaf if d is None or type(leaf) is Tensor else as_tensor(leaf)
            for leaf, d in zip(self.leaves, self.dims, strict=True)
        ]
        self.leaves = [_move_dim(x, d, 0) if d else x for x, d in zip(self.given, self.dims, strict=True)]

    def map_batched(self, wrap: Callable[[Tensor, Tensor, int], Any]) -> tuple:
        """Return the arguments, with `wrap` applied to batched leaves.

        It gets each with the batch dimension first, as the caller gave it, and the batch dimension of the latter.
        """
        triples = zip(self.leaves, self.given, self.dims, strict=True)
        args: Any = optree.tree_unflatten(self.spec, [x if d is None else wrap(x, y, d) for x, y, d in triples])
        return tuple(args)


def _format_call(func: Callable, in_dims: Dims) -> str:
    """Return the beginning of a message about the arguments of a batched function."""
    return f"vmap({describe_function(func)}, in_dims={in_dims}, ...)(<inputs>): "


def _count_examples(call: Callable[[], str], in_dims: Dims, leaves: list, dims: list) -> int:
    """Return the common size of the batched leaves."""
    batched = [(x.shape, d) for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not leaves:
        raise ValueError(f"{call()}got no inputs: no argument is batched")
    if not batched:
        raise ValueError(
            f"{call()}Expected at least one Tensor to vmap over: no argument of the function is batched, in_dims is "
            f"{in_dims!r} for {len(leaves)} arguments"
        )
    sizes = [shape[d] for shape, d in batched]
    if len(set(sizes)) > 1:
        shapes = [f"{shape} along {d}" for shape, d in batched]
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            f"mapped dimension: the batched arguments must have as many examples, got {', '.join(shapes)}"
        )
    return int(sizes[0])


def _broadcast_in_dims(call: Callable[[], str], in_dims: Dims, args: tuple) -> list:
    """Return the batch dimension of each leaf of the arguments."""
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call()}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}; in_dims must be an int, or a tuple with an entry for each argument, got "
            f"{type(in_dims).__name__}"
        )
    prefix: Any = in_dims
    tree: Any = args
    try:
        broadcast: Any = optree.tree_broadcast_prefix(prefix, tree, none_is_leaf=True)
    except ValueError as error:
        raise ValueError(
            f"{call()}in_dims is not compatible with the structure of `inputs`: in_dims {in_dims!r} does not fit the "
            f"{len(args)} arguments: {error}"
        ) from None
    dims: list = optree.tree_leaves(broadcast, none_is_leaf=True)
    for d in dims:
        if d is not None and not isinstance(d, int):
            raise ValueError(
                f"{call()}Got in_dim={d} for an input but in_dim must be either an integer dimension or None: in_dims "
                f"may hold ints and None, got {d!r}"
            )
    return dims


def _check_in_dim(call: Callable[[], str], leaf: Any, d: int | None) -> int | None:
    if d is None:
        return None
    if type(leaf) is not Tensor and (not hasattr(leaf, "shape") or not hasattr(leaf, "dtype")):
        raise ValueError(
            f"{call()}Got in_dim={d} for an input but the input is of type {type(leaf)}. We cannot vmap over "
            f"non-Tensor arguments, please use None as the respective in_dim: a {type(leaf).__name__} among the "
            f"arguments has no dimensions"
        )
    ndim = len(leaf.shape)
    if not -ndim <= d < ndim:
        raise ValueError(
            f"{call()}Got in_dim={d} for some input, but that input is a Tensor of dimensionality {ndim} so expected "
            f"in_dim to satisfy -{ndim} <= in_dim < {ndim}: in_dim {d} is out of range for an argument of shape "
            f"{tuple(leaf.shape)}"
        )
    return d % ndim


def _move_dim(x: Tensor, source: int, destination: int) -> Tensor:
    return x if source == destination else registry["movedim"](x, source, destination)


class _Results:
    """The results of a batched function: leaves with the batch dimension first, and their out_dims."""

    def __init__(self, func: Callable, out: Any, out_dims: Dims, whole: Callable[[Tensor], Tensor]) -> None:
        if out is None and out_dims is not None:
            raise ValueError(_non_tensor(func, out))
        found, self.spec = optree.tree_flatten(out)
        self.dims = [out_dims] * len(found) if type(out_dims) is int else _broadcast_out_dims(func, out_dims, out)
        self.leaves = [_unwrap_result(func, o, d, whole) for o, d in zip(found, self.dims, strict=True)]

    def tree(self) -> Any:
        """Return the results with the batch dimensions at their out_dims."""
        pairs = zip(self.leaves, self.dims, strict=True)
        moved = [x if d is None else _move_dim(x, 0, canonical_dim("vmap: out_dims", d, x.ndim)) for x, d in pairs]
        return optree.tree_unflatten(self.spec, moved)


def _broadcast_out_dims(func: Callable, out_dims: Any, out: Any) -> list:
    """Return the batch dimension of each leaf of the results."""
    given: list = optree.tree_leaves(out_dims)
    for d in given:
        if not isinstance(d, int):
            raise ValueError(
                f"vmap({describe_function(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
                f"python collection of ints: out_dims may hold ints and None, got {d!r}"
            )
    if isinstance(out, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    try:
        broadcast: Any = optree.tree_broadcast_prefix(out_dims, out, none_is_leaf=True)
    except ValueError as error:
        raise ValueError(
            f"vmap({describe_function(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
            f"structure of `outputs`: out_dims {out_dims!r} does not fit what the function returned: {error}"
        ) from None
    dims = optree.tree_leaves(broadcast, none_is_leaf=True)
    leaves = optree.tree_leaves(out, none_is_leaf=True)
    return [d for d, leaf in zip(dims, leaves, strict=True) if leaf is not None]


def _non_tensor(func: Callable, out: Any) -> str:
    """Return the message for a result that is no tensor."""
    return (
        f"vmap({describe_function(func)}, ...): the function must only return Tensors, got type {type(out)}. Did you "
        f"mean to set out_dims= to None for output? Then it is the same for all examples"
    )


def _unwrap_result(func: Callable, out: Any, d: int | None, whole: Callable[[Tensor], Tensor]) -> Any:
    if not isinstance(out, Tensor):
        if d is None:
            return out
        raise ValueError(_non_tensor(func, out))
    if d is not None:
        return whole(out)
    if isinstance(out.level, VmapLevel) and not out.level.active and out.tag is not None:
        raise ValueError(
            f"vmap({describe_function(func)}, ...): can not return a BatchedTensor when out_dim is None: out_dims is "
            f"None for a result that differs between examples"
        )
    return value_at(out.level, out) if isinstance(out.level, VmapLevel) and not out.level.active else out


class _BatchedRun:
    """One call of a batched function: all examples at once, in chunks, or one by one."""

    def __init__(self, func: Callable, inputs: _Inputs, kwargs: dict, out_dims: Dims, randomness: str) -> None:
        self._func = func
        self._inputs = inputs
        self._kwargs = kwargs
        self._out_dims = out_dims
        self._randomness = randomness
        self._generator_states: dict = {}  # the states of generators when this call first drew from them
        self._grad_starts: dict = {}  # gradients of outer tensors, before this call added to them
        self._grads: list[Any] = []  # the `OuterGrads` of the levels, None of those whose programs use none
        self._written: list[tuple[Tensor, Tensor]] = []  # arguments that were written to, and their new values

    def in_chunks(self, chunk: int) -> Any:
        """Run the examples in chunks, and concatenate the results."""
        size = self._inputs.size
        parts = [self._chunk(start, min(start + chunk, size)) for start in range(0, max(size, 1), max(chunk, 1))]
        for argument, value in self._written:
            argument.copy_(value)
        first = parts[0]
        for i, d in enumerate(first.dims):
            if d is not None and len(parts) > 1:
                first.leaves[i] = registry["cat"]([part.leaves[i] for part in parts])
        return first.tree()

    def _chunk(self, start: int, stop: int) -> _Results:
        """Run the examples of one chunk at once."""
        given: list[tuple[Tensor, Tensor]] = []
        with self._replay_random(), VmapLevel(stop - start, self._randomness, self._func) as level:
            level.grad_starts = self._grad_starts

            def batch(x: Tensor, as_given: Tensor, dim: int) -> Tensor:
                part = _slice_examples(x, 0, start, stop)
                tag = ArgumentTag.of(part, part if dim == 0 else _slice_examples(as_given, dim, start, stop), dim)
                given.append((part, make(part, level, tag)))
                return given[-1][1]

            with level.below():
                args = self._inputs.map_batched(batch)
            try:
                out = sync_views(self._func(*args, **self._kwargs))
            finally:
                self._grads.append(level.grads_in_use)
            written = [(part, inside) for part, inside in given if was_written(inside)]
            self._written += [(part, written_value(inside)) for part, inside in written]
        # A result that was written to is the argument itself, as without vmap, unless its shape was changed.
        returned = {id(inside): part for part, inside in written if inside.value.shape == part.shape}
        return _Results(
            self._func, out, self._out_dims, lambda x: returned[id(x)] if id(x) in returned else level.all_examples(x)
        )

    def _replay_random(self) -> AbstractContextManager:
        """Return a block that repeats the random numbers of the previous block if randomness is "same"."""
        return replay_draws(self._generator_states) if self._randomness == "same" else nullcontext()

    def undo(self) -> None:
        """Undo the additions to gradients of outer tensors."""
        for grads in reversed(self._grads):
            if grads is not None:
                grads.undo()

    def in_loop(self) -> Any:
        """Run each example by itself, and stack the results."""
        results = []
        for i in range(self._inputs.size):
            with self._replay_random():
                example = self._inputs.map_batched(lambda x, *_: registry["select"](x, dim=0, index=i))  # noqa: B023
                out = self._func(*example, **self._kwargs)
            results.append(_Results(self._func, out, self._out_dims, lambda example: example))
        first = results[0]
        for n, d in enumerate(first.dims):
            if d is not None:
                first.leaves[n] = stack_results([result.leaves[n] for result in results], joins[0])
        return first.tree()


def _slice_examples(x: Tensor, dim: int, start: int, stop: int) -> Tensor:
    return x if stop - start == x.shape[dim] else registry["narrow"](x, dim, start, stop - start)


suggest_in_module(globals())
