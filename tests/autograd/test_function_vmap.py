"""User-defined Functions under vmap: their own batching rule, or one generated from their other methods."""

import pytest

import retrograd as rg
from retrograd.autograd import Function
from retrograd.func import grad, jacfwd, jvp, vmap

from ..functions import product, underived

Scaled = product(rg, 10)  # the factor tells which rule computed a derivative


class ByHand(Scaled):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x, y):
        x, y = (v if d is None else v.movedim(d, 0) for v, d in zip((x, y), in_dims, strict=True))
        if in_dims[0] is None:
            return ByHand.apply(x.expand(info.batch_size, *x.shape), y), 0
        if in_dims[1] is None:
            return ByHand.apply(x, y.expand(info.batch_size, *y.shape)), 0
        return ByHand.apply(x, y), 0


BOTH = pytest.mark.parametrize("function", [Scaled, ByHand])
X = rg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=rg.float64)
Y = rg.tensor([[2.0, -1.0], [0.5, 3.0], [1.0, 1.0]], dtype=rg.float64)


def looped(f, *columns):
    return rg.stack([f(*row) for row in zip(*columns, strict=True)])


@BOTH
def test_a_batch_gives_what_a_loop_gives(function):
    assert vmap(function.apply)(X, Y).tolist() == (X * Y).tolist()
    assert vmap(function.apply, (0, None))(X, Y[0]).tolist() == (X * Y[0]).tolist()
    assert vmap(function.apply, (None, 1))(X[0], Y.t()).tolist() == (X[0] * Y).tolist()


@BOTH
def test_gradients_of_each_example_are_those_of_the_class(function):
    def f(x, y):
        return function.apply(x, y).sum()

    assert vmap(grad(f))(X, Y).tolist() == (10 * Y).tolist()
    assert vmap(grad(f, 1), (0, None))(X, Y[0]).tolist() == (10 * X).tolist()


@BOTH
def test_shared_inputs_get_the_sum_of_the_examples_gradients(function):
    y = Y[0].clone().requires_grad_()
    vmap(function.apply, (0, None))(X, y).sum().backward()
    assert y.grad.tolist() == (10 * X.sum(0)).tolist()


@BOTH
def test_a_gradient_of_a_batch_uses_the_derivative_of_the_class(function):
    found = grad(lambda x: vmap(function.apply)(x, Y).sum())(X)
    assert found.tolist() == (10 * Y).tolist()


@BOTH
def test_forward_mode_of_a_batch_uses_the_jvp_of_the_class(function):
    out, along = jvp(lambda x: vmap(function.apply)(x, Y), (X,), (rg.ones_like(X),))
    assert (out.tolist(), along.tolist()) == ((X * Y).tolist(), (10 * Y).tolist())
    assert vmap(jacfwd(function.apply))(X, Y).tolist() == rg.diag_embed(10 * Y).tolist()


@BOTH
def test_second_derivatives_of_a_batch(function):
    def slope(x, y):
        return grad(lambda x: (function.apply(x, y) ** 2).sum())(x).sum()

    assert vmap(grad(slope))(X, Y).tolist() == looped(grad(slope), X, Y).tolist()


@BOTH
def test_batches_nest(function):
    x, y = rg.stack([X, X + 1]), rg.stack([Y, 2 * Y])
    assert vmap(vmap(function.apply))(x, y).tolist() == (x * y).tolist()
    both = vmap(vmap(function.apply, (0, None)), (None, 0))(X, Y)
    assert both.tolist() == (X * Y[:, None]).tolist()


def test_levels_at_which_nothing_is_batched_are_skipped():
    Plain = underived("Plain")
    assert vmap(lambda x, c: x + Plain.apply(c), (0, None))(X, Y[0]).tolist() == (X + 2 * Y[0]).tolist()
    with pytest.raises(RuntimeError, match=r"vmap over Plain, .*implement the vmap staticmethod"):
        vmap(Plain.apply)(X)


def test_a_rule_of_both_kinds_is_refused():
    class Both(ByHand):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match=r"vmap over Both, .* both generate_vmap_rule=True and an overridden vmap"):
        vmap(Both.apply)(X, Y)


@pytest.mark.parametrize(
    ("returned", "message"),
    [(X, r"must return a tuple \(output, out_dims\)"), (((X, X), (0,)), r"incompatible .* tuple.*out_dims=\(0,\)")],
)
def test_invalid_results_of_a_vmap_rule_are_refused(returned, message):
    class Odd(ByHand):
        @staticmethod
        def vmap(info, in_dims, x, y):
            return returned

    with pytest.raises(RuntimeError, match=message):
        vmap(Odd.apply)(X, Y)


def test_vmap_gets_how_many_examples_there_are_and_what_random_numbers_do():
    seen = []

    class RecordingVmap(ByHand):
        @staticmethod
        def vmap(info, in_dims, x, y):
            seen.append((info.batch_size, info.randomness, in_dims))
            return (x * y, x[0]), (0, None)

    product, first = vmap(RecordingVmap.apply, (0, None), randomness="same")(X, Y[0])
    assert seen == [(3, "same", (0, None))]
    assert (product.tolist(), first.tolist()) == ((X * Y[0]).tolist(), [X[0].tolist()] * 3)


def test_several_outputs_one_of_them_without_gradient():
    class Parts(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 3, x.argmax(), "label"

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, g, none, label):
            assert none is None
            return 3 * g

    out, places, labels = [], [], []

    def f(x):
        tripled, place, label = Parts.apply(x)
        labels.append(label)
        return tripled, place

    out, places = vmap(f)(X)
    assert (out.tolist(), places.tolist(), labels) == ((3 * X).tolist(), [1, 1, 1], ["label"])
    assert vmap(grad(lambda x: f(x)[0].sum()))(X).tolist() == rg.full_like(X, 3.0).tolist()


def test_random_numbers_in_forward_follow_the_randomness_of_the_batch():
    class Noisy(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x + rg.rand(x.shape, dtype=x.dtype)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    noise = vmap(Noisy.apply, randomness="same")(X) - X
    assert rg.allclose(noise, noise[:1].expand(3, 2))
    noise = vmap(Noisy.apply, randomness="different")(X) - X
    assert not rg.allclose(noise[0], noise[1])
    with pytest.raises(RuntimeError, match="vmap: rand draws random numbers"):
        vmap(Noisy.apply)(X)


def test_vmap_gets_the_callers_tensors_and_their_in_dims():
    seen = []

    class Recorded(Function):
        @staticmethod
        def setup_context(ctx, inputs, output): ...

        @staticmethod
        def vmap(info, in_dims, x, pair):
            seen.append((x, pair[0], in_dims))
            return x.sum() * pair[0], in_dims[1][0]

    x, y = rg.ones(2, 3), rg.ones(4, 3)
    out = vmap(lambda a, b: Recorded.apply(a, (b, 5)), in_dims=1)(x, y)
    assert out.tolist() == [[6.0] * 4] * 3
    assert seen[0][0] is x
    assert seen[0][1] is y
    assert seen[0][2] == (1, (1, None))
    vmap(lambda a, b: Recorded.apply(a.mul_(2), (b, 5)), in_dims=1)(x, y)
    assert seen[1][2] == (0, (1, None))
    assert x.tolist() == [[2.0] * 3] * 2
