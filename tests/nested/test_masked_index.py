"""Elements of nested tensors selected by masks, by nested index tensors, and by their values."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.nested.buffer import remove_holes, values, wrap_buffer
from retrograd.nested.buffer_layout import get_layout, is_nested

RNG = np.random.default_rng(0)
KINDS = {
    "rows": [RNG.standard_normal((n, 2)) for n in (3, 1, 4)],
    "rows behind": [RNG.standard_normal((2, n)) for n in (3, 1, 4)],
    "vectors": [RNG.standard_normal(n) for n in (2, 0, 4)],
    "images": [RNG.standard_normal(shape) for shape in ((2, 3, 2), (3, 1, 2), (1, 2, 2))],
    "between": [RNG.standard_normal((2, n, 3)) for n in (3, 1, 2)],
}


def nested(parts, requires_grad=False):
    return rg.nested.nested_tensor(list(parts), requires_grad=requires_grad)


def parts_of(x):
    return [c.detach().numpy() for c in x.unbind()]


def same(x, expected):
    assert is_nested(x)
    found = parts_of(x)
    assert [f.shape for f in found] == [e.shape for e in expected]
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(f, e)


def of_buffer(x, f):
    """Return a function of the buffer of a nested tensor, for gradient checks, and that buffer."""
    known = get_layout(x)

    def run(v):
        out = f(wrap_buffer(v, known.structure, known.axis))
        return values(remove_holes(out)) if is_nested(out) else out

    return run, values(x).detach().requires_grad_()


def check(x, f):
    """Check derivatives of both modes and orders, and batches, of a function of a nested tensor."""
    run, rows = of_buffer(x, f)
    assert gradcheck(lambda v: run(v) ** 3, (rows,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(lambda v: run(v) ** 3, (rows,))
    batch = rg.stack([rows.detach(), -2 * rows.detach()])
    np.testing.assert_array_equal(rg.func.vmap(run)(batch).numpy(), np.stack([run(v).numpy() for v in batch]))


# ---------------------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_chooses_elements_of_each_component(kind):
    parts = KINDS[kind]
    x = nested(parts)
    same(x[x > 0], [p[p > 0] for p in parts])
    same(rg.masked_select(x, x > 0), [p[p > 0] for p in parts])
    same(x[x > 9], [p[p > 9] for p in parts])
    mask = x > 0
    check(x, lambda y: y[mask])


@pytest.mark.parametrize(("kind", "count"), [("rows", 1), ("images", 2), ("between", 2)])
def test_a_mask_chooses_rows_of_each_component(kind, count):
    parts = KINDS[kind]
    masks = [RNG.random(p.shape[:count]) > 0.5 for p in parts]
    x, mask = nested(parts), nested(masks)
    same(x[mask], [p[m] for p, m in zip(parts, masks, strict=True)])
    same(x[mask, ..., 1], [p[m][..., 1] for p, m in zip(parts, masks, strict=True)])
    same(x[1:][mask[1:]], [p[m] for p, m in zip(parts[1:], masks[1:], strict=True)])
    check(x, lambda y: y[mask])


def test_a_mask_of_sets_of_sets_chooses_among_the_innermost():
    x = rg.nested.nested_tensor([[[1.0, 2.0], [3.0]], [[4.0]], [[], [6.0, 7.0, 8.0]]])
    assert x[x > 1.5].tolist() == [[[2.0], [3.0]], [[4.0]], [[], [6.0, 7.0, 8.0]]]
    mask = rg.nested.nested_tensor([[True, False], [False], [False, True]])
    assert x[mask].tolist() == [[[1.0, 2.0]], [], [[6.0, 7.0, 8.0]]]


def test_a_plain_mask_chooses_components():
    parts = KINDS["rows"]
    same(nested(parts)[rg.tensor([True, False, True])], [parts[0], parts[2]])


# Operators are tried on the components one by one before they are refused.
TRIED_ONE_BY_ONE = pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")


def test_masks_that_do_not_fit_are_refused():
    x = nested(KINDS["rows"])
    with pytest.raises(IndexError, match=r"mask of shape \(2,\) does not fit component 1 of shape \(1, 2\)"):
        x[nested([np.ones(3, bool), np.ones(2, bool), np.ones(4, bool)])]
    with pytest.raises(IndexError, match="dense tensor of shape"):
        rg.zeros(3, 2)[nested([np.ones(3, bool), np.ones(2, bool)])]
    with pytest.raises(TypeError, match="must be boolean"):
        rg.nested.masked_select(x, x)
    with pytest.raises(ValueError, match="component 2 has shapes"):
        rg.masked_select(x, nested([np.ones((3, 2), bool), np.ones((1, 2), bool), np.ones((3, 2), bool)]))


def test_masks_of_a_batch_may_not_differ():
    x = nested(KINDS["vectors"])
    with pytest.raises(RuntimeError, match="values"):
        rg.func.vmap(
            lambda v: values(wrap_buffer(v, get_layout(x).structure)[wrap_buffer(v, get_layout(x).structure) > 0])
        )(rg.ones(2, 6))


def test_masked_select_of_dense_tensors():
    dense, mask = RNG.standard_normal((3, 4, 2)), RNG.random((3, 4, 2)) > 0.5
    x = rg.tensor(dense, requires_grad=True)
    rows = zip(dense.reshape(12, 2), mask.reshape(12, 2), strict=True)
    same(rg.nested.masked_select(x, rg.tensor(mask)), [d[m] for d, m in rows])
    same(rg.nested.masked_select(x[:, 0], rg.tensor(mask[:1, 0])), [d[mask[0, 0]] for d in dense[:, 0]])
    assert gradcheck(lambda v: values(rg.nested.masked_select(v, rg.tensor(mask))) ** 2, (x,))
    with pytest.raises(ValueError, match="no rows"):
        rg.nested.masked_select(rg.tensor(1.0), rg.tensor(True))


def test_masked_select_with_a_plain_mask_that_broadcasts():
    parts = KINDS["rows"]
    same(rg.masked_select(nested(parts), rg.tensor([True, False])), [p[:, 0] for p in parts])


@pytest.mark.parametrize("kind", KINDS)
def test_masked_fill_and_where(kind):
    parts = KINDS[kind]
    x = nested(parts)
    expected = [np.where(p > 0, -1.0, p) for p in parts]
    same(x.masked_fill(x > 0, -1.0), expected)
    same(rg.where(x > 0, -1.0, x), expected)
    mask = x > 0
    check(x, lambda y: y.masked_fill(mask, 2.0))


@pytest.mark.parametrize("kind", KINDS)
def test_nonzero_counts_the_component_first(kind):
    parts = KINDS[kind]
    x = nested(parts)
    expected = [(i, *place) for i, p in enumerate(parts) for place in np.argwhere(p > 0).tolist()]
    assert rg.nonzero(x > 0).tolist() == [list(e) for e in expected]
    assert rg.argwhere(x > 0).tolist() == [list(e) for e in expected]
    assert [t.tolist() for t in rg.nonzero(x > 0, as_tuple=True)] == [list(c) for c in zip(*expected, strict=True)]


def test_results_of_nonzero_are_an_index():
    x = nested(KINDS["images"])
    places = rg.nonzero(x > 0, as_tuple=True)
    np.testing.assert_array_equal(x[places].numpy(), np.concatenate([p[p > 0] for p in KINDS["images"]]))


# -------------------------------------------------------------------------------------------- ragged values


IDS = [np.array([4, 0, 1]), np.array([], np.int64), np.array([3])]


def test_a_plain_tensor_at_ragged_positions():
    table = RNG.standard_normal((5, 2))
    ids = nested(IDS)
    same(rg.tensor(table)[ids], [table[i] for i in IDS])
    same(rg.tensor(table)[ids, 1], [table[i, 1] for i in IDS])
    same(rg.tensor(table)[ids, ids % 2], [table[i, i % 2] for i in IDS])
    x = rg.tensor(table, requires_grad=True)
    assert gradcheck(lambda t: values(t[ids]) ** 2, (x,))
    wide = rg.tensor(RNG.standard_normal((2, 5)))[:, ids]
    assert wide.shape[:2] == (2, 3)
    np.testing.assert_array_equal(values(wide).shape, (2, 4))


def test_embedding_one_hot_and_buckets():
    table, ids = RNG.standard_normal((5, 2)), nested(IDS)
    same(rg.nn.functional.embedding(ids, rg.tensor(table)), [table[i] for i in IDS])
    same(rg.nn.functional.one_hot(ids, 5), [np.eye(5, dtype=np.int64)[i] for i in IDS])
    same(rg.nn.functional.one_hot(ids), [np.eye(5, dtype=np.int64)[i] for i in IDS])
    weight = rg.tensor(table, requires_grad=True)
    assert gradcheck(lambda w: values(rg.nn.functional.embedding(ids, w)) ** 2, (weight,), check_forward_ad=True)
    values(rg.nn.functional.embedding(ids, weight, padding_idx=0)).sum().backward()
    assert weight.grad[:, 0].tolist() == [0, 1, 0, 1, 1]
    edges = rg.tensor([0.0, 2.0])
    same(rg.bucketize(ids.double(), edges), [np.searchsorted([0.0, 2.0], i) for i in IDS])
    same(rg.searchsorted(edges, ids.double(), right=True), [np.searchsorted([0.0, 2.0], i, "right") for i in IDS])


def test_no_components():
    none = nested(KINDS["rows"])[:0]
    assert none[none > 0].shape[0] == 0
    assert rg.nonzero(none > 0).shape == (0, 3)
    assert nested(IDS)[:0][:, 0].shape == (0,)


# ------------------------------------------------------------------------------------- indices along dimensions


def index_along(parts, dim, count, rng):
    """Return for each component an index along a dimension, with the component's size in the others."""
    out = []
    for p in parts:
        shape = list(p.shape)
        shape[dim] = count(p)
        out.append(rng.integers(0, max(p.shape[dim], 1), shape) if p.shape[dim] else np.zeros(shape, np.int64)[:0])
    return out


CASES = [
    ("rows", 0),
    ("rows", 1),
    ("rows behind", 0),
    ("rows behind", 1),
    ("images", 0),
    ("images", 1),
    ("images", 2),
    ("between", 1),
]


@pytest.mark.parametrize(("kind", "dim"), CASES)
def test_gather_and_take_along_dim(kind, dim):
    parts, rng = KINDS[kind], np.random.default_rng(3)
    ragged = parts[0].shape[dim] != parts[1].shape[dim]
    index = index_along(parts, dim, (lambda p: p.shape[dim]) if ragged else (lambda p: 4), rng)
    x, places = nested(parts), nested(index)
    expected = [np.take_along_axis(p, i, dim) for p, i in zip(parts, index, strict=True)]
    same(x.gather(dim + 1, places), expected)
    same(rg.take_along_dim(x, places, dim + 1), expected)
    check(x, lambda y: y.gather(dim + 1, places))


@TRIED_ONE_BY_ONE
def test_positions_of_take_along_dim_count_from_the_end():
    x = nested(KINDS["rows"])
    same(rg.take_along_dim(x, nested([np.full((1, 2), -1)] * 3), 1), [p[-1:] for p in KINDS["rows"]])
    same(rg.take_along_dim(x, rg.tensor([[[-1]]]), 2), [p[:, 1:] for p in KINDS["rows"]])
    with pytest.raises(IndexError, match="index -1 is out of range for component 0"):
        x.gather(1, nested([np.full((1, 2), -1)] * 3))


@TRIED_ONE_BY_ONE
def test_gather_of_as_many_from_each():
    parts, rng = KINDS["rows"], np.random.default_rng(3)
    index = np.stack(index_along(parts, 0, lambda p: 3, rng))
    x = nested(parts)
    expected = np.stack([np.take_along_axis(p, i, 0) for p, i in zip(parts, index, strict=True)])
    np.testing.assert_array_equal(x.gather(1, rg.tensor(index)).numpy(), expected)
    with pytest.raises(IndexError, match="index 1 is out of range for component 1"):
        x.gather(1, rg.ones(3, 1, 2, dtype=rg.int64))


def test_gather_by_a_nested_index_from_a_dense_tensor():
    dense = RNG.standard_normal((3, 5, 2))
    index = [RNG.integers(0, 5, (n, 2)) for n in (2, 0, 4)]
    found = rg.tensor(dense).gather(1, nested(index))
    same(found, [np.take_along_axis(d, i, 0) for d, i in zip(dense, index, strict=True)])


@pytest.mark.parametrize(("kind", "dim"), CASES)
def test_scatter(kind, dim):
    parts, rng = KINDS[kind], np.random.default_rng(4)
    index = index_along(parts, dim, lambda p: p.shape[dim], rng)
    src = [rng.standard_normal(i.shape) for i in index]
    x, places, more = nested(parts), nested(index), nested(src)

    def each(f):
        return [f(rg.tensor(p), rg.tensor(i), rg.tensor(s)).numpy() for p, i, s in zip(parts, index, src, strict=True)]

    same(x.scatter_add(dim + 1, places, more), each(lambda p, i, s: p.scatter_add(dim, i, s)))
    same(x.scatter(dim + 1, places, value=2.0), each(lambda p, i, s: p.scatter(dim, i, value=2.0)))
    same(x.scatter(dim + 1, places, more), each(lambda p, i, s: p.scatter(dim, i, s)))
    same(x.scatter_reduce(dim + 1, places, more, "amax"), each(lambda p, i, s: p.scatter_reduce(dim, i, s, "amax")))
    check(x, lambda y: y.scatter_add(dim + 1, places, more))
    check(more, lambda s: x.scatter_add(dim + 1, places, s))


def test_scatter_into_a_dense_tensor():
    dense = RNG.standard_normal((3, 5))
    index, src = (
        [np.array([4, 4, 0]), np.array([], np.int64), np.array([1])],
        [RNG.standard_normal(n) for n in (3, 0, 1)],
    )
    out = rg.tensor(dense).scatter_add(1, nested(index), nested(src))
    for d, i, s in zip(dense, index, src, strict=True):
        np.add.at(d, i, s)
    np.testing.assert_allclose(out.numpy(), dense)


def test_slices_of_a_dense_dimension():
    parts = KINDS["rows"]
    x, at = nested(parts), rg.tensor([1])
    same(x.index_fill(2, at, 7.0), [np.stack([p[:, 0], np.full(len(p), 7.0)], 1) for p in parts])
    same(x.index_add(-1, at, x[:, :, :1]), [np.stack([p[:, 0], p[:, 1] + p[:, 0]], 1) for p in parts])
    same(x.index_copy(2, at, x[:, :, :1]), [p[:, [0, 0]] for p in parts])


@pytest.mark.parametrize("kind", ["rows", "rows behind", "images", "between"])
@pytest.mark.parametrize("diagonal", [-1, 0, 1])
def test_triangles(kind, diagonal):
    parts = KINDS[kind]
    x = nested(parts)
    same(rg.tril(x, diagonal), [np.tril(p, diagonal) for p in parts])
    same(rg.triu(x, diagonal), [np.triu(p, diagonal) for p in parts])
    check(x, lambda y: rg.tril(y, diagonal))


@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
def test_topk():
    parts = KINDS["rows"]
    found, places = rg.topk(nested(parts), 1, 1)
    largest = [p.argmax(0)[None] for p in parts]
    np.testing.assert_array_equal(
        padded(found), np.stack([np.take_along_axis(p, i, 0) for p, i in zip(parts, largest, strict=True)])
    )
    np.testing.assert_array_equal(padded(places), np.stack(largest))


def padded(x):
    return (x.to_padded_tensor(0) if is_nested(x) else x).numpy()


# ------------------------------------------------------------------------------------------------------ parts


def test_narrow_of_a_dense_tensor():
    dense = RNG.standard_normal((3, 5, 2))
    starts, lengths = [0, 3, 1], [5, 0, 2]
    x = rg.tensor(dense)
    out = rg.nested.narrow(x, 1, rg.tensor(starts), rg.tensor(lengths), layout=rg.jagged)
    expected = [d[s : s + n] for d, s, n in zip(dense, starts, lengths, strict=True)]
    same(out, expected)
    assert np.shares_memory(values(out).numpy(), x.numpy())
    same(rg.nested.narrow(x, 1, 1, rg.tensor([*lengths[1:1], 4, 0, 2])), [dense[0, 1:5], dense[1, 1:1], dense[2, 1:3]])
    same(rg.nested.narrow(x, 2, [0, 1, 0], [1, 1, 2]), [dense[0, :, :1], dense[1, :, 1:], dense[2]])
    leaf = rg.tensor(dense, requires_grad=True)

    def f(v):
        return values(remove_holes(rg.nested.narrow(v, 1, starts, lengths))) ** 3

    assert gradcheck(f, (leaf,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, (leaf,))
    back = rg.nested.narrow(leaf, 1, starts, lengths).to_padded_tensor(0.0)
    back.sum().backward()
    assert leaf.grad.sum().item() == 2 * sum(lengths)


def test_narrow_of_a_nested_tensor():
    parts = KINDS["rows"]
    same(
        rg.nested.narrow(nested(parts), 1, rg.tensor([0, 0, -3]), rg.tensor([1, 1, 2])),
        [parts[0][:1], parts[1], parts[2][1:3]],
    )


def test_bad_parts_are_refused():
    x = rg.zeros(3, 5, 2)
    with pytest.raises(IndexError, match="indices 4 to 6 of component 1, which has 5"):
        rg.nested.narrow(x, 1, rg.tensor([0, 4, 0]), 2)
    with pytest.raises(IndexError, match="component 0"):
        rg.nested.narrow(x, 1, 0, -1)
    with pytest.raises(TypeError, match="integers"):
        rg.nested.narrow(x, 1, 0.5, 1)
    with pytest.raises(ValueError, match="one for each of 3 components"):
        rg.nested.narrow(x, 1, rg.tensor([0, 1]), 1)
    with pytest.raises(RuntimeError, match="dimension 0"):
        rg.nested.narrow(x, 0, 0, 1)
    with pytest.raises(TypeError, match="layout"):
        rg.nested.narrow(x, 1, 0, 1, layout="jagged")
