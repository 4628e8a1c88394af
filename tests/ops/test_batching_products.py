"""Batching rules of products, linear algebra, convolutions, pooling and Fourier transforms.

Samples and laws try each rule on batches of three. These tests add derivatives through rules, nested rules, empty
batches, sizes of 0, and check that one call handles the whole batch.
"""

from itertools import product

import numpy as np
import pytest

import retrograd as rg
import retrograd.nn.functional as F
from retrograd import fx
from retrograd.func import grad, jvp, vmap
from retrograd.pipelining import pipe_split
from retrograd.testing import assert_close
from retrograd.utils.operator_log import OperatorLog


@pytest.fixture
def normal(rng):
    return lambda *shape: rg.tensor(rng.normal(size=shape))


def example(args, dims, i):
    return [x if d is None else x[i] for x, d in zip(args, dims, strict=True)]


def assert_like_a_loop(f, dims, *args):
    """Assert that results on a batch, gradients, and derivatives along ones are those of each example."""
    n = next(x.shape[0] for x, d in zip(args, dims, strict=True) if d is not None)
    everything = tuple(range(len(args)))

    def along(*xs):
        return jvp(f, xs, tuple(rg.ones_like(x) for x in xs))[1]

    for g in (f, grad(weighted(f), everything), along):
        out = vmap(g, dims)(*args)
        for i in range(n):
            alone = g(*example(args, dims, i))
            pairs = zip(out, alone, strict=True) if isinstance(alone, tuple) else [(out, alone)]
            for together, one in pairs:
                assert_close(together[i], one, rtol=1e-8, atol=1e-8)


def weighted(f):
    """Return a scalar function in which every element of f's result has another weight."""

    def scalar(*args):
        out = f(*args)
        weights = 1 + rg.arange(out.numel(), dtype=out.dtype).reshape(out.shape)
        return (out * out * weights).sum()

    return scalar


def choices(shapes, normal, n=3):
    """Yield every choice of batched inputs, as in_dims and arguments."""
    for chosen in product([0, 1], repeat=len(shapes)):
        if any(chosen):
            args = [normal(*(n,) * lies, *shape) for lies, shape in zip(chosen, shapes, strict=True)]
            yield tuple(0 if lies else None for lies in chosen), args


def operators_of(f, *args):
    with OperatorLog() as log:
        f(*args)
    return [entry for entry, _ in log.entries]


# ------------------------------------------------------------------------------------------------------- products


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 0), (0, 2)),
        ((0, 4), (4, 2)),
        ((0,), (0,)),
        ((3, 0), (0,)),
        ((4,), (5, 2, 4, 3)),
        ((5, 2, 3, 4), (4,)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((3, 4), (4, 20)),
        ((3, 4), (2, 2, 4, 20)),
        ((3, 4), (2, 4, 1)),
    ],
)
def test_matmul_of_a_batch_takes_every_shape(a, b, n, normal):
    alone = np.matmul(np.zeros(a), np.zeros(b)).shape
    for dims, args in choices((a, b), normal, n):
        out = vmap(rg.matmul, dims)(*args)
        assert out.shape == (n, *alone)
        for i in range(n):
            x, y = example(args, dims, i)
            assert_close(out[i], x.numpy() @ y.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("rows", [(0,), (3,), (2, 0), ()])
def test_products_of_all_rows_take_every_shape(rows, n, normal):
    for dims, args in choices(((*rows, 4), (*rows, 2)), normal, n):
        out = vmap(rg.rows_dot, dims)(*args)
        assert out.shape == (n, 4, 2)
        for i in range(n):
            x, y = (a.numpy() for a in example(args, dims, i))
            assert_close(out[i], x.reshape(-1, 4).T @ y.reshape(-1, 2), rtol=1e-9, atol=1e-12)
    for dims, args in choices(((*rows, 4), (2, 4), (2,)), normal, n):
        assert vmap(F.linear, dims)(*args).shape == (n, *rows, 2)


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (rg.matmul, ((2, 3), (3, 2))),
        (rg.matmul, ((2, 3), (3, 17))),
        (rg.matmul, ((3,), (2, 3, 2))),
        (rg.matmul, ((2, 3, 2), (2,))),
        (F.linear, ((3, 4), (2, 4), (2,))),
        (rg.rows_dot, ((2, 3, 2), (2, 3, 4))),
        (lambda *xs: rg.einsum("ab,bc,c->a", xs), ((2, 3), (3, 2), (2,))),
        (rg.kron, ((2, 2), (3,))),
    ],
)
def test_derivatives_of_products_run_on_batches(f, shapes, normal):
    for dims, args in choices(shapes, normal, 2):
        assert_like_a_loop(f, dims, *args)


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda w, x: F.linear(x, w), (5, 2, 3), "linear(float64[5, 2, 3], float64[4, 3], None)"),
        (lambda w, x: x @ w.mT, (5, 2, 3), "matmul(float64[10, 3], float64[3, 4])"),
        (lambda w, x: w @ x, (5, 3), "matmul(float64[5, 3], float64[3, 4])"),
        (lambda w, x: w @ x, (5, 3, 2), "matmul(float64[10, 3], float64[3, 4])"),
        (lambda w, x: w @ x, (5, 3, 17), "matmul(float64[4, 3], float64[5, 3, 17])"),
    ],
)
def test_a_weight_that_all_examples_share_makes_one_product(f, x, expected, normal):
    seen = operators_of(vmap(f, (None, 0)), normal(4, 3), normal(*x))
    assert [o for o in seen if o.startswith(("linear", "matmul"))] == [expected]


def test_the_gradient_of_a_matrix_that_all_examples_share_is_one_product(normal):
    w, x = normal(4, 3), normal(5, 3, 17)

    def loss(w):
        return (vmap(rg.matmul, (None, 0))(w, x) ** 2).sum()

    seen = operators_of(grad(loss), w)
    assert [o for o in seen if o.startswith(("matmul", "rows_dot"))] == [
        "matmul(float64[4, 3], float64[5, 3, 17])",
        "rows_dot(float64[5, 17, 4], float64[5, 17, 3])",
    ]
    assert_close(grad(loss)(w), sum(grad(lambda w: ((w @ one) ** 2).sum())(w) for one in x))  # noqa: B023


def test_gradients_of_many_examples_with_one_weight_are_one_product(normal):
    def loss(w, x):
        return (F.linear(x, w) ** 2).sum()

    seen = operators_of(vmap(grad(loss), (None, 0)), normal(4, 3), normal(5, 2, 3))
    assert len([o for o in seen if o.startswith(("linear", "matmul", "rows_dot"))]) == 2  # one forward, one back


# ------------------------------------------------------------------------------------------------- linear algebra


def definite(x):
    return x @ x.mT + 3 * rg.eye(x.shape[-1], dtype=x.dtype)


def first(f, k=0):
    return lambda *args: f(*args)[k]


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (rg.linalg.slogdet, ((3, 3),)),
        (lambda x: rg.linalg.eigh(definite(x)).eigenvalues, ((2, 3, 3),)),
        (lambda x: rg.linalg.eigh(definite(x)).eigenvectors ** 2, ((3, 3),)),
        (lambda x: rg.linalg.eigvals(definite(x)).real.sort().values, ((3, 3),)),
        (rg.linalg.svdvals, ((2, 4),)),
        (lambda x: rg.linalg.svd(x, full_matrices=False).U ** 2, ((3, 2),)),
        (lambda x: rg.linalg.qr(x).R, ((3, 2),)),
        (lambda x: rg.linalg.qr(x).Q, ((2, 3),)),
        (lambda x: rg.linalg.cholesky(definite(x)), ((2, 3, 3),)),
        (lambda x: rg.linalg.lu(definite(x)).U, ((3, 3),)),
        (lambda x, b: rg.lu_solve(b, *rg.linalg.lu_factor(definite(x))), ((3, 3), (3, 2))),
        (lambda x, b: rg.linalg.solve(definite(x), b), ((3, 3), (3, 2))),
        (lambda x, b: rg.linalg.solve(definite(x), b), ((3, 3), (3,))),
        (lambda x, b: rg.linalg.solve(definite(x), b, left=False), ((2, 3, 3), (2, 4, 3))),
        (lambda x, b: rg.linalg.solve_triangular(definite(x), b, upper=True), ((3, 3), (3, 2))),
        (lambda x, b: rg.linalg.solve_triangular(definite(x), b, upper=False), ((2, 3, 3), (2, 3, 2))),
        (lambda x, b: rg.cholesky_solve(b, definite(x)), ((3, 3), (2, 3, 1))),
        (lambda x, b: rg.linalg.lstsq(x, b).solution, ((4, 2), (4, 3))),
        (lambda x, b: rg.linalg.lstsq(x, b, driver="gels").residuals, ((4, 2), (4, 3))),
        (rg.linalg.pinv, ((3, 2),)),
        (lambda x: rg.linalg.cond(definite(x)), ((3, 3),)),
    ],
)
def test_derivatives_of_linear_algebra_run_on_batches(f, shapes, normal):
    if f is rg.linalg.slogdet:
        f = first(f, 1)
    for dims, args in choices(shapes, normal, 2):
        assert_like_a_loop(f, dims, *args)


def test_many_right_sides_of_one_matrix_are_solved_at_once(normal):
    A, b = definite(normal(40, 40)), normal(5, 40, 2)
    for f, name in [
        (rg.linalg.solve, "solved("),
        (lambda A, b: rg.linalg.solve_triangular(A, b, upper=False), "triangular("),
    ]:
        out = vmap(f, (None, 0))(A, b)
        assert_close(out, rg.stack([f(A, x) for x in b]), rtol=1e-9, atol=1e-9)
        (call,) = [o for o in operators_of(vmap(f, (None, 0)), A, b) if o.startswith(name)]
        assert "float64[40, 10]" in call


def test_matrices_that_come_with_every_example_are_not_taken_for_one(normal):
    A, b = definite(normal(3, 3)), normal(4, 2, 3)
    out = vmap(lambda b: rg.linalg.solve(A, b))(b.mT)
    assert_close(out, np.linalg.solve(A.numpy(), b.numpy().swapaxes(1, 2)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (rg.linalg.lu_factor, "linalg.lu_factor: the matrix is singular: pivot 2 is 0"),
        (lambda x: rg.linalg.solve_ex(x, x, check_errors=True), "linalg.solve_ex: .* pivot 2 is 0"),
        (lambda x: rg.linalg.cholesky_ex(x, check_errors=True), "linalg.cholesky_ex: .* order 2"),
        (rg.linalg.inv, "linalg.inv: .*the matrix is singular"),
    ],
)
def test_one_singular_matrix_among_the_examples_is_an_error(f, message):
    good = rg.eye(2).expand(3, 2, 2)
    vmap(f)(good)
    with pytest.raises(RuntimeError, match=message):
        vmap(f)(rg.cat([good, rg.tensor([[[1.0, 0.0], [0.0, 0.0]]])]))


def test_error_codes_are_returned_per_example():
    info = vmap(lambda x: rg.linalg.cholesky_ex(x).info)(rg.stack([rg.eye(2), -rg.eye(2)]))
    assert info.tolist() == [0, 1]


def test_matrix_equations_run_one_example_after_the_other(normal):
    pytest.importorskip("scipy")
    sqrtm, sylvester = (rg.core.registry[name] for name in ("sqrtm", "solve_sylvester"))
    assert_like_a_loop(lambda x: sqrtm(definite(x)), (0,), normal(3, 2, 2))
    assert_like_a_loop(lambda x, q: sylvester(definite(x), definite(x), q), (0, None), normal(3, 2, 2), normal(2, 2))


# --------------------------------------------------------------------------------------------------- convolutions

CONVOLUTIONS = {
    "plain": (F.conv1d, ((2, 2, 5), (3, 2, 2), (3,)), {"padding": 1, "stride": 2}),
    "groups": (F.conv1d, ((2, 4, 5), (6, 2, 2), (6,)), {"groups": 2, "dilation": 2}),
    "by channel": (F.conv2d, ((1, 3, 4, 3), (3, 1, 2, 2), (3,)), {"groups": 3}),
    "without n": (F.conv2d, ((2, 4, 3), (4, 1, 2, 2), (4,)), {"groups": 2, "padding": "same"}),
    "transposed": (F.conv_transpose1d, ((2, 2, 4), (2, 3, 2), (3,)), {"stride": 2}),
    "transposed groups": (F.conv_transpose1d, ((2, 4, 4), (4, 3, 2), (6,)), {"groups": 2, "padding": 1}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions_and_their_derivatives_run_on_batches(case, normal):
    f, shapes, params = CONVOLUTIONS[case]
    for dims, args in choices(shapes, normal, 3):
        assert_like_a_loop(lambda *xs: f(*xs, **params), dims, *args)
    for dims, args in choices(shapes[:2], normal, 1):
        assert_like_a_loop(lambda *xs: f(*xs, **params), dims, *args)


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_a_batch_of_no_images_has_a_shape(case, normal):
    f, shapes, params = CONVOLUTIONS[case]
    alone = f(*[normal(*s) for s in shapes], **params).shape
    for dims, args in choices(shapes, normal, 0):
        assert vmap(lambda *xs: f(*xs, **params), dims)(*args).shape == (0, *alone)


def test_one_weight_for_many_images_makes_one_convolution_of_as_many_more(normal):
    x, weight, bias = normal(5, 2, 3, 8), normal(4, 3, 2), normal(4)
    seen = operators_of(vmap(F.conv1d, (0, None, None)), x, weight, bias)
    (call,) = [o for o in seen if o.startswith("convolution")]
    assert call == "convolution(float64[10, 3, 8], float64[4, 3, 2], float64[4])"


def test_gradients_of_many_images_are_one_convolution_of_as_many_groups(normal):
    def loss(w, x):
        return (F.conv1d(x, w) ** 2).sum()

    seen = operators_of(vmap(grad(loss), (None, 0)), normal(4, 3, 2), normal(5, 1, 3, 8))
    assert [o for o in seen if o.startswith("convolution")] == [
        "convolution(float64[5, 3, 8], float64[4, 3, 2])",
        "convolution_weight(float64[1, 15, 8], float64[1, 20, 7])",
    ]


def test_weights_of_many_models_see_the_same_images_in_one_convolution(normal):
    seen = operators_of(vmap(F.conv1d, (None, 0)), normal(2, 3, 8), normal(5, 4, 3, 2))
    assert "convolution(float64[2, 3, 8], float64[20, 3, 2])" in seen


def test_gradients_per_example_of_every_model_in_an_ensemble(normal):
    x, weight = normal(3, 2, 5), normal(2, 4, 1, 3)

    def loss(w, x):
        return (F.conv1d(x, w, groups=2) ** 3).sum()

    both = vmap(vmap(grad(loss), (None, 0)), (0, None))(weight, x)
    for i, j in product(range(2), range(3)):
        assert_close(both[i, j], grad(loss)(weight[i], x[j]), rtol=1e-9, atol=1e-9)


def test_columns_of_windows_run_on_batches(normal):
    assert_like_a_loop(lambda x: F.unfold(x, 2, padding=1), (0,), normal(3, 2, 2, 3, 2))
    assert_like_a_loop(lambda x: F.fold(x, (3, 2), 2), (0,), normal(3, 2, 4, 2))
    assert vmap(lambda x: F.unfold(x, 2))(normal(0, 2, 2, 3, 2)).shape == (0, 2, 8, 2)


# -------------------------------------------------------------------------------------- windows, margins, spectra


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.max_pool1d(x, 2, padding=1),
        lambda x: F.avg_pool1d(x, 3, 2, ceil_mode=True),
        lambda x: F.adaptive_max_pool1d(x, 3),
        lambda x: F.adaptive_avg_pool1d(x, 3),
        lambda x: F.lp_pool1d(x.abs(), 2, 2),
        lambda x: F.max_pool1d(x, 2, return_indices=True)[0],
        lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2),
        lambda x: F.pad(x, (1, -1)),
        lambda x: F.pad(x, (1, 2), "reflect"),
        lambda x: F.pad(x, (1, 0, 2, -1), value=2.0),
        lambda x: rg.fft.rfft(x, dim=0).abs(),
        lambda x: rg.fft.irfft(rg.fft.rfft(x, 8) ** 2, 7),
        lambda x: rg.fft.fft2(x, dim=(-1, 0)).real,
        lambda x: rg.fft.fftn(x, s=(3, -1), norm="ortho").imag,
        lambda x: rg.cdist(x, x + 1),
        lambda x: rg.pdist(x, 3.0),
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
        lambda x: rg.linalg.norm(x, "nuc"),
        lambda x: rg.softmax(x, 0) * rg.log_softmax(x, -1),
    ],
)
def test_derivatives_along_windows_and_dimensions_run_on_batches(f, normal):
    x = normal(3, 2, 6)
    assert_like_a_loop(f, (0,), x)
    nested = vmap(vmap(grad(weighted(f))))(rg.stack([x, x.flip(0)]))
    for i in range(3):
        assert_close(nested[1, 2 - i], nested[0, i], rtol=1e-9, atol=1e-9)
    assert vmap(f)(x[:0]).shape == (0, *f(x[0]).shape)


def test_numbers_without_dimensions_are_examples_too(normal):
    x = normal(4)
    assert_close(vmap(lambda x: F.pad(x, ()))(x), x)
    assert_close(vmap(lambda x: rg.fft.fftn(x, dim=()).real)(x), x)
    assert vmap(lambda x: rg.diag(x.reshape(1)))(x).shape == (4, 1, 1)


def test_no_dimensions_to_roll_along_are_all(normal):
    x = normal(4, 2, 3)
    assert_close(vmap(lambda v: rg.roll(v, 1, ()))(x), rg.stack([rg.roll(v, 1) for v in x]))


def test_vectors_without_elements_have_a_say_in_the_dtype(normal):
    nothing = rg.zeros(4, 0, dtype="complex128")
    for dims in ((0, 0), (0, None), (None, 0)):
        args = [x if d == 0 else x[0] for x, d in zip((nothing, normal(4, 2, 3)), dims, strict=True)]
        out = vmap(lambda e, v: rg.cat([e, v]), dims)(*args)
        assert (out.shape, out.dtype) == ((4, 2, 3), rg.complex128)


# ------------------------------------------------------------------------------------------------ checks and marks


def traced(f):
    return fx.trace(f, rg.ones(2, dtype="float64"))


def test_a_guard_holds_if_it_holds_for_every_example():
    def branching(x):
        return x * float(x[0]) if (x > 0).all() else -x

    graph = traced(branching)
    ones = rg.ones(3, 2, dtype="float64")
    assert_close(vmap(graph)(ones), ones)
    assert vmap(graph)(ones[:0]).shape == (0, 2)
    with pytest.raises(RuntimeError, match="read the value"):
        vmap(graph)(rg.cat([ones, -ones]))


def test_a_guard_of_a_number_is_as_precise_as_what_it_guards():
    graph = fx.trace(lambda x: x * float(x[0]), rg.full((2,), 0.1, dtype="float64"))
    assert_close(vmap(graph)(rg.full((3, 2), 0.1, dtype="float64")), np.full((3, 2), 0.1 * 0.1))


def test_a_stage_boundary_is_one_for_all_examples():
    def f(x):
        pipe_split()
        return x * 2

    assert vmap(f)(rg.ones(2, 3)).tolist() == [[2.0] * 3] * 2
    assert fx.trace(vmap(f), rg.ones(2, 3)).code.count("pipe_split()") == 1


def test_a_check_of_all_examples_stays_in_a_trace():
    graph = fx.trace(lambda x: vmap(rg.linalg.lu_factor)(x)[1], rg.eye(2).expand(3, 2, 2).clone())
    with pytest.raises(RuntimeError, match="pivot 1 is 0"):
        graph(rg.zeros(3, 2, 2))
