"""For compile.py: the cases of retrograd, PyTorch and JAX, as whole steps that a library may compile."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from steps_arrays import case as arrays_case
from steps_arrays import jax_namespace
from steps_data import normal
from steps_torch import Compiler, leaves_of
from steps_torch import case as step_case

from retrograd.bench import Case, converter

POINTS, OPERATORS = 1_000_000, 300
TIME, FEATURES, SEQUENCES = 64, 64, 16  # of the recurrent network
DIMENSIONS, LEAPS, STEP_SIZE = 50, 12, 0.1  # of the leapfrog integrator

POINTWISE = "10 operators, 1 million float32, and gradient"
SMALL = f"{OPERATORS} operators on 4 numbers, and gradient"
RECURRENT = f"LSTM, {TIME} steps, hidden {FEATURES}, batch {SEQUENCES}"
LEAPFROG = f"{LEAPS} steps of leapfrog, {DIMENSIONS} dimensions"
OF_STEPS = {  # rows of steps.py, and their budgets as shares of PyTorch's time
    "MLP 784-128-10, batch 32, Adam": 0.25,
    "MLP 784-512-512-10, batch 128, Adam": 0.45,
    "GPT, 4 layers, 128 wide, 16 x 64, AdamW": 0.5,
    "encoder layer, 256 wide, 8 x 128": 0.5,
    "CNN on digits, batch 64, Adam": 0.4,
    "nested encoder layer, lengths 16 to 128": 0.3,
}


class Cost(NamedTuple):
    """The budget of a row that is no row of steps.py, and what it costs: operations, and bytes that must move."""

    budget: float
    flops: float
    bytes: float


COSTS = {
    POINTWISE: Cost(0.4, 40 * POINTS, 8 * POINTS),
    SMALL: Cost(0.02, 3 * 4 * OPERATORS, 0),
    RECURRENT: Cost(0.3, 6 * TIME * SEQUENCES * 8 * FEATURES**2, 4 * TIME * SEQUENCES * FEATURES),
    LEAPFROG: Cost(0.1, LEAPS * 4 * DIMENSIONS**2, LEAPS * 4 * DIMENSIONS**2),
}


def tensors_case(m: Any, row: str, compiler: Compiler) -> Case:
    """Return a row's case in retrograd or PyTorch, whose step `compiler` may replace."""
    return CASES[row](m, compiler) if row in CASES else step_case(m, row, compiler)


def arrays() -> Callable[[str], Case | None]:
    """Return a function from row to case for JAX with `jit`."""
    namespace = jax_namespace(True)
    return lambda row: JAX_CASES[row]() if row in JAX_CASES else arrays_case(namespace, row)


# ------------------------------------------------------------------------------------------------------ inputs


def points() -> np.ndarray:
    """Return a million normal numbers."""
    return normal(np.random.default_rng(0), POINTS)


def four() -> tuple[np.ndarray, np.ndarray]:
    """Return the operands of the small operators."""
    return np.array([1.0, 0.5, -0.5, 2.0], np.float32), np.array([1.0, 1.001, 0.999, 1.0], np.float32)


def sequence() -> tuple[list[np.ndarray], np.ndarray]:
    """Return the weights of a recurrent layer in PyTorch's order, and its input."""
    g = np.random.default_rng(0)
    shapes = [(4 * FEATURES, FEATURES), (4 * FEATURES, FEATURES), (4 * FEATURES,), (4 * FEATURES,)]
    return [normal(g, *shape) / np.float32(FEATURES**0.5) for shape in shapes], normal(g, TIME, SEQUENCES, FEATURES)


def oscillators() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the precision matrix of a normal distribution, a position and a momentum."""
    g = np.random.default_rng(0)
    a = normal(g, DIMENSIONS, DIMENSIONS)
    return a @ a.T / DIMENSIONS + np.eye(DIMENSIONS, dtype=np.float32), normal(g, DIMENSIONS), normal(g, DIMENSIONS)


# ------------------------------------------------------------------------------------- retrograd and PyTorch


def pointwise_loss(sin: Callable, exp: Callable, x: Any) -> Any:
    """Return the loss of the first row."""
    y = sin(x * 1.5 + 0.3) * exp(x * 0.1)
    return (y * y).sum()


def small_loss(sin: Callable, x: Any, y: Any) -> Any:
    """Return a sum after many operators."""
    for _ in range(OPERATORS // 3):
        x = sin(x * y + 0.001)
    return x.sum()


def with_gradients(m: Any, compiler: Compiler, leaves: list, loss: Callable[[], Any]) -> Case:
    """Return a step of forward and backward pass."""

    def step() -> Any:
        for leaf in leaves:
            leaf.grad = None
        found = loss()
        found.backward()
        return found.detach()

    call = compiler(step)

    def check() -> list:
        call()
        call()  # with a .grad from before
        return [float(call()), *[converter(m)(leaf.grad).copy() for leaf in leaves]]

    return Case(call, check)


def pointwise(m: Any, compiler: Compiler) -> Case:
    """Return ten operators and a sum over many numbers."""
    leaves = leaves_of(m, [points()])

    def loss() -> Any:
        x = leaves[0]
        return ((x * 1.5 + 0.3).sin() * (x * 0.1).exp()).square().sum()

    return with_gradients(m, compiler, leaves, loss)


def small(m: Any, compiler: Compiler) -> Case:
    """Return many operators on few numbers."""
    x, y = map(m.from_numpy, four())
    return with_gradients(m, compiler, [x.requires_grad_()], lambda: small_loss(m.sin, x, y))


def recurrent(m: Any, compiler: Compiler) -> Case:
    """Return a recurrent layer with gradients of its weights."""
    weights, x = sequence()
    layer, x = m.nn.LSTM(FEATURES, FEATURES), m.from_numpy(x)
    parameters = [*layer.parameters()]
    with m.no_grad():
        for parameter, weight in zip(parameters, weights, strict=True):
            parameter.copy_(m.from_numpy(weight))
    return with_gradients(m, compiler, parameters, lambda: layer(x)[0].square().mean())


def leapfrog(m: Any, compiler: Compiler) -> Case:
    """Return steps of an integrator with the gradient of a potential in each."""
    precision, q, p = map(m.from_numpy, oscillators())

    def force(q: Any) -> Any:
        q = q.detach().requires_grad_()
        energy = (q @ (precision @ q)) / 2 + (q * q + 1).log().sum()
        return m.autograd.grad(energy, q)[0]

    def trajectory(q: Any, p: Any) -> tuple:
        for _ in range(LEAPS):
            p = p - STEP_SIZE * force(q)
            q = q + STEP_SIZE * p
        return q, p

    run = compiler(trajectory)
    return Case(lambda: run(q, p), lambda: [converter(m)(x) for _ in range(2) for x in run(q, p)])


CASES = {POINTWISE: pointwise, SMALL: small, RECURRENT: recurrent, LEAPFROG: leapfrog}

# --------------------------------------------------------------------------------------------------------- JAX


def jax_gradients(loss: Callable, leaves: list) -> Case:
    """Return a compiled forward and backward pass."""
    import jax

    leaves = [jax.numpy.array(leaf) for leaf in leaves]
    compiled = jax.jit(jax.value_and_grad(lambda leaves: loss(*leaves)))

    def call() -> Any:
        return jax.block_until_ready(compiled(leaves))

    def check() -> list:
        value, gradients = call()
        return [float(value), *map(np.asarray, gradients)]

    return Case(call, check)


def jax_pointwise() -> Case:
    """Return the first row."""
    import jax.numpy as jnp

    return jax_gradients(lambda x: pointwise_loss(jnp.sin, jnp.exp, x), [points()])


def jax_small() -> Case:
    """Return many operators on few numbers."""
    import jax.numpy as jnp

    x, y = four()
    return jax_gradients(lambda x: small_loss(jnp.sin, x, y), [x])


def jax_recurrent() -> Case:
    """Return a recurrent layer as a scan."""
    import jax
    import jax.numpy as jnp

    weights, x = sequence()

    def loss(w: Any, u: Any, b: Any, c: Any) -> Any:
        def cell(state: tuple, gates: Any) -> tuple:
            hidden, memory = state
            i, f, g, o = jnp.split(gates + hidden @ u.T + c, 4, axis=-1)
            memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
            return (hidden, memory), hidden

        zeros = jnp.zeros((SEQUENCES, FEATURES), x.dtype)
        return (jax.lax.scan(cell, (zeros, zeros), x @ w.T + b)[1] ** 2).mean()

    return jax_gradients(loss, weights)


def jax_leapfrog() -> Case:
    """Return steps of an integrator."""
    import jax
    import jax.numpy as jnp

    precision, q, p = map(jnp.array, oscillators())
    force = jax.grad(lambda q: (q @ (precision @ q)) / 2 + jnp.log(q * q + 1).sum())

    @jax.jit
    def run(q: Any, p: Any) -> tuple:
        for _ in range(LEAPS):
            p = p - STEP_SIZE * force(q)
            q = q + STEP_SIZE * p
        return q, p

    def call() -> Any:
        return jax.block_until_ready(run(q, p))

    return Case(call, lambda: [np.asarray(x) for _ in range(2) for x in call()])


JAX_CASES = {POINTWISE: jax_pointwise, SMALL: jax_small, RECURRENT: jax_recurrent, LEAPFROG: jax_leapfrog}
