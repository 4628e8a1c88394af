"""Graphs across a transform: recorded outside and differentiated inside, or the other way round."""

import pytest

import retrograd as rg
from retrograd.autograd import functional
from retrograd.func import grad, hessian, jacrev, jvp, vmap
from retrograd.testing import assert_close
from retrograd.utils.checkpoint import checkpoint

X = rg.tensor([[0.3, -1.2, 0.5], [1.1, 0.4, -0.7]], dtype=rg.float64)


def looped(f, xs):
    return rg.stack([f(x) for x in xs])


def captured():
    """Return a leaf, and values computed from it before any transform began."""
    w = rg.tensor([0.4, -0.9, 1.5], dtype=rg.float64, requires_grad=True)
    return w, w.sin() * w


def test_a_graph_from_around_is_pulled_back_for_all_cotangents_at_once():
    w, y = captured()
    passes = []
    y.grad_fn.register_hook(lambda *_: passes.append(1))
    rows = vmap(lambda g: rg.autograd.grad(y, w, g)[0])(rg.eye(3, dtype=rg.float64))
    assert_close(rows, rg.diag(w * w.cos() + w.sin()))
    assert len(passes) == 1


def test_a_graph_from_around_is_differentiated_by_its_cotangent():
    w, y = captured()
    expected = (w * w.cos() + w.sin()).detach()

    def pull(g, create_graph=False):
        return rg.autograd.grad(y, w, g, retain_graph=True, create_graph=create_graph)[0]

    assert_close(jvp(pull, (X[0],), (X[1],))[1], expected * X[1])
    assert_close(grad(lambda g: pull(g, True).sum())(X[0]), expected)


def test_backward_of_a_graph_from_around_with_a_gradient_per_example():
    (w, y), (other, z) = captured(), captured()
    vmap(lambda g: y.backward(g, retain_graph=True) or g)(X)
    looped(lambda g: z.backward(g, retain_graph=True) or g, X)
    assert_close(w.grad, other.grad)


def test_a_derivative_along_cotangents_that_would_be_a_silent_zero_is_refused():
    x = X.clone().requires_grad_()

    def derivative_of_sine(row):
        y = row.sin()
        g = rg.ones_like(y).requires_grad_()
        (pulled,) = rg.autograd.grad(y, row, g, create_graph=True)
        return rg.autograd.grad(pulled, g, row)

    with pytest.raises(RuntimeError, match="or their cotangents are in that of VmapLevel"):
        vmap(derivative_of_sine)(x)


@pytest.mark.parametrize("name", ["hvp", "vhp"])
def test_products_with_hessians_inside_a_batch_reach_the_outer_graph(name):
    def f(row):
        return getattr(functional, name)(lambda z: (z**3).sum(), row, row, create_graph=True)[1]

    x = X.clone().requires_grad_()
    out = vmap(f)(x)
    assert_close(out, 6 * X**2)
    assert_close(rg.autograd.grad(out.sum(), x)[0], 12 * X)


def test_a_batch_of_cotangents_inside_a_batch_reaches_the_outer_graph():
    def f(row):
        basis = rg.eye(3, dtype=rg.float64)
        return rg.autograd.grad(row.sin(), row, basis, is_grads_batched=True, create_graph=True)[0].sum(0)

    x = X.clone().requires_grad_()
    out = vmap(f)(x)
    assert_close(out, X.cos())
    assert_close(rg.autograd.grad(out.sum(), x)[0], -X.sin())


@pytest.mark.parametrize("register", [lambda y: y.register_hook(lambda g: 3 * g), lambda y: y.retain_grad()])
def test_a_hook_that_would_not_see_the_gradient_is_refused(register):
    x = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="flows in a graph around VmapLevel"):
        vmap(lambda row: register(row * 2) or row)(x)


def test_a_checkpoint_inside_a_transform_is_recomputed_when_that_is_over():
    def layer(x):
        return x.tanh() * x

    def f(x):
        return checkpoint(layer, x, use_reentrant=False)

    x = X.clone().requires_grad_()
    vmap(f)(x).sum().backward()
    assert_close(x.grad, vmap(grad(lambda x: layer(x).sum()))(X))
    assert_close(hessian(lambda x: f(x).prod())(X[0]), hessian(lambda x: layer(x).prod())(X[0]))
    assert_close(vmap(jacrev(jacrev(f)))(X), vmap(jacrev(jacrev(layer)))(X))


@pytest.mark.parametrize("leave", [lambda y: y.data, lambda y: y.clone().detach_()])
def test_detached_tensors_leave_outer_graphs_and_lose_their_tangent(leave):
    def f(row):
        return leave(row) * row

    x = X.clone().requires_grad_()
    vmap(f)(x).sum().backward()
    assert_close(x.grad, X)
    assert_close(jvp(f, (X[0],), (X[1],))[1], X[0] * X[1])


@pytest.mark.parametrize(
    "write", [lambda x, y: x.copy_(y), lambda x, y: x.add_(y), lambda x, y: x.__setitem__(0, y[0])]
)
def test_an_escaped_tensor_is_not_written_into_one_outside(write):
    kept = []
    grad(lambda x: kept.append(x * 2) or x.sum())(X[0])
    outside = rg.zeros(3, dtype=rg.float64)
    with pytest.raises(RuntimeError, match="has escaped the function"):
        write(outside, kept[0])
    assert outside.tolist() == [0.0] * 3
