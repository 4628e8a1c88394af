"""The checksum of a tensor's elements."""

from retrograd.core import dtype as dtypes
from retrograd.core import op
from retrograd.ops.reduce import Reduction, numpy_axes, reduced_aval


@op("hash_tensor(Tensor x, int[]? dim=None, bool keepdim=False, *, int mode=0) -> Tensor")
class hash_tensor(Reduction, differentiable=False):
    """The exclusive or, over `dim` (None or (): all), of the bits of the elements in 64 bits, as uint64.

    Floating elements are converted to float64 first, integers and bool to int64.  Equal tensors have equal hashes; the
    order of the elements does not matter, and pairs of equal elements cancel.  mode: 0 is the only one.

    Raises RuntimeError for another mode and for all elements of none, NotImplementedError for complex tensors.

    >>> import retrograd as rg
    >>> rg.hash_tensor(rg.tensor([[5, 3], [1, 1]]), dim=1)
    tensor([6, 0], dtype=uint64)
    """

    def impl(xp, x, *, dim, keepdim, mode):
        _check(x, dim, mode)
        wide = dtypes.float64 if dtypes.is_floating(x.dtype) else dtypes.int64
        bits = xp.ascontiguousarray(xp.cast(x, wide)).view(dtypes.uint64).reshape(x.shape)
        return xp.asarray(xp.bitwise_xor.reduce(bits, axis=numpy_axes(x, dim), keepdims=keepdim))

    def shape(x, *, dim, keepdim, mode):
        _check(x, dim, mode)
        return reduced_aval("hash_tensor", x, dim, keepdim, dtypes.uint64)

    def oracle(np, x, dim, keepdim, mode):
        bits = np.array(x, "float64" if x.dtype.kind == "f" else "int64").view("uint64").reshape(x.shape)
        axes = range(x.ndim) if not dim else [d % x.ndim for d in dim]
        for axis in sorted(axes, reverse=True):
            rows = np.moveaxis(bits, axis, 0)
            bits = rows[0]
            for row in rows[1:]:
                bits = bits ^ row
            bits = np.expand_dims(bits, axis) if keepdim else bits
        return bits

    def samples(r):
        yield (r(3, 2),), {}
        yield (r.ints(9, (3, 4)),), {"dim": 1}
        yield (r(2, 3, 2),), {"dim": (0, 2), "keepdim": True}

    def errors(r):
        yield (r(2),), {"mode": 1}, RuntimeError, "Unknown hash_tensor mode: 1"
        yield (r(0),), {}, RuntimeError, "hash_tensor: Expected reduction dim to be specified"


def _check(x, dim, mode):
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}; 0 is the only one")
    if dtypes.category(x.dtype) == 3:
        kind = dtypes.scalar_name(x.dtype)
        raise NotImplementedError(f'"hash_tensor" not implemented for \'{kind}\': hash x.real and x.imag')
    if not dim and 0 in x.shape:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
