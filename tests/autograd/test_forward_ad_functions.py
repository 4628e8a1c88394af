"""User-defined Functions in forward mode: inside a dual_level, `jvp` computes the tangents of the outputs."""

import pytest

import retrograd as rg
from retrograd import func
from retrograd.autograd import Function
from retrograd.autograd import forward_ad as fwd


def vector(*values, **options):
    return rg.tensor(list(values), dtype=rg.float64, **options)


def tangent(x):
    found = fwd.unpack_dual(x).tangent
    return None if found is None else found.tolist()


def dual(x=(1.0, 2.0, -3.0), t=(3.0, 4.0, 0.5)):
    return fwd.make_dual(vector(*x), vector(*t))


@pytest.fixture
def level():
    with fwd.dual_level() as number:
        yield number


class Scaled(Function):
    """x * y, with derivatives that are a hundred times too large."""

    @staticmethod
    def forward(ctx, x, y):
        assert fwd.unpack_dual(x).tangent is None
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x

    @staticmethod
    def jvp(ctx, a, b):
        x, y = ctx.saved_tensors
        return 100 * (a * y + x * b)


class ScaledApart(Scaled):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)


def twice(ctx, x, y):
    return x * 2


def one(jvp, forward=twice):
    return type("One", (Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


@pytest.mark.parametrize("cls", [Scaled, ScaledApart])
def test_a_function_gives_the_tangents_of_its_jvp(level, cls):
    assert tangent(cls.apply(dual((2.0,), (1.0,)), vector(3.0))) == [300]
    w = vector(2.0, requires_grad=True)
    d = fwd.make_dual(w, vector(1.0))
    y = cls.apply(d, d)
    assert tangent(y) == [400]
    (g,) = rg.autograd.grad(y, w, retain_graph=True)
    assert (g.tolist(), tangent(g)) == ([4], [2])
    assert rg.autograd.grad(fwd.unpack_dual(y).tangent, w)[0].tolist() == [200]


@pytest.mark.parametrize("cls", [Scaled, ScaledApart])
def test_a_functions_jvp_is_used_by_outer_levels(cls):
    with fwd.dual_level():
        x = dual((2.0,), (1.0,))
        with fwd.dual_level():
            y = cls.apply(fwd.make_dual(x, vector(1.0)), vector(3.0))
            first = fwd.unpack_dual(y).tangent * x
        assert tangent(y) == [300]
        assert tangent(first) == [300]


def test_a_function_inside_a_transform_and_a_level(level):
    assert tangent(func.vmap(lambda x: x * ScaledVmap.apply(x))(dual())) == [3 * 1 + 300, 4 * 2 + 800, -1.5 - 150]


class ScaledVmap(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g

    @staticmethod
    def jvp(ctx, t):
        return 100 * t


def test_a_jvp_reads_what_was_saved_for_it(level):
    seen = []

    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        ctx.save_for_forward(y, x)
        return x * y

    def jvp(ctx, a, b):
        seen.append([saved.tolist() for saved in ctx.saved_tensors])
        return a

    one(jvp, forward).apply(fwd.make_dual(vector(1.0, requires_grad=True), vector(1.0)), vector(2.0))
    assert seen == [[[2], [1]]]


def test_operations_in_a_forward_are_not_differentiated_even_after_a_function_in_it(level):
    def forward(ctx, x, y):
        inner = one(lambda ctx, a, b: a).apply(x, 0)
        assert fwd.unpack_dual(inner * x).tangent is None
        return inner

    assert tangent(one(lambda ctx, a, b: 5 * a, forward).apply(dual((1.0,), (1.0,)), 0)) == [5]


def test_a_function_gets_none_for_what_is_no_tensor_and_zeros_for_what_has_no_tangent(level):
    seen = []

    def jvp(ctx, a, b):
        seen.append(None if b is None else b.tolist())
        return a

    def unfilled(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 2

    one(jvp).apply(dual(), 3)
    one(jvp).apply(dual(), vector(1, 2))
    one(jvp, unfilled).apply(dual(), vector(1, 2))
    assert seen == [None, [0, 0], None]


def test_a_function_without_tangents_needs_no_jvp(level):
    cls = type("Plain", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    assert cls.apply(vector(1.0)).tolist() == [2]
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        cls.apply(dual())


def test_an_input_that_is_returned_needs_a_view_of_its_tangent(level):
    def identity_jvp(ctx, x, y):
        return x

    assert tangent(one(lambda ctx, a, b: a.view_as(a), identity_jvp).apply(dual(), 0)) == [3, 4, 0.5]
    assert tangent(one(lambda ctx, a, b: a[1:], lambda ctx, x, y: x[1:]).apply(dual(), 0)) == [4, 0.5]
    for jvp in (lambda ctx, a, b: a, lambda ctx, a, b: a * 1):
        with pytest.raises(RuntimeError, match=r"returning a view .*but the jvp is not returning a view"):
            one(jvp, identity_jvp).apply(dual(), 0)


def test_a_written_input_gets_the_tangent_of_the_output(level):
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.copy_(y).mul_(2)

    t = vector(1.0, 1.0, 1.0)
    x = fwd.make_dual(vector(1.0, 1.0, 1.0), t)
    one(lambda ctx, a, b: a.copy_(b).mul_(2), forward).apply(x, dual())
    assert (tangent(x), t.tolist()) == ([6, 8, 1], [6, 8, 1])  # the tangent that was given, as in PyTorch
    z, d = rg.zeros(4, dtype=rg.float64), dual()
    one(lambda ctx, a, b: a.copy_(b).mul_(2), forward).apply(z[1:], d)
    assert tangent(z) == [0, 6, 8, 1]
    assert tangent(d) == [3, 4, 0.5]


def fixed(ctx, x, y):
    out = x * 2
    ctx.mark_non_differentiable(out)
    return out


@pytest.mark.parametrize(
    ("jvp", "forward", "pattern"),
    [
        (lambda ctx, a, b: (a, a), twice, "expected 1 but got 2"),
        (lambda ctx, a, b: 1.0, twice, "expected Variable or None .got float"),
        (lambda ctx, a, b: a[:2], twice, r"float64\[2\] at position 0, but the output is float64\[3\]"),
        (lambda ctx, a, b: a, fixed, "position 0, but the corresponding forward output is not a differentiable Tensor"),
        (lambda ctx, a, b: a, lambda ctx, x, y: x.to(rg.int64), "not a differentiable Tensor"),
    ],
)
def test_invalid_results_of_a_jvp_are_refused(level, jvp, forward, pattern):
    with pytest.raises(RuntimeError, match=f"One: .*{pattern}"):
        one(jvp, forward).apply(dual(), 1)
