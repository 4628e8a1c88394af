"""Collate examples into a batch."""

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import optree

from retrograd.backend import stack_arrays
from retrograd.core import Tensor, registry
from retrograd.core.errors import OperandValueError
from retrograd.ops import batch_loop
from retrograd.ops.as_tensor import as_tensor, tensor
from retrograd.ops.layout import strided

Join = Callable[[list[Tensor]], Tensor]
Table = dict[type | tuple[type, ...], Callable[..., Any]]


class EmptyBatchError(ValueError, IndexError):
    """The error for a batch without examples; IndexError in PyTorch."""


def default_collate(batch: Sequence[Any]) -> Any:
    """Return the batch of examples: tensors and arrays are stacked along a new first dimension, in any nesting.

    Numbers become a tensor, Python floats one of float64; text is collected in a tuple; mappings, named tuples and
    other sequences preserve their type, tuples become lists of batches.

    Raises ValueError for an empty batch and for examples whose shapes, lengths or names differ, and TypeError for
    types that cannot be collated, which need the loader's `collate_fn`.

    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    return _collate("default_collate", batch, _stack_tensors, default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: Table | None = None) -> Any:
    """Return the batch of examples as `default_collate`, with functions for some classes.

    collate_fn_map: class, or tuple of classes -> function `f(examples, *, collate_fn_map)` that returns their batch.

    >>> collate([(1, "a"), (2, "b")], collate_fn_map={str: lambda texts, *, collate_fn_map=None: "".join(texts)})
    [tensor([1, 2]), 'ab']
    """
    return _collate("collate", batch, _stack_tensors, collate_fn_map or {})


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Table | None = None) -> Tensor:
    """Return tensors as one, stacked along a new first dimension; OperandValueError if their shapes differ."""
    return _stack_tensors(list(batch))


default_collate_fn_map: Table = {Tensor: collate_tensor_fn}  # of `default_collate`; programs add their classes


def nested_collate(batch: Sequence[Any]) -> Any:
    """Collate as `default_collate`, but tensors with dimensions become the components of nested tensors.

    Examples may differ in shape; a field always gives the same kind of batch, even if the shapes happen to
    be equal.

    >>> import retrograd as rg
    >>> nested_collate([(rg.ones(2), 0), (rg.ones(3), 1)])
    [nested_tensor([
      tensor([1., 1.]),
      tensor([1., 1., 1.])
    ]), tensor([0, 1])]
    """
    return _collate("nested_collate", batch, _nest_tensors, {})


def default_convert(data: Any) -> Any:
    """Convert arrays in any nesting to tensors, as a loader without batches does; tuples become lists.

    Arrays of texts and of objects stay as they are.

    >>> import numpy as np
    >>> default_convert({"x": np.ones(2), "name": "a"})
    {'x': tensor([1., 1.], dtype=float64), 'name': 'a'}
    """
    if _is_array(data):
        return data if data.dtype.kind in _NO_NUMBERS else as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {name: default_convert(value) for name, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild_sequence(data, [default_convert(value) for value in data])
    return data


def _of_class(value: Any, table: Table) -> Callable[..., Any] | None:
    """Return the function of a table for the class of a value, or else for a class that it is an instance of."""
    return table.get(type(value)) or next(
        (function for kind, function in table.items() if isinstance(value, kind)), None
    )


def _collate(name: str, batch: Sequence[Any], join: Join, table: Table) -> Any:
    if not batch:
        raise EmptyBatchError(f"{name}: a batch has at least one example, got none")
    first = batch[0]
    own = _of_class(first, table)
    if own is not None and own is not collate_tensor_fn:
        return own(batch, collate_fn_map=table)
    if _is_array(first):
        if join is _stack_tensors and not isinstance(first, Tensor):
            stacked = stack_arrays(batch)
            if stacked is not None:
                return as_tensor(stacked)
        return join([as_tensor(example) for example in batch])
    if isinstance(first, (bool, int, float, complex)):
        return tensor(list(batch), dtype=_dtype(batch))
    if isinstance(first, (str, bytes)):
        return batch
    return _collate_members(name, batch, join, table)


def _collate_members(name: str, batch: Sequence[Any], join: Join, table: Table) -> Any:
    """Collate the members of examples."""
    first = batch[0]
    if isinstance(first, Mapping):
        _check_names(name, batch)
        return _rebuild_mapping(
            first, {key: _collate(name, [example[key] for example in batch], join, table) for key in first}
        )
    if isinstance(first, Sequence):
        lengths = {len(example) for example in batch}
        if len(lengths) > 1:
            raise OperandValueError(f"{name}: each element in list of batch should be of equal size, got {lengths}")
        return _rebuild_sequence(first, [_collate(name, part, join, table) for part in zip(*batch, strict=True)])
    raise TypeError(
        f"{name}: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}; give the "
        f"loader a collate_fn"
    )


def _check_names(name: str, batch: Sequence[Mapping[Any, Any]]) -> None:
    for i, example in enumerate(batch):
        if example.keys() != batch[0].keys():
            raise ValueError(
                f"{name}: the examples differ in names: example 0 has {list(batch[0])}, example {i} has {list(example)}"
            )


def _rebuild_mapping(data: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """Return values in a mapping of the same type as `data`, or a dict if that type cannot be constructed from one.

    A copy of a mutable mapping keeps what else it has, such as the `default_factory` of a defaultdict.
    """
    try:
        if isinstance(data, MutableMapping) and type(data) is not dict:
            copied = copy.copy(data)
            copied.update(values)
            return copied
        return values if type(data) is dict else type(data)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _rebuild_sequence(data: Sequence[Any], values: list[Any]) -> Any:
    """Return values in a sequence of the same type as `data`; a list for tuples and types that cannot be made of one.

    A copy of a mutable sequence keeps what else it has, such as the `maxlen` of a deque.
    """
    if hasattr(data, "_fields"):
        return type(data)(*values)
    if isinstance(data, (tuple, range)) or type(data) is list:
        return values
    try:
        if not isinstance(data, MutableSequence):
            return type(data)(values)  # type: ignore[call-arg]
        copied = copy.copy(data)
        for index, value in enumerate(values):
            copied[index] = value
        return copied
    except TypeError:
        return values


def pin_batch(batch: Any) -> Any:
    """Return a batch with its dense tensors in pinned memory. RuntimeError without a GPU."""
    return optree.tree_map(lambda x: x.pin_memory() if isinstance(x, Tensor) and x.layout is strided else x, batch)


_NO_NUMBERS = "SUO"  # the kinds of dtypes of texts and objects


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _dtype(numbers: Sequence[Any]) -> str:
    """Return the dtype that represents Python numbers without loss."""
    kinds = {type(number) for number in numbers}
    return "complex128" if complex in kinds else "float64" if float in kinds else "bool" if kinds == {bool} else "int64"


def _stack_tensors(tensors: list[Tensor]) -> Tensor:
    shapes = list(dict.fromkeys(tensor.shape for tensor in tensors))
    if len(shapes) > 1:
        index = next(i for i, tensor in enumerate(tensors) if tensor.shape != shapes[0])
        raise OperandValueError(
            f"default_collate: the examples differ in shape: {', '.join(map(str, shapes[:4]))}; "
            f"collate_fn=nested_collate makes nested tensors of them: stack expects each tensor to be equal size, but "
            f"got {[*shapes[0]]} at entry 0 and {[*tensors[index].shape]} at entry {index}"
        )
    return registry["stack"](tensors)


def _nest_tensors(tensors: list[Tensor]) -> Tensor:
    return batch_loop.joins[0](tensors) if any(tensor.ndim for tensor in tensors) else _stack_tensors(tensors)
