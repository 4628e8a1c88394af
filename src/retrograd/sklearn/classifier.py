"""`NeuralClassifier`."""

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from retrograd.core import Tensor
from retrograd.nn import CrossEntropyLoss
from retrograd.sklearn.estimator import NeuralEstimator


class NeuralClassifier(ClassifierMixin, NeuralEstimator):
    """A network for classification, as a scikit-learn estimator.

    module: a function of the numbers of features and classes that returns a `Module` whose output is the logits; by
    default, linear layers of `hidden_layer_sizes` with ReLU in between. optimizer: a function of the parameters and
    `lr`, by default Adam; `functools.partial` adds further options. loss: a function of logits and class indices, by
    default CrossEntropyLoss; it returns the mean of a batch, or the losses of the rows, as with reduction="none".

    `fit` passes over the data `max_iter` times, in batches of `batch_size`, in random order if `shuffle`; a single
    last row joins the batch before. It ends early when the loss has not decreased by `tol` for `n_iter_no_change`
    passes. warm_start: a further `fit` continues with the network. random_state: an integer makes everything
    reproducible, including initial weights and dropout. verbose: show progress. The network is float32 if X is, else
    float64.

    After `fit`: `module_`, `classes_`, `loss_curve_` (the mean loss of each pass), `n_iter_` and `n_features_in_`.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(NeuralClassifier(lr=0.01, max_iter=50, random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NeuralClassifier":
        """Train on rows X, an array of shape (rows, features), and their labels y; return the estimator.

        sample_weight: the weight of each row in the mean loss, at least 0. It needs a loss that returns one for each
        row, as the default one does.

        Raises ValueError for data that scikit-learn refuses, for labels that are None, for a loss that is not finite,
        and with warm_start for labels that differ from the earlier ones.
        """
        resume = self.warm_start and hasattr(self, "module_")
        X, y, weights = self._validate(X, y, sample_weight, reset=not resume)
        check_classification_targets(y)
        labels = LabelEncoder().fit(y)
        if resume:
            self._check_known(labels.classes_)
        else:
            self.classes_ = labels.classes_
            self._init_network(X.shape[1], len(self.classes_), X.dtype)
        self._train(X, self._class_indices(y), weights, self.max_iter)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Sequence[Any] | None = None, sample_weight: Any = None
    ) -> "NeuralClassifier":
        """Train on these rows for one pass. The first call needs `classes`, all labels."""
        first = not hasattr(self, "module_")
        X, y, weights = self._validate(X, y, sample_weight, reset=first)
        check_classification_targets(y)
        if first and classes is None:
            raise ValueError("NeuralClassifier: the first call of partial_fit needs classes, all labels there will be")
        known = None if classes is None else LabelEncoder().fit(classes).classes_
        if first:
            self.classes_ = known
        elif known is not None and list(known) != list(self.classes_):
            raise ValueError(f"NeuralClassifier: classes are {list(self.classes_)} since the first call, got {classes}")
        self._check_known(LabelEncoder().fit(y).classes_)
        if first:
            self._init_network(X.shape[1], len(self.classes_), X.dtype)
        self._train(X, self._class_indices(y), weights, 1)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, an array of shape (rows, classes) in the order of `classes_`."""
        return self._outputs(X).softmax(-1).numpy()

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities."""
        return self._outputs(X).log_softmax(-1).numpy()

    def predict(self, X: Any) -> Any:
        """Return the label of the most probable class of each row."""
        check_is_fitted(self)
        return self.classes_[self._outputs(X).argmax(-1).numpy()]

    def _default_loss(self, reduction: str) -> Callable[[Any, Any], Tensor]:
        return CrossEntropyLoss(reduction=reduction)

    def _class_indices(self, y: Any) -> Any:
        """Return the class indices of labels."""
        return self.classes_.searchsorted(y)

    def _check_known(self, labels: Any) -> None:
        unknown = sorted(set(labels.tolist()) - set(self.classes_.tolist()), key=str)
        if unknown:
            raise ValueError(f"NeuralClassifier: labels {unknown} are not among the classes {self.classes_.tolist()}")
