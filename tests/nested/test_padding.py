"""Padding of nested tensors to dense ones, and back."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.nested.buffer import values, wrap_buffer
from retrograd.nested.buffer_layout import get_layout
from retrograd.testing import LAWS, samples_of

from ..case_groups import group_cases

RNG = np.random.default_rng(0)
ROWS = [RNG.standard_normal((n, 2)) for n in (3, 0, 4)]
BEHIND = [RNG.standard_normal((2, n)) for n in (3, 1, 4)]
IMAGES = [RNG.standard_normal(shape) for shape in ((2, 3, 2), (3, 1, 2), (1, 2, 2))]
VECTORS = [RNG.standard_normal(n) for n in (1, 3)]


def nested(parts, requires_grad=False):
    return rg.nested.nested_tensor(parts, requires_grad=requires_grad)


def boxes(parts, padding, shape=None):
    """Return the padded result by definition: each component in a corner."""
    shape = shape or tuple(max(p.shape[d] for p in parts) for d in range(parts[0].ndim))
    out = np.full((len(parts), *shape), padding, parts[0].dtype)
    for i, p in enumerate(parts):
        out[(i, *map(slice, p.shape))] = p
    return out


@group_cases
@pytest.mark.parametrize("law", [law for law in LAWS if law != "nested"])  # they take the buffers
@pytest.mark.parametrize("name", ["nested.pad_rows", "nested.unpad_rows", "nested.rows_at"])
def test_the_operators_keep_the_laws(name, law):
    for args, params in samples_of(rg.core.registry[name]):
        LAWS[law](rg.core.registry[name], args, params)


@pytest.mark.parametrize("parts", [ROWS, BEHIND, IMAGES, VECTORS])
@pytest.mark.parametrize("padding", [0, -1.5, math.inf])
def test_components_are_in_the_corners(parts, padding):
    np.testing.assert_array_equal(nested(parts).to_padded_tensor(padding).numpy(), boxes(parts, padding))


@pytest.mark.parametrize("parts", [ROWS, BEHIND, IMAGES, VECTORS])
def test_a_larger_output_is_filled_up(parts):
    shape = tuple(5 + d for d in range(parts[0].ndim))
    out = rg.nested.to_padded_tensor(nested(parts), 2.0, (len(parts), *shape))
    np.testing.assert_array_equal(out.numpy(), boxes(parts, 2.0, shape))
    out = nested(parts).to_padded_tensor(2.0, output_size=(5, *shape))
    np.testing.assert_array_equal(
        out.numpy(), np.concatenate([boxes(parts, 2.0, shape), np.full((5 - len(parts), *shape), 2.0)])
    )


def test_other_dtypes_keep_theirs():
    for dtype in ("int32", "float32", "bool", "complex128", "float16"):
        x = nested([np.ones(2, dtype), np.ones(1, dtype)])
        out = x.to_padded_tensor(0)
        assert (out.dtype, out.tolist()) == (x.dtype, [[1, 1], [1, 0]])


def test_a_smaller_output_is_refused():
    with pytest.raises(ValueError, match="output_size has 3 for dimension 1, of which 4 are needed"):
        nested(ROWS).to_padded_tensor(0, (3, 3, 2))
    with pytest.raises(ValueError, match="output_size has 1 for dimension 2, of which 2 are needed"):
        nested(ROWS).to_padded_tensor(0, (3, 4, 1))
    with pytest.raises(ValueError, match="output_size has 2 for dimension 0"):
        nested(ROWS).to_padded_tensor(0, (2, 4, 2))
    with pytest.raises(ValueError, match="3 sizes, one for each dimension"):
        nested(ROWS).to_padded_tensor(0, (3, 4))
    with pytest.raises(TypeError, match="expected a nested tensor, got a dense one"):
        rg.ones(2).to_padded_tensor(0)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("parts", [ROWS, BEHIND, IMAGES, VECTORS])
def test_derivatives_of_padding(parts, holes):
    x = nested(parts)
    known = get_layout(x)

    def f(v):
        y = wrap_buffer(v, known.structure, known.axis)
        return (y[1:] if holes else y).to_padded_tensor(1.5) ** 3

    rows = (values(x).detach().requires_grad_(),)
    assert gradcheck(f, rows, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, rows)


def test_gradients_do_not_flow_out_of_the_padding():
    x = nested(ROWS, requires_grad=True)
    x.to_padded_tensor(7.0).sum().backward()
    np.testing.assert_array_equal(values(x.grad).numpy(), np.ones((7, 2)))


@pytest.mark.parametrize(("parts", "ragged"), [(ROWS, 1), (IMAGES, 2), (VECTORS, 1)])
def test_there_and_back(parts, ragged):
    x = nested(parts, requires_grad=True)
    lengths = [p.shape[:ragged] for p in parts] if ragged > 1 else [len(p) for p in parts]
    back = rg.nested.nested_tensor_from_padded(x.to_padded_tensor(-9.0), lengths)
    assert back.shape == x.shape
    np.testing.assert_array_equal(values(back).detach().numpy(), values(x).detach().numpy())
    values(back * back).sum().backward()
    np.testing.assert_array_equal(values(x.grad).numpy(), 2 * values(x).detach().numpy())


@pytest.mark.parametrize("lengths", [[3, 0, 2], [[3, 1], [0, 4], [2, 2]]])
def test_derivatives_of_the_way_back(lengths):
    dense = rg.tensor(RNG.standard_normal((3, 3, 4, 2)), requires_grad=True)

    def f(d):
        return values(rg.nested.nested_tensor_from_padded(d, lengths)) ** 3

    assert gradcheck(f, (dense,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, (dense,))


def test_lengths_may_be_lists_arrays_and_tensors():
    dense = rg.arange(6).reshape(2, 3)
    for lengths in [2, 3], np.array([2, 3], np.int32), rg.tensor([2, 3]):
        assert rg.nested.nested_tensor_from_padded(dense, lengths).tolist() == [[0, 1], [3, 4, 5]]


def test_bad_lengths_are_refused():
    dense = rg.zeros(2, 3, 4)
    make = rg.nested.nested_tensor_from_padded
    with pytest.raises(ValueError, match="length 4 of component 1 does not fit"):
        make(dense, [3, 4])
    with pytest.raises(ValueError, match="length -1 of component 0"):
        make(dense, [-1, 4])
    with pytest.raises(ValueError, match="length 1 x 5 of component 1"):
        make(dense, [[1, 4], [1, 5]])
    with pytest.raises(ValueError, match=r"lengths must have shape \(2,\)"):
        make(dense, [1, 2, 3])
    with pytest.raises(ValueError, match="3 ragged dimensions do not fit"):
        make(dense, [[1, 2, 3], [1, 2, 3]])
    with pytest.raises(TypeError, match="integers, got float"):
        make(dense, [1.0, 2.0])
    with pytest.raises(ValueError, match="2 dimensions or more"):
        make(rg.zeros(2), [1, 2])


def test_sets_of_sets_there_and_back():
    sets = [[[1.0, 2.0], [3.0]], [[4.0]], [[5.0], [], [6.0, 7.0, 8.0]]]
    x = rg.nested.nested_tensor(sets, requires_grad=True)
    dense = x.to_padded_tensor(-1.0)
    expected = np.full((3, 3, 3), -1.0)
    for i, one in enumerate(sets):
        for k, row in enumerate(one):
            expected[i, k, : len(row)] = row
    np.testing.assert_array_equal(dense.detach().numpy(), expected)
    lengths = rg.nested.nested_tensor([[len(row) for row in one] for one in sets])
    back = rg.nested.nested_tensor_from_padded(dense, lengths)
    assert back.tolist() == sets
    values(values(back * back)).sum().backward()
    assert x.grad.tolist() == [[[2 * v for v in row] for row in one] for one in sets]
    wider = x.to_padded_tensor(-1.0, (3, 4, 5))
    np.testing.assert_array_equal(wider[:, :3, :3].detach().numpy(), expected)
    assert (wider.shape, wider[:, 3:].max().item()) == ((3, 4, 5), -1.0)


def test_deeper_sets():
    sets = [[[[1.0, 2.0]], [[3.0], [4.0]]], [[[5.0]]]]
    dense = rg.nested.nested_tensor(sets).to_padded_tensor(0.0)
    assert dense.tolist() == [[[[1, 2], [0, 0]], [[3, 0], [4, 0]]], [[[5, 0], [0, 0]], [[0, 0], [0, 0]]]]


def test_no_components():
    none = nested(ROWS)[:0]
    assert none.to_padded_tensor(0.0).shape == (0, 0, 2)
    assert none.to_padded_tensor(0.0, (0, 3, 2)).shape == (0, 3, 2)
    back = rg.nested.nested_tensor_from_padded(rg.zeros(0, 3, 2), [])
    assert (len(back), values(back).shape) == (0, (0, 2))


def test_batches():
    x = nested(ROWS)
    known = get_layout(x)
    rows = rg.tensor(RNG.standard_normal((4, 7, 2)))

    def f(v):
        return wrap_buffer(v, known.structure).to_padded_tensor(3.0)

    np.testing.assert_array_equal(rg.func.vmap(f)(rows).numpy(), np.stack([f(v).numpy() for v in rows]))
    dense = rg.func.vmap(f)(rows)

    def g(d):
        return values(rg.nested.nested_tensor_from_padded(d, [3, 0, 4]))

    np.testing.assert_array_equal(rg.func.vmap(g)(dense).numpy(), rows.numpy())
