"""Initial value problems: `odeint` and `solve_ivp`."""

from collections.abc import Callable

from retrograd.core import NotBatchedError
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.autograd_api import jacobian
from retrograd.implicit.closures import Closure, as_floats, differs_between_examples, example_of
from retrograd.implicit.operator import implicit_solution
from retrograd.implicit.solvers import root
from retrograd.interop.numpy_protocol.table import O, cast, holds_tensor, only_default, tensor, values
from retrograd.scipy._array_like import ArrayLike, ArrayOrSequence
from retrograd.scipy._mirror import on_arrays, scipy_member
from retrograd.scipy.integrate.adjoint import Adjoint, AdjointSolution
from retrograd.scipy.integrate.collocation import Trajectory, halve, lagrange, mesh_of

MANY = 64  # unknowns from which on the adjoint equation is used: the matrices of the collocation grow with the square
ROUNDS = 2  # in which steps are halved where the collocation is less accurate than the solver


class Solver:
    """One of SciPy's solvers for y' = f(t, y); `run(slope, y0, times)` returns values at the times, and a `Path`."""

    def __init__(self, run, tolerances):
        self.run = run
        self.tolerances = tolerances  # relative, absolute

    def between(self, times):
        """Return the solver with other output times."""
        plain = values(example_of(times))
        return Solver(lambda slope, y0, times=plain: self.run(slope, y0, times), self.tolerances)


class Path:
    """A solution on arrays: its values at the output times, the ends of the solver's steps, and at any times."""

    def __init__(self, outputs, steps, at, details):
        self.outputs = outputs
        self.steps = steps
        self.at = at  # a function of a vector of times to an array (times, n)
        self.details = details  # SciPy's result


class Solution:
    """The differentiable solution of y' = f(t, y, *args); the solver runs once, and once per example under `vmap`."""

    def __init__(self, name, function, y0, times_of, args, solver, events=()):
        """Run the solver for an example; `times_of(path)` are the output times, the first of which is the start."""
        self.y0 = as_floats(y0)
        _check_start(name, self.y0)
        self._name, self._solver = name, solver
        functions = [_of_vector(f) for f in (function, *events)]
        self._events = events
        closure = Closure(name, functions, args, _first(self.y0))
        self._closure = closure
        example = [example_of(t) for t in (self.y0, *closure.tensors)]
        self._example = [values(x) for x in example]
        self.path = solver.run(self._slope_of(example[1:]), self._example[0])
        self.times = times_of(self.path)
        if self.y0.shape[0] < MANY:
            self._plan([example_of(self.times), *example])

    def _slope_of(self, tensors):
        """Return f as a function of a number and an array."""
        buffer = O.zeros((self.y0.shape[0] + 1,), dtype=self.y0.dtype).numpy()

        def joined(t, y):
            x = buffer.copy()
            x[0], x[1:] = t, y
            return x

        def slope(t, y):
            return self._closure(0, tensor(joined(t, y)), tensors).numpy()

        matrix = jacobian(lambda x: self._closure(0, x, tensors))
        slope.jacobian = lambda t, y: matrix(joined(t, y))[:, 1:]
        slope.events = [self._event_of(i, joined, tensors) for i in range(len(self._events))]
        return slope

    def _event_of(self, i, joined, tensors):
        """Return an event as a function of a number and an array, with SciPy's attributes."""

        def event(t, y):
            return self._closure(i + 1, tensor(joined(t, y)), tensors).item()

        for name in ("terminal", "direction"):
            if hasattr(self._events[i], name):
                setattr(event, name, getattr(self._events[i], name))
        return event

    def _plan(self, example):
        """Choose the mesh, with steps halved where the equations hold less accurately than the solver's tolerances."""
        times, y0, *own = example
        mesh = mesh_of(times.tolist(), list(self.path.steps))
        relative, absolute = self._solver.tolerances
        for final in (*[False] * ROUNDS, True):
            self._problem = Trajectory(self._closure, mesh, self._run)
            self._known = self._values_at_nodes(self.path, times, mesh)
            error = O.abs(self._problem.residual(self._known, [y0, times, *own])[:, -1])
            wrong = error > 10 * (tensor(absolute) + relative * O.abs(self._known[:, -1]))
            found = [k for k, is_wrong in enumerate(O.any(wrong, 1).tolist()) if is_wrong]
            if final or not found:
                break
            mesh = halve(mesh, set(found))
        self._mesh = mesh

    def _values_at_nodes(self, path, times, mesh):
        t, _ = self._problem.nodes(times)
        z = tensor(path.at(t.numpy().reshape(-1))).reshape((*t.shape, -1)).clone()
        z[mesh.last, -1] = tensor(path.outputs)[1:].to(z.dtype)
        return z

    def _run(self, problem, start, tensors):
        """Return the values at the nodes, of the run for the example if this is it."""
        y0, times, *own = tensors
        given = [values(x) for x in (y0, *own)]
        if all((a == b).all() for a, b in zip(given, self._example, strict=True)):
            return self._values_at_nodes(self.path, times, self._mesh)
        return self._values_at_nodes(self._solver.run(self._slope_of(own), given[0], times.numpy()), times, self._mesh)

    def nodes(self):
        """Return the values at the nodes of all steps."""
        shape = (len(self._mesh.interval), *self._known.shape[1:])
        start = O.detach(O.zeros(shape, dtype=self.y0.dtype))
        return implicit_solution([start, self.y0, self.times, *self._closure.tensors], problem=self._problem)

    def outputs(self):
        """Return the values at the output times, (times, n)."""
        if self.y0.shape[0] >= MANY:
            return self._adjoint_outputs()
        return O.cat([O.unsqueeze(self.y0, 0), self.nodes()[self._mesh.last, -1]], 0)

    def interpolate(self, t):
        """Return the values at any times, (n,) for a number and (n, times) for a vector, as SciPy's `sol`."""
        if self.y0.shape[0] >= MANY:
            raise TypeError(f"{self._name}: sol is not available from {MANY} unknowns on; pass the times as t_eval")
        t = cast(tensor(t), self.times.dtype)
        z, (nodes, h) = self.nodes(), self._problem.nodes(self.times)
        ends = nodes[:, -1]
        left = O.cat([O.unsqueeze(self.y0, 0), z[:-1, -1]], 0)
        step = self._steps_at(values(example_of(t)).reshape(-1), values(example_of(ends)))
        part = (O.reshape(t, (-1,)) - (ends - h)[step]) / h[step]
        known = O.cat([O.unsqueeze(left, 1), z], 1)[step]
        found = O.squeeze(O.unsqueeze(cast(lagrange(part), z.dtype), 1) @ known, 1)
        return found.mT if t.ndim else found[0]

    def _steps_at(self, t, ends):
        """Return the index of the step that contains each time."""
        backwards = len(ends) > 1 and ends[-1] < ends[0]
        found = (-ends if backwards else ends).searchsorted(-t if backwards else t)
        return [min(k, len(ends) - 1) for k in found.tolist()]

    def _adjoint_outputs(self):
        def slope(y, t, *tensors):
            return self._closure(0, O.cat([O.reshape(cast(t, y.dtype), (1,)), y], 0), tensors)

        def solve(y0, times, tensors):
            return self._solver.run(self._slope_of([tensor(values(t)) for t in tensors]), y0, times).outputs

        def again(function, y0, times, args):
            return Solution(self._name, function, y0, lambda path: times, args, self._solver.between(times)).outputs()

        problem = Adjoint(slope, solve, again)
        return AdjointSolution.apply(problem, self.y0, self.times, *self._closure.tensors)


def _first(y0):
    return O.cat([O.zeros((1,), dtype=y0.dtype), O.detach(y0)], 0)


def _of_vector(function):
    """Return a function of (t, y, *args) as one of the vector (t, *y), and of args, to a vector."""
    return lambda x, *args: O.reshape(tensor(function(x[0], x[1:], *args)), (-1,))


def _check_start(name, y0):
    if y0.ndim != 1:
        raise ValueError(f"{name}: y0 must be a vector, got shape {tuple(y0.shape)}")
    if y0.dtype.kind == "c":
        raise TypeError(f"{name}: y0 is complex; solve for the real and the imaginary part")


# ------------------------------------------------------------------------------------------------------- odeint


def odeint(
    func: Callable, y0: ArrayLike, t: ArrayOrSequence, args=(), *, full_output=False, tfirst=False, rtol=None,
    atol=None, **options,
):  # fmt: skip
    """Return the solution of dy/dt = func(y, t, *args) at the times t, one row each, with y = y0 at the first.

    `func` gets tensors and returns a tensor, or a list, of the shape of y; with tfirst it gets (t, y, *args).  The
    solution is differentiable to any order in y0, t, the tensors in `args` and those that `func` reads, in reverse
    and forward mode and under `vmap`: see `solve_ivp`.  With full_output the result is (y, infodict).  Further
    options are SciPy's.  If no argument is a tensor and `func` reads none, this is SciPy's function.

    Raises ValueError for y0 and t that are no vectors, TypeError for Dfun, which is not needed.

    After `scipy.integrate.odeint`.

    >>> import retrograd as rg
    >>> rate = rg.tensor(0.5, dtype=rg.float64, requires_grad=True)
    >>> y = odeint(lambda y, t: -rate * y, [1.0], [0.0, 2.0])
    >>> rg.autograd.grad(y[-1, 0], rate)[0].round(decimals=4)  # -2 exp(-2 rate)
    tensor(-0.7358, dtype=float64)
    """
    args = args if isinstance(args, tuple) else (args,)
    function = func if tfirst else lambda t, y, *given: func(y, t, *given)
    if not _has_tensors((y0, t, args), function, (t, y0, *args)):
        given = {"full_output": full_output, "tfirst": tfirst, "rtol": rtol, "atol": atol, **options}
        return scipy_member("scipy.integrate").odeint(func, y0, t, args, **given)
    only_default("odeint", Dfun=(options.pop("Dfun", None), None))
    y0, t = as_floats(y0), as_floats(t)
    if t.ndim != 1 or y0.ndim != 1:
        raise ValueError(f"odeint: y0 and t must be vectors, got shapes {tuple(y0.shape)} and {tuple(t.shape)}")
    plain_times = values(example_of(t))

    def run(slope, y0, times=plain_times):
        given = {"rtol": rtol, "atol": atol, "tfirst": True, **options}
        solve = scipy_member("scipy.integrate").odeint
        y, details = solve(slope, y0, times, full_output=True, **given)

        def at(nodes):
            return solve(slope, y0, [times[0], *nodes], **given)[1:]

        return Path(y, _steps(times, details["nst"]), at, details)

    tolerances = [1.49012e-8 if given is None else given for given in (rtol, atol)]
    solution = Solution("odeint", function, y0, lambda path: t, args, Solver(run, tolerances))
    return (solution.outputs(), solution.path.details) if full_output else solution.outputs()


def _has_tensors(given, function, start):
    """Return whether an argument is a tensor, or the function reads one: then its result at the start is one."""
    if holds_tensor(given):
        return True
    times, y0, *args = start
    return holds_tensor((function(float(_flat(times)[0]), _flat(y0), *args),))


def _flat(x):
    return values(tensor(x)).reshape(-1)


def _steps(times, counts):
    """Return the ends of steps: in each interval as many equal ones as the solver has made there."""
    steps, before = [], 0
    for a, b, count in zip(times[:-1].tolist(), times[1:].tolist(), counts.tolist(), strict=True):
        number = max(1, count - before)
        steps += [a + (b - a) * k / number for k in range(1, number)]
        before = count
    return steps


# ---------------------------------------------------------------------------------------------------- solve_ivp


def solve_ivp(
    fun: Callable, t_span: ArrayOrSequence, y0: ArrayOrSequence, method="RK45", t_eval=None, dense_output=False,
    events=None, vectorized=False, args=None, **options,
):  # fmt: skip
    """Return SciPy's result for dy/dt = fun(t, y, *args), with tensors as its `t`, `y`, `t_events` and `y_events`.

    `fun` gets tensors and returns a tensor, or a list, of the shape of y.  All methods and options of SciPy apply; the
    implicit methods get the Jacobian of `fun`, unless jac is given.  The result is differentiable to any order, in
    reverse and forward mode and under `vmap`, in y0, t_span, t_eval, the tensors in `args` and those that `fun` and
    the events read.  With dense_output, `sol` is a function of times, in which it is differentiable too.  Without
    t_eval, the times are SciPy's steps, as constants; under `vmap` they are those of the first example.  The times of
    events are differentiable, and with them the values there; a terminal event ends `t` and `y`.  Events that differ
    between the examples of `vmap` are a NotBatchedError.

    Up to 63 unknowns, derivatives are those of the collocation equations of Radau on SciPy's steps: their cost does
    not depend on the number of parameters, and is mostly below that of the solution.  From 64 unknowns on, reverse
    mode solves the adjoint equation backwards from output to output, and forward mode the tangent equation; then the
    operator is not available under `vmap`, and `sol` is refused.  Derivatives are as accurate as the solution: rtol
    and atol apply to both.

    If no argument is a tensor and `fun` reads none, this is SciPy's function.  Raises ValueError for a y0 that is no
    vector, TypeError for a complex one.

    After `scipy.integrate.solve_ivp`.

    >>> import retrograd as rg
    >>> g = rg.tensor(9.81, dtype=rg.float64, requires_grad=True)
    >>> ground = lambda t, y: y[0]
    >>> ground.terminal = True
    >>> found = solve_ivp(lambda t, y: [y[1], -g], (0, 9), [20.0, 0.0], events=ground)
    >>> found.t_events[0].round(decimals=4), rg.autograd.grad(found.t_events[0][0], g)[0].round(decimals=4)
    (tensor([2.0193], dtype=float64, grad_fn=<RoundBackward1>), tensor(-0.1029, dtype=float64))
    """
    args = () if args is None else tuple(args) if isinstance(args, (tuple, list)) else (args,)
    if len(t_span) != 2:
        raise ValueError(f"solve_ivp: t_span must be a pair of times, got {len(t_span)} of them")
    conditions = [] if events is None else [events] if callable(events) else list(events)
    if not any(_has_tensors((t_span, y0, t_eval, args), f, (t_span, y0, *args)) for f in (fun, *conditions)):
        return scipy_member("scipy.integrate").solve_ivp(
            fun, t_span, y0, method, t_eval, dense_output, events, vectorized, args or None, **options
        )
    first, last = (as_floats(t) for t in t_span)
    requested = None if t_eval is None else as_floats(t_eval)
    span = [values(example_of(t)).item() for t in (first, last)]
    known = None if requested is None else values(example_of(requested))
    if callable(options.get("jac")):
        options["jac"] = on_arrays(options["jac"], args)
    own_jacobian = method in ("Radau", "BDF", "LSODA") and options.get("jac") is None

    def run(slope, y0, times=None):
        given = {**options, "jac": slope.jacobian} if own_jacobian else options
        solve = scipy_member("scipy.integrate").solve_ivp
        if times is None:
            found = solve(slope, span, y0, method, known, True, slope.events or None, **given)
        else:
            found = solve(slope, (times[0], times[-1]), y0, method, None, True, **given)
        if not found.success:
            raise RuntimeError(f"solve_ivp: {found.message}")
        rows = found.y.T if times is None else found.sol(times[1:]).T
        first_row = [] if known is None and times is None else [O.unsqueeze(tensor(y0), 0)]
        outputs = O.cat([*first_row, tensor(rows)], 0)
        return Path(outputs.numpy(), found.sol.ts, lambda t: found.sol(t).T, found)

    tolerances = [options.get("rtol", 1e-3), options.get("atol", 1e-6)]
    solver = Solver(run, tolerances)
    crossings = Crossings(fun, conditions, y0, first, args, solver)

    def times_of(path):
        found = path.details
        crossings.find(found)
        if requested is not None:
            return O.cat([O.reshape(first, (1,)), requested[: len(found.t)]], 0)
        end = last if found.status == 0 else crossings.last(found)
        return O.cat([O.reshape(first, (1,)), tensor(found.t[1:-1]), O.reshape(end, (1,))], 0)

    solution = Solution("solve_ivp", fun, y0, times_of, args, solver, conditions)
    outputs, times = solution.outputs(), solution.times
    crossings.check(times[-1], outputs[-1])
    skipped = 0 if requested is None else 1
    fields = {"t": times[skipped:], "y": outputs[skipped:].mT, "sol": solution.interpolate if dense_output else None}
    found = solution.path.details
    return type(found)({**found, **fields, **crossings.fields()})


class Crossings:
    """The times of events, each the root of event(t, y(t)), and the values there."""

    def __init__(self, fun, conditions, y0, first, args, solver):
        self._conditions = conditions
        self._args = args
        self._solve_to = lambda t: Solution(
            "solve_ivp", fun, y0, lambda path: O.stack([first, t]), args, solver.between(O.stack([first, t]))
        ).outputs()[-1]
        self._times = None

    def find(self, found):
        """Find the times as tensors, near those of SciPy's result."""
        if self._conditions:
            pairs = zip(self._conditions, found.t_events, strict=True)
            self._times = [[self._time(event, t) for t in times] for event, times in pairs]

    def check(self, t, y):
        """Raise if an event differs between the examples of `vmap`: the times that SciPy finds are the first one's."""
        if any(differs_between_examples(tensor(event(t, y, *self._args))) for event in self._conditions):
            raise NotBatchedError(
                "solve_ivp: the times and the number of events may differ between the examples of vmap; solve for each "
                "example by itself, in a loop"
            )

    def _time(self, event, t):
        def at(t):
            return O.reshape(tensor(event(t, self._solve_to(t), *self._args)), ())

        return root(at, tensor(t), solver=lambda _, t: t)

    def last(self, found):
        """Return the time of the terminal event that ended the solution."""
        ends = [times[-1] for times, plain in zip(self._times, found.t_events, strict=True)
                if len(plain) and plain[-1] == found.t[-1]]  # fmt: skip
        return ends[0] if ends else tensor(found.t[-1])

    def fields(self):
        """Return the fields of SciPy's result about events."""
        if self._times is None:
            return {}
        empty = O.zeros((0,), dtype="float64")
        times = [O.stack(group) if group else empty for group in self._times]
        rows = [O.stack([self._solve_to(t) for t in group]) if group else empty for group in self._times]
        return {"t_events": times, "y_events": rows}


suggest_in_module(globals())
