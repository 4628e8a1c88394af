"""skorch: fits, predictions, callbacks, saved parameters and a grid search of scikit-learn."""

import io
import pickle

import numpy as np
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, EpochScoring, Freezer, GradientNormClipping, LRScheduler
from torch import nn

OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")
SCHEDULERS = {"StepLR": {"step_size": 2}, "ExponentialLR": {"gamma": 0.5}, "CosineAnnealingLR": {"T_max": 4}}


class Net(nn.Module):
    """Two layers."""

    def __init__(self, hidden=8, outputs=2):
        super().__init__()
        numbers = np.random.default_rng(hidden)
        self.outputs = outputs
        self.first, self.last = nn.Linear(6, hidden), nn.Linear(hidden, outputs)
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(torch.from_numpy(numbers.normal(size=tuple(p.shape)).astype(np.float32) * 0.3))

    def forward(self, X):
        """Return probabilities of the classes; of one output, its value."""
        X = self.last(torch.tanh(self.first(X)))
        return X if self.outputs == 1 else torch.softmax(X, dim=-1)


def answers():
    """Return probabilities, parameters, histories and scores."""
    numbers = np.random.default_rng(0)
    x = numbers.normal(size=(90, 6)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(np.int64)
    found = {}

    def keep(name, net):
        found[f"{name} losses"] = np.array([net.history[:, "train_loss"], net.history[:, "valid_loss"]])
        found.update({f"{name} {n}": p.detach().numpy() for n, p in net.module_.named_parameters()})

    def classifier(**settings):
        return NeuralNetClassifier(Net, **{"max_epochs": 4, "verbose": 0, "batch_size": 16, **settings})

    for name in OPTIMIZERS:
        net = classifier(optimizer=getattr(torch.optim, name), lr=0.01).fit(x, y)
        keep(name, net)
        found[f"{name} probabilities"] = net.predict_proba(x)
        found[f"{name} score"] = np.array(net.score(x, y))
    for name, settings in SCHEDULERS.items():
        scheduler = LRScheduler(name, **settings)
        keep(name, classifier(callbacks=[scheduler, GradientNormClipping(0.5), EarlyStopping(patience=2)]).fit(x, y))
    frozen = classifier(callbacks=[Freezer("first.*"), EpochScoring("roc_auc")], lr=0.1).fit(x, y)
    keep("frozen", frozen)
    found["areas"] = np.array(frozen.history[:, "roc_auc"])
    regressor = NeuralNetRegressor(Net, module__outputs=1, max_epochs=3, verbose=0, lr=0.05)
    keep("regressor", regressor.fit(x, x[:, :1] * x[:, 1:2]).partial_fit(x, x[:, 2:3]))
    found["regressor values"] = regressor.predict(x)
    grid = {"lr": [0.01, 0.1], "module__hidden": [4, 8]}
    search = GridSearchCV(classifier(train_split=False), grid, cv=3, scoring="neg_log_loss").fit(x, y)
    found["search"] = search.cv_results_["mean_test_score"]
    found["best"] = search.best_estimator_.predict_proba(x)
    file = io.BytesIO()
    frozen.save_params(f_params=file)
    file.seek(0)
    loaded = clone(frozen).initialize()
    loaded.load_params(f_params=file)
    found["loaded"] = loaded.predict_proba(x)
    found["pickled"] = pickle.loads(pickle.dumps(frozen)).predict_proba(x)
    return found
