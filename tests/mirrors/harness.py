"""Evaluate the expressions of `cases`, and their derivatives."""

import ast

import numpy as np

from .cases import CONSTANTS, INPUTS


def letters(expression):
    """Return the inputs of an expression, in alphabetical order."""
    names = {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}
    return sorted(names & set(INPUTS))


def evaluate(expression, namespace, **inputs):
    """Evaluate the expression over a namespace called `np`."""
    return eval(expression, {"np": namespace, **CONSTANTS, **INPUTS, **inputs})


def scalar_function(expression, namespace):
    """Return the inputs' names, and the expression as a function of these: its elements summed with fixed weights."""
    names = letters(expression)

    def function(*values):
        out = evaluate(expression, namespace, **dict(zip(names, values, strict=True)))
        return weighted(out, namespace)

    return names, function


def weighted(out, namespace):
    """Return one real number to which every element of a result contributes with a different weight."""
    shape = out.shape if hasattr(out, "shape") else ()
    size = int(np.prod(shape, dtype=int))
    weights = np.cos(np.arange(1.0, size + 1)).reshape(shape)
    if np.dtype(out.dtype).kind == "c":
        others = 2 * (weights[..., ::-1] if shape else weights)
        return namespace.sum(namespace.real(out) * weights) + namespace.sum(namespace.imag(out) * others)
    return namespace.sum(out * weights)


def difference(function, values, directions, step=1e-6):
    """Return the central difference of a function along directions, one for each value."""
    ahead, behind = ([v + sign * step * d for v, d in zip(values, directions, strict=True)] for sign in (1, -1))
    return (function(*ahead) - function(*behind)) / (2 * step)


def directions_for(values):
    """Return fixed directions shaped like the values; complex ones are complex."""
    r = np.random.default_rng(3)
    made = [r.normal(size=v.shape) for v in values]
    return [d + 1j * r.normal(size=d.shape) if v.dtype.kind == "c" else d for d, v in zip(made, values, strict=True)]


def along(gradients, directions):
    """Return the pairing of gradients, plain transposes, with directions."""
    return sum(float(np.sum(g * d).real) for g, d in zip(gradients, directions, strict=True))
