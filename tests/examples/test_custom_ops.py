"""The examples of custom operators run and print the documented results."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry

from ..example_scripts import imported

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "custom_ops"


def script(name):
    """Import an example as a module; its operators are removed after the test's module."""
    return imported(f"custom_ops/{name}")


@pytest.fixture(scope="module", autouse=True)
def clean():
    yield
    for name in [name for name in registry if name.startswith("examples::")]:
        del registry[name]


@pytest.fixture(scope="module")
def sparse_solve():
    pytest.importorskip("scipy", reason="the example solves with SciPy")
    return script("sparse_solve")


@pytest.fixture(scope="module")
def compiled_kernel():
    return script("compiled_kernel")


@pytest.fixture(scope="module")
def list_inputs():
    return script("list_inputs")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs_as_a_script_says_what_it_is_and_warns_of_nothing(path):
    if path.stem == "sparse_solve":
        pytest.importorskip("scipy", reason="the example solves with SciPy")
    if path.stem == "c_function" and not shutil.which("cc"):
        pytest.skip("the example compiles a C function")
    run = subprocess.run(
        [sys.executable, "-W", "error", path],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, text=True, capture_output=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "gradcheck True" in run.stdout
    assert f"python examples/custom_ops/{path.name}" in path.read_text().split('"""')[1]


# ------------------------------------------------------------------------------------------------- sparse_solve


def system(sparse_solve):
    """Return three matrices with a right-hand side each, and the operator with its matrix dense, row by row."""
    rg.manual_seed(0)
    matrices = rg.randn(3, 4, 4, dtype=rg.float64) + 4 * rg.eye(4, dtype=rg.float64)
    rows, columns = rg.arange(4).repeat_interleave(4), rg.arange(4).tile(4)
    return (
        matrices,
        rg.randn(3, 4, dtype=rg.float64),
        lambda a, b: sparse_solve.sparse_solve(a.flatten(), rows, columns, b),
    )


def test_batches_of_matrices_and_of_right_hand_sides_are_solved_like_dense_ones(sparse_solve):
    matrices, sides, solve = system(sparse_solve)
    for in_dims, a, b in (((0, 0), matrices, sides), ((None, 0), matrices[0], sides), ((0, None), matrices, sides[0])):
        found = rg.func.vmap(solve, in_dims)(a, b)
        expected = np.linalg.solve(np.broadcast_to(a.numpy(), (3, 4, 4)), np.broadcast_to(b.numpy(), (3, 4))[..., None])
        np.testing.assert_allclose(found.numpy(), expected[..., 0], rtol=1e-12)


def test_a_solve_has_the_hessian_of_a_dense_one(sparse_solve):
    (a, *_), (b, *_), solve = system(sparse_solve)
    found = rg.func.hessian(lambda a: (solve(a, b) ** 2).sum())(a)
    expected = rg.func.hessian(lambda a: (rg.linalg.solve(a, b) ** 2).sum())(a)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


def test_the_conductivities_of_a_network_are_found(sparse_solve):
    rg.manual_seed(1)
    ends = sparse_solve.wires(3)
    true, currents = rg.rand(len(ends), dtype=rg.float64) + 0.5, rg.eye(9, dtype=rg.float64)
    found = sparse_solve.fit_conductivities(sparse_solve.potentials(true, ends, currents), ends, currents)
    np.testing.assert_allclose(found.numpy(), true.numpy(), rtol=1e-8)


# ----------------------------------------------------------------------------------------------- compiled_kernel


def paths(rows, columns):
    """Return all paths through a table, from its first cell to its last, as lists of cells."""
    if rows == columns == 1:
        return [[(0, 0)]]
    before = [
        p
        for u, v in ((rows - 1, columns), (rows, columns - 1), (rows - 1, columns - 1))
        if u and v
        for p in paths(u, v)
    ]
    return [[*p, (rows - 1, columns - 1)] for p in before]


def test_the_loss_is_the_soft_minimum_over_all_paths_in_single_precision_too(compiled_kernel):
    costs = np.random.default_rng(0).random((3, 4))
    totals = np.array([sum(costs[cell] for cell in path) for path in paths(3, 4)])
    expected = -0.5 * np.log(np.exp(-totals / 0.5).sum())
    for dtype in (rg.float64, rg.float32):
        found = compiled_kernel.soft_dtw(rg.tensor(costs, dtype=dtype), 0.5)
        assert found.dtype == dtype
        assert found.item() == pytest.approx(expected, rel=1e-5)


def test_a_batch_of_tables_gives_what_they_give_one_by_one(compiled_kernel):
    costs = rg.rand(3, 2, 4, dtype=rg.float64)
    value_and_gradient = rg.func.grad_and_value(lambda c: compiled_kernel.soft_dtw(c, 0.5))
    found = rg.func.vmap(value_and_gradient)(costs)
    for i in range(3):
        for ours, one in zip(found, value_and_gradient(costs[i]), strict=True):
            np.testing.assert_allclose(ours[i].numpy(), one.numpy(), rtol=1e-12)


def test_second_derivatives_are_refused_by_the_name_of_the_operator_without_a_formula(compiled_kernel):
    with pytest.raises(NotImplementedError, match="examples::soft_alignment: has no forward derivative"):
        rg.func.hessian(lambda c: compiled_kernel.soft_dtw(c, 0.5))(rg.rand(2, 2))


def test_a_barycentre_is_higher_than_the_mean(compiled_kernel):
    series = compiled_kernel.bumps([5, 7, 10], 15)
    assert compiled_kernel.barycentre(series, 30).max() > 1.5 * series.mean(0).max()


def test_with_numba_the_loops_are_compiled(compiled_kernel):
    pytest.importorskip("numba", reason="without Numba the loops run as plain Python")
    compiled_kernel.soft_dtw(rg.rand(2, 2), 0.5)
    assert compiled_kernel.fill.signatures


# --------------------------------------------------------------------------------------------------- list_inputs


def test_a_blend_is_the_weighted_mean_of_the_images_that_have_a_weight(list_inputs):
    images = [rg.tensor([1.0, 2.0]), rg.tensor([3.0, 4.0]), rg.tensor([5.0, 7.0])]
    assert list_inputs.blend(images, None)[1] == 3
    blended, used = list_inputs.blend(images, rg.tensor([0.5, 0.0, 0.25]), 2.0)
    assert (blended.tolist(), used) == ([3.5, 5.5], 2)


def test_the_weights_of_a_photograph_are_found(list_inputs):
    rg.manual_seed(0)
    images = [rg.rand(4, 4, dtype=rg.float64) for _ in range(3)]
    photograph = 0.2 * images[0] + 0.8 * images[2]
    assert list_inputs.weights_of(photograph, images).tolist() == pytest.approx([0.2, 0.0, 0.8], abs=0.02)


def test_how_many_images_were_used_may_not_differ_between_examples(list_inputs):
    images, weights = [rg.ones(2), rg.ones(2)], rg.tensor([[1.0, 0.0], [1.0, 1.0]])
    with pytest.raises(RuntimeError, match=r"blend returns \('Tensor', 1\) for example 0, but \('Tensor', 2\)"):
        rg.func.vmap(lambda w: list_inputs.blend(images, w)[0])(weights)
