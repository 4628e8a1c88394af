"""Problems that solvers solve: equations F(z) = 0, and minima with their optimality conditions as such equations."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.func import grad, jacrev
from retrograd.implicit.closures import Closure
from retrograd.interop.numpy_protocol.table import O, cast, tensor

NO_CONSTRAINTS: dict[str, Any] = {"equalities": None, "inequalities": None, "bounds": None}
ACTIVE = 1e-6  # an inequality below this, relative to the largest, holds with equality


class Problem(ABC):
    """Equations in a vector z and in tensors; `method(problem, start, tensors)` finds z from a start."""

    def __init__(self, closure: Closure, shape: tuple[int, ...], method: Callable) -> None:
        self.closure = closure
        self.name = closure.name
        self.shape = shape  # of x, which z begins with
        self._method = method

    def solve(self, start: Any, tensors: Sequence[Any]) -> Any:
        """Return the solution as an array in the dtype of the start; all operands are arrays."""
        found = self._method(self, tensor(start), [tensor(t) for t in tensors])
        return found.detach().numpy().astype(start.dtype, copy=False).reshape(start.shape)

    def function(self, tensors: Sequence[Tensor], index: int = 0) -> Callable:
        """Return one of the problem's functions, of x alone; arrays give arrays."""

        def of_x(x: Any) -> Any:
            if isinstance(x, Tensor):
                return self.closure(index, x, tensors)
            return self.closure(index, tensor(x), tensors).numpy()

        return of_x

    @abstractmethod
    def residual(self, z: Tensor, tensors: Sequence[Tensor]) -> Tensor:
        """Return F(z), which is 0 at the solution and has the shape of z."""

    def jacobian(self, z: Tensor, tensors: Sequence[Tensor]) -> Tensor:
        """Return dF/dz, a matrix."""
        found: Tensor = jacrev(lambda z: self.residual(z, tensors))(z)
        return found

    def solve_linear(self, z: Tensor, tensors: Sequence[Tensor], g: Tensor, transposed: bool) -> Tensor:
        """Return the solution of dF/dz x = g, or of the transposed system."""
        matrix = self.jacobian(z, tensors)
        found: Tensor = O.linalg.solve(matrix.mT if transposed else matrix, g)
        return found


class Root(Problem):
    """f(x) = 0, or f(x) = x for a fixed point (`shift` is 1)."""

    def __init__(self, closure: Closure, shape: tuple[int, ...], method: Callable, shift: int = 0) -> None:
        super().__init__(closure, shape, method)
        self._shift = shift

    def residual(self, z: Tensor, tensors: Sequence[Tensor]) -> Tensor:
        """Return f(z) - shift z, as a vector."""
        out = self.closure(0, O.reshape(z, self.shape), tensors)
        if out.shape != self.shape:
            raise ValueError(f"{self.name}: the function must return the shape of x, {self.shape}, got {out.shape}")
        flat = cast(O.reshape(out, (-1,)), z.dtype)
        return flat - z if self._shift else flat


class Minimum(Problem):
    """A minimum of f(x) where h(x) = 0, g(x) >= 0 and low <= x <= high; z is x, then the multipliers of h and of g.

    F is the gradient of the Lagrangian f - λ h - μ g, or the distance to the bound where that holds x; h; and the
    smaller one of μ and g (W. Karush, 1939; H. W. Kuhn and A. W. Tucker, Nonlinear Programming, 1951).
    `parts` gives the indices of h, g and the bounds among the functions of the closure; None where there is none.
    """

    def __init__(self, closure: Closure, shape: tuple, method: Callable, parts: dict[str, Any]) -> None:
        super().__init__(closure, shape, method)
        self._parts = parts

    def residual(self, z: Tensor, tensors: Sequence[Tensor]) -> Tensor:
        """Return the optimality conditions."""
        x, multipliers = self.split(z)
        conditions, lagrangian, used = [], self._flat(0, tensors), 0
        for name in ("equalities", "inequalities"):
            if self._parts[name] is not None:
                function = self._flat(self._parts[name], tensors)
                value = function(x)
                own = multipliers[used : used + value.shape[0]]
                used += value.shape[0]
                lagrangian = _minus(lagrangian, own, function)
                conditions.append(value if name == "equalities" else O.where(own > value, value, own))
        slope = grad(lambda x: O.sum(lagrangian(x)))(x)
        return O.cat([self._stationary(x, slope, tensors), *conditions], 0)

    def _stationary(self, x: Tensor, slope: Tensor, tensors: Sequence[Tensor]) -> Tensor:
        if self._parts["bounds"] is None:
            return slope
        low, high = self.bounds(x, tensors)
        moved = x - slope
        return O.where(moved < low, x - low, O.where(moved > high, x - high, slope))

    def bounds(self, x: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the bounds of x, as vectors."""
        both = cast(self.closure(self._parts["bounds"], O.reshape(x, self.shape), tensors), x.dtype)
        return O.reshape(both[0], (-1,)), O.reshape(both[1], (-1,))

    def split(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return x and the multipliers, as vectors."""
        size = 1
        for n in self.shape:
            size *= n
        return z[:size], z[size:]

    def _flat(self, index: int, tensors: Sequence[Tensor]) -> Callable:
        def function(x: Tensor) -> Tensor:
            return cast(O.reshape(self.closure(index, O.reshape(x, self.shape), tensors), (-1,)), x.dtype)

        return function

    def with_multipliers(self, x: Tensor, tensors: Sequence[Tensor]) -> Tensor:
        """Return z at a solution x: the multipliers that balance the gradients of the constraints that hold x."""
        x = O.reshape(x, (-1,))
        functions = [self._flat(self._parts[n], tensors) for n in ("equalities", "inequalities") if self._parts[n]]
        if not functions:
            return x
        values = [f(x) for f in functions]
        active = O.cat([
            O.ones_like(v, dtype=bool) if i == 0 and self._parts["equalities"] else v < ACTIVE * (1 + O.amax(O.abs(v)))
            for i, v in enumerate(values)
        ], 0)  # fmt: skip
        normals = O.cat([jacrev(f)(x) for f in functions], 0)
        slope = grad(lambda x: O.sum(self._flat(0, tensors)(x)))(x)
        free = O.ones_like(x, dtype=bool)
        if self._parts["bounds"] is not None:
            low, high = self.bounds(x, tensors)
            margin = ACTIVE * (1 + O.abs(x))
            free = (x - low > margin) & (high - x > margin)
        held = O.where(active, 1.0, 0.0)
        system = (O.where(free, normals, 0.0) * O.unsqueeze(held, 1)).mT
        multipliers = O.linalg.pinv(system) @ O.where(free, slope, 0.0)
        return O.cat([x, multipliers * held], 0)


def _minus(lagrangian: Callable, multipliers: Tensor, function: Callable) -> Callable:
    return lambda x: O.sum(lagrangian(x)) - O.sum(multipliers * function(x))


def newton(problem: Problem, z: Tensor, tensors: Sequence[Tensor]) -> Tensor:
    """Return the solution by Newton's method, for the samples of the operator and for small problems."""
    for _ in range(50):
        step = O.linalg.solve(problem.jacobian(z, tensors), problem.residual(z, tensors))
        z = z - step
        if float(O.amax(O.abs(step))) <= 1e-15 * float(1 + O.amax(O.abs(z))):
            break
    return z


def sample_problem(*example: Tensor) -> Problem:
    """Return the problem sinh(x) = A b with the tensors A and b, whose solution is arcsinh(A b)."""
    start, A, b = example
    closure = Closure("sample", [lambda x, A, b: O.sinh(x) - A @ b], (A, b), start)
    return Root(closure, start.shape, newton)
