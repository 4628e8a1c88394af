"""Trajectories of many unknowns, differentiated by the adjoint equation, which is solved backwards between outputs.

The outputs are the checkpoints: from each, the state and the adjoint are integrated to the output before it, so no step
is stored (L. S. Pontryagin et al., The Mathematical Theory of Optimal Processes, 1962). Forward mode solves the tangent
equation.
"""

from retrograd.autograd import Function
from retrograd.func.autograd_api import make_jvp, make_vjp
from retrograd.interop.numpy_protocol.table import O, tensor, values


class Adjoint:
    """y' = slope(y, t, *tensors), the solver for arrays, and the function that solves other equations by it."""

    def __init__(self, slope, solve, again):
        self.slope = slope
        self.solve = solve  # (y0, times, tensors) on arrays
        self.again = again  # (slope, y0, times, tensors), differentiable


class AdjointSolution(Function):
    """Return the solution of a problem from y0 at the times t."""

    @staticmethod
    def forward(problem, y0, t, *tensors):
        return tensor(problem.solve(*(values(a) for a in (y0, t)), tensors))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.problem, *tensors = inputs
        ctx.save_for_backward(output, *tensors[1:])
        ctx.save_for_forward(output, *tensors[1:])

    @staticmethod
    def vmap(info, in_dims, problem, *tensors):
        """Solve for one example after the other."""
        first = [t if d is None else O.movedim(t, d, 0) for t, d in zip(tensors, in_dims[1:], strict=True)]
        examples = [
            [t if d is None else t[i] for t, d in zip(first, in_dims[1:], strict=True)] for i in range(info.batch_size)
        ]
        return O.stack([AdjointSolution.apply(problem, *example) for example in examples]), 0

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
    size, positions = y.shape[0], range(2, 2 + len(args))

    def augmented(t, state, *args):
        pull, slope = make_vjp(problem.slope, (0, *positions))(state[:size], t, *args)
        slopes = [tensor(g) for g in pull(state[size : 2 * size])]
        return O.cat([tensor(slope), *[-O.reshape(g, (-1,)) for g in slopes]], 0)

    state = O.cat([y, adjoint, *[O.reshape(total, (-1,)) for total in totals]], 0)
    end = problem.again(augmented, state, interval, tuple(args))[-1]
    sizes = [a.numel() for a in args]
    parts = O.split(end, [size, size, *sizes], 0)
    return parts[1], [O.reshape(part, a.shape) for part, a in zip(parts[2:], args, strict=True)]


def _integrate_tangent(problem, y0, dy0, t, args, dargs):
    """Return the tangent of the solution at all times."""
    size, count = y0.shape[0], len(args)
    positions = (0, *range(2, 2 + count))

    def augmented(t, state, *both):
        push = make_jvp(problem.slope, positions)(state[:size], t, *both[:count])
        slope, along = push((state[size:], *both[count:]))
        return O.cat([tensor(slope), tensor(along)], 0)

    both = problem.again(augmented, O.cat([y0, dy0], 0), t, (*args, *dargs))
    return both[:, size:]
