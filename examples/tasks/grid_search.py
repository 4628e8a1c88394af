"""A grid search of scikit-learn over a network, 12 fits: `python examples/tasks/grid_search.py`."""

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from retrograd.sklearn import NeuralClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
pipe = Pipeline([("scale", StandardScaler()), ("net", NeuralClassifier(max_iter=10, random_state=0))])
grid = {"net__lr": [1e-3, 1e-2], "net__hidden_layer_sizes": [(32,), (64, 32)]}
search = GridSearchCV(pipe, grid, cv=3).fit(X_train, y_train)
print(search.best_params_, round(search.score(X_test, y_test), 3))
assert search.score(X_test, y_test) > 0.9
