"""Trajectories of ordinary differential equations, differentiated by the equations of Radau's collocation.

SciPy solves the equation. On the mesh of its steps, its solution satisfies y = y_left + h A f(t, y) at the nodes of
each step, up to the solver's error (E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, 1996, IV.5).
The derivative of the solution is that of these equations. So all Jacobians of f are computed at once, the linear system
is solved step by step, and reverse and forward mode are two ways through the same system.
"""

from collections import namedtuple
from functools import lru_cache
from itertools import pairwise

from retrograd.core.level import NotBatchedError
from retrograd.func import jacfwd, vmap
from retrograd.implicit.problems import Problem
from retrograd.interop.numpy_protocol.table import O, cast, tensor
from retrograd.scipy._mirror import scipy_member

STAGES = 5
# For each step: the interval between output times that contains it, its start and its width as fractions of that.
Mesh = namedtuple("Mesh", "interval start width last")  # `last`: the last step of each interval


@lru_cache(1)
def radau():
    """Return the nodes c and the matrix A of the Radau IIA method, lists of numbers."""
    inner, _ = scipy_member("scipy.special").roots_jacobi(STAGES - 1, 1, 0)
    c = tensor([*((inner + 1) / 2).tolist(), 1.0])
    powers = O.unsqueeze(c, 1) ** O.arange(STAGES)
    integrals = O.unsqueeze(c, 1) ** O.arange(1, STAGES + 1) / O.arange(1, STAGES + 1)
    return c.tolist(), O.linalg.solve(powers.mT, integrals.mT).mT.tolist()


def lagrange(parts):
    """Return the weights of the values at the start and at the nodes of a step, for each part of the step, 0 to 1."""
    points = tensor([0.0, *radau()[0]])
    exponents = O.arange(STAGES + 1)
    powers = O.unsqueeze(parts, 1) ** exponents
    return powers @ O.linalg.inv(O.unsqueeze(points, 1) ** exponents)


def mesh_of(times, steps):
    """Return the mesh of the steps of a solver and of the output times, lists of numbers."""
    interval, start, width, last = [], [], [], []
    for i, (a, b) in enumerate(pairwise(times)):
        low, high = min(a, b), max(a, b)
        margin = 1e-9 * (high - low)
        inside = sorted((s - a) / (b - a) for s in steps if low + margin < s < high - margin)
        bounds = [0.0, *inside, 1.0]
        interval += [i] * (len(bounds) - 1)
        start += bounds[:-1]
        width += [right - left for left, right in pairwise(bounds)]
        last.append(len(interval) - 1)
    return Mesh(interval, start, width, last)


def halve(mesh, steps):
    """Return the mesh with some of its steps halved."""
    interval, start, width, last = [], [], [], []
    for k, (i, a, w) in enumerate(zip(mesh.interval, mesh.start, mesh.width, strict=True)):
        parts = 2 if k in steps else 1
        for j in range(parts):
            interval.append(i)
            start.append(a + j * w / parts)
            width.append(w / parts)
        if k in mesh.last:
            last.append(len(interval) - 1)
    return Mesh(interval, start, width, last)


class Trajectory(Problem):
    """y' = f(t, y) with y = y0 at the first time; z has the values at the nodes of each step: (steps, STAGES, n).

    The closure's function is f of the vector (t, *y). `tensors` are y0, the output times, and those of the closure.
    """

    def __init__(self, closure, mesh, method):
        super().__init__(closure, (), method)
        self._mesh = mesh

    def nodes(self, times):
        """Return the times of the nodes, (steps, STAGES), and the widths of the steps."""
        mesh = self._mesh
        start, width = (tensor(part).to(times.dtype) for part in (mesh.start, mesh.width))
        gaps = (times[1:] - times[:-1])[mesh.interval]
        left, h = times[mesh.interval] + start * gaps, width * gaps
        c = tensor(radau()[0]).to(times.dtype)
        return O.unsqueeze(left, 1) + O.unsqueeze(h, 1) * c, h

    def residual(self, z, tensors):
        """Return y - y_left - h A f at all nodes."""
        y0, times, *own = tensors
        t, h = self.nodes(times)
        slopes = self._at_nodes(lambda x: self.closure(0, x, own), t, z)
        matrix = tensor(radau()[1]).to(z.dtype)
        left = O.cat([O.unsqueeze(y0, 0), z[:-1, -1]], 0)
        return z - O.unsqueeze(left, 1) - O.reshape(cast(h, z.dtype), (-1, 1, 1)) * (matrix @ cast(slopes, z.dtype))

    def _at_nodes(self, function, t, y):
        """Return function((t, *y)) at all nodes, as one batch; in a loop if the function cannot run on a batch."""
        x = O.reshape(O.cat([O.unsqueeze(cast(t, y.dtype), -1), y], -1), (-1, y.shape[-1] + 1))
        try:
            out = vmap(function)(x)
        except NotBatchedError:
            out = O.stack([function(row) for row in O.unbind(x)])
        return O.reshape(out, (*t.shape, *out.shape[1:]))

    def solve_linear(self, z, tensors, g, transposed):
        """Return the solution of the linear system of all steps: one block for each step, and a link to the next."""
        _, times, *own = tensors
        t, h = self.nodes(times)
        jacobians = self._at_nodes(jacfwd(lambda x: cast(self.closure(0, x, own), z.dtype)), t, z)[..., 1:]
        blocks = self._blocks(cast(jacobians, z.dtype), cast(h, z.dtype))
        steps, stages, n = z.shape
        g = O.reshape(g, (steps, stages * n))
        unit = O.eye(n, dtype=z.dtype)
        if transposed:
            link = O.cat([O.zeros(((stages - 1) * n, n), dtype=z.dtype), unit], 0)
            own_part, linked = _solve_blocks(blocks.mT, g, link)
            carried = _scan(_summed(own_part, stages), _summed_columns(linked, stages), reverse=True)
        else:
            own_part, linked = _solve_blocks(blocks, g, O.cat([unit] * stages, 0))
            carried = _scan(own_part[:, -n:], linked[:, -n:], reverse=False)
        return O.reshape(own_part + O.squeeze(linked @ O.unsqueeze(carried, -1), -1), z.shape)

    def _blocks(self, jacobians, h):
        """Return 1 - h A J of each step, matrices of the size STAGES n."""
        steps, stages, n, _ = jacobians.shape
        matrix = O.reshape(tensor(radau()[1]).to(jacobians.dtype), (1, stages, 1, stages, 1))
        blocks = matrix * O.unsqueeze(O.transpose(jacobians, 1, 2), 1) * O.reshape(h, (-1, 1, 1, 1, 1))
        return O.eye(stages * n, dtype=jacobians.dtype) - O.reshape(blocks, (steps, stages * n, stages * n))


def _solve_blocks(blocks, g, link):
    """Return the solutions of all blocks for the right-hand sides g, and for the link to a neighbour."""
    sides = O.cat([O.unsqueeze(g, -1), O.expand(link, (g.shape[0], *link.shape))], -1)
    found = O.linalg.solve(blocks, sides)
    return found[..., 0], found[..., 1:]


def _summed(x, stages):
    return O.sum(O.reshape(x, (x.shape[0], stages, -1)), 1)


def _summed_columns(x, stages):
    return O.sum(O.reshape(x, (x.shape[0], stages, -1, x.shape[-1])), 1)


def _scan(constants, factors, reverse):
    """Return what each step receives: 0 at first, then constant + factor received, of its neighbour."""
    received = [O.zeros_like(constants[0])]
    pairs = list(zip(O.unbind(constants), O.unbind(factors), strict=True))
    for constant, factor in reversed(pairs[1:]) if reverse else pairs[:-1]:
        received.append(constant + factor @ received[-1])
    return O.stack(received[::-1] if reverse else received)
