"""Initial values in PyTorch's distributions: `<name>_(tensor, ...)` writes in place and returns the tensor.

Random ones draw from the default generator unless `generator` is given.
"""

import math
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor, operator_named
from retrograd.core.errors import OperandValueError
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.deprecated_names import older_name
from retrograd.nn.part_filling import fill_whole
from retrograd.nn.tensor_part import TensorPart
from retrograd.ops.create import eye, zeros
from retrograd.ops.random import Generator, rand, randn

_argsort = operator_named("argsort")
_qr = operator_named("linalg.qr")
_where = operator_named("where")
_GAINS = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
_LINEAR = {"linear", "sigmoid"} | {f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)}


def _write(tensor: Any, value: Any) -> Any:
    with no_grad():
        return tensor.copy_(value)


@fill_whole
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with values uniform between a and b; OperandValueError if a is above b.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> bool((nn.init.uniform_(rg.empty(3), 2.0, 3.0) >= 2).all())
    True
    """
    if not a <= b:
        raise OperandValueError(f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}")
    return _write(
        tensor, rand(tensor.shape, generator=generator, dtype=tensor.dtype, device=tensor.device) * (b - a) + a
    )


@fill_whole
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with values from the normal distribution; OperandValueError for a negative standard deviation."""
    if std < 0:
        raise OperandValueError(f"normal_: normal expects std >= 0.0, but found std {std}")
    return _write(
        tensor, randn(tensor.shape, generator=generator, dtype=tensor.dtype, device=tensor.device) * std + mean
    )


@fill_whole
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with values from the normal distribution, redrawn until they are between a and b.

    Raises ValueError if less than one draw in a thousand would be.
    """
    share = (math.erf((b - mean) / (std * math.sqrt(2))) - math.erf((a - mean) / (std * math.sqrt(2)))) / 2
    if share < 1e-3:
        raise ValueError(
            f"trunc_normal_: with mean {mean} and std {std}, only a share of {share:.1g} is between {a} and {b}"
        )
    if not a - 2 * std <= mean <= b + 2 * std:
        warn_user("mean is more than 2 std from [a, b] in nn.init.trunc_normal_: the tails alone are drawn from")
    normal_(tensor, mean, std, generator)
    while (outside := tensor.detach().clamp(a, b) != tensor.detach()).any():
        redrawn = randn(tensor.shape, generator=generator, dtype=tensor.dtype, device=tensor.device) * std + mean
        _write(tensor, _where(outside, redrawn, tensor.detach()))
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    return _write(tensor, val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return _write(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return _write(tensor, 1)


def fans(tensor: Tensor) -> tuple[int, int]:
    """Return (fan_in, fan_out) of a weight (out, in, ...): inputs per output, and outputs per input.

    >>> import retrograd as rg
    >>> fans(rg.empty(3, 4))
    (4, 3)
    """
    shape = tensor.whole_shape if isinstance(tensor, TensorPart) else tensor.shape
    if len(shape) < 2:
        raise ValueError(
            f"Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got shape {shape}"
        )
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


_calculate_fan_in_and_fan_out = fans  # PyTorch's name, which users import for their own initial values


class NegativeSlopeError(ValueError, TypeError):
    """The error for a slope that is no number."""


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that preserves the scale of activations through a nonlinearity; `param`: leaky_relu's slope.

    >>> calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity == "leaky_relu":
        if isinstance(param, bool) or not isinstance(param, float | int | None):
            raise NegativeSlopeError(f"calculate_gain: negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity not in _GAINS:
        known = ", ".join(sorted([*_GAINS, *_LINEAR, "leaky_relu"]))
        raise ValueError(f"calculate_gain: Unsupported nonlinearity {nonlinearity}: it must be one of {known}")
    return _GAINS[nonlinearity]


@fill_whole
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform values of variance gain² · 2 / (fan in + fan out): Glorot and Bengio, AISTATS 2010."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@fill_whole
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal values of variance gain² · 2 / (fan in + fan out): Glorot and Bengio, AISTATS 2010."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = fans(tensor)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan_in if mode == "fan_in" else fan_out)


def _has_nothing(tensor: Any) -> bool:
    if 0 in tensor.shape:
        warn_user("Initializing zero-element tensors is a no-op")
    return 0 in tensor.shape


@fill_whole
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with uniform values of variance gain² / fan: He et al., ICCV 2015; `a` is the slope of leaky_relu.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> bool(nn.init.kaiming_uniform_(rg.empty(2, 6), nonlinearity="relu").abs().amax() <= 1)
    True
    """
    if _has_nothing(tensor):
        return tensor
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@fill_whole
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal values of variance gain² / fan: He et al., ICCV 2015; `a` is the slope of leaky_relu."""
    if _has_nothing(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _check_ndim(name: str, tensor: Any, *dims: int) -> None:
    if tensor.ndim not in dims:
        expected = " or ".join(str(d) for d in dims)
        raise ValueError(f"{name}: expected a tensor of {expected} dimensions, got shape {tensor.shape}")


@fill_whole
def eye_(tensor: Tensor) -> Tensor:
    """Fill with the identity matrix, of any two sizes.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.init.eye_(rg.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    _check_ndim("eye_", tensor, 2)
    return _write(tensor, eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@fill_whole
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill kernels (out, in, ...) so that the convolution passes as many inputs as possible in each group.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.init.dirac_(rg.empty(2, 2, 3)).tolist()
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """
    _check_ndim("dirac_", tensor, 3, 4, 5)
    if groups < 1 or tensor.shape[0] % groups:
        raise ValueError(f"dirac_: {tensor.shape[0]} outputs can't be divided into {groups} groups")
    outputs = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    kernel = zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    for channel in range(min(outputs, tensor.shape[1])):
        for group in range(groups):
            kernel[(group * outputs + channel, channel, *middle)] = 1
    return _write(tensor, kernel)


@fill_whole
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with gain times a random matrix with orthogonal rows, or columns if fewer; dimensions after 0 are flattened.

    Saxe, McClelland and Ganguli, ICLR 2014.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> x = nn.init.orthogonal_(rg.empty(3, 5), gain=2.0)
    >>> bool((x @ x.mT - 4 * rg.eye(3)).abs().amax() < 1e-4)
    True
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: expected a tensor of at least 2 dimensions, got shape {tensor.shape}")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    q, r = _qr(
        randn((max(rows, columns), min(rows, columns)), generator=generator, dtype=tensor.dtype, device=tensor.device)
    )
    q = q * r.diagonal().sign()  # QR alone would not give a uniform distribution
    return _write(tensor, (q.mT if rows < columns else q).reshape(tensor.shape) * gain)


@fill_whole
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill with N(0, std²), and zeros in a fraction `sparsity` of each column: Martens, ICML 2010.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> (nn.init.sparse_(rg.empty(4, 3), sparsity=0.5) == 0).sum(0).tolist()
    [2, 2, 2]
    """
    _check_ndim("sparse_", tensor, 2)
    if not 0 <= sparsity <= 1:
        raise ValueError(f"sparse_: sparsity is a share, between 0 and 1, got {sparsity}")
    count = math.ceil(sparsity * tensor.shape[0])
    ranks = _argsort(_argsort(rand(tensor.shape, generator=generator, device=tensor.device), dim=0), dim=0)
    normal_(tensor, 0.0, std, generator)
    return _write(tensor, _where(ranks < count, 0.0, tensor.detach()))


suggest_in_module(globals())

# --------------------------------------------------------------------------------------------------- older names

uniform = older_name(uniform_, "uniform", "nn.init")
normal = older_name(normal_, "normal", "nn.init")
constant = older_name(constant_, "constant", "nn.init")
dirac = older_name(dirac_, "dirac", "nn.init")
xavier_uniform = older_name(xavier_uniform_, "xavier_uniform", "nn.init")
xavier_normal = older_name(xavier_normal_, "xavier_normal", "nn.init")
kaiming_uniform = older_name(kaiming_uniform_, "kaiming_uniform", "nn.init")
kaiming_normal = older_name(kaiming_normal_, "kaiming_normal", "nn.init")
orthogonal = older_name(orthogonal_, "orthogonal", "nn.init")
sparse = older_name(sparse_, "sparse", "nn.init")
