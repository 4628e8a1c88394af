"""`NeuralRegressor`."""

from collections.abc import Callable
from typing import Any

from sklearn.base import RegressorMixin

from retrograd.core import Tensor
from retrograd.nn import MSELoss
from retrograd.sklearn.estimator import NeuralEstimator


class NeuralRegressor(RegressorMixin, NeuralEstimator):
    """A network for regression, of one or several numbers per row, as a scikit-learn estimator.

    module: a function of the numbers of features and of targets that returns a `Module`. loss: a function of
    predictions and targets, both of shape (rows, targets), by default MSELoss. All other arguments are those of
    `NeuralClassifier`.

    After `fit`: `module_`, `loss_curve_` (the mean loss of each pass), `n_iter_` and `n_features_in_`.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> bool(NeuralRegressor(lr=0.01, random_state=0).fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.9)
    True
    """

    _targets: int  # a row; 0 where y had one dimension

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NeuralRegressor":
        """Train on rows X, of shape (rows, features), and targets y, of shape (rows,) or (rows, targets).

        sample_weight: the weight of each row in the mean loss, see `NeuralClassifier.fit`.

        Raises ValueError for data that scikit-learn refuses, for a loss that is not finite, and with warm_start for
        another number of targets than before.
        """
        return self._fit(X, y, sample_weight, self.warm_start and hasattr(self, "module_"), self.max_iter)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NeuralRegressor":
        """Train on these rows for one pass."""
        return self._fit(X, y, sample_weight, hasattr(self, "module_"), 1)

    def _fit(self, X: Any, y: Any, weights: Any, resume: bool, epochs: int) -> "NeuralRegressor":
        X, y, weights = self._validate(X, y, weights, reset=not resume, multi_output=True, y_numeric=True)
        targets = 0 if y.ndim == 1 else y.shape[1]
        if resume and targets != self._targets:
            raise ValueError(f"NeuralRegressor: y has {targets or 1} targets a row, but {self._targets or 1} before")
        self._targets = targets
        if not resume:
            self._init_network(X.shape[1], targets or 1, X.dtype)
        self._train(X, y.reshape(len(y), -1).astype(self._dtype(), copy=False), weights, epochs)
        return self

    def predict(self, X: Any) -> Any:
        """Return the predictions, in the shape of y in `fit`."""
        outputs = self._outputs(X).numpy()
        return outputs if self._targets else outputs.reshape(-1)

    def _default_loss(self, reduction: str) -> Callable[[Any, Any], Tensor]:
        return MSELoss(reduction=reduction)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
