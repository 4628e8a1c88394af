"""Define an operator with a kernel compiled by Numba: soft dynamic time warping, a loss between time series.

    python examples/custom_ops/compiled_kernel.py

Dynamic time warping compares two series along the cheapest path through the table of their distances. Each cell needs
the three cells before it, so NumPy has no function for it, and a Python loop over the cells is slow. With a soft
minimum instead of the minimum, the loss is differentiable (Cuturi and Blondel, "Soft-DTW: a differentiable loss
function for time-series", 2017). Its gradient is the share of each cell in all paths, which a second loop computes
from the last cell to the first.

Each loop is an operator. The compiled code does not receive the cotangent: the gradient formula multiplies by it
outside. Forward mode can therefore be derived from the formula. Both loops accept leading dimensions, so each batching
rule is one line. The second operator has no gradient formula, so second derivatives raise an error that names it.

Without Numba (`pip install numba`), the same loops run as plain Python with the same results, some thirty times slower.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.autograd import gradcheck

try:
    from numba import njit
except ImportError:

    def njit(function: Callable) -> Callable:
        """Return the function unchanged, in place of Numba's decorator."""
        return function


# --------------------------------------------------------------------------------------------------- the kernels


@njit
def soft_minimum(a: float, b: float, c: float, gamma: float) -> float:
    least = min(a, b, c)
    return least - gamma * math.log(
        math.exp((least - a) / gamma) + math.exp((least - b) / gamma) + math.exp((least - c) / gamma)
    )


@njit
def fill(costs: np.ndarray, gamma: float, table: np.ndarray) -> None:
    """Fill the table with the soft minimal cost of a path to each cell; its border is infinite, its corner 0."""
    for i in range(1, costs.shape[0] + 1):
        for j in range(1, costs.shape[1] + 1):
            before = soft_minimum(table[i - 1, j - 1], table[i - 1, j], table[i, j - 1], gamma)
            table[i, j] = costs[i - 1, j - 1] + before


@njit
def share(costs: np.ndarray, gamma: float, table: np.ndarray, shares: np.ndarray) -> None:
    """Compute the share of each cell in all paths, from the shares of the next cells, backward."""
    rows, columns = costs.shape
    if rows == 0 or columns == 0:  # Numba checks no indices
        return
    shares[rows - 1, columns - 1] = 1.0
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            for u, v in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                if u < rows and v < columns:
                    before = table[u + 1, v + 1] - costs[u, v]
                    shares[i, j] += shares[u, v] * math.exp((before - table[i + 1, j + 1]) / gamma)


def fill_all(costs: np.ndarray, gamma: float) -> np.ndarray:
    """Return the tables (..., n + 1, m + 1) of all costs (..., n, m)."""
    *lead, n, m = costs.shape
    tables = np.full((*lead, n + 1, m + 1), np.inf, costs.dtype)
    tables[..., 0, 0] = 0
    for index in np.ndindex(*lead):
        fill(costs[index], gamma, tables[index])
    return tables


# ------------------------------------------------------------------------------------------------- the operators


@rg.library.custom_op("examples::soft_dtw", mutates_args=())
def soft_dtw(costs: rg.Tensor, gamma: float) -> rg.Tensor:
    """Return the soft minimal path cost (...) of each table of costs (..., n, m)."""
    return rg.as_tensor(np.asarray(fill_all(costs.numpy(), gamma)[..., -1, -1]))


@rg.library.custom_op("examples::soft_alignment", mutates_args=())
def soft_alignment(costs: rg.Tensor, gamma: float) -> rg.Tensor:
    """Return the share of each cell (..., n, m) in the soft cheapest path: the gradient of `soft_dtw`."""
    values = costs.numpy()
    tables, shares = fill_all(values, gamma), np.zeros_like(values)
    for index in np.ndindex(*values.shape[:-2]):
        share(values[index], gamma, tables[index], shares[index])
    return rg.as_tensor(shares)


@soft_dtw.impl_abstract
def like_the_cost(costs: rg.Tensor, gamma: float) -> rg.Tensor:
    return costs.new_empty(costs.shape[:-2])


@soft_alignment.impl_abstract
def like_the_table(costs: rg.Tensor, gamma: float) -> rg.Tensor:
    return rg.empty_like(costs)


def keep(ctx: Any, inputs: tuple, output: rg.Tensor) -> None:
    costs, ctx.gamma = inputs
    ctx.save_for_backward(costs)


def backward(ctx: Any, g: rg.Tensor) -> tuple:
    (costs,) = ctx.saved_tensors
    return g[..., None, None] * soft_alignment(costs, ctx.gamma), None


soft_dtw.register_autograd(backward, setup_context=keep)


@soft_dtw.impl_vmap
def batch_of_costs(info: Any, in_dims: tuple, costs: rg.Tensor, gamma: float) -> tuple:
    return soft_dtw(costs.movedim(in_dims[0], 0), gamma), 0


@soft_alignment.impl_vmap
def batch_of_tables(info: Any, in_dims: tuple, costs: rg.Tensor, gamma: float) -> tuple:
    return soft_alignment(costs.movedim(in_dims[0], 0), gamma), 0


# --------------------------------------------------------------------------------------------------- the problem


def distance(a: rg.Tensor, b: rg.Tensor) -> rg.Tensor:
    return soft_dtw((a[:, None] - b[None, :]) ** 2, 0.05)


def bumps(centres: list[int], length: int = 30) -> rg.Tensor:
    """Return series with one bump each, at these centers: the same event, early or late."""
    t = rg.arange(length, dtype=rg.float64)
    return rg.exp(-(((t - rg.tensor(centres)[:, None]) / 2) ** 2))


def barycentre(series: rg.Tensor, rounds: int = 60) -> rg.Tensor:
    """Return the series with the smallest sum of distances to all; `vmap` computes the distances at once."""
    average = series.mean(0).requires_grad_()
    optimizer = rg.optim.Adam([average], lr=0.05)
    for _ in range(rounds):
        optimizer.zero_grad()
        rg.func.vmap(distance, (None, 0))(average, series).sum().backward()
        optimizer.step()
    return average.detach()


def main() -> None:
    check()
    series = bumps([10, 13, 16, 19])
    began = time.perf_counter()
    found = barycentre(series)
    seconds = time.perf_counter() - began
    print(f"the bumps are 1.00 high, their mean {series.mean(0).max():.2f}, their barycenter {found.max():.2f}")
    print(f"{seconds:.2f} s, {'compiled' if hasattr(fill, 'py_func') else 'plain Python: Numba is not installed'}")


def samples() -> tuple:
    """Return arguments for the checks and for `retrograd check examples/custom_ops/compiled_kernel.py:soft_dtw`."""
    rg.manual_seed(0)
    return rg.rand(3, 4, dtype=rg.float64, requires_grad=True), 0.5


def check() -> None:
    """Check the operators: derivatives against finite differences, and the declared behavior."""
    batches = {"check_batched_grad": True, "check_batched_forward_grad": True}
    print("gradcheck", gradcheck(soft_dtw, samples(), check_forward_ad=True, **batches))
    print("opcheck", set(rg.library.opcheck(soft_dtw, samples()).values()))
    costs, gamma = samples()  # detached: the second operator has no gradient formula
    print("opcheck", set(rg.library.opcheck(soft_alignment, (costs.detach(), gamma)).values()))


if __name__ == "__main__":
    main()
