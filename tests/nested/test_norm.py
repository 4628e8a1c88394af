"""Normalisation of nested tensors, compared with a loop over the components."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.nested import nested_tensor
from retrograd.nested.buffer import values, wrap_buffer, wrap_buffer_like
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.components import components
from retrograd.nn import functional as F

from .loops import assert_close, assert_is_the_loop


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def nested(*shapes):
    return nested_tensor([rg.tensor(numbers(*s, seed=i)) for i, s in enumerate(shapes)])


def rows():
    return nested((2, 2, 3), (0, 2, 3), (4, 2, 3))


def channels():
    return nested((4, 3), (4, 2), (4, 5))


W, B = rg.tensor(numbers(2, 3, seed=7)), rg.tensor(numbers(2, 3, seed=8))


@pytest.mark.parametrize(
    "f",
    [
        lambda t: F.layer_norm(t, (3,)),
        lambda t: F.layer_norm(t, (3,), W[0], B[0]),
        lambda t: F.layer_norm(t, (2, 3), W, B),
        lambda t: F.layer_norm(t, (2, 3), W),
        lambda t: F.layer_norm(t, (2, 3), None, B),
        lambda t: F.rms_norm(t, (3,)),
        lambda t: F.rms_norm(t, (2, 3), W),
        lambda t: F.normalize(t, dim=2),
        lambda t: F.normalize(t, dim=1),
        lambda t: F.normalize(t, p=1, dim=(1, 2)),
    ],
)
def test_norms_over_trailing_dimensions_are_the_loop_over_components(f):
    assert_is_the_loop(f, rows())


@pytest.mark.parametrize("shape", [(4,), (5, 2, 3), (), (2, 4)])
def test_a_normalized_shape_that_does_not_fit_is_refused_with_the_shape(shape):
    with pytest.raises(ValueError, match=r"layer_norm: normalized_shape .* is not how shape \(3, j, 2, 3\) ends"):
        F.layer_norm(rows(), shape)


def test_a_normalized_shape_that_takes_in_ragged_dimensions_says_which_can_be():
    with pytest.raises(ValueError, match="dimensions behind the ragged ones can be normalized"):
        F.layer_norm(rows(), (6, 2, 3))


def test_ragged_dimensions_of_equal_sizes_are_normalized_as_those_of_the_stack():
    x = nested((2, 3), (2, 3))
    out = F.layer_norm(x, (2, 3), W, B)
    assert is_nested(out)
    assert_close(rg.stack(list(components(out))), F.layer_norm(rg.stack(list(components(x))), (2, 3), W, B))


def test_a_weight_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"layer_norm: weight has shape \(2,\)"):
        F.layer_norm(rows(), (3,), rg.ones(2, dtype="float64"))


def test_only_the_gradients_that_are_requested_are_computed():
    x, weight = rows().requires_grad_(), rg.tensor(numbers(3), requires_grad=True)
    out = values(F.layer_norm(x, (3,), weight, B[0])).square().sum()
    (found,) = rg.autograd.grad(out, [weight], retain_graph=True)
    assert found.shape == (3,)
    (alone,) = rg.autograd.grad(out, [x])
    assert is_nested(alone)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_derivatives_of_layer_norm_are_right(shape):
    known = get_layout(rows())
    weight, bias = (rg.tensor(numbers(*shape, seed=s), requires_grad=True) for s in (1, 2))

    def program(buffer, weight, bias):
        return values(F.layer_norm(wrap_buffer_like(known, buffer), shape, weight, bias))

    inputs = (rg.tensor(numbers(6, 2, 3), requires_grad=True), weight, bias)
    assert gradcheck(program, inputs, check_forward_ad=True)
    assert gradgradcheck(program, inputs)


def test_an_empty_buffer_is_normalized_and_weights_get_zeros():
    weight = rg.ones(3, dtype="float64", requires_grad=True)
    out = F.layer_norm(nested((0, 3), (0, 3)), (3,), weight)
    assert len(components(out)) == 2
    values(out).sum().backward()
    assert weight.grad.tolist() == [0, 0, 0]


# -------------------------------------------------------------------------------------------------- over channels


@pytest.mark.parametrize("x", [channels(), nested((4, 3, 2), (4, 2, 5))], ids=["sequences", "images"])
def test_norms_of_each_component_over_channels_are_the_loop(x):
    weight, bias = rg.tensor(numbers(4)), rg.tensor(numbers(4, seed=1))
    for f in (
        lambda t: F.group_norm(t, 2, weight, bias),
        lambda t: F.group_norm(t, 4),
        lambda t: F.group_norm(t, 1, weight),
        lambda t: F.instance_norm(t, weight=weight, bias=bias),
        lambda t: F.instance_norm(t),
    ):
        assert_is_the_loop(f, x)


def test_batch_norm_takes_the_statistics_of_all_rows():
    weight, bias = rg.tensor(numbers(4)), rg.tensor(numbers(4, seed=1))
    same_mean, same_var = rg.zeros(4, dtype="float64"), rg.ones(4, dtype="float64")
    mean, var = rg.zeros(4, dtype="float64"), rg.ones(4, dtype="float64")
    x = channels()
    out = F.batch_norm(x, mean, var, weight, bias, training=True)
    one = rg.cat(list(components(x)), dim=1).unsqueeze(0)
    assert_close(values(out), F.batch_norm(one, same_mean, same_var, weight, bias, training=True)[0])
    assert_close(mean, same_mean)
    assert_close(var, same_var)
    assert_is_the_loop(lambda t: F.batch_norm(t, mean, var, weight, bias), x)
    assert_is_the_loop(lambda t: F.instance_norm(t, mean, var, weight, bias, use_input_stats=False), x)


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_equal_components_are_normalized_as_their_stack(name):
    x = nested((4, 3), (4, 3), (4, 3))
    whole = rg.stack(list(components(x)))
    running = [[rg.zeros(4, dtype="float64"), rg.ones(4, dtype="float64")] for _ in range(2)]
    given = {"training": True} if name == "batch_norm" else {}
    out = getattr(F, name)(x, *running[0], **given)
    assert_close(rg.stack(list(components(out))), getattr(F, name)(whole, *running[1], **given))
    for mine, dense in zip(*running, strict=True):
        assert_close(mine, dense)


def test_running_statistics_of_instances_move_to_the_mean_over_the_components():
    x, mean, var = channels(), rg.zeros(4, dtype="float64"), rg.ones(4, dtype="float64")
    F.instance_norm(x, mean, var, momentum=0.5)
    parts = components(x)
    assert_close(mean, 0.5 * sum(c.mean(1) for c in parts) / 3)
    assert_close(var, 0.5 + 0.5 * sum(c.var(1) for c in parts) / 3)


def test_statistics_of_ragged_channels_are_refused():
    with pytest.raises(RuntimeError, match=r"batch_norm: expected .*got \(2, j, 4\); see transpose"):
        F.batch_norm(nested((3, 4), (2, 4)), None, None, training=True)


@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
def test_components_of_different_channels_are_normalized_one_by_one():
    x = nested((4, 3), (2, 3))
    assert_is_the_loop(lambda t: F.group_norm(t, 2), x)
    assert_is_the_loop(lambda t: F.instance_norm(t), x)


def test_sets_of_sets_are_normalized_over_trailing_dimensions():
    inner = nested((2, 3), (1, 3), (4, 3))
    x = wrap_buffer(inner, get_layout(nested((2,), (1,))).structure)
    assert_close(values(values(F.layer_norm(x, (3,)))), F.layer_norm(values(inner), (3,)))


def test_layer_norm_over_the_ragged_dimension_normalizes_each_component():
    parts = [rg.randn(n, 3, dtype=rg.float64, requires_grad=True) for n in (2, 4)]
    x = rg.nested.as_nested_tensor(parts, layout=rg.jagged)
    out = rg.nn.functional.layer_norm(x, x.shape[1:], eps=1e-3).unbind()
    expected = [rg.nn.functional.layer_norm(part, part.shape, eps=1e-3) for part in parts]
    for mine, other, part in zip(out, expected, parts, strict=True):
        assert rg.allclose(mine, other)
        [found] = rg.autograd.grad(mine.pow(3).sum(), part, retain_graph=True)
        [wanted] = rg.autograd.grad(other.pow(3).sum(), part)
        assert rg.allclose(found, wanted)
