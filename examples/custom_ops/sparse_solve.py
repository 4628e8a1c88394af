"""Wrap SciPy's sparse solver as a differentiable operator, and fit the conductivities of a network through it.

    python examples/custom_ops/sparse_solve.py

SciPy's `splu` solves A x = b and cannot be traced. By the implicit function theorem, the equation can be
differentiated instead, dA x + A dx = db, which gives both rules:

- forward mode: solve with the same matrix, dx = solve(A, db - dA x);
- gradient: solve with the transposed matrix, y = solve(A.T, g); y is the gradient of b, and -y[i] x[j] that of A[i, j].

Both rules use the operator itself and other operators of retrograd, so derivatives of any order follow, in any mode.
There is also a batching rule: many right-hand sides share one factorization, and many matrices become one
block-diagonal matrix.

The matrix is sparse: `values[k]` is the entry at row `rows[k]` and column `columns[k]`; duplicate entries are summed.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck

# -------------------------------------------------------------------------------------------------- the operator


@rg.library.custom_op("examples::sparse_solve", mutates_args=())
def sparse_solve(values: rg.Tensor, rows: rg.Tensor, columns: rg.Tensor, b: rg.Tensor) -> rg.Tensor:
    """Return the solution x of A x = b, for a vector b (n,) or a right-hand side per column (n, k)."""
    n = b.shape[0]
    matrix = sparse.csc_array((values.numpy(), (rows.numpy(), columns.numpy())), shape=(n, n))
    return rg.as_tensor(linalg.splu(matrix).solve(b.numpy()))


def times(values: rg.Tensor, rows: rg.Tensor, columns: rg.Tensor, x: rg.Tensor) -> rg.Tensor:
    """Return A x."""
    entries = values if x.ndim == 1 else values[:, None]
    return rg.zeros_like(x).index_add(0, rows, entries * x[columns])


def keep(ctx: Any, inputs: tuple, output: rg.Tensor) -> None:
    values, rows, columns, _ = inputs
    ctx.save_for_backward(values, rows, columns, output)


def backward(ctx: Any, g: rg.Tensor) -> tuple:
    values, rows, columns, x = ctx.saved_tensors
    y = sparse_solve(values, columns, rows, g)  # rows and columns swapped: the transposed matrix
    products = y[rows] * x[columns]
    return -(products if x.ndim == 1 else products.sum(1)), None, None, y


sparse_solve.register_autograd(backward, setup_context=keep)


@sparse_solve.impl_abstract
def like(values: rg.Tensor, rows: rg.Tensor, columns: rg.Tensor, b: rg.Tensor) -> rg.Tensor:
    return rg.empty_like(b)


@sparse_solve.impl_jvp
def forward(inputs: Any, tangents: Any, x: rg.Tensor) -> rg.Tensor:
    """Solve once; without this rule, forward mode would be derived from `backward`."""
    values, rows, columns, _ = inputs
    change = rg.zeros_like(x) if tangents.b is None else tangents.b
    if tangents.values is not None:
        change = change - times(tangents.values, rows, columns, x)
    return sparse_solve(values, rows, columns, change)


@sparse_solve.impl_vmap
def batch(info: Any, in_dims: tuple, values: rg.Tensor, rows: rg.Tensor, columns: rg.Tensor, b: rg.Tensor) -> tuple:
    if in_dims[:3] == (None, None, None):  # one matrix: stack all right-hand sides as columns
        whole = b.movedim(in_dims[3], -1)
        return sparse_solve(values, rows, columns, whole.flatten(1)).reshape(whole.shape), -1
    values, rows, columns, b = map(in_front, (values, rows, columns, b), in_dims, [info.batch_size] * 4)
    size = b.shape[1]
    shift = size * rg.arange(info.batch_size)[:, None]  # one block-diagonal matrix
    blocks = [x.flatten() for x in (values, rows + shift, columns + shift)]
    return sparse_solve(*blocks, b.flatten(0, 1)).reshape(b.shape), 0


def in_front(x: rg.Tensor, dim: int | None, count: int) -> rg.Tensor:
    """Move the batch dimension to the front, and expand arguments without one."""
    return x.expand(count, *x.shape) if dim is None else x.movedim(dim, 0)


# --------------------------------------------------------------------------------------------------- the problem


def wires(side: int) -> rg.Tensor:
    """Return the two ends of each wire of a square grid; the last wire connects node 0 to the ground, -1."""
    node = np.arange(side * side).reshape(side, side)
    across, down = (node[:, :-1], node[:, 1:]), (node[:-1], node[1:])
    ends = [np.stack([a.ravel(), b.ravel()], 1) for a, b in (across, down)]
    return rg.from_numpy(np.concatenate([*ends, [[0, -1]]]))


def potentials(conductivities: rg.Tensor, ends: rg.Tensor, currents: rg.Tensor) -> rg.Tensor:
    """Return the potential of each node for the given input currents, by Kirchhoff's laws."""
    a, b = ends[:-1, 0], ends[:-1, 1]
    inner, ground = conductivities[:-1], conductivities[-1:]
    values = rg.cat([inner, inner, -inner, -inner, ground])
    return sparse_solve(values, rg.cat([a, b, a, b, ends[-1:, 0]]), rg.cat([a, b, b, a, ends[-1:, 0]]), currents)


def fit_conductivities(measured: rg.Tensor, ends: rg.Tensor, currents: rg.Tensor, rounds: int = 12) -> rg.Tensor:
    """Return conductivities fitted to the measured potentials, by Gauss-Newton in their logarithms.

    `jacfwd` pushes a batch of tangents forward, so all columns of the Jacobian share one factorization.
    """

    def misfit(logarithms: rg.Tensor) -> rg.Tensor:
        return (potentials(logarithms.exp(), ends, currents) - measured).flatten()

    logarithms = rg.zeros(len(ends), dtype=rg.float64)
    for _ in range(rounds):
        step = rg.linalg.lstsq(rg.func.jacfwd(misfit)(logarithms), misfit(logarithms)[:, None])
        logarithms = logarithms - step.solution[:, 0].clamp(-1, 1)
    return logarithms.exp()


def main() -> None:
    rg.manual_seed(0)
    ends = wires(5)
    true = rg.rand(len(ends), dtype=rg.float64) + 0.5
    currents = rg.eye(25, dtype=rg.float64)[:, 1::2]  # twelve experiments: one ampere into one node each
    measured = potentials(true, ends, currents)

    check()
    found = fit_conductivities(measured, ends, currents)
    worst = ((found - true).abs() / true).max().item()
    print(f"{len(ends)} conductivities from {measured.numel()} potentials; largest relative error {worst:.1e}")


def samples() -> tuple:
    """Return arguments for checks and for `retrograd check examples/custom_ops/sparse_solve.py:sparse_solve`."""
    values = (rg.eye(3, dtype=rg.float64) * 3 + 1).flatten().requires_grad_()
    rows, columns = rg.arange(3).repeat_interleave(3), rg.arange(3).tile(3)
    return values, rows, columns, rg.randn(3, dtype=rg.float64, requires_grad=True)


def check() -> None:
    """Check the operator: derivatives against finite differences, and the declared behavior."""
    batches = {"check_batched_grad": True, "check_batched_forward_grad": True}
    print("gradcheck", gradcheck(sparse_solve, samples(), check_forward_ad=True, **batches))
    print("gradgradcheck", gradgradcheck(sparse_solve, samples(), check_fwd_over_rev=True))
    print("opcheck", set(rg.library.opcheck(sparse_solve, samples()).values()))


if __name__ == "__main__":
    main()
