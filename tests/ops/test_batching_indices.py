"""Batching rules of indexing, sorting, counting and normalization, for cases that their samples do not cover."""

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import NotBatchedError
from retrograd.func import grad, vmap
from retrograd.testing import assert_close
from retrograd.utils.operator_log import OperatorLog

from ..case_groups import group_cases

F = rg.nn.functional


def numbers(*shape, seed=0):
    return rg.tensor(np.random.default_rng(seed).normal(size=shape))


def random_indices(size, *shape, seed=0):
    return rg.tensor(np.random.default_rng(seed).integers(0, size, shape))


def one_by_one(f, dims, *args):
    """Return the results of a loop over the examples."""
    n = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    return rg.stack(
        [f(*[a if d is None else a.select(d, i).clone() for a, d in zip(args, dims, strict=True)]) for i in range(n)]
    )


def check(f, *args, dims=None):
    """Check every choice of batched arguments against the loop: batched first, batched last, and nested."""
    choices = [dims] if dims else [c for c in itertools.product((0, None), repeat=len(args)) if 0 in c]
    for chosen in choices:
        given = [a if d == 0 else a[0] for a, d in zip(args, chosen, strict=True)]
        expected = one_by_one(f, chosen, *given)
        found = vmap(f, tuple(chosen))(*given)
        assert found.dtype == expected.dtype
        assert_close(found, expected, equal_nan=True)


def check_gradients(f, *args, dims=None):
    """Check the gradient of each example's sum in its first argument, inside and outside of vmap, against a loop."""
    weights = numbers(*f(*[a[0] for a in args]).shape, seed=9)

    def loss(*xs):
        return (f(*xs) * weights).sum()

    choices = [dims] if dims else [c for c in itertools.product((0, None), repeat=len(args)) if 0 in c]
    for chosen in choices:
        given = [a if d == 0 else a[0] for a, d in zip(args, chosen, strict=True)]
        expected = one_by_one(grad(loss), chosen, *given)
        assert_close(vmap(grad(loss), tuple(chosen))(*given), expected)
        whole = grad(lambda *xs: vmap(loss, tuple(chosen))(*xs).sum())(*given)  # noqa: B023
        assert_close(whole, expected if chosen[0] == 0 else expected.sum(0))


def check_nested(f, *args, dims=None):
    """Check vmap of vmap, the inner one over the second dimension of every argument, or of some."""
    for inner in [c for c in itertools.product((0, None), repeat=len(args)) if 0 in c]:
        given = [a if d == 0 else a[:, 0] for a, d in zip(args, inner, strict=True)]
        found = vmap(vmap(f, inner))(*given)
        expected = rg.stack([one_by_one(f, inner, *[a[i] for a in given]) for i in range(len(given[0]))])
        assert_close(found, expected, equal_nan=True)


# ----------------------------------------------------------------------------------------------- indices


ALONG = {
    "gather": lambda x, i: rg.gather(x, -1, i),
    "gather in front": lambda x, i: rg.gather(x, 0, rg.remainder(i, 2)),
    "index_select": lambda x, i: rg.index_select(x, 1, i[0]),
    "index_select in front": lambda x, i: rg.index_select(x, 0, rg.remainder(i[0], 2)),
    "index_select of one": lambda x, i: rg.index_select(x, 0, rg.remainder(i[0, 0], 2)),
    "index_add": lambda x, i: rg.index_add(rg.zeros(2, 5, dtype="float64"), 1, i[1], x),
    "index_add in front": lambda x, i: rg.index_add(rg.zeros(5, 3, dtype="float64"), 0, i[:, 0], x),
    "scatter_add": lambda x, i: rg.scatter_add(rg.zeros(2, 5, dtype="float64"), 1, i, x),
    "scatter": lambda x, i: rg.scatter(x, 1, i, 2.5),
    "embedding": lambda x, i: F.embedding(i, x.reshape(3, 2)),
    "take": lambda x, i: rg.take(x, i - 1),
    "take_along_dim": lambda x, i: rg.take_along_dim(x, i - 2, 1),
    "take_along_dim of all": lambda x, i: rg.take_along_dim(x, i),
    "separated places": lambda x, i: x.reshape(2, 1, 3)[rg.remainder(i[0], 2), :, i[1]],
    "separated by a number": lambda x, i: x.reshape(2, 1, 3)[1, :, i],
    "places behind": lambda x, i: x[:, i],
    "places and None": lambda x, i: x[None, rg.remainder(i, 2), ..., None],
    "places by broadcasting": lambda x, i: x[rg.remainder(i[:, :1], 2), i[:1]],
}


@pytest.mark.parametrize("name", ALONG)
def test_every_example_has_its_own_indices(name):
    f, x, i = ALONG[name], numbers(4, 2, 3), random_indices(3, 4, 2, 3)
    check(f, x, i)
    check_gradients(f, x, i)
    check_nested(f, numbers(2, 4, 2, 3), random_indices(3, 2, 4, 2, 3))


@pytest.mark.parametrize("name", ALONG)
def test_empty_batches_give_empty_results(name):
    f, x, i = ALONG[name], numbers(4, 2, 3), random_indices(3, 4, 2, 3)
    alone = f(x[0], i[0])
    for dims, given in (((0, 0), (x[:0], i[:0])), ((0, None), (x[:0], i[0])), ((None, 0), (x[0], i[:0]))):
        out = vmap(f, dims)(*given)
        assert (out.shape, out.dtype) == ((0, *alone.shape), alone.dtype)


def test_indices_into_tensors_without_dimensions():
    numberless = [
        (lambda x, i: rg.gather(x, 0, i), numbers(3), random_indices(1, 3)),
        (lambda x, i: rg.gather(x, 0, i), numbers(3, 4), random_indices(4, 3)),
        (lambda x, i: rg.gather(x, 0, i), numbers(3), random_indices(1, 3, 2)),
        (lambda x, i: rg.take_along_dim(x, i, 0), numbers(3), random_indices(1, 3)),
        (lambda x, i: rg.scatter(x, 0, i, 2.0), numbers(3), random_indices(1, 3)),
        (lambda x, i: rg.scatter_add(x, 0, i, x), numbers(3), random_indices(1, 3)),
        (lambda x, i: F.embedding(i, x), numbers(3, 4, 2), random_indices(4, 3)),
        (lambda x, i: x[i], numbers(3, 4), random_indices(4, 3)),
    ]
    for f, x, i in numberless:
        check(f, x, i)
        check_gradients(f, x, i)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: rg.gather(x, 0, i),
        lambda x, i: rg.index_select(x, 0, i),
        lambda x, i: rg.index_add(x, 0, i, x),
        lambda x, i: F.embedding(i, x[:, None]),
    ],
)
@pytest.mark.parametrize("wrong", [3, -1])
def test_no_example_reaches_the_elements_of_another(f, wrong):
    x, i = numbers(2, 3), rg.tensor([[0, 1, 2], [0, 1, 2]])
    i[0, 1] = wrong
    for dims in ((0, 0), (None, 0)):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
            vmap(f, dims)(x if dims[0] == 0 else x[0], i)


def test_scatters_that_merge_do_so_in_each_example():
    x, i, src = numbers(4, 3), random_indices(3, 4, 5), numbers(4, 5, seed=1)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include_self in (True, False):

            def f(x, i, src):
                return rg.scatter_reduce(x, 0, i, src, reduce, include_self=include_self)  # noqa: B023

            check(f, x, i, src)
            check_gradients(f, x, i, src)
    check(lambda x, i, src: rg.index_reduce(x, 0, i, src, "prod"), x, i, src)
    check(lambda x, i, src: rg.put(x, i, src, accumulate=True), x, i, src)


def test_indices_are_written_to_in_each_example():
    def f(x, i, value):
        x = x.clone()
        x[i] = value
        x[:, 1] += 1
        x.select(1, 0)[i] *= 2
        return x

    check(f, numbers(4, 3, 2), rg.tensor([[0, 2], [1, 0], [2, 1], [0, 1]]), numbers(4, 2, seed=3))


def test_writes_through_views_stay_in_their_example():
    def f(x, y):
        x = x.clone()
        x.diagonal().mul_(2)
        x.unfold(0, 1, 1).select(0, 1).add_(y)
        x.as_strided((2,), (4,), 1).copy_(-y[:2].reshape(-1)[:2])
        rg.view_as_real(rg.view_as_complex(x[:2, :2].contiguous())).add_(5)
        rg.view_as_complex(x.reshape(3, 3)[:, :2].contiguous()).mul_(2)
        return x

    check(f, numbers(4, 3, 3), numbers(4, 3, 1, seed=2))


def test_one_hot_needs_num_classes():
    check(lambda i: rg.one_hot(i, 4), random_indices(4, 3, 2))
    check(lambda i: rg.one_hot(i, 4), random_indices(4, 3))
    with pytest.raises(NotBatchedError, match=r"one_hot: how many classes there are .* give num_classes"):
        vmap(rg.one_hot)(random_indices(4, 3))


def test_results_of_another_size_in_every_example_are_refused_by_name():
    x = random_indices(3, 2, 4)
    for f in (rg.nonzero, rg.unique, rg.unique_consecutive, lambda x: x[x > 1]):
        with pytest.raises(NotBatchedError, match="depends on the values"):
            vmap(f)(x)
        with pytest.raises(NotBatchedError, match="depends on the values"):
            vmap(vmap(f))(x[None])


# ----------------------------------------------------------------------------------------------- memory


def test_strides_do_not_lead_into_the_next_example():
    with pytest.raises(RuntimeError, match="reach index 4 of 4"):
        vmap(lambda x: rg.as_strided(x, (2,), (4,)))(numbers(3, 4))
    check(lambda x: rg.as_strided(x, (2, 2), (1, 1), 1), numbers(3, 4))
    check_gradients(lambda x: rg.as_strided(x, (2, 2), (1, 1), 1), numbers(3, 4))
    check_nested(lambda x: rg.as_strided(x, (2, 2), (1, 1), 1), numbers(2, 3, 4))


def test_bytes_are_read_within_an_example():
    x = numbers(3, 4)
    check(lambda x: x.view(rg.int32), x)
    check(lambda x: x.view(rg.int64), x[:, 0])
    check(lambda x: x.view(rg.float32), x.T, dims=(0,))
    with pytest.raises(RuntimeError, match="a tensor without dimensions"):
        vmap(lambda x: x.view(rg.float32))(x[:, 0])


def test_parts_of_complex_numbers_along_any_batch_dimension():
    x = numbers(3, 2, 2)
    assert_close(vmap(rg.view_as_complex, 1)(x), rg.view_as_complex(x.movedim(1, 0).contiguous()))
    assert_close(vmap(rg.view_as_complex, -1, -1)(x), rg.view_as_complex(x.movedim(2, 1).contiguous()))
    check_gradients(lambda x: rg.view_as_real(rg.view_as_complex(x) * (1 + 2j)), x)
    check(lambda z: z.real * z.imag, rg.view_as_complex(x))
    check(rg.angle, rg.view_as_complex(x)[:, 0])


def test_windows_of_examples_without_dimensions():
    for size in (0, 1):
        check(lambda x: x.unfold(0, size, 2), numbers(3))  # noqa: B023
    check_gradients(lambda x: x.unfold(0, 1, 1), numbers(3))
    check_gradients(lambda x: x.unfold(-1, 2, 1), numbers(3, 2, 4))


def test_diagonals_count_dimensions_from_behind_the_examples():
    f = lambda x: rg.diagonal(x, -1, dim1=-2, dim2=0)  # noqa: E731
    check(f, numbers(3, 4, 2, 3))
    check_gradients(f, numbers(3, 4, 2, 3))
    check_nested(rg.diagonal, numbers(2, 3, 3, 4))


# ------------------------------------------------------------------------------- sorting, counting, choosing


def tied(*shape):
    """Return values with many ties."""
    return random_indices(3, *shape).to("float64")


CHOICES = {
    "sort": lambda x: rg.sort(x, 0).values,
    "sort descending": lambda x: rg.sort(x, descending=True).indices,
    "topk": lambda x: rg.topk(x, 2, 0).values,
    "topk last": lambda x: rg.topk(x, 2, largest=False).indices,
    "kthvalue": lambda x: rg.kthvalue(x, 2, 0).values,
    "median": rg.median,
    "median along": lambda x: rg.median(x, 0, True).values,
    "median places": lambda x: rg.median(x, 1).indices,
    "mode": lambda x: rg.mode(x, 0).values,
    "mode places": lambda x: rg.mode(x).indices,
    "max": lambda x: rg.max(x),
    "max along": lambda x: rg.max(x, 0).values,
    "argmax": rg.argmax,
    "argmin": lambda x: rg.argmin(x, keepdim=True),
    "argmax along": lambda x: rg.argmax(x, -1, True),
    "any": lambda x: rg.any(x > 1, ()),
    "all": lambda x: rg.all(x, 0),
    "cumsum": lambda x: rg.cumsum(x, 0),
    "cumprod": lambda x: rg.cumprod(x, -1),
    "quantile": lambda x: rg.quantile(x, 0.3),
    "nanquantile": lambda x: rg.nanquantile(x, 0.3, 0),
    "histc": lambda x: rg.histc(x, 3),
    "nonzero_static": lambda x: rg.nonzero_static(x, size=5, fill_value=7),
    "nonzero_static of more": lambda x: rg.nonzero_static(x, size=13),
    "unravel_index": lambda x: rg.unravel_index(rg.argmax(x), x.shape)[0],
}


@group_cases
@pytest.mark.parametrize("name", CHOICES)
def test_every_example_is_ordered_by_itself(name):
    f, x = CHOICES[name], tied(4, 3, 4)
    check(f, x)
    check(f, numbers(4, 3, 4))
    check_nested(f, tied(2, 4, 3, 4))
    if f(x[0]).dtype == x.dtype and name != "histc":
        check_gradients(f, x)
        check_gradients(f, numbers(4, 3, 4))


@group_cases
@pytest.mark.parametrize("name", CHOICES)
def test_no_examples_are_ordered(name):
    x = tied(4, 3, 4)
    alone, out = CHOICES[name](x[0]), vmap(CHOICES[name])(x[:0])
    assert (out.shape, out.dtype) == ((0, *alone.shape), alone.dtype)


def test_examples_without_dimensions_are_ordered():
    for f in (
        rg.argmax,
        lambda x: rg.argmax(x, 0),
        lambda x: rg.sort(x).values,
        lambda x: rg.topk(x, 1).indices,
        lambda x: rg.kthvalue(x, 1).values,
        rg.median,
        lambda x: rg.median(x, 0).indices,
        lambda x: rg.mode(x).values,
        lambda x: rg.quantile(x, 0.3),
        lambda x: rg.cumsum(x, 0),
        lambda x: rg.cumprod(x, -1),
        lambda x: rg.any(x, ()),
        lambda x: rg.nonzero_static(x, size=2),
    ):
        check(f, numbers(3))


def test_nan_wins_in_its_own_example():
    x = rg.tensor([[1.0, np.nan, 2.0, np.nan], [3.0, 1.0, 2.0, 0.0], [np.nan] * 4])
    for f in (
        rg.median,
        rg.nanmedian,
        lambda x: rg.nanmedian(x, 0).indices,
        lambda x: rg.median(x, 0).indices,
        lambda x: rg.quantile(x, 0.4),
        lambda x: rg.nanquantile(x, 0.4),
        rg.amax,
        lambda x: rg.sort(x).indices,
    ):
        check(f, x)
    check(lambda x, q: rg.quantile(x, q), x.to("float64"), numbers(3).abs().clamp(max=1))


def test_every_example_has_quantiles_of_its_own():
    x, q = numbers(4, 3, 5), numbers(4, 2, seed=1).sigmoid()
    f = lambda x, q: rg.quantile(x, q, 1)  # noqa: E731
    check(f, x, q)
    check_gradients(f, x, q)
    check_gradients(lambda q, x: rg.quantile(x, q, 0), q, x)
    check_nested(lambda x, q: rg.nanquantile(x, q, 0, True), numbers(2, 4, 3, 5), numbers(2, 4, 2).sigmoid())
    check_nested(lambda x, q: rg.quantile(x, q), numbers(2, 4, 3, 5), numbers(2, 4, 12).sigmoid())


def test_every_example_is_searched_by_itself():
    rows, values = rg.sort(numbers(4, 5)).values, numbers(4, 2, 3, seed=1)
    check(rg.searchsorted, rows, values)
    check(lambda r, v: rg.searchsorted(r, v, right=True, out_int32=True), tied(4, 5).sort().values, tied(4, 3))
    check(lambda r, v: rg.bucketize(v, r), rows, values)
    check(lambda r, v: rg.searchsorted(r, v[0, 0]), rows, values)
    check(lambda r: rg.searchsorted(r, rg.tensor(0.1)), rows)
    check(lambda r: rg.searchsorted(r, 0.1), rg.tensor([[0.1, 1.0], [0.0, 0.1]], dtype="float64"))
    check(lambda r: rg.searchsorted(r, 1), rg.sort(random_indices(3, 4, 5)).values)
    check(lambda r, v: rg.searchsorted(rg.sort(r).values, v), numbers(4, 2, 5), values)
    unsorted = numbers(4, 5)
    check(lambda s, v, o: rg.searchsorted(s, v, sorter=o), unsorted, values, rg.argsort(unsorted), dims=(0, 0, 0))
    check(lambda s, v, o: rg.searchsorted(s, v, sorter=o), unsorted, values, rg.argsort(unsorted), dims=(0, None, 0))
    ties, orders = rg.tensor([[1.0, 1.0, 0.0]] * 2), rg.tensor([[2, 0, 1], [2, 1, 0]])
    check(lambda s, v, o: rg.searchsorted(s, v, sorter=o), ties, values[:2], orders, dims=(None, 0, 0))
    check(lambda s, v, o: rg.searchsorted(s, v, sorter=o), ties, values[:2], orders, dims=(None, None, 0))
    check_nested(rg.searchsorted, rg.sort(numbers(2, 4, 5)).values, numbers(2, 4, 3))


def test_every_example_has_elements_of_its_own():
    x, among = random_indices(6, 4, 2, 3), random_indices(6, 4, 5, seed=1)
    check(rg.isin, x, among)
    check(lambda x, a: rg.isin(x, a, invert=True), x.to("float64"), among.reshape(4, 1, 5))
    check(lambda x, a: rg.isin(x, a) & rg.isin(2, a), x, among)
    check(lambda x, a: rg.isin(x[0, 0], a[0]), x, among)
    check(lambda x, a: rg.isin(x > 2, a > 3), x, among)
    check(lambda x, a: rg.isin(x * 1j, a * 1j), x, among)
    check(lambda x, a: rg.isin(x, a[:0]), x, among)
    holes = rg.tensor([[1.0, np.nan], [np.nan, np.nan]])
    check(rg.isin, holes, holes)
    check_nested(rg.isin, random_indices(6, 2, 4, 3), random_indices(6, 2, 4, 2))


def test_repeats_of_each_example_add_up_to_the_size_that_is_given():
    repeats = rg.tensor([[1, 0, 2], [0, 3, 0], [1, 1, 1]])
    f = lambda x, repeats: rg.repeat_interleave(x, repeats, 0, output_size=3)  # noqa: E731
    check(f, numbers(3, 3, 2), repeats)
    check_gradients(f, numbers(3, 3, 2), repeats)
    with pytest.raises(RuntimeError, match="output_size is 3, but repeats add up to 4"):
        vmap(f)(numbers(2, 3, 2), rg.tensor([[1, 0, 2], [0, 3, 1]]))
    with pytest.raises(RuntimeError, match="must be 1-d"):
        rg.repeat_interleave(rg.ones(2, 2, dtype="int64"), output_size=2)


def test_integers_are_counted_in_examples_of_one_size():
    x, weights = random_indices(4, 3, 5), numbers(3, 5)
    check(rg.bincount, x % 2)
    check(lambda x, w: rg.bincount(x, w, 6), x, weights)
    check(lambda x, w: rg.bincount(x, w, 6), x, weights.to("float32"))
    check(lambda x, w: rg.bincount(x, w), x, random_indices(9, 3, 5), dims=(None, 0))
    check_gradients(lambda w, x: rg.bincount(x, w, 6), weights, x)
    check_nested(lambda x, w: rg.bincount(x, w, 6), random_indices(4, 2, 3, 5), numbers(2, 3, 5))
    assert vmap(lambda x: rg.bincount(x, minlength=6))(x[:0]).shape == (0, 6)
    assert vmap(lambda x, w: rg.bincount(x, w, 6))(x[:0], weights[:0]).dtype == "float64"
    with pytest.raises(NotBatchedError, match=r"differ in shape: \(2,\), \(4,\)"):
        vmap(rg.bincount)(rg.tensor([[0, 1], [3, 0]]))


def test_histograms_come_one_by_one():
    check(lambda x: rg.histogram(x, 3).bin_edges, numbers(4, 5))
    check(lambda x, w: rg.histogram(x, 3, weight=w, range=(-1, 1), density=True).hist, numbers(4, 5), tied(4, 5) + 1)
    check(lambda x: rg.histogramdd(x, [2, 3]).hist, numbers(4, 5, 2))


# --------------------------------------------------------------------------------------------------- masks


def test_masks_choose_in_each_example():
    x, mask, source = numbers(4, 2, 3), numbers(4, 2, 3, seed=1) > 0, numbers(4, 8, seed=2)
    check(rg.masked_scatter, x, mask, source)
    check_gradients(rg.masked_scatter, x, mask, source)
    check_gradients(lambda s, x, m: rg.masked_scatter(x, m, s), source, x, mask)
    check_nested(rg.masked_scatter, numbers(2, 4, 3), numbers(2, 4, 3, seed=1) > 0, numbers(2, 4, 3, seed=2))
    check(lambda x, m: rg.masked_fill(x, m, 2.0), x, mask)
    with pytest.raises(RuntimeError, match="the mask has 3 true elements, but source only 2"):
        vmap(rg.masked_scatter)(rg.zeros(2, 3), rg.tensor([[True, False, True], [True, True, True]]), rg.ones(2, 2))


# ------------------------------------------------------------------------------ classes, embeddings, norms


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_losses_of_classes_in_each_example(weighted, smoothing):
    x, target, weight = numbers(4, 5, 3), random_indices(3, 4, 5), numbers(4, 3, seed=1).exp()
    target[1] = 1

    def f(x, target, weight):
        weight = weight if weighted else None
        return F.cross_entropy(x, target, weight, ignore_index=1, label_smoothing=smoothing, reduction="sum")

    check(f, x, target, weight)
    check_gradients(f, x, target, weight)
    check_gradients(lambda x, t: F.nll_loss(x[:, 0], t[0], reduction="sum"), x.movedim(2, 1), target)


def test_a_class_that_is_not_there_is_refused_in_every_example():
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        vmap(F.cross_entropy)(numbers(2, 2, 3), rg.tensor([[0, 1], [3, 0]]))


def test_bags_of_each_example():
    ids, weight, starts = random_indices(6, 4, 7), numbers(4, 6, 2), rg.tensor([[0, 3], [0, 0], [0, 7], [0, 5]])
    for mode in ("sum", "mean", "max"):
        f = lambda w, i, s: F.embedding_bag(i, w, s, mode=mode, padding_idx=2)  # noqa: E731, B023
        check(f, weight, ids, starts)
        check_gradients(f, weight, ids, starts)
    check(lambda w, i: F.embedding_bag(i.reshape(1, 7), w, mode="max"), weight, ids)
    check(lambda w, i: F.embedding(i, w, padding_idx=1, scale_grad_by_freq=True), weight, ids)
    check_gradients(lambda w, i: F.embedding(i, w, padding_idx=1, scale_grad_by_freq=True), weight, ids)


def test_a_maximum_of_a_bag_is_the_first_of_equals():
    weight = rg.tensor([[1.0], [1.0], [np.nan]], requires_grad=True)
    out = F.embedding_bag(rg.tensor([1, 0, 1, 2, 0]), weight, rg.tensor([0, 0, 3]), mode="max")
    assert out.reshape(-1).tolist()[:2] == [0.0, 1.0]
    assert np.isnan(out[2].item())
    out[:2].sum().backward()
    assert weight.grad.tolist() == [[0.0], [1.0], [0.0]]
    assert F.embedding_bag(rg.zeros(0, 2, dtype="int64"), weight, mode="max").shape == (0, 1)


NORMS = {
    "layer_norm": lambda x, w, b: F.layer_norm(x, (2,), w, b),
    "rms_norm": lambda x, w, b: F.rms_norm(x, (2,), w) + b,
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    "batch_norm of images": lambda x, w, b: F.batch_norm(x.reshape(3, 2, 2), None, None, w, b, training=True),
    "batch_norm by running ones": lambda x, w, b: F.batch_norm(x, w, w * w + 1, w, b),
    "group_norm": lambda x, w, b: F.group_norm(x.reshape(3, 2, 2), 1, w, b),
    "instance_norm": lambda x, w, b: F.instance_norm(x.reshape(3, 2, 2), None, None, w, b),
}


@pytest.mark.parametrize("name", NORMS)
def test_every_example_is_normalized_by_itself(name):
    shape = (6, 2) if name in ("layer_norm", "rms_norm", "batch_norm", "batch_norm by running ones") else (3, 4)
    f, args = NORMS[name], (numbers(4, *shape), numbers(4, 2, seed=1), numbers(4, 2, seed=2))
    check(f, *args)
    check_gradients(f, *args)
    check_gradients(lambda w, x, b: f(x, w, b), args[1], args[0], args[2])
    check_nested(f, numbers(2, 4, *shape), numbers(2, 4, 2), numbers(2, 4, 2, seed=1))
    assert vmap(f)(*[a[:0] for a in args]).shape == (0, *f(*[a[0] for a in args]).shape)


def test_labels_and_lengths_of_sequences_may_differ_between_examples():
    logs, targets = rg.log_softmax(numbers(3, 6, 2, 4), 3), random_indices(3, 3, 2, 3) + 1
    steps, lengths = rg.tensor([[6, 5], [4, 6], [0, 6]]), rg.tensor([[3, 1], [0, 2], [1, 3]])
    f = lambda *args: F.ctc_loss(*args, reduction="none", zero_infinity=True)  # noqa: E731
    check(f, logs, targets, steps, lengths)
    check_gradients(f, logs, targets, steps, lengths)
    with pytest.raises(ValueError, match="labels must be from 0 to 3, got 0 to 4"):
        vmap(F.ctc_loss, (None, 0, None, None))(logs[0], targets * 0 + 4, steps[0], lengths[0])


def test_numbers_are_moved_by_the_bits_of_each_example():
    x, exponents = numbers(3, 2), random_indices(5, 3) - 2
    check(rg.ldexp, x, exponents)
    check(rg.ldexp, x.to("float32")[:, 0], exponents)
    check(lambda e: rg.ldexp(0.75, e), exponents)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, t: F.cross_entropy(x, t, ignore_index=1),
        lambda x, t: F.cross_entropy(x, t, ignore_index=1, label_smoothing=0.1, reduction="sum"),
        lambda x, t: F.nll_loss(x, t, ignore_index=1),
    ],
)
def test_targets_of_many_examples_pick_from_one_tensor_that_is_not_repeated(f):
    x, targets = numbers(2, 5), random_indices(5, 3, 2)
    for slope in (f, grad(f)):
        assert_close(vmap(slope, (None, 0))(x, targets), one_by_one(slope, (None, 0), x, targets))
    with OperatorLog() as log:
        vmap(f, (None, 0))(x, targets)
    assert not any("float64[3, 2, 5]" in entry for entry, _ in log.entries)
    with pytest.raises(IndexError, match=r"index \d is out of bounds for (a dimension|dimension \d) with size 5"):
        vmap(f, (None, 0))(x, targets + 5)
