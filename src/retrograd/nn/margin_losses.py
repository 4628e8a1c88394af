"""Margin losses of pairs, classes and distances; `reduction` is "mean", "sum" or "none"."""

from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.older_forms import older_reduction
from retrograd.nn import functional as F
from retrograd.nn.constructor_fields import field
from retrograd.nn.distance import PairwiseDistance
from retrograd.nn.loss import KeywordLoss, _Loss, _WeightedLoss, check_reduction
from retrograd.nn.settings import buffer, check_positive, layer


@layer
class MarginRankingLoss(KeywordLoss):
    """max(0, margin - y (x1 - x2)): the target y is 1 where x1 should be the larger, -1 where x2.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MarginRankingLoss()(rg.tensor([1.0]), rg.tensor([3.0]), rg.tensor([1.0]))
    tensor(2.)
    """

    _older_form = staticmethod(older_reduction("margin size_average reduce reduction"))

    margin: float = 0.0

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss of three tensors of one shape."""
        return F.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


@layer
class HingeEmbeddingLoss(KeywordLoss):
    """x, a distance, where the target is 1, and max(0, margin - x) where it is -1.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.HingeEmbeddingLoss(reduction="none")(rg.tensor([0.25, 0.25]), rg.tensor([1.0, -1.0]))
    tensor([0.2500, 0.7500])
    """

    _older_form = staticmethod(older_reduction("margin size_average reduce reduction"))

    margin: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.hinge_embedding_loss(input, target, self.margin, self.reduction)


@layer
class CosineEmbeddingLoss(KeywordLoss):
    """1 - cos(x1, x2) where the target is 1, and max(0, cos(x1, x2) - margin) where it is -1.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> x, y = rg.tensor([[1.0, 0.0]]), rg.tensor([[0.0, 1.0]])
    >>> nn.CosineEmbeddingLoss()(x, y, rg.tensor([1.0]))
    tensor(1.)
    """

    _older_form = staticmethod(older_reduction("margin size_average reduce reduction"))

    margin: float = 0.0

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss of vectors (n, size) or (size), and targets (n) or ()."""
        return F.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class SoftMarginLoss(KeywordLoss):
    """log(1 + exp(-y x)), without overflow; each target y is -1 or 1.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.SoftMarginLoss()(rg.tensor([0.0]), rg.tensor([1.0]))), 4)
    0.6931
    """

    _older_form = staticmethod(older_reduction("size_average reduce reduction"))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


# ----------------------------------------------------------------------------------------------------- of classes


def _check_p(name: str, value: int) -> None:
    if value not in (1, 2):
        raise ValueError(f"{name} must be 1 or 2, got {value}")


@layer
class MultiMarginLoss(_WeightedLoss):
    """The sum over classes i other than the target y of weight[y] max(0, margin - x[y] + x[i])^p / classes.

    Input scores (n, classes) or (classes), target class indices (n) or (); p is 1 or 2.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MultiMarginLoss()(rg.tensor([[0.5, 0.0]]), rg.tensor([0]))
    tensor(0.2500)
    """

    _older_form = staticmethod(older_reduction("p margin weight size_average reduce reduction"))

    p: int = field(default=1, check=_check_p)
    margin: float = 1.0
    weight: Tensor | None = buffer(default=None)
    reduction: str = field(default="mean", check=check_reduction, kw_only=True)

    def __post_init__(self) -> None:
        """Check that there is a weight for each class."""
        if self.weight is not None and self.weight.ndim != 1:
            raise ValueError(f"MultiMarginLoss: expected a weight for each class, got shape {self.weight.shape}")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of scores and classes."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(KeywordLoss):
    """The sum over labels y and other classes i of max(0, 1 - x[y] + x[i]), divided by the number of classes.

    Input scores (n, classes) or (classes), target of the same shape: class indices, and -1 after the last.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.MultiLabelMarginLoss()(rg.tensor([[0.5, 0.0]]), rg.tensor([[0, -1]]))
    tensor(0.2500)
    """

    _older_form = staticmethod(older_reduction("size_average reduce reduction"))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of scores and labels."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


@layer
class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over the classes, the last dimension, of `BCEWithLogitsLoss`, times weight.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> round(float(nn.MultiLabelSoftMarginLoss()(rg.zeros(1, 2), rg.tensor([[0.0, 1.0]]))), 4)
    0.6931
    """

    _older_form = staticmethod(older_reduction("weight size_average reduce reduction"))

    weight: Tensor | None = buffer(default=None)
    reduction: str = field(default="mean", check=check_reduction, kw_only=True)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of two tensors of one shape."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


# --------------------------------------------------------------------------------------------------- of distances


@layer
class TripletMarginLoss(KeywordLoss):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), d the p-norm of the difference plus eps.

    With `swap`, the distance from positive to negative is used where it is the smaller: Balntas et al., BMVC 2016.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> x, near, far = rg.tensor([[0.0]]), rg.tensor([[1.0]]), rg.tensor([[1.5]])
    >>> nn.TripletMarginLoss(eps=0.0)(x, near, far)
    tensor(0.5000)
    """

    _older_form = staticmethod(older_reduction("margin p eps swap size_average reduce reduction"))

    margin: float = field(default=1.0, check=check_positive)
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss of three tensors of vectors (n, size) or (size)."""
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, self.reduction
        )


@layer
class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance: a function of two tensors, or a module; None is the Euclidean one.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().sum(-1))
    >>> loss(rg.tensor([[0.0]]), rg.tensor([[1.0]]), rg.tensor([[1.5]]))
    tensor(0.5000)
    """

    distance_function: Any = field(default=None, kw_only=True)
    margin: float = field(default=1.0, check=check_positive, kw_only=True)
    swap: bool = field(default=False, kw_only=True)
    reduction: str = field(default="mean", check=check_reduction, kw_only=True)

    def __post_init__(self) -> None:
        """Make the module of the Euclidean distance, if there is no distance."""
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()

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
