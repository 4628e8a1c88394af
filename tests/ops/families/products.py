"""Reference implementations of tensor products: NumPy's."""

from functools import reduce

import numpy as np


def plus(product):
    """Return `beta * x + alpha * product`."""
    return lambda x, a, b, beta, alpha: beta * x + alpha * product(a, b)


def cross(x, other, dim):
    dim = x.shape.index(3) if dim is None else dim
    return np.cross(*np.broadcast_arrays(x, other), axis=dim)


ORACLES = {
    "addbmm": plus(lambda a, b: (a @ b).sum(0)),
    "addmv": plus(np.matmul),
    "addr": plus(np.outer),
    "baddbmm": plus(np.matmul),
    "chain_matmul": lambda *matrices: reduce(np.matmul, matrices),
    "cross": cross,
    "linalg.cross": cross,
    "linalg.multi_dot": lambda *tensors: reduce(np.matmul, tensors),
}
