"""Function: tensors saved for backward, and how they are restored."""

from ...functions import doubling, exponential, power
from .adapter import data, leaf, outcome, parity


@parity
def test_saved_inputs_outputs_none_and_others(m):
    seen = []

    class Saving(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            out, between = x * y, x + y
            ctx.save_for_backward(x, None, out, between)
            return out

        @staticmethod
        def backward(ctx, g):
            saved = ctx.saved_tensors
            seen.append([data(saved), [t is not None and t.requires_grad for t in saved]])
            return g, g

    x = leaf(m, 1, 2)
    Saving.apply(x, m.ones(2)).sum().backward()
    return seen


@parity
def test_saved_tensors_come_back_as_they_were(m):
    seen = []

    class Saving(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            out = x * y
            ctx.save_for_backward(x, y, out)
            return out

        @staticmethod
        def backward(ctx, g):
            a, b, out = ctx.saved_tensors
            seen.append([a is x, b.grad_fn is y.grad_fn, b.output_nr == y.output_nr, out.grad_fn is z.grad_fn])
            return g, g

    x = leaf(m, 1, 2)
    y = (x * 2).unbind(0)[1]
    z = Saving.apply(x, y)
    z.sum().backward()
    return seen


@parity
def test_only_tensors_are_saved(m):
    class Saving(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    return outcome(lambda: Saving.apply(leaf(m, 1)))


@parity
def test_the_last_save_counts(m):
    class Saving(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_backward(x * 3, x * 4)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[1]

    x = leaf(m, 1)
    Saving.apply(x).backward()
    return x.grad


@parity
def test_saved_tensors_before_anything_is_saved(m):
    y = doubling(m).apply(leaf(m, 1))
    return y.grad_fn.saved_tensors


@parity
def test_saved_values_are_freed(m):
    x = leaf(m, 1, 2)
    y = power(m).apply(x, 2).sum()
    y.backward(retain_graph=True)
    node = y.grad_fn.next_functions[0][0]
    y.backward()
    return outcome(y.backward), outcome(lambda: node.saved_tensors), x.grad


@parity
def test_a_function_that_saved_nothing_runs_again(m):
    x = leaf(m, 1)
    y = doubling(m).apply(x)
    y.backward()
    return outcome(y.backward), x.grad


@parity
def test_an_attribute_is_not_freed(m):
    class Keep(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.x

    x = leaf(m, 1, 2)
    y = Keep.apply(x).sum()
    y.backward()
    return outcome(y.backward), x.grad


@parity
def test_a_saved_tensor_that_was_changed(m):
    x = leaf(m, 1, 2)
    y = x * 1
    z = power(m).apply(y, 2).sum()
    y.add_(1)
    return outcome(z.backward, "PowerBackward", "version 1", "version 0")


@parity
def test_a_saved_output_that_was_changed(m):
    y = exponential(m).apply(leaf(m, 1, 2))
    y.add_(1)
    return outcome(y.sum().backward, "ExpBackward", "version")


@parity
def test_a_saved_output_has_a_derivative(m):
    x = leaf(m, 0, 1)
    (g,) = m.autograd.grad(exponential(m).apply(x).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x, create_graph=True)
    return g, h, m.autograd.grad(h.sum(), x)


@parity
def test_a_saved_value_from_between_has_no_derivative(m):
    class Square(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            twice = x * 2
            ctx.save_for_backward(twice)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(m, 3)
    (g,) = m.autograd.grad(Square.apply(x), x, create_graph=True)
    return g, g.requires_grad, outcome(lambda: m.autograd.grad(g, x))
