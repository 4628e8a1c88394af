"""Functions shared by the tests of Functions, built for one library or the other."""

from .adapter import data


def returning(m, *gradients):
    """Return a Function of any tensors, their sum, whose backward returns the given value."""

    class Returning(m.autograd.Function):
        @staticmethod
        def forward(ctx, *xs):
            return sum(xs)

        @staticmethod
        def backward(ctx, g):
            values = tuple(v(g) if callable(v) else v for v in gradients)
            return values if len(values) != 1 else values[0]

    return Returning


def pair(m, log, materialize=True):
    """Return a Function with two outputs that logs the arguments of its backward."""

    class Pair(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            log.append(data([g, h]))
            parts = [p * c for p, c in ((g, 2), (h, 3)) if p is not None]
            return sum(parts) if parts else None

    return Pair
