"""Networks as scikit-learn's estimators: in pipelines, grid searches and cross-validation, as any other of them."""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("retrograd.sklearn needs scikit-learn: pip install 'retrograd[sklearn]'") from error

from retrograd.sklearn.classifier import NeuralClassifier as NeuralClassifier
from retrograd.sklearn.regressor import NeuralRegressor as NeuralRegressor
