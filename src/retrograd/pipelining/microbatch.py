"""Microbatches: split arguments into them, and merge their outputs."""

import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import optree

from retrograd.core import Tensor, registry
from retrograd.core.aval import symbolic
from retrograd.foundation.suggestions import suggest_in_module, suggest_keywords
from retrograd.ops.create import as_tensor


class TensorChunkSpec(NamedTuple):
    """Split a tensor along `split_dim`; the name is PyTorch's."""

    split_dim: int = 0

    @staticmethod
    @suggest_keywords
    def from_tuple(chunk_dims: Sequence[int]) -> "tuple[TensorChunkSpec, ...]":
        """Return the specs of positional arguments, from the dimension of each.

        >>> TensorChunkSpec.from_tuple((0, 1))
        (TensorChunkSpec(split_dim=0), TensorChunkSpec(split_dim=1))
        """
        return tuple([TensorChunkSpec(dim) for dim in chunk_dims])

    @staticmethod
    @suggest_keywords
    def from_dict(chunk_dims: Mapping[str, int]) -> "dict[str, TensorChunkSpec]":
        """Return the specs of keyword arguments, from the dimension of each.

        >>> TensorChunkSpec.from_dict({"mask": 1})
        {'mask': TensorChunkSpec(split_dim=1)}
        """
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class Replicate:
    """Pass the whole argument to every microbatch.  Numbers, strings and None need no spec for that."""

    def __repr__(self) -> str:
        return "Replicate()"


_Replicate = Replicate  # PyTorch's name


class CustomReducer:
    """Merge the outputs of microbatches by a user's function, as a fold in order; the idea is PyTorch's.

    >>> merge_chunks([1, 5, 2], CustomReducer(0, max)), merge_chunks([1, 5, 2], sum_reducer)
    (5, 8)
    """

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]) -> None:
        if not callable(reduce_fn):
            raise TypeError(f"CustomReducer: reduce_fn must be a function of two values, got {reduce_fn!r}")
        self.init_value = init_value
        self.reduce_fn = reduce_fn

    def __repr__(self) -> str:
        return f"CustomReducer({self.init_value!r}, {self.reduce_fn!r})"


sum_reducer = CustomReducer(0, operator.add)


class MicroBatch(NamedTuple):
    """The arguments of one microbatch, and its share of the batch by number of examples."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    weight: float


Spec = TensorChunkSpec | Replicate


def split_args_kwargs_into_chunks(
    args: Sequence[Any],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: Sequence[Any] | None = None,
    kwargs_chunk_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple], list[dict[str, Any]]]:
    """Return the positional and the keyword arguments of each microbatch; the name is PyTorch's.

    Every tensor is split into `chunks` parts of equal size, the first ones with one example more if its size does not
    divide evenly.  Tensors may have batches of different sizes.  Values other than tensors are passed to each.

    args_chunk_spec, kwargs_chunk_spec: for each argument a TensorChunkSpec or Replicate(), or these nested as the
     argument is; an argument without a spec is split along dimension 0.

    Raises ValueError for a tensor without that dimension (declare it `Replicate()`), for more microbatches than
    examples, and for specs of missing arguments; TypeError for an invalid spec, and for a tensor instead of a
    sequence of arguments.

    >>> import retrograd as rg
    >>> split_args_kwargs_into_chunks((rg.arange(5),), {"y": rg.arange(2), "scale": 3}, 2)[1]
    [{'y': tensor([0]), 'scale': 3}, {'y': tensor([1]), 'scale': 3}]
    """
    named = _arguments_with_specs(args, kwargs, args_chunk_spec, kwargs_chunk_spec)
    chunk_sizes(chunks, chunks)  # refuses anything but a positive integer, also without tensors
    return _split(named, len(args), kwargs, chunks)


def _split(
    named: dict[str, tuple[Any, Any]], count: int, kwargs: dict[str, Any] | None, chunks: int
) -> tuple[list[tuple], list[dict[str, Any]]]:
    """Return the arguments of each microbatch; the first `count` of those named are the positional ones."""
    columns = [_chunks_by_spec(name, value, spec, chunks) for name, (value, spec) in named.items()]
    rows = [[column[i] for column in columns] for i in range(chunks)]
    return [tuple(row[:count]) for row in rows], [dict(zip(kwargs or {}, row[count:], strict=True)) for row in rows]


def _chunks_by_spec(name: str, value: Any, spec: Any, chunks: int) -> list[Any]:
    """Return the parts of an argument whose spec may be nested, each tensor split by its own size."""
    if isinstance(spec, Replicate) or spec is Replicate:
        return [value] * chunks
    if isinstance(spec, TensorChunkSpec):
        leaves, structure = optree.tree_flatten(value, none_is_leaf=True)
        columns = [_chunks_of_leaf(name, leaf, spec.split_dim, chunks) for leaf in leaves]
        return [structure.unflatten(column[i] for column in columns) for i in range(chunks)]
    specs, structure = optree.tree_flatten(spec, is_leaf=_is_spec, none_is_leaf=True)
    parts = structure.flatten_up_to(value)
    columns = [_chunks_by_spec(name, part, one, chunks) for part, one in zip(parts, specs, strict=True)]
    return [structure.unflatten(column[i] for column in columns) for i in range(chunks)]


def _chunks_of_leaf(name: str, leaf: Any, dim: int, chunks: int) -> list[Any]:
    if not isinstance(leaf, Tensor):
        return [leaf] * chunks
    return registry["split"](leaf, chunk_sizes(_size_along(name, leaf, dim), chunks), dim)


def split_batch(
    args: Sequence[Any],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: Sequence[Spec] | None = None,
    kwargs_chunk_spec: dict[str, Spec] | None = None,
) -> list[MicroBatch]:
    """Split a batch into `chunks` microbatches of equal size, with their weights; the first ones may get one more.

    A spec applies to the whole argument, including nested tensors; without one, tensors split along dimension 0.

    Raises as `split_args_kwargs_into_chunks`, and ValueError for sizes that differ between arguments.

    >>> import retrograd as rg
    >>> parts = split_batch((rg.arange(5),), {"scale": 2}, 2)
    >>> [(p.args[0].tolist(), p.kwargs, p.weight) for p in parts]
    [([0, 1, 2], {'scale': 2}, 0.6), ([3, 4], {'scale': 2}, 0.4)]
    """
    named = _arguments_with_specs(args, kwargs, args_chunk_spec, kwargs_chunk_spec)
    sizes = chunk_sizes(_batch_size(named), chunks)
    parts = zip(*_split(named, len(args), kwargs, chunks), sizes, strict=True)
    return [MicroBatch(own, by_name, size / max(sum(sizes), 1)) for own, by_name, size in parts]


def count_examples(
    args: Sequence[Any],
    kwargs: dict[str, Any] | None,
    args_chunk_spec: Sequence[Spec] | None = None,
    kwargs_chunk_spec: dict[str, Spec] | None = None,
) -> int:
    """Return the number of examples in a batch, along the dimensions of the specs; raises as the split does.

    >>> import retrograd as rg
    >>> count_examples((rg.ones(5, 2),), {"scale": 2})
    5
    """
    return _batch_size(_arguments_with_specs(args, kwargs, args_chunk_spec, kwargs_chunk_spec))


def _arguments_with_specs(
    args: Sequence[Any], kwargs: dict[str, Any] | None, of_args: Sequence[Spec] | None, of_kwargs: dict | None
) -> dict[str, tuple[Any, Spec]]:
    """Return the arguments, with arrays as tensors, and their specs, by the names used in errors."""
    kwargs = kwargs or {}
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"split: args must be a tuple or list of arguments, got {type(args).__name__}")
    specs = (tuple([TensorChunkSpec()] * len(args) if of_args is None else of_args), dict(of_kwargs or {}))
    if len(specs[0]) != len(args):
        raise ValueError(f"split: {len(args)} arguments but {len(specs[0])} chunk specs")
    unknown = [name for name in specs[1] if name not in kwargs]
    if unknown:
        raise ValueError(
            f"split: kwargs_chunk_spec names {', '.join(map(repr, unknown))}, but the keyword arguments are "
            f"{', '.join(map(repr, kwargs)) or 'none'}; pass them by name, as None if there is nothing to pass"
        )
    for spec in optree.tree_leaves((specs[0], specs[1]), is_leaf=_is_spec, none_is_leaf=True):  # type: ignore[arg-type]
        _check_spec("split", spec)
    args, kwargs = _with_tensors(tuple(args)), _with_tensors(dict(kwargs))
    return {**{f"argument {i}": (a, s) for i, (a, s) in enumerate(zip(args, specs[0], strict=True))},
             **{f"argument {k!r}": (v, specs[1].get(k, TensorChunkSpec())) for k, v in kwargs.items()}}  # fmt: skip


def join_microbatches(
    batches: Sequence[MicroBatch], args_chunk_spec: Sequence[Spec] | None, kwargs_chunk_spec: Mapping[str, Spec]
) -> MicroBatch:
    """Join several microbatches into one; raises as `merge_chunks` if they cannot be joined."""
    first, whole = batches[0], TensorChunkSpec()
    specs = args_chunk_spec or [whole] * len(first.args)
    args = [merge_chunks([b.args[i] for b in batches], spec) for i, spec in enumerate(specs)]
    named = {k: merge_chunks([b.kwargs[k] for b in batches], kwargs_chunk_spec.get(k, whole)) for k in first.kwargs}
    return MicroBatch(tuple(args), named, sum(batch.weight for batch in batches))


def chunk_sizes(total: int, chunks: int) -> list[int]:
    """Return `chunks` sizes that sum to `total`; ValueError if some would be 0, TypeError for a non-integer.

    >>> chunk_sizes(7, 3)
    [3, 2, 2]
    """
    if not isinstance(chunks, int):
        raise TypeError(f"split: the number of microbatches must be an integer, got {chunks!r}")
    if not 1 <= chunks <= total:
        raise ValueError(f"split: a batch of {total} examples can't make {chunks} microbatches")
    return [total // chunks + (i < total % chunks) for i in range(chunks)]


def element_shares(values: Sequence[Any]) -> list[float] | None:
    """Return each value's share of all elements if examples differ in size, within or between the values, else None."""
    rows = [tensors_in(value) for value in values]
    alike = len(set(map(len, rows))) == 1  # so that the tensors of one number correspond
    sizes: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    for row in rows:
        for number, tensor in enumerate(row):
            sizes[number].add(tuple(tensor.shape[1:]) if symbolic(tensor.shape) is None else (-1,))
    counts = [
        sum(
            tensor.numel()
            for number, tensor in enumerate(row)
            if symbolic(tensor.shape) is not None or (alike and len(sizes[number]) > 1)
        )
        for row in rows
    ]
    return [count / sum(counts) for count in counts] if any(counts) else None


def tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors in nested tuples, lists and dicts."""
    return [leaf for leaf in optree.tree_leaves(value, none_is_leaf=True) if isinstance(leaf, Tensor)]


def _with_tensors(value: Any) -> Any:
    """Convert NumPy arrays in nested tuples, lists and dicts to tensors."""

    def convert(leaf: Any) -> Any:
        return as_tensor(leaf) if hasattr(leaf, "__array__") and not isinstance(leaf, Tensor) else leaf

    return optree.tree_map(convert, value, none_is_leaf=True)


def _is_spec(value: Any) -> bool:
    return isinstance(value, Spec) or value is Replicate


def _check_spec(name: str, spec: Any) -> None:
    wrong = isinstance(spec, TensorChunkSpec) and not isinstance(spec.split_dim, int)
    if spec is not Replicate and (not isinstance(spec, Spec) or wrong):
        raise TypeError(f"{name}: expected a TensorChunkSpec(dimension) or Replicate() as chunk spec, got {spec!r}")


def _batch_size(named: dict[str, tuple[Any, Spec]]) -> int:
    sizes: dict[str, int] = {}
    for name, (value, spec) in named.items():
        _check_spec("split", spec)
        if isinstance(spec, TensorChunkSpec):
            for tensor in tensors_in(value):
                size = _size_along(name, tensor, spec.split_dim)
                if sizes.setdefault(name, size) != size:
                    raise ValueError(f"split: the tensors in {name} have batches of {sizes[name]} and of {size}")
    if not sizes:
        raise ValueError("split: no argument is a tensor to split")
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise ValueError(f"split: batch sizes differ ({listed}); declare the arguments that are not split Replicate()")
    return next(iter(sizes.values()))


def _size_along(name: str, tensor: Tensor, dim: int) -> int:
    if not -tensor.ndim <= dim < tensor.ndim:
        raise ValueError(
            f"split: {name}, of shape {tensor.shape}, has no dimension {dim} to split along; declare it "
            f"Replicate() in the chunk spec if every microbatch needs all of it"
        )
    return tensor.shape[dim]


def merge_chunks(chunks: Sequence[Any], chunk_spec: Any = None) -> Any:
    """Merge the outputs of all microbatches: tensors are joined along the split dimension; other values must agree.

    chunk_spec: one TensorChunkSpec, Replicate() or CustomReducer for all outputs, or several, nested as the outputs
     are.

    Raises ValueError for no chunks, for a tensor without dimensions, and for other values that differ between
    microbatches; TypeError for an invalid spec.

    >>> import retrograd as rg
    >>> merge_chunks([{"y": rg.ones(1)}, {"y": rg.zeros(2)}])
    {'y': tensor([1., 0., 0.])}
    """
    if not chunks:
        raise ValueError("merge: there are no chunks")
    if isinstance(chunk_spec, CustomReducer):
        return optree.tree_map(
            lambda *parts: reduce(chunk_spec.reduce_fn, parts, chunk_spec.init_value), *chunks, none_is_leaf=True
        )
    if isinstance(chunk_spec, Spec) or optree.tree_is_leaf(chunk_spec):
        _check_spec("merge", chunk_spec)
    elif chunk_spec is not None:
        return optree.tree_map(
            lambda spec, *parts: merge_chunks(parts, spec),
            chunk_spec,
            *chunks,
            is_leaf=lambda spec: isinstance(spec, TensorChunkSpec),
            none_is_leaf=True,
        )
    dim = chunk_spec.split_dim if isinstance(chunk_spec, TensorChunkSpec) else 0

    def merge(first: Any, *rest: Any) -> Any:
        if not rest or isinstance(chunk_spec, Replicate):
            return first
        if isinstance(first, Tensor) and first.ndim:
            return registry["cat"]([first, *rest], dim=dim)
        if isinstance(first, Tensor) or any(other is not first and other != first for other in rest):
            raise ValueError(f"merge: {first!r} has no batch to join along; return one value per example")
        return first

    return optree.tree_map(merge, *chunks, none_is_leaf=True)


suggest_in_module(globals())
