"""A sparse solver from SciPy as an operator, and the conductivities of a network that are fitted through it.

    python examples/custom_ops/sparse_solve.py

The solution x of A x = b is given by an equation, not by a formula, and SciPy's `splu` is a closed box. But the
equation itself can be differentiated (the implicit function theorem), dA x + A dx = db, and an operator needs no more:

- forward mode is a solve with the same matrix, dx = solve(A, db - dA x);
- the gradient is a solve with the transposed one: y = solve(A.T, g) belongs to b, and -y[i] x[j] to the entry A[i, j].

Both rules are made of the operator itself and of others of retrograd, so derivatives of any order follow, in any mode.
A batch is a rule too: many right-hand sides share one factorisation, and many matrices are one matrix of blocks.

The matrix is sparse: `values[k]` stands at row `rows[k]` and column `columns[k]`, and values at one place add up.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck

# ------------------------------------------------------------------------------------------------- the operator


@rg.library.custom_op("examples::sparse_solve", mutates_args=())
def sparse_solve(values: rg.Tensor, rows: rg.Tensor, columns: rg.Tensor, b: rg.Tensor) -> rg.Tensor:
    """The solution x of A x = b; b is a vector (n,), or has a right-hand side in each column (n, k)."""
    n = b.shape[0]
    matrix = sparse.csc_array((values.numpy(), (rows.numpy(), columns.numpy())), shape=(n, n))
    return rg.as_tensor(linalg.splu(matrix).solve(b.numpy()))


def times(values: rg.Tensor, rows: rg.Tensor, columns: rg.Tensor, x: rg.Tensor) -> rg.Tensor:
    """A x."""
    entries = values if x.ndim == 1 else values[:, None]
    return rg.zeros_like(x).index_add(0, rows, entries * x[columns])


def keep(ctx: Any, inputs: tuple, output: rg.Tensor) -> None:
    values, rows, columns, _ = inputs
    ctx.save_for_backward(values, rows, columns, output)


def backward(ctx: Any, g: rg.Tensor) -> tuple:
    values, rows, columns, x = ctx.saved_tensors
    y = sparse_solve(values, columns, rows, g)  # rows for columns: the transposed matrix
    products = y[rows] * x[columns]
    return -(products if x.ndim == 1 else products.sum(1)), None, None, y


sparse_solve.register_autograd(backward, setup_context=keep)


@sparse_solve.impl_abstract
def like(values: rg.Tensor, rows: rg.Tensor, columns: rg.Tensor, b: rg.Tensor) -> rg.Tensor:
    return rg.empty_like(b)


@sparse_solve.impl_jvp
def forward(inputs: Any, tangents: Any, x: rg.Tensor) -> rg.Tensor:
    """Would be derived from `backward` if it were not there; this is one solve, and no detour."""
    values, rows, columns, _ = inputs
    change = rg.zeros_like(x) if tangents.b is None else tangents.b
    if tangents.values is not None:
        change = change - times(tangents.values, rows, columns, x)
    return sparse_solve(values, rows, columns, change)


@sparse_solve.impl_vmap
def batch(info: Any, in_dims: tuple, values: rg.Tensor, rows: rg.Tensor, columns: rg.Tensor, b: rg.Tensor) -> tuple:
    if in_dims[:3] == (None, None, None):  # one matrix: all right-hand sides side by side
        whole = b.movedim(in_dims[3], -1)
        return sparse_solve(values, rows, columns, whole.flatten(1)).reshape(whole.shape), -1
    values, rows, columns, b = map(in_front, (values, rows, columns, b), in_dims, [info.batch_size] * 4)
    size = b.shape[1]
    shift = size * rg.arange(info.batch_size)[:, None]  # one matrix, with those of the examples along its diagonal
    blocks = [x.flatten() for x in (values, rows + shift, columns + shift)]
    return sparse_solve(*blocks, b.flatten(0, 1)).reshape(b.shape), 0


def in_front(x: rg.Tensor, dim: int | None, count: int) -> rg.Tensor:
    """A batch along the first dimension; what the examples share is repeated."""
    return x.expand(count, *x.shape) if dim is None else x.movedim(dim, 0)


# -------------------------------------------------------------------------------------------------- the problem


def wires(side: int) -> rg.Tensor:
    """The wires of a square grid, two ends each; the last leads from node 0 to the ground, which has the number -1."""
    node = np.arange(side * side).reshape(side, side)
    across, down = (node[:, :-1], node[:, 1:]), (node[:-1], node[1:])
    ends = [np.stack([a.ravel(), b.ravel()], 1) for a, b in (across, down)]
    return rg.from_numpy(np.concatenate([*ends, [[0, -1]]]))


def potentials(conductivities: rg.Tensor, ends: rg.Tensor, currents: rg.Tensor) -> rg.Tensor:
    """The potential of each node, where these currents are fed in: Kirchhoff's laws."""
    a, b = ends[:-1, 0], ends[:-1, 1]
    inner, ground = conductivities[:-1], conductivities[-1:]
    values = rg.cat([inner, inner, -inner, -inner, ground])
    return sparse_solve(values, rg.cat([a, b, a, b, ends[-1:, 0]]), rg.cat([a, b, b, a, ends[-1:, 0]]), currents)


def fitted(measured: rg.Tensor, ends: rg.Tensor, currents: rg.Tensor, rounds: int = 12) -> rg.Tensor:
    """Conductivities that explain the measured potentials, by the method of Gauss and Newton in their logarithms.

    The Jacobian comes by forward mode on a batch of directions: its columns are all solved for with one factorisation.
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
    currents = rg.eye(25, dtype=rg.float64)[:, 1::2]  # twelve experiments: one ampere into every second node
    measured = potentials(true, ends, currents)

    check()
    found = fitted(measured, ends, currents)
    worst = ((found - true).abs() / true).max().item()
    print(f"{len(ends)} conductivities from {measured.numel()} potentials; the worst is off by {worst:.1e} of itself")


def samples() -> tuple:
    """Arguments to check with, as `retrograd check examples/custom_ops/sparse_solve.py:sparse_solve` does."""
    values = (rg.eye(3, dtype=rg.float64) * 3 + 1).flatten().requires_grad_()
    rows, columns = rg.arange(3).repeat_interleave(3), rg.arange(3).tile(3)
    return values, rows, columns, rg.randn(3, dtype=rg.float64, requires_grad=True)


def check() -> None:
    """What every operator should pass before it is used: its rules against differences, and its promises."""
    batches = {"check_batched_grad": True, "check_batched_forward_grad": True}
    print("gradcheck", gradcheck(sparse_solve, samples(), check_forward_ad=True, **batches))
    print("gradgradcheck", gradgradcheck(sparse_solve, samples(), check_fwd_over_rev=True))
    print("opcheck", set(rg.library.opcheck(sparse_solve, samples()).values()))


if __name__ == "__main__":
    main()
