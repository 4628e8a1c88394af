"""For steps.py: the cases in JAX, HIPS autograd and MLX, as functions of lists of arrays."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from steps_data import CHAIN, DECAY, GPT_HEADS, GPT_LAYERS, HEADS, RATE, STEPS, case_data
from steps_torch import STEPS_COMPARED

from retrograd.bench import Case, converter


class Namespace(NamedTuple):
    """The functions of a library that the cases need."""

    xp: Any
    value_and_grad: Callable[[Callable], Callable]  # by the first argument
    compiled: Callable[[Callable], Callable]
    wait: Callable[[Any], Any]  # until a result is there
    erf: Callable
    convolve: Callable | None = None  # 3 x 3, padded


# ------------------------------------------------------------------------------------------------- functions


def linear(x: Any, w: Any, b: Any) -> Any:
    return x @ w.T + b


def norm(xp: Any, x: Any, gain: Any, shift: Any) -> Any:
    x = x - xp.mean(x, axis=-1, keepdims=True)
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * gain + shift


def attention(xp: Any, qkv: Any, heads: int, mask: Any = None) -> Any:
    """Apply attention to queries, keys and values in one array."""
    batch, length, width = qkv.shape
    parts = xp.transpose(xp.reshape(qkv, (batch, length, 3, heads, width // 3 // heads)), (2, 0, 3, 1, 4))
    q, k, v = parts[0], parts[1], parts[2]
    scores = q @ xp.transpose(k, (0, 1, 3, 2)) * (width // 3 // heads) ** -0.5
    scores = scores if mask is None else scores + mask
    scores = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    seen = (scores / xp.sum(scores, axis=-1, keepdims=True)) @ v
    return xp.reshape(xp.transpose(seen, (0, 2, 1, 3)), (batch, length, width // 3))


def class_loss(xp: Any, scores: Any, classes: Any) -> Any:
    """Return the mean loss; `classes` is one-hot."""
    most = xp.max(scores, axis=-1, keepdims=True)
    logs = scores - most - xp.log(xp.sum(xp.exp(scores - most), axis=-1, keepdims=True))
    return -xp.mean(xp.sum(logs * classes, axis=-1))


def pool(xp: Any, x: Any) -> Any:
    """Return the maximum of each two by two."""
    n, c, h, w = x.shape
    return xp.max(xp.reshape(x, (n, c, h // 2, 2, w // 2, 2)), axis=(3, 5))


def perceptron(n: Namespace, params: list, x: Any, classes: Any) -> Any:
    for i in range(0, len(params) - 2, 2):
        x = n.xp.maximum(linear(x, *params[i : i + 2]), 0.0)
    return class_loss(n.xp, linear(x, *params[-2:]), classes)


def images(n: Namespace, params: list, x: Any, classes: Any) -> Any:
    for i in (0, 2):
        bias = n.xp.reshape(params[i + 1], (1, -1, 1, 1))
        x = pool(n.xp, n.xp.maximum(n.convolve(x, params[i]) + bias, 0.0))  # type: ignore[misc]
    return class_loss(n.xp, linear(n.xp.reshape(x, (x.shape[0], -1)), *params[4:]), classes)


def gpt(n: Namespace, params: list, text: Any, classes: Any) -> Any:
    xp = n.xp
    length = text.shape[1]
    ahead = xp.where(xp.arange(length)[:, None] >= xp.arange(length)[None, :], 0.0, -1e30)
    x, rest = params[0][text] + params[1], params[2:]
    for i in range(GPT_LAYERS):
        gain, shift, w, b, mixed, also, gain2, shift2, up, up_b, down, down_b = rest[12 * i : 12 * (i + 1)]
        seen = attention(xp, linear(norm(xp, x, gain, shift), w, b), GPT_HEADS, xp.asarray(ahead, dtype=x.dtype))
        x = x + linear(seen, mixed, also)
        hidden = linear(norm(xp, x, gain2, shift2), up, up_b)
        hidden = 0.5 * hidden * (1 + xp.tanh(0.7978845608 * (hidden + 0.044715 * hidden * hidden * hidden)))
        x = x + linear(hidden, down, down_b)
    x = norm(xp, x, *rest[-3:-1]) @ rest[-1].T
    return class_loss(xp, xp.reshape(x, (-1, x.shape[-1])), classes)


def chain(n: Namespace, params: list, y: Any) -> Any:
    (x,) = params
    for _ in range(CHAIN):
        x = x * y
    return n.xp.sum(x)


def encoder(n: Namespace, params: list, g: Any) -> Any:
    x, w, b, mixed, also, up, up_b, down, down_b, gain, shift, gain2, shift2 = params
    x = norm(n.xp, x + linear(attention(n.xp, linear(x, w, b), HEADS), mixed, also), gain, shift)
    hidden = linear(x, up, up_b)
    hidden = linear(0.5 * hidden * (1 + n.erf(hidden * 0.5**0.5)), down, down_b)
    return n.xp.sum(norm(n.xp, x + hidden, gain2, shift2) * g)


def convolution(n: Namespace, params: list, g: Any) -> Any:
    x, w, b = params
    return n.xp.sum((n.convolve(x, w) + n.xp.reshape(b, (1, -1, 1, 1))) * g)  # type: ignore[misc]


def embedding(n: Namespace, params: list, tokens: Any, g: Any) -> Any:
    return n.xp.sum(params[0][tokens] * g)


LOSSES: dict[str, Callable] = {
    "perceptron": perceptron, "images": images, "gpt": gpt, "chain": chain, "encoder": encoder,
    "convolution": convolution, "embedding": embedding,
}  # fmt: skip

# ------------------------------------------------------------------------------------------------------ steps


def adam(xp: Any, decay: float, params: list, grads: list, state: tuple) -> tuple[list, tuple]:
    """Return new parameters and moments, after D. P. Kingma and J. Ba, and I. Loshchilov and F. Hutter."""
    count, means, squares = state
    count = count + 1
    means = [0.9 * m + 0.1 * g for m, g in zip(means, grads, strict=True)]
    squares = [0.999 * s + 0.001 * g * g for s, g in zip(squares, grads, strict=True)]
    rate, root = RATE / (1 - 0.9**count), (1 - 0.999**count) ** 0.5
    moved = [
        p * (1 - RATE * decay) - rate * m / (xp.sqrt(s) / root + 1e-8)
        for p, m, s in zip(params, means, squares, strict=True)
    ]
    return moved, (count, means, squares)


def one_hot(classes: Any, count: int) -> Any:
    """Return one-hot rows, as a NumPy array."""
    made = classes[:, None] == range(count)
    return made.astype("float32")


def training_step(n: Namespace, loss_of: Callable, weights: list, inputs: list, decay: float, count: int) -> Case:
    """Return a step of training a classifier, as one compiled function where the library compiles."""
    xp = n.xp
    x, classes = xp.array(inputs[0]), xp.array(one_hot(inputs[1], count))
    gradients = n.value_and_grad(partial(loss_of, n))
    params = [xp.array(w) for w in weights]
    state = (xp.array(0.0), [xp.zeros_like(p) for p in params], [xp.zeros_like(p) for p in params])

    def update(params: list, state: tuple, x: Any, classes: Any) -> tuple:
        loss, grads = gradients(params, x, classes)
        return loss, *adam(xp, decay, params, grads, state)

    update = n.compiled(update)
    now = [params, state]

    def step() -> Any:
        loss, *now[:] = n.wait(update(*now, x, classes))
        return loss

    def check() -> list:
        as_array = converter(xp)
        first, grads = n.wait(gradients(now[0], x, classes))
        return [float(first), *map(as_array, grads), [float(step()) for _ in range(STEPS_COMPARED + 1)][-1]]

    return Case(step, check)


def with_gradients(n: Namespace, loss_of: Callable, leaves: list, others: list) -> Case:
    """Return a forward and backward pass."""
    xp = n.xp
    leaves, others = [xp.array(a) for a in leaves], [xp.array(a) for a in others]
    gradients = n.compiled(n.value_and_grad(partial(loss_of, n)))

    def call() -> Any:
        return n.wait(gradients(leaves, *others))

    def check() -> list:
        _, grads = call()
        return [*map(converter(xp), grads)]

    return Case(call, check)


def case(n: Namespace, row: str) -> Case | None:
    """Return a row's case over a library's namespace; None if it has none."""
    weights, inputs = case_data(row)
    step = STEPS[row]
    if step.kind not in LOSSES or (n.convolve is None and step.kind in ("images", "convolution")):
        return None
    loss_of = LOSSES[step.kind]
    if step.optimizer:
        count = weights[-2 if step.kind != "gpt" else -1].shape[0]
        return training_step(n, loss_of, weights, inputs, DECAY if step.optimizer == "AdamW" else 0.0, count)
    leaves, others = (weights, inputs) if step.kind in ("chain", "embedding") else ([inputs[0], *weights], inputs[1:])
    made = with_gradients(n, loss_of, leaves, others)
    return made._replace(operations=CHAIN) if step.kind == "chain" else made


# -------------------------------------------------------------------------------------------------- libraries


def jax_namespace(compiled: bool) -> Namespace:
    """Return the namespace of JAX, with or without `jit` around whole steps."""
    import jax
    import jax.numpy as jnp

    def convolve(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1)))

    compiler = jax.jit if compiled else (lambda f: f)
    return Namespace(jnp, jax.value_and_grad, compiler, jax.block_until_ready, jax.scipy.special.erf, convolve)


def hips_namespace() -> Namespace:
    """Return the namespace of HIPS autograd."""
    import autograd.numpy as anp
    from autograd.scipy.special import erf

    import autograd

    return Namespace(anp, autograd.value_and_grad, lambda f: f, lambda found: found, erf)


def mlx_namespace() -> Namespace:
    """Return the namespace of MLX, which computes lazily; its convolutions have the channels last."""
    import mlx.core as mx

    def convolve(x: Any, w: Any) -> Any:
        made = mx.conv2d(mx.transpose(x, (0, 2, 3, 1)), mx.transpose(w, (0, 2, 3, 1)), padding=1)
        return mx.transpose(made, (0, 3, 1, 2))

    def wait(found: Any) -> Any:
        mx.eval(found)
        return found

    return Namespace(mx, mx.value_and_grad, lambda f: f, wait, mx.erf, convolve)
