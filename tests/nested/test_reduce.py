"""Reductions of nested tensors agree with a loop over the components, each as a batch of one."""

from itertools import combinations

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.func import grad, vmap
from retrograd.nested import as_nested_tensor, nested_tensor
from retrograd.nested.buffer import values, wrap_buffer, wrap_buffer_like
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.components import components

from ..case_groups import group_cases
from .loops import assert_close
from .loops import rounded as nested

SHAPES = {
    "rows": [(2, 3), (1, 3), (4, 3)],
    "rows behind": [(2, 2), (2, 1), (2, 4)],
    "images": [(2, 2, 3, 2), (2, 4, 1, 2), (2, 1, 2, 2)],
    "cubes": [(2, 3, 2), (1, 2, 3)],
    "vectors": [(2,), (3,)],
    "numbers": [(), ()],
}
OVER_SEVERAL = [
    "sum",
    "mean",
    "amax",
    "amin",
    "prod",
    "nansum",
    "var",
    "std",
    "any",
    "all",
    "logsumexp",
    "norm",
    "nanmean",
]
ALONG_ONE = ["argmax", "argmin", "max", "min", "median", "nanmedian", "mode", "kthvalue", "aminmax"]
CASES = [
    (kind, dims)
    for kind, shapes in SHAPES.items()
    for count in range(1, len(shapes[0]) + 1)
    for dims in combinations(range(1, len(shapes[0]) + 1), count)
]
SINGLE = [(kind, dims[0]) for kind, dims in CASES if len(dims) == 1]


def assert_is_the_loop(f, x):
    """Assert that f of a nested tensor is f of each component; plain if all results have one shape."""
    out, expected = f(x), [f(c.unsqueeze(0)) for c in components(x)]
    if not is_nested(out):
        return assert_close(out, rg.cat(expected))
    for found, e in zip(components(out), expected, strict=True):
        assert_close(found, e[0])


def over_dims(name, dims, keepdim=False):
    given = {"correction": 0} if name in ("var", "std") else {}
    return lambda t: getattr(rg, name)(t, dim=dims, keepdim=keepdim, **given)


@group_cases
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", OVER_SEVERAL)
@pytest.mark.parametrize(("kind", "dims"), CASES)
def test_a_reduction_over_any_dimensions_is_the_loop_over_components(kind, dims, name, keepdim):
    assert_is_the_loop(over_dims(name, dims, keepdim), nested(SHAPES[kind]))


@group_cases
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ALONG_ONE)
@pytest.mark.parametrize(("kind", "dim"), SINGLE)
def test_a_choice_along_any_dimension_is_the_loop_over_components(kind, dim, name, keepdim):
    given = {"k": 1} if name == "kthvalue" else {}
    x = nested(SHAPES[kind])

    def result(t, i):
        out = getattr(rg, name)(t, dim=dim, keepdim=keepdim, **given)
        return out[i] if isinstance(out, tuple) else out

    for i in range(1 if name.startswith("arg") else 2):
        assert_is_the_loop(lambda t, i=i: result(t, i), x)


@group_cases
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("name", [*OVER_SEVERAL, "argmax", "argmin", "median", "max", "count_nonzero"])
def test_a_reduction_of_everything_is_that_of_all_elements_in_a_row(kind, name):
    x = nested(SHAPES[kind])
    row = rg.cat([c.reshape(-1) for c in components(x)])
    assert_close(getattr(rg, name)(x), getattr(rg, name)(row))


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod", "var", "argmax"])
def test_equal_components_are_reduced_as_their_stack_also_over_the_batch(name):
    x = nested([(4, 3)] * 3)
    whole = rg.stack(list(components(x)))
    assert_close(getattr(rg, name)(x, 0), getattr(rg, name)(whole, 0))
    assert_close(getattr(rg, name)(x, 0, keepdim=True), getattr(rg, name)(whole, 0, keepdim=True))


def test_the_batch_and_all_ragged_dimensions_leave_a_plain_tensor():
    x = nested(SHAPES["images"])
    assert_close(rg.sum(x, (0, 2, 3)), sum(c.sum((1, 2)) for c in components(x)))
    assert rg.sum(x, (0, 2, 3), keepdim=True).shape == (1, 2, 1, 1, 2)


def test_the_batch_alone_is_refused_and_the_first_component_that_differs_is_named():
    with pytest.raises(RuntimeError, match=r"sum: .* component 0 has shape \(2, 3\), component 1 shape \(1, 3\)"):
        rg.sum(nested(SHAPES["rows"]), 0)


# --------------------------------------------------------------------------------------------- nothing, wrong calls


def with_an_empty_one():
    return nested([(2, 3), (0, 3), (4, 3)])


@pytest.mark.parametrize(
    ("name", "value"), [("sum", 0), ("prod", 1), ("mean", np.nan), ("var", np.nan), ("logsumexp", -np.inf), ("norm", 0)]
)
def test_of_an_empty_component_the_result_is_that_of_nothing(name, value):
    out = getattr(rg, name)(with_an_empty_one(), dim=1)
    np.testing.assert_array_equal(out[1].numpy(), np.full(3, value))


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "max", "min", "median", "aminmax"])
def test_nothing_to_choose_from_is_refused_and_the_component_named(name):
    with pytest.raises(ValueError, match=r"nothing to choose from.*component 1 of a nested tensor"):
        getattr(rg, name)(with_an_empty_one(), dim=1)


def test_the_smallest_component_says_how_many_can_be_ranked():
    x = nested(SHAPES["rows"])
    with pytest.raises(ValueError, match=r"kthvalue: .*k=2 elements can't be chosen from 1.*component 1 of a nested"):
        rg.kthvalue(x, 2, 1)
    assert rg.kthvalue(x, 2, 2).values.shape[0] == 3


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod", "argmax", "var", "logsumexp", "any"])
def test_of_no_components_there_are_no_results(name):
    x = nested([(2, 3)])
    none = wrap_buffer(values(x)[:0], type(get_layout(x).structure)(get_layout(x).structure.sizes[:0]))
    assert getattr(rg, name)(none, 1).shape == (0, 3)
    assert len(getattr(rg, name)(none, 2).shape) == 2


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: rg.sum(x, 5), IndexError, "sum: dim 5 is out of range for a tensor of 3 dimensions"),
        (lambda x: rg.sum(x, (1, -2)), ValueError, "sum: .*a dimension is named twice"),
        (lambda x: rg.mean(x.to("int64"), 1), TypeError, "mean: .* got int64"),
        (lambda x: rg.amax(x, 3), IndexError, "amax: dim 3 is out of range"),
    ],
)
def test_wrong_calls_are_refused_as_those_of_dense_tensors(call, error, text):
    with pytest.raises(error, match=text):
        call(nested(SHAPES["rows"]))


def test_dtypes_are_those_of_dense_reductions():
    x = nested_tensor([rg.tensor(np.array([100, 100], np.int8)), rg.tensor(np.array([1], np.int8))])
    assert rg.sum(x, 1).tolist() == [200, 1]
    assert rg.sum(x, 1, dtype="float32").dtype == np.float32
    assert rg.prod(x, 1).tolist() == [10000, 1]
    half = nested_tensor([rg.tensor(np.array([6e4, 6e4], np.float16))])
    assert rg.mean(half, 1).tolist() == [pytest.approx(6e4)]


# ------------------------------------------------------------------------------------------------- derivatives


@group_cases
@pytest.mark.parametrize("dims", [1, 2, (1, 2)])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod", "nansum", "logsumexp", "norm", "var", "std"])
@pytest.mark.parametrize("kind", ["rows", "images"])
def test_derivatives_of_first_and_second_order_are_right(kind, name, dims):
    x = nested([s[-2:] for s in SHAPES[kind]], seed=3)
    f, known = over_dims(name, dims), get_layout(x)

    def program(buffer):
        out = f(wrap_buffer_like(known, buffer))
        return values(out) if is_nested(out) else out

    r = np.random.default_rng(1)
    buffer = rg.tensor(r.uniform(0.5, 2, values(x).shape), requires_grad=True)
    assert gradcheck(program, (buffer,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(program, (buffer,))


def test_a_product_has_its_derivatives_where_factors_are_zero():
    x = as_nested_tensor([rg.tensor([0.0, 2.0, 3.0]), rg.tensor([0.0, 0.0]), rg.tensor([4.0])]).requires_grad_()
    rg.prod(x, 1).sum().backward()
    assert values(x.grad).tolist() == [6, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("dims", [1, (1, 2)])
def test_ties_share_the_gradient_as_in_a_dense_maximum(dims):
    parts = [np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([[2.0, 2.0]])]
    x = as_nested_tensor([rg.tensor(p) for p in parts]).requires_grad_()
    rg.amax(x, dims).sum().backward()
    for found, part in zip(components(x.grad), parts, strict=True):
        alone = rg.tensor(part, requires_grad=True)
        rg.amax(alone, 0 if dims == 1 else (0, 1)).sum().backward()
        assert_close(found, alone.grad)


# ------------------------------------------------------------------------------------------------------ batches


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod", "nansum", "logsumexp", "norm", "any", "all", "argmax"])
def test_vmap_over_the_components_reduces_each(name):
    x = nested(SHAPES["rows"])
    for f in (lambda c: getattr(rg, name)(c, dim=0), lambda c: getattr(rg, name)(c)):
        assert_close(vmap(f)(x), rg.stack([f(c) for c in components(x)]))


@pytest.mark.parametrize("name", ["logsumexp", "amax", "norm"])
def test_gradients_within_a_vmap_over_the_components_are_those_of_each(name):
    x = nested(SHAPES["rows"])
    f = grad(lambda c: getattr(rg, name)(c, dim=0).square().sum())
    for found, c in zip(components(vmap(f)(x)), components(x), strict=True):
        assert_close(found, f(c))


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod", "var", "argmax", "any"])
def test_within_a_batch_each_example_is_reduced(name):
    x, factors = nested(SHAPES["rows"]), rg.tensor([1.0, -2.0], dtype="float64")
    given = {"correction": 0} if name == "var" else {}
    expected = [getattr(rg, name)(x * s, 1, **given) for s in (1.0, -2.0)]
    assert_close(vmap(lambda s: getattr(rg, name)(x * s, 1, **given))(factors), rg.stack(expected))


def test_a_sum_over_the_examples_of_a_batch_stays_nested():
    x, factors = nested(SHAPES["rows"]), rg.tensor([1.0, -2.0], dtype="float64")
    total = rg.sum(vmap(lambda s: x * s)(factors), 0)
    assert get_layout(total).lead == 0
    assert_close(values(total), values(x) * -1.0)


def test_holes_take_no_part():
    x = nested(SHAPES["rows"])
    known, rows = get_layout(x), values(x)
    buffer = rg.cat([rg.full((2, 3), 9.0, dtype="float64"), rows, rg.full((1, 3), 9.0, dtype="float64")])
    structure = type(known.structure)(known.structure.sizes, known.structure.offsets[:-1] + 2)
    for name in ("sum", "amax", "mean"):
        assert_close(getattr(rg, name)(wrap_buffer(buffer, structure), 1), getattr(rg, name)(x, 1))
        assert_close(getattr(rg, name)(wrap_buffer(buffer, structure)), getattr(rg, name)(x))


# ------------------------------------------------------------------------------------------------ sets of sets

GROUPS = [[(2, 3), (1, 3)], [(4, 3), (3, 3), (1, 3)]]


def sets(seed=0):
    """Return components with different numbers of matrices, which have different numbers of rows."""
    r = np.random.default_rng(seed)
    groups = [[r.standard_normal(s) for s in group] for group in GROUPS]
    inner = nested_tensor([rg.tensor(a) for group in groups for a in group])
    outer = nested_tensor([rg.zeros(len(group)) for group in GROUPS])
    return groups, get_layout(inner).structure, get_layout(outer).structure, values(inner)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod", "logsumexp", "norm", "any"])
def test_sets_of_sets_are_reduced_over_each_ragged_dimension(name):
    groups, inner, outer, buffer = sets()
    x = wrap_buffer(wrap_buffer(buffer, inner), outer)

    def f(t, dim=None, keepdim=False):
        return getattr(rg, name)(t, dim=dim, keepdim=keepdim)

    of_each = f(x, 2)
    assert is_nested(of_each)
    for found, group in zip(components(of_each), groups, strict=True):
        assert_close(found, rg.stack([f(rg.tensor(a), 0) for a in group]))
    expected = rg.stack([f(rg.tensor(np.concatenate(group)), 0) for group in groups])
    assert_close(f(x, (1, 2)), expected)
    assert_close(f(x, (1, 2), keepdim=True), expected.reshape((2, 1, 1, 3)))
    assert_close(f(x), f(buffer))


def test_sets_that_differ_can_not_be_added_up():
    _, inner, outer, buffer = sets()
    with pytest.raises(RuntimeError, match=r"sum: would reduce dimension 1, .*nested components differ in shape"):
        rg.sum(wrap_buffer(wrap_buffer(buffer, inner), outer), 1)


def test_derivatives_of_reductions_of_sets_of_sets_are_right():
    _, inner, outer, buffer = sets()

    def program(buffer):
        x = wrap_buffer(wrap_buffer(buffer, inner), outer)
        return rg.mean(x * x, (1, 2)), rg.softmax(rg.sum(x * x, 2), 1).square().sum(1)

    buffer = buffer.detach().requires_grad_()
    assert gradcheck(program, (buffer,))
    assert gradgradcheck(program, (buffer,))
