"""Time operators on large arrays: elementwise functions and reductions next to NumPy, gradients next to PyTorch.

    python benchmarks/operators.py [--rounds 15] [--only TEXT] [--json FILE] [--check]

One thread.  NumPy runs in retrograd's process, right after it and on the same memory.  In a separate process, it
would use other memory and caches, which changes these short times by a fifth.
"""

import argparse
import sys
from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from retrograd.bench import Case, Row, Suite, Table, converter, library, main, parser, run_suite, subjects

SIDE = 2001  # odd, so that a median is an element: of two middle ones retrograd returns the lower, NumPy the mean
SIZE = SIDE**2
BUDGET_NUMPY = 1.1  # of NumPy's own time
BUDGET_PYTORCH, BUDGET_CONVOLUTION = 1.3, 2.0  # of PyTorch's time

# name here: (NumPy's name, operands, keywords of NumPy); the operands are vectors of SIZE, positive if named so.
ELEMENTWISE = {
    "add": ("add", 2), "mul": ("multiply", 2), "div": ("true_divide", 2), "maximum": ("maximum", 2),
    "neg": ("negative", 1), "abs": ("absolute", 1), "square": ("square", 1), "sqrt": ("sqrt", 1), "exp": ("exp", 1),
    "expm1": ("expm1", 1), "log": ("log", 1), "log1p": ("log1p", 1), "sin": ("sin", 1), "cos": ("cos", 1),
    "tanh": ("tanh", 1), "atan": ("arctan", 1), "floor": ("floor", 1), "round": ("round", 1), "sign": ("sign", 1),
    "isnan": ("isnan", 1), "reciprocal": ("reciprocal", 1), "lt": ("less", 2), "hypot": ("hypot", 2),
    "logaddexp": ("logaddexp", 2), "atan2": ("arctan2", 2), "pow": ("power", 2), "exp2": ("exp2", 1),
    "log2": ("log2", 1),
}  # fmt: skip
REDUCTIONS = {
    "sum": "sum", "mean": "mean", "prod": "prod", "amax": "max", "amin": "min", "var": "var", "std": "std",
    "argmax": "argmax", "any": "any", "all": "all", "nansum": "nansum", "count_nonzero": "count_nonzero",
    "cumsum": "cumsum", "cumprod": "cumprod", "sort": "sort", "median": "median",
}  # fmt: skip
BY_NUMPY = "NumPy: "  # before the name of a row that NumPy itself computes
DIMS = {"of all": None, "along rows": 1, "along columns": 0}


@cache
def vectors() -> list[np.ndarray]:
    """Return two vectors of positive float32 around 1, the same for NumPy and retrograd."""
    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 1.5, SIZE).astype(np.float32) for _ in range(2)]


@cache
def factors() -> np.ndarray:
    """Return numbers so close to 1 that the product of all of them is a normal one, whatever the order."""
    logarithms = np.log(vectors()[0])
    return np.exp((logarithms - logarithms.mean()) / 64)


def elementwise(m: ModuleType, name: str) -> Callable[[], Any]:
    """Return a call of one elementwise function."""
    its, count = ELEMENTWISE[name]
    if m is np:
        return partial(getattr(np, its), *vectors()[:count])
    return partial(getattr(m, name), *[m.from_numpy(v) for v in vectors()[:count]])


def reduction(m: ModuleType, name: str, dim: int | None) -> Callable[[], Any]:
    """Return a call of one reduction, of all elements, or of a square matrix along one dimension."""
    array = (factors() if "prod" in name else vectors()[0]).reshape(SIDE, SIDE)
    if dim is None and name == "sort":
        array, dim = array.ravel(), 0
    if m is np and name == "sort":  # retrograd returns indices too
        return lambda: np.take_along_axis(array, np.argsort(array, axis=dim), axis=dim)
    if m is np:
        options = {"ddof": 1} if name in ("var", "std") else {}
        return partial(getattr(np, REDUCTIONS[name]), array, axis=dim, **options)
    x = m.from_numpy(array)
    if name in ("cumsum", "cumprod", "sort"):
        return (lambda: getattr(m, name)(x.flatten(), 0)) if dim is None else partial(getattr(m, name), x, dim)
    return partial(getattr(m, name), x) if dim is None else partial(getattr(m, name), x, dim)


# ---------------------------------------------------------------------------------------------------- gradients


def normal(m: ModuleType, *shape: int, dtype: str = "float32") -> Any:
    """Return a leaf of normal samples."""
    array = np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)
    return m.from_numpy(array).requires_grad_(True)


def well_conditioned(m: ModuleType, n: int) -> Any:
    """Return a well-conditioned square matrix."""
    array = np.random.default_rng(1).normal(size=(n, n)).astype(np.float32) + n**0.5 * 2 * np.eye(n, dtype=np.float32)
    return m.from_numpy(array).requires_grad_(True)


def einsum_of_matrices(m: ModuleType) -> Callable[[], Any]:
    """Return the product of two matrices of 1,024 rows."""
    a, b = normal(m, 1024, 1024), normal(m, 1024, 1024)
    return lambda: m.einsum("ij,jk->ik", a, b).sum().backward()


def einsum_of_stacks(m: ModuleType) -> Callable[[], Any]:
    """Return attention's product: stacks of matrices, contracted along the last dimension."""
    a, b = normal(m, 8, 256, 8, 64), normal(m, 8, 256, 8, 64)
    return lambda: m.einsum("bqhd,bkhd->bhqk", a, b).sum().backward()


def convolution(m: ModuleType) -> Callable[[], Any]:
    """Return a layer of 64 channels on images of 32 x 32."""
    x, w = normal(m, 16, 64, 32, 32), normal(m, 64, 64, 3, 3)
    return lambda: m.conv2d(x, w, padding=1).sum().backward()


def solve(m: ModuleType) -> Callable[[], Any]:
    """Return a system of 512 unknowns with 64 right-hand sides."""
    a, b = well_conditioned(m, 512), normal(m, 512, 64)
    return lambda: m.linalg.solve(a, b).sum().backward()


def svd(m: ModuleType) -> Callable[[], Any]:
    """Return all three factors of a matrix of 256 rows and columns."""
    a = normal(m, 256, 256)

    def step() -> None:
        u, s, vh = m.linalg.svd(a)
        (u.abs().sum() + s.sum() + vh.abs().sum()).backward()

    return step


GRADIENTS = {
    "einsum ij,jk->ik": (einsum_of_matrices, BUDGET_PYTORCH),
    "einsum bqhd,bkhd->bhqk": (einsum_of_stacks, BUDGET_PYTORCH),
    "linalg.solve": (solve, BUDGET_PYTORCH),
    "linalg.svd": (svd, BUDGET_PYTORCH),
    "conv2d": (convolution, BUDGET_CONVOLUTION),
}

# ----------------------------------------------------------------------------------------------------- subjects

ROWS: dict[str, Callable[[ModuleType], Callable[[], Any]]] = {
    **{f"{name}": partial(elementwise, name=name) for name in ELEMENTWISE},
    **{f"{n} {where}": partial(reduction, name=n, dim=d) for n in REDUCTIONS for where, d in DIMS.items()},
}


def gradients_of(m: ModuleType, row: str) -> Case:
    """Return a row of gradients; a call adds to the existing ones."""
    return Case(GRADIENTS[row][0](m))


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row to case in a subject's process."""
    m = library(name, threads)

    def case(row: str) -> Case | None:
        if row in GRADIENTS:
            return gradients_of(m, row)
        plain = row.removeprefix(BY_NUMPY)
        return None if name == "PyTorch" else values(m if plain == row else np, plain)

    return case


def values(m: ModuleType, row: str) -> Case:
    """Return the results of a row, which must agree with NumPy's."""
    call = ROWS[row](m)
    if m is np:
        return Case(call)
    expected = ROWS[row](np)

    def check() -> list:
        found = call()
        found = found[0] if isinstance(found, tuple) else found
        np.testing.assert_allclose(converter(m)(found), expected(), rtol=1e-4)
        return []

    return Case(call, check)


def compare_with_numpy(options: argparse.Namespace) -> Table:
    """Return the rows that NumPy can also run."""
    both = {name: {} for row in ROWS for name in (row, BY_NUMPY + row)}
    suite = Suite(f"{SIZE:,} float32", __file__, both, subjects("retrograd"), cases)
    made = run_suite(suite, options)
    found = {row.name: row.samples["retrograd"] for row in made.rows}
    made.rows = [
        Row(name, {"retrograd": taken, "NumPy": found[BY_NUMPY + name]}, {"NumPy": BUDGET_NUMPY})
        for name, taken in found.items()
        if name in ROWS
    ]
    return made


def report(options: argparse.Namespace) -> list[Table]:
    """Return tables of values and of gradients."""
    rows = {row: {"PyTorch": budget} for row, (_, budget) in GRADIENTS.items()}
    gradients = Suite("Gradients", __file__, rows, subjects("retrograd", "PyTorch"), cases)
    return [compare_with_numpy(options), run_suite(gradients, options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 9), report, cases))
