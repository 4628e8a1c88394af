"""Networks as scikit-learn estimators, for pipelines, grid searches and cross-validation."""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("retrograd.sklearn needs scikit-learn: pip install 'retrograd[sklearn]'") from error

from retrograd.sklearn.classifier import NeuralClassifier as NeuralClassifier
from retrograd.sklearn.regressor import NeuralRegressor as NeuralRegressor
