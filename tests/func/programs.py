"""Random programs of operators on vectors of one size, for laws that every program must satisfy."""

from collections.abc import Callable

from hypothesis import strategies as st

import retrograd as rg

SIZE = 3
DTYPE = rg.float64
MATRIX = rg.tensor([[0.5, -1.0, 0.25], [1.5, 0.3, -0.4], [-0.2, 0.7, 0.9]], dtype=DTYPE)
PLACES = rg.tensor([2, 0, 0])
MASK = rg.tensor([True, False, True])


def _written(a, b):
    out = a.clone()
    out[1:] = b[:-1]
    out *= b
    return out


def _through_a_view(a, b):
    out = rg.zeros(2, SIZE, dtype=DTYPE)
    out[0].add_(a)
    out.t()[:, 1].copy_(b * out[0].clone())
    return out.sum(0)


# Each takes two vectors and gives one; values stay near 1, so that differences of rounding stay small.
STEPS: dict[str, Callable] = {
    "sin": lambda a, b: rg.sin(a),
    "tanh": lambda a, b: rg.tanh(a) + b,
    "product": lambda a, b: a * rg.sigmoid(b),
    "quotient": lambda a, b: a / (1 + b * b),
    "power": lambda a, b: (1 + a * a) ** 0.3,
    "erf": lambda a, b: rg.erf(a - b),
    "softmax": lambda a, b: rg.softmax(a, 0) * b,
    "logsumexp": lambda a, b: rg.logsumexp(a, 0) - b,
    "matrix": lambda a, b: MATRIX @ rg.tanh(a) + b,
    "outer": lambda a, b: (rg.tanh(a)[:, None] * rg.tanh(b)).sum(0),
    "linear": lambda a, b: rg.nn.functional.linear(rg.tanh(a), MATRIX, b),
    "mean": lambda a, b: a - a.mean() * b.var(),
    "cumsum": lambda a, b: rg.cumsum(rg.sin(a), 0),
    "gathered": lambda a, b: a[PLACES] * rg.cos(b),
    "rolled": lambda a, b: rg.roll(a, 1, 0) * rg.cos(b.flip(0)),
    "where": lambda a, b: rg.where(MASK, a, b),
    "chosen": lambda a, b: rg.where(a > 0, rg.sin(a), b),
    "norm": lambda a, b: a / (1 + rg.linalg.norm(1 + b * b)),
    "solve": lambda a, b: rg.linalg.solve(4 * rg.eye(SIZE, dtype=DTYPE) + rg.tanh(a)[:, None] * rg.tanh(b), b),
    "einsum": lambda a, b: rg.einsum("i,ij,j->j", rg.tanh(a), MATRIX, b),
    "joined": lambda a, b: rg.cat([a[:1], rg.stack([b[2], a[1]])]),
    "written": _written,
    "through a view": _through_a_view,
}

step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 3), st.integers(0, 3))
programs = st.lists(step, min_size=1, max_size=5)
points = st.lists(st.floats(-1.5, 1.5, width=32), min_size=SIZE, max_size=SIZE)


def built(steps: list[tuple[str, int, int]]) -> Callable:
    """Return a program's function of a vector: each step takes two of the last four values."""

    def program(x):
        values = [x, rg.cos(x)]
        for name, i, j in steps:
            values.append(STEPS[name](values[-1 - i % len(values)], values[-1 - j % len(values)]))
        return values[-1] + values[-2]

    return program


def tensor(point: list[float]):
    return rg.tensor(point, dtype=DTYPE)
