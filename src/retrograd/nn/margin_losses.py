"""Margin losses of pairs, classes and distances; `reduction` is "mean", "sum" or "none"."""

from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.loss import _Loss


class MarginRankingLoss(_Loss):
    """max(0, margin - y (x1 - x2)): the target y is 1 where x1 should be the larger, -1 where x2.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MarginRankingLoss()(rg.tensor([1.0]), rg.tensor([3.0]), rg.tensor([1.0]))
    tensor(2.)
    """

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss of three tensors of one shape."""
        return F.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """x, a distance, where the target is 1, and max(0, margin - x) where it is -1.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.HingeEmbeddingLoss(reduction="none")(rg.tensor([0.25, 0.25]), rg.tensor([1.0, -1.0]))
    tensor([0.25, 0.75])
    """

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.hinge_embedding_loss(input, target, self.margin, self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cos(x1, x2) where the target is 1, and max(0, cos(x1, x2) - margin) where it is -1.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> x, y = rg.tensor([[1.0, 0.0]]), rg.tensor([[0.0, 1.0]])
    >>> nn.CosineEmbeddingLoss()(x, y, rg.tensor([1.0]))
    tensor(1.)
    """

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss of vectors (n, size) or (size), and targets (n) or ()."""
        return F.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-y x)), without overflow; each target y is -1 or 1.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.SoftMarginLoss()(rg.tensor([0.0]), rg.tensor([1.0]))), 4)
    0.6931
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


# ----------------------------------------------------------------------------------------------------- of classes


class MultiMarginLoss(_Loss):
    """The sum over classes i other than the target y of weight[y] max(0, margin - x[y] + x[i])^p / classes.

    Input scores (n, classes) or (classes), target class indices (n) or (); p is 1 or 2.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MultiMarginLoss()(rg.tensor([[0.5, 0.0]]), rg.tensor([0]))
    tensor(0.25)
    """

    weight: Any

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p must be 1 or 2, got {p}")
        if weight is not None and weight.ndim != 1:
            raise ValueError(f"MultiMarginLoss: expected a weight for each class, got shape {weight.shape}")
        self.p = p
        self.margin = margin
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of scores and classes."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The sum over labels y and other classes i of max(0, 1 - x[y] + x[i]), divided by the number of classes.

    Input scores (n, classes) or (classes), target of the same shape: class indices, and -1 after the last.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MultiLabelMarginLoss()(rg.tensor([[0.5, 0.0]]), rg.tensor([[0, -1]]))
    tensor(0.25)
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of scores and labels."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """The mean over the classes, the last dimension, of `BCEWithLogitsLoss`, times weight.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.MultiLabelSoftMarginLoss()(rg.zeros(1, 2), rg.tensor([[0.0, 1.0]]))), 4)
    0.6931
    """

    weight: Any

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


# --------------------------------------------------------------------------------------------------- of distances


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{name}: margin must be greater than 0, got {margin}")


class TripletMarginLoss(_Loss):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), d the p-norm of the difference plus eps.

    With `swap`, the distance from positive to negative is used where it is the smaller: Balntas et al., BMVC 2016.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> x, near, far = rg.tensor([[0.0]]), rg.tensor([[1.0]]), rg.tensor([[1.5]])
    >>> nn.TripletMarginLoss(eps=0.0)(x, near, far)
    tensor(0.5)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        _check_margin("TripletMarginLoss", margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss of three tensors of vectors (n, size) or (size)."""
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance: a function of two tensors, or a module; None is the Euclidean one.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().sum(-1))
    >>> loss(rg.tensor([[0.0]]), rg.tensor([[1.0]]), rg.tensor([[1.5]]))
    tensor(0.5)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        _check_margin("TripletMarginWithDistanceLoss", margin)
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss of three tensors of vectors (n, size) or (size)."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
