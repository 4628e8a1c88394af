"""Boundary value problems: `solve_bvp`, differentiated by its collocation equations on SciPy's mesh."""

from collections.abc import Callable

from retrograd.core import at
from retrograd.core.level import NotBatchedError
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func import jacfwd, vmap
from retrograd.implicit.closures import Closure, as_floats, example_of
from retrograd.implicit.operator import implicit_solution
from retrograd.implicit.problems import Problem
from retrograd.interop.numpy_protocol.table import O, cast, holds_tensor, only_default, tensor, values
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy._mirror import on_arrays, scipy_member
from retrograd.scipy.interpolate import CubicHermiteSpline
from retrograd.scipy.sparse.linalg import spsolve


class Collocation(Problem):
    """The equations of Lobatto's collocation on a mesh, and the boundary conditions; z is y (points, n), and p.

    The closure's functions are the right-hand side of (t, *y, *p) and the boundary conditions of (*y_a, *y_b, *p).
    """

    def __init__(self, closure, mesh, n, method):
        super().__init__(closure, (), method)
        self._mesh = mesh
        self._n = n

    def split(self, z):
        """Return y, (points, n), and the vector p."""
        size = self._mesh.shape[0] * self._n
        return O.reshape(z[:size], (-1, self._n)), z[size:]

    def points(self, left, right):
        """Return the mesh between two ends."""
        return left + cast(self._mesh, left.dtype) * (right - left)

    def slopes(self, x, y, p, tensors):
        """Return the right-hand side at points, (points, n)."""
        rows = O.cat([O.unsqueeze(x, 1), y, O.expand(p, (x.shape[0], *p.shape))], 1)
        return self._on_rows(lambda row: self.closure(0, row, tensors), rows)

    def _on_rows(self, function, rows):
        try:
            return vmap(function)(rows)
        except NotBatchedError:
            return O.stack([function(row) for row in O.unbind(rows)])

    def residual(self, z, tensors):
        """Return the residuals of all intervals, then those of the boundary conditions."""
        left, right, *own = tensors
        y, p = self.split(z)
        x = self.points(left, right)
        f = self.slopes(x, y, p, own)
        h = O.unsqueeze(x[1:] - x[:-1], 1)
        middle = (y[1:] + y[:-1]) / 2 - h / 8 * (f[1:] - f[:-1])
        f_middle = self.slopes((x[1:] + x[:-1]) / 2, middle, p, own)
        gaps = y[1:] - y[:-1] - h / 6 * (f[:-1] + f[1:] + 4 * f_middle)
        ends = self.closure(1, O.cat([y[0], y[-1], p], 0), own)
        return O.cat([O.reshape(gaps, (-1,)), O.reshape(ends, (-1,))], 0)

    def solve_linear(self, z, tensors, g, transposed):
        """Return the solution of the sparse system of all intervals and the boundary conditions."""
        left, right, *own = tensors
        y, p = self.split(z)
        x, n = self.points(left, right), self._n
        rows = O.cat([
            O.unsqueeze(x[:-1], 1), O.unsqueeze(x[1:], 1), y[:-1], y[1:], O.expand(p, (x.shape[0] - 1, *p.shape)),
        ], 1)  # fmt: skip
        blocks = self._on_rows(jacfwd(lambda row: self._gap(row, own)), rows)[:, :, 2:]
        ends = jacfwd(lambda given: O.reshape(self.closure(1, given, own), (-1,)))(O.cat([y[0], y[-1], p], 0))
        entries = O.cat([O.reshape(blocks, (-1,)), O.reshape(ends, (-1,))], 0)
        row, column = _pattern(x.shape[0], n, p.shape[0])
        indices = [column, row] if transposed else [row, column]
        size = z.shape[0]
        matrix = O.sparse_coo_tensor(O.stack([tensor(i) for i in indices]), cast(entries, z.dtype), (size, size))
        return spsolve(matrix, g)

    def _gap(self, row, own):
        """Return the residual of one interval, from (x_left, x_right, *y_left, *y_right, *p)."""
        n = self._n
        a, b, left, right, p = row[:1], row[1:2], row[2 : 2 + n], row[2 + n : 2 + 2 * n], row[2 + 2 * n :]
        first, last = (self.closure(0, O.cat([x, y, p], 0), own) for x, y in ((a, left), (b, right)))
        h = b - a
        middle = (left + right) / 2 - h / 8 * (last - first)
        inside = self.closure(0, O.cat([(a + b) / 2, middle, p], 0), own)
        return right - left - h / 6 * (first + last + 4 * inside)


def _pattern(points, n, k):
    """Return the rows and the columns of the entries of the Jacobian: blocks of all intervals, then the conditions."""
    size = points * n
    intervals = O.reshape(O.arange(points - 1), (-1, 1, 1))
    inner = O.cat([O.arange(2 * n), O.arange(k) + size], 0)
    shifts = O.cat([O.ones((2 * n,), dtype="int64"), O.zeros((k,), dtype="int64")], 0)
    columns = O.reshape(inner, (1, 1, -1)) + O.reshape(shifts, (1, 1, -1)) * intervals * n
    rows = intervals * n + O.reshape(O.arange(n), (1, -1, 1))
    shape = (points - 1, n, 2 * n + k)
    first = size - n
    end_columns = O.cat([O.arange(n), O.arange(n) + first, O.arange(k) + size], 0)
    end_rows = O.unsqueeze(O.arange(n + k), 1) + first
    end_shape = (n + k, 2 * n + k)
    pairs = [(rows, shape, end_rows), (columns, shape, O.unsqueeze(end_columns, 0))]
    return [O.cat([O.reshape(O.expand(a, s), (-1,)), O.reshape(O.expand(b, end_shape), (-1,))], 0) for a, s, b in pairs]


def solve_bvp(
    fun: Callable, bc: Callable, x: ArrayOrSequence, y: ArrayOrSequence, p=None, S=None, fun_jac=None, bc_jac=None,
    tol=0.001, max_nodes=1000, verbose=0, bc_tol=None,
):  # fmt: skip
    """Return SciPy's result for y' = fun(x, y, p) with bc(y(a), y(b), p) = 0, with tensors as its `y`, `yp`, `p`.

    `fun` gets tensors x, (points,), and y, (n, points), and returns (n, points) or a list of n rows; `bc` returns n
    + k values for k parameters p. `x` is the first mesh, and its ends may be tensors: `found.x` moves with these.
    `y` and `p` are starts, which no gradient reaches. `y`, `yp`, `p` and `sol`, a function of points, are
    differentiable to any order in what `fun` and `bc` read. Their derivative is that of the collocation equations
    on SciPy's last mesh, a sparse system, so it is as accurate as the solution: see tol. Under `vmap` the mesh is
    that of the first example.

    The Jacobians fun_jac and bc_jac are only used by SciPy.  Raises RuntimeError if SciPy finds no solution, and
    TypeError for S and for complex y.  If no argument is a tensor and the functions read none, this is SciPy's
    function.

    After `scipy.integrate.solve_bvp`.

    >>> import numpy as np
    >>> import retrograd as rg
    >>> k = rg.tensor(1.0, dtype=rg.float64, requires_grad=True)
    >>> found = solve_bvp(
    ...     lambda x, y: [y[1], -k * y[0]], lambda a, b: [a[0], b[0] - 1.0],
    ...     np.linspace(0, 1, 5), np.ones((2, 5)), tol=1e-8,
    ... )
    >>> slope = rg.autograd.grad(found.sol(0.5)[0], k)[0]  # of sin(sqrt(k) / 2) / sin(sqrt(k))
    >>> slope.round(decimals=4)
    tensor(0.0778, dtype=float64)
    """
    plain_x, plain_y = (values(example_of(O.detach(as_floats(given)))) for given in (x, y))
    if plain_x.ndim != 1 or plain_y.ndim != 2 or len(plain_x) != plain_y.shape[1]:
        raise ValueError(f"solve_bvp: expected x (points,) and y (n, points), got {plain_x.shape} and {plain_y.shape}")
    plain_p = None if p is None else values(example_of(O.detach(as_floats(p))))
    given = () if p is None else (plain_p,)
    ends = (plain_y[:, 0], plain_y[:, -1])
    read = [fun(plain_x, plain_y, *given), bc(*ends, *given)] if not holds_tensor((x, y, p)) else [x, y, p]
    options = {"fun_jac": fun_jac, "bc_jac": bc_jac, "tol": tol, "max_nodes": max_nodes, "verbose": verbose,
               "bc_tol": bc_tol}  # fmt: skip
    if not holds_tensor((read, x, y, p)):
        return scipy_member("scipy.integrate").solve_bvp(fun, bc, plain_x, plain_y, p, S, **options)
    only_default("integrate.solve_bvp", S=(S, None))
    if plain_y.dtype.kind == "c":
        raise TypeError("solve_bvp: y is complex; solve for the real and the imaginary part")
    return BoundaryProblem(fun, bc, as_floats(x), plain_y, plain_p, options).result()


class BoundaryProblem:
    """A boundary value problem; SciPy's solver runs once, and once per example under `vmap`."""

    def __init__(self, fun, bc, x, y, p, options):
        self._n, count = len(y), 0 if p is None else len(p)
        self._with_p = (lambda f, given, p: f(*given, p)) if count else (lambda f, given, p: f(*given))
        self._start = y, p
        self._count = count
        self._options = options
        self._ends = (x[0], x[-1])
        start = O.detach(
            O.cat([O.reshape(example_of(x)[:1], (1,)), tensor(y[:, 0]), tensor(y[:, 0]), *self._tail(p)], 0)
        )
        self._closure = Closure("solve_bvp", [self._slope_of(fun), self._conditions_of(bc)], (), start)
        example = [example_of(t) for t in (*self._ends, *self._closure.tensors)]
        self._example = [values(t) for t in example]
        self._first_mesh = values(example_of(O.detach(x)))
        self._found = self._run(example)
        mesh = (self._found.x - self._found.x[0]) / (self._found.x[-1] - self._found.x[0])
        with at(None, False):
            self._problem = Collocation(self._closure, tensor(mesh), self._n, self._values)

    def _tail(self, p):
        return [] if p is None else [tensor(p)]

    def _slope_of(self, fun):
        """Return the right-hand side as a function of a vector (t, *y, *p)."""
        n = self._n

        def slope(row):
            y, p = O.unsqueeze(row[1 : n + 1], 1), row[row.shape[0] - self._count :]
            return O.reshape(tensor(self._with_p(fun, (row[:1], y), p)), (-1,))

        return slope

    def _conditions_of(self, bc):
        n = self._n

        def conditions(row):
            return O.reshape(
                tensor(self._with_p(bc, (row[:n], row[n : 2 * n]), row[2 * n : 2 * n + self._count])), (-1,)
            )

        return conditions

    def _run(self, tensors):
        """Return SciPy's result for plain tensors."""
        left, right, *own = tensors
        problem = Collocation(self._closure, None, self._n, None)

        def slope(x, y, *p):
            with at(None, False):
                return problem.slopes(tensor(x), tensor(y.T.copy()), _vector(p), own).numpy().T

        def conditions(a, b, *p):
            with at(None, False):
                return self._closure(1, O.cat([tensor(a), tensor(b), _vector(p)], 0), own).numpy()

        y, p = self._start
        mesh, options = self._first_mesh, dict(self._options)
        mesh = left.item() + (mesh - mesh[0]) / (mesh[-1] - mesh[0]) * (right.item() - left.item())
        for name in ("fun_jac", "bc_jac"):
            if options[name] is not None:
                options[name] = on_arrays(options[name], ())
        found = scipy_member("scipy.integrate").solve_bvp(slope, conditions, mesh, y, p, None, **options)
        if not found.success:
            raise RuntimeError(f"solve_bvp: {found.message}")
        return found

    def _values(self, problem, start, tensors):
        """Return z for an example: at the mesh of the first one."""
        same = all((values(t) == known).all() for t, known in zip(tensors, self._example, strict=True))
        found = self._found if same else self._run(tensors)
        x = values(problem.points(*tensors[:2]))
        y = found.y if same else found.sol(x)
        return O.cat([O.reshape(tensor(y.T.copy()), (-1,)), *self._tail(found.p)], 0)

    def result(self):
        """Return SciPy's result with tensors."""
        found, problem, own = self._found, self._problem, self._closure.tensors
        start = O.zeros((found.x.size * self._n + self._count,), dtype=tensor(found.y).dtype)
        y, p = problem.split(implicit_solution([start, *self._ends, *own], problem=problem))
        x = problem.points(*self._ends)
        slopes = problem.slopes(x, y, p, own)
        spline = CubicHermiteSpline(x, y, slopes)

        def sol(points, nu=0):
            return O.movedim(spline(points, nu), -1, 0)

        fields = {"x": x, "y": y.mT, "yp": slopes.mT, "p": p if self._count else None, "sol": sol}
        return type(found)({**found, **fields})


def _vector(p):
    return tensor(p[0]) if p else O.zeros((0,), dtype="float64")


suggest_in_module(globals())
