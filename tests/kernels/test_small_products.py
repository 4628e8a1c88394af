"""Products of small matrices have the bits of NumPy's; everything else is left to the wrapped function."""

import platform

import numpy as np
import pytest

from retrograd import kernels

from .layouts import LAYOUTS, off_by_a_byte, plain, swapped

REPORTS_MORE = platform.machine() in ("aarch64", "arm64")  # NumPy's products (conftest.py), which are then left to it
pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

CALLS = 300
SIZES = [1, 2, 3, 5, 8, 17, 32]
UNALIGNED = (off_by_a_byte, swapped)  # NumPy copies these operands


class Recorder:
    """A function of arrays that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args):
        self.calls += 1
        return self.function(*args)


def numpy_matmul(a, b):
    return np.matmul(a, b, order="C")


def numpy_linear(x, weight, bias=None):
    out = np.matmul(x.reshape(-1, x.shape[-1]), weight.T, order="C")
    if bias is not None:
        out += bias
    return out.reshape(*x.shape[:-1], len(weight))


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.flags.c_contiguous and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_two_matrices_have_numpys_bits(dtype):
    r = np.random.default_rng(0)
    for i in range(CALLS):
        m, k, n = r.choice(SIZES, 3)
        layouts = r.choice(np.array(LAYOUTS, object), 2)
        a, b = (
            layout(r.standard_normal(shape).astype(dtype))
            for layout, shape in zip(layouts, [(m, k), (k, n)], strict=True)
        )
        wrapped = Recorder(numpy_matmul)
        assert same_bits(kernels.small_matmul(wrapped)(a, b), numpy_matmul(a, b)), (i, m, k, n, layouts)
        unaligned = any(layout in UNALIGNED for layout in layouts)
        assert wrapped.calls == (k == 1 or unaligned) or REPORTS_MORE, (i, m, k, n, layouts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_affine_maps_have_the_bits_of_a_product_and_a_sum(dtype):
    r = np.random.default_rng(1)
    for i in range(CALLS):
        k, n = r.choice(SIZES, 2)
        rows = tuple(r.choice([1, 2, 5], r.integers(4)))
        layouts = r.choice(np.array(LAYOUTS, object), 3)
        if len(rows) != 1:
            layouts[0] = plain  # the rows of other layouts may not be those of a matrix
        operands = [
            layout(r.standard_normal(shape).astype(dtype))
            for layout, shape in zip(layouts, [(*rows, k), (n, k), n], strict=True)
        ]
        operands = operands[: 2 + i % 2]
        wrapped = Recorder(numpy_linear)
        assert same_bits(kernels.small_linear(wrapped)(*operands), numpy_linear(*operands)), (i, rows, k, n, layouts)
        unaligned = any(layout in UNALIGNED for layout in layouts[: len(operands)])
        assert wrapped.calls == (k == 1 or unaligned) or REPORTS_MORE, (i, rows, k, n, layouts)


def test_none_is_no_bias():
    x = np.ones((2, 3))
    wrapped = Recorder(numpy_linear)
    assert (kernels.small_linear(wrapped)(x, x, None) == 3).all()
    assert not wrapped.calls


@pytest.mark.parametrize(
    "args",
    [
        (np.ones((64, 64)), np.ones((64, 64))),
        (np.ones((2, 2), np.float32), np.ones((2, 2))),
        (np.ones((2, 2), int), np.ones((2, 2), int)),
        (np.ones((2, 2, 2)), np.ones((2, 2))),
        (np.ones((2, 2)), [[1.0, 1.0], [1.0, 1.0]]),
        (np.ones((2, 0)), np.ones((0, 2))),
        (np.ones((0, 2)), np.ones((2, 2))),
        (np.ones((2, 2)).view(np.matrix), np.ones((2, 2))),
    ],
    ids=["large", "dtypes", "integers", "stack", "list", "no columns", "no rows", "subclass"],
)
def test_other_operands_are_left_to_the_wrapped_function(args):
    wrapped = Recorder(np.matmul)
    assert np.array_equal(kernels.small_matmul(wrapped)(*args), np.matmul(*args))
    assert wrapped.calls == 1


def test_shapes_that_do_not_fit_are_left_to_the_wrapped_function():
    wrapped = Recorder(lambda *args: "refused")
    a = np.ones((2, 3))
    assert kernels.small_matmul(wrapped)(a, a) == "refused"
    assert kernels.small_linear(wrapped)(a, np.ones((2, 2))) == "refused"
    assert kernels.small_linear(wrapped)(a, a, np.ones(3)) == "refused"
    assert kernels.small_linear(wrapped)(a, a, np.ones((1, 2))) == "refused"
    assert kernels.small_linear(wrapped)(np.ones(()), a) == "refused"
    assert kernels.small_linear(wrapped)(a) == "refused"


def test_what_numpy_warns_about_is_left_to_it():
    large = np.full((2, 2), 1e38, np.float32)
    infinite = np.array([[np.inf, 0.0], [1.0, 1.0]], np.float32)
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert np.isinf(kernels.small_matmul(numpy_matmul)(large, large * 10)).all()
    with pytest.warns(RuntimeWarning, match="invalid value"):
        kernels.small_matmul(numpy_matmul)(infinite, infinite[::-1])
    with pytest.warns(RuntimeWarning, match="overflow"):
        kernels.small_linear(numpy_linear)(np.eye(2, dtype=np.float32), large * 3, large[0] * 3)


def test_nan_is_no_reason_to_warn():
    x = np.full((3, 3), np.nan)
    wrapped = Recorder(numpy_matmul)
    assert np.isnan(kernels.small_matmul(wrapped)(x, x)).all()
    assert not wrapped.calls
