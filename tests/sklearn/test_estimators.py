"""The estimators satisfy scikit-learn's conventions, and train the given networks."""

import functools
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import retrograd as rg
from retrograd import nn
from retrograd.sklearn import NeuralClassifier, NeuralRegressor

# Fewer and larger steps than the defaults, which pass as well, but take longer.
CHECKS = [
    pair
    for kind in (NeuralClassifier, NeuralRegressor)
    for pair in estimator_checks_generator(kind(lr=0.01, max_iter=40))
]


def named(part):
    return type(part).__name__ if hasattr(part, "fit") else getattr(part, "func", part).__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=named)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def quick(**options):
    return NeuralClassifier(**{"lr": 0.02, "max_iter": 15, "random_state": 0} | options)


def dropping(features, classes):
    return rg.nn.Sequential(rg.nn.Linear(features, 16), rg.nn.Dropout(0.1), rg.nn.Linear(16, classes))


def test_labels_are_text_if_they_were_and_probabilities_have_the_order_of_classes(iris):
    X, y = iris
    model = make_pipeline(StandardScaler(), quick()).fit(X, y)
    assert model.score(X, y) > 0.9
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(X))
    assert (model.classes_[probabilities.argmax(1)] == model.predict(X)).all()


def test_searches_and_cross_validation_take_the_estimator(iris):
    search = GridSearchCV(quick(max_iter=4), {"hidden_layer_sizes": [(4,), (8, 4)], "lr": [0.02]}, cv=2).fit(*iris)
    assert search.best_params_["lr"] == 0.02
    assert len(cross_val_score(NeuralRegressor(max_iter=2), iris[0], iris[0][:, :2], cv=2)) == 2


@pytest.mark.parametrize("module", [None, dropping])
def test_random_state_decides_everything_and_the_default_generator_is_left_alone(module, iris):
    before = str(rg.get_rng_state())
    first, same, other = (quick(module=module, random_state=s).fit(*iris).predict_proba(iris[0]) for s in (3, 3, 4))
    assert (first == same).all()
    assert (first != other).any()
    assert str(rg.get_rng_state()) == before


def test_a_module_an_optimizer_and_a_loss_of_yours_are_used(iris):
    seen = []

    def loss(scores, y):
        seen.append((scores.shape, y.dtype))
        return rg.nn.functional.cross_entropy(scores, y, label_smoothing=0.1)

    optimizer = functools.partial(rg.optim.SGD, momentum=0.9)
    model = quick(module=dropping, optimizer=optimizer, loss=loss, batch_size=100, max_iter=1).fit(*iris)
    assert type(model.module_[1]) is rg.nn.Dropout
    assert seen == [((100, 3), rg.int64), ((50, 3), rg.int64)]


def test_warm_starts_and_parts_continue_with_the_network(iris):
    model = quick(warm_start=True, max_iter=3).fit(*iris)
    weight = model.module_[0].weight
    assert model.fit(*iris).module_[0].weight is weight
    assert model.n_iter_ == len(model.loss_curve_) == 6
    assert not hasattr(clone(model), "module_")

    parts = quick().partial_fit(iris[0][:50], iris[1][:50], classes=np.unique(iris[1]))
    assert parts.partial_fit(*iris).predict_proba(iris[0]).shape == (150, 3)
    assert parts.n_iter_ == 2


def test_training_ends_when_the_loss_falls_no_more(iris):
    assert quick(tol=10.0, n_iter_no_change=2, max_iter=50).fit(*iris).n_iter_ == 3


def test_float32_stays_and_all_else_is_float64(iris):
    assert quick().fit(iris[0].astype("float32"), iris[1]).predict_proba(iris[0]).dtype == "float32"
    assert NeuralRegressor(max_iter=1).fit(iris[0], iris[0]).predict(iris[0]).dtype == "float64"


def test_a_fitted_estimator_is_pickled_and_continues_the_same(iris):
    model = quick(warm_start=True, max_iter=2).fit(*iris)
    copy = pickle.loads(pickle.dumps(model))
    expected = model.fit(*iris).predict_proba(iris[0])
    assert (copy.fit(*iris).predict_proba(iris[0]) == expected).all()


def test_several_targets_keep_their_shape(iris):
    X = iris[0]
    assert NeuralRegressor(max_iter=1).fit(X, X[:, :2]).predict(X).shape == (150, 2)
    assert NeuralRegressor(max_iter=1).fit(X, X[:, :1]).predict(X).shape == (150, 1)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda X, y: quick(max_iter=0).fit(X, y), "max_iter must be a whole number of at least 1, got 0"),
        (lambda X, y: quick(batch_size=1.5).fit(X, y), "batch_size"),
        (lambda X, y: quick().partial_fit(X, y), "needs classes"),
        (lambda X, y: quick().partial_fit(X, y, classes=["setosa"]), r"labels \['versicolor', 'virginica'\]"),
        (lambda X, y: quick(warm_start=True).fit(X[:60], y[:60]).fit(X, y), r"labels \['virginica'\]"),
        (
            lambda X, y: NeuralRegressor(
                hidden_layer_sizes=(), optimizer=rg.optim.SGD, lr=1e9, n_iter_no_change=99
            ).fit(X, X[:, 0]),
            "smaller lr than",
        ),
        (lambda X, y: NeuralRegressor(max_iter=1).partial_fit(X, X[:, 0]).partial_fit(X, X), "4 targets a row, but 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_mistakes_are_named(make, told, iris):
    with pytest.raises(ValueError, match=told):
        make(*iris)


@pytest.mark.parametrize("kind", [NeuralClassifier, NeuralRegressor])
def test_weights_count_rows_as_often_as_they_are_repeated(kind):
    generator = np.random.default_rng(0)
    X, y, counts = generator.normal(size=(12, 2)), np.arange(12) % 3, np.arange(12) % 4
    settings = {"shuffle": False, "lr": 0.02, "max_iter": 20, "random_state": 0}
    weighted = kind(**settings).fit(X, y, sample_weight=counts)
    repeated = kind(**settings).fit(X.repeat(counts, 0), y.repeat(counts))
    for one, other in zip(weighted.module_.parameters(), repeated.module_.parameters(), strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=1e-6)
    np.testing.assert_allclose(weighted.loss_curve_, repeated.loss_curve_, rtol=1e-6)
    score = repeated.score(X.repeat(counts, 0), y.repeat(counts))
    np.testing.assert_allclose(weighted.score(X, y, sample_weight=counts), score)
    scaled = kind(**settings).fit(X, y, counts * 1e3)
    np.testing.assert_allclose(scaled.loss_curve_, weighted.loss_curve_)


def test_parts_take_weights_too(iris):
    X, y = iris
    weights = np.where(y == "setosa", 1.0, 0.0)
    model = quick(lr=0.1).partial_fit(X, y, classes=np.unique(y), sample_weight=weights)
    for _ in range(20):
        model.partial_fit(X, y, sample_weight=weights)
    assert set(model.predict(X)) == {"setosa"}
    NeuralRegressor(max_iter=1).partial_fit(X, X[:, 0], sample_weight=weights)


@pytest.mark.parametrize(
    ("kind", "make"),
    [(NeuralClassifier, nn.CrossEntropyLoss), (NeuralRegressor, nn.MSELoss), (NeuralRegressor, nn.HuberLoss)],
)
def test_losses_of_rows_are_averaged(kind, make, iris):
    X, y = iris[0], np.arange(150) % 3
    settings = {"lr": 0.02, "max_iter": 3, "random_state": 0}
    reduced, rows = (kind(loss=make(reduction=how), **settings).fit(X, y) for how in ("mean", "none"))
    np.testing.assert_allclose(rows.loss_curve_, reduced.loss_curve_)
    assert kind(loss=make(reduction="none"), **settings).fit(X, y, np.ones(150)).loss_curve_ == rows.loss_curve_


def test_a_last_row_joins_the_batch_before(iris):
    sizes = []

    def norm(features, outputs):
        module = nn.Sequential(nn.BatchNorm1d(features), nn.Linear(features, outputs))
        module.register_forward_pre_hook(lambda module, args: sizes.append(len(args[0])))
        return module

    NeuralRegressor(norm, batch_size=149, max_iter=1).fit(*[iris[0]] * 2)
    NeuralRegressor(norm, batch_size=49, max_iter=1, shuffle=False).fit(iris[0][:99], iris[0][:99])
    assert sizes == [150, 49, 50]
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        NeuralRegressor(norm, batch_size=1, max_iter=1).fit(iris[0], iris[0])


def test_optimizers_that_compute_the_loss_again_are_used(iris):
    model = NeuralRegressor(hidden_layer_sizes=(), optimizer=rg.optim.LBFGS, lr=0.5, max_iter=20, random_state=0)
    assert model.fit(iris[0], iris[0] @ [1.0, 2.0, 3.0, 4.0]).score(iris[0], iris[0] @ [1.0, 2.0, 3.0, 4.0]) > 0.99


def of_text(labels):
    return np.array(labels, dtype=object)


MISTAKES_IN_DATA = {
    "labels are None": (lambda k, X, y: k().fit(X, of_text([None, "b"] * 6)), ValueError, "6 of 12 values in y"),
    "a list of labels with None": (lambda k, X, y: k().fit(X, [None] + [1] * 11), ValueError, "1 of 12 values"),
    "weights are too few": (lambda k, X, y: k().fit(X, y, [1.0]), ValueError, "sample_weight"),
    "weights are negative": (lambda k, X, y: k().fit(X, y, -np.ones(12)), ValueError, "Negative values"),
    "weights are zero": (lambda k, X, y: k().fit(X, y, np.zeros(12)), ValueError, "at least one non-zero"),
    "a loss of all rows": (
        lambda k, X, y: k(loss=lambda out, y: out.mean()).fit(X, y, np.ones(12)), ValueError, "sample_weight needs the",
    ),
    "a loss that is a number": (
        lambda k, X, y: k(loss=lambda out, y: 3.0).fit(X, y), TypeError, "loss must return a tensor.*12 rows 3.0",
    ),
    "a loss of other rows": (
        lambda k, X, y: k(loss=lambda out, y: out[:3]).fit(X, y), TypeError, r"loss must return a tensor.*shape \(3,",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES_IN_DATA)
@pytest.mark.parametrize("kind", [NeuralClassifier, NeuralRegressor])
def test_data_and_losses_that_do_not_fit_are_named_and_train_nothing(kind, case):
    call, error, message = MISTAKES_IN_DATA[case]
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    stepped = []

    class Watched(rg.optim.SGD):
        def step(self, closure):
            loss = super().step(closure)
            stepped.append(loss)
            return loss

    with pytest.raises(error, match=message):
        call(functools.partial(kind, max_iter=1, optimizer=Watched), X, y)
    assert not stepped


NOT_USABLE = {
    "a module": ({"module": nn.Linear(2, 2)}, TypeError, "module must be a function of features and outputs"),
    "sizes as the module": ({"module": (32, 16)}, TypeError, r"or None with hidden_layer_sizes=, got \(32, 16\)"),
    "no module": ({"module": lambda features, outputs: None}, TypeError, "module must return a Module.*returned None"),
    "a name": ({"optimizer": "adam"}, TypeError, "optimizer must be a function of parameters and lr=.*got 'adam'"),
    "an optimizer": (
        {"optimizer": rg.optim.SGD([rg.zeros(1, requires_grad=True)])}, TypeError, "optimizer must be a function",
    ),
    "a loss by name": ({"loss": "mse"}, TypeError, "loss must be a function of outputs and targets.*got 'mse'"),
    "a class of losses": ({"loss": nn.MSELoss}, TypeError, "loss must be a function of outputs and targets"),
    "a rate as text": ({"lr": "0.1"}, TypeError, "lr must be a number, got '0.1'"),
    "a tolerance as text": ({"tol": "a"}, TypeError, "tol must be a number"),
    "sizes as text": ({"hidden_layer_sizes": "10"}, TypeError, "hidden_layer_sizes must be a number or a list"),
    "outputs": (
        {"module": lambda features, outputs: nn.Linear(features, 7)}, ValueError, r"for each row.*shape \(12, 7\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_USABLE)
@pytest.mark.parametrize("kind", [NeuralClassifier, NeuralRegressor])
def test_settings_that_cannot_be_used_are_refused_by_name(kind, case):
    settings, error, message = NOT_USABLE[case]
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    with pytest.raises(error, match=f"{kind.__name__}: .*{message}"):
        kind(**settings).fit(X, y)


def test_numbers_of_numpy_and_one_hidden_layer_by_its_size_are_taken():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    found = NeuralClassifier(hidden_layer_sizes=np.int64(3), max_iter=np.int64(2), lr=np.float32(0.1)).fit(X, y)
    assert [tuple(p.shape) for p in found.module_.parameters()] == [(3, 2), (3,), (2, 3), (2,)]
