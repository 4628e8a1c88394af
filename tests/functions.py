"""Functions with derivatives of their own that several tests use; `m` is retrograd, or PyTorch in tests of parity."""

import retrograd as rg


def doubling(m, slope=2):
    """Return a Function that doubles, whose backward multiplies by `slope`."""

    class Double(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * slope

    return Double


def multiple(m, factor, pull, push):
    """Return a Function that multiplies by a number, whose derivatives are `pull(g)` and `push(t)`."""

    class Multiple(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return pull(g)

        @staticmethod
        def jvp(ctx, t):
            return push(t)

    return Multiple


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


def cube(m, slope=lambda x: 3 * x * x):
    """Return a Function that saves its input x, and whose derivative is `slope(x)`."""

    class Cube(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * slope(x)

    return Cube


def exponential(m):
    """Return a Function that saves its output."""

    class Exp(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    return Exp


def product(m, factor):
    """Return a Function of two tensors whose derivatives are too large by a factor, to tell by which rule they came."""

    class Product(m.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return factor * g * y, factor * (g * x).sum_to_size(y.shape)

        @staticmethod
        def jvp(ctx, t, u):
            x, y = ctx.saved_tensors
            return factor * (t * y + x * u)

    return Product


class Steep(rg.autograd.Function):
    """Double, with the gradient g * slope: code that differentiates `forward` gets 2 g."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, slope):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.slope = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.slope, None

    @staticmethod
    def jvp(ctx, t, _):
        return t * ctx.slope


def underived(name, **rules):
    """Return a Function of retrograd of this name that doubles, with these rules only."""

    def forward(x):
        return x * 2

    def setup_context(ctx, inputs, output):
        """Save nothing."""

    members = {"forward": forward, "setup_context": setup_context} | rules
    return type(name, (rg.autograd.Function,), {key: staticmethod(value) for key, value in members.items()})
