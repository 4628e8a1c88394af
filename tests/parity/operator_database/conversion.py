"""Conversion of PyTorch's sample inputs to ours: tensors with their strides, dtypes, containers, functions."""

import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.masked

import retrograd as rg

UNAVAILABLE_DTYPES = (torch.complex32,)


class UnavailableError(Exception):
    """A value that our arrays cannot represent: complex32, a sparse or quantized tensor."""


def constructor_arguments(module: torch.nn.Module) -> dict[str, Any]:
    """Return the arguments that make a module of PyTorch again: those of an encoder layer, none for losses."""
    if not isinstance(module, torch.nn.TransformerEncoderLayer):
        return {}
    return {
        "d_model": module.self_attn.embed_dim,
        "nhead": module.self_attn.num_heads,
        "dim_feedforward": module.linear1.out_features,
        "dropout": module.dropout.p,
        "activation": Converter().convert(module.activation),
        "batch_first": module.self_attn.batch_first,
        "norm_first": module.norm_first,
        "bias": module.linear1.bias is not None,
    }


class Converter:
    """Convert values; tensors over one storage become tensors over one array."""

    def __init__(self) -> None:
        self._arrays: dict[int, np.ndarray] = {}
        self._tensors: dict[int, rg.Tensor] = {}
        self._alive: list[Any] = []  # ids stay unique while the objects live

    def convert(self, value: Any) -> Any:
        """Return our counterpart of a value."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.dtype):
            return self._dtype(value)
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
            return type(value)(self.convert(v) for v in value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return same_path(type(value))(*map(self.convert, value))
        if isinstance(value, dict):
            return {k: self.convert(v) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(*map(self.convert, (value.start, value.stop, value.step)))
        if isinstance(value, torch.memory_format | torch.layout | torch.device):
            return self._option(value)
        if isinstance(value, types.FunctionType):
            return same_path(value)
        if isinstance(value, types.BuiltinFunctionType):
            return getattr(rg.nn.functional, value.__name__)
        if isinstance(value, torch.nn.Module):
            return getattr(rg.nn, type(value).__name__)(**constructor_arguments(value))
        if isinstance(value, torch.Generator):
            return rg.Generator()
        return value

    def _option(self, value: Any) -> Any:
        if isinstance(value, torch.device):
            return rg.device(str(value))
        found = getattr(rg, str(value).removeprefix("torch."), None)
        if found is None:
            raise UnavailableError(f"{value}")
        return found

    def _dtype(self, dtype: torch.dtype) -> np.dtype:
        name = str(dtype).removeprefix("torch.")
        if not isinstance(getattr(rg, name, None), np.dtype | type):
            raise UnavailableError(name)
        return np.dtype(getattr(rg, name))

    def _tensor(self, tensor: torch.Tensor) -> rg.Tensor:
        if id(tensor) not in self._tensors:
            self._alive.append(tensor)
            if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
                raise UnavailableError(f"{tensor.layout}")
            made = rg.from_numpy(self._array(tensor.detach().resolve_conj().resolve_neg()))
            self._tensors[id(tensor)] = made.requires_grad_() if tensor.requires_grad else made
        return self._tensors[id(tensor)]

    def _array(self, tensor: torch.Tensor) -> np.ndarray:
        """Return a view, with the tensor's strides, of a copy of its storage."""
        dtype, storage = self._dtype(tensor.dtype), tensor.untyped_storage()
        self._alive.append(storage)
        key = storage.data_ptr()
        if key == 0 or tensor.numel() == 0:
            return np.empty(tuple(tensor.shape), dtype)
        if key not in self._arrays:
            whole = torch.empty(0, dtype=torch.uint8).set_(storage)
            self._arrays[key] = whole.numpy().copy()
        elements = self._arrays[key][: self._arrays[key].size // dtype.itemsize * dtype.itemsize].view(dtype)
        strides = [s * dtype.itemsize for s in tensor.stride()]
        try:
            return np.ndarray(tuple(tensor.shape), dtype, elements, tensor.storage_offset() * dtype.itemsize, strides)
        except ValueError:  # PyTorch resized its storage, to write a result of another shape
            raise UnavailableError("a tensor that reaches beyond its storage") from None


def _where_determined(function: Callable, input: Any, *args: Any, **params: Any) -> Any:
    """Return a masked reduction with zeros where its mask is false in whole slices, as PyTorch's tests compare it."""
    out, mask = function(input, *args, **params), params.get("mask")
    if mask is None:
        return out
    theirs = {key: torch.from_numpy(v.numpy()) if isinstance(v, rg.Tensor) else v for key, v in params.items()}
    theirs.pop("dtype", None)
    name = function.__name__.rpartition(".")[2]
    kept = torch.masked._output_mask(getattr(torch.masked, name), torch.empty(tuple(input.shape)), *args, **theirs)
    return rg.where(rg.from_numpy(kept.numpy()), out, 0)


def _where_both(function: Callable, input: Any, other: Any, **params: Any) -> Any:
    """Return a masked operation on two tensors with zeros where one of the masks is false, where both are given."""
    out, masks = function(input, other, **params), [params.get(f"{which}_mask") for which in ("input", "other")]
    if any(mask is None for mask in masks):
        return out
    return rg.where(rg.logical_and(*masks), out, 0)


_WRAPPERS = {
    "gradcheck_wrapper_masked_operation": _where_determined,
    "gradcheck_wrapper_masked_pointwise_operation": _where_both,
}


def rebind(function: Callable) -> Callable:
    """Return a Python function of PyTorch's tests with `torch`, `nn` and `F` bound to ours."""
    if getattr(function, "__name__", "") in _WRAPPERS:
        return _WRAPPERS[function.__name__]
    if isinstance(function, partial):
        return partial(same_path(function.func), *function.args, **function.keywords)
    if not isinstance(function, types.FunctionType) or not function.__module__.startswith("torch.testing"):
        return function
    made = types.FunctionType(
        function.__code__,
        {**function.__globals__, "torch": rg, "nn": rg.nn, "F": rg.nn.functional},
        function.__name__,
        function.__defaults__,
        tuple(types.CellType(_rebound(cell.cell_contents)) for cell in function.__closure__ or ()) or None,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _rebound(value: Any) -> Any:
    """Return what a closure holds, with functions rebound and tensors converted."""
    if isinstance(value, torch.Tensor):
        return Converter().convert(value)
    return same_path(value) if callable(value) and hasattr(value, "__qualname__") else value


def same_path(function: Callable) -> Callable:
    """Return our function of the same path as one of PyTorch's; one of PyTorch's tests rebound."""
    path = f"{function.__module__}.{function.__qualname__}".removeprefix("torch.")
    return member(rg, path) or rebind(function)


def member(root: Any, path: str) -> Any:
    """Return the object at a dotted path below `root`; None without one."""
    for name in path.split("."):
        root = getattr(root, name, None)
    return root
