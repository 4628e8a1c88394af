"""Function: user-defined operators behave as in PyTorch."""

from ...functions import doubling, power
from .adapter import data, leaf, outcome, parity, warned
from .functions import pair, returning

# ---------------------------------------------------------------------------- forward and backward


@parity
def test_a_function_and_its_backward(m):
    x = leaf(m, 1, 2)
    y = doubling(m).apply(x)
    y.sum().backward()
    return y, y.requires_grad, y.is_leaf, x.grad


@parity
def test_arguments_that_are_no_tensors(m):
    x = leaf(m, 2, 3)
    y = power(m).apply(x, 3)
    y.sum().backward()
    return y, x.grad


@parity
def test_setup_context_does_the_saving(m):
    class Scale(m.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.factor = inputs
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, g):
            _, output = ctx.saved_tensors
            return g * ctx.factor, (g * output).sum().reshape(1) / ctx.factor

    x, factor = leaf(m, 1, 2), leaf(m, 3)
    y = Scale.apply(x, factor)
    y.sum().backward()
    return y, x.grad, factor.grad


@parity
def test_the_mode_inside_forward_and_backward(m):
    log = []

    class Watch(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            log.append([m.is_grad_enabled(), x.requires_grad, (x * 2).requires_grad])
            return x * 2

        @staticmethod
        def backward(ctx, g):
            log.append([m.is_grad_enabled(), (g * 2).requires_grad])
            return g * 2

    x = leaf(m, 1)
    y = Watch.apply(x)
    m.autograd.grad(y, x, retain_graph=True)
    m.autograd.grad(y, x, create_graph=True)
    return log


@parity
def test_enable_grad_inside_forward_makes_an_inner_graph(m):
    class Inner(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with m.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x.sin()
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            return m.autograd.grad(ctx.y, ctx.x, g)[0]

    x = leaf(m, 1, 2)
    Inner.apply(x).sum().backward()
    return x.grad


@parity
def test_without_gradients_nothing_is_recorded(m):
    x = leaf(m, 1)
    with m.no_grad():
        y = doubling(m).apply(x)
    z = doubling(m).apply(x.detach())
    return [(t.requires_grad, t.is_leaf, t.grad_fn is None) for t in (y, z)]


@parity
def test_only_tensors_at_the_top_level_are_recorded(m):
    class Total(m.autograd.Function):
        @staticmethod
        def forward(ctx, xs):
            return xs[0] + xs[1]

        @staticmethod
        def backward(ctx, g):
            return None

    y = Total.apply([leaf(m, 1), leaf(m, 2)])
    return y, y.requires_grad


@parity
def test_defaults_of_forward(m):
    class Scale(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=5):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf(m, 1, 2)
    y = Scale.apply(x)
    return y, outcome(lambda: m.autograd.grad(y.sum(), x))


@parity
def test_functions_in_functions(m):
    cube = power(m)

    class Outer(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return cube.apply(x, 3) + 1

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * cube.apply(x, 2)

    x = leaf(m, 1, 2)
    y = Outer.apply(doubling(m).apply(x))
    (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
    return y, g, m.autograd.grad(g.sum(), x)


@parity
def test_two_derivatives(m):
    x = leaf(m, 2, 3)
    (g,) = m.autograd.grad(power(m).apply(x, 3).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x, create_graph=True)
    return g, h, m.autograd.grad(h.sum(), x)


@parity
def test_a_constant_gradient_has_no_derivative(m):
    x = leaf(m, 2)
    (g,) = m.autograd.grad(doubling(m).apply(x), x, create_graph=True)
    return g.requires_grad, outcome(lambda: m.autograd.grad(g, x))


@parity
def test_several_outputs(m):
    log, x = [], leaf(m, 1, 2)
    a, b = pair(m, log).apply(x)
    (a * b).sum().backward()
    return a, b, x.grad, log, a.grad_fn is b.grad_fn, [a.output_nr, b.output_nr]


@parity
def test_outputs_that_are_no_tensors(m):
    class Mixed(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "text", None, 3

        @staticmethod
        def backward(ctx, g, *others):
            assert others == (None, None, None), others
            return g * 2

    x = leaf(m, 1, 2)
    y, *others = Mixed.apply(x)
    y.sum().backward()
    return y, others, x.grad


@parity
def test_a_list_of_outputs(m):
    class Listed(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return [x * 2, x * 3]

        @staticmethod
        def backward(ctx, *gs):
            return gs[0]

    out = Listed.apply(leaf(m, 1))
    return isinstance(out, list), [v.requires_grad for v in out]


@parity
def test_an_integer_output_gets_no_gradient(m):
    class Ranked(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x.long()

        @staticmethod
        def backward(ctx, g, h):
            return g * 2

    x = leaf(m, 1, 2)
    y, i = Ranked.apply(x)
    y.sum().backward()
    return y.requires_grad, i.requires_grad, i, x.grad


@parity
def test_the_node_is_named_after_the_class(m):
    y = doubling(m).apply(leaf(m, 1))
    return y.grad_fn.name()


@parity
def test_attributes_of_the_context_are_those_of_the_node(m):
    x = leaf(m, 1, 2)
    node = power(m).apply(x, 3).grad_fn
    return node.n, data(node.saved_tensors), node.saved_tensors[0] is x, node.needs_input_grad


@parity
def test_next_functions_of_a_function(m):
    x, y = leaf(m, 1), leaf(m, 2)
    node = returning(m, None, None, None).apply(x, y * 2, m.ones(1)).grad_fn
    return [n and n.name().rpartition(":")[2] for n, _ in node.next_functions]


@parity
def test_needs_input_grad(m):
    seen = []

    class Needs(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, n):
            seen.append(ctx.needs_input_grad)
            return x * y * n

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, None

    x = leaf(m, 1)
    Needs.apply(x, m.ones(1), 3).backward()
    return seen


@parity
def test_needs_input_grad_of_a_partial_backward(m):
    seen = []

    class Needs(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, g

    x, y = leaf(m, 1), leaf(m, 2)
    return m.autograd.grad(Needs.apply(x, y), y), seen


@parity
def test_an_error_in_forward_and_in_backward(m):
    class Failing(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, fail):
            if fail:
                raise KeyError("forward")
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("backward")

    x = leaf(m, 1)
    y = Failing.apply(x, False)
    return outcome(lambda: Failing.apply(x, True)), m.is_grad_enabled(), outcome(y.backward), x.grad


@parity
def test_a_function_must_have_a_forward(m):
    class Empty(m.autograd.Function):
        pass

    return outcome(lambda: Empty.apply(leaf(m, 1)))


@parity
def test_a_missing_backward_is_an_error_at_backward(m):
    class Blind(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    y = Blind.apply(leaf(m, 1))
    return y.requires_grad, outcome(y.backward, "Blind")


@parity
def test_backward_and_vjp_exclude_each_other(m):
    class Both(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        vjp = backward

    return outcome(lambda: Both.apply(leaf(m, 1)).backward(), "Both")


@parity
def test_vjp_is_another_name_of_backward(m):
    class Named(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    x = leaf(m, 1)
    Named.apply(x).backward()
    return x.grad


@parity
def test_a_function_is_not_called_as_an_object(m):
    return warned(lambda: doubling(m)()(leaf(m, 1)))[1]


# ---------------------------------------------------------------------------- other things


@parity
def test_a_static_method_may_be_shared_by_inheritance(m):
    class Triple(doubling(m)):
        @staticmethod
        def forward(ctx, x):
            return x * 3

    x = leaf(m, 1)
    y = Triple.apply(x)
    y.backward()
    return y, x.grad, y.grad_fn.name()


@parity
def test_hooks_on_the_node_of_a_function(m):
    log, x = [], leaf(m, 1, 2)
    y = doubling(m).apply(x)
    y.grad_fn.register_prehook(lambda gs: log.append(["pre", data(gs)]))
    y.grad_fn.register_hook(lambda inputs, outputs: log.append(["post", data(inputs), data(outputs)]))
    y.sum().backward()
    return log


@parity
def test_apply_with_the_same_tensor_twice(m):
    x = leaf(m, 1, 2)
    returning(m, lambda g: g, lambda g: g * 10).apply(x, x).sum().backward()
    return x.grad


@parity
def test_backward_inside_backward(m):
    class Nested(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            with m.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (x**3).sum().backward()
            return g * x.grad

    x = leaf(m, 1, 2)
    Nested.apply(x * 1).sum().backward()
    return x.grad


@parity
def test_a_value_that_depends_on_nothing_differentiable(m):
    class Random(m.autograd.Function):
        @staticmethod
        def forward(ctx, n):
            return m.ones(n)

        @staticmethod
        def backward(ctx, g):
            return None

    y = Random.apply(2)
    return y, y.requires_grad


@parity
def test_a_function_over_an_empty_tensor(m):
    x = leaf(m)
    doubling(m).apply(x).sum().backward()
    return x.grad


@parity
def test_backward_calls_another_function_with_gradients(m):
    double = doubling(m)

    class Outer(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 4

        @staticmethod
        def backward(ctx, g):
            return double.apply(double.apply(g))

    x, w = leaf(m, 1), leaf(m, 3)
    (g,) = m.autograd.grad(Outer.apply(x), x, w, create_graph=True)
    return g, g.grad_fn.name(), m.autograd.grad(g, w)
