"""`scipy.integrate`: `odeint` is differentiable; the rest is SciPy's own."""

from retrograd.autograd import Function
from retrograd.core import Tensor
from retrograd.func.autograd_api import make_jvp, make_vjp
from retrograd.interop.numpy_protocol.table import O, as_floating, holds_tensor, only_default, tensor, values
from retrograd.scipy._mirror import fallback_members, scipy_member


def odeint(func, y0, t, args=(), **kwargs):
    """Return the solution of dy/dt = func(y, t, *args) at the times t, one row each, with y = y0 at the first.

    `func` returns an array shaped as y. Reverse mode solves the adjoint equation from the last time back to the first,
    forward mode the tangent equation (L. S. Pontryagin et al., The Mathematical Theory of Optimal Processes, 1962),
    each by `odeint`, so derivatives exist to any order.
    """
    args = args if isinstance(args, tuple) else (args,)
    if not holds_tensor((y0, t, args)):
        return scipy_member("scipy.integrate").odeint(func, y0, t, args, **kwargs)
    only_default("odeint", **{name: (kwargs.get(name, False), False) for name in ("full_output", "tfirst", "Dfun")})
    y0, t = as_floating(y0), as_floating(t)
    if t.ndim != 1 or y0.ndim != 1:
        raise ValueError(f"odeint: y0 and t must be vectors, got shapes {y0.shape} and {t.shape}")
    tensor_positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    problem = _Problem(func, args, tensor_positions, kwargs)
    return _Solution.apply(problem, y0, t, *[as_floating(args[i]) for i in tensor_positions])


class _Problem:
    """Return the right-hand side as a function of y, t and the tensor arguments, and the solver's options."""

    def __init__(self, func, args, tensor_positions, options):
        self._func = func
        self._args = args
        self._tensor_positions = tensor_positions
        self.options = options

    def slope(self, y, t, *tensors):
        """Return dy/dt, as a tensor."""
        args = list(self._args)
        for i, value in zip(self._tensor_positions, tensors, strict=True):
            args[i] = value
        return tensor(self._func(y, t, *args))


class _Solution(Function):
    """Return the solution of a problem from y0 at the times t."""

    @staticmethod
    def forward(problem, y0, t, *args):
        known = tuple(values(a) for a in (y0, t, *args))
        solved = scipy_member("scipy.integrate").odeint(
            lambda y, now, *rest: values(problem.slope(y, now, *rest)), *known[:2], known[2:], **problem.options
        )
        return tensor(solved)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.problem, *tensors = inputs
        ctx.save_for_backward(output, *tensors[1:])
        ctx.save_for_forward(output, *tensors[1:])

    @staticmethod
    def backward(ctx, g):
        y, t, *args = ctx.saved_tensors
        slope = ctx.problem.slope
        adjoint, totals = g[-1], [O.zeros_like(a) for a in args]
        at_start, times = O.zeros_like(adjoint), []
        for i in range(t.shape[0] - 1, 0, -1):
            times.append(O.sum(g[i] * slope(y[i], t[i], *args)))
            at_start, totals = _integrate_adjoint(ctx.problem, y[i], adjoint, totals, O.stack([t[i], t[i - 1]]), args)
            adjoint = at_start + g[i - 1]
        times.append(-O.sum(at_start * slope(y[0], t[0], *args)))
        return (None, adjoint, O.stack(times[::-1]), *totals)

    @staticmethod
    def jvp(ctx, _, dy0, dt, *dargs):
        y, t, *args = ctx.saved_tensors
        dargs = [O.zeros_like(a) if d is None else d for a, d in zip(args, dargs, strict=True)]
        dt = O.zeros_like(t) if dt is None else dt
        start = -ctx.problem.slope(y[0], t[0], *args) * dt[0]
        moved = _integrate_tangent(ctx.problem, y[0], start if dy0 is None else start + dy0, t, args, dargs)
        slopes = [ctx.problem.slope(y[i], t[i], *args) for i in range(t.shape[0])]
        return moved + O.stack(slopes) * O.unsqueeze(dt, 1)


def _integrate_adjoint(problem, y, adjoint, totals, interval, args):
    """Integrate from the end of an interval to its start: the adjoint, and the accumulated gradients of arguments."""
    size, places = y.shape[0], range(2, 2 + len(args))

    def augmented(state, now, *args):
        pull, slope = make_vjp(problem.slope, (0, *places))(state[:size], now, *args)
        slopes = [tensor(g) for g in pull(state[size : 2 * size])]
        return O.cat([tensor(slope), *[-O.reshape(g, (-1,)) for g in slopes]], 0)

    state = O.cat([y, adjoint, *[O.reshape(total, (-1,)) for total in totals]], 0)
    end = odeint(augmented, state, interval, tuple(args), **problem.options)[-1]
    sizes = [a.numel() for a in args]
    parts = O.split(end, [size, size, *sizes], 0)
    return parts[1], [O.reshape(part, a.shape) for part, a in zip(parts[2:], args, strict=True)]


def _integrate_tangent(problem, y0, dy0, t, args, dargs):
    """Return the tangent of the solution at all times."""
    size, count = y0.shape[0], len(args)
    places = (0, *range(2, 2 + count))

    def augmented(state, now, *both):
        push = make_jvp(problem.slope, places)(state[:size], now, *both[:count])
        slope, along = push((state[size:], *both[count:]))
        return O.cat([tensor(slope), tensor(along)], 0)

    both = odeint(augmented, O.cat([y0, dy0], 0), t, (*args, *dargs), **problem.options)
    return both[:, size:]


__getattr__, __dir__ = fallback_members("scipy.integrate")
