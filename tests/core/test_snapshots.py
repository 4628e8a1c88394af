"""Snapshots: saved tensors may be written to later, because the first write copies them."""

import gc

import pytest

import retrograd as rg
from retrograd.autograd.graph import allow_mutation_on_saved_tensors, increment_version, saved_tensors_hooks
from retrograd.core.tensor import version_of
from retrograd.nn import functional as F
from retrograd.testing import assert_close, samples_of
from retrograd.testing.calculus import as_float_map

from ..case_groups import group_cases

VALUES = [[-1.5, -0.5, 0.25], [-0.75, 2.0, -0.1]]


def leaf(values=VALUES):
    return rg.tensor(values, dtype="float64", requires_grad=True)


def saves_result(x):
    """Apply a function that saves its result for its derivative."""
    return rg.erfinv(x / 8)


def expected(f, x):
    """Return the gradient of the sum of f(x)."""
    return rg.autograd.grad(f(x).sum(), x)[0]


def writers():
    """Return the names of methods that write to their tensor, and `__setitem__`."""
    names = [n for n in dir(rg.Tensor) if n.endswith("_") and not n.startswith("_")]
    return [*names, "__setitem__", "__iadd__", "__imul__"]


def candidates():
    """Return arguments with which methods that write may be called, in the order in which they are tried."""
    like, index = rg.full((2, 3), 0.3, dtype="float64"), rg.tensor([[0, 1, 0]])
    mask = rg.tensor([[True, False, True], [False, True, True]])
    return [
        (), (0.3,), (like,), (0.1, 0.7), (like, like), (mask, 5.0), (0, index, like[:1]), (0, index, 5.0),
        (0, rg.tensor([1, 0]), like), (0, rg.tensor([1]), 5.0), ((0,), 5.0), (0, 0.3, 0.7), (2,),
        (rg.tensor([1, 4]), like[0, :2]), (mask, like), (0, index, like[:1], "sum"),
        (0, rg.tensor([1, 0]), like, "prod"), (1, 0, 2.0), (0, 1), ("relu",), (like, 0.3), (index[0], like[0]),
    ]  # fmt: skip


def write(name, y):
    """Call the method with suitable arguments; return whether the memory changed."""
    for args in candidates():
        before = y.tolist()
        try:
            with rg.no_grad():
                getattr(y, name)(*args)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError):
            assert y.tolist() == before, f"{name} was refused after it wrote"
            continue
        if y.tolist() != before:
            return True
    return False


@pytest.mark.filterwarnings("ignore")
def test_every_method_that_writes_copies_snapshots_first_and_is_detected():
    wrote = []
    for name in writers():
        x, w = leaf(), leaf()
        y, z = saves_result(x), w * 1
        first, second = y.sum(), (z * z).sum()
        if write(name, y):
            wrote.append(name)
            first.backward()
            assert x.grad.equal(expected(saves_result, leaf())), name
        if write(name, z):
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                second.backward()
    assert len(wrote) > 0.75 * len(writers()), sorted(set(writers()) - set(wrote))


def test_a_write_to_a_view_or_to_the_base_copies_too():
    for written in (lambda y: y[0].mul_(3), lambda y: y.T.fill_(2), lambda y: y.detach().zero_()):
        x = leaf()
        y = saves_result(x)
        loss = y.sum()
        with rg.no_grad():
            written(y)
        loss.backward()
        assert x.grad.equal(expected(saves_result, leaf()))
    x = leaf()
    base = x * 1
    loss = F.cross_entropy(base[:, 1:], rg.tensor([0, 1]))
    with rg.no_grad():
        base.zero_()
    loss.backward()
    assert x.grad.equal(expected(lambda x: F.cross_entropy(x[:, 1:], rg.tensor([0, 1])), leaf()))


def test_several_graphs_with_snapshots_of_one_memory_keep_what_each_saved():
    x = leaf()
    y = x * 1
    target = rg.tensor([0, 2])
    losses, leaves, gradients = [], [], []
    for factor in (1.0, 2.0, 3.0):
        with rg.no_grad():
            y.copy_(x * factor)
        leaves.append(y.detach().requires_grad_())
        losses.append(F.cross_entropy(leaves[-1], target))
        gradients.append(expected(lambda x: F.cross_entropy(x, target), leaf((x * factor).tolist())))
    for loss, y, g in zip(losses, leaves, gradients, strict=True):
        loss.backward()
        assert y.grad.equal(g)


def test_a_snapshot_serves_several_passes_and_every_order():
    x = leaf()
    y = saves_result(x)
    loss = (y * 1).sum()
    with rg.no_grad():
        y.zero_()
    w = leaf()
    first = rg.autograd.grad(saves_result(w).sum(), w, create_graph=True)[0]
    second = rg.autograd.grad(first.sum(), w)[0]
    for _ in range(2):
        g = rg.autograd.grad(loss, x, create_graph=True)[0]
        assert g.equal(first)
        assert rg.autograd.grad(g.sum(), x, retain_graph=True)[0].equal(second)


def test_a_write_over_what_a_recorded_pass_saved_of_a_snapshot_is_an_error():
    x = leaf()
    y = saves_result(x)
    g = rg.autograd.grad(y.sum(), x, create_graph=True)[0]
    with rg.no_grad():
        y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        g.sum().backward()


def test_a_write_between_two_passes_of_one_graph():
    x = leaf()
    y = saves_result(x)
    loss = y.sum()
    loss.backward(retain_graph=True)
    with rg.no_grad():
        y.zero_()
    g = rg.autograd.grad(loss, x, create_graph=True)[0]
    assert g.equal(x.grad)
    w = leaf()
    second = rg.autograd.grad(rg.autograd.grad(saves_result(w).sum(), w, create_graph=True)[0].sum(), w)[0]
    assert rg.autograd.grad(g.sum(), x)[0].equal(second)


def test_steps_of_optimizers_and_gradients_that_are_added_up_copy_too():
    target = rg.tensor([0, 2])
    for optimizer in (rg.optim.SGD, rg.optim.Adam):
        p = leaf()
        loss = F.cross_entropy(p, target)
        p.grad = rg.ones_like(p)
        optimizer([p], lr=0.1).step()
        assert rg.autograd.grad(loss, p)[0].equal(expected(lambda x: F.cross_entropy(x, target), leaf()))
    p, x = leaf(), leaf()
    (p * p).sum().backward()
    out = F.batch_norm(x, None, None, p.grad[0], None, training=True)
    (p * p).sum().backward()
    g = rg.autograd.grad((out * out * out).sum(), x)[0]
    again = leaf()
    out = F.batch_norm(again, None, None, p.grad[0] / 2, None, training=True)
    assert rg.allclose(g, rg.autograd.grad((out * out * out).sum(), again)[0])


def test_a_custom_operator_that_writes_copies_too():
    @rg.library.custom_op("snapshots::double", mutates_args=("x",))
    def double(x: rg.Tensor) -> None:
        x.numpy()[...] *= 2

    x = leaf()
    y = saves_result(x)
    loss = y.sum()
    double(y.detach())
    loss.backward()
    assert x.grad.equal(expected(saves_result, leaf()))


def test_an_unrecorded_write_is_an_error():
    x = leaf()
    y = saves_result(x)
    loss = y.sum()
    y.detach().numpy()[...] = 0
    increment_version(y)
    with pytest.raises(RuntimeError, match=r"backward of erfinv .* modified by an inplace operation"):
        loss.backward()


def test_the_memory_of_graphs_that_are_gone_is_not_copied_and_not_remembered():
    x = rg.tensor(VALUES, requires_grad=True)
    target = rg.tensor([0, 2])
    for _ in range(1000):
        F.cross_entropy(x, target)
    gc.collect()
    assert len(version_of(x).snapshots) < 200
    assert not any(reference() for reference in version_of(x).snapshots)


def test_with_hooks_on_saved_tensors_the_hooks_keep_the_value():
    x = leaf()
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = saves_result(x)
    loss = y.sum()
    with rg.no_grad():
        y.zero_()
    loss.backward()
    assert x.grad.equal(expected(saves_result, leaf()))
    x = leaf()
    with allow_mutation_on_saved_tensors():
        y = saves_result(x)
        loss = y.sum()
        with rg.no_grad():
            y.zero_()
        loss.backward()
    assert x.grad.equal(expected(saves_result, leaf()))


def test_inside_transforms():
    def f(x):
        y = saves_result(x)
        z = y * 1
        y.mul_(3)
        return (y + z).sum()

    x = leaf().detach()
    slope = expected(saves_result, leaf()) * 4
    assert rg.allclose(rg.func.grad(f)(x), slope)
    assert rg.allclose(rg.vmap(rg.func.grad(f))(x), slope)
    assert rg.allclose(rg.func.jvp(f, (x,), (rg.ones_like(x),))[1], slope.sum())


def forward_derivative(f):
    """Return the derivative of f along cos(x), in forward mode."""
    return lambda x: rg.func.jvp(f, (x,), (rg.cos(x),))[1]


def double_backward_derivative(f):
    """Return the same by two backward passes: the vjp is linear in the cotangent, and its transpose is the jvp."""

    def along(x):
        out, pull = rg.func.vjp(f, x)
        _, transpose = rg.func.vjp(lambda c: pull(c)[0], rg.zeros_like(out))
        return transpose(rg.cos(x))[0]

    return along


@group_cases
@pytest.mark.parametrize("name", sorted(name for name, op in rg.core.registry.items() if op.snapshots))
def test_passes_inside_transforms_find_snapshots_in_the_graphs_of_all_levels(name):
    op = rg.core.registry[name]
    for args, params in samples_of(op):
        function, xs = as_float_map(op, args, params)
        for i, x in enumerate(xs):

            def f(y, i=i, xs=xs, function=function):
                return rg.cat([out.reshape(-1) for out in function(*xs[:i], y, *xs[i + 1 :])])

            assert_close(
                double_backward_derivative(double_backward_derivative(f))(x),
                forward_derivative(forward_derivative(f))(x),
                rtol=1e-8,
                atol=1e-8,
            )


def test_an_operator_can_only_have_snapshots_of_what_it_saves():
    with pytest.raises(TypeError, match="snapshots of y, which are no inputs"):

        @rg.core.op("snapshots_of_nothing(Tensor x) -> Tensor")
        class snapshots_of_nothing(rg.core.Definition, snapshots="x y"):
            """Refused."""
