"""NumPy functions on integer, boolean, single-precision, complex and empty tensors.

Every expression of `cases` is evaluated on inputs of other dtypes: where NumPy returns a result, values, shapes and
dtypes are equal, and where NumPy raises, so does the function on tensors.
"""

import numpy as np
import pytest

import retrograd as rg
import retrograd.numpy
from retrograd.core import Tensor

from .cases import ANSWERS, CASES, INPUTS
from .harness import evaluate, letters

pytestmark = pytest.mark.usefixtures("float64_as_default")

KINDS = {
    "int64": lambda a: np.round(10 * np.nan_to_num(a.real)).astype(np.int64),
    "bool": lambda a: a.real > 0.5,
    "float32": lambda a: a.astype(np.complex64 if a.dtype.kind == "c" else np.float32),
    "complex128": lambda a: a + (0 if a.dtype.kind == "c" else 0.25j * a),
    "empty": lambda a: a[..., :0] if a.ndim else a,
}
# The differences, and why: functions, or single expressions.
EXEMPT = {
    "int64": {
        "functions of integers answer in the default dtype": "reciprocal",
        "an initial value takes part in promotion":
            "np.sum(m, initial=2.0)|np.max(m, axis=1, where=f, initial=0.0)",
        "quantiles are floats in every method":
            "np.quantile(v, 0.3, method='nearest')|np.quantile(v, 0.4, method='lower')",
        "elements keep the dtype of the first array": "intersect1d",
        "needs a floating dtype": "np.logaddexp.accumulate(v)",
        "NumPy takes roots of negative ratios for complex inputs only": "geomspace",
        "the ends are cast like other operands": "np.ediff1d(m, to_end=1.0, to_begin=w)",
    },
    "bool": {
        "NumPy computes in float16":
            "arccos arcsin arctan arcsinh arctanh cbrt cos cosh deg2rad degrees exp exp2 expm1 fabs log log10 log1p "
            "log2 rad2deg radians sin sinh sqrt tan tanh arctan2 copysign hypot logaddexp logaddexp2 ldexp heaviside "
            "nextafter rint frexp modf",
        "NumPy computes in int8, which PyTorch refuses, or takes as int64":
            "reciprocal square conjugate fmod power remainder floor_divide round apply_along_axis|"
            "np.linalg.eigvalsh((h + np.conj(h.T)) / 2)",
        "sums and products count, where NumPy takes booleans for numbers modulo 2":
            "vecdot einsum linalg.vecdot|np.sum(m, initial=2.0)|"
            "np.max(m, axis=1, where=f, initial=0.0)|intersect1d",
        "quantiles are floats": "quantile percentile nanquantile nanpercentile",
        "differences of booleans are taken": "gradient ediff1d sign",
        "singular, or zero at an end": "linalg.cond geomspace|np.logaddexp.accumulate(v)|np.polymul(v, u)",
    },
    "float32": {
        "NumPy widens to double precision":
            "cov corrcoef bincount vander trim_zeros intersect1d interp polyder polyint geomspace|np.dot(2.0, m)|"
            "np.quantile(m, [0.1, 0.8], axis=1)|np.nanquantile(m, [0.2, 0.7], axis=1, keepdims=True)",
        "numbers that the tensor meets are float64":
            "gradient|np.linspace(0, t, 5)|np.logspace(0, t, 5)|np.ediff1d(m, to_end=1.0, to_begin=w)",
    },
    "complex128": {
        "PyTorch takes complex numbers here":
            "fabs logaddexp ldexp bincount isposinf isneginf|np.logaddexp.accumulate(v)",
        "operators and methods of tensors are PyTorch's":
            "piecewise select|np.where(m > 0.5, m, 0.0)|m.clip(0.3, 0.7)",
        "there is no order for complex numbers in running extremes and remainders":
            "np.maximum.accumulate(m, axis=1)|np.minimum.accumulate(v)|"
            "np.interp(3.1 * v, [0.1, 0.9, 0.4], u, period=1.0)",
    },
    "empty": {
        "NaN, where NumPy raises ZeroDivisionError": "average",
        "NumPy forgets an axis of size 0": "np.nanquantile(m, [0.2, 0.7], axis=1, keepdims=True)",
        "needs square matrices, which are not looked at": "diag_indices_from",
        "a product of nothing is refused": "polymul",
        "refused, where NumPy answers NaN with a warning": "np.cov(m, rowvar=False, bias=True)",
    },
}  # fmt: skip
if np.lib.NumpyVersion(np.__version__) < "2.5.0":
    EXEMPT["empty"]["NumPy before 2.5 refuses no points"] = "np.interp(v, np.cumsum(w), u[:2].sum() * w)"


def exempt(kind):
    """Return the expressions that are exempt for inputs of a kind."""
    found = set()
    for listed in EXEMPT[kind].values():
        for part in listed.split("|"):
            names = [] if "(" in part else part.split()
            found |= {part} if not names else {e for n in names for e in [*CASES.get(n, ()), *ANSWERS.get(n, ())]}
    return found


def outcome(expression, namespace, inputs):
    """Return the results as arrays, or the error."""
    with np.errstate(all="ignore"):
        try:
            return flat(evaluate(expression, namespace, **inputs))
        except Exception as error:
            return error


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for member in value for leaf in flat(member)]
    return [value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)]


def difference(ours, theirs):
    """Return how results differ, in words; empty if they agree."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        both = isinstance(ours, Exception) and isinstance(theirs, Exception)
        return "" if both else f"{ours!r}, NumPy: {theirs!r}"
    if [(a.shape, a.dtype) for a in ours] != [(b.shape, b.dtype) for b in theirs]:
        return f"{[(a.shape, a.dtype) for a in ours]}, NumPy: {[(b.shape, b.dtype) for b in theirs]}"
    return "" if all(map(close, ours, theirs)) else f"{ours}, NumPy: {theirs}"


def close(a, b):
    if b.dtype.kind not in "fc":
        return bool((a == b).all())
    rounding = 1000 * np.finfo(b.dtype).eps
    size = np.abs(b[np.isfinite(b)]).max(initial=1)
    return np.allclose(a, b, rtol=rounding, atol=rounding * size, equal_nan=True)


def compared(expression, kind):
    arrays = {name: np.asarray(KINDS[kind](INPUTS[name])) for name in letters(expression)}
    theirs = outcome(expression, np, arrays)
    return difference(outcome(expression, retrograd.numpy, {n: rg.as_tensor(a) for n, a in arrays.items()}), theirs)


EXPRESSIONS = {n: [e for t in (CASES, ANSWERS) for e in t.get(n, ()) if letters(e)] for n in {**CASES, **ANSWERS}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_values_shapes_and_dtypes_are_those_of_numpy(kind):
    held = {e for listed in EXPRESSIONS.values() for e in listed} - exempt(kind)
    wrong = {expression: found for expression in held if (found := compared(expression, kind))}
    assert wrong == {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_every_exemption_is_needed(kind):
    for listed in EXEMPT[kind].values():
        for part in listed.split("|"):
            for word in [part] if "(" in part else part.split():
                assert any(compared(e, kind) for e in EXPRESSIONS.get(word, [word])), word
