"""Softmax, scans and sorting of nested tensors, compared with a loop over the components."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.func import grad, jvp, vmap
from retrograd.nested import as_nested_tensor, nested_tensor
from retrograd.nested.buffer import values, wrap_buffer, wrap_buffer_like
from retrograd.nested.buffer_layout import get_layout
from retrograd.nested.components import components

from ..case_groups import group_cases
from .loops import assert_close, assert_is_the_loop
from .loops import rounded as nested

SHAPES = {
    "rows": [(2, 3), (1, 3), (4, 3)],
    "with an empty one": [(2, 3), (0, 3), (4, 3)],
    "rows behind": [(2, 2), (2, 1), (2, 4)],
    "images": [(2, 2, 3, 2), (2, 4, 1, 2), (2, 1, 2, 2)],
    "vectors": [(2,), (3,)],
}
CASES = [(kind, dim) for kind, shapes in SHAPES.items() for dim in range(1, len(shapes[0]) + 1)]
SCANS = [
    "softmax",
    "log_softmax",
    "softmin",
    "cumsum",
    "cumprod",
    "logcumsumexp",
    "argsort",
    "sort",
    "cummax",
    "cummin",
]


def called(name, dim):
    def f(t):
        out = getattr(rg if name != "softmin" else rg.nn.functional, name)(t, dim)
        return out[0] if isinstance(out, tuple) else out

    return f


@group_cases
@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize(("kind", "dim"), CASES)
def test_a_scan_along_any_dimension_is_the_loop_over_components(kind, dim, name):
    assert_is_the_loop(called(name, dim), nested(SHAPES[kind]))
    assert_is_the_loop(called(name, dim - len(SHAPES[kind][0]) - 1), nested(SHAPES[kind]))


@pytest.mark.parametrize("name", ["sort", "cummax", "cummin"])
@pytest.mark.parametrize("dim", [1, 2])
def test_positions_count_within_the_component(name, dim):
    assert_is_the_loop(lambda t: getattr(rg, name)(t, dim).indices, nested(SHAPES["rows"]))


def test_the_batch_is_no_dimension_to_go_along():
    for name in ("softmax", "cumsum"):
        with pytest.raises(RuntimeError, match=f"{name}: would act along dimension 0, across the components"):
            getattr(rg, name)(nested(SHAPES["rows"]), 0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_large_components_are_taken_one_by_one_and_give_the_same(name):
    x = nested([(700, 8), (0, 8), (3, 8), (1200, 8)])
    assert_is_the_loop(called(name, 1), x)
    small = nested([(3, 2)] * 5 + [(0, 2)])
    assert_is_the_loop(called(name, 1), small)


def test_softmax_does_not_overflow_nor_see_other_components():
    x = nested_tensor([rg.tensor([1000.0, 1000.0]), rg.tensor([-1000.0]), rg.tensor([float("inf"), 0.0])])
    assert values(rg.softmax(x, 1)).tolist()[:3] == [0.5, 0.5, 1.0]
    assert values(rg.log_softmax(x, 1)).tolist()[:3] == [pytest.approx(-np.log(2))] * 2 + [0.0]


def test_an_infinity_in_one_component_leaves_the_next_alone():
    x = nested_tensor([rg.tensor([float("inf"), 2.0]), rg.tensor([3.0, 4.0])])
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        assert_is_the_loop(called(name, 1), x)


def test_dtypes_are_those_of_dense_scans():
    x = nested_tensor([rg.tensor([1, 2]), rg.tensor([3])])
    assert rg.softmax(x, 1, dtype="float32").dtype == np.float32
    assert rg.cumsum(x, 1).dtype == np.int64
    assert values(rg.cumprod(x, 1, dtype="float64")).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(TypeError, match="softmax: expected a floating or complex dtype, got int64"):
        rg.softmax(x, 1)


# ------------------------------------------------------------------------------------------------- derivatives

SMOOTH = ["softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "sort", "cummax"]


@group_cases
@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("kind", ["with an empty one", "images"])
def test_derivatives_of_first_and_second_order_are_right(kind, name, dim):
    known = get_layout(nested([s[-3:-1] if kind == "images" else s for s in SHAPES[kind]]))
    f, rows = called(name, dim), sum(a * b for a, b in known.structure.sizes.tolist()) if kind == "images" else 6

    def program(buffer):
        return values(f(wrap_buffer_like(known, buffer)))

    r = np.random.default_rng(1)
    buffer = rg.tensor(r.uniform(0.5, 2, (rows,) if kind == "images" else (rows, 3)), requires_grad=True)
    assert gradcheck(program, (buffer,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(program, (buffer,))


def test_gradients_reach_the_components():
    parts = [rg.tensor(np.arange(n) / 3, requires_grad=True) for n in (2, 4)]
    rg.softmax(as_nested_tensor(parts), 1).square().sum().backward()
    for part in parts:
        alone = part.detach().requires_grad_()
        rg.softmax(alone, 0).square().sum().backward()
        assert_close(part.grad, alone.grad)


def test_cumulative_products_have_derivatives_at_zeros():
    parts = [rg.tensor([2.0, 0.0, 3.0, 0.0], requires_grad=True), rg.tensor([0.0, 5.0], requires_grad=True)]
    rg.cumprod(as_nested_tensor(parts), 1).sum().backward()
    for part in parts:
        alone = part.detach().requires_grad_()
        rg.cumprod(alone, 0).sum().backward()
        assert_close(part.grad, alone.grad)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "cumsum"])
def test_tangents_of_nested_tensors_are_those_of_the_components(name):
    x, t = nested(SHAPES["rows"]), nested(SHAPES["rows"], seed=1)
    f = called(name, 1)
    _, tangent = jvp(f, (x,), (t,))
    for found, c, d in zip(components(tangent), components(x), components(t), strict=True):
        assert_close(found, jvp(called(name, 0), (c,), (d,))[1])


@pytest.mark.parametrize("name", [n for n in SCANS if n != "sort"])
def test_vmap_over_the_components_scans_each(name):
    x = nested(SHAPES["rows"])
    for dim in (0, 1):
        out = vmap(called(name, dim))(x)
        for found, c in zip(components(out), components(x), strict=True):
            assert_close(found, called(name, dim)(c))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "cumsum"])
def test_within_a_batch_each_example_is_scanned(name):
    x, factors = nested(SHAPES["rows"]), rg.tensor([1.0, -2.0], dtype="float64")
    out = vmap(lambda s: called(name, 1)(x * s))(factors)
    assert_close(values(out), rg.stack([values(called(name, 1)(x * s)) for s in (1.0, -2.0)]))


def test_gradients_within_a_vmap_over_the_components_are_those_of_each():
    x, f = nested(SHAPES["rows"]), grad(lambda c: (rg.log_softmax(c, 0) * c).exp().sum())
    for found, c in zip(components(vmap(f)(x)), components(x), strict=True):
        assert_close(found, f(c))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "cumsum", "sort"])
def test_sets_of_sets_are_scanned_along_the_inner_ragged_dimension(name):
    shapes = [(2, 3), (1, 3), (4, 3)]
    inner = nested(shapes)
    x = wrap_buffer(inner, get_layout(nested([(2,), (1,)])).structure)
    out, expected = called(name, 2)(x), called(name, 1)(inner)
    assert_close(values(values(out)), values(expected))
    with pytest.raises(RuntimeError, match="across the components"):
        rg.softmax(x, 1)
