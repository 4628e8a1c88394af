"""Elementwise operators and reductions of a nested tensor of shape (3, j, 4), as f(m, x)."""

from .common import functional, nested, other, twin
from .common import x as dense


def written(x, name, *args):
    getattr(x, name)(*args)
    return x


UNARY = {
    **{
        name: lambda m, x, name=name: getattr(m, name)(x)
        for name in [
            "sin",
            "neg",
            "abs",
            "exp",
            "tanh",
            "sigmoid",
            "relu",
            "erf",
            "sign",
            "floor",
            "isnan",
            "logical_not",
            "square",
            "digamma",
        ]
    },
    **{
        name: lambda m, x, name=name: getattr(functional(m), name)(x)
        for name in ["gelu", "silu", "elu", "softplus", "mish"]
    },
    "gelu by tanh": lambda m, x: functional(m).gelu(x, approximate="tanh"),
    "leaky_relu": lambda m, x: functional(m).leaky_relu(x, 0.1),
    "threshold": lambda m, x: functional(m).threshold(x, 0.1, 2.0),
    "clamp": lambda m, x: x.clamp(-0.5, 0.5),
    "pow": lambda m, x: x**2,
    "log of the absolute value": lambda m, x: x.abs().log(),
    "nan_to_num": lambda m, x: m.nan_to_num(x),
    "to float32": lambda m, x: x.to(m.float32),
    "clone": lambda m, x: x.clone(),
    "detach": lambda m, x: x.detach(),
    "dropout of nothing": lambda m, x: functional(m).dropout(x, 0.0),
    "dropout of everything": lambda m, x: functional(m).dropout(x, 1.0),
    "zeros_like": lambda m, x: m.zeros_like(x),
    "ones_like": lambda m, x: m.ones_like(x),
    "full_like": lambda m, x: m.full_like(x, 2.5),
    "sin_": lambda m, x: written(x, "sin_"),
    "zero_": lambda m, x: written(x, "zero_"),
    "fill_": lambda m, x: written(x, "fill_", 3.0),
}

BINARY = {
    "x + x": lambda m, x: x + x,
    "x * a number": lambda m, x: x * 2.5,
    "a number - x": lambda m, x: 1 - x,
    "x / its twin": lambda m, x: x / twin(m, x),
    "x * one of other sizes": lambda m, x: x * other(m, x),
    "x * one that does not fit": lambda m, x: x * nested(m, lengths=(3, 1, 5)),
    "x * a function of it": lambda m, x: x * x.sin(),
    "x + a row": lambda m, x: x + dense(m, 4),
    "x * a matrix of one row": lambda m, x: x * dense(m, 1, 4),
    "x + a row for each component": lambda m, x: x + dense(m, 3, 1, 4),
    "x * a number for each component": lambda m, x: x * dense(m, 3, 1, 1),
    "x + a number tensor": lambda m, x: x + dense(m),
    "x + a row that does not fit": lambda m, x: x + dense(m, 3),
    "x > 0": lambda m, x: x > 0,
    "x == x": lambda m, x: x == x,
    "maximum": lambda m, x: m.maximum(x, twin(m, x)),
    "where": lambda m, x: m.where(x > 0, x, 0.0),
    "where of three": lambda m, x: m.where(x > 0, x, x.sin()),
    "masked_fill": lambda m, x: x.masked_fill(x > 0, 0.0),
    "atan2": lambda m, x: m.atan2(x, twin(m, x)),
    "lerp": lambda m, x: m.lerp(x, x.sin(), 0.3),
    "addcmul": lambda m, x: m.addcmul(x, x, x),
    "add_ of itself": lambda m, x: written(x, "add_", x.clone()),
    "mul_ by a number": lambda m, x: written(x, "mul_", 2.0),
    "copy_": lambda m, x: written(x, "copy_", x.sin()),
    "allclose": lambda m, x: m.allclose(x, x.clone()),
    "equal": lambda m, x: m.equal(x, x.clone()),
}

REDUCED = {
    **{
        f"{name} of all": lambda m, x, name=name: getattr(x, name)()
        for name in ["sum", "mean", "amax", "prod", "std", "any"]
    },
    **{
        f"{name} along the {where}": lambda m, x, name=name, dim=dim: getattr(x, name)(dim)
        for name in ["sum", "mean", "amax", "amin", "prod", "var", "std", "logsumexp", "argmax", "all", "any"]
        for where, dim in {"last": -1, "ragged": 1}.items()
    },
    **{
        f"{name} along the {where}, kept": lambda m, x, name=name, dim=dim: getattr(x, name)(dim, keepdim=True)
        for name in ["sum", "mean", "amax"]
        for where, dim in {"last": -1, "ragged": 1, "two": (1, 2)}.items()
    },
    "sum along the components": lambda m, x: x.sum(0),
    "sum along all three": lambda m, x: x.sum((0, 1, 2)),
    "sum along the components and the ragged": lambda m, x: x.sum((0, 1)),
    "max with its place along the last": lambda m, x: tuple(x.max(-1)),
    "max with its place along the ragged": lambda m, x: tuple(x.max(1)),
    "norm along the last": lambda m, x: m.linalg.vector_norm(x, dim=-1),
    "softmax along the last": lambda m, x: m.softmax(x, -1),
    "softmax along the ragged": lambda m, x: m.softmax(x, 1),
    "log_softmax along the last": lambda m, x: m.log_softmax(x, -1),
    "log_softmax along the ragged": lambda m, x: m.log_softmax(x, 1),
    "softmax along the components": lambda m, x: m.softmax(x, 0),
    "cumsum along the last": lambda m, x: m.cumsum(x, -1),
    "cumsum along the ragged": lambda m, x: m.cumsum(x, 1),
    "sort along the ragged": lambda m, x: m.sort(x, 1).values,
    "topk along the last": lambda m, x: m.topk(x, 2, -1).values,
    "flip along the ragged": lambda m, x: m.flip(x, (1,)),
}
