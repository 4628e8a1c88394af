"""The common base of classifiers and regressors: the network, and its training."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from retrograd.autograd import no_grad
from retrograd.core import Tensor, registry
from retrograd.core.blocks import generator_block
from retrograd.foundation.describe_value import describe
from retrograd.foundation.number_arguments import check_number
from retrograd.foundation.suggestions import suggests_keywords
from retrograd.nn import Linear, Module, ReLU, Sequential
from retrograd.ops.as_tensor import from_numpy
from retrograd.ops.generator import Generator, redirect_draws
from retrograd.optim import Adam, Optimizer
from retrograd.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset
from retrograd.utils.progress import progress

CHUNK_ROWS = 4096


@suggests_keywords
class NeuralEstimator(BaseEstimator):
    """The base of both estimators; see there."""

    def __init__(
        self,
        module: Callable[[int, int], Module] | None = None,
        *,
        hidden_layer_sizes: int | Sequence[int] = (100,),
        optimizer: Callable[..., Any] | None = None,
        lr: float = 1e-3,
        loss: Callable[[Any, Any], Tensor] | None = None,
        batch_size: int = 200,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_iter_no_change: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.module = module
        self.hidden_layer_sizes = hidden_layer_sizes
        self.optimizer = optimizer
        self.lr = lr
        self.loss = loss
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    # ------------------------------------------------------------------------------------------ for subclasses

    def _default_loss(self, reduction: str) -> Callable[[Any, Any], Tensor]:
        raise NotImplementedError

    def _validate(self, X: Any, y: Any, weights: Any, reset: bool, **options: Any) -> tuple[Any, Any, Any]:
        """Return the validated data as arrays; weights are None, or have the mean 1."""
        self._check_settings()
        missing = sum(label is None for label in y) if getattr(y, "dtype", "O") == "O" and hasattr(y, "__len__") else 0
        if missing:
            raise ValueError(f"{type(self).__name__}: {missing} of {len(y)} values in y are None; leave out their rows")
        X, y = validate_data(self, X, y, dtype=("float64", "float32"), reset=reset, **options)
        if weights is not None:
            weights = _check_sample_weight(weights, X, dtype=X.dtype, ensure_non_negative=True)
            weights = weights / weights.mean()
        return X, y, weights

    def _check_settings(self) -> None:
        name = type(self).__name__
        for setting in ("batch_size", "max_iter", "n_iter_no_change"):
            value = getattr(self, setting)
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name}: {setting} must be a whole number of at least 1, got {describe(value)}")
        for setting, annotation in (("lr", float), ("tol", float), ("hidden_layer_sizes", int | Sequence[int])):
            check_number(f"{name}: {setting}", annotation, getattr(self, setting))
        is_module_class = isinstance(self.loss, type) and issubclass(self.loss, Module)
        for setting, wrong, wanted in (
            ("module", isinstance(self.module, Module), "features and outputs, or None with hidden_layer_sizes="),
            ("optimizer", isinstance(self.optimizer, Optimizer), "parameters and lr=, such as rg.optim.SGD"),
            ("loss", is_module_class, "outputs and targets, such as rg.nn.MSELoss()"),
        ):
            value = getattr(self, setting)
            if wrong or not (value is None or callable(value)):
                raise TypeError(f"{name}: {setting} must be a function of {wanted}, got {describe(value)}")

    def _init_network(self, features: int, outputs: int, dtype: Any) -> None:
        """Create a new network with a new generator."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._generator = Generator(seed)
        with self._use_generator():
            make = self._perceptron if self.module is None else self.module
            module = make(features, outputs)
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: module must return a Module, and returned {describe(module)}")
        self.module_, self._outputs_per_row = module.to(dtype), outputs
        self._optimizer = (self.optimizer or Adam)(self.module_.parameters(), lr=self.lr)
        self.loss_curve_: list[float] = []
        self.n_iter_ = 0

    def _train(self, x: Any, y: Any, weights: Any, epochs: int) -> None:
        """Run passes over the data until the loss stops falling."""
        data = TensorDataset(x.astype(self._dtype(), copy=False), y, *([] if weights is None else [weights]))
        order = RandomSampler(data, generator=self._generator) if self.shuffle else SequentialSampler(data)
        loader: DataLoader[Any] = DataLoader(data, batch_sampler=_Batches(order, self.batch_size, drop_last=False))
        best, stale_epochs = math.inf, 0
        with self._use_generator(), progress(epochs, type(self).__name__, quiet=not self.verbose) as bar:
            for _ in range(epochs):
                loss = self._train_epoch(loader, len(x))
                self.loss_curve_.append(loss)
                self.n_iter_ += 1
                bar.advance(loss=loss)
                stale_epochs = 0 if loss < best - self.tol else stale_epochs + 1
                best = min(best, loss)
                if stale_epochs >= self.n_iter_no_change:
                    return

    def _outputs(self, X: Any) -> Tensor:
        """Return the network's outputs for the rows of X."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=("float64", "float32"), reset=False).astype(self._dtype(), copy=False)
        self.module_.eval()
        with no_grad():
            parts = [self.module_(from_numpy(rows)) for rows in _row_chunks(x)]
        return registry["cat"](parts)

    # ------------------------------------------------------------------------------------------------- parts

    def _perceptron(self, features: int, outputs: int) -> Module:
        """Return linear layers with ReLU in between."""
        hidden = self.hidden_layer_sizes
        sizes = [features, *([hidden] if isinstance(hidden, int | Integral) else hidden)]
        layers: list[Module] = []
        for inner, outer in pairwise(sizes):
            layers += [Linear(inner, outer), ReLU()]
        return Sequential(*layers, Linear(sizes[-1], outputs))

    def _train_epoch(self, loader: Iterable[Any], count: int) -> float:
        total = 0.0
        self.module_.train()
        for x, *targets in loader:
            total += self._optimizer.step(partial(self._backward, x, *targets)).item() * len(x)
        if not math.isfinite(total):
            raise ValueError(
                f"{type(self).__name__}: the loss is {total} after {self.n_iter_ + 1} passes over the data; scale X "
                f"and y, or choose a smaller lr than {self.lr}"
            )
        return total / count

    def _backward(self, x: Tensor, y: Tensor, weights: Tensor | None = None) -> Tensor:
        """Compute the gradients of a batch, and return its mean loss."""
        self._optimizer.zero_grad()
        out = self.module_(x)
        if tuple(out.shape) != (len(x), self._outputs_per_row):
            raise ValueError(
                f"{type(self).__name__}: the module must return {self._outputs_per_row} outputs for each row, and "
                f"returned for {len(x)} rows the shape {tuple(out.shape)}"
            )
        loss_of = self.loss or self._default_loss("mean" if weights is None else "none")
        loss = self._mean(loss_of(out, y), len(x), weights)
        loss.backward()
        return loss

    def _mean(self, loss: Any, rows: int, weights: Tensor | None) -> Tensor:
        """Return the mean of the losses of rows; a loss of the batch is returned as it is, and takes no weights."""
        name = type(self).__name__
        if not isinstance(loss, Tensor) or tuple(loss.shape[:1]) not in ((), (rows,)):
            raise TypeError(
                f"{name}: loss must return a tensor, of no dimension or with a loss for each row, and returned for "
                f"{rows} rows {describe(loss)}"
            )
        if loss.ndim:
            losses: Tensor = loss.reshape(rows, -1).mean(1)
            return losses.mean() if weights is None else (losses * weights).mean()
        if weights is not None:
            raise ValueError(
                f"{name}: sample_weight needs the loss of each row, and loss returns one of all rows; leave loss out, "
                f"or choose one that is not reduced, such as rg.nn.MSELoss(reduction='none')"
            )
        return loss

    def _dtype(self) -> Any:
        """Return the dtype of the network's parameters."""
        return next((p.dtype for p in self.module_.parameters()), "float64")

    @generator_block
    def _use_generator(self) -> Iterator[None]:
        """In the block and this thread, draw from the estimator's own generator: initial weights, order, dropout."""
        with redirect_draws(lambda generator: self._generator):
            yield


class _Batches(BatchSampler):
    """Batches of which the last one has more than one row, as batch norms need: a single row joins the one before."""

    def __iter__(self) -> Iterator[list[int]]:
        held: list[int] = []
        for batch in super().__iter__():
            if len(batch) == 1 < len(held):
                held = held + batch
                break
            if held:
                yield held
            held = batch
        yield held


def _row_chunks(x: Any) -> Iterator[Any]:
    for start in range(0, len(x), CHUNK_ROWS):
        yield x[start : start + CHUNK_ROWS]
