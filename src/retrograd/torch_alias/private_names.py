"""Private names of PyTorch that libraries use: `install` adds them to the modules of this package."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn

from retrograd.backend.type_info import finfo
from retrograd.core import Tensor, current, operator_named
from retrograd.core.op import registry
from retrograd.core.overrides import disabled_override
from retrograd.cuda.streams import Event as Event
from retrograd.cuda.streams import Stream as Stream
from retrograd.distributions.kl import _rules as _KL_RULES
from retrograd.library import api
from retrograd.linalg import LinAlgError, cholesky, solve_triangular
from retrograd.nn.hooks import BUFFER_HOOKS, MODULE_HOOKS, PARAMETER_HOOKS
from retrograd.nn.init import fans, normal_, uniform_
from retrograd.nn.parameter import Parameter
from retrograd.nn.state_loading import EXTRA_STATE
from retrograd.nn.transformer import _activation_function
from retrograd.ops.conditions import _check_tensor_all_with as _check_tensor_all_with
from retrograd.ops.conditions import _check_with as _check_with
from retrograd.ops.functions import functions
from retrograd.ops.generator import Generator as Generator
from retrograd.torch_alias.derivatives import _as_tuple as _as_tuple
from retrograd.torch_alias.derivatives import _construct_standard_basis_for as _construct_standard_basis_for
from retrograd.torch_alias.derivatives import _cubic_interpolate as _cubic_interpolate
from retrograd.torch_alias.derivatives import _grad_postprocess as _grad_postprocess
from retrograd.torch_alias.derivatives import _strong_wolfe as _strong_wolfe
from retrograd.torch_alias.derivatives import _tuple_postprocess as _tuple_postprocess
from retrograd.torch_alias.functorch_vmap import vmap as vmap
from retrograd.torch_alias.jit import ScriptFunction as ScriptFunction
from retrograd.torch_alias.jit import ScriptModule as ScriptModule
from retrograd.torch_alias.operator_names import aten as aten

# Path of a module below `torch` -> its names that exist only for the alias.
ADDED = {
    "": "Event PyTorchFileReader ScriptFunction ScriptModule Stream _check_tensor_all_with _check_with "
    "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _shape_as_tensor _softmax_backward_data bits8 "
    "chalf classes complex32 qint32 qint8 quint2x4 quint4x2 quint8 vmap",
    "_C": "DispatchKey DispatchKeySet Generator Graph Value _ExcludeDispatchKeyGuard _LinAlgError _TensorMeta "
    "_are_functorch_transforms_active _disabled_torch_function_impl",
    "autograd.functional": "_as_tuple _construct_standard_basis_for _grad_postprocess _tuple_postprocess",
    "autograd.profiler": "emit_nvtx",
    "distributions.kl": "_KL_REGISTRY",
    "distributions.multivariate_normal": "_precision_to_scale_tril",
    "distributions.transforms": "_clipped_sigmoid",
    "fx.experimental.proxy_tensor": "get_proxy_mode",
    "func": "vmap",
    "library": "register_fake",
    "nn.init": "_calculate_correct_fan _no_grad_normal_ _no_grad_uniform_",
    "nn.modules.module": "_EXTRA_STATE_KEY_SUFFIX _addindent _global_buffer_registration_hooks "
    "_global_module_registration_hooks _global_parameter_registration_hooks",
    "nn.modules.transformer": "_get_activation_fn",
    "nn.parameter": "_ParameterMeta",
    "ops": "aten load_library",
    "optim.lbfgs": "_cubic_interpolate _strong_wolfe",
    "serialization": "DEFAULT_PROTOCOL",
    "utils.data.dataloader": "_BaseDataLoaderIter _DatasetKind _MultiProcessingDataLoaderIter "
    "_SingleProcessDataLoaderIter _collate_fn_t _worker_init_fn_t",
    "utils.data._utils.collate": "np_str_obj_array_pattern",
    "utils._pytree": "SUPPORTED_NODES _get_node_type _list_flatten _list_flatten_with_keys _list_unflatten "
    "_namedtuple_flatten _namedtuple_unflatten",
}

DEFAULT_PROTOCOL = 2
_ParameterMeta = type(Parameter)
_KL_REGISTRY = _KL_RULES  # pairs of classes -> functions
_global_parameter_registration_hooks, _global_buffer_registration_hooks = PARAMETER_HOOKS, BUFFER_HOOKS
_global_module_registration_hooks = MODULE_HOOKS
_disabled_torch_function_impl = disabled_override
_EXTRA_STATE_KEY_SUFFIX = EXTRA_STATE
_LinAlgError = LinAlgError
_get_activation_fn = _activation_function
_no_grad_normal_, _no_grad_uniform_ = normal_, uniform_
np_str_obj_array_pattern = re.compile("[SaUO]")  # the kinds of NumPy's dtypes that no tensor has


class _AbsentDtype:
    """A dtype that no tensor has here: libraries compare those of tensors with it."""

    is_floating_point = is_complex = is_signed = False

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


bits8, qint32, qint8, quint2x4, quint4x2, quint8 = map(
    _AbsentDtype, ("bits8", "qint32", "qint8", "quint2x4", "quint4x2", "quint8")
)
complex32 = chalf = _AbsentDtype("complex32")
_TensorMeta = _get_node_type = type


def _shape_as_tensor(x: Tensor) -> Tensor:
    """Return the sizes of a tensor as a tensor of integers."""
    return functions["tensor"](list(x.shape), dtype=functions["arange"](1).dtype)


def _convert_indices_from_coo_to_csr(x: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Return where each of `size` rows begins, and the last ends, in sorted indices of rows."""
    rows = functions["arange"](size + 1, dtype=x.dtype)
    return operator_named("searchsorted")(x.contiguous(), rows, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the (2, n) indices of rows and columns of n elements, whose rows begin at `crow_indices`."""
    rows = functions["arange"](len(crow_indices) - 1).repeat_interleave(crow_indices.diff())
    pair = operator_named("stack")([col_indices, rows] if transpose else [rows, col_indices])
    return pair.to(functions["zeros"](0, dtype="int32" if out_int32 else "int64").dtype)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """Return the gradient of the input of a softmax from that of its output, and the output."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


class Graph:
    """A graph of TorchScript, which annotations name; there are none."""


class Value:
    """A value in such a graph."""


def _are_functorch_transforms_active() -> bool:
    """Return whether a transform, such as `vmap`, runs."""
    return current().level is not None


def _addindent(s_: str, numSpaces: int) -> str:
    """Return a text whose lines after the first are indented."""
    return s_.replace("\n", "\n" + numSpaces * " ")


def get_proxy_mode() -> None:
    """Return the mode in which a trace is recorded: None."""


class DispatchKey:
    """The keys by which PyTorch's C++ finds kernels."""

    AutocastCPU, AutocastCUDA, AutocastXPU, AutogradCPU, CPU, CUDA, Meta = range(7)


class DispatchKeySet(frozenset):
    """A set of such keys."""

    def __new__(cls, key: int) -> "DispatchKeySet":
        return super().__new__(cls, [key])


class _ExcludeDispatchKeyGuard(nullcontext):
    """A block without the kernels of some keys; of autocast, in which libraries call operators of C++."""


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """Return the sigmoid, at least the smallest normal number, and less than 1 by at least eps."""
    limits = finfo(x.dtype)
    return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return the lower triangular factor of a covariance, whose inverse is given."""
    factor = cholesky(precision.flip(-2, -1)).flip(-2, -1).mT
    unit = functions["eye"](precision.shape[-1], dtype=precision.dtype)
    return solve_triangular(factor, unit, upper=False)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """Return the number of inputs ("fan_in") or outputs ("fan_out") of each unit of a weight."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode == "fan_out"]


def _list_flatten(d: list) -> tuple[list, None]:
    """Return the members of a list, and None."""
    return d, None


def _list_flatten_with_keys(d: list) -> tuple[list, None]:
    """Return the members of a list with their indices, and None."""
    return list(enumerate(d)), None


def _list_unflatten(values: Any, context: Any) -> list:
    """Return a list of some members."""
    return list(values)


def _namedtuple_flatten(d: Any) -> tuple[list, Any]:
    """Return the members of a named tuple, and its class."""
    return list(d), type(d)


def _namedtuple_unflatten(values: Any, context: Any) -> Any:
    """Return a named tuple of some members and a class."""
    return context(*values)


def load_library(path: str) -> NoReturn:
    """Raise OSError: libraries of PyTorch's C++ are not loaded."""
    raise OSError(f"torch.ops.load_library: {path} is made for PyTorch's C++, which does not exist here")


def register_fake(op: Any, func: Callable | None = None, /, **settings: Any) -> Any:
    """Register a function of shapes as `rg.library.register_fake`; nothing for operators of C++."""
    if func is None:
        return partial(register_fake, op, **settings)
    if isinstance(op, str) and op not in registry:
        return func
    return api.register_fake(op, func, **settings)


class _Classes:
    """The classes of C++, `torch.classes`: there are none."""

    def load_library(self, path: str) -> NoReturn:
        """Raise OSError."""
        load_library(path)


classes = _Classes()


class PyTorchFileReader:
    """A reader of PyTorch's files; `torch.load` has one of its own."""


class emit_nvtx(nullcontext):
    """A block; nothing is reported to a profiler of devices."""


_collate_fn_t = Callable[[list], Any]
_worker_init_fn_t = Callable[[int], None]
SUPPORTED_NODES: dict[type, Any] = {}  # which libraries search for their own classes


class _BaseDataLoaderIter:
    """The base of iterators over batches; those of this package have other classes."""


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """An iterator without worker processes."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """An iterator with worker processes."""


class _DatasetKind:
    """The kinds of datasets."""

    Map, Iterable = 0, 1


PRINT_OPTS = SimpleNamespace(precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=None)


def _tensor_str(x: Tensor, indent: int = 0) -> str:
    """Return the printed elements of a tensor."""
    return repr(x.detach()).removeprefix("tensor(").removesuffix(")")


def get_enum(reduction: str) -> int:
    """Return the number of a reduction of losses: 0, 1 or 2.

    >>> get_enum("mean")
    1
    """
    numbers = {"none": 0, "mean": 1, "sum": 2}
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return numbers[reduction]


def _vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Callable:
    """Return a function of batches."""
    return vmap(func, in_dims, out_dims)
