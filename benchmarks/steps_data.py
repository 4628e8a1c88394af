"""For steps.py: the cases, with the weights and inputs that all subjects get, as NumPy arrays.

Weights have the order and the shapes of PyTorch's parameters.
"""

import itertools
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

Arrays = list[np.ndarray]
CHAIN = 1000
WIDTH, HEADS, LENGTH, BATCH = 256, 8, 128, 8  # of the encoder layer
RAGGED = range(16, LENGTH + 1, 16)  # the lengths of its ragged batch
VOCABULARY, GPT_LAYERS, GPT_WIDTH, GPT_HEADS, GPT_LENGTH, GPT_BATCH = 256, 4, 128, 4, 64, 16
EMBEDDING, TOKENS = (10_000, 256), (64, 128)
RATE, DECAY = 1e-3, 0.01  # of Adam and AdamW


def normal(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Return normal samples in single precision."""
    return generator.standard_normal(shape).astype(np.float32)


def linear(generator: np.random.Generator, *sizes: int) -> Arrays:
    """Return weight and bias of a sequence of linear layers."""
    made = []
    for inputs, outputs in itertools.pairwise(sizes):
        made += [normal(generator, outputs, inputs) / np.float32(inputs**0.5), normal(generator, outputs) * 0.1]
    return made


def norm(generator: np.random.Generator, size: int) -> Arrays:
    """Return scale and shift of a normalization."""
    return [1 + normal(generator, size) * 0.1, normal(generator, size) * 0.1]


def kernel(generator: np.random.Generator, outputs: int, inputs: int) -> Arrays:
    """Return weight and bias of a 3 x 3 convolution."""
    return [normal(generator, outputs, inputs, 3, 3) / np.float32(3 * inputs**0.5), normal(generator, outputs) * 0.1]


def digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of scikit-learn's digits, 8 x 8 pixels from 0 to 1, and labels; it is not imported."""
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise ImportError("scikit-learn", name="scikit-learn")
    table = np.loadtxt(Path(found.origin).parent / "datasets/data/digits.csv.gz", delimiter=",", max_rows=count)
    return table[:, :-1].reshape(count, 1, 8, 8).astype(np.float32) / 16, table[:, -1].astype(np.int64)


# -------------------------------------------------------------------------------------------------- the cases


def chain(g: np.random.Generator) -> tuple[Arrays, Arrays]:
    """Return factors whose thousandth powers are finite."""
    return [np.array([1.0, 1.001, 0.999, 1.0], np.float32)], [np.array([1.0, 1.001, 0.999, 1.0], np.float32)]


def perceptron(*sizes: int, batch: int) -> Callable[[np.random.Generator], tuple[Arrays, Arrays]]:
    """Return a network with ReLU, and a batch of classes."""

    def make(g: np.random.Generator) -> tuple[Arrays, Arrays]:
        return linear(g, *sizes), [normal(g, batch, sizes[0]), g.integers(0, sizes[-1], batch)]

    return make


def encoder(g: np.random.Generator) -> tuple[Arrays, Arrays]:
    """Return a layer of a transformer, a batch, and the cotangent."""
    weights = linear(g, WIDTH, 3 * WIDTH) + linear(g, WIDTH, WIDTH) + linear(g, WIDTH, 4 * WIDTH, WIDTH)
    weights += norm(g, WIDTH) + norm(g, WIDTH)
    return weights, [normal(g, BATCH, LENGTH, WIDTH), normal(g, BATCH, LENGTH, WIDTH)]


def convolution(g: np.random.Generator) -> tuple[Arrays, Arrays]:
    """Return a convolution of 32 to 64 channels."""
    return kernel(g, 64, 32), [normal(g, 32, 32, 28, 28), normal(g, 32, 64, 28, 28)]


def embedding(g: np.random.Generator) -> tuple[Arrays, Arrays]:
    """Return a table, indices of its rows, and the cotangent."""
    return [normal(g, *EMBEDDING)], [g.integers(0, EMBEDDING[0], TOKENS), normal(g, *TOKENS, EMBEDDING[1])]


def images(g: np.random.Generator) -> tuple[Arrays, Arrays]:
    """Return a small network, and scanned digits."""
    return kernel(g, 16, 1) + kernel(g, 32, 16) + linear(g, 128, 10), [*digits(64)]


def gpt(g: np.random.Generator) -> tuple[Arrays, Arrays]:
    """Return a decoder of bytes; a batch and the next bytes."""
    d = GPT_WIDTH
    weights = [normal(g, VOCABULARY, d) * 0.1, normal(g, GPT_LENGTH, d) * 0.1]
    for _ in range(GPT_LAYERS):
        weights += norm(g, d) + linear(g, d, 3 * d) + linear(g, d, d) + norm(g, d) + linear(g, d, 4 * d, d)
    weights += norm(g, d) + linear(g, d, VOCABULARY)[:1]
    text = g.integers(0, VOCABULARY, (GPT_BATCH, GPT_LENGTH + 1))
    return weights, [text[:, :-1].copy(), text[:, 1:].reshape(-1).copy()]


class Step(NamedTuple):
    """A computation, its inputs, and its cost: floating-point operations, and bytes that must move."""

    kind: str
    data: Callable[[np.random.Generator], tuple[Arrays, Arrays]]
    budget: float  # of PyTorch's time
    flops: float
    optimizer: str = ""  # none: forward and backward


def products(rows: int, *sizes: int) -> int:
    """Return the operations of linear layers: two per weight and row forward, four backward."""
    return sum(6 * rows * a * b for a, b in itertools.pairwise(sizes))


def perceptron_flops(rows: int, *sizes: int) -> int:
    """Return those of linear layers whose input needs no gradient."""
    return products(rows, *sizes) - 2 * rows * sizes[0] * sizes[1]


def attention(pairs: int, width: int) -> int:
    """Return the operations of attention over pairs of positions: two products, forward and twice backward."""
    return 12 * pairs * width


def layer_flops(rows: int, pairs: int, width: int) -> int:
    """Return those of a transformer's layer with a hidden layer four times as wide: 12 squares of the width per row."""
    return 6 * rows * 12 * width * width + attention(pairs, width)


STEPS = {
    "chain of 1,000 multiplications of 4 elements": Step("chain", chain, 0.33, 3 * 4 * CHAIN),
    "MLP 784-512-512-10, batch 128, Adam": Step(
        "perceptron", perceptron(784, 512, 512, 10, batch=128), 0.75, perceptron_flops(128, 784, 512, 512, 10), "Adam"
    ),
    "MLP 784-128-10, batch 32, Adam": Step(
        "perceptron", perceptron(784, 128, 10, batch=32), 0.5, perceptron_flops(32, 784, 128, 10), "Adam"
    ),
    "encoder layer, 256 wide, 8 x 128": Step(
        "encoder", encoder, 0.9, layer_flops(BATCH * LENGTH, BATCH * LENGTH**2, WIDTH)
    ),
    "nested encoder layer, lengths 16 to 128": Step(
        "ragged", encoder, 0.5, layer_flops(sum(RAGGED), sum(n * n for n in RAGGED), WIDTH)
    ),
    "conv2d 3x3, 32 to 64, 28x28, batch 32": Step("convolution", convolution, 1.2, 6 * 32 * 28**2 * 64 * 32 * 9),
    "embedding gradient, 8,192 of 10,000 rows": Step("embedding", embedding, 0.8, TOKENS[0] * TOKENS[1] * 256),
    "CNN on digits, batch 64, Adam": Step(
        "images", images, 0.8, 64 * (4 * 64 * 9 * 16 + 6 * (16 * 9 * 16 * 32 + 128 * 10)), "Adam"
    ),
    "GPT, 4 layers, 128 wide, 16 x 64, AdamW": Step(
        "gpt",
        gpt,
        0.8,
        GPT_LAYERS * layer_flops(GPT_BATCH * GPT_LENGTH, GPT_BATCH * GPT_LENGTH**2, GPT_WIDTH)
        + products(GPT_BATCH * GPT_LENGTH, GPT_WIDTH, VOCABULARY),
        "AdamW",
    ),
}


def case_data(row: str) -> tuple[Arrays, Arrays]:
    """Return a case's weights and inputs, the same for every subject."""
    return STEPS[row].data(np.random.default_rng(0))
