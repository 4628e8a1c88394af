"""Elementwise activations. They keep the shape, also of nested tensors.

With `inplace`, an activation overwrites its input with the result and returns it.
"""

from typing import Any

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.constructor_fields import field
from retrograd.nn.parameter import Parameter
from retrograd.nn.settings import Settings, layer
from retrograd.ops.create import full


class _Elementwise(Settings):
    """Base of activations: `_compute` is the function."""

    inplace = False

    def _compute(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function elementwise."""
        # Write in place into a copy, because the derivative may need the overwritten values.
        return input.copy_(self._compute(input.clone())) if self.inplace else self._compute(input)


@layer
class _InplaceOnly(_Elementwise):
    """Base of activations whose only argument is `inplace`."""

    inplace: bool = False


@layer
class _NoArguments(_Elementwise):
    """Base of activations without arguments."""


# ------------------------------------------------------------------------------------------ piecewise linear


class ReLU(_InplaceOnly):
    """max(x, 0).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ReLU()(rg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.relu(x)


@layer
class Hardtanh(_Elementwise):
    """x, but at least `min_val` and at most `max_val`; a ValueError unless the first is less.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Hardtanh(-2.0, 2.0)(rg.tensor([-3.0, 1.0, 5.0]))
    tensor([-2.,  1.,  2.])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def __post_init__(self) -> None:
        """Check that the bounds are in order."""
        low, high = self.min_val, self.max_val
        if not low < high:
            raise ValueError(f"{type(self).__name__}: min_val must be less than max_val, got {low} and {high}")

    def _compute(self, x: Tensor) -> Tensor:
        return F.hardtanh(x, self.min_val, self.max_val)


@layer
class ReLU6(Hardtanh):
    """x, but at least 0 and at most 6.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ReLU6()(rg.tensor([-1.0, 2.0, 7.0]))
    tensor([0., 2., 6.])
    """

    min_val: float = field(default=0.0, init=False)
    max_val: float = field(default=6.0, init=False)
    inplace: bool = False

    def extra_repr(self) -> str:
        """Return the settings that are arguments of the class."""
        return "inplace=True" if self.inplace else ""


@layer
class LeakyReLU(_Elementwise):
    """x where x > 0, else negative_slope · x.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LeakyReLU(0.5)(rg.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    negative_slope: float = 0.01
    inplace: bool = False

    def _compute(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self.negative_slope)


class PReLU(_Elementwise):
    """x where x > 0, else weight · x, with learned slopes: He et al., ICCV 2015.

    `weight` (num_parameters) is one slope, or one per channel (dimension 1 of x). It starts as `init`, and should be
    excluded from weight decay.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.PReLU()(rg.tensor([-1.0, 2.0]))
    tensor([-0.2500,  2.0000], grad_fn=<PreluKernelBackward0>)
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_parameters=num_parameters)
        self.init = init
        self.weight = Parameter(full((num_parameters,), float(init), dtype=dtype, device=device))

    def reset_parameters(self) -> None:
        """Reset every slope to `init`."""
        self.weight.detach().fill_(self.init)

    def _compute(self, x: Tensor) -> Tensor:
        return F.prelu(x, self.weight)


@layer
class RReLU(_Elementwise):
    """x where x > 0, else slope · x; in training a random slope between two bounds for each element.

    In evaluation it is their mean: Xu et al., arXiv 1505.00853.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.RReLU(0.25, 0.75).eval()(rg.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False

    def _compute(self, x: Tensor) -> Tensor:
        return F.rrelu(x, self.lower, self.upper, self.training)


@layer
class Threshold(_Elementwise):
    """x where x > threshold, else value.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Threshold(1.0, 9.0)(rg.tensor([1.0, 2.0]))
    tensor([9., 2.])
    """

    threshold: float
    value: float
    inplace: bool = False

    def _compute(self, x: Tensor) -> Tensor:
        return F.threshold(x, self.threshold, self.value)


class Hardsigmoid(_InplaceOnly):
    """x / 6 + 1 / 2, but at least 0 and at most 1.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Hardsigmoid()(rg.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.hardsigmoid(x)


class Hardswish(_InplaceOnly):
    """x hardsigmoid(x): Howard et al., arXiv 1905.02244.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Hardswish()(rg.tensor([-4.0, 0.0, 4.0]))
    tensor([-0.,  0.,  4.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.hardswish(x)


@layer
class Hardshrink(_Elementwise):
    """x, but 0 from -lambd to lambd.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Hardshrink(1.0)(rg.tensor([0.5, 2.0]))
    tensor([0., 2.])
    """

    _repr_template = "{lambd}"
    lambd: float = 0.5

    def _compute(self, x: Tensor) -> Tensor:
        return F.hardshrink(x, self.lambd)


@layer
class Softshrink(_Elementwise):
    """x moved towards 0 by lambd, and not beyond.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Softshrink(1.0)(rg.tensor([0.5, 2.0]))
    tensor([0., 1.])
    """

    _repr_template = "{lambd}"
    lambd: float = 0.5

    def _compute(self, x: Tensor) -> Tensor:
        return F.softshrink(x, self.lambd)


# -------------------------------------------------------------------------------------------------------- smooth


@layer
class ELU(_Elementwise):
    """x where x > 0, else alpha (exp(x) - 1): Clevert et al., arXiv 1511.07289.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ELU(2.0)(rg.tensor([-50.0, 2.0]))
    tensor([-2.,  2.])
    """

    alpha: float = 1.0
    inplace: bool = False

    def _compute(self, x: Tensor) -> Tensor:
        return F.elu(x, self.alpha)


@layer
class CELU(_Elementwise):
    """x where x > 0, else alpha (exp(x / alpha) - 1): Barron, arXiv 1704.07483; alpha must not be 0.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.CELU(2.0)(rg.tensor([-90.0, 2.0]))
    tensor([-2.,  2.])
    """

    alpha: float = 1.0
    inplace: bool = False

    def _compute(self, x: Tensor) -> Tensor:
        return F.celu(x, self.alpha)


class SELU(_InplaceOnly):
    """1.0507 ELU(x, 1.6733), which keeps mean 0 and variance 1: Klambauer et al., arXiv 1706.02515.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.SELU()(rg.tensor([0.0]))
    tensor([0.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.selu(x)


@layer
class GELU(_Elementwise):
    """x Φ(x), with Φ the normal distribution function; approximate="tanh" is Hendrycks and Gimpel's formula.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.GELU()(rg.tensor([0.0]))
    tensor([0.])
    """

    approximate: str = "none"

    def _compute(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate=self.approximate)


class SiLU(_InplaceOnly):
    """x sigmoid(x).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.SiLU()(rg.tensor([0.0]))
    tensor([0.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.silu(x)


class Mish(_InplaceOnly):
    """x tanh(softplus(x)): Misra, arXiv 1908.08681.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Mish()(rg.tensor([0.0]))
    tensor([0.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.mish(x)


@layer
class Softplus(_Elementwise):
    """log(1 + exp(beta x)) / beta, and x itself where beta x is more than `threshold`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Softplus()(rg.tensor([-200.0, 200.0]))
    tensor([  0., 200.])
    """

    beta: float = 1.0
    threshold: float = 20.0

    def _compute(self, x: Tensor) -> Tensor:
        return F.softplus(x, self.beta, self.threshold)


class Softsign(_NoArguments):
    """x / (1 + |x|).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Softsign()(rg.tensor([-1.0, 1.0]))
    tensor([-0.5000,  0.5000])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.softsign(x)


class Sigmoid(_NoArguments):
    """1 / (1 + exp(-x)).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Sigmoid()(rg.tensor([0.0]))
    tensor([0.5000])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.sigmoid(x)


class LogSigmoid(_NoArguments):
    """log(1 / (1 + exp(-x))), without overflow.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LogSigmoid()(rg.tensor([-200.0]))
    tensor([-200.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.logsigmoid(x)


class Tanh(_NoArguments):
    """The hyperbolic tangent.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Tanh()(rg.tensor([0.0]))
    tensor([0.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.tanh(x)


class Tanhshrink(_NoArguments):
    """x - tanh(x).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Tanhshrink()(rg.tensor([0.0, 50.0]))
    tensor([ 0., 49.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.tanhshrink(x)
