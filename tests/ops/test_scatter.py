"""Scattering: ties, zeros among factors, duplicates, dtypes, sizes that differ, and in-place forms."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

INDEX = [2, 0]


def grad(f, x):
    x = rg.tensor(x, dtype=rg.float64, requires_grad=True)
    (g,) = rg.autograd.grad(f(x).sum(), x)
    return g.tolist()


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_elements_that_tie_share_the_gradient_equally(reduce):
    index, src = rg.tensor([0, 0, 1]), rg.tensor([1.0, 1.0, 1.0], dtype=rg.float64)
    x = rg.tensor([1.0, 1.0], dtype=rg.float64)
    assert_close(grad(lambda x: x.scatter_reduce(0, index, src, reduce), [1.0, 1.0]), [1 / 3, 1 / 2])
    assert_close(grad(lambda s: x.scatter_reduce(0, index, s, reduce), [1.0, 1.0, 1.0]), [1 / 3, 1 / 3, 1 / 2])


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_without_self_what_was_there_gets_no_gradient_where_something_arrives(reduce):
    index, src = rg.tensor([1, 1]), rg.tensor([3.0, 5.0], dtype=rg.float64)
    assert grad(lambda x: x.scatter_reduce(0, index, src, reduce, include_self=False), [1.0, 9.0]) == [1.0, 0.0]


def test_a_product_with_several_zeros_has_the_right_second_derivatives():
    index = rg.tensor([0, 0, 0])

    def product(src):
        return rg.ones(1, dtype=rg.float64).scatter_reduce(0, index, src, "prod").sum()

    src = rg.tensor([0.0, 0.0, 5.0], dtype=rg.float64, requires_grad=True)
    (g,) = rg.autograd.grad(product(src), src, create_graph=True)
    assert g.tolist() == [0.0, 0.0, 0.0]
    (h,) = rg.autograd.grad(g[0], src)
    assert h.tolist() == [0.0, 5.0, 0.0]


def test_a_mean_of_integers_is_rounded_down_and_stays_an_integer():
    x = rg.full((3,), -3)
    out = x.scatter_reduce(0, rg.tensor([0, 0]), rg.tensor([-2, -5]), "mean")
    assert out.tolist() == [-4, -3, -3]
    assert out.dtype == rg.int64


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize(("reduce", "expected"), [("amax", 2), ("amin", 1)])
def test_extremes_of_integers_without_self(dtype, reduce, expected):
    x, src = rg.full((2,), 9, dtype=dtype), rg.tensor([1, 2], dtype=dtype)
    assert x.scatter_reduce(0, rg.tensor([0, 0]), src, reduce, include_self=False).tolist() == [expected, 9]


def test_src_may_be_larger_than_the_index_and_what_is_left_over_gets_no_gradient():
    index = rg.tensor([[1], [0]])
    src = rg.ones(3, 2, dtype=rg.float64, requires_grad=True)
    out = rg.zeros(2, 2, dtype=rg.float64).scatter_add(0, index, src)
    assert out.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    (g,) = rg.autograd.grad(out.sum(), src)
    assert g.tolist() == [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]


def test_tensors_without_dimensions_count_as_one_element():
    assert rg.scatter(rg.tensor(1.0), 0, rg.tensor(0), rg.tensor(2.5)).tolist() == 2.5
    assert rg.scatter(rg.ones(2), 0, rg.tensor(1), rg.tensor(2.5)).tolist() == [1.0, 2.5]
    assert rg.gather(rg.tensor([1.0, 2.0]), 0, rg.tensor(1)).tolist() == 2.0
    assert rg.scatter_add(rg.tensor(1.0), 0, rg.tensor([0, 0]), rg.tensor([2.0, 3.0])).tolist() == 6.0


def test_a_value_is_converted_to_the_dtype_written_to():
    assert rg.ones(3, dtype=rg.int64).scatter(0, rg.tensor([0]), 2.5).tolist() == [2, 1, 1]
    assert rg.ones(3).scatter(0, rg.tensor([0]), value=2.5).tolist() == [2.5, 1.0, 1.0]


def test_a_tensor_as_the_value_of_index_fill_gets_the_sum_of_the_gradients():
    value = rg.tensor(3.0, requires_grad=True)
    x = rg.zeros(2, 3).index_fill(1, rg.tensor([0, -1]), value)
    x.sum().backward()
    assert x.tolist() == [[3.0, 0.0, 3.0]] * 2
    assert value.grad.item() == 4.0


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x.gather(0, i),
        lambda x, i: x.scatter(0, i, 1.0),
        lambda x, i: x.scatter_add(0, i, rg.ones(1)),
        lambda x, i: x.scatter_reduce(0, i, rg.ones(1), "amax"),
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.index_add(0, i, rg.ones(1)),
    ],
)
@pytest.mark.parametrize("place", [-1, 3])
def test_indices_out_of_range_are_refused_and_named(call, place):
    with pytest.raises(IndexError, match=rf"index {place} is out of bounds for dimension 0 with size 3"):
        call(rg.ones(3), rg.tensor([place]))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_indices_of_small_dtypes_reach_offsets_beyond_their_range(dtype):
    index, rows = rg.tensor([100, 3], dtype=dtype), rg.ones(2, 300)
    out = rg.zeros(101, 300).index_add(0, index, rows)
    assert out.sum(1).nonzero().flatten().tolist() == [3, 100]
    assert rg.take_along_dim(rg.arange(300), rg.tensor([-1], dtype="int8"), 0).tolist() == [299]


@pytest.mark.parametrize("columns", [1, 3, 9, 70000])
def test_rows_are_added_equally_for_any_number_of_columns(columns):
    rng = np.random.default_rng(0)
    index, rows = rng.integers(0, 4, 6), rng.standard_normal((6, columns))
    expected = np.zeros((4, columns))
    np.add.at(expected, index, rows)
    assert_close(rg.zeros(4, columns, dtype=rg.float64).index_add(0, rg.tensor(index), rg.tensor(rows)), expected)


def test_take_along_dim_broadcasts_what_is_not_indexed_and_counts_from_the_end():
    x = rg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    out = rg.take_along_dim(x, rg.tensor([[-1]]), 1)
    assert out.tolist() == [[2.0], [4.0]]
    (g,) = rg.autograd.grad(rg.take_along_dim(x, rg.tensor([[0, 0, 1]]), 1).sum(), x)
    assert g.tolist() == [[2.0, 1.0], [2.0, 1.0]]


def test_index_put_accumulates_on_request_and_takes_masks():
    x, twice = rg.zeros(3), (rg.tensor([0, 0]),)
    assert rg.index_put(x, twice, rg.tensor(2.0)).tolist() == [2.0, 0.0, 0.0]
    assert rg.index_put(x, twice, rg.tensor([2.0, 3.0]), accumulate=True).tolist() == [5.0, 0.0, 0.0]
    assert x.index_put((rg.tensor([True, False, True]),), rg.tensor([1.0, 2.0])).tolist() == [1.0, 0.0, 2.0]
    with pytest.raises(RuntimeError, match="index_put: operands must have one dtype"):
        rg.index_put(x, twice, rg.tensor([1, 2]))


WRITES = {
    "scatter_": lambda x, s: x.scatter_(0, rg.tensor(INDEX), s),
    "scatter_add_": lambda x, s: x.scatter_add_(0, rg.tensor(INDEX), s),
    "scatter_reduce_": lambda x, s: x.scatter_reduce_(0, rg.tensor(INDEX), s, "prod"),
    "index_add_": lambda x, s: x.index_add_(0, rg.tensor(INDEX), s, alpha=2),
    "index_copy_": lambda x, s: x.index_copy_(0, rg.tensor(INDEX), s),
    "index_fill_": lambda x, s: x.index_fill_(0, rg.tensor(INDEX), s[0]),
    "index_reduce_": lambda x, s: x.index_reduce_(0, rg.tensor(INDEX), s, "mean"),
    "put_": lambda x, s: x.put_(rg.tensor(INDEX), s),
    "index_put_": lambda x, s: x.index_put_((rg.tensor(INDEX),), s, accumulate=True),
    "masked_fill_": lambda x, s: x.masked_fill_(rg.tensor([True, False, True]), s[1]),
    "masked_scatter_": lambda x, s: x.masked_scatter_(rg.tensor([True, False, True]), s),
}


@pytest.mark.parametrize("name", WRITES)
def test_the_form_that_writes_has_the_values_and_gradients_of_the_other(name):
    def outcome(write):
        base = rg.tensor([2.0, 3.0, 4.0], dtype=rg.float64, requires_grad=True)
        s = rg.tensor([5.0, 6.0], dtype=rg.float64, requires_grad=True)
        x = base * 1
        out = write(x, s)
        (out * out).sum().backward()
        return out, base.grad, s.grad, x

    written = outcome(WRITES[name])
    plain = outcome(lambda x, s: WRITES[name](_Plain(x), s))
    for a, b in zip(written[:3], plain[:3], strict=True):
        assert_close(a.detach(), b.detach())
    assert written[0] is written[3]


class _Plain:
    """Call `x.name(...)` for `x.name_(...)`."""

    def __init__(self, x):
        self._x = x

    def __getattr__(self, name):
        return getattr(self._x, name.removesuffix("_"))


def test_a_write_through_a_view_reaches_the_base_and_its_gradient():
    x = rg.ones(2, 3, dtype=rg.float64, requires_grad=True)
    y = x * 2
    y.t().scatter_(0, rg.tensor([[0, 1]]), 7.0)
    assert y.tolist() == [[7.0, 2.0, 2.0], [2.0, 7.0, 2.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 2.0], [2.0, 0.0, 2.0]]


REDUCTIONS = {  # the reduction of each segment, and that of one without elements
    "sum": (lambda x: x.sum(), 0.0),
    "mean": (lambda x: x.mean(), math.nan),
    "prod": (lambda x: x.prod(), 1.0),
    "max": (lambda x: x.amax(), -math.inf),
    "min": (lambda x: x.amin(), math.inf),
}


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("given", ["lengths", "offsets"])
def test_segments_are_reduced_one_by_one(reduce, given):
    one, empty = REDUCTIONS[reduce]
    x = rg.randn(6, dtype=rg.float64, requires_grad=True)
    where = {"lengths": rg.tensor([2, 0, 3, 1]), "offsets": rg.tensor([0, 2, 2, 5, 6])}[given]
    out = rg.segment_reduce(x, reduce, **{given: where})
    parts = [x[:2], None, x[2:5], x[5:]]
    expected = rg.stack([rg.tensor(empty, dtype=rg.float64) if part is None else one(part) for part in parts])
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy())
    keep = rg.tensor([0, 2, 3])
    gradients = [rg.autograd.grad(y[keep].pow(2).sum(), x)[0].numpy() for y in (out, expected)]
    np.testing.assert_allclose(*gradients)


def test_segments_of_each_row_have_their_own_lengths_and_start():
    x, lengths = rg.arange(12.0).reshape(2, 3, 2), rg.tensor([[1, 2], [3, 0]])
    out = rg.segment_reduce(x, "sum", lengths=lengths, axis=1, initial=1.0)
    assert out.tolist() == [[[1, 2], [7, 9]], [[25, 28], [1, 1]]]
    assert out.is_contiguous()
    assert rg.segment_reduce(rg.arange(4.0), "mean", lengths=rg.tensor([2, 0]), unsafe=True, initial=1.0).tolist() == [
        1,
        1,
    ]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "Either lengths or offsets must be defined"),
        ({"lengths": rg.tensor([2, 2])}, "to sum to 5, the size of data along axis"),
        ({"lengths": rg.tensor([-1, 6])}, "lengths contains negative value"),
        ({"lengths": rg.tensor([[2, 3]])}, "Expected axis to be the last dimension of lengths but got 0"),
        ({"lengths": rg.tensor([2, 3]), "axis": 1}, "segment_reduce: dim 1 is out of range"),
        ({"lengths": rg.tensor([5]), "indices": rg.tensor([0])}, "indices based reduction is not supported"),
        ({"lengths": rg.tensor([5]), "reduce": "median"}, "must be either sum, prod, mean"),
    ],
)
def test_segments_that_do_not_cover_the_data_are_refused(settings, words):
    with pytest.raises(RuntimeError, match=words):
        rg.segment_reduce(rg.ones(5), **{"reduce": "sum", **settings})
    with pytest.raises(NotImplementedError, match="int64"):
        rg.segment_reduce(rg.tensor([1]), "sum", lengths=rg.tensor([1]))
