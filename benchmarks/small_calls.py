"""Time small calls around training: scalar gradients, recurrent steps, optimizers, loaders, modules, with PyTorch.

    python benchmarks/small_calls.py [--rounds 15] [--minima] [--json FILE] [--check]

Most of the time of these calls is overhead of Python and of each operator.  One thread.
"""

import argparse
import copy
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from retrograd.bench import Case, Suite, Table, converter, library, main, parser, run_suite, subjects

SMALL_TENSORS = 500
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.01},
    "SGD with momentum": {"lr": 0.01, "momentum": 0.9},
    "Adam": {},
    "AdamW": {},
    "RMSprop": {},
    "Adagrad": {},
    "NAdam": {},
    "RAdam": {},
    "Adamax": {},
    "Adadelta": {},
}
EXAMPLES, BATCH = 512, 32
BOTH_WAYS = ", forward + backward"
Make = Callable[[ModuleType], Callable[[], Any]]


def normal(m: ModuleType, *shape: int) -> Any:
    """Return normal samples, the same for every subject."""
    return m.from_numpy(np.random.default_rng(shape).standard_normal(shape).astype(np.float32))


def set_normal(m: ModuleType, module: Any) -> Any:
    """Give all parameters of a module the same values for every subject; return it."""
    with m.no_grad():
        for p in module.parameters():
            p.copy_(normal(m, *p.shape) * 0.1)
    return module


# ------------------------------------------------------------------------------------------------------ gradients


def scalar_gradient(m: ModuleType) -> Callable[[], Any]:
    """Return the gradient of a function of three operators."""
    x = m.tensor(0.5, requires_grad=True)
    return lambda: m.autograd.grad((x.sin() * x).exp(), x)


def vector_gradient(m: ModuleType) -> Callable[[], Any]:
    """Return the gradient of a sum of three operators on a vector."""
    x = normal(m, 4).requires_grad_(True)
    return lambda: m.autograd.grad((x.sin() * x).sum(), x)


def forward_backward(m: ModuleType, model: Any, *inputs: Any) -> Callable[[], Any]:
    """Return a step without an optimizer: forward, mean of squares, backward."""
    set_normal(m, model)

    def call() -> Any:
        model.zero_grad()
        out = model(*inputs)
        (out[0] if isinstance(out, tuple) else out).square().mean().backward()
        return [p.grad for p in model.parameters()]

    return call


def recurrent(kind: str, m: ModuleType) -> Callable[[], Any]:
    """Return a step of a recurrent network on short sequences."""
    return forward_backward(m, getattr(m.nn, kind)(16, 32, batch_first=True), normal(m, 8, 10, 16))


def recurrent_cell(kind: str, m: ModuleType) -> Callable[[], Any]:
    """Return a step of one recurrent cell."""
    return forward_backward(m, getattr(m.nn, kind)(16, 32), normal(m, 8, 16))


def small_cnn(m: ModuleType) -> Callable[[], Any]:
    """Return a step of a network with two small convolutions."""
    nn = m.nn
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    return forward_backward(m, model, normal(m, 16, 1, 8, 8))


# ----------------------------------------------------------------------------------------------- parts of training


def optimizer_step(name: str, m: ModuleType) -> Callable[[], Any]:
    """Return a step over many small tensors."""
    params = [normal(m, 8, 8).requires_grad_(True) for _ in range(SMALL_TENSORS)]
    for p in params:
        p.grad = normal(m, 8, 8)
    optimizer = getattr(m.optim, name.partition(" ")[0])(params, **OPTIMIZERS[name])

    def call() -> Any:
        optimizer.step()
        return params[:1]

    return call


def zero_grad(m: ModuleType) -> Callable[[], Any]:
    """Return `zero_grad` of many small tensors."""
    params = [normal(m, 8, 8).requires_grad_(True) for _ in range(SMALL_TENSORS)]
    return m.optim.SGD(params, lr=0.1).zero_grad


def loader(m: ModuleType, dataset: Any) -> Callable[[], Any]:
    """Return one pass over a loader."""
    made = m.utils.data.DataLoader(dataset, batch_size=BATCH)

    def call() -> Any:
        last = None
        for batch in made:
            last = batch
        return list(last) if isinstance(last, list | tuple) else [last]

    return call


def tensors_loader(m: ModuleType) -> Callable[[], Any]:
    """Return a pass over batches of a TensorDataset."""
    labels = m.from_numpy(np.arange(EXAMPLES))
    return loader(m, m.utils.data.TensorDataset(normal(m, EXAMPLES, 16), labels))


def arrays_loader(m: ModuleType) -> Callable[[], Any]:
    """Return a pass over batches of pairs of an array and a number."""
    rows = np.random.default_rng(0).standard_normal((EXAMPLES, 16), dtype=np.float32)
    return loader(m, [(row, i) for i, row in enumerate(rows)])


def layers(m: ModuleType) -> Any:
    """Return a model of 48 small layers."""
    nn = m.nn
    blocks = [nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.ReLU()) for _ in range(12)]
    return set_normal(m, nn.Sequential(*blocks))


def load_state(m: ModuleType) -> Callable[[], Any]:
    """Return `load_state_dict` of a model of many small layers."""
    model = layers(m)
    return partial(model.load_state_dict, model.state_dict())


def list_parameters(m: ModuleType) -> Callable[[], Any]:
    """Return the list of the parameters of many small layers."""
    model = layers(m)
    return lambda: list(model.parameters())


def module_call(m: ModuleType) -> Callable[[], Any]:
    """Return a call of a module that does nothing."""
    x, module = normal(m, 4), m.nn.Identity()
    return lambda: module(x)


def nested_call(m: ModuleType) -> Callable[[], Any]:
    """Return a call of ten modules that do nothing."""
    x, module = normal(m, 4), m.nn.Sequential(*[m.nn.Identity() for _ in range(10)])
    return lambda: module(x)


def linear_call(m: ModuleType) -> Callable[[], Any]:
    """Return a call of a small layer."""
    x, module = normal(m, 8, 8), set_normal(m, m.nn.Linear(8, 8))
    return lambda: module(x)


ROWS: dict[str, tuple[Make, float]] = {
    "autograd.grad, scalar, 3 operators": (scalar_gradient, 0.4),
    "autograd.grad, 4 elements, 3 operators": (vector_gradient, 0.4),
    **{f"{kind}, 16 to 32, 8 x 10{BOTH_WAYS}": (partial(recurrent, kind), 0.8) for kind in ("LSTM", "GRU", "RNN")},
    **{f"{kind}, 16 to 32, 8{BOTH_WAYS}": (partial(recurrent_cell, kind), 0.8) for kind in ("LSTMCell", "GRUCell")},
    f"CNN, 8x8, batch 16{BOTH_WAYS}": (small_cnn, 0.5),
    **{f"{name}, {SMALL_TENSORS} tensors of 8 x 8": (partial(optimizer_step, name), 0.3) for name in OPTIMIZERS},
    f"zero_grad, {SMALL_TENSORS} tensors": (zero_grad, 0.5),
    f"DataLoader, TensorDataset, batches of {BATCH}": (tensors_loader, 0.5),
    f"DataLoader, arrays and numbers, batches of {BATCH}": (arrays_loader, 0.5),
    "state_dict, 48 layers": (lambda m: layers(m).state_dict, 0.5),
    "load_state_dict, 48 layers": (load_state, 0.5),
    "deepcopy, 48 layers": (lambda m: partial(copy.deepcopy, layers(m)), 0.5),
    "zero_grad, 48 layers": (lambda m: layers(m).zero_grad, 0.5),
    "list of parameters, 48 layers": (list_parameters, 0.5),
    "call of Identity": (module_call, 0.5),
    "call of 10 Identity in Sequential": (nested_call, 0.5),
    "call of Linear, 8 x 8": (linear_call, 0.5),
}  # fmt: skip


def tensors_in(found: Any) -> Iterator[Any]:
    """Yield the tensors of a result that subjects must agree on."""
    if hasattr(found, "detach"):
        yield found
    elif isinstance(found, list | tuple):
        for part in found:
            yield from tensors_in(part)


def cases(name: str, threads: int) -> Callable[[str], Case]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)

    def case(row: str) -> Case:
        call = ROWS[row][0](m)
        operations = EXAMPLES if row.startswith("DataLoader") else 1
        return Case(call, lambda: [converter(m)(x).copy() for x in tensors_in(call())], operations)

    return case


SUITE = Suite(
    "Small calls",
    __file__,
    {row: {"PyTorch": budget} for row, (_, budget) in ROWS.items()},
    subjects("retrograd", "PyTorch"),
    cases,
    unit="us",
)


def report(options: argparse.Namespace) -> list[Table]:
    """Return one table."""
    return [run_suite(SUITE, options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 9), report, cases))
