"""Attention kernels agree with the NumPy reference, use memory linear in the length, and run on any threads."""

import tracemalloc

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.kernels import chosen, reference

from ..case_groups import group_cases

DTYPES = (np.float32, np.float64)
needs_compiled = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")
SIZES = [  # in front, queries, keys, features of queries and of values
    ((), 1, 1, 1, 1),
    ((2, 3), 5, 7, 4, 3),
    ((1, 2), 130, 300, 33, 17),
    ((), 1100, 520, 16, 48),
    ((2,), 64, 64, 32, 65),
    ((2,), 3, 0, 4, 4),
    ((2,), 0, 3, 4, 4),
    ((0,), 3, 3, 4, 4),
    ((2,), 3, 3, 0, 2),
    ((2,), 3, 3, 2, 0),
]


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def operands(front, queries, keys, e, d, dtype):
    return [numbers((*front, *size), dtype, i) for i, size in enumerate(((queries, e), (keys, e), (keys, d)))]


def ends(lengths):
    return np.cumsum([0, *lengths])


def run(of, q, k, v, attn_mask=None, attn_bias=None, causal=False, lengths=None, g=None, scores=True, scale=0.3):
    """Return all results of a module's kernels, forward and backward."""
    lengths = ([q.shape[-2]], [k.shape[-2]]) if lengths is None else lengths
    look = (*map(ends, lengths), scale, causal)
    out, sums = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype), np.empty(q.shape[:-1], q.dtype)
    of.attend(q, k, v, attn_mask, attn_bias, *look, out, sums)
    g = numbers(out.shape, q.dtype, 7) if g is None else g
    found = [np.empty((*q.shape[:-2], *x.shape[-2:]), q.dtype) for x in (q, k, v)]
    pairs = [sum(m * n for m, n in zip(*lengths, strict=True))] if len(lengths[0]) != 1 else [q.shape[-2], k.shape[-2]]
    found.append(np.zeros((*q.shape[:-2], *pairs), q.dtype) if scores else None)
    of.attend_grad(g, 0.5 * sums, out, sums, q, k, v, attn_mask, attn_bias, *look, *found)
    return [x for x in (out, sums, *found) if x is not None]


def agree(q, k, v, *more, tolerance=1.0, **how):
    for got, expected in zip(run(chosen, q, k, v, *more, **how), run(reference, q, k, v, *more, **how), strict=True):
        close = tolerance * (2e-5 if q.dtype == np.float32 else 4e-14)
        np.testing.assert_allclose(got, expected, rtol=close, atol=close)


@needs_compiled
@group_cases
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_it_is_that_of_the_reference(sizes, causal, dtype):
    agree(*operands(*sizes, dtype), causal=causal)


@pytest.mark.parametrize("of", [chosen, reference])
def test_it_is_the_formula(of):
    q, k, v = operands((2,), 5, 7, 4, 3, np.float64)
    scores = 0.3 * q @ k.swapaxes(-1, -2)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    out, sums, *_ = run(of, q, k, v)
    np.testing.assert_allclose(out, weights @ v, rtol=1e-12)
    np.testing.assert_allclose(sums, np.log(np.exp(scores).sum(-1)), rtol=1e-12)


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_that_broadcast_and_do_not_follow_each_other_in_memory(dtype):
    q, k, v = operands((2, 3), 70, 90, 33, 20, dtype)
    agree(q[:, ::-1, ::2, ::3], k[:1, :, :, ::3], v[:, :1, ::-1])
    apart = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (q, k, v)]
    agree(*apart, g=np.broadcast_to(numbers((20,), dtype), (2, 3, 70, 20)))


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_that_are_not_aligned(dtype):
    def unaligned(x):
        memory = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
        memory[...] = x
        assert not memory.flags.aligned
        return memory

    agree(*map(unaligned, operands((2,), 5, 7, 4, 3, dtype)))


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_masks(dtype, causal):
    q, k, v = operands((2, 3), 70, 300, 8, 8, dtype)
    some = np.random.default_rng(0).random((2, 1, 70, 300)) < 0.7
    some[0, 0, 5] = False
    agree(q, k, v, some, causal=causal)
    agree(q, k, v, some[:, :, ::-1, ::-1], causal=causal)
    agree(q, k, v, np.broadcast_to(some[:, :, :1], some.shape), causal=causal)
    attn_bias = numbers((1, 3, 70, 300), dtype, 4)
    agree(q, k, v, some, attn_bias, causal=causal)
    attn_bias[0, 1, 3], attn_bias[0, 1, 4, ::2] = -np.inf, -np.inf
    agree(q, k, v, None, attn_bias, causal=causal)
    out, sums, dq, *_ = run(chosen, q, k, v, None, attn_bias, causal=causal)
    assert not out[:, 1, 3].any()
    assert not sums[:, 1, 3].any()
    assert not dq[:, 1, 3].any()


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [([3, 0, 5, 200], [2, 4, 0, 300]), ([], [])])
def test_components(lengths, causal, dtype):
    q, k, v = operands((3,), sum(lengths[0]), sum(lengths[1]), 5, 6, dtype)
    pairs = sum(m * n for m, n in zip(*lengths, strict=True))
    agree(q, k[:1], v, causal=causal, lengths=lengths)
    if len(lengths[0]) > 1:
        agree(q, k, v, np.random.default_rng(0).random((1, pairs)) < 0.7, None, causal=causal, lengths=lengths)
        agree(q, k, v, None, numbers((3, pairs), dtype), causal=causal, lengths=lengths)


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2.0**-100, 2.0**10, 2.0**50])
def test_tiny_and_huge_numbers(size, dtype):
    q, k, v = operands((2,), 66, 70, 4, 5, dtype)
    whole = np.round(q * 4) / 4, np.round(k * 4) / 4  # so that products are exact, and the largest one is the same
    agree(dtype(size) * whole[0], whole[1], v, tolerance=100, scale=0.25)


@needs_compiled
@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_and_nan_are_those_of_the_reference(dtype):
    for value in (np.inf, -np.inf, np.nan):
        for which in range(3):
            given = operands((2,), 66, 70, 4, 5, dtype)
            given[which][1, 2, 3] = value
            out, expected = (run(of, *given)[0] for of in (chosen, reference))
            np.testing.assert_array_equal(np.isnan(out), np.isnan(expected))
            assert np.isfinite(out[0]).all()


@needs_compiled
def test_only_requested_results_are_computed_and_all_others_stay():
    q, k, v = operands((2,), 66, 70, 4, 5, np.float32)
    look = (ends([66]), ends([70]), 0.3, False)
    out, sums = np.empty((2, 66, 5), np.float32), np.empty((2, 66), np.float32)
    chosen.attend(q, k, v, None, None, *look, out, sums)
    whole = run(chosen, q, k, v)
    for output_mask in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1)):
        found = [np.empty_like(x) if w else None for x, w in zip((q, k, v), output_mask, strict=True)]
        chosen.attend_grad(
            numbers(out.shape, np.float32, 7), 0.5 * sums, out, sums, q, k, v, None, None, *look, *found, None
        )
        for got, expected in zip(found, whole[2:5], strict=True):
            assert got is None or np.array_equal(got, expected)


@needs_compiled
@pytest.mark.parametrize("sizes", [((4, 4), 100, 100, 16, 16), ((), 2000, 1000, 16, 16), ((3,), 700, 700, 8, 8)])
def test_digits_do_not_depend_on_threads(sizes):
    before, given = rg.get_num_threads(), operands(*sizes, np.float32)
    try:
        rg.set_num_threads(3)
        several = run(chosen, *given, causal=True)
        rg.set_num_threads(1)
        one = run(chosen, *given, causal=True)
    finally:
        rg.set_num_threads(before)
    assert all(np.array_equal(a, b) for a, b in zip(several, one, strict=True))


@needs_compiled
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({0: np.zeros((2, 5, 4), int)}, "float32 or float64"),
        ({1: np.zeros((2, 7, 4), np.float32)}, "another type"),
        ({1: np.zeros((3, 7, 4))}, "sizes do not fit"),
        ({1: np.zeros((2, 7, 5))}, "sizes do not fit"),
        ({2: np.zeros((2, 6, 3))}, "sizes do not fit"),
        ({2: [1.0]}, "arrays of rows"),
        ({3: np.zeros((2, 5, 6), bool)}, "sizes do not fit"),
        ({4: np.zeros((2, 5, 7), bool)}, "another type"),
        ({5: np.array([0, 6])}, "offsets are not those of the rows"),
        ({5: np.array([0, 3, 2, 5])}, "must not decrease"),
        ({5: np.array([0.0, 5.0])}, "offsets are int64"),
        ({6: np.array([0, 2, 7])}, "as many components"),
        ({9: np.zeros((2, 5, 4))}, "sizes do not fit"),
        ({10: np.zeros((2, 5, 1))}, "number of dimensions"),
        ({9: np.broadcast_to(np.zeros(3), (2, 5, 3))}, "can be written to"),
    ],
)
def test_operands_that_do_not_fit_are_refused(change, why):
    q, k, v = operands((2,), 5, 7, 4, 3, np.float64)
    args = [q, k, v, None, None, ends([5]), ends([7]), 1.0, False, np.zeros((2, 5, 3)), np.zeros((2, 5))]
    for place, given in change.items():
        args[place] = given
    with pytest.raises(ValueError, match=why):
        chosen.attend(*args)


@pytest.mark.parametrize("causal", [False, True])
def test_memory_is_linear_in_the_length(causal):
    """NumPy's; scores of 8,192 queries and keys would be 256 MiB."""

    def peak(length):
        q, k, v = (rg.tensor(x, requires_grad=True) for x in operands((1,), length, length, 8, 8, np.float32))
        tracemalloc.start()
        rg.scaled_dot_product_attention(q, k, v, is_causal=causal).sum().backward()
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(64)  # imports what the operators need
    assert peak(8192) < (2 << 20 if kernels.compiled else 8 << 20)
    assert peak(8192) < 2.5 * peak(4096)
