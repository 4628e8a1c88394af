"""`backward()`, `autograd.grad`, hooks, writes and Functions inside transforms agree with a loop over the body."""

import pytest

import retrograd as rg
from retrograd.func import grad, jvp, vjp, vmap
from retrograd.testing import assert_close

X = rg.tensor([[0.3, -1.2, 0.5], [1.1, 0.4, -0.7], [-0.2, 0.9, 1.3]], dtype=rg.float64)
T = rg.tensor([0.5, -1.0, 2.0], dtype=rg.float64)


def weight():
    return rg.tensor([[1.0, -0.5, 2.0], [0.3, 0.8, -1.0]], dtype=rg.float64, requires_grad=True)


def looped(f, xs):
    return rg.stack([f(x) for x in xs])


def difference(f, x, t, step=1e-6):
    """Return the derivative of f at x along t, of a function that may call backward()."""
    return (f((x + step * t).detach()) - f((x - step * t).detach())) / (2 * step)


def by_backward(w):
    """Return the gradient of a leaf created inside; `w`, from outside, gets its own."""

    def body(x):
        v = (x * x).detach().requires_grad_()
        rg.sin(w @ v).sum().backward()
        return v.grad

    return body


def test_backward_inside_vmap_gives_leaves_inside_and_outside_what_a_loop_gives_them():
    w, other = weight(), weight()
    assert_close(vmap(by_backward(w))(X), looped(by_backward(other), X))
    assert_close(w.grad, other.grad)


def test_backward_of_what_the_examples_share_counts_once_for_each():
    w, other = weight(), weight()

    def body(w):
        def f(x):
            (w * w).sum().backward()
            return x

        return f

    vmap(body(w))(X)
    looped(body(other), X)
    assert w.grad.tolist() == other.grad.tolist()


def test_backward_with_a_gradient_of_its_own_per_example_or_shared():
    w, other = weight(), weight()

    def body(w, shared):
        def f(x):
            (w @ x).backward(rg.ones(2, dtype=rg.float64) if shared else x[:2])
            return x

        return f

    for shared in (True, False):
        vmap(body(w, shared))(X)
        looped(body(other, shared), X)
        assert_close(w.grad, other.grad)


def test_gradients_of_outer_and_inner_tensors_by_autograd_grad_are_those_of_each_example():
    w = weight()

    def outer(x):
        return rg.autograd.grad(rg.sin(w @ x).sum(), w)[0]

    def both(x):
        v = x.detach().requires_grad_()
        hidden = w @ v
        gw, gv, gh = rg.autograd.grad(rg.sin(hidden).sum(), [w, v, hidden])
        return rg.cat([gw.flatten(), gv, gh])

    def of_hidden(x):
        hidden = w @ x
        return rg.autograd.grad(rg.sin(hidden).sum(), hidden)[0]

    for f in (outer, both, of_hidden):
        assert_close(vmap(f)(X), looped(f, X))
    assert w.grad is None


def test_an_outer_tensor_that_the_example_does_not_reach_is_refused_or_zero():
    w = weight()
    with pytest.raises(RuntimeError, match="Tensor at index 0 appears to not have been used in the graph"):
        vmap(lambda x: rg.autograd.grad(x.detach().requires_grad_().sum(), w)[0])(X)

    def f(x):
        return rg.autograd.grad(x.detach().requires_grad_().sum(), w, materialize_grads=True)[0]

    assert vmap(f)(X).tolist() == rg.zeros(3, 2, 3).tolist()


def test_backward_inside_jvp_carries_the_tangent():
    def f(x):
        x = x.requires_grad_()
        rg.sin(x * x).sum().backward()
        return x.grad

    assert_close(jvp(f, (X[0],), (T,))[1], difference(f, X[0], T), rtol=1e-6, atol=1e-7)


def test_gradients_of_outer_tensors_inside_jvp_carry_the_tangent():
    w = weight()

    def f(x):
        return rg.autograd.grad(rg.sin(w @ x).sum(), w)[0]

    assert_close(jvp(f, (X[0],), (T,))[1], difference(f, X[0], T), rtol=1e-6, atol=1e-7)


def test_backward_inside_jvp_reaches_the_leaves_outside():
    w = weight()

    def f(x):
        loss = rg.sin(w @ x).sum()
        loss.backward()
        return loss

    jvp(f, (X[0],), (T,))
    assert_close(w.grad, rg.outer(rg.cos(w @ X[0]), X[0]).detach())


def test_backward_inside_grad_is_a_constant_for_it():
    def f(x):
        v = (x * x).detach().requires_grad_()
        rg.sin(v).sum().backward()
        return (v.grad * x).sum()

    assert_close(grad(f)(X[0]), rg.cos(X[0] ** 2))


def test_a_gradient_with_create_graph_inside_grad_is_differentiated():
    def f(x):
        (g,) = rg.autograd.grad(rg.sin(x).sum(), x, create_graph=True)
        return (g * g).sum()

    assert_close(grad(f)(X[0]), -rg.sin(2 * X[0]))


def test_silent_zero_gradients_are_refused():
    w = weight()

    def f(x):
        (g,) = rg.autograd.grad(rg.sin(w @ x).sum(), w, create_graph=True)
        return (g * g).sum()

    with pytest.raises(RuntimeError, match="Pass that input to the function as an argument"):
        grad(f)(X[0])


def test_every_nesting_pulls_back_down_to_the_ground():
    w, other = weight(), weight()

    def body(w):
        def f(x):
            loss = rg.sin(w @ x).sum()
            loss.backward()
            return loss

        return f

    vmap(lambda x: jvp(body(w), (x,), (T,))[0])(X)
    looped(body(other), X)
    assert_close(w.grad, other.grad)


def test_per_example_gradients_by_a_plain_training_step():
    model = rg.nn.Linear(3, 1)
    x, y = X.to(rg.float32), rg.tensor([[1.0], [0.0], [2.0]])

    def step(x, y):
        loss = ((model(x) - y) ** 2).sum()
        return rg.autograd.grad(loss, model.weight)[0]

    alone = rg.stack([step(*pair) for pair in zip(x, y, strict=True)])
    assert_close(vmap(step)(x, y), alone)


def test_hooks_run_inside_a_transform():
    def f(x):
        y = rg.sin(x)
        y.register_hook(lambda g: 2 * g)
        return (y * x).sum()

    def expected(x):
        return rg.sin(x) + 2 * x * rg.cos(x)

    assert_close(grad(f)(X[0]), expected(X[0]))
    assert_close(vmap(grad(f))(X), expected(X))


def test_saved_tensor_hooks_see_what_a_transform_saves():
    packed = []

    def pack(t):
        packed.append(t.shape)
        return t

    with rg.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        found = grad(lambda x: (x**3).sum())(X[0])
    assert_close(found, 3 * X[0] ** 2)
    assert packed


def along_ones(f):
    return lambda x: jvp(f, (x,), (rg.ones_like(x),))[1]


@pytest.mark.parametrize("transform", [grad, along_ones, lambda f: lambda x: vmap(f)(rg.stack([x, -x]))])
def test_writes_and_views_inside_a_transform_are_those_of_a_loop(transform):
    def written(x):
        y = x.clone()
        y[1:] *= 2
        z = y.view(-1)
        z[0] = x[-1] ** 2
        y[:1].add_(x[0])
        return (z**2).sum()

    def pure(x):
        return ((x[-1] ** 2 + x[0]) ** 2) + (4 * x[1:] ** 2).sum()

    assert_close(transform(written)(X[0]), transform(pure)(X[0]))


def test_a_tensor_made_inside_becomes_different_for_each_example_when_an_example_is_written_to_it():
    def f(x):
        table = rg.zeros(2, 3, dtype=rg.float64)
        table[1] = x
        table[:, 0] += x[2]
        return table

    assert vmap(f)(X).tolist() == looped(f, X).tolist()


def test_no_grad_inside_a_batch_cuts_the_outer_graph_it_too():
    w = weight()

    def f(x):
        with rg.no_grad():
            y = w @ x
        return y.sum() + (w @ x).sum()

    vmap(f)(X).sum().backward()
    assert_close(w.grad, X.sum(0).expand(2, 3))
    with rg.no_grad():
        assert not vmap(lambda x: w @ x)(X).requires_grad


def test_an_outer_tensor_requires_grad_inside_a_transform_as_in_a_loop():
    w, seen = weight(), []
    vmap(lambda x: seen.append((w @ x).requires_grad) or x)(X)
    vmap(lambda x: seen.append((w @ x).detach().requires_grad) or x)(X)
    assert seen == [True, False]


def test_transforms_run_inside_a_function():
    class Newton(rg.autograd.Function):
        """The root of y**3 = x by Newton's method, differentiated by the implicit function theorem."""

        @staticmethod
        def forward(ctx, x):
            y = rg.ones_like(x)
            for _ in range(20):
                value, slope = jvp(lambda y: y**3 - x, (y,), (rg.ones_like(y),))
                y = y - value / slope
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g / grad(lambda y: (y**3).sum())(y)

    x = rg.tensor([8.0, 27.0], dtype=rg.float64, requires_grad=True)
    Newton.apply(x).sum().backward()
    assert_close(x.grad, rg.tensor([1 / 12, 1 / 27], dtype=rg.float64))


def test_a_captured_tensor_that_is_written_to_is_refused():
    outside = rg.zeros(3, dtype=rg.float64)

    def f(x):
        outside.add_(x)
        return x.sum()

    for run in (grad(f), lambda x: vjp(f, x)):
        with pytest.raises(RuntimeError, match=r"add_: the function provided .* a tensor from outside"):
            run(X[0])
    with pytest.raises(RuntimeError, match=r"add_ would write other values for each example into a tensor of shape"):
        vmap(f)(X[0])
    assert outside.tolist() == [0.0] * 3


def test_a_dual_level_that_would_miss_a_gradient_of_an_outer_tensor_is_refused():
    w = weight()

    def f(x):
        with rg.autograd.forward_ad.dual_level():
            dual = rg.autograd.forward_ad.make_dual(x, x)
            return rg.autograd.grad((w @ dual).sum(), w)[0]

    with pytest.raises(NotImplementedError, match="enter that outside of VmapLevel"):
        vmap(f)(X)


@pytest.mark.parametrize("run", [vmap, lambda f: lambda xs: rg.stack([jvp(f, (x,), (T,))[1] for x in xs])])
def test_saved_tensor_hooks_unpack_the_values_that_the_transform_saved(run):
    def slope(x):
        v = x * 1
        v.requires_grad_()
        rg.sin(v * v).sum().backward()
        return v.grad

    def hooked(x):
        with rg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return slope(x)

    assert_close(run(hooked)(X), run(slope)(X))


def by_detach(x):
    y = x * 1
    y.detach()[0] = 5
    return (y * y).sum()


def by_a_detached_view_that_was_there_before(x):
    y = x * 1
    d = y.detach()
    y.mul_(2)
    return d.sum() + y.sum()


def by_what_would_be_a_copy(x):
    y = rg.outer(x, x)
    y.t().reshape(-1).mul_(2)
    return y.sum()


def by_a_leaf_on_detached_memory(x):
    y = x * 1
    v = y.detach().requires_grad_()
    y.add_(1)
    (v * v).sum().backward()
    return (v.grad * x).sum()


@pytest.mark.parametrize(
    "program",
    [by_detach, by_a_detached_view_that_was_there_before, by_what_would_be_a_copy, by_a_leaf_on_detached_memory],
)
def test_memory_is_shared_inside_a_transform_where_it_is_outside(program):
    leaf = X[0].clone().requires_grad_()
    (expected,) = rg.autograd.grad(program(leaf), leaf)
    assert_close(vmap(program)(X), looped(program, X))
    assert_close(grad(program)(X[0]), expected)
    assert_close(jvp(program, (X[0],), (T,))[1], (expected * T).sum())
