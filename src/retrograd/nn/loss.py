"""Losses: `reduction` is "mean", "sum", or "none" for the loss of each element."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.core.errors import OperandValueError
from retrograd.foundation.describe_value import describe
from retrograd.foundation.older_forms import older_reduction
from retrograd.nn import functional as F
from retrograd.nn.constructor_fields import field
from retrograd.nn.linear import Linear
from retrograd.nn.settings import StoredSettings, buffer, check_positive, check_probability, layer
from retrograd.ops.create import full_like
from retrograd.ops.linear_cross_entropy_options import LinearCrossEntropyOptions


def check_reduction(name: str, value: str, *others: str) -> None:
    """Raise ValueError for an unknown reduction."""
    known = ("mean", "sum", "none", *others)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {describe(value)}")


def _check_kl_reduction(name: str, value: str) -> None:
    check_reduction(name, value, "batchmean")


class _Loss(StoredSettings):
    """Base of losses: they have a `reduction` of the elements' losses. Its constructor is PyTorch's, for subclasses."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        older = older_reduction("size_average reduce reduction")
        found = older(type(self).__name__, (size_average, reduce, reduction), {})
        super().__init__(**(found[1] if found else {"reduction": reduction}))


class _WeightedLoss(_Loss):
    """Base of losses with a `weight` of classes or elements, a buffer or None."""

    weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


@layer
class _PairLoss(_Loss):
    """Base of losses with the reduction as first argument."""

    reduction: str = field(default="mean", check=check_reduction)


@layer
class KeywordLoss(_Loss):
    """Base of losses with the reduction by keyword."""

    reduction: str = field(default="mean", check=check_reduction, kw_only=True)


class MSELoss(_PairLoss):
    """(x - y)²; input and target have the same shape.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MSELoss()(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0]))
    tensor(2.)
    """

    _older_form = staticmethod(older_reduction("size_average reduce reduction"))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_PairLoss):
    """|x - y|; input and target have the same shape.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.L1Loss()(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0]))
    tensor(1.)
    """

    _older_form = staticmethod(older_reduction("size_average reduce reduction"))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


@layer
class SmoothL1Loss(_PairLoss):
    """(x - y)² / (2 beta) where |x - y| < beta, else |x - y| - beta / 2.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.SmoothL1Loss()(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0]))
    tensor(0.7500)
    """

    _older_form = staticmethod(older_reduction("size_average reduce reduction beta"))

    beta: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


@layer
class HuberLoss(_PairLoss):
    """(x - y)² / 2 where |x - y| < delta, else delta (|x - y| - delta / 2): Huber, 1964.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.HuberLoss(delta=0.5)(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0]))
    tensor(0.4375)
    """

    delta: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


@layer
class KLDivLoss(_PairLoss):
    """y (log y - x): input x holds log-probabilities, target y probabilities, or their logs if `log_target`.

    reduction="batchmean" is the sum divided by the first size: the mathematical definition.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> p = rg.tensor([[0.5, 0.5]])
    >>> nn.KLDivLoss(reduction="batchmean")(p.log(), p)
    tensor(0.)
    """

    _older_form = staticmethod(older_reduction("size_average reduce reduction log_target"))

    reduction: str = field(default="mean", check=_check_kl_reduction)
    log_target: bool = False

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


@layer
class CrossEntropyLoss(_WeightedLoss):
    """-log softmax(x)[y]: input scores (N, C, ...) or (C), target class indices (N, ...) or ().

    The target may be probabilities shaped as the input. `weight` (C) weights the classes; "mean" divides by the sum of
    the targets' weights; targets equal to `ignore_index` are ignored.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.CrossEntropyLoss()(rg.zeros(3, 4), rg.tensor([0, 1, 3]))), 4)
    1.3863
    """

    _older_form = staticmethod(older_reduction("weight size_average ignore_index reduce reduction label_smoothing"))

    weight: Tensor | None = buffer(default=None)
    ignore_index: int = field(default=-100, kw_only=True)
    reduction: str = field(default="mean", check=check_reduction, kw_only=True)
    label_smoothing: float = field(default=0.0, check=check_probability, kw_only=True)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of scores and classes."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """`CrossEntropyLoss` of scores linear(x): input (N, in_features) or (in_features), target (N, *out_features).

    The scores of each row are (num_classes, *out_features); `linear` holds the parameters. ignore_index None is -100.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> loss = nn.LinearCrossEntropyLoss(3, 4)
    >>> _ = nn.init.zeros_(loss.linear.weight)
    >>> round(loss(rg.ones(2, 3), rg.tensor([0, 3])).item(), 4)
    1.3863
    """

    weight: Any

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        check_reduction("LinearCrossEntropyLoss: reduction", reduction)
        check_probability("LinearCrossEntropyLoss: label_smoothing", label_smoothing)
        if weight is not None and weight.shape != (num_classes,):
            raise OperandValueError(
                f"LinearCrossEntropyLoss: weight must have shape {(num_classes,)}, got {weight.shape}; expected weight "
                f"shape to be {(num_classes,)}, got {weight.shape}"
            )
        StoredSettings.__init__(
            self,
            num_classes=num_classes,
            out_features=out_features,
            reduction=reduction,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            options=options,
        )
        self.register_buffer("weight", weight)
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)

    def extra_repr(self) -> str:
        """Return the sizes and settings."""
        settings = "num_classes", "out_features", "bias", "reduction", "ignore_index", "label_smoothing", "options"
        values = {name: getattr(self, name, None) for name in settings} | {"bias": self.linear.bias is not None}
        return f"in_features={self.linear.in_features}, " + ", ".join(f"{k}={v}" for k, v in values.items())

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of features and classes."""
        classes = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*classes, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(classes),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )


@layer
class NLLLoss(_WeightedLoss):
    """-x[y]: input log-probabilities (N, C, ...) or (C), target class indices (N, ...) or ().

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.NLLLoss()(rg.tensor([[-1.0, -2.0]]), rg.tensor([1]))
    tensor(2.)
    """

    _older_form = staticmethod(older_reduction("weight size_average ignore_index reduce reduction"))

    weight: Tensor | None = buffer(default=None)
    ignore_index: int = field(default=-100, kw_only=True)
    reduction: str = field(default="mean", check=check_reduction, kw_only=True)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of log-probabilities and classes."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


@layer
class BCELoss(_WeightedLoss):
    """-(y log x + (1 - y) log(1 - x)): input probabilities and targets of one shape; `weight` broadcasts.

    Logarithms are clamped to at least -100, which keeps the loss finite.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.BCELoss()(rg.tensor([0.5]), rg.tensor([1.0]))), 4)
    0.6931
    """

    _older_form = staticmethod(older_reduction("weight size_average reduce reduction"))

    weight: Tensor | None = buffer(default=None)
    reduction: str = field(default="mean", check=check_reduction, kw_only=True)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


@layer
class BCEWithLogitsLoss(KeywordLoss):
    """`BCELoss` of sigmoid(x), without overflow; `pos_weight` weights the positive targets.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.BCEWithLogitsLoss()(rg.tensor([0.0]), rg.tensor([1.0]))), 4)
    0.6931
    """

    _older_form = staticmethod(older_reduction("weight size_average reduce reduction pos_weight"))

    weight: Tensor | None = buffer(default=None)
    pos_weight: Tensor | None = buffer(default=None, kw_only=True)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


# ------------------------------------------------------------------------------- likelihoods of distributions


@layer
class GaussianNLLLoss(_Loss):
    """(log(var) + (x - y)² / var) / 2: input the mean, var the variance of a normal distribution, y the target.

    `var` broadcasts, or lacks the last dimension, and is clamped to at least `eps`; `full` adds log(2π) / 2.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.GaussianNLLLoss()(rg.tensor([1.0]), rg.tensor([3.0]), rg.tensor([1.0]))
    tensor(2.)
    """

    full: bool = field(default=False, kw_only=True)
    eps: float = field(default=1e-6, check=check_positive, kw_only=True)
    reduction: str = field(default="mean", check=check_reduction, kw_only=True)

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Return the loss of means, targets and variances."""
        if not isinstance(var, Tensor):
            var = full_like(input.detach(), var)
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


@layer
class PoissonNLLLoss(_Loss):
    """exp(x) - y x: input x the logarithm of the mean of a Poisson distribution, y the observed count.

    Without `log_input`, x is the mean, and the loss is x - y log(x + eps). `full` adds Stirling's approximation of
    log(y!) where y is more than 1.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.PoissonNLLLoss()(rg.tensor([0.0]), rg.tensor([3.0]))
    tensor(1.)
    """

    _older_form = staticmethod(older_reduction("log_input full size_average eps reduce reduction"))

    log_input: bool = True
    full: bool = False
    eps: float = field(default=1e-8, kw_only=True)
    reduction: str = field(default="mean", check=check_reduction, kw_only=True)

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps, self.reduction)


@layer
class CTCLoss(_Loss):
    """-log of the total probability of all alignments of a target: Graves et al., ICML 2006.

    Input log-probabilities (time, n, classes) or (time, classes); targets (n, length), or concatenated in a vector;
    `input_lengths` and `target_lengths` (n) are their valid lengths. An alignment may insert `blank` and repeat labels.
    "mean" first divides by the target lengths. A target that has no alignment gives inf, or 0 with `zero_infinity`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> scores = rg.zeros(2, 1, 2).log_softmax(-1)  # "-a", "a-", "aa" of four
    >>> float(nn.CTCLoss()(scores, rg.tensor([[1]]), [2], [1]).neg().exp())
    0.75...
    """

    blank: int = 0
    reduction: str = field(default="mean", check=check_reduction)
    zero_infinity: bool = False

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """Return the loss of log-probabilities, targets and their lengths."""
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class NLLLoss2d(NLLLoss):
    """Old name of `NLLLoss`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.NLLLoss2d()(rg.full((1, 2, 1, 1), -1.0), rg.zeros(1, 1, 1, dtype="int64"))
    tensor(1.)
    """
