"""Functions shared by the tests of Functions, built for one library or the other."""

from .adapter import data


def doubling(m):
    """Return a Function that doubles."""

    class Double(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Double


def power(m):
    """Return a Function of a tensor and an integer that saves its input."""

    class Power(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            ctx.n = n
            return x**n

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

    return Power


def cube(m):
    """Return a Function that saves its input."""

    class Cube(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

    return Cube.apply


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
