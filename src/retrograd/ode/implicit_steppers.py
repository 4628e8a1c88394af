"""Steps of Kvaerno's diagonally implicit Runge-Kutta methods, for stiff problems.

A stage k solves k = f(t, y + h (known + a k)).  Newton's method finds it on values without a graph.  Two more of its
steps are recorded, with the Jacobian at the solution: the first one makes the first derivative of the stage exact, the
second one the second derivative.
"""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.func import jacfwd
from retrograd.higher_order.operands import read_examples
from retrograd.interop.numpy_protocol.table import O
from retrograd.ode.steppers import Steps, combine
from retrograd.ode.tableaus import Tableau

ITERATIONS = 8
RECORDED = 2
GAMMA3 = 0.435866521508458999  # the root of x³ - 3 x² + 3/2 x - 1/6 between 0 and 1/2
GAMMA5 = 0.26


def _stiffly_accurate(order: int, rows: Sequence[tuple[float, ...]], gamma: float) -> Tableau:
    """Return a tableau, whose last two rows are the weights of the solution and of the less accurate one."""
    full = [(*row, gamma) for row in rows]
    error = tuple(high - low for high, low in zip(full[-1], (*full[-2], 0.0), strict=True))
    return Tableau(order, (0.0, *[sum(row) for row in full]), tuple(full), full[-1], error)


KVAERNO3 = _stiffly_accurate(
    3,
    [
        (GAMMA3,),
        ((-4 * GAMMA3**2 + 6 * GAMMA3 - 1) / (4 * GAMMA3), (1 - 2 * GAMMA3) / (4 * GAMMA3)),
        (
            (6 * GAMMA3 - 1) / (12 * GAMMA3),
            -1 / ((24 * GAMMA3 - 12) * GAMMA3),
            (-6 * GAMMA3**2 + 6 * GAMMA3 - 1) / (6 * GAMMA3 - 3),
        ),
    ],
    GAMMA3,
)
KVAERNO5 = _stiffly_accurate(
    5,
    [
        (0.26,),
        (0.13, 0.84033320996790809),
        (0.22371961478320505, 0.47675532319799699, -0.06470895363112615),
        (0.16648564323248321, 0.10450018841591720, 0.03631482272098715, -0.13090704451073998),
        (0.13855640231268224, 0.0, -0.04245337201752043, 0.02446657898003141, 0.61943039072480676),
        (
            0.13659751177640291, 0.0, -0.05496908796538376, -0.04118626728321046, 0.62993304899016403,
            0.06962479448202728,
        ),
    ],
    GAMMA5,
)  # fmt: skip


class ImplicitSteps(Steps):
    """One solution by a method whose first stage is explicit, and whose others have one diagonal element."""

    def __init__(self, name: str, tableau: Tableau, func: Callable, args: tuple, tolerances: tuple) -> None:
        super().__init__(name, tableau, func, args)
        self._tolerances = tolerances
        self._failed = False

    def step(self, t: Tensor, y: Tensor, h: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the value after a step of size h, and all slopes; a step in which Newton's method fails is marked."""
        tableau, gamma = self._tableau, self._tableau.a[0][-1]
        slopes = [self.slope(t, y) if self._first is None else self._first]
        self._failed = False
        first = self._newton_matrix(t, y, h * gamma)
        if self._failed:
            return y, slopes
        for c, row in zip(tableau.c[1:], tableau.a, strict=True):
            known = y + h * combine(row[:-1], slopes)
            slopes.append(self._stage(t + c * h, known, h * gamma, slopes[-1], first))
            if self._failed:
                return y, slopes
        return y + h * combine(tableau.b, slopes), slopes

    def _newton_matrix(self, t: Tensor, y: Tensor, scale: Tensor) -> Tensor:
        """Return the inverse of 1 - scale df/dy at a point, as a constant.

        A product with the inverse of a small matrix takes a hundredth of the time of a solution by its factors.
        The iteration corrects the rounding errors of the inverse.
        """
        t, y, scale = O.detach(t), O.detach(y), O.detach(scale)
        jacobian = jacfwd(lambda z: O.reshape(self.slope(t, O.reshape(z, y.shape)), (-1,)))(O.reshape(y, (-1,)))
        jacobian = O.detach(jacobian)
        found: Tensor = O.eye(jacobian.shape[-1], dtype=jacobian.dtype) - scale * jacobian
        try:
            found = O.linalg.inv(found)
        except O.linalg.LinAlgError:
            self._failed = True  # another size of the step has another matrix
        return found

    def _correct(self, matrix: Tensor, residual: Tensor) -> Tensor:
        found: Tensor = O.reshape(matrix @ O.reshape(residual, (-1,)), residual.shape)
        return found

    def _stage(self, t: Tensor, known: Tensor, scale: Tensor, start: Tensor, matrix: Tensor) -> Tensor:
        """Return k with k = f(t, known + scale k)."""
        plain_t, plain, size, k = (O.detach(x) for x in (t, known, scale, start))
        last = float("inf")
        for _ in range(ITERATIONS):
            change = O.detach(self._correct(matrix, k - self.slope(plain_t, plain + size * k)))
            k, before, last = k - change, last, self._size(size * change, plain)
            if last < 0.01 or last > 2 * before:
                break
        if last >= 0.01:
            self._failed = True
            return k
        matrix = self._newton_matrix(plain_t, plain + size * k, size)
        for _ in range(RECORDED):
            k = k - self._correct(matrix, k - self.slope(t, known + scale * k))
        return k

    def _size(self, change: Tensor, y: Tensor) -> float:
        """Return a change as a multiple of the allowed error, the largest of all examples."""
        rtol, atol = self._tolerances
        scaled = change / (atol + rtol * O.abs(y))
        found = float(read_examples(O.sqrt(O.mean(O.square(scaled)))).max())
        return found if found == found else float("inf")

    def _error(self, *given: Any) -> float:
        return 1e10 if self._failed else super()._error(*given)
