"""Complex tensors: real and imaginary parts as views, construction, angles, conjugate transposes.

The two views `view_as_real` and `view_as_complex` are primitives; most of the rest is composed of them.
"""

# In this file, `complex` is the operator, not Python's type.

import math

from retrograd.core import Aval, Tensor, op, registry
from retrograd.core import dtype as dtypes
from retrograd.core.hooks import conjugate
from retrograd.core.views import set_view_copy
from retrograd.foundation.read_only import read_only
from retrograd.ops import batch_loop
from retrograd.ops.family import Composite, View, pointwise, zero_cotangent
from retrograd.ops.functions import check_tensor, function, overridable
from retrograd.ops.index import select
from retrograd.ops.linalg import dot
from retrograd.ops.methods import method
from retrograd.ops.pointwise import abs, atan2, clone, cos, eq, scale_up_subnormals, sign, sin, where
from retrograd.ops.view import broadcast_tensors, stack, transpose


def _samples(r):
    yield (view_as_complex(r(3, 2)),), {}
    yield (view_as_complex(r(2, 3, 2)),), {}
    yield (r(3),), {}


# ---------------------------------------------------------------------------------------------------- views


@op("view_as_real(Tensor x) -> Tensor")
class view_as_real(View, linear="x", elements=""):
    """View complex values as pairs of real ones: shape (...) becomes (..., 2).  RuntimeError for other dtypes.

    >>> import retrograd as rg
    >>> rg.view_as_real(rg.tensor([1 + 2j, 3 - 1j])).tolist()
    [[1.0, 2.0], [3.0, -1.0]]
    """

    def impl(xp, x):
        return x[..., None].view(_real_pairs_aval(x).dtype)

    def shape(x):
        return _real_pairs_aval(x)

    def vjp_x(g):
        return conjugate(view_as_complex(g.contiguous()))

    def dependence(i, out, x):
        return {d: d for d in range(x.ndim)}

    def batched_views(batch_shape):
        return (("view_as_real", {}),)

    def oracle(np, x):
        return np.stack([x.real, x.imag], -1)

    def samples(r):
        yield (view_as_complex(r(3, 2)),), {}
        yield (view_as_complex(r(2)),), {}

    def errors(r):
        yield (r(3),), {}, RuntimeError, "view_as_real: .*expected a complex dtype, got float64"


def _real_pairs_aval(x):
    _check_complex("view_as_real", x)
    return Aval((*x.shape, 2), dtypes.real_of(x.dtype))


def _check_complex(name, x):
    if x.dtype.kind != "c":
        raise RuntimeError(
            f"{name}: {name} is not implemented for tensors with non-complex dtypes: expected a complex dtype, got "
            f"{x.dtype}; convert with .to(rg.complex64) first"
        )


@op("view_as_complex(Tensor x) -> Tensor")
class view_as_complex(View, linear="x", elements=""):
    """View pairs of real values as complex ones: shape (..., 2) becomes (...).

    RuntimeError unless x is float32 or float64 and the two values of a pair are adjacent in memory.

    >>> import retrograd as rg
    >>> rg.view_as_complex(rg.tensor([[1.0, 2.0], [3.0, -1.0]])).tolist()
    [(1+2j), (3-1j)]
    """

    def impl(xp, x):
        out = _complex_aval(x)
        if x.size and x.strides[-1] != x.itemsize:
            raise RuntimeError(
                "view_as_complex: the last dimension must have stride 1, so that pairs lie next to each other; "
                "use x.contiguous()"
            )
        return x.view(out.dtype)[..., 0] if x.size else xp.zeros(out.shape, out.dtype)

    def shape(x):
        return _complex_aval(x)

    def vjp_x(g):
        return view_as_real(conjugate(g))

    def dependence(i, out, x):
        return {d: d for d in range(out.ndim)}

    def batch(batched, n, x):
        _complex_aval(batch_loop.example_avals(batched, (x,))[0])
        return view_as_complex(x.contiguous())  # the strides of the batch say nothing about those of one example

    def batched_views(batch_shape):
        return (("view_as_complex", {}),)

    exempt = {"strides": "as in PyTorch, the two of a pair must lie next to each other in memory"}

    def oracle(np, x):
        return x[..., 0] + 1j * x[..., 1]

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(2),), {}

    def errors(r):
        yield (r(2, 3),), {}, RuntimeError, r"view_as_complex: .*size 2, got shape \(2, 3\)"
        yield (r.ints(5, (3, 2)),), {}, RuntimeError, "view_as_complex: expected float32 or float64, got int64"


def _complex_aval(x):
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"view_as_complex: expected float32 or float64, got {x.dtype}; convert with .to(dtype)")
    if not x.ndim:
        raise RuntimeError("view_as_complex: Input tensor must have one or more dimensions, got shape ()")
    if x.shape[-1] != 2:
        raise RuntimeError(f"view_as_complex: Tensor must have a last dimension of size 2, got shape {x.shape}")
    return Aval(x.shape[:-1], dtypes.complex_of(x.dtype))


@op("real(Tensor x) -> Tensor")
class real(Composite):
    """Return the real part as a view; a real tensor is returned itself."""

    method = False  # an attribute

    def compose(x):
        return select(view_as_real(x), -1, 0) if x.dtype.kind == "c" else x

    oracle = "numpy.real"

    samples = _samples


@op("imag(Tensor x) -> Tensor")
class imag(Composite):
    """Return the imaginary part as a view; RuntimeError if the dtype is not complex."""

    method = False  # an attribute

    def compose(x):
        _check_complex("imag", x)
        return select(view_as_real(x), -1, 1)

    oracle = "numpy.imag"

    def samples(r):
        yield (view_as_complex(r(3, 2)),), {}

    def errors(r):
        yield (r(3),), {}, RuntimeError, "imag: .*expected a complex dtype, got float64"


# ---------------------------------------------------------------------------------------------------- making


@op("complex(Tensor real, Tensor imag) -> Tensor")
class complex(Composite):
    """Return real + 1j * imag; the two broadcast, and are both float32 or both float64.

    >>> import retrograd as rg
    >>> rg.complex(rg.tensor([1.0, 2.0]), rg.tensor(0.5)).tolist()
    [(1+0.5j), (2+0.5j)]
    """

    method = False

    def compose(real, imag):
        _check_parts("complex", real, imag)
        return view_as_complex(stack(broadcast_tensors(real, imag), dim=-1))

    def oracle(np, real, imag):
        return real + 1j * imag

    def samples(r):
        yield (r(3), r(3)), {}
        yield (r(4, 1), r(3)), {}

    def errors(r):
        yield (r(3), registry["to"](r(3), "float32")), {}, RuntimeError, "complex: .* got float64 and float32"
        yield (r.ints(3, (2,)), r.ints(3, (2,))), {}, RuntimeError, "complex: .* got int64 and int64"


def _check_parts(name, a, b):
    if a.dtype != b.dtype or a.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name}: expected both float32 or both float64, got {a.dtype} and {b.dtype}")


@op("polar(Tensor abs, Tensor angle) -> Tensor")
class polar(Composite):
    """Return abs * exp(1j * angle), angle in radians; the two broadcast, and are both float32 or both float64."""

    method = False

    def compose(abs, angle):
        _check_parts("polar", abs, angle)
        abs, angle = clone(abs), clone(angle)  # so that both may be written to later
        return complex(abs * cos(angle), abs * sin(angle))

    def oracle(np, abs, angle):
        return abs * np.exp(1j * angle)

    def samples(r):
        yield (r(3, within=(0.2, 3.0)), r(3)), {}
        yield (r(4, 1, within=(0.2, 3.0)), r(3)), {}

    def errors(r):
        yield (r(3), r.ints(3, (3,))), {}, RuntimeError, "polar: .* got float64 and int64"


# --------------------------------------------------------------------------------------------- elementwise


@op("angle(Tensor x) -> Tensor")
class angle(Composite):
    """Return the angle in radians, from -pi to pi; a real value has 0, or pi if negative.  The derivative at 0 is 0."""

    def compose(x):
        if x.dtype.kind == "c":
            return atan2(imag(x), real(x))
        return real_angle(x)

    oracle = "numpy.angle"

    samples = _samples


real_angle = pointwise("real_angle(Tensor x) -> Tensor", lambda xp, x: xp.arctan2(0, x + 0),  # + 0 turns -0 into 0
    "The angle of a real value, with -0 taken as 0; the derivative is 0.",
    vjp=zero_cotangent, promotion="float", internal=True, oracle="numpy.angle", node_name="AngleBackward0")  # fmt: skip


@op("sgn(Tensor x) -> Tensor")
class sgn(Composite, in_place=True):
    """Return the sign of x, x / |x|, and 0 with derivative 0 at 0; `sign` for real values."""

    def compose(x):
        if x.dtype.kind != "c":
            return sign(x)
        x = scale_up_subnormals(x)
        size = abs(x)
        return x / where(size == 0, math.inf, size)

    def oracle(np, x):
        return x / np.abs(x)

    samples = _samples


@function()
@method
@overridable
def conj(input) -> Tensor:
    """Return the complex conjugate; a real tensor is returned itself.

    PyTorch returns a view.  A NumPy array cannot be such a view, so this is a copy that is synced with the tensor:
    after a write to `input` it has the new values.  Writing to it raises RuntimeError; `conj_physical` returns a
    writable copy.

    >>> import retrograd as rg
    >>> rg.conj(rg.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if check_tensor("conj", input).dtype.kind != "c":
        return input
    out = conjugate(input)
    set_view_copy(out, input, registry["conj"], {})
    return out


@op("conj_physical(Tensor x) -> Tensor")
class conj_physical(Composite, in_place=True):
    """Return the complex conjugate as a new tensor; a real tensor is returned itself."""

    def compose(x):
        return registry["conj"](x) if x.dtype.kind == "c" else x

    oracle = "numpy.conj"

    samples = _samples


@op("resolve_conj(Tensor x) -> Tensor")
class resolve_conj(Composite):
    """Return x itself: no lazy conjugation exists here, unlike in PyTorch."""

    def compose(x):
        return check_tensor("resolve_conj", x)

    oracle = "numpy.array"

    samples = _samples


@op("isreal(Tensor x) -> Tensor")
class isreal(Composite):
    """Whether the imaginary part is 0; True for all real values, NaN included."""

    def compose(x):
        return eq(imag(x), 0) if x.dtype.kind == "c" else registry["ones_like"](x, dtype=dtypes.bool_)

    oracle = "numpy.isreal"

    samples = _samples


# ----------------------------------------------------------------------------------------- vectors, matrices


@op("vdot(Tensor a, Tensor b) -> Tensor")
class vdot(Composite):
    """Return the dot product of two vectors of equal size, with the first conjugated."""

    def compose(a, b):
        return dot(conjugate(a), b)

    oracle = "numpy.vdot"

    def samples(r):
        yield (view_as_complex(r(3, 2)), view_as_complex(r(3, 2))), {}
        yield (r(3), r(3)), {}


def conjugate_transpose(x):
    """Return `adjoint` of matrices as an intermediate result, which is not synced with x."""
    return conjugate(transpose(x, -2, -1))


@op("adjoint(Tensor x) -> Tensor")
class adjoint(Composite):
    """Return the conjugate transpose of the last two dimensions: a view if real, else a synced copy, as in `conj`."""

    def compose(x):
        if x.ndim == 0:
            return conj(x)
        if x.ndim < 2:
            raise RuntimeError(f"adjoint: expected at least 2 dimensions, got shape {x.shape}")
        return conj(transpose(x, -2, -1))

    def oracle(np, x):
        return np.swapaxes(x, -1, -2).conj()

    def samples(r):
        yield (view_as_complex(r(2, 3, 4, 2)),), {}
        yield (r(2, 3),), {}

    def errors(r):
        yield (r(3),), {}, RuntimeError, r"adjoint: expected at least 2 dimensions, got shape \(3,\)"


def _h(x):
    """Return the conjugate transpose of a matrix or the conjugate of a number; RuntimeError for other dimensions."""
    if x.ndim not in (0, 2):
        raise RuntimeError(f"H: expected a matrix, got shape {x.shape}; for a stack of them there is mH")
    return adjoint(x)


def _mh(x):
    """Return the conjugate transpose of the last two dimensions: `adjoint`."""
    return adjoint(x)


def _real(x):
    """The real part, as a view that may be assigned to; a real tensor is returned itself."""
    return real(x)


def _imag(x):
    """The imaginary part, as a view that may be assigned to; RuntimeError if the dtype is not complex."""
    return imag(x)


def _set_real(x, value):
    real(x).copy_(value)


def _set_imag(x, value):
    imag(x).copy_(value)


Tensor.H, Tensor.mH = read_only(_h, "H"), read_only(_mh, "mH")  # type: ignore[assignment]
Tensor.real, Tensor.imag = property(_real, _set_real), property(_imag, _set_imag)  # type: ignore[assignment]
