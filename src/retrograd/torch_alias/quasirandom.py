"""`torch.quasirandom`: Sobol's sequences, which SciPy computes."""

import warnings
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.ops.as_tensor import as_tensor


class SobolEngine:
    """Points of Sobol's sequence in the unit cube, by the direction numbers of Joe and Kuo, 2008; needs SciPy.

    Without `scramble` they are PyTorch's. With it they are as well distributed, but other points for the same seed.

    >>> SobolEngine(2).draw(3).tolist()  # doctest: +SKIP
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25]]
    """

    MAXBIT, MAXDIM = 30, 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        qmc: Any = lazy_module("scipy.stats").qmc
        self._sequence = qmc.Sobol(dimension, scramble=scramble, bits=self.MAXBIT, seed=seed)

    @property
    def num_generated(self) -> int:
        """The number of points so far."""
        return int(self._sequence.num_generated)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next points, of shape (n, dimension), in the default dtype unless another is given."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy's, of numbers of points that are not powers of two
            points = as_tensor(self._sequence.random(n))
        points = points.to(dtype if dtype is not None else as_tensor(0.5).dtype)
        return points if out is None else out.resize_(points.shape).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next 2^m points; ValueError if their number, with the points so far, is not a power of two."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points "
                f"have been previously generated, then: n={self.num_generated}+2**{m}={total}."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> "SobolEngine":
        """Return to the first point."""
        self._sequence.reset()
        return self

    def fast_forward(self, n: int) -> "SobolEngine":
        """Skip points."""
        if n:
            self._sequence.fast_forward(n)
        return self

    def __repr__(self) -> str:
        scrambled = ", scramble=True" if self.scramble else ""
        return f"SobolEngine(dimension={self.dimension}{scrambled})"
