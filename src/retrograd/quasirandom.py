"""Sequences of points that fill the unit cube evenly, under the names of torch.quasirandom."""

from typing import Any

from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.foundation.describe_value import describe
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.random import randint
from retrograd.ops.view import cat

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draw points of a Sobol sequence in [0, 1) with `dimension` coordinates, 1 to 21201 (Joe and Kuo, 2008).

    scramble: apply a random linear matrix scramble and a random shift, by the integer `seed`, or else by a new one.
    The points are those of `scipy.stats.qmc.Sobol`; without scrambling, also those of PyTorch.

    Raises ValueError for another dimension; ModuleNotFoundError without SciPy.

    >>> engine = SobolEngine(2)
    >>> engine.draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    >>> engine.num_generated
    3
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not isinstance(dimension, int) or not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {describe(dimension)}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        drawn = int(randint(2**31, ())) if scramble and seed is None else seed
        self._sequence = _scipy_engine(dimension, scramble, drawn, self.MAXBIT)

    @property
    def num_generated(self) -> int:
        """The number of points that were drawn or skipped."""
        return self._sequence.num_generated

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next n points, of shape (n, dimension), in a dtype, by default the default dtype.

        out: a tensor that gets the points, and is resized if needed.
        """
        dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        first = min(n, 1) if self.num_generated == 0 else 0  # SciPy warns of other numbers than 2^m at the beginning
        points = cat([as_tensor(self._sequence.random(size)) for size in (first, n - first)]).to(dtype)
        return points if out is None else out.resize_as_(points).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next 2^m points; ValueError unless the number of all points is then a power of 2, too."""
        n, before = 2**m, self.num_generated
        if (before + n) & (before + n - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {before} points have been "
                f"previously generated, then: n={before}+2**{m}={before + n}. If you still want to do this, please use "
                f"'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> "SobolEngine":
        """Begin again with the first point; return the engine."""
        self._sequence.reset()
        return self

    def fast_forward(self, n: int) -> "SobolEngine":
        """Skip n points; return the engine."""
        self._sequence.fast_forward(n)
        return self

    def __repr__(self) -> str:
        scramble = ", scramble=True" if self.scramble else ""
        seed = f", seed={self.seed}" if self.seed is not None else ""
        return f"SobolEngine(dimension={self.dimension}{scramble}{seed})"


def _scipy_engine(dimension: int, scramble: bool, seed: int | None, bits: int) -> Any:
    try:
        from scipy.stats import qmc
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("SobolEngine needs SciPy: pip install 'retrograd[scipy]'", name=error.name) from None
    return qmc.Sobol(dimension, scramble=scramble, bits=bits, rng=seed)
