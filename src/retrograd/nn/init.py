"""Initial values in PyTorch's distributions: `<name>_(tensor, ...)` writes in place and returns the tensor.

Random ones draw from the default generator, or from the `generator` that is given.
"""

import math
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor, operator_named
from retrograd.ops.random import Generator, rand, randn

_where = operator_named("where")
_GAINS = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
_LINEAR = {"linear", "conv1d", "conv2d", "conv3d", "sigmoid"}


def _write(tensor: Any, value: Any) -> Any:
    with no_grad():
        return tensor.copy_(value)


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Numbers uniform between a and b.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> bool((nn.init.uniform_(rg.empty(3), 2.0, 3.0) >= 2).all())
    True
    """
    return _write(tensor, rand(tensor.shape, generator=generator, dtype=tensor.dtype) * (b - a) + a)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Numbers from the normal distribution of that mean and standard deviation."""
    return _write(tensor, randn(tensor.shape, generator=generator, dtype=tensor.dtype) * std + mean)


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers from the normal distribution, drawn again until they lie between a and b.

    A ValueError says so if less than one in a thousand would.
    """
    share = (math.erf((b - mean) / (std * math.sqrt(2))) - math.erf((a - mean) / (std * math.sqrt(2)))) / 2
    if share < 1e-3:
        raise ValueError(
            f"trunc_normal_: with mean {mean} and std {std}, only a share of {share:.1g} lies between {a} and {b}"
        )
    normal_(tensor, mean, std, generator)
    while (outside := tensor.detach().clamp(a, b) != tensor.detach()).any():
        again = randn(tensor.shape, generator=generator, dtype=tensor.dtype) * std + mean
        _write(tensor, _where(outside, again, tensor.detach()))
    return tensor


def constant_(tensor: Any, val: float) -> Tensor:
    """The same number everywhere."""
    return _write(tensor, val)


def zeros_(tensor: Any) -> Tensor:
    """Zeros."""
    return _write(tensor, 0)


def ones_(tensor: Any) -> Tensor:
    """Ones."""
    return _write(tensor, 1)


def fans(tensor: Any) -> tuple[int, int]:
    """Of a weight (out, in, ...): how many inputs each output sums over, and how many outputs an input has.

    >>> import retrograd as rg
    >>> fans(rg.empty(3, 4))
    (4, 3)
    """
    if tensor.ndim < 2:
        raise ValueError(f"fan in and fan out need a tensor of at least 2 dimensions, got shape {tensor.shape}")
    receptive = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the scale of activations through a nonlinearity; `param`: leaky_relu's slope.

    >>> calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity not in _GAINS:
        known = ", ".join(sorted([*_GAINS, *_LINEAR, "leaky_relu"]))
        raise ValueError(f"calculate_gain: no gain is known for {nonlinearity!r}; it must be one of {known}")
    return _GAINS[nonlinearity]


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform of variance gain² · 2 / (fan in + fan out): Glorot and Bengio, AISTATS 2010."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal of variance gain² · 2 / (fan in + fan out): Glorot and Bengio, AISTATS 2010."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan_in, fan_out = fans(tensor)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan_in if mode == "fan_in" else fan_out)


def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform of variance gain² / fan: He et al., ICCV 2015; `a` is the slope of leaky_relu.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> bool(nn.init.kaiming_uniform_(rg.empty(2, 6), nonlinearity="relu").abs().amax() <= 1)
    True
    """
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal of variance gain² / fan: He et al., ICCV 2015; `a` is the slope of leaky_relu."""
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)
