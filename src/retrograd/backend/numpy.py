"""The namespace of NumPy arrays: retrograd's own kernels, then NumPy's functions, then SciPy's."""

import math
from functools import lru_cache

import numpy as np

from retrograd import kernels
from retrograd.backend import elementary
from retrograd.backend.gather_scatter import *  # noqa: F403
from retrograd.backend.gather_scatter import check_range, contiguous, kernels_for, largest_unsigned, range_hint
from retrograd.backend.linalg import *  # noqa: F403
from retrograd.backend.norms import *  # noqa: F403
from retrograd.backend.products import *  # noqa: F403
from retrograd.backend.products import row_matrix
from retrograd.backend.rounding import *  # noqa: F403
from retrograd.backend.rowwise import *  # noqa: F403
from retrograd.backend.rowwise import rows_of
from retrograd.backend.sorting import *  # noqa: F403
from retrograd.backend.special import *  # noqa: F403
from retrograd.backend.special import scipy_special
from retrograd.backend.stored_dtypes import convert
from retrograd.backend.traced_array import like_quotient, visible
from retrograd.backend.type_info import check_element_fits, check_number_fits
from retrograd.core.aval import symbolic
from retrograd.core.dtype import is_extension
from retrograd.core.errors import OperandDtypeError, OperandIndexError
from retrograd.core.views import are_apart
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.kernels import add as add
from retrograd.kernels import affine_rows as affine_rows
from retrograd.kernels import multiply as multiply
from retrograd.kernels import row_major as row_major
from retrograd.kernels import standardize_rows as standardize_rows
from retrograd.kernels import subtract as subtract
from retrograd.kernels import true_divide as true_divide
from retrograd.kernels.host_values import on_host as on_host

# Modules that many programs do not need, imported on first use: those that are in this namespace themselves, and those
# whose functions are.
_MODULES = {
    "attention": lambda: lazy_module("retrograd.backend.attention"),
    "fft": lambda: lazy_module("retrograd.backend.fourier"),
    "padding": lambda: lazy_module("retrograd.backend.padding"),
    "ragged_attention": lambda: lazy_module("retrograd.backend.ragged_attention"),
    "segments": lambda: lazy_module("retrograd.backend.segments"),
    "sparse_products": lambda: lazy_module("retrograd.backend.sparse_products"),
}
_FUNCTIONS = {
    "bunch_kaufman swaps_of_pivots": lambda: lazy_module("retrograd.backend.bunch_kaufman"),
    "conv conv_input conv_weight window_columns window_sums": lambda: lazy_module("retrograd.backend.conv"),
    "draw_distinct gamma_cdf_derivative sample_indices": lambda: lazy_module("retrograd.backend.sampling"),
    "extreme_eigenpairs": lambda: lazy_module("retrograd.backend.lobpcg"),
    "gru gru_grad lstm lstm_grad recurrent_gradients recurrent_layer recurrent_layer_grad": lambda: lazy_module(
        "retrograd.backend.recurrent"
    ),
    "max_pool_indices pooled_max pooled_max_backward pooled_sum pooled_sum_backward": lambda: lazy_module(
        "retrograd.backend.pooling"
    ),
    "pad_constant resample resample_backward sample_points sample_points_backward sample_slopes": lambda: lazy_module(
        "retrograd.backend.images"
    ),
}
_HOMES = {name: module for names, module in _FUNCTIONS.items() for name in names.split()}


def __getattr__(name):
    if name in _MODULES:
        found = _MODULES[name]()
    elif name in _HOMES:
        found = getattr(_HOMES[name](), name)
    else:
        found = getattr(np, name) if hasattr(np, name) else getattr(scipy_special(), name)
        found = kernel_of(elementary.with_own_loops(found)) if type(found) is np.ufunc else found
    if not name.startswith("__"):
        globals()[name] = found  # kernels look names up at every call, and do not reach this function again
    return found


# NumPy's and SciPy's functions in place of which kernels compute.
UFUNCS = {add: np.add, subtract: np.subtract, multiply: np.multiply, true_divide: np.true_divide}
_KERNELS = {ufunc: kernel for kernel, ufunc in UFUNCS.items()}


@lru_cache(None)
def threaded(ufunc):
    """Return a ufunc with its results in cached memory; NumPy's, and those with our loops, share large arrays.

    SciPy's do not: some of them take the GIL for each number.
    """
    numpys = getattr(np, ufunc.__name__, None)
    is_numpys = type(numpys) is np.ufunc and ufunc in (numpys, elementary.with_own_loops(numpys))
    return (kernels.threaded if is_numpys else kernels.caching)(ufunc)


def kernel_of(ufunc):
    """Return the kernel that computes as a ufunc does: one of ours, or the ufunc by threads."""
    if ufunc not in _KERNELS:
        _KERNELS[ufunc] = threaded(ufunc)
        UFUNCS[_KERNELS[ufunc]] = ufunc
    return _KERNELS[ufunc]


def ufunc_of(kernel):
    """Return the ufunc with one result that computes as a kernel does and takes `out`; None if there is none."""
    found = UFUNCS.get(kernel, kernel)
    return threaded(found) if type(found) is np.ufunc and found.signature is None and found.nout == 1 else None


def full(shape, value, dtype):
    """Return an array filled with a value as conversion to the dtype gives it."""
    return np.full(shape, _fill_value("full", value, dtype, shape), dtype)


def linspace(start, stop, num):
    """Return NumPy's `linspace` of floats, with its arithmetic but without its handling of arrays as ends."""
    step = (stop - start) / (num - 1) if num > 1 and type(start) is not complex is not type(stop) else 0
    if step == 0 or not math.isfinite(step):
        return np.linspace(start, stop, num)
    out = np.arange(0, num, dtype=np.float64)
    out *= step
    out += start
    out[-1] = stop
    return out


def _fill_value(name, value, dtype, shape):
    check = check_element_fits if math.prod(shape) == 1 else check_number_fits
    check(name, value, dtype)
    return convert(np.asarray(value), dtype) if is_extension(dtype) else value


def cast(x, dtype):
    """Return x in another dtype; x itself if it has that dtype.  Complex to real drops the imaginary part."""
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        real = x.real  # a view: writes to the result must not change the complex array
        return real.copy(order="K") if real.dtype == dtype else convert(real, dtype)
    return convert(x, dtype)


def cast_copy(x, dtype):
    """Return `cast` in new memory, even if x has that dtype already."""
    out = cast(dense(x), dtype)
    return out.copy(order="K") if out is x else out


def copy(x):
    """Return a copy that preserves the memory order of the dimensions."""
    out = dense(x)
    return x.copy(order="K") if out is x else out


def dense(x):
    """Return x; of an expanded x a copy in the order of a sum with x, which is PyTorch's for copies too.

    NumPy's own copies have the expanded dimensions last in memory, so that few views of them can be made.
    """
    if not on_host or 0 not in x.strides or not x.size:
        return x
    flags = (("readonly",), ("writeonly", "allocate"))
    out = np.nditer((x, None), op_flags=flags, op_dtypes=(x.dtype, x.dtype)).operands[1]
    out[...] = x
    return out


def zeros_like(x, dtype=None):
    """Return zeros in the shape and memory order of x."""
    return np.zeros_like(dense(x), dtype)


def ones_like(x, dtype=None):
    """Return ones in the shape and memory order of x."""
    return np.ones_like(dense(x), dtype)


def full_like(x, value, dtype=None):
    """Return an array filled with one value, in the shape and memory order of x."""
    return np.full_like(dense(x), _fill_value("full_like", value, x.dtype if dtype is None else dtype, x.shape), dtype)


def nan_to_num(x, **numbers):
    """Return NumPy's `nan_to_num`, in the memory order of x."""
    x = dense(x)
    return x.copy(order="K") if on_host and np.isfinite(x).all() else np.nan_to_num(x, **numbers)


def real_only(name, x):
    """Wrap a function to raise for complex arrays, where the formula would give a wrong result."""
    if x.dtype.kind == "c":
        raise OperandDtypeError(f"{name}: complex numbers are not supported, got {x.dtype}")


def _comparison(name, kernel):
    """Wrap a comparison to raise for complex arrays, which NumPy would order by their real parts."""

    def compare(a, b):
        if (a if hasattr(a, "dtype") else b).dtype.kind == "c":  # both have the same dtype, or one is a Python number
            real_only(name, a if hasattr(a, "dtype") else b)
        return kernel(a, b)

    return compare


less, less_equal = _comparison("lt", np.less), _comparison("le", np.less_equal)
greater, greater_equal = _comparison("gt", np.greater), _comparison("ge", np.greater_equal)
maximum, minimum = _comparison("maximum", np.maximum), _comparison("minimum", np.minimum)


def _real_function(name, function):
    """Wrap NumPy's function of an array to raise for complex arrays."""

    def kernel(x, *args, **params):
        real_only(name, x)
        return function(x, *args, **params)

    return kernel


def _real_reduction(name, reduce):
    """Wrap a reduction to raise for complex arrays."""

    def kernel(x, axis, keepdims):
        if x.dtype.kind == "c":
            real_only(name, x)
        return reduce(x, axis, None, None, keepdims)

    return kernel


amax, amin = _real_reduction("amax", np.maximum.reduce), _real_reduction("amin", np.minimum.reduce)
argmax = _real_function("argmax", lambda x, axis, keepdims: x.argmax(axis, keepdims=keepdims))
argmin = _real_function("argmin", lambda x, axis, keepdims: x.argmin(axis, keepdims=keepdims))


# Methods of arrays in place of NumPy's functions, which take up to ten times as long on few elements.


def reshape(x, shape):
    """Return NumPy's `reshape`; of a number too."""
    return x.reshape(shape) if hasattr(x, "reshape") else np.reshape(x, shape)


def swapaxes(x, axis1, axis2):
    """Return NumPy's `swapaxes`."""
    return x.swapaxes(axis1, axis2)


def transpose(x, axes):
    """Return NumPy's `transpose`."""
    return x.transpose(axes)


def broadcast_to(x, shape):
    """Return NumPy's `broadcast_to`."""
    return kernels.broadcast_to(x, shape) if on_host and type(x) is np.ndarray else np.broadcast_to(x, shape)


def take_along_one(x, index, dim):
    """Return the elements of x at an index array, of integers or booleans, along one dimension, in row-major order."""
    if on_host and index.dtype.kind == "i" and x.ndim > 1 and x.size and x.flags.c_contiguous:
        return x.take(index, dim)  # of other arrays, it copies all elements first
    return np.asarray(x[(*(slice(None),) * dim, index)], order="C")


MANY = 10_000  # elements from which on positions in a row are found faster


def argwhere(x):
    """Return NumPy's `argwhere`; for large arrays by positions in a row, which NumPy finds in a tenth of the time."""
    if not on_host or not x.ndim:
        return np.argwhere(x)
    if x.ndim == 1 or x.size < MANY:
        return np.array(x.nonzero()).T
    (left,) = x.reshape(-1).nonzero()
    out = np.empty((x.ndim, len(left)), left.dtype)
    for dim in range(x.ndim - 1, 0, -1):
        rows = left // x.shape[dim]
        np.subtract(left, rows * x.shape[dim], out=out[dim])
        left = rows
    out[0] = left
    return out.T


FEW = 128  # elements up to which NumPy's `where` is faster
_AS_FLOATS = {
    np.dtype(d): np.dtype(f"f{np.dtype(d).itemsize}")
    for d in (np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64)
}


def where(condition, x, other):
    """Return NumPy's `where`, without branches if there are many elements: mispredicted ones are slow."""
    condition, x, other = map(np.asarray, (condition, x, other))
    if max(condition.size, x.size, other.size) <= FEW:
        return np.where(condition, x, other)
    like = _AS_FLOATS.get(x.dtype)
    if like is None or not on_host or x.dtype != other.dtype or condition.dtype.char != "?":
        return kernels.reference.where(condition, x, other)
    return kernels.where(condition, x.view(like), other.view(like)).view(x.dtype)


def run_on_host(function, *arrays):
    """Return the result of a function of NumPy's arrays only, as SciPy's are."""
    return function(*arrays)


def _angle_conversion(name, of, to):
    """Return NumPy's conversion of angles, for floats by a product with the factor that it has too."""

    def convert_angles(x):
        number = x.dtype.type
        return x * (number(to) / number(of)) if x.dtype.char in "fd" else getattr(np, name)(x)

    return convert_angles


deg2rad, rad2deg = _angle_conversion("deg2rad", 180, math.pi), _angle_conversion("rad2deg", math.pi, 180)


def sign(x):
    """Return the sign of each element: 1, -1 or 0; NaN stays NaN."""
    real_only("sign", x)
    return (kernels if x.dtype.char in "fd" else kernels.reference).sign(x)


def relu(x):
    """Return max(x, 0); NaN stays NaN."""
    real_only("relu", x)
    return (kernels if x.dtype.char in "fd" else kernels.reference).relu(x)


def relu_grad(g, out):
    """Return g where `out`, the result of relu, is not 0; else 0."""
    return (kernels if out.dtype.char in "fd" and g.dtype == out.dtype else kernels.reference).relu_grad(g, out)


def dropout_mask_scale(mask, x, scale):
    """Return scale x where the mask is true, else 0 times x."""
    return kernels_for(x.dtype).masked(mask, x, x.dtype.type(scale))


def _plane_kernel(name, for_short_planes=True):
    """Return a kernel for images (n, c, l), or the NumPy version where that is faster: for short planes of one channel.

    If the kernel is not `for_short_planes`, for all short planes except those of one element.
    """
    kernel = getattr(kernels, name)

    def run(x, *others):
        _, channels, length = x.shape
        is_faster = length >= 16 or (channels > 1 and (length == 1 or for_short_planes))
        return (kernel if is_faster else getattr(kernels.reference, name))(x, *others)

    def call(x, *others):
        return run(x, *others) if x.flags.c_contiguous else _run_with_channels_last(run, x, *others)

    return call


def _run_with_channels_last(run, *operands):
    """Return a kernel's results for images that are not row-major: for rows of channels, if all are so in memory."""
    rows = [a.transpose(0, 2, 1) if a.ndim == 3 else a for a in operands]
    if not all(a.flags.c_contiguous for a in rows):
        return run(*map(contiguous, operands))
    out = run(*[a.reshape(-1, a.shape[2], 1) if a.ndim == 3 else a for a in rows])
    return out.reshape(rows[0].shape).transpose(0, 2, 1) if type(out) is np.ndarray and out.ndim == 3 else out


channel_moments, channel_dots = _plane_kernel("channel_moments"), _plane_kernel("channel_dots", False)
channel_shift, channel_mix = _plane_kernel("channel_shift"), _plane_kernel("channel_mix")


@lru_cache(16)
def unit_weights(n, dtype):
    """Return a weight and a bias that change nothing, for kernels, which read them: n ones, and n zeros."""
    return np.ones(n, dtype), np.zeros(n, dtype)


def norm_rows(x, weight, bias, eps, center):
    """Return rows x (..., m, n) normalized, times weight, plus bias, (..., n)."""
    number = x.dtype.type
    if weight.ndim == 1:
        return kernels.norm_rows(x, weight, bias, number(eps), number(center))
    each = (*weight.shape[:-1], *(1,) * (x.ndim - weight.ndim), weight.shape[-1])
    return kernels.norm_rows(x, weight.reshape(each), bias.reshape(each), number(eps), number(center))


def norm_rows_grad(g, x, weight, eps, center):
    """Return the derivatives of `norm_rows` by x, by the weight and by the bias, times g."""
    rows = (*weight.shape[:-1], math.prod(x.shape[weight.ndim - 1 : -1]), x.shape[-1])
    number = x.dtype.type
    dx, *sums = kernels.norm_grad_rows(g.reshape(rows), x.reshape(rows), weight, number(eps), number(center))
    return (dx if rows == x.shape else dx.reshape(x.shape), *sums)  # the engine never takes over views


def logsumexp(x, dim, keepdim):
    """Return log(sum(exp(x))) over dim, shifted by the largest real part unless that is infinite.

    A complex shift would leave the principal branch of the logarithm.
    """
    top = np.max(x.real, axis=dim, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, np.zeros((), top.dtype))
    with np.errstate(divide="ignore"):
        out = elementary.log(np.sum(elementary.exp(x - shift), axis=dim, keepdims=True)) + shift
    return out if keepdim else np.squeeze(out, axis=dim)


def one_hot(x, num_classes):
    """Return a row of zeros with a single one for each class; -1 means as many columns as the largest class needs."""
    columns = np.max(x, initial=-1).item() + 1 if num_classes < 0 else num_classes
    if on_host and x.size and x.min() < 0:  # no ValueError, since the shape rule could not explain it
        raise RuntimeError(f"one_hot: Class values must be non-negative, got {x.min()}")
    if on_host and x.size and x.max() >= columns:
        raise ValueError(
            f"one_hot: Class values must be smaller than num_classes: classes {x.min()} to {x.max()} do not fit into "
            f"{columns}"
        )
    return (x[..., None] == np.arange(columns)).astype(np.int64, order="C")


def any_true(x, axis=None, keepdims=False):
    """Return NumPy's `any`, by the function that its own calls."""
    return np.logical_or.reduce(x, axis, bool, None, keepdims)


def all_true(x, axis=None, keepdims=False):
    """Return NumPy's `all`, by the function that its own calls."""
    return np.logical_and.reduce(x, axis, bool, None, keepdims)


add_up = np.add.reduce  # (x, axis, dtype, out, keepdims)


def sum(x, axis=None, dtype=None, keepdims=False):
    """Return NumPy's sum; the rows of a large matrix, and the channels of images, are summed by a kernel.

    Half precision is accumulated in single precision.
    """
    own = dtype is None or dtype == x.dtype  # not `in`: NumPy considers float64 equal to None
    if own and x.dtype.char == "e":
        return np.add.reduce(x, axis=axis, dtype=np.float32, keepdims=keepdims).astype(x.dtype)
    if type(axis) is tuple and x.size > 4096 and x.dtype.char in "fd" and own:
        kernel = _sum_kernel(x, axis)
        if kernel:
            kept = tuple(1 if d in axis else n for d, n in enumerate(x.shape) if keepdims or d not in axis)
            return kernel(x, len(axis)).reshape(kept)
    return np.add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _sum_kernel(x, axis):
    """Return the kernel that sums the first dimensions, or all but the second, or None.

    The array is contiguous, or so are images with the channels last.
    """
    if len(axis) == x.ndim:
        return None
    if not x.flags.c_contiguous:
        return _sums_of_last if axis == (0, *range(2, x.ndim)) and np.moveaxis(x, 1, -1).flags.c_contiguous else None
    if axis == tuple(range(len(axis))):
        return _row_sums
    return _channel_sums if axis == (0, *range(2, x.ndim)) else None


def _row_sums(x, count):
    return kernels.column_sums(x.reshape(math.prod(x.shape[:count]), -1))


def _sums_of_last(x, count):
    return _row_sums(np.moveaxis(x, 1, -1), count)


def _channel_sums(x, _):
    """Return the sums over images and positions; short planes are vectorized across channels."""
    n, c = x.shape[:2]
    places = x.size // (n * c)
    if places > 64:
        return kernels.channel_sums(x.reshape(n, c, places))
    return np.add.reduce(kernels.column_sums(x.reshape(n, c * places)).reshape(c, places), axis=1)


def mean(x, axis=None, dtype=None, keepdims=False):
    """Return NumPy's mean by the fastest way; NaN without a warning if there are no elements."""
    half = dtype is None and x.dtype == np.float16
    total = np.add.reduce(x, axis=axis, dtype=np.float32 if half else dtype, keepdims=keepdims)
    if x.size == 0:
        return np.full(total.shape, np.nan, dtype or x.dtype)
    out = total / (x.size // total.size)
    return out.astype(x.dtype) if half else out


def var(x, axis=None, ddof=0, keepdims=False):
    """Return NumPy's variance; without degrees of freedom, the sum of squares / 0 (NaN or inf), without a warning."""
    rows = rows_of(x, axis)
    if rows is not None and x.dtype.char in "fd" and rows.shape[-1] > ddof and rows.shape[-1] > 0:
        out = kernels_for(x.dtype).variance_rows(rows, x.dtype.type(rows.shape[-1] - ddof))
        return out.reshape((1,) * x.ndim if axis is None else (*out.shape, 1)) if keepdims else out
    total = np.add.reduce(x, axis, None, None, True)
    count = x.size // (total.size or 1)
    if count > ddof and count > 0:
        if x.dtype.char not in "fd":
            return np.var(x, axis=axis, ddof=ddof, keepdims=keepdims)
        apart = subtract(x, total / count)  # as np.var, which spends most time elsewhere
        return np.add.reduce(multiply(apart, apart, apart), axis, None, None, keepdims) / (count - ddof)
    squares = mean(np.square(np.abs(x - mean(x, axis=axis, keepdims=True))), axis=axis, keepdims=keepdims)
    with np.errstate(invalid="ignore"):
        return squares * math.inf


def fill_shape(x, shape):
    """Return an array with the one element of x everywhere; small arrays in new memory, which is faster than a view."""
    size = symbolic(shape)
    if size is not None:
        return size.broadcast(x.reshape(()), shape)
    return _fill(x, shape) if on_host and math.prod(shape) <= 1024 else np.broadcast_to(x.reshape(()), shape)


@visible(like=lambda x, shape: np.empty(shape, x.dtype), does="fill")
def _fill(x, shape):
    out = np.empty(shape, x.dtype)
    out.fill(x.item())
    return out


def diagonal(x, offset, dim1, dim2):
    """Return the diagonal of two dimensions as the last dimension: a view, writable if x is."""
    out = np.diagonal(x, offset, dim1, dim2)
    if on_host:
        out.flags.writeable = x.flags.writeable
    return out


def is_writable(x):
    """Return whether an array may be written to, and has each element once."""
    return x.flags.writeable if on_host else are_apart(x.shape, x.strides, x.itemsize)


@lru_cache(32)
def _mask_of_triangle(rows, columns, diagonal):
    return np.tri(rows, columns, diagonal, bool)


def tril(x, diagonal):
    """Return NumPy's `tril`, which makes the mask of a small triangle at every call."""
    mask = _small_triangle(x, diagonal)
    return np.tril(x, diagonal) if mask is None else np.where(mask, x, x.dtype.type(0))


def triu(x, diagonal):
    """Return NumPy's `triu`, as `tril`."""
    mask = _small_triangle(x, diagonal - 1)
    return np.triu(x, diagonal) if mask is None else np.where(mask, x.dtype.type(0), x)


def _small_triangle(x, diagonal):
    """Return where the lower triangle of small matrices is; None for large ones."""
    sizes = x.shape[-2:]
    return _mask_of_triangle(*sizes, diagonal) if on_host and math.prod(sizes) < MANY else None


def diagonal_backward(src, shape, offset, dim1, dim2):
    """Return zeros of `shape` with src on a diagonal."""
    out = np.zeros(shape, src.dtype)
    place = diagonal(out, offset, dim1, dim2)
    if place.shape != src.shape:
        raise ValueError(f"the diagonal has shape {place.shape}, the values have shape {src.shape}")
    place[...] = src
    return out


def lookup(weight, ids):
    """Return the rows of weight at the indices `ids`."""
    check_range("embedding", ids, len(weight))
    return np.take(weight, ids, axis=0)


@visible(like=like_quotient, does="divide")
def quotient_or_nan(a, b):
    """Return a / b, and NaN for 0 / 0, without a warning."""
    if on_host and b.ndim == 0 and b:
        return np.true_divide(a, b)
    with np.errstate(invalid="ignore"):
        return np.true_divide(a, b)


@visible(like=like_quotient, does="divide or zero")
def quotient_or_zero(a, b):
    """Return a / b, and 0 where b is 0."""
    if on_host and b.ndim == 0 and b:
        return np.true_divide(a, b)
    out = np.zeros(np.broadcast_shapes(a.shape, b.shape), a.dtype)
    return np.true_divide(a, b, out=out, where=b != 0)


def bernoulli_loss(x, target):
    """Return -(target log x + (1 - target) log(1 - x)), with each logarithm clipped to at least -100."""
    real_only("bernoulli_loss", x)
    for name, given in (("input", x), ("target", target)) if on_host else ():
        if not np.all((given >= 0) & (given <= 1)):  # NaN is refused, too
            raise ValueError(
                f"binary_cross_entropy: probabilities must be from 0 to 1, got {given.min()} to {given.max()}; all "
                f"elements of {name} should be between 0 and 1"
            )
    with np.errstate(divide="ignore"):
        yes, no = np.maximum(np.log(x), -100), np.maximum(np.log1p(-x), -100)
    return (target - 1) * no - target * yes


def class_indices(name, target, ignore_index, classes):
    """Return the class of each row (0 where ignored), and which rows count (None: all)."""
    ids = target.reshape(-1)
    if on_host and not 0 <= ignore_index < classes and (not ids.size or largest_unsigned(ids) < classes):
        return (np.arange(ids.size), ids), None  # most calls: all are classes
    counts = ids != ignore_index
    if on_host and counts.all():
        counts = None
    else:
        ids = np.where(counts, ids, 0)
    if on_host and ids.size and (ids.min() < 0 or ids.max() >= classes):
        at = np.flatnonzero((ids < 0) | (ids >= classes))[0]
        position = [int(i) for i in np.unravel_index(at, target.shape)]
        raise OperandIndexError(
            f"{name}: Target {ids[at]} is out of bounds: the target at index {position} is class {ids[at]}, and there "
            f"are {classes} classes{range_hint(ids[at], classes)}"
        )
    return (np.arange(ids.size), ids), counts


def class_loss(x, target, ignore_index):
    """Return -log softmax(x) at the class of each row; 0 where that is ignored."""
    return kernels_for(x.dtype).class_loss_rows(x, *_classes(target, ignore_index, x.shape[-1]))


@kernels.small_class_loss
def mean_class_loss(x, target, ignore_index):
    """Return the mean of `class_loss` over the targets that count; NaN if none does."""
    if on_host and type(target) is np.ndarray:
        ids = target.astype(np.int64, copy=False)
        count = x.dtype.type(_count_classes(ids, ignore_index, x.shape[-1]))
        total = np.add.reduce(kernels_for(x.dtype).class_loss_rows(x, ids, np.int64(ignore_index)), None)
        return total / count if count else quotient_or_nan(total, count)
    total = np.add.reduce(class_loss(x, target, ignore_index), axis=None)
    return quotient_or_nan(total, _count_targets(target, ignore_index, x.dtype))


@kernels.small_class_grad
def mean_class_grad(g, x, target, ignore_index):
    """Return the gradient of `mean_class_loss`, times g."""
    share = quotient_or_zero(g, _count_targets(target, ignore_index, x.dtype))
    return class_grad(share, x, target, ignore_index)


def _count_targets(target, ignore_index, dtype):
    """Return the number of targets that are not ignored, in a dtype."""
    counts = target != ignore_index
    if on_host and type(target) is np.ndarray:
        return dtype.type(np.count_nonzero(counts))
    return np.add.reduce(counts, axis=None, dtype=np.int64).astype(dtype)


def class_residual(x, target, ignore_index):
    """Return softmax(x) - one_hot(target), the gradient of `class_loss`; 0 where ignored."""
    return class_grad(np.ones((), x.dtype), x, target, ignore_index)


def class_grad(g, x, target, ignore_index):
    """Return `class_residual`, times g for each row."""
    module = kernels_for(x.dtype) if g.dtype == x.dtype else kernels.reference
    return module.class_grad_rows(x, *_classes(target, ignore_index, x.shape[-1]), g)


def _classes(target, ignore_index, classes):
    """Return the targets and the ignored class as the kernels take them, after checking the range of all targets."""
    ids = target.astype(np.int64, copy=False)
    _check_classes(ids, ignore_index, classes)
    return ids, np.int64(ignore_index)


@visible(like=None, does="check classes")
def _check_classes(ids, ignore_index, classes):
    """Raise IndexError if a target is out of range."""
    if on_host and ids.size and largest_unsigned(ids) >= classes:
        class_indices("cross_entropy", ids, ignore_index, classes)


def _count_classes(ids, ignore_index, classes):
    """Return the number of targets that are not ignored; IndexError if one is out of range."""
    if ids.size and (0 <= ignore_index < classes or largest_unsigned(ids) >= classes):
        _check_classes(ids, ignore_index, classes)
        return np.count_nonzero(ids != ignore_index)
    return ids.size


def class_gather(x, target, ignore_index):
    """Return x at the class of each row; 0 where that is ignored."""
    places, counts = class_indices("nll_loss", target, ignore_index, x.shape[-1])
    out = row_matrix(x)[places]
    if counts is not None:
        out[~counts] = 0
    return out.reshape(target.shape)


def class_scatter(src, target, classes, ignore_index):
    """Return zeros with src at the class of each row; all zeros where that is ignored."""
    places, counts = class_indices("nll_loss", target, ignore_index, classes)
    out = np.zeros((target.size, classes), src.dtype)
    out[places] = src.reshape(-1)
    if counts is not None:
        out[~counts] = 0
    return out.reshape(*target.shape, classes)
