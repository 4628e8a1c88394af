"""Sparse Jacobians and Hessians: compared with dense ones and known results, and refused arguments."""

import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg
from retrograd.core import registry
from retrograd.func import (
    Sparsity,
    grad,
    hessian,
    hessian_sparsity,
    jacfwd,
    jacobian_sparsity,
    jacrev,
    jvp,
    sparse_hessian,
    sparse_jacobian,
    vmap,
)
from retrograd.func.coloring import num_colors, partial_coloring, star_coloring
from retrograd.testing import samples_of
from retrograd.testing.laws import law_pattern

from ..functions import underived

pytestmark = pytest.mark.once("levels/sparsity_level composes operators, and is never compiled")

N = 12
X = rg.tensor(np.random.default_rng(0).uniform(0.5, 1.5, N))


def dense(jacobian, out_size, in_size):
    return jacobian.value.reshape(out_size, in_size)


def banded(n, *offsets):
    """Return ones on these diagonals."""
    return sum(np.eye(n, k=k, dtype=int) for k in offsets)


def pattern_of(f, x=X):
    return jacobian_sparsity(f)(x).pattern.toarray().astype(int)


def heat(u):
    """Return a tridiagonal residual."""
    padded = rg.nn.functional.pad(u, (1, 1))
    return padded[2:] - 2 * u + padded[:-2] - rg.exp(u)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def laplace(u):
    """Return the five-point stencil on a grid, zeros around."""
    p = rg.nn.functional.pad(u, (1, 1, 1, 1))
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u + u**3


# ------------------------------------------------------------------------------------------------------ Jacobians

PROGRAMS = {
    "slices": lambda x: x[1:] * x[:-1],
    "heat": heat,
    "roll": lambda x: rg.roll(x, 1) * x - rg.roll(x, -2),
    "gather": lambda x: x[rg.tensor([3, 3, 0])] ** 2,
    "scatter": lambda x: rg.zeros(4, dtype=rg.float64).index_add(0, rg.tensor([0, 1, 2, 3] * 3), x * x),
    "matmul": lambda x: x.reshape(3, 4) @ x.reshape(4, 3),
    "rows": lambda x: rg.softmax(x.reshape(3, 4), -1),
    "sums": lambda x: (x * x).reshape(3, 4).sum(1),
    "complex inside": lambda x: rg.fft.fft(x.reshape(3, 4)).abs(),
    "one output": lambda x: (x**2).sum(),
    "constant": lambda x: rg.ones(3, dtype=rg.float64),
    "in place": lambda x: _written(x),
    "solve": lambda x: rg.linalg.solve(x.reshape(3, 2, 2) + 3 * rg.eye(2, dtype=rg.float64), rg.ones(3, 2, 1).double()),
    "own transform": lambda x: vmap(grad(lambda y: y.sin() ** 2))(x),
    "own loop": lambda x: rg.stack([x[i] * x[i + 1] for i in range(5)]),
}


def _written(x):
    y = x * 1
    y[1:-1] = x[2:] * x[:-2]
    y[rg.tensor([0])] = x[5] ** 2
    y.mul_(x)
    return y


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_the_dense_jacobian(name):
    f = PROGRAMS[name]
    J = sparse_jacobian(f)(X)
    assert isinstance(J, scipy.sparse.csr_array)
    assert J.dtype == np.float64
    np.testing.assert_allclose(J.toarray(), dense(jacrev(f)(X), f(X).numel(), N), rtol=1e-12, atol=1e-12)


def test_rows_and_columns_are_elements_in_row_major_order():
    x = X.reshape(3, 4)
    J = sparse_jacobian(laplace)(x)
    assert J.shape == (12, 12)
    np.testing.assert_allclose(J.toarray(), dense(jacfwd(laplace)(x), 12, 12))
    assert J.nnz == 12 + 2 * (3 * 3 + 2 * 4)  # itself, and the neighbours on both sides of each edge


def test_the_argument_may_be_another_one():
    J = sparse_jacobian(lambda a, x, *, k: a * x[1:] * k, argnums=1)(2.0, X, k=rg.tensor(3.0))
    np.testing.assert_allclose(J.toarray(), 6 * np.eye(N - 1, N, k=1))


@pytest.mark.parametrize("by", ["columns", "rows", "nothing"])
def test_the_dtype_is_that_of_the_output(by):
    f = {"columns": heat, "rows": lambda x: (x * x).sum(), "nothing": lambda x: rg.zeros(2)}[by]
    assert sparse_jacobian(f)(rg.ones(3)).dtype == np.float32
    assert sparse_jacobian(lambda x: f(x).double())(rg.ones(3)).dtype == np.float64


def test_a_function_of_the_users_may_depend_on_everything():
    class Halves(rg.autograd.Function):
        @staticmethod
        def forward(x):
            return x[:2] * 3, "word", x[2:] * 4

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, first, word, second):
            return rg.cat([first * 3, second * 4])

    J = sparse_jacobian(lambda x: Halves.apply(x)[2])(rg.ones(4))
    assert J.nnz == 8
    assert J.toarray().tolist() == [[0, 0, 4, 0], [0, 0, 0, 4]]


def test_an_argument_that_requires_grad_is_a_value_here():
    def f(x):
        recorded.append(x.requires_grad)
        return heat(x)

    recorded = []
    assert sparse_jacobian(f)(X.clone().requires_grad_()).nnz == 3 * N - 2
    assert recorded == [False, False]


def test_aux_is_given_back_outside_of_the_transform():
    J, (aux, word) = sparse_jacobian(lambda x: (x * x, (x + 1, "word")), has_aux=True)(X)
    assert aux.tolist() == (X + 1).tolist()
    assert aux.level is None
    assert word == "word"
    np.testing.assert_allclose(J.toarray(), np.diag(2 * X.value))


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0)])
def test_empty(rows, columns):
    J = sparse_jacobian(lambda x: rg.zeros(rows, dtype=x.dtype) + x.sum())(rg.zeros(columns))
    assert (J.shape, J.nnz, J.dtype) == ((rows, columns), 0, np.float32)


def test_a_chunk_of_colours_at_a_time_is_the_same():
    f = PROGRAMS["matmul"]
    whole, parts = (sparse_jacobian(f, chunk_size=size)(X) for size in (None, 2))
    assert (whole != parts).nnz == 0


def test_derivatives_that_do_not_batch_run_colour_by_colour():
    def jvp(ctx, t):
        return t * 2 if float(t.sum()) >= 0 else t + t

    double = underived("Double", jvp=jvp).apply
    J = sparse_jacobian(lambda x: double(x[1:]))(X)
    np.testing.assert_allclose(J.toarray(), 2 * np.eye(N - 1, N, k=1))


# ------------------------------------------------------------------------------------------------------- patterns


def lower_half_flipped(x):
    return rg.where(rg.arange(N) < 6, x, x.flip(0))


ANTIDIAGONAL = np.eye(N, dtype=int)[::-1]
TWO_DIAGONALS = np.eye(N - 1, N, dtype=int) + np.eye(N - 1, N, k=1, dtype=int)
HALF_FLIPPED = np.concatenate([np.eye(N, dtype=int)[:6], ANTIDIAGONAL[6:]])
WRITTEN = banded(N, -1, 0, 1)
WRITTEN[[0, -1]] = np.eye(N, dtype=int)[[0, -1]]  # what is written leaves out the ends,
WRITTEN[0, 5] = 1  # and the first is written by itself

STENCILS = {
    "slices": (lambda x: x[1:] * x[:-1], TWO_DIAGONALS),
    "padding": (heat, banded(N, -1, 0, 1)),
    "roll": (lambda x: rg.roll(x, 2) * x, banded(N, 0, -2, N - 2)),
    "flip": (lambda x: x.flip(0), ANTIDIAGONAL),
    "convolution": (lambda x: _convolved(x, 5), banded(N, -2, -1, 0, 1, 2)),
    "dilated": (lambda x: _convolved(x, 3, dilation=2), banded(N, -2, 0, 2)),
    "circular padding": (lambda x: rg.nn.functional.pad(x[None], (1, 1), "circular")[0, 2:], banded(N, 1, 1 - N)),
    "windows": (lambda x: x.unfold(0, 3, 1).prod(-1), sum(np.eye(N - 2, N, k=k, dtype=int) for k in range(3))),
    "cat": (lambda x: rg.cat([x[6:], x[:6]]), banded(N, 6, -6)),
    "constant mask": (lower_half_flipped, HALF_FLIPPED),
    "diff": (rg.diff, TWO_DIAGONALS),
    "in place": (_written, WRITTEN),
    "blocks": (lambda x: x.reshape(3, 4).cumsum(1), np.kron(np.eye(3, dtype=int), np.ones((4, 4), int))),
    "detached": (lambda x: x.detach() * rg.roll(x, 1), banded(N, -1, N - 1)),
    "rounded": (lambda x: rg.roll(x.to(rg.int64), 1).double() * x, np.eye(N, dtype=int)),
}


def _convolved(x, size, dilation=1):
    weight = rg.ones(1, 1, size, dtype=rg.float64)
    return rg.conv1d(x[None, None], weight, padding="same", dilation=dilation)[0, 0]


@pytest.mark.parametrize("name", STENCILS)
def test_patterns_of_stencils_are_exact(name):
    f, expected = STENCILS[name]
    assert pattern_of(f).tolist() == expected.tolist()


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_see_windows_of_their_group_only(groups):
    weight = rg.tensor(np.random.default_rng(1).uniform(1, 2, (4, 4 // groups, 2, 2)))

    def f(x):
        return rg.conv2d(x, weight, stride=2, padding=1, groups=groups)

    x = rg.ones(2, 4, 3, 3, dtype=rg.float64)
    expected = dense(jacrev(f)(x), f(x).numel(), x.numel()) != 0
    assert (pattern_of(f, x) == expected).all()
    back = pattern_of(
        lambda g: rg.conv_transpose2d(g, weight.movedim(0, 1) if groups == 1 else weight, groups=groups), x
    )
    assert back.sum() < back.size


def test_masks_that_depend_on_the_argument_may_choose_otherwise_elsewhere():
    def f(x):
        return rg.where(x > 0, x, 2 * x.flip(0))

    sparsity = jacobian_sparsity(f)(rg.ones(4))
    J = sparse_jacobian(f, sparsity=sparsity)(-rg.ones(4))
    assert J.toarray().tolist() == (2 * np.eye(4)[::-1]).tolist()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[rg.argsort(x)],
        lambda x: rg.zeros(3).scatter_add(0, rg.argsort(x), x),
        lambda x: rg.ones(3).scatter_reduce(0, rg.argsort(x), x, "prod"),
    ],
)
def test_positions_that_depend_on_the_argument_may_be_any(f):
    sparsity = jacobian_sparsity(f)(rg.tensor([1.0, 2.0, 3.0]))
    assert sparsity.pattern.nnz == 9
    x = rg.tensor([3.0, 2.0, 1.0])
    assert sparse_jacobian(f, sparsity=sparsity)(x).toarray().tolist() == jacrev(f)(x).tolist()


def test_numbers_that_the_dtype_can_not_hold_are_distinguished():
    def f(x):
        y = x.clone()
        y[1:] = x[:-1]
        return y

    pattern = jacobian_sparsity(f)(rg.zeros(5000, dtype=rg.float16)).pattern
    assert pattern.indices.tolist() == [0, *range(4999)]


def test_writes_to_one_part_of_complex_numbers_are_recorded():
    def imaginary(x):
        y = rg.zeros(N, dtype=rg.complex128)
        y.imag.copy_(x)
        return y.imag

    def both(x):
        y = rg.complex(x.roll(1), x)
        y.imag[1:] = x[:-1] ** 2
        return rg.view_as_real(y)

    assert (pattern_of(imaginary) == np.eye(N)).all()
    dense_both = dense(jacrev(both)(X), 2 * N, N)
    assert (pattern_of(both) >= (dense_both != 0)).all()
    np.testing.assert_allclose(sparse_jacobian(both)(X).toarray(), dense_both)


def test_a_view_follows_what_is_written_to_its_base():
    def f(x):
        y = x.clone()
        window = y[1:]
        y.mul_(rg.roll(x, 2))
        return window

    assert pattern_of(f).tolist() == banded(N, 0, -2, N - 2)[1:].tolist()


def test_random_masks_are_drawn_again_without_harm():
    def f(x):
        y = rg.where(rg.rand(50) < 0.5, x, x.flip(0))
        drawn.append(y.detach())
        return y

    drawn = []
    x = rg.arange(50).float()
    J = sparse_jacobian(f)(x)
    assert (J @ x.value).tolist() == rg.func.debug_unwrap(drawn[-1], recurse=True).tolist()


def test_a_loop_over_the_elements_costs_as_much_for_each():
    def calls(n):
        counted = 0

        def count(frame, event, arg):
            nonlocal counted
            counted += event == "call"

        sys.setprofile(count)
        try:
            jacobian_sparsity(lambda x: rg.stack([x[i] * x[i - 1] for i in range(n)]))(rg.ones(n))
        finally:
            sys.setprofile(None)
        return counted

    calls(2)  # imports
    assert calls(120) < 4 * calls(40)


def test_the_pattern_is_that_of_the_branch():
    def f(x):
        return x * 2 if x.sum() > 0 else rg.roll(x, 1)

    assert pattern_of(f).tolist() == np.eye(N).tolist()
    assert pattern_of(f, -X).tolist() == banded(N, -1, N - 1).tolist()


# ------------------------------------------------------------------------------------------------------- Hessians


def penalised(x):
    """Return a function in which one element interacts with all others."""
    return (x[0] * x**2).sum() + (x[1:] * x[:-1]).sin().sum()


FUNCTIONS = {
    "rosenbrock": rosenbrock,
    "penalised": penalised,
    "linear": lambda x: (3 * x).sum(),
    "dense": lambda x: (x**2).sum() ** 2,
    "log-sum-exp": lambda x: rg.logsumexp(x.reshape(3, 4), 1).sum(),
    "energy": lambda x: (laplace(x.reshape(3, 4)) * x.reshape(3, 4)).sum(),
    "convolved": lambda x: (_convolved(x, 3) ** 2).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_the_dense_hessian(name):
    f = FUNCTIONS[name]
    H = sparse_hessian(f)(X)
    np.testing.assert_allclose(H.toarray(), dense(hessian(f)(X), N, N), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "count", "entries"),
    [
        ("rosenbrock", 3, 3 * N - 2),
        ("penalised", None, N + 2 * (N - 1) + 2 * (N - 2)),
        ("linear", 0, 0),
        ("dense", N, N * N),
    ],
)
def test_hessians_have_the_entries_of_what_meets_in_products(name, count, entries):
    sparsity = hessian_sparsity(FUNCTIONS[name])(X)
    assert sparsity.pattern.nnz == entries
    assert count is None or sparsity.count == count


def test_one_full_row_and_column_need_no_colour_for_each_element():
    n = 200
    assert hessian_sparsity(penalised)(rg.ones(n)).count <= 5
    assert jacobian_sparsity(grad(penalised))(rg.ones(n)).count == n


def test_hessians_with_aux():
    H, aux = sparse_hessian(lambda x: ((x**3).sum(), x * 2), has_aux=True)(X)
    assert aux.tolist() == (2 * X).tolist()
    np.testing.assert_allclose(H.toarray(), np.diag(6 * X.value))


# ------------------------------------------------------------------------------------------------------- colours

patterns = st.integers(1, 8).flatmap(
    lambda n: st.integers(1, 8).flatmap(
        lambda m: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=m, max_size=m)
    )
)


@given(patterns)
def test_columns_of_a_colour_share_no_row(pattern):
    P = np.array(pattern)
    lines = [np.flatnonzero(column).tolist() for column in P.T]
    colors = partial_coloring(lines, len(P), range(len(lines)))
    for row in P:
        found = [colors[j] for j in np.flatnonzero(row)]
        assert len(set(found)) == len(found)
        assert -1 not in found


@given(patterns, st.randoms())
def test_star_colours_show_every_entry_of_a_symmetric_matrix(pattern, random):
    n = min(len(pattern), len(pattern[0]))
    P = np.array(pattern)[:n, :n]
    P = P | P.T
    order = random.sample(range(n), n)
    colors = star_coloring([np.flatnonzero(row).tolist() for row in P], order)
    for i, j in np.argwhere(P):
        assert min(sum(colors[k] == colors[b] for k in np.flatnonzero(P[a])) for a, b in ((i, j), (j, i))) == 1


@given(patterns)
def test_a_matrix_comes_back_from_its_colours(pattern):
    values = np.where(pattern, np.arange(1.0, np.size(pattern) + 1).reshape(np.shape(pattern)), 0)
    A = rg.tensor(values)
    x = rg.ones(values.shape[1], dtype=rg.float64)
    J = sparse_jacobian(lambda x: A @ x, sparsity=scipy.sparse.csr_array(values))(x)
    np.testing.assert_array_equal(J.toarray(), values)


def test_rows_are_grouped_where_these_need_fewer_colours():
    def f(x):
        return rg.stack([x.sum(), (x * x).sum()])

    sparsity = jacobian_sparsity(f)(X)
    assert (sparsity.by, sparsity.count) == ("rows", 2)
    np.testing.assert_allclose(sparse_jacobian(f, sparsity=sparsity)(X).toarray(), [np.ones(N), 2 * X.value])


def test_columns_without_entries_have_no_colour():
    assert Sparsity(np.array([[0, 1, 0], [0, 1, 1]])).colors.tolist() == [-1, 0, 1]


def test_the_side_with_fewer_colours_wins_though_its_lines_are_fuller():
    pairs = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1]])
    sparsity = Sparsity(pairs)  # every two columns meet in a row
    assert (sparsity.by, sparsity.count) == ("rows", 3)


def test_banded_matrices_need_as_many_colours_as_diagonals():
    for width in (1, 3, 5, 7):
        P = scipy.sparse.diags_array(
            [np.ones(100)] * width, offsets=range(-(width // 2), width // 2 + 1), shape=(100, 100)
        )
        assert Sparsity(P).count == width


def test_no_columns_have_no_colours():
    assert num_colors([]) == 0


STEPS = {
    "shift": lambda x, k: rg.roll(x, k) + x,
    "pad": lambda x, k: rg.nn.functional.pad(x, (k, 0))[: x.shape[0]] * x,
    "flip": lambda x, k: x.flip(0),
    "slice": lambda x, k: rg.cat([x[k:], x[:k] ** 2]),
    "convolve": lambda x, k: _convolved(x, 2 * k + 1),
    "write": lambda x, k: _shifted_in_place(x, k),
    "gather": lambda x, k: x[rg.tensor([(i * k) % x.shape[0] for i in range(x.shape[0])])],
    "nonlinear": lambda x, k: rg.tanh(x) * k,
    "grid": lambda x, k: x.reshape(2, -1).movedim(0, 1).sin().reshape(-1),
    "choose": lambda x, k: rg.where(x > 1, x, rg.roll(x, k)),
    "sum": lambda x, k: x * x.reshape(2, -1).sum(k % 2, keepdim=True).expand(2, x.shape[0] // 2).reshape(-1),
}


def _shifted_in_place(x, k):
    y = x.clone()
    y[k:] = x[:-k] * x[k:]
    return y


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 3)), min_size=1, max_size=5))
def test_random_programs_have_their_dense_jacobian_and_hessian(program):
    def f(x):
        for name, k in program:
            x = STEPS[name](x, k)
        return x

    x = X[:8]
    for found, expected in (
        (sparse_jacobian(f)(x), jacrev(f)(x)),
        (sparse_hessian(lambda x: (f(x) ** 2).sum())(x), hessian(lambda x: (f(x) ** 2).sum())(x)),
    ):
        np.testing.assert_allclose(found.toarray(), expected.value, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------------------------- given patterns


def test_a_sparsity_serves_many_points_without_another_run_for_it():
    runs = []

    def f(x):
        runs.append(x)
        return heat(x)

    tridiagonal = jacobian_sparsity(f)(X)
    jacobian = sparse_jacobian(f, sparsity=tridiagonal)
    for x in (X, 2 * X):
        runs.clear()
        np.testing.assert_allclose(jacobian(x).toarray(), jacrev(heat)(x).value)
        assert len(runs) == 1
    assert repr(tridiagonal) == f"<Sparsity of {N} x {N}, {3 * N - 2} entries, 3 colours of columns>"


def test_a_pattern_may_have_entries_that_are_zero():
    wide = scipy.sparse.csr_array(banded(N, -2, -1, 0, 1, 2))
    J = sparse_jacobian(heat, sparsity=wide)(X)
    assert J.nnz == wide.nnz
    np.testing.assert_allclose(J.toarray(), jacrev(heat)(X).value)


def test_a_hessian_takes_one_triangle_of_a_pattern():
    H = sparse_hessian(rosenbrock, sparsity=scipy.sparse.csr_array(banded(N, 0, 1)))(X)
    np.testing.assert_allclose(H.toarray(), hessian(rosenbrock)(X).value)


def test_results_do_not_share_memory_with_their_sparsity():
    sparsity = jacobian_sparsity(heat)(X)
    before = sparsity.pattern.copy()
    J = sparse_jacobian(heat, sparsity=sparsity)(X)
    J.indices[:] = 0
    J.data[:] = 0
    assert (sparsity.pattern != before).nnz == 0


# -------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sparse_jacobian(heat, sparsity=np.eye(3))(X), ValueError, r"sparsity is of \(3, 3\), the matrix"),
        (lambda: sparse_jacobian(heat, sparsity=3), TypeError, "sparse_jacobian: sparsity must be .* got int"),
        (lambda: sparse_jacobian(heat, sparsity=np.ones(3)), ValueError, r"must be a matrix, got shape \(3,\)"),
        (lambda: sparse_hessian(rosenbrock, sparsity=np.ones((3, 2))), ValueError, "must be a square matrix"),
        (lambda: sparse_jacobian(heat, chunk_size=0), ValueError, "sparse_jacobian: .*chunk_size must be at least 1"),
        (lambda: sparse_jacobian(heat, argnums=(0,))(X), TypeError, "argnums must be one int"),
        (lambda: sparse_jacobian(heat, argnums=1)(X), RuntimeError, "sparse_jacobian: .*argnums has 1"),
        (lambda: sparse_jacobian(lambda x: x["a"])({"a": X}), TypeError, "must be one tensor, got dict"),
        (lambda: sparse_jacobian(lambda x: (x, x))(X), TypeError, "must return one tensor, got tuple"),
        (lambda: sparse_jacobian(lambda x: x, has_aux=True)(X), RuntimeError, "sparse_jacobian: .*with has_aux"),
        (lambda: sparse_jacobian(heat)(X.to(rg.complex128)), RuntimeError, "real floating argument, got complex128"),
        (lambda: sparse_jacobian(heat)(rg.arange(3)), RuntimeError, r"real floating argument, got int64\[3\]"),
        (lambda: sparse_jacobian(lambda x: x * 1j)(X), RuntimeError, "real floating output, got complex"),
        (lambda: sparse_jacobian(lambda x: x > 0)(X), RuntimeError, "real floating output, got bool"),
        (lambda: sparse_hessian(heat)(X), RuntimeError, r"sparse_hessian: .* real scalar, got float64\[12\]"),
        (lambda: sparse_hessian(lambda x: 3.0)(X), RuntimeError, "sparse_hessian: .* real scalar, got float"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_sparsity_of_a_hessian_is_none_of_a_jacobian():
    with pytest.raises(ValueError, match=r"of a Hessian; pass its \.pattern"):
        sparse_jacobian(heat, sparsity=hessian_sparsity(rosenbrock)(X))


@pytest.mark.parametrize(
    "outer",
    [
        lambda f: vmap(f)(X.reshape(3, 4)),
        lambda f: grad(f)(X),
        lambda f: jvp(f, (X,), (X,)),
        lambda f: rg.fx.trace(f, X),
        lambda f: jacobian_sparsity(f)(X),
    ],
)
def test_inside_of_other_transforms_it_is_refused(outer):
    with pytest.raises(RuntimeError, match="sparse_jacobian: gives a SciPy array"):
        outer(lambda x: sparse_jacobian(heat)(x))


def test_without_scipy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match=r"need SciPy: pip install 'retrograd\[scipy\]'"):
        sparse_jacobian(heat)(X)


def test_a_rule_that_forgets_elements_breaks_the_law(monkeypatch):
    softmax = registry["softmax"]
    args, params = next(iter(samples_of(softmax)))
    law_pattern(softmax, args, params)
    monkeypatch.setattr(softmax.definition, "dependence", lambda i, out, x, **params: {d: d for d in range(x.ndim)})
    with pytest.raises(AssertionError, match="softmax: the pattern lacks entries"):
        law_pattern(softmax, args, params)
