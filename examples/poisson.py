"""Find the conductivity of a plate from measured temperatures: finite elements, a sparse solve, and its gradient.

    pip install "retrograd[scipy,viz]"
    python examples/poisson.py

-div(c grad u) = 1 on the unit square, u = 0 on its edge, by linear elements on triangles (G. Strang and G. Fix, An
Analysis of the Finite Element Method, 1973). The conductivity c of each triangle is unknown. The matrix is a sparse
tensor made from c, `spsolve` solves the system, and the backward pass solves one more with the same factors. SciPy's
L-BFGS-B then recovers c from u, with a penalty on its jumps from triangle to triangle.
"""

from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import retrograd as rg
from retrograd.scipy.sparse.linalg import spsolve


class Plate:
    """A square of n x n cells, each cut into two triangles; `conductivity` has one number for each triangle."""

    def __init__(self, n: int) -> None:
        self.n = n
        numbers = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
        a, b, c, d = (numbers[:-1, :-1], numbers[:-1, 1:], numbers[1:, :-1], numbers[1:, 1:])
        triangles = np.stack([np.stack([a, b, d], -1), np.stack([a, d, c], -1)], 2).reshape(-1, 3)
        y, x = np.divmod(np.arange((n + 1) ** 2), n + 1) / np.array(n)
        self.points = np.stack([x, y], 1)
        self.triangles = triangles
        inner = (x > 0) & (x < 1) & (y > 0) & (y < 1)
        self.number = np.where(inner, np.cumsum(inner) - 1, -1)  # of the unknowns; -1 on the edge
        self.inner = inner
        self._assemble()

    def _assemble(self) -> None:
        """Compute the stiffness matrix of each triangle for conductivity 1, and where its elements belong."""
        corners = self.points[self.triangles]
        edges = np.roll(corners, -1, 1) - np.roll(corners, 1, 1)  # opposite to each corner
        area = 0.5 * np.abs(np.linalg.det(edges[:, :2]))
        stiffness = np.einsum("tid,tjd->tij", edges, edges) / (4 * area)[:, None, None]
        rows = self.number[np.repeat(self.triangles, 3, 1)].reshape(-1)
        columns = self.number[np.tile(self.triangles, (1, 3))].reshape(-1)
        kept = (rows >= 0) & (columns >= 0)
        self._indices = np.stack([rows[kept], columns[kept]])
        self._owner = rg.tensor(np.repeat(np.arange(len(self.triangles)), 9)[kept])
        self._stiffness = rg.tensor(stiffness.reshape(-1)[kept])
        load = np.bincount(self.triangles.reshape(-1), np.repeat(area / 3, 3), minlength=len(self.points))
        self._load = rg.tensor(load[self.inner])

    def solve(self, conductivity: rg.Tensor) -> rg.Tensor:
        """Return the temperatures of the inner points."""
        size = len(self._load)
        values = conductivity[self._owner] * self._stiffness  # entries at the same position are summed
        return spsolve(rg.sparse_coo_tensor(self._indices, values, (size, size)), self._load)

    def jumps(self, numbers: rg.Tensor) -> rg.Tensor:
        """Return the differences between neighbouring cells, and between the triangles of a cell."""
        cells = numbers.reshape(self.n, self.n, 2)
        sideways, down = cells[:, 1:] - cells[:, :-1], cells[1:] - cells[:-1]
        return rg.cat([part.flatten() for part in (sideways, down, cells[..., 0] - cells[..., 1])])


def exact_series(terms: int = 60) -> float:
    """Return u in the middle of the square for c = 1, by the Fourier series of the solution."""
    k = 2 * np.arange(terms) + 1
    signs = np.where(np.arange(terms) % 2, -1.0, 1.0)
    m, n = np.meshgrid(k, k)
    return float((16 / np.pi**4 * np.outer(signs, signs) / (m * n * (m**2 + n**2))).sum())


def hidden_conductivity(plate: Plate) -> np.ndarray:
    """Return the conductivity to find: 1, and 3 in a disc."""
    middle = plate.points[plate.triangles].mean(1)
    return np.where(np.hypot(*(middle - [0.4, 0.55]).T) < 0.22, 3.0, 1.0)


def recover(plate: Plate, measured: rg.Tensor, penalty: float, iterations: int) -> np.ndarray:
    """Return the conductivity that explains the measured temperatures with few jumps (total variation)."""
    scale = measured.square().mean()

    def loss(logarithms: rg.Tensor) -> rg.Tensor:
        misfit = (plate.solve(logarithms.exp()) - measured).square().mean() / scale
        variation = (plate.jumps(logarithms).square() + 1e-4).sqrt().mean()
        return 1e4 * (misfit + penalty * variation)

    options = {"maxiter": iterations, "ftol": 1e-9, "maxcor": 20}
    start = np.zeros(len(plate.triangles))
    return np.exp(minimize(rg.value_and_grad(loss), start, jac=True, method="L-BFGS-B", options=options).x)


def draw(path: Path, plate: Plate, shown: dict[str, np.ndarray]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(1, 3), shown.items(), strict=True):
        limits = {} if len(values) == len(plate.points) else {"vmin": 0.8, "vmax": 3.2}
        image = axes.tripcolor(*plate.points.T, plate.triangles, values, **limits)
        axes.set(title=title, aspect="equal", xticks=[], yticks=[])
        figure.colorbar(image, ax=axes, shrink=0.8)
    figure.savefig(path, dpi=120)


def main(n: int = 32, iterations: int = 300, picture: Path | None = Path("poisson.png")) -> dict[str, float]:
    plate = Plate(n)
    even = plate.solve(rg.ones(len(plate.triangles), dtype=rg.float64))
    middle = even.max().item()
    print(f"temperature in the middle for c = 1: {middle:.5f}, by its Fourier series {exact_series():.5f}")

    hidden = hidden_conductivity(plate)
    measured = plate.solve(rg.tensor(hidden))
    noise = rg.randn(len(measured), dtype=rg.float64, generator=rg.Generator().manual_seed(0))
    found = recover(plate, measured * (1 + 0.001 * noise), 1e-3, iterations)
    error = np.abs(found - hidden).mean()
    constant = np.abs(hidden - 1).mean()
    print(f"{len(hidden)} unknown conductivities: mean error {error:.3f}, of the constant 1 {constant:.3f}")

    if picture is not None:
        temperature = np.zeros(len(plate.points))
        temperature[plate.inner] = measured.numpy()
        draw(picture, plate, {"temperature": temperature, "hidden conductivity": hidden, "recovered": found})
    return {"middle": middle, "error": float(error)}


if __name__ == "__main__":
    main()
