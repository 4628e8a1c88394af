"""Reference implementations of activations: their definitions, with masks and without protection from overflow."""

import math

import numpy as np

from retrograd.testing.references.common import sigmoid


def elu(x, alpha, scale=1.0, steep=1.0):
    return scale * np.where(x > 0, x, alpha * (np.exp(steep * x) - 1))


def elu_grad(t, x, alpha, scale, steep):
    return t * scale * np.where(x > 0, 1, alpha * steep * np.exp(steep * x))


def glu(x, dim):
    first, second = np.split(x, 2, axis=dim)
    return first * sigmoid(second)


erf = np.vectorize(math.erf, otypes=[float])


def gelu(x, approximate):
    if approximate == "none":
        return x * 0.5 * (1 + erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x):
    return 0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu_tanh_slope(x):
    u, du = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3), math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return 0.5 * (1 + np.tanh(u)) + 0.5 * x * du / np.cosh(u) ** 2


def gelu_grad(t, x):
    return t * gelu_slope(x)


def gelu_tanh_grad(t, x):
    return t * gelu_tanh_slope(x)


def silu_grad(t, x):
    return t * sigmoid(x) * (1 + x * sigmoid(-x))


def softplus_grad(t, x, beta, threshold):
    return t * np.where(beta * x > threshold, 1, sigmoid(beta * x))


def selu(x):
    return elu(x, 1.6732632423543772, 1.0507009873554805)


def celu(x, alpha):
    return elu(x, alpha, steep=1 / alpha)
