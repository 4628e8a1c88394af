"""The functions that NumPy, SciPy and the array API standard share with operators, under their names and arguments.

Each face (`numpy_protocol`, `array_api`, `retrograd.scipy`) generates its functions from this table by
`interop.signatures`, which explains the marks in signatures. Functions that do more than an operator are written out
in the faces.
"""

from collections.abc import Callable, Mapping
from operator import itemgetter, methodcaller
from types import MappingProxyType
from typing import Any, NamedTuple

# The operator of each of NumPy's ufuncs that has one: NumPy's name, and the operator's if it differs.
_UFUNCS = """
    absolute=abs add arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan2=atan2 arctan=atan arctanh=atanh
    bitwise_and bitwise_count bitwise_or bitwise_xor cbrt ceil clip=clamp conjugate=conj copysign cos cosh
    deg2rad degrees=rad2deg divide=div equal=eq exp exp2 expm1 fabs=abs float_power floor floor_divide fmax fmin
    fmod frexp gcd greater=gt greater_equal=ge heaviside hypot invert=bitwise_not isfinite isinf isnan lcm ldexp
    left_shift=bitwise_left_shift less=lt less_equal=le log log10 log1p log2 logaddexp logaddexp2 logical_and
    logical_not logical_or logical_xor maximum minimum multiply=mul negative=neg nextafter not_equal=ne positive
    power=pow rad2deg radians=deg2rad reciprocal remainder right_shift=bitwise_right_shift rint=round sign=sgn
    signbit sin sinh sqrt square subtract=sub tan tanh trunc
"""
UFUNCS = {name: ours or name for name, _, ours in (word.partition("=") for word in _UFUNCS.split())}


class Row(NamedTuple):
    """One operator, its fixed arguments, and its signatures: NumPy's, the standard's (2024.12), SciPy's."""

    operator: str
    numpy: tuple[str, ...] = ()
    standard: tuple[str, ...] = ()
    scipy: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = MappingProxyType({})
    finish: Callable | None = None  # applied to the operator's result
    reduces: bool = False  # whether `axis=()` means no axis, where operators reduce over all


def _row(operator: str, numpy: str = "", standard: str = "", scipy: str = "", **more: Any) -> Row:
    """Return a row; several signatures of one face are separated by semicolons."""
    numpys, standards, scipys = (tuple(filter(None, text.split("; "))) for text in (numpy, standard, scipy))
    return Row(operator, numpys, standards, scipys, **more)


_FIRST = itemgetter(0)
_BOOL = methodcaller("bool")  # PyTorch's result for uint8 is uint8
_MATRICES = {"dim1": -2, "dim2": -1}  # the last two axes

_CREATION = [
    *[_row(n, "", f"{n}(shape, *, dtype=None, device=None)") for n in ("empty", "ones", "zeros")],
    *[_row(n, "", f"{n}(x, /, *, dtype=None, device=None)") for n in ("empty_like", "ones_like", "zeros_like")],
    _row("full_like", "", "full_like(x, /, fill_value, *, dtype=None, device=None)"),
    _row("tril", "", "tril(x, /, *, k->diagonal=0)"),
    _row("triu", "", "triu(x, /, *, k->diagonal=0)"),
    _row("meshgrid", "", "meshgrid(*arrays, indexing='xy')", finish=tuple),
    _row("clone", "copy(a, order='K', subok=False)"),
]
_SHAPES = [
    _row("broadcast_tensors", "broadcast_arrays(*args, subok=False)", "broadcast_arrays(*arrays)", finish=tuple),
    _row("expand", "broadcast_to(array, shape, subok=False)", "broadcast_to(x, /, shape)"),
    _row("unsqueeze", "", "expand_dims(x, /, axis)"),
    _row("movedim", "moveaxis(a, source, destination)", "moveaxis(x, source, destination, /)"),
    _row("permute", "", "permute_dims(x, /, axes->dims)"),
    _row("transpose", "swapaxes(a, axis1->dim0, axis2->dim1)"),
    _row(
        "transpose", "matrix_transpose(x, /); linalg.matrix_transpose(x, /)",
        "matrix_transpose(x, /); linalg.matrix_transpose(x, /)", fixed={"dim0": -2, "dim1": -1},
    ),
    _row("repeat_interleave", "", "repeat(x, repeats, /, *, axis=None)"),
    _row("tile", "", "tile(x, repetitions->dims, /)"),
    _row("unbind", "unstack(x, /, *, axis=0)", "unstack(x, /, *, axis=0)", finish=tuple),
    _row("take_along_dim", "", "take_along_axis(x, indices, /, *, axis=-1)"),
    _row("diagonal", "diagonal(a, offset=0, axis1->dim1=0, axis2->dim2=1)"),
    _row("diagonal", "linalg.diagonal(x, /, *, offset=0)", "linalg.diagonal(x, /, *, offset=0)", fixed=_MATRICES),
]  # fmt: skip
_REDUCTIONS = [
    *[
        _row(operator, "", f"{name}(x, /, *, axis=None, keepdims=False)", reduces=True)
        for operator, name in (("mean", "mean"), ("amax", "max"), ("amin", "min"))
    ],
    *[_row(n, "", f"{n}(x, /, *, axis=None, keepdims=False)", reduces=True, finish=_BOOL) for n in ("all", "any")],
    *[_row(n, "", f"{n}(x, /, *, axis=None, correction=0.0, keepdims=False)", reduces=True) for n in ("var", "std")],
    *[_row(n, "", f"{n}(x, /, *, axis=None, keepdims=False)") for n in ("argmax", "argmin")],
    _row("diff", "", "diff(x, /, *, axis=-1, n=1, prepend=None, append=None)"),
]
_SEARCHES = [
    _row("nonzero", "nonzero(a)", fixed={"as_tuple": True}),
    _row("nonzero", "argwhere(a)"),
    _row("where", "", "where(condition, &x1, &x2, /)"),
    _row("argsort", "", "argsort(x, /, *, axis=-1, descending=False, stable=True)"),
    _row("sort", "", "sort(x, /, *, axis=-1, descending=False, stable=True)", finish=_FIRST),
]
_ELEMENTWISE = [
    _row("trunc", "fix(x, out=None)"),
    _row("real", "real(val)"),
    _row("special.i0", "i0(~x)"),
    _row("special.multigammaln", "", "", "special.multigammaln(~a, d->p)"),
    _row("special.polygamma", "", "", "special.polygamma(n, ~x)"),
]
_LINALG = [
    _row("linalg.cholesky", "linalg.cholesky(~a, /, *, upper=False)", "linalg.cholesky(x, /, *, upper=False)"),
    _row("linalg.cross", "", "linalg.cross(&x1, &x2, /, *, axis=-1)"),
    _row("linalg.det", "linalg.det(~a)", "linalg.det(x, /)"),
    _row("linalg.eig", "linalg.eig(~a)"),
    _row("linalg.eigvals", "linalg.eigvals(~a)"),
    _row("linalg.eigh", "", "linalg.eigh(x, /)"),
    _row("linalg.eigvalsh", "", "linalg.eigvalsh(x, /)"),
    _row("linalg.inv", "linalg.inv(~a)", "linalg.inv(x, /)"),
    _row("kron", "kron(&a, &b)"),
    _row("matmul", "", "matmul(&x1, &x2, /); linalg.matmul(&x1, &x2, /)"),
    _row("linalg.matrix_exp", "", "", "linalg.expm(~A)"),
    _row(
        "linalg.matrix_norm", "linalg.matrix_norm(~x, /, *, keepdims=False, ord='fro')",
        "linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')",
    ),
    _row("linalg.matrix_power", "", "linalg.matrix_power(x, n, /)"),
    _row("outer", "", "linalg.outer(&x1, &x2, /)"),
    _row("linalg.qr", "", "linalg.qr(x, /, *, mode='reduced')"),
    _row("linalg.slogdet", "linalg.slogdet(~a)", "linalg.slogdet(x, /)"),
    _row("solve_sylvester", "", "", "linalg.solve_sylvester(~&a, ~&b, ~&q)"),
    _row("linalg.svd", "", "linalg.svd(x, /, *, full_matrices=True)"),
    _row("linalg.svdvals", "linalg.svdvals(~x, /)", "linalg.svdvals(x, /)"),
    _row("tensordot", "", "tensordot(&x1, &x2, /, *, axes->dims=2); linalg.tensordot(&x1, &x2, /, *, axes->dims=2)"),
    _row("linalg.vector_norm", "linalg.vector_norm(~x, /, *, axis=None, keepdims=False, ord=2)"),
]  # fmt: skip
_FFT = [
    *[
        _row(
            f"fft.{n}", f"fft.{n}(a, n=None, axis=-1, norm=None, out=None)",
            f"fft.{n}(x, /, *, n=None, axis=-1, norm='backward')",
        )
        for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    ],
    *[
        _row(
            f"fft.{n}", f"fft.{n}(a, s=None, axes->dim=None, norm=None, out=None)",
            f"fft.{n}(x, /, *, s=None, axes->dim=None, norm='backward')",
        )
        for n in ("fftn", "ifftn", "rfftn", "irfftn")
    ],
    *[
        _row(f"fft.{n}", f"fft.{n}(a, s=None, axes->dim=(-2, -1), norm=None, out=None)")
        for n in ("fft2", "ifft2", "rfft2", "irfft2")
    ],
    *[
        _row(f"fft.{n}", f"fft.{n}(x, axes->dim=None)", f"fft.{n}(x, /, *, axes->dim=None)")
        for n in ("fftshift", "ifftshift")
    ],
    *[_row(f"fft.{n}", "", f"fft.{n}(n, /, *, d=1.0, dtype=None, device=None)") for n in ("fftfreq", "rfftfreq")],
]  # fmt: skip

# Functions of NumPy's protocol, in place of operators, under further names.
_LIKE = "dtype=None, order='K', subok=True, shape=None, *, device=None"
_OF_NUMPYS = [
    _row("np.convolve", "polymul(a1, a2)"),
    _row("np.cross", "linalg.cross(x1, x2, /, *, axis=-1)"),
    _row("np.flip", "flipud(m)", fixed={"axis": 0}),
    _row("np.flip", "fliplr(m)", fixed={"axis": 1}),
    _row("np.full_like", f"empty_like(prototype, /, {_LIKE}); zeros_like(a, {_LIKE})", fixed={"fill_value": 0}),
    _row("np.full_like", f"ones_like(a, {_LIKE})", fixed={"fill_value": 1}),
    _row("np.matmul", "linalg.matmul(x1, x2, /)"),
    _row("np.split", "vsplit(ary, indices_or_sections)", fixed={"axis": 0}),
    _row("np.split", "dsplit(ary, indices_or_sections)", fixed={"axis": 2}),
    _row("np.tensordot", "linalg.tensordot(x1, x2, /, *, axes=2)"),
    _row("np.trace", "linalg.trace(x, /, *, offset=0, dtype=None)", fixed={"axis1": -2, "axis2": -1}),
    *[
        _row(f"np.{n}", "", f"{n}(x, /)")
        for n in ("unique_all", "unique_counts", "unique_inverse", "unique_values")
    ],
    _row("np.vecdot", "linalg.vecdot(x1, x2, /, *, axis=-1)"),
]  # fmt: skip

TABLE = [*_CREATION, *_SHAPES, *_REDUCTIONS, *_SEARCHES, *_ELEMENTWISE, *_LINALG, *_FFT, *_OF_NUMPYS]
