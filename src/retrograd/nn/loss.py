"""Losses: `reduction` is "mean", "sum", or "none" for the loss of each element."""

from typing import Any

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.module import Module


class _Loss(Module):
    """What losses share: how the elements' losses become one number."""

    def __init__(self, reduction: str, *others: str) -> None:
        super().__init__()
        known = ("mean", "sum", "none", *others)
        if reduction not in known:
            raise ValueError(f"{type(self).__name__}: reduction must be one of {', '.join(known)}, got {reduction!r}")
        self.reduction = reduction


class MSELoss(_Loss):
    """(x - y)²; input and target have the same shape.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MSELoss()(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape to a number."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """|x - y|; input and target have the same shape.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.L1Loss()(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0]))
    tensor(1.)
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape to a number."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """(x - y)² / (2 beta) where |x - y| < beta, else |x - y| - beta / 2.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.SmoothL1Loss()(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0]))
    tensor(0.75)
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape to a number."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """(x - y)² / 2 where |x - y| < delta, else delta (|x - y| - delta / 2): Huber, 1964.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.HuberLoss(delta=0.5)(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 4.0]))
    tensor(0.4375)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape to a number."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """y (log y - x): input x holds log-probabilities, target y probabilities, or their logs if `log_target`.

    reduction="batchmean" is the sum divided by the first size: the divergence as it is defined.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> p = rg.tensor([[0.5, 0.5]])
    >>> nn.KLDivLoss(reduction="batchmean")(p.log(), p)
    tensor(0.)
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction, "batchmean")
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape to a number."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class _ClassLoss(_Loss):
    """What losses of class numbers share: a weight for each class, and a class number that does not count."""

    weight: Any

    def __init__(self, weight: Tensor | None, ignore_index: int, reduction: str) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index


class CrossEntropyLoss(_ClassLoss):
    """-log softmax(x)[y]: input scores (N, C, ...) or (C), target class numbers (N, ...) or ().

    The target may be probabilities shaped as the input. `weight` (C) weighs the classes, "mean" divides by
    the weights of the targets, and those equal to `ignore_index` do not count.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.CrossEntropyLoss()(rg.zeros(3, 4), rg.tensor([0, 1, 3]))), 4)
    1.3863
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"CrossEntropyLoss: label_smoothing must lie between 0 and 1, got {label_smoothing}")
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores and classes to a number."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_ClassLoss):
    """-x[y]: input log-probabilities (N, C, ...) or (C), target class numbers (N, ...) or ().

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.NLLLoss()(rg.tensor([[-1.0, -2.0]]), rg.tensor([1]))
    tensor(2.)
    """

    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(weight, ignore_index, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Log-probabilities and classes to a number."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class BCELoss(_Loss):
    """-(y log x + (1 - y) log(1 - x)): input probabilities and targets of one shape; `weight` broadcasts.

    Logarithms are at least -100, so that the loss stays finite.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.BCELoss()(rg.tensor([0.5]), rg.tensor([1.0]))), 4)
    0.6931
    """

    weight: Any

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape to a number."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """`BCELoss` of sigmoid(x), without overflow; `pos_weight` weighs the positive targets.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.BCEWithLogitsLoss()(rg.tensor([0.0]), rg.tensor([1.0]))), 4)
    0.6931
    """

    weight: Any
    pos_weight: Any

    def __init__(
        self, weight: Tensor | None = None, *, reduction: str = "mean", pos_weight: Tensor | None = None
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape to a number."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )
