"""Function: marks on inputs and outputs, and outputs that are inputs or views."""

from .adapter import data, leaf, outcome, parity, warned
from .functions import pair, returning

# ---------------------------------------------------------------------------- undefined, not differentiable, dirty


@parity
def test_undefined_gradients_become_zeros(m):
    log, x = [], leaf(m, 1, 2)
    a, _ = pair(m, log).apply(x)
    a.sum().backward()
    return log, x.grad


@parity
def test_undefined_gradients_stay_none_without_materializing(m):
    log, x = [], leaf(m, 1, 2)
    _, b = pair(m, log, materialize=False).apply(x)
    b.sum().backward()
    return log, x.grad


@parity
def test_a_node_without_any_gradient(m):
    log, x = [], leaf(m, 1, 2)
    a, _ = pair(m, log).apply(x)
    returning(m, None).apply(a).sum().backward()
    b, _ = pair(m, log, materialize=False).apply(x)
    returning(m, None).apply(b).sum().backward()
    return log, x.grad


@parity
def test_an_output_that_is_not_differentiable(m):
    class Split(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x * 2, x > 1
            c = x * 3
            ctx.mark_non_differentiable(b, c)
            return a, b, c

        @staticmethod
        def backward(ctx, *gs):
            return gs[0] * 2 + gs[2]

    x = leaf(m, 1, 2)
    a, b, c = Split.apply(x)
    (a + c).sum().backward()
    return [(t.requires_grad, t.is_leaf) for t in (a, b, c)], x.grad


@parity
def test_an_input_that_is_returned_and_not_differentiable(m):
    found, log = [], []
    for mark_in_setup in (False, True):
        for tracked in (False, True):

            class Same(m.autograd.Function):
                if mark_in_setup:

                    @staticmethod
                    def forward(*args):
                        return args

                    @staticmethod
                    def setup_context(ctx, inputs, output):
                        ctx.mark_non_differentiable(output[1])

                else:

                    @staticmethod
                    def forward(ctx, *args):
                        ctx.mark_non_differentiable(args[1])
                        return args

                @staticmethod
                def backward(ctx, *gs):
                    log.append(gs)
                    return gs

            x = leaf(m, 1, 2)
            other = x * 3 if tracked else x.detach() * 3
            a, b = Same.apply(x, other)
            (a * b).sum().backward()
            found.append((x.grad, [(t.requires_grad, t.is_leaf) for t in (a, b, other)]))
    return found, log


@parity
def test_all_outputs_are_not_differentiable(m):
    class Round(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.round()
            ctx.mark_non_differentiable(out)
            return out

        @staticmethod
        def backward(ctx, g):
            raise AssertionError

    y = Round.apply(leaf(m, 1.5))
    return y, y.requires_grad, y.grad_fn is None


def in_place(m, mark=True, returned=True):
    """Return a Function that adds one to its input in place."""

    class Increment(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            if mark:
                ctx.mark_dirty(x)
            return x if returned else x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 10

    return Increment


@parity
def test_a_dirty_input_is_returned_as_the_same_object(m):
    x = leaf(m, 1, 2)
    y = x * 1
    z = in_place(m).apply(y)
    z.sum().backward()
    return z is y, y, y._version, y.grad_fn.name(), x.grad


@parity
def test_a_dirty_leaf_is_refused(m):
    return outcome(lambda: in_place(m).apply(leaf(m, 1)))


@parity
def test_a_dirty_plain_tensor(m):
    x = m.ones(2)
    y = in_place(m).apply(x)
    return y is x, y, y.requires_grad, y._version


@parity
def test_a_dirty_view_changes_the_history_of_its_base(m):
    x = leaf(m, 1, 2)
    y = x * 1
    v = y[:1]
    in_place(m).apply(v)
    y.sum().backward()
    return y, v, x.grad


@parity
def test_a_dirty_input_that_is_not_returned(m):
    x = leaf(m, 1) * 1
    return outcome(lambda: in_place(m, returned=False).apply(x))


@parity
def test_a_written_input_that_is_not_marked(m):
    x = leaf(m, 1, 2)
    y = x * 1
    z = in_place(m, mark=False).apply(y)
    z.sum().backward()
    return z is y, z, y._version, x.grad


@parity
def test_a_dirty_tensor_that_is_no_input_warns(m):
    class Odd(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return warned(lambda: Odd.apply(leaf(m, 1)))


@parity
def test_a_dirty_view_with_two_outputs(m):
    class Two(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return g + 2 * h

    x = leaf(m, 1, 2)
    return outcome(lambda: Two.apply((x * 1)[:1])), outcome(lambda: Two.apply(x * 1))


# ---------------------------------------------------------------------------- outputs that are inputs or views


@parity
def test_an_input_that_is_returned_as_it_is(m):
    class Identity(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf(m, 1, 2)
    y = Identity.apply(x)
    y.sum().backward()
    return y is x, y.requires_grad, y.is_leaf, y._is_view(), y.grad_fn.name(), x.grad, x.requires_grad


@parity
def test_a_returned_input_without_gradients(m):
    class Identity(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 5, None

    x, y = leaf(m, 1), m.ones(1)
    z = Identity.apply(x, y)
    z.backward()
    return z is y, z.requires_grad, y.requires_grad, x.grad


def viewing(m):
    """Return a Function that returns a view of its input."""

    class Viewing(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x.view(-1)

        @staticmethod
        def backward(ctx, g):
            return g.reshape(ctx.shape) * 5

    return Viewing


@parity
def test_a_view_that_is_returned(m):
    x = leaf(m, 1, 2).reshape(2, 1)
    y = viewing(m).apply(x)
    (g,) = m.autograd.grad(y.sum(), x)
    return y, g, y._is_view(), y.grad_fn.name()


@parity
def test_a_view_that_is_returned_is_not_written_to(m):
    x = leaf(m, 1, 2) * 1
    y = viewing(m).apply(x)
    return outcome(lambda: y.add_(1)), x


@parity
def test_the_base_of_a_returned_view_is_written_to(m):
    x = leaf(m, 1, 2) * 1
    y = viewing(m).apply(x)
    x.add_(1)
    return data(y), outcome(lambda: y.sum().backward())


@parity
def test_the_same_output_twice(m):
    class Twice(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 200 * h

    x = leaf(m, 1)
    a, b = Twice.apply(x)
    (a + 3 * b).backward()
    return a is b, x.grad
