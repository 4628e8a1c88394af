"""retrograd: PyTorch's automatic differentiation for NumPy arrays."""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from retrograd import autograd as autograd
from retrograd import ops as ops
from retrograd.autograd import enable_grad as enable_grad
from retrograd.autograd import inference_mode as inference_mode
from retrograd.autograd import is_grad_enabled as is_grad_enabled
from retrograd.autograd import is_inference_mode_enabled as is_inference_mode_enabled
from retrograd.autograd import no_grad as no_grad
from retrograd.autograd import set_grad_enabled as set_grad_enabled
from retrograd.backend.type_info import finfo as finfo
from retrograd.backend.type_info import iinfo as iinfo
from retrograd.core import Tensor as Tensor
from retrograd.core.device import device as device
from retrograd.core.dtype import complex64 as complex64
from retrograd.core.dtype import complex128 as complex128
from retrograd.core.dtype import float16 as float16
from retrograd.core.dtype import float32 as float32
from retrograd.core.dtype import float64 as float64
from retrograd.core.dtype import get_default_dtype as get_default_dtype
from retrograd.core.dtype import int8 as int8
from retrograd.core.dtype import int16 as int16
from retrograd.core.dtype import int32 as int32
from retrograd.core.dtype import int64 as int64
from retrograd.core.dtype import set_default_dtype as set_default_dtype
from retrograd.core.dtype import uint8 as uint8
from retrograd.core.dtype import uint16 as uint16
from retrograd.core.dtype import uint32 as uint32
from retrograd.core.dtype import uint64 as uint64
from retrograd.core.errors import AcceleratorError as AcceleratorError
from retrograd.core.errors import OutOfMemoryError as OutOfMemoryError
from retrograd.foundation import alias_modules as _aliases
from retrograd.foundation import lazy_imports as _lazy
from retrograd.interop import numpy_protocol as _numpy_protocol  # noqa: F401
from retrograd.ops import batch_loop as _examples
from retrograd.ops import pickling as _pickling
from retrograd.ops.dtype_aliases import SymInt as SymInt
from retrograd.ops.dtype_aliases import bool as bool
from retrograd.ops.dtype_aliases import cdouble as cdouble
from retrograd.ops.dtype_aliases import cfloat as cfloat
from retrograd.ops.dtype_aliases import double as double
from retrograd.ops.dtype_aliases import dtype as dtype
from retrograd.ops.dtype_aliases import float as float
from retrograd.ops.dtype_aliases import half as half
from retrograd.ops.dtype_aliases import int as int
from retrograd.ops.dtype_aliases import long as long
from retrograd.ops.dtype_aliases import short as short
from retrograd.ops.generator import Generator as Generator
from retrograd.ops.generator import default_generator as default_generator
from retrograd.ops.layout import Size as Size
from retrograd.ops.layout import channels_last as channels_last
from retrograd.ops.layout import channels_last_3d as channels_last_3d
from retrograd.ops.layout import contiguous_format as contiguous_format
from retrograd.ops.layout import jagged as jagged
from retrograd.ops.layout import layout as layout
from retrograd.ops.layout import legacy_contiguous_format as legacy_contiguous_format
from retrograd.ops.layout import memory_format as memory_format
from retrograd.ops.layout import preserve_format as preserve_format
from retrograd.ops.layout import sparse_bsc as sparse_bsc
from retrograd.ops.layout import sparse_bsr as sparse_bsr
from retrograd.ops.layout import sparse_coo as sparse_coo
from retrograd.ops.layout import sparse_csc as sparse_csc
from retrograd.ops.layout import sparse_csr as sparse_csr
from retrograd.ops.layout import strided as strided
from retrograd.ops.legacy import BFloat16Tensor as BFloat16Tensor
from retrograd.ops.legacy import BoolTensor as BoolTensor
from retrograd.ops.legacy import ByteTensor as ByteTensor
from retrograd.ops.legacy import CharTensor as CharTensor
from retrograd.ops.legacy import DoubleTensor as DoubleTensor
from retrograd.ops.legacy import FloatTensor as FloatTensor
from retrograd.ops.legacy import HalfTensor as HalfTensor
from retrograd.ops.legacy import IntTensor as IntTensor
from retrograd.ops.legacy import LongTensor as LongTensor
from retrograd.ops.legacy import ShortTensor as ShortTensor
from retrograd.ops.legacy import has_lapack as has_lapack
from retrograd.ops.legacy import has_mkl as has_mkl
from retrograd.ops.legacy import has_openmp as has_openmp
from retrograd.ops.legacy import has_spectral as has_spectral

__version__ = "0.1.0"
newaxis = None  # in an index, a new dimension of size 1

ops.publish.announce(
    {
        "sparse": (
            "sparse.from_values sparse.lookup sparse.without_entries",
            "ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy resize_as_sparse_ "
            "row_indices_copy saddmm smm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor "
            "sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm sspaddmm values_copy",
            "",
            "_coalesced_ _indices _nnz _values ccol_indices coalesce col_indices crow_indices indices is_coalesced "
            "resize_as_sparse_ row_indices smm sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm to_sparse "
            "to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr",
        )
    },
    "retrograd",
)
ops.publish.announce(
    {"array_namespace": ("", "", "", "__array_namespace__ to_device"), "notebooks": ("", "", "", "_repr_html_")},
    "retrograd.interop",
)
globals().update(ops.imported())  # operators and public functions, by their names; the others on first use

_PACKAGES = (
    "_C", "_custom_ops", "accelerator", "amp", "backends", "cli", "compiler", "cpu", "cuda", "distributed",
    "distributions", "export", "fft", "func", "futures", "fx", "higher_order", "hips", "hub", "implicit", "interop",
    "library", "linalg", "masked", "mps", "mtia", "multiprocessing", "nested", "nn", "numpy", "ode", "optim",
    "overrides", "pipelining", "profiler", "quasirandom", "random", "return_types", "scipy", "serialization", "signal",
    "sklearn", "sparse", "special", "testing", "types", "utils", "version", "xpu",
)  # fmt: skip
_OF_ARRAYS = (
    "deriv", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian", "hessian_tensor_product",
    "hessian_vector_product", "holomorphic_grad", "jacobian", "make_ggnvp", "make_hvp", "make_jvp", "make_vjp",
    "multigrad_dict", "tensor_jacobian_product", "value_and_grad", "vector_jacobian_product",
)  # fmt: skip
_OF_SMALL_MODULES = {
    "Future": "retrograd.futures",
    "SymBool": "retrograd.ops.symbolic",
    "SymFloat": "retrograd.ops.symbolic",
    **dict.fromkeys(
        (
            "BFloat16Storage",
            "BoolStorage",
            "ByteStorage",
            "CharStorage",
            "ComplexDoubleStorage",
            "ComplexFloatStorage",
            "DoubleStorage",
            "FloatStorage",
            "HalfStorage",
            "IntStorage",
            "LongStorage",
            "ShortStorage",
            "TypedStorage",
            "UntypedStorage",
        ),
        "retrograd.ops.storage",
    ),
    "explain": "retrograd.autograd",
    "is_anomaly_check_nan_enabled": "retrograd.autograd",
    "is_anomaly_enabled": "retrograd.autograd",
    "show_config": "retrograd.kernels.build_report",
}
_HOMES = {
    "_nested_from_padded": "retrograd.nested.padded_constructors",
    "_nested_from_padded_and_nested_example": "retrograd.nested.padded_constructors",
    "_nested_tensor_from_mask": "retrograd.nested.padded_constructors",
    "_nested_tensor_from_mask_left_aligned": "retrograd.nested.padded_constructors",
    "_nested_view_from_buffer": "retrograd.nested.padded_constructors",
    "Tag": "retrograd.library",
    "cond": "retrograd.higher_order",
    "GradScaler": "retrograd.amp",
    "autocast": "retrograd.amp",
    "bfloat16": "retrograd.core.extension_dtypes",
    "float8_e4m3fn": "retrograd.core.extension_dtypes",
    "float8_e4m3fnuz": "retrograd.core.extension_dtypes",
    "float8_e5m2": "retrograd.core.extension_dtypes",
    "float8_e5m2fnuz": "retrograd.core.extension_dtypes",
    "float8_e8m0fnu": "retrograd.core.extension_dtypes",
    "int2": "retrograd.core.extension_dtypes",
    "int4": "retrograd.core.extension_dtypes",
    "uint2": "retrograd.core.extension_dtypes",
    "uint4": "retrograd.core.extension_dtypes",
    "compile": "retrograd.compiler",
    "clear_autocast_cache": "retrograd.amp.autocast_mode",
    "get_autocast_cpu_dtype": "retrograd.amp.autocast_mode",
    "get_autocast_dtype": "retrograd.amp.autocast_mode",
    "get_autocast_gpu_dtype": "retrograd.amp.autocast_mode",
    "is_autocast_cpu_enabled": "retrograd.amp.autocast_mode",
    "is_autocast_enabled": "retrograd.amp.autocast_mode",
    "set_autocast_cpu_dtype": "retrograd.amp.autocast_mode",
    "set_autocast_dtype": "retrograd.amp.autocast_mode",
    "set_autocast_gpu_dtype": "retrograd.amp.autocast_mode",
    "vmap": "retrograd.func",
    "load": "retrograd.interop.files",
    "save": "retrograd.interop.files",
    "get_device_module": "retrograd.cuda",
    "get_num_interop_threads": "retrograd.utils.threads",
    "get_num_threads": "retrograd.utils",
    "init_num_threads": "retrograd.utils.threads",
    "set_num_interop_threads": "retrograd.utils.threads",
    "set_num_threads": "retrograd.utils",
    "thread_safe_generator": "retrograd.utils.data.worker",
}

_names = ops.public_names()
# Packages and function transforms are imported on first use: not every program needs them.
__getattr__, __dir__ = _lazy.lazy_names(
    "retrograd",
    {name: f"retrograd.{name}" for name in _PACKAGES}
    | dict.fromkeys(_OF_ARRAYS, "retrograd.func.autograd_api")
    | dict.fromkeys(_names, "retrograd.ops.functions")
    | _OF_SMALL_MODULES
    | _HOMES,
)
__all__ = sorted(name for name in {*globals(), *_names, *_OF_SMALL_MODULES} if name[0] != "_")

_aliases.alias_modules("retrograd", lambda: _lazy.lazy_module("retrograd.module_aliases").MODULES)
_lazy.lazy_names("retrograd.library", {"opcheck": "retrograd.testing"})
_lazy.lazy_names(
    "retrograd.nn.utils.stateless",
    {"functional_call": "retrograd.func", "_reparametrize_module": "retrograd.func.modules"},
)
_lazy.lazy_names("retrograd.random", {"thread_safe_generator": "retrograd.utils.data.worker"})
_lazy.lazy_names("retrograd.nn.parallel", {"DistributedDataParallel": "retrograd.distributed.data_parallel"})
_pickling.member_classes["Parameter"] = lambda: _lazy.lazy_module("retrograd.nn").Parameter
_pickling.member_classes["Buffer"] = lambda: _lazy.lazy_module("retrograd.nn").Buffer
_examples.joins.append(lambda tensors: _lazy.lazy_module("retrograd.nested").as_nested_tensor(tensors))
