"""HIPS autograd: the same functions over `autograd.numpy`, `retrograd.numpy` and NumPy give the same gradients."""

import warnings

import autograd.numpy as anp
import autograd.numpy.fft
import autograd.numpy.linalg
import numpy as np
import pytest
from autograd.core import primitive_vjps

import autograd
import retrograd.numpy as rnp
from retrograd.func import autograd_api

from ..mirrors import test_scipy as scipys
from ..mirrors.cases import CASES, INPUTS
from ..mirrors.harness import evaluate, scalar_function, weighted
from ..mirrors.test_dtypes import KINDS
from ..mirrors.test_functions import ONLY_MIRROR

# NumPy functions without reverse derivative in HIPS autograd 1.9.
NOT_THERE = """
    accumulate append apply_along_axis apply_over_axes asarray average bincount block broadcast_arrays cbrt
    choose compress convolve copy copysign corrcoef correlate cov cumprod cumulative_prod cumulative_sum delete
    diagflat divmod ediff1d extract float_power fmod frexp full_like geomspace hypot i0 insert interp
    intersect1d ldexp logspace setxor1d unique_all unique_counts unique_inverse
    matrix_transpose matvec median meshgrid modf nancumprod nancumsum nanmax nanmean
    nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar percentile piecewise polyadd polyder
    polyint polymul polysub polyval positive ptp quantile resize select setdiff1d sort_complex take
    take_along_axis trapezoid trim_zeros union1d unique unique_values unstack unwrap vander vdot vecdot vecmat
    fft.hfft fft.ihfft linalg.cond linalg.cross linalg.diagonal linalg.eigvals linalg.eigvalsh linalg.lstsq
    linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_transpose linalg.multi_dot linalg.outer
    linalg.qr linalg.svdvals linalg.tensordot linalg.tensorinv linalg.tensorsolve linalg.trace linalg.vecdot
    linalg.vector_norm
"""
# Functions whose derivative there refuses these arguments.
RAISES = {
    "np.abs(np.linalg.eigh((p + p.T) / 2).eigenvectors)", "np.abs(np.linalg.svd(m, full_matrices=False).U)",
    "np.add.accumulate(m)", "np.add.reduce(m)", "np.angle(c, deg=True)", "np.astype(v, np.complex128)",
    "np.atleast_2d(v, m)[0]", "np.broadcast_to(v, (3, 4))", "np.clip(m, w, 1.0)", "np.concatenate([m, v], axis=None)",
    "np.cross(u, s)", "np.diag(m, -1)", "np.diagonal(a, 1, 1, 2)", "np.diagonal(m)",
    "np.diff(v, prepend=0.0, append=w)", "np.einsum('ii', s)", "np.fft.irfft2(a, (2, 3))",
    "np.fft.irfftn(a, (2, 3), (0, 2))", "np.fft.rfft(m, 5, 0, 'ortho')", "np.fft.rfft2(m, (2, 3), (0, 1))",
    "np.fft.rfftn(m, (2, 3), (0, 1))", "np.flip(a, (0, 2))", "np.flip(m)",
    "np.gradient(m, 0.5, axis=1, edge_order=2)", "np.gradient(m)[1]",
    "np.gradient(v, np.array([0.0, 1.0, 1.5, 3.0]))", "np.linalg.norm(m, 2)", "np.linalg.norm(m, np.inf, axis=0)",
    "np.linalg.norm(v, 1)", "np.linalg.slogdet(e).logabsdet", "np.linalg.solve(e, s)", "np.linalg.svd(m)[1]",
    "np.linspace(v, 1.0, 3, axis=1)", "np.linspace(v, w, 4, endpoint=False)", "np.maximum.reduce(m)",
    "np.minimum.reduce(m)", "np.multiply.outer(m, u)", "np.multiply.reduce(m, axis=1)", "np.nan_to_num(g, nan=2.0)",
    "np.pad(m, ((1, 0), (0, 2)), constant_values=3.0)", "np.pad(m, 1, 'edge')", "np.pad(v, (1, 2), mode='reflect')",
    "np.pad(v, 2)", "np.pad(v, 2, 'symmetric')", "np.pad(v, 2, 'wrap')",
    "np.pad(m, 1, constant_values=((1, 2), (3, 4)))", "np.repeat(m, [1, 0, 2], axis=0)",
    "np.roll(m, (1, -1), axis=(0, 1))", "np.roll(m, (1, 1), axis=-1)",
    "np.split(v, [3, 1])[2]", "np.var(m, axis=0, mean=np.mean(n, axis=0, keepdims=True))",
    "np.rot90(a, 3, (1, 2))", "np.sort(m)", "np.sort(m, axis=0)",
    "np.sort(m, axis=None)", "np.subtract.outer(v, w)", "np.tile(m, 2)", "np.trace(a, 1, 1, 2)",
}  # fmt: skip
# Functions with another gradient there; ours agrees with differences (tests/mirrors).
WRONG = {
    "np.sum(m, 1, where=f)", "np.prod(m, 0, where=f)", "np.mean(m, axis=1, where=f, keepdims=True)",
    "np.var(m, axis=1, where=f, keepdims=True)", "np.std(m, axis=1, where=f)", "np.full((2, 4), v)",
    "np.fft.irfft2(m, norm='forward')",
}  # fmt: skip
PAIRS = [(name, e) for name in CASES if name not in NOT_THERE.split() for e in CASES[name]]
# HIPS autograd's own functions, or deprecated names: those that give other functions their derivatives.
INTERNAL = """
    array_from_args concatenate_args make_diagonal abs acos acosh asin asinh atan atan2 atanh conj mod
    permute_dims pow true_divide amax amin _original_where linalg._primitive_norm fft.truncate_pad hypot
"""


def gradients(namespace, expression, grad):
    names, function = scalar_function(expression, namespace)
    return grad(function, tuple(range(len(names))))(*[INPUTS[n] for n in names])


def hips_gradients(expression):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return gradients(anp, expression, autograd.grad)


def agree(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("expression", [e for _, e in PAIRS if e not in RAISES | WRONG])
def test_gradients_are_those_of_hips(expression):
    theirs = hips_gradients(expression)
    for namespace in [rnp] if expression in ONLY_MIRROR else [rnp, np]:
        agree(gradients(namespace, expression, autograd_api.grad), theirs)


@pytest.mark.parametrize("expression", sorted(WRONG | RAISES))
def test_the_listed_differences_are_there(expression):
    ours = gradients(rnp, expression, autograd_api.grad)
    try:
        theirs = hips_gradients(expression)
    except Exception:
        assert expression in RAISES
    else:
        assert any(np.shape(a) != np.shape(b) or not np.allclose(a, b) for a, b in zip(ours, theirs, strict=True))


# For complex values it transposes where it should take adjoints, or divides by 0.
WRONG_FOR_COMPLEX = {
    "np.linalg.cholesky((p + p.T) / 2)", "np.linalg.pinv(m)", "np.linalg.norm(m, np.inf, axis=0)", "np.full_like(m, t)",
}  # fmt: skip
# Operators and methods of tensors are PyTorch's, which does not order complex values.
REFUSED_FOR_COMPLEX = {"np.where(m > 0.5, m, 0.0)", "np.select([m < 0.4, m < 0.7], [m, n], 0.0)", "m.clip(0.3, 0.7)"}


@pytest.mark.parametrize("kind", ["float32", "complex128", "empty"])
def test_gradients_of_other_dtypes_are_those_of_hips(kind):
    compared = 0
    rounding = 1e-4 if kind == "float32" else 1e-7
    for expression in {e for _, e in PAIRS} - WRONG - WRONG_FOR_COMPLEX - REFUSED_FOR_COMPLEX:
        theirs = gradients_of(kind, expression, anp, autograd.grad)
        if theirs is not None:
            ours = gradients_of(kind, expression, rnp, autograd_api.grad)
            for a, b in zip(ours, theirs, strict=True):
                assert np.shape(a) == np.shape(b), expression
                assert np.allclose(a, b, rtol=rounding, atol=rounding, equal_nan=True), expression
            compared += 1
    assert compared > 200


def gradients_of(kind, expression, namespace, grad):
    """Return gradients at inputs of a kind; None where HIPS refuses these, with whatever error or warning."""
    names, _ = scalar_function(expression, namespace)
    points = [np.asarray(KINDS[kind](INPUTS[n])) for n in names]

    def function(*values):
        return weighted(evaluate(expression, namespace, **dict(zip(names, values, strict=True))), namespace)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = grad(function, tuple(range(len(names))))(*points)
        except Exception:
            if namespace is not anp:
                raise
            return None
    return None if any(np.asarray(g).dtype == object for g in found) else found


# Functions that HIPS has in addition to NumPy, or under more names.
BEYOND_NUMPY = [
    "np.where(condition=b, x=v, y=w)", "np.where(b, x=v, y=w)", "np.make_diagonal(v, 0, -1, -2)",
    "np.make_diagonal(m, axis1=-1, axis2=-2)", "m[:, np.int64(v)]",
]  # fmt: skip


@pytest.mark.parametrize("expression", BEYOND_NUMPY)
def test_functions_that_hips_has_beyond_numpy_exist(expression):
    agree(gradients(rnp, expression, autograd_api.grad), hips_gradients(expression))
    np.testing.assert_array_equal(evaluate(expression, rnp), evaluate(expression, anp))


def test_everything_that_hips_differentiates_is_compared():
    modules = {"": anp, "linalg.": autograd.numpy.linalg, "fft.": autograd.numpy.fft}
    there = {
        prefix + name
        for prefix, module in modules.items()
        for name in dir(module)
        if callable(getattr(module, name)) and getattr(module, name) in primitive_vjps
    }
    assert there - set(CASES) - set(INTERNAL.split()) == set()


# -------------------------------------------------------------------------------------------------------- SciPy

SCIPY = [case for case in scipys.CASES if scipys.moving(case[2])]
# SciPy functions without derivative in HIPS autograd, or not for all of these arguments.
SCIPY_NOT_THERE = """
    entr ndtr log_ndtr ndtri exp10 log_expit loggamma erfcx i0e i1e k0 k1 betaincc chdtr chdtrc jv kv factorial
    poch binom softmax log_softmax xlogy xlog1py rel_entr kl_div zeta norm.logsf norm.sf t.sf t.logsf
    beta.logcdf beta.sf beta.logsf gamma.logcdf gamma.sf gamma.logsf chi2.logcdf chi2.sf chi2.logsf poisson.sf
    poisson.logcdf poisson.logsf inv det expm norm cholesky solve block_diag
"""


def of_scipy(package, grad, module, name, args):
    function, places = scipys.function(package, module, name), scipys.moving(args)

    def scalar(*values):
        filled = list(args)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        out = function(*filled)
        return (out * np.cos(np.arange(1.0, out.size + 1)).reshape(out.shape)).sum()

    return grad(scalar, tuple(range(len(places))))(*[args[i] for i in places])


def hips_of_scipy(case):
    """Return HIPS autograd's gradients; None where it refuses some of these arguments, with whatever error."""
    try:
        return of_scipy("autograd.scipy", autograd.grad, *case)
    except Exception:
        return None


def test_gradients_of_scipys_functions_are_those_of_hips():
    cases = [case for case in SCIPY if case[1].split()[0] not in SCIPY_NOT_THERE.split()]
    compared = 0
    for case in cases:
        theirs = hips_of_scipy(case)
        if theirs is not None:
            agree(of_scipy("retrograd.scipy", autograd_api.grad, *case), theirs)
            compared += 1
    assert compared >= 60


# ------------------------------------------------------------------------------------------------- operators

POINT = np.array([0.3, 0.8, 1.1])
VECTOR = np.array([1.0, -2.0, 0.5])


def energy(x):
    return np.sum(np.sin(x) ** 2) * x[0]


def field(x):
    return np.exp(-x) * x[::-1] * np.sum(x)


OPERATORS = {
    "grad": lambda lib: lib.grad(energy)(POINT),
    "value_and_grad": lambda lib: lib.value_and_grad(energy)(POINT),
    "grad_and_aux": lambda lib: lib.grad_and_aux(lambda x: (energy(x), 2.0))(POINT),
    "elementwise_grad": lambda lib: lib.elementwise_grad(field)(POINT),
    "elementwise_grad twice": lambda lib: lib.elementwise_grad(lib.elementwise_grad(field))(POINT),
    "deriv": lambda lib: lib.deriv(np.sin)(0.3),
    "jacobian": lambda lib: lib.jacobian(field)(POINT),
    "jacobian of jacobian": lambda lib: lib.jacobian(lib.jacobian(field))(POINT),
    "hessian": lambda lib: lib.hessian(energy)(POINT),
    "holomorphic_grad": lambda lib: lib.holomorphic_grad(lambda z: np.sin(z) * z)(0.3 + 0.4j),
    "grad of complex": lambda lib: lib.grad(lambda z: np.abs(z * z + 1))(0.3 + 0.4j),
    "grad_named": lambda lib: lib.grad_named(lambda x, y: x * y**2, "y")(2.0, 3.0),
    "make_vjp": lambda lib: lib.make_vjp(field)(POINT)[0](VECTOR),
    "make_jvp": lambda lib: lib.make_jvp(lambda x: np.sin(x) * x)(POINT)(VECTOR),
    "make_hvp": lambda lib: lib.make_hvp(energy)(POINT)[0](VECTOR),
    "hessian_tensor_product": lambda lib: lib.hessian_tensor_product(energy)(POINT, VECTOR),
    "hessian_vector_product": lambda lib: lib.hessian_vector_product(energy)(POINT, VECTOR),
    "tensor_jacobian_product": lambda lib: lib.tensor_jacobian_product(field)(POINT, VECTOR),
    "vector_jacobian_product": lambda lib: lib.vector_jacobian_product(field)(POINT, VECTOR),
    "make_ggnvp": lambda lib: lib.make_ggnvp(field)(POINT)(VECTOR),
    "trees": lambda lib: lib.grad(lambda p: p["a"][0] * np.sum(p["b"] ** 2))({"a": [2.0], "b": POINT})["b"],
    "several arguments": lambda lib: lib.grad(lambda x, y, z: np.sum(x * y) * z, (0, 2))(POINT, VECTOR, 3.0),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_give_what_hips_gives(name):
    ours, theirs = OPERATORS[name](autograd_api), OPERATORS[name](autograd)
    agree(*[x if isinstance(x, tuple) else (x,) for x in (ours, theirs)])


def test_every_operator_of_hips_is_there_or_named():
    builtins = {"dict", "isinstance", "list", "tuple", "type"}  # ours work with Python's own
    elsewhere = {"checkpoint", "make_jvp_reversemode", "primitive"}  # docs/from_autograd.md documents replacements
    there = {name for name in dir(autograd) if callable(getattr(autograd, name)) and not name.startswith("_")}
    assert {name for name in there if not hasattr(autograd_api, name)} <= builtins | elsewhere
