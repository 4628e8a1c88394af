"""Matrix products of the kernel equal NumPy's, for any memory layout and number of threads."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.backend import numpy as backend
from retrograd.kernels import chosen

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

DTYPES = (np.float32, np.float64)
SIZES = [
    (1, 1, 1),
    (7, 5, 3),
    (64, 256, 32),
    (65, 257, 33),
    (130, 600, 70),
    (45, 300, 77),
    (9, 0, 4),
    (0, 3, 4),
    (3, 4, 0),
]


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def agree(a, b):
    expected = np.matmul(a.astype(np.float64), b.astype(np.float64))
    close = 1e-13 if a.dtype == np.float64 else 1e-5
    size = 1 + np.abs(expected).max(initial=0)
    np.testing.assert_allclose(chosen.multiply_matrices(a, b), expected, rtol=0, atol=close * size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [*SIZES, (70, 40, 1100), (80, 1100, 512)])
def test_they_are_those_of_numpy(sizes, dtype):
    m, k, n = sizes
    a, b = numbers((m, k), dtype), numbers((k, n), dtype, 1)
    agree(a, b)
    agree(np.asfortranarray(a), b)
    agree(a, np.asfortranarray(b))
    agree(a[::-1, ::-1], b[:, ::-1])
    agree(np.broadcast_to(a[:1], a.shape) if m else a, np.broadcast_to(b[:, :1], b.shape) if n else b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks_broadcast(dtype):
    agree(numbers((3, 1, 20, 33), dtype), numbers((2, 33, 17), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_result_is_written_to_out(dtype):
    a, b, place = numbers((20, 30), dtype), numbers((30, 40), dtype), np.zeros((20, 80), dtype)
    chosen.multiply_matrices(a, b, out=place[:, ::2])
    np.testing.assert_array_equal(place[:, ::2], chosen.multiply_matrices(a, b))
    assert not place[:, 1::2].any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "size"), [(20, 20), (16, 16), (64, 48), (8, 600)])
def test_the_result_may_go_where_an_operand_is(rows, size, dtype):
    a, b = numbers((2, rows, size), dtype), numbers((2, size, size), dtype)
    expected, squares = chosen.multiply_matrices(a, b), chosen.multiply_matrices(b, b)
    np.testing.assert_array_equal(chosen.multiply_matrices(a, b, out=a), expected)
    np.testing.assert_array_equal(chosen.multiply_matrices(b, b, out=b), squares)


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_and_nan_stay_in_their_rows_and_columns(dtype):
    a, b = numbers((20, 30), dtype), numbers((30, 40), dtype)
    a[3, 4], b[5, 6] = np.inf, np.nan
    out = chosen.multiply_matrices(a, b)
    assert np.isnan(out[:, 6]).all()
    assert np.isinf(np.delete(out[3], 6)).all()
    assert np.isfinite(np.delete(np.delete(out, 3, 0), 6, 1)).all()


@pytest.mark.parametrize("sizes", [(500, 600, 1100), (32, 784, 128), (8, 3000, 70), (96, 1100, 512)])
def test_digits_do_not_depend_on_threads(sizes):
    m, k, n = sizes
    before, given, found = rg.get_num_threads(), (numbers((m, k), np.float32), numbers((k, n), np.float32)), []
    try:
        for count in (1, 3, 16):
            rg.set_num_threads(count)
            found.append(chosen.multiply_matrices(*given))
    finally:
        rg.set_num_threads(before)
    assert all(np.array_equal(found[0], one) for one in found)


@pytest.mark.parametrize("wide", [0, 16, 32, 64])
def test_operators_take_it_where_vectors_are_wide_and_matrices_are_not_small(wide, monkeypatch):
    seen = []
    monkeypatch.setattr(kernels, "get_vector_bytes", lambda: wide)
    monkeypatch.setattr(kernels, "multiply_matrices", lambda a, b: seen.append(a.shape) or np.matmul(a, b))
    for rows, dtype in ((64, "f"), (64, "i"), (8, "f")):
        a, b = np.ones((rows, 64), dtype), np.ones((64, 32), dtype)
        np.testing.assert_array_equal(backend.matmul(a, b), np.full((rows, 32), 64))
        backend.linear(a, b.T.copy())
        backend.rows_dot(a, np.ones((rows, 32), dtype))
    assert seen == ([(64, 64)] * 3 if wide >= 32 else [])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool, np.complex64])
def test_products_over_a_single_number_are_those_of_numpy(dtype):
    a, b = (np.arange(12) % 3).astype(dtype).reshape(2, 6, 1), (np.arange(5) % 2).astype(dtype).reshape(1, 5)
    np.testing.assert_array_equal(backend.product(a, b), np.matmul(a, b))
    assert backend.product(a, b).dtype == dtype
    with pytest.raises(ValueError, match="matmul"):
        backend.product(a, np.ones((3, 5), dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "k", "n"), [(32, 784, 128), (33, 300, 257), (40, 513, 700), (16, 90, 200)])
def test_exchanged_operands_have_the_same_bits(m, k, n, dtype):
    """Few rows times many transposed ones are computed as the transpose, which is left out if the rows are copied."""
    r = np.random.default_rng(0)
    a, b = r.standard_normal((m, k)).astype(dtype), r.standard_normal((n, k)).astype(dtype)
    expected = kernels.multiply_matrices(a, np.ascontiguousarray(b.T))
    assert kernels.multiply_matrices(a, b.T).tobytes() == expected.tobytes()
    out = np.empty((n, m), dtype)
    kernels.multiply_matrices(a, b.T, out=out.T)
    assert out.T.tobytes() == expected.tobytes()
    assert (
        kernels.multiply_matrices(a[::-1, ::2], b.T[::2]).tobytes()
        == kernels.multiply_matrices(a[::-1, ::2].copy(), np.ascontiguousarray(b.T[::2])).tobytes()
    )
