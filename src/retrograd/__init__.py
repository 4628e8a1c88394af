"""retrograd: PyTorch's automatic differentiation for NumPy arrays."""

import importlib

from retrograd import autograd as autograd
from retrograd import ops as ops
from retrograd.autograd import enable_grad as enable_grad
from retrograd.autograd import explain as explain
from retrograd.autograd import inference_mode as inference_mode
from retrograd.autograd import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from retrograd.autograd import is_anomaly_enabled as is_anomaly_enabled
from retrograd.autograd import is_grad_enabled as is_grad_enabled
from retrograd.autograd import is_inference_mode_enabled as is_inference_mode_enabled
from retrograd.autograd import no_grad as no_grad
from retrograd.autograd import set_grad_enabled as set_grad_enabled
from retrograd.core import Tensor as Tensor
from retrograd.core.build import show_config as show_config
from retrograd.core.dtype import bool_ as bool  # noqa: F401
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
from retrograd.ops.create import arange as arange
from retrograd.ops.create import as_tensor as as_tensor
from retrograd.ops.create import empty as empty
from retrograd.ops.create import eye as eye
from retrograd.ops.create import from_numpy as from_numpy
from retrograd.ops.create import full as full
from retrograd.ops.create import linspace as linspace
from retrograd.ops.create import ones as ones
from retrograd.ops.create import tensor as tensor
from retrograd.ops.create import zeros as zeros
from retrograd.ops.methods import is_complex as is_complex
from retrograd.ops.random import Generator as Generator
from retrograd.ops.random import default_generator as default_generator
from retrograd.ops.random import get_rng_state as get_rng_state
from retrograd.ops.random import manual_seed as manual_seed
from retrograd.ops.random import normal as normal
from retrograd.ops.random import rand as rand
from retrograd.ops.random import rand_like as rand_like
from retrograd.ops.random import randint as randint
from retrograd.ops.random import randn as randn
from retrograd.ops.random import randn_like as randn_like
from retrograd.ops.random import randperm as randperm
from retrograd.ops.random import set_rng_state as set_rng_state

__version__ = "0.1.0"

globals().update(ops.public())  # every operator and public function, by its names

_LATER = (
    "cli", "fft", "func", "fx", "interop", "linalg", "nn", "optim", "pipelining", "special", "testing", "utils",
)  # fmt: skip


def __getattr__(name: str) -> object:
    """The packages that not every program needs are imported when first asked for."""
    if name in _LATER:
        return importlib.import_module(f"retrograd.{name}")
    raise AttributeError(f"module 'retrograd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
