"""Sampling images at the points of a grid, and grids of affine maps."""

from functools import reduce
from operator import add

from retrograd.core import Aval, Internal, call, op, registry
from retrograd.ops.batching import batch_all
from retrograd.ops.family import Composite, CoreDims, broadcast_dims, check_real, same_dtype, zero_cotangent
from retrograd.ops.linalg import matmul
from retrograd.ops.view import expand, reshape, stack, transpose

# `how` of the operators: the mode, the padding, whether corners are aligned, and for each dimension of the images the
# order of the derivative with respect to the position: so derivatives of the operators are the same operators.


class Sampling(Internal, CoreDims, cores=(0,)):
    """Base of operators on images x (*n, c, *sizes), numbers y (*n, c, *out) and a grid (*n, *out, d) of points."""

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Put the batch dimension first in all operands."""
        return call(registry[cls.__name__], tuple(batch_all(args, batched, n)), params)

    @classmethod
    def dependence(cls, i, out, /, *avals, **params):
        """Each element depends on the elements of the same image."""
        lead = avals[0].ndim - 1 - avals[-1].shape[-1]
        return broadcast_dims(lead, lead)


def _check_images(name, images, grid, how):
    """Return the number of dimensions before the channels; an error unless images or numbers fit the grid."""
    check_real(name, images)
    d = len(how[-1])
    lead = images.ndim - 1 - d
    if lead < 0 or grid.ndim != images.ndim or grid.shape[-1] != d or grid.shape[:lead] != images.shape[:lead]:
        raise ValueError(f"{name}: {images.shape} and a grid {grid.shape} do not fit in {d} dimensions")
    return lead


def _check_points(name, y, grid, how):
    """Return `_check_images`; an error unless y has a number for each point."""
    lead = _check_images(name, y, grid, how)
    if y.shape[lead + 1 :] != grid.shape[lead:-1]:
        raise ValueError(f"{name}: numbers {y.shape} do not fit the points of a grid {grid.shape}")
    return lead


def _check_slopes(y, x, grid, how):
    lead = _check_points("sample_slopes", y, grid, how)
    if _check_images("sample_slopes", x, grid, how) != lead or x.shape[lead] != y.shape[lead]:
        raise ValueError(f"sample_slopes: images {x.shape} and numbers {y.shape} have other channels")


# The weights are polynomials of this degree in a position: derivatives of higher orders are 0.
_DEGREE = {"nearest": 0, "bilinear": 1, "bicubic": 3}


def _sum_of_raised(term, g, how):
    """Return the sum of term(column of g, how of higher order), g being (*n, *out, d) and a column (*n, 1, *out).

    Columns for which the derivative is 0 are left out; if it is 0 for all, zeros like a term.
    """
    *modes, orders = how
    d, terms = len(orders), []
    for j, column in enumerate(registry["unbind"](g, -1)):
        raised = (*orders[: d - 1 - j], orders[d - 1 - j] + 1, *orders[d - j :])
        if max(raised) <= _DEGREE[how[0]]:
            terms.append(term(registry["unsqueeze"](column, g.ndim - 1 - d), (*modes, raised)))
    if terms:
        return reduce(add, terms)
    return zero_cotangent(term(registry["unsqueeze"](g[..., 0], g.ndim - 1 - d), how))


@op("sample_points(Tensor x, Tensor grid, *, any how) -> Tensor")
class sample_points(Sampling, linear="x"):
    """The weighted sums of the elements of x that the points read."""

    def impl(xp, x, grid, *, how):
        _check_images("sample_points", x, grid, how)
        return xp.sample_points(x, grid, how)

    def shape(x, grid, *, how):
        lead = _check_images("sample_points", x, grid, how)
        return Aval((*x.shape[: lead + 1], *grid.shape[lead:-1]), x.dtype)

    def vjp_x(g, x_aval, grid, how):
        return sample_points_backward(g, grid, how=how, sizes=x_aval.shape[-len(how[-1]) :])

    def vjp_grid(g, x, grid, how):
        return _grid_cotangent(g, x, grid, how)

    def jvp_grid(t, x, grid, how):
        return _sum_of_raised(lambda column, one: column * sample_points(x, grid, how=one), t, how)

    oracle = "retrograd.testing.references.interpolate.sample_points"

    def samples(r):
        for x, grid, how in _sampling_samples(r):
            yield (x, grid), {"how": how}


@op("sample_points_backward(Tensor y, Tensor grid, *, any how, int[] sizes) -> Tensor")
class sample_points_backward(Sampling, linear="y"):
    """The transpose of `sample_points`: each number is added to the elements that its point reads."""

    def impl(xp, y, grid, *, how, sizes):
        _check_points("sample_points_backward", y, grid, how)
        return xp.sample_points_backward(y, grid, how, sizes)

    def shape(y, grid, *, how, sizes):
        return Aval((*y.shape[: _check_points("sample_points_backward", y, grid, how) + 1], *sizes), y.dtype)

    def vjp_y(g, grid, how):
        return sample_points(g, grid, how=how)

    def vjp_grid(g, y, grid, how):
        return _grid_cotangent(y, g, grid, how)

    def jvp_grid(t, y, grid, how, sizes):
        return _sum_of_raised(lambda c, one: sample_points_backward(y * c, grid, how=one, sizes=sizes), t, how)

    oracle = "retrograd.testing.references.interpolate.sample_points_backward"

    def samples(r):
        for x, grid, how in _sampling_samples(r):
            yield (r(*x.shape[:2], *grid.shape[1:-1]), grid), {"how": how, "sizes": tuple(x.shape[2:])}


def _grid_cotangent(y, x, grid, how):
    """Return the derivatives by the grid of the sum of y times the samples of x: 0 where these are the nearest."""
    return zero_cotangent(grid) if how[0] == "nearest" else sample_slopes(y, x, grid, how=how)


def _slopes_along(t, y, x, grid, how):
    """Return the derivative of `sample_slopes` by the grid, a symmetric matrix, times t."""
    return _sum_of_raised(lambda column, one: sample_slopes(y * column, x, grid, how=one), t, how)


@op("sample_slopes(Tensor y, Tensor x, Tensor grid, *, any how) -> Tensor")
class sample_slopes(Sampling, linear="y x"):
    """The derivatives by the grid of the sum of y times the samples of x."""

    def impl(xp, y, x, grid, *, how):
        _check_slopes(y, x, grid, how)
        return xp.sample_slopes(y, x, grid, how)

    def shape(y, x, grid, *, how):
        _check_slopes(y, x, grid, how)
        return Aval(grid.shape, x.dtype)

    def vjp_y(g, x, grid, how):
        return _sum_of_raised(lambda column, one: column * sample_points(x, grid, how=one), g, how)

    def vjp_x(g, y, x_aval, grid, how):
        sizes = x_aval.shape[-len(how[-1]) :]
        return _sum_of_raised(lambda c, one: sample_points_backward(y * c, grid, how=one, sizes=sizes), g, how)

    def vjp_grid(g, y, x, grid, how):
        return _slopes_along(g, y, x, grid, how)

    def jvp_grid(t, y, x, grid, how):
        return _slopes_along(t, y, x, grid, how)

    oracle = "retrograd.testing.references.interpolate.sample_slopes"

    def samples(r):
        for x, grid, how in _sampling_samples(r):
            yield (r(*x.shape[:2], *grid.shape[1:-1]), x, grid), {"how": how}


def _sampling_samples(r):
    """Yield images, a grid and `how` for all modes and paddings."""
    for sizes, how in (
        ((3, 4), ("bilinear", "zeros", False, (0, 0))),
        ((3, 4), ("bilinear", "reflection", True, (0, 0))),
        ((3, 4), ("bicubic", "border", False, (0, 1))),
        ((2, 3, 2), ("bilinear", "border", True, (1, 0, 0))),
        ((3, 2), ("nearest", "reflection", False, (0, 0))),
    ):
        yield r(1, 2, *sizes), _sample_positions(r, (1, *(2,) * len(sizes)), sizes, how[2]), how


@op(
    "grid_sample(Tensor x, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? align_corners=None) "
    "-> Tensor"
)
class grid_sample(Composite, home="nn.functional", opmath="x grid"):
    """Sample images (n, c, *sizes) at the positions in grid (n, *out, d), d = 2 or 3: (n, c, *out).

    A position is (x, y) or (x, y, z), from -1 to 1 over the image: x along the last dimension.  mode: bilinear,
    nearest or (d = 2) bicubic.  padding_mode, outside: zeros, border (the nearest element) or reflection.
    align_corners: -1 and 1 are the centres of the outermost elements, not their outer edges.  M. Jaderberg et al.,
    Spatial transformer networks, NeurIPS 28 (2015).

    Differentiable in both; with nearest, the gradient of the grid is 0.  At integer positions, where the slope jumps,
    the right slope is taken; where positions are clamped, and at the outermost elements, it is 0.

    >>> import retrograd as rg
    >>> image, places = rg.arange(4.0).reshape(1, 1, 2, 2), rg.tensor([[[[0.0, 0.0]]]])
    >>> rg.nn.functional.grid_sample(image, places).item()
    1.5
    """

    def compose(x, grid, *, mode, padding_mode, align_corners):
        _check_grid(x, grid, mode, padding_mode)
        how = (mode, padding_mode, bool(align_corners), (0,) * (x.ndim - 2))
        return sample_points(x, grid, how=how)

    oracle = "retrograd.testing.references.interpolate.grid_sample"

    def samples(r):
        for sizes, lead, params in (
            ((3, 4), (2, 2, 2), {}),
            ((3, 4), (1, 2, 2), {"padding_mode": "border", "align_corners": True}),
            ((3, 2), (1, 2, 3), {"padding_mode": "reflection"}),
            ((3, 4), (1, 3, 1), {"padding_mode": "reflection", "align_corners": True}),
            ((3, 4), (1, 2, 2), {"mode": "nearest"}),
            ((4, 5), (1, 2, 2), {"mode": "bicubic"}),
            ((4, 3), (1, 2, 2), {"mode": "bicubic", "padding_mode": "reflection", "align_corners": True}),
            ((2, 3, 2), (1, 1, 2, 2), {"align_corners": True}),
        ):
            align = params.get("align_corners", False)
            yield (r(lead[0], 2, *sizes), _sample_positions(r, lead, sizes, align)), {**params, "align_corners": align}

    def errors(r):
        x = r(2, 1, 3, 3)
        yield (x, r(1, 2, 2, 2)), {}, ValueError, "grid_sample: .* do not fit"
        yield (x, r(2, 2, 2, 3)), {}, ValueError, "grid_sample: .* do not fit"
        yield (x, r(2, 2, 2, 2)), {"mode": "cubic"}, ValueError, "grid_sample: mode must be bilinear"
        yield (x, r(2, 2, 2, 2)), {"padding_mode": "wrap"}, ValueError, "grid_sample: padding_mode must be zeros"


def _sample_positions(r, lead, sizes, align):
    """Return positions in and around images of these sizes, away from those where a neighbour changes."""
    columns = []
    for size in reversed(sizes):
        position = r.ints(size + 2, lead) - 1.8 + r(*lead, within=(0.0, 0.2))
        columns.append(2 * position / (size - 1) - 1 if align else (2 * position + 1) / size - 1)
    return stack(columns, -1)


def _check_grid(x, grid, mode, padding_mode):
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and x.ndim == 5):
        raise ValueError(f"grid_sample: mode must be bilinear, nearest or, of flat images, bicubic, got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: padding_mode must be zeros, border or reflection, got {padding_mode!r}")
    if x.ndim not in (4, 5) or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != x.ndim - 2:
        raise ValueError(
            f"grid_sample: images {x.shape} and grid {grid.shape} do not fit: expected (n, c, h, w) and (n, *out, 2) "
            f"or (n, c, d, h, w) and (n, *out, 3)"
        )
    check_real("grid_sample", x)
    same_dtype("grid_sample", (x, grid))
    if 0 in x.shape[2:]:
        raise ValueError(f"grid_sample: images of shape {x.shape} have no elements")


@op("affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor")
class affine_grid(Composite, home="nn.functional"):
    """Return the grid for `grid_sample` of an affine map: theta (n, d, d + 1) to (n, *out, d), size being (n, c, *out).

    >>> import retrograd as rg
    >>> theta = rg.tensor([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]])
    >>> rg.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True).tolist()
    [[[[-0.5, 0.0], [1.5, 0.0]]]]
    """

    def compose(theta, *, size, align_corners):
        check_real("affine_grid", theta)
        ndim = len(size) - 2
        if ndim not in (2, 3) or theta.shape != (size[0], ndim, ndim + 1) or min(size) < 1:
            raise ValueError(
                f"affine_grid: theta {theta.shape} and size {size} do not fit: expected (n, 2, 3) and (n, c, h, w) or "
                f"(n, 3, 4) and (n, c, d, h, w)"
            )
        columns = []
        for dim in reversed(range(ndim)):
            line = _center_coordinates(size[2 + dim], bool(align_corners), theta.dtype)
            columns.append(expand(reshape(line, (-1, *(1,) * (ndim - 1 - dim))), size[2:]))
        columns.append(registry["ones"](size[2:], dtype=theta.dtype))
        coordinates = reshape(stack(columns, -1), (-1, ndim + 1))
        return reshape(matmul(coordinates, transpose(theta, 1, 2)), (size[0], *size[2:], ndim))

    exempt = {"nested": "the size that it is given says how many examples there are"}

    def oracle(np, theta, size, align_corners):
        out = np.zeros((size[0], *size[2:], len(size) - 2))
        for index in np.ndindex(*size[2:]):
            row = [
                0.0 if n == 1 else 2 * i / (n - 1) - 1 if align_corners else (2 * i + 1) / n - 1
                for i, n in zip(index, size[2:], strict=True)
            ]
            out[:, *index] = theta @ np.array([*row[::-1], 1.0])
        return out

    def samples(r):
        yield (r(2, 2, 3),), {"size": (2, 1, 3, 4), "align_corners": False}
        yield (r(1, 3, 4),), {"size": (1, 2, 2, 1, 3), "align_corners": False}
        yield (r(1, 3, 4),), {"size": (1, 1, 2, 3, 2), "align_corners": True}

    def errors(r):
        yield (r(1, 2, 2),), {"size": (1, 1, 3, 3)}, ValueError, "affine_grid: theta .* do not fit"


def _center_coordinates(count, align, dtype):
    """Return the coordinates of a row of elements, from -1 to 1."""
    if count == 1:
        return registry["zeros"]((1,), dtype=dtype)
    line = registry["linspace"](-1, 1, count, dtype=dtype)
    return line if align else line * ((count - 1) / count)
