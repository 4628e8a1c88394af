"""The operator that multiplies the matrices of each component of two buffers."""

from retrograd.backend import ragged_products
from retrograd.backend.ragged import structure_of
from retrograd.backend.ragged_products import Part, Parts
from retrograd.core import Aval, Internal, op
from retrograd.ops.batching import align_batched
from retrograd.ops.family import sum_to
from retrograd.ops.view import transpose


@op("nested.multiply_each(Tensor a, Tensor b, *, any parts) -> Tensor")
class multiply_each(Internal, linear="a b", in_host_memory=True):
    """The products of the matrices of each component, whose layout in the buffers `parts` describes.

    Its derivatives are such products too.  The dimensions before the matrices broadcast.
    """

    def impl(xp, a, b, *, parts):
        return ragged_products.multiply_each(a, b, parts)

    def shape(a, b, *, parts):
        return Aval(ragged_products.product_shape(a.shape, b.shape, parts), a.dtype)

    def vjp_a(g, b, parts):
        return multiply_each(g, mT(b, parts.b), parts=Parts(parts.out, parts.b.transposed, parts.a))

    def vjp_b(g, a, parts):
        return multiply_each(mT(a, parts.a), g, parts=Parts(parts.a.transposed, parts.out, parts.b))

    def fit(g, aval):
        return sum_to(g, aval.shape)

    def batch(batched, n, a, b, *, parts):
        a, b = align_batched((a, b), batched, (parts.a.core, parts.b.core))
        return multiply_each(a, b, parts=parts)

    def samples(r):
        some, other = structure_of([(2,), (0,), (3,)])[0], structure_of([(1,), (2,), (2,)])[0]
        both = structure_of([(2, 1), (0, 2), (3, 2)])[0]
        rows, columns, square = Part("rows", some), Part("columns", other), Part("both", both)
        yield (r(5, 4), r(4, 5)), {"parts": Parts(rows, columns, square)}
        yield (r(2, 8), r(5, 3)), {"parts": Parts(square, Part("rows", other), rows)}
        yield (r(3, 4, 5), r(2, 1, 5, 3)), {"parts": Parts(rows.transposed, rows, Part("none"))}
        yield (r(8), r(5, 2)), {"parts": Parts(square.transposed, rows, Part("rows", other))}
        yield (r(5, 4), r(3, 4, 2)), {"parts": Parts(rows, Part("none"), rows)}


def mT(x, part):
    """Return the buffer of the transposed matrices, for `part.transposed`; a view."""
    return x if part.ragged == "both" else transpose(x, -2, -1)
