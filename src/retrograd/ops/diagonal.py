"""Diagonals and traces."""

from retrograd.core import Aval, Internal, op
from retrograd.ops.family import Composite, View, canonical_dim, shift_dims
from retrograd.ops.reduce import sum as sum_over


@op("diagonal(Tensor x, int offset=0, int dim1=0, int dim2=1) -> Tensor")
class diagonal(View, linear="x"):
    """View a diagonal as the last dimension: the elements whose index along dim2 is `offset` more than along dim1."""

    def impl(xp, x, *, offset, dim1, dim2):
        return xp.diagonal(x, offset, dim1, dim2)

    def shape(x, *, offset, dim1, dim2):
        return Aval(_diagonal_shape(x.shape, offset, dim1, dim2), x.dtype)

    def vjp_x(g, x_aval, offset, dim1, dim2):
        return diagonal_backward(g, shape=x_aval.shape, offset=offset, dim1=dim1, dim2=dim2)

    def batched_views(batch_shape, *, offset, dim1, dim2):
        dim1, dim2 = shift_dims("diagonal", (dim1, dim2), len(batch_shape) - 1)
        return (("diagonal", {"offset": offset, "dim1": dim1, "dim2": dim2}),)

    def oracle(np, x, offset, dim1, dim2):
        return np.diagonal(x, offset, dim1, dim2)

    def samples(r):
        yield (r(3, 4),), {}
        yield (r(3, 2, 3),), {"offset": -1, "dim1": 0, "dim2": -1}

    def errors(r):
        yield (r(3, 3),), {"dim1": 1}, ValueError, "dim1 and dim2 are both 1"


def _diagonal_shape(shape, offset, dim1, dim2):
    a, b = (canonical_dim("diagonal", d, len(shape)) for d in (dim1, dim2))
    if a == b:
        raise ValueError(
            f"diagonal: diagonal dimensions cannot be identical {dim1}, {dim2}: dim1 and dim2 are both {a}"
        )
    rows, columns = shape[a] + min(offset, 0), shape[b] - max(offset, 0)
    return (*(s for i, s in enumerate(shape) if i not in (a, b)), max(min(rows, columns), 0))


@op("diagonal_backward(Tensor src, *, int[] shape, int offset, int dim1, int dim2) -> Tensor")
class diagonal_backward(Internal, linear="src", elements="moved", node_name="DiagEmbedBackward0"):
    """Zeros of `shape` with src on a diagonal: the transpose of `diagonal`."""

    def impl(xp, src, *, shape, offset, dim1, dim2):
        return xp.diagonal_backward(src, shape, offset, dim1, dim2)

    def shape(src, *, shape, offset, dim1, dim2):
        expected = _diagonal_shape(shape, offset, dim1, dim2)
        if src.shape != expected:
            raise ValueError(
                f"diagonal_backward: the diagonal of shape {tuple(shape)} has shape {expected}, got {src}"
            )
        return Aval(shape, src.dtype)

    def vjp_src(g, offset, dim1, dim2):
        return diagonal(g, offset, dim1, dim2)

    def batch(batched, n, src, *, shape, offset, dim1, dim2):
        dim1, dim2 = shift_dims("diagonal", (dim1, dim2), len(shape))
        return diagonal_backward(src, shape=(n, *shape), offset=offset, dim1=dim1, dim2=dim2)

    def oracle(np, src, shape, offset, dim1, dim2):
        out = np.zeros(shape)
        last = np.moveaxis(out, (dim1, dim2), (-2, -1))
        for k in range(src.shape[-1]):
            last[..., k + max(-offset, 0), k + max(offset, 0)] = src[..., k]
        return out

    def samples(r):
        yield (r(3),), {"shape": (3, 4), "offset": 0, "dim1": 0, "dim2": 1}
        yield (r(2, 2),), {"shape": (3, 2, 4), "offset": -1, "dim1": 0, "dim2": -1}


@op("trace(Tensor x) -> Tensor")
class trace(Composite):
    """Sum of the diagonal of a matrix."""

    def compose(x):
        if x.ndim != 2:
            raise ValueError(f"trace: expected a matrix, got shape {x.shape}")
        return sum_over(diagonal(x))

    oracle = "numpy.trace"

    def samples(r):
        yield (r(3, 3),), {}

    def errors(r):
        yield (r(3),), {}, ValueError, "trace: expected a matrix"
