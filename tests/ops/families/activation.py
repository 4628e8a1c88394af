"""Reference implementations of activations: their definitions, with masks and without protection from overflow."""

import math

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def elu(x, alpha, scale=1.0, steep=1.0):
    return scale * np.where(x > 0, x, alpha * (np.exp(steep * x) - 1))


def softplus(x, beta=1.0, threshold=math.inf):
    return np.where(beta * x > threshold, x, np.log(1 + np.exp(beta * x)) / beta)


def softmax(x, dim, dtype=None):
    e = np.exp(x)
    return e / e.sum(axis=dim, keepdims=True)


def prelu(x, weight):
    weight = weight if weight.size == 1 else weight.reshape(-1, *(1,) * (x.ndim - 2))
    return np.where(x > 0, x, weight * x)


def glu(x, dim):
    first, second = np.split(x, 2, axis=dim)
    return first * sigmoid(second)


ORACLES = {
    "elu": elu,
    "selu": lambda x: elu(x, 1.6732632423543772, 1.0507009873554805),
    "celu": lambda x, alpha: elu(x, alpha, steep=1 / alpha),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "softplus": softplus,
    "logsigmoid": lambda x: np.log(sigmoid(x)),
    "tanhshrink": lambda x: x - np.sinh(x) / np.cosh(x),
    "real_softsign": lambda x: x / (1 + np.abs(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "hardtanh": lambda x, min_val, max_val: np.maximum(np.minimum(x, max_val), min_val),
    "relu6": lambda x: np.maximum(np.minimum(x, 6), 0),
    "hardsigmoid": lambda x: np.where(x <= -3, 0, np.where(x >= 3, 1, x / 6 + 0.5)),
    "hardswish": lambda x: np.where(x <= -3, 0, np.where(x >= 3, x, x * (x + 3) / 6)),
    "hardshrink": lambda x, lambd: np.where(np.abs(x) > lambd, x, 0),
    "softshrink": lambda x, lambd: np.sign(x) * np.maximum(np.abs(x) - lambd, 0),
    "threshold": lambda x, threshold, value: np.where(x > threshold, x, value),
    "two_slopes": lambda x, weight: np.where(x > 0, x, weight * x),
    "prelu": prelu,
    "rrelu": lambda x, lower, upper, training: np.where(x > 0, x, x * (lower + upper) / 2),
    "glu": glu,
    "softmax": softmax,
    "log_softmax": lambda x, dim, dtype: np.log(softmax(x, dim)),
    "softmin": lambda x, dim, dtype: softmax(-x, dim),
}
WITHOUT = {"gumbel_softmax": "random: tests/ops/test_activation.py"}
EXEMPT = {("gumbel_softmax", "float32"): "in single precision it draws other random numbers"}
