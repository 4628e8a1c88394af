"""Sums of tensors of one shape, each times a number."""

from retrograd.core import Aval, Definition, Internal, call, op
from retrograd.ops.batching import batch_all
from retrograd.ops.family import check_floating, same_dtype


@op("weighted_sum(Tensor[] tensors, *, any weights) -> Tensor")
class weighted_sum(Internal, Definition, linear="tensors,"):
    """The sum of tensors of one shape and dtype, each times its number in `weights`: a stage of a Runge-Kutta method.

    One operator takes the overhead of one; sums and products would take it twice for each tensor.
    """

    def impl(xp, *tensors, weights):
        check_floating("weighted_sum", tensors[0])
        out = tensors[0] * weights[0]
        for i in range(1, len(tensors)):
            out += tensors[i] * weights[i]
        return out

    def shape(*tensors, weights):
        first = tensors[0]
        if len(weights) != len(tensors):
            raise ValueError(f"weighted_sum: got {len(weights)} weights for {len(tensors)} tensors")
        if any(x.shape != first.shape for x in tensors):
            raise ValueError(f"weighted_sum: shapes must agree, got {', '.join(str(x.shape) for x in tensors)}")
        same_dtype("weighted_sum", tensors)
        check_floating("weighted_sum", first)
        return Aval(first.shape, first.dtype)

    def vjp_tensors(g, weights):
        return [g * w for w in weights]

    def batch(batched, n, *tensors, weights):
        return call(weighted_sum, tuple(batch_all(tensors, batched, n)), {"weights": weights})

    def dependence(i, out, *tensors, weights):
        return {d: d for d in range(out.ndim)}

    def oracle(np, *tensors, weights):
        return np.tensordot(np.asarray(weights), np.stack(tensors), 1)

    def samples(r):
        yield (r(2, 3), r(2, 3), r(2, 3)), {"weights": (0.5, -2.0, 3.0)}
        yield (r(),), {"weights": (0.25,)}

    def errors(r):
        yield (r(2), r(3)), {"weights": (1.0, 2.0)}, ValueError, "weighted_sum: shapes must agree"
        yield (r(2), r(2)), {"weights": (1.0,)}, ValueError, "weighted_sum: got 1 weights for 2 tensors"
