"""Run programs of the library in child processes, for `instructions.py`, which counts their instructions.

    python benchmarks/instructions_programs.py [TEXT]

Prints a line for each child: its process number, the number of repetitions, and the program. The children are forked
after the import of the library, so that the import is counted once. Programs whose name does not contain TEXT are left
out; a program that the library can't run is reported by a line that begins with "failed".
"""

import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

SHORT = 5  # repetitions, in which caches and memory reach their steady state
Make = Callable[[ModuleType], Callable[[], Any]]


def normal(m: ModuleType, *shape: int, requires_grad: bool = False) -> Any:
    """Return normal numbers, the same in every process."""
    m.manual_seed(len(shape))
    return m.randn(*shape).requires_grad_(requires_grad)


def multiplication(m: ModuleType, requires_grad: bool) -> Callable[[], Any]:
    """Return a multiplication of 4 elements, on the result of the one before."""
    values, y = [normal(m, 4, requires_grad=requires_grad)], normal(m, 4)

    def step() -> None:
        values[0] = values[0] * y

    return step


def product_gradient(m: ModuleType) -> Callable[[], Any]:
    """Return the gradient of a sum of products of 4 elements."""
    x, y = normal(m, 4, requires_grad=True), normal(m, 4)
    return lambda: (x * y).sum().backward()


def scalar_gradient(m: ModuleType) -> Callable[[], Any]:
    """Return the gradient of a function of three operators."""
    x = m.tensor(0.5, requires_grad=True)
    return lambda: m.autograd.grad((x.sin() * x).exp(), x)


def elementwise_chain(m: ModuleType) -> Callable[[], Any]:
    """Return a chain of elementwise operators with its gradient."""
    x = normal(m, 64, 64, requires_grad=True)
    return lambda: (x.sin() * x.tanh() + x.sigmoid()).mean().backward()


def linear_call(m: ModuleType) -> Callable[[], Any]:
    """Return a call of a small layer."""
    x, layer = normal(m, 8, 8), m.nn.Linear(8, 8)
    return lambda: layer(x)


def training_step(m: ModuleType, optimizer: str) -> Callable[[], Any]:
    """Return a training step of a network with two layers."""
    nn, x, target = m.nn, normal(m, 16, 32), normal(m, 16, 4)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    update = getattr(m.optim, optimizer)(model.parameters(), lr=0.01)

    def step() -> None:
        update.zero_grad()
        nn.functional.mse_loss(model(x), target).backward()
        update.step()

    return step


def with_gradients(m: ModuleType, module: Any, x: Any) -> Callable[[], Any]:
    """Return a call of a module with the gradients of the mean of squares."""

    def step() -> None:
        module.zero_grad()
        out = module(x)
        (out[0] if isinstance(out, tuple) else out).square().mean().backward()

    return step


def convolutions(m: ModuleType) -> Callable[[], Any]:
    """Return a step of a small network of convolutions."""
    nn = m.nn
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.Flatten())
    return with_gradients(m, model, normal(m, 4, 1, 12, 12))


def recurrent(m: ModuleType) -> Callable[[], Any]:
    """Return a step of an LSTM."""
    return with_gradients(m, m.nn.LSTM(16, 16), normal(m, 5, 4, 16))


def encoder_layer(m: ModuleType) -> Callable[[], Any]:
    """Return a step of a layer of a transformer's encoder."""
    layer = m.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return with_gradients(m, layer, normal(m, 2, 8, 16))


def normalization(m: ModuleType) -> Callable[[], Any]:
    """Return a step of layer norm and GELU."""
    return with_gradients(m, m.nn.Sequential(m.nn.LayerNorm(32), m.nn.GELU()), normal(m, 16, 32, requires_grad=True))


def user_function(m: ModuleType) -> Callable[[], Any]:
    """Return a call of a user's Function with its gradient."""

    class Square(m.autograd.Function):  # type: ignore[name-defined, misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    x = normal(m, 4, requires_grad=True)
    return lambda: Square.apply(x).sum().backward()


def example_gradients(m: ModuleType) -> Callable[[], Any]:
    """Return the gradients of each example by vmap."""
    x, w = normal(m, 8, 4), normal(m, 4)
    each = m.func.vmap(m.func.grad(lambda w, x: (w * x).sin().sum()), (None, 0))
    return lambda: each(w, x)


def tangent(m: ModuleType) -> Callable[[], Any]:
    """Return a derivative in forward mode."""
    x, t = normal(m, 4), normal(m, 4)
    return lambda: m.func.jvp(lambda x: (x.sin() * x).exp(), (x,), (t,))


def classification(m: ModuleType) -> Callable[[], Any]:
    """Return embedding and cross entropy with gradients."""
    weight, ids = normal(m, 16, 8, requires_grad=True), m.arange(8)
    functional = m.nn.functional
    return lambda: functional.cross_entropy(functional.embedding(ids, weight), ids % 8).backward()


def scattering(m: ModuleType) -> Callable[[], Any]:
    """Return indexing and an addition at indices with gradients."""
    x, ids = normal(m, 16, 8, requires_grad=True), m.arange(8) % 3
    return lambda: x.index_add(0, ids, x[ids]).sum().backward()


def layers(m: ModuleType) -> Any:
    """Return a model of some small layers."""
    return m.nn.Sequential(*[m.nn.Sequential(m.nn.Linear(4, 4), m.nn.LayerNorm(4)) for _ in range(6)])


def save_state(m: ModuleType) -> Callable[[], Any]:
    """Return `state_dict` of some small layers."""
    return layers(m).state_dict  # type: ignore[no-any-return]


def list_parameters(m: ModuleType) -> Callable[[], Any]:
    """Return the list of parameters of some small layers."""
    model = layers(m)
    return lambda: list(model.parameters())


def batches(m: ModuleType) -> Callable[[], Any]:
    """Return a pass over the batches of a data set."""
    data = m.utils.data
    loader = data.DataLoader(data.TensorDataset(normal(m, 32, 4), m.arange(32)), batch_size=8)
    return lambda: [len(batch) for batch in loader]


# The maker of each program, and its number of further repetitions.
PROGRAMS: dict[str, tuple[Make, int]] = {
    "multiplication, not recorded": (lambda m: multiplication(m, False), 200),
    "multiplication, recorded": (lambda m: multiplication(m, True), 200),
    "sum of products with backward": (product_gradient, 100),
    "autograd.grad, 3 operators": (scalar_gradient, 100),
    "elementwise chain, 64 x 64, with backward": (elementwise_chain, 20),
    "call of Linear, 8 x 8": (linear_call, 100),
    "training step, SGD": (lambda m: training_step(m, "SGD"), 20),
    "training step, Adam": (lambda m: training_step(m, "Adam"), 20),
    "convolutions with backward": (convolutions, 10),
    "LSTM with backward": (recurrent, 10),
    "encoder layer with backward": (encoder_layer, 10),
    "layer norm and GELU with backward": (normalization, 20),
    "Function with backward": (user_function, 50),
    "gradients of 8 examples by vmap": (example_gradients, 20),
    "jvp, 3 operators": (tangent, 20),
    "embedding and cross entropy with backward": (classification, 20),
    "indexing and index_add with backward": (scattering, 20),
    "state_dict, 12 layers": (save_state, 20),
    "list of parameters, 12 layers": (list_parameters, 50),
    "DataLoader, 4 batches": (batches, 10),
}


def run_program(m: ModuleType, name: str, repetitions: int) -> None:
    """Run a program and end this process."""
    try:
        step = PROGRAMS[name][0](m)
        for _ in range(repetitions):
            step()
        line = f"{os.getpid()} {repetitions} {name}\n"
    except Exception as error:
        line = f"failed {name}: {type(error).__name__}: {error}\n"
    os.write(1, line.encode())
    os._exit(0)


if __name__ == "__main__":
    import retrograd

    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = {name: found for name, found in PROGRAMS.items() if wanted in name}
    for make, _ in chosen.values():
        with suppress(Exception):  # the child reports it
            make(retrograd)()  # so that no child imports modules on first use
    gc.collect()
    gc.disable()  # it takes the longer, the more objects the imports have left
    for name, (_, repetitions) in chosen.items():
        for count in (SHORT, SHORT + repetitions):
            child = os.fork()
            if child == 0:
                run_program(retrograd, name, count)
            os.waitpid(child, 0)
