"""Every public name of SciPy's modules is differentiable to second order, or refused by name; none is forgotten.

The names are SciPy's, read as the tests run. A name that is differentiable must have an example: in a table of the
tests of its module, or in `EXAMPLES` below.
"""

import importlib
import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest
import scipy

import retrograd as rg
from retrograd import numpy as rnp
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.core import Tensor
from retrograd.func import jvp
from retrograd.scipy import integrate, interpolate, linalg, ndimage, optimize, signal, special, stats
from retrograd.scipy.sparse import linalg as sparse_linalg

from ..case_groups import group_cases
from . import test_scipy, test_scipy_linalg, test_scipy_ndimage, test_scipy_optimize, test_scipy_signal
from . import test_scipy_stats as of_stats

_spec = importlib.util.spec_from_file_location("scipy_names", Path(__file__).parents[2] / "tools" / "scipy_names.py")
names = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(names)
KINDS = names.kinds()
REFUSED = [(m, n) for m, parts in KINDS.items() for kind in (names.JUMPS, names.REFUSED) for n in parts[kind]]
REFUSED.remove(("sparse.linalg", "spilu"))  # a preconditioner, which changes no result, takes the values
SHOWN = [(m, n) for m, parts in KINDS.items() for n in parts[names.DIFFERENTIABLE]]

_r = np.random.default_rng(9)
P = np.array([1.3, 0.7])
MATRIX = _r.normal(size=(3, 3)) / 3 + 2 * np.eye(3)
LINE, VALUES, AT = np.arange(6.0), _r.normal(size=6), np.array([0.3, 2.6, 4.1])
TIMES = np.array([0.0, 0.5, 1.2])
CASES_OF_STATS = {**of_stats.CONTINUOUS, **of_stats.DISCRETE}


def sparse_of(values):
    """Return the sparse matrix of nine values."""
    return rg.sparse_coo_tensor(np.indices((3, 3)).reshape(2, 9), values.reshape(-1), (3, 3))


def symmetric(values):
    return values + values.mT


def krylov(name):
    return lambda values, b: getattr(sparse_linalg, name)(sparse_of(symmetric(values)), b, rtol=1e-13)[0]


def spline(name):
    return lambda y: getattr(interpolate, name)(LINE, y)(AT)


def growth(t, y, p):
    return [p * y[0], -y[1] * y[0]]


# function of arrays that may be tensors, arguments
EXAMPLES = {
    "integrate": {
        **{name: [(getattr(integrate, name), (VALUES[:5], LINE[:5] ** 1.3))]
           for name in ("trapezoid", "simpson", "cumulative_trapezoid")},
        "cumulative_simpson": [(lambda y: integrate.cumulative_simpson(y, x=LINE[:5] ** 1.3), (VALUES[:5],))],
        "romb": [(integrate.romb, (VALUES[:5],))],
        "quad": [(lambda p: integrate.quad(lambda x: rnp.exp(-p[0] * x * p[1]), 0, p[1])[0], (P,))],
        "fixed_quad": [(lambda p: integrate.fixed_quad(lambda x: rnp.exp(-p[0] * x), 0, p[1])[0], (P,))],
        "dblquad": [(lambda p: integrate.dblquad(lambda y, x: rnp.exp(-p[0] * x * y), 0, 1, 0, 1)[0], (P,))],
        "nquad": [(lambda p: integrate.nquad(lambda y, x: p[0] * p[1] * x * y**2, [(0, 1), (0, 1)])[0], (P,))],
        "tplquad": [(lambda p: integrate.tplquad(lambda z, y, x: p[0] * p[0] * x * y * z, 0, 1, 0, 1, 0, 1,
                                                 epsrel=1e-2, epsabs=1e-2)[0], (P[:1],))],
        "solve_ivp": [(lambda y, p: integrate.solve_ivp(
            growth, (0, 1), y, t_eval=TIMES[:2], args=(p,), rtol=1e-11, atol=1e-11).y, (P, P[0]))],
        "odeint": [(lambda y, p: integrate.odeint(
            growth, y, TIMES, (p,), tfirst=True, rtol=1e-11, atol=1e-11), (P, P[0]))],
        "solve_bvp": [(lambda p: integrate.solve_bvp(
            lambda x, y: [y[1], -p[0] * y[0]], lambda a, b: [a[0], b[0] - p[1]], LINE[:5] / 4, np.zeros((2, 5)),
            tol=1e-9).sol(0.5), (P,))],
    },
    "interpolate": {
        **{name: [(spline(name), (VALUES,))] for name in (
            "CubicSpline", "PchipInterpolator", "Akima1DInterpolator", "make_interp_spline", "interp1d")},
        "CubicHermiteSpline": [(lambda y, d: interpolate.CubicHermiteSpline(LINE, y, d)(AT), (VALUES, VALUES[::-1]))],
        "RegularGridInterpolator": [(lambda v, x: interpolate.RegularGridInterpolator(
            (LINE[:3], LINE[:3]), v, method="linear")(x), (MATRIX, np.array([[0.3, 1.6]])))],
    },
    "linalg": {
        **{name.split(",")[0]: [(lambda a, b, name=name: test_scipy.composed(name)(linalg, a, b),
                                 (test_scipy.POSITIVE, test_scipy.X))]
           for name in ("cho_solve", "lu_solve", "lu", "eigh", "expm_frechet")},
        "cho_factor": [(lambda a: linalg.cho_factor(symmetric(a))[0], (test_scipy.POSITIVE,))],
        "lu_factor": [(lambda a: linalg.lu_factor(a)[0], (MATRIX,))],
        "solve_lyapunov": [(linalg.solve_lyapunov, (MATRIX, MATRIX))],
        "cossin": [(lambda g: linalg.cossin(test_scipy_linalg.orthogonal(g), 1, 2)[1], (MATRIX,))],
        "rsf2csf": [(lambda t: abs(linalg.rsf2csf(rg.triu(t), np.eye(3))[0]), (np.diag([1.0, 2, 3]) + MATRIX / 9,))],
    },
    "ndimage": {
        "map_coordinates": [(lambda v, x: ndimage.map_coordinates(v, x, order=3), (MATRIX, np.array([[0.3], [1.6]])))],
        "spline_filter": [(ndimage.spline_filter, (MATRIX,))],
    },
    "optimize": {
        **{name: [(getattr(optimize, name), (VALUES[:3],))] for name in ("rosen", "rosen_der", "rosen_hess")},
        "rosen_hess_prod": [(optimize.rosen_hess_prod, (VALUES[:3], LINE[:3]))],
    },
    "sparse.linalg": {
        "spsolve": [(lambda a, b: sparse_linalg.spsolve(sparse_of(a), b), (MATRIX, LINE[:3]))],
        "splu": [(lambda a, b: sparse_linalg.splu(sparse_of(a)).solve(b), (MATRIX, LINE[:3]))],
        "factorized": [(lambda a, b: sparse_linalg.factorized(sparse_of(a))(b), (MATRIX, LINE[:3]))],
        "spsolve_triangular": [(lambda a, b: sparse_linalg.spsolve_triangular(
            rg.tril(a).to_sparse(), b), (MATRIX, LINE[:3]))],
        **{name: [(krylov(name), (MATRIX, LINE[:3]))] for name in (
            "bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "tfqmr")},
        "eigsh": [(lambda a: sparse_linalg.eigsh(
            sparse_of(symmetric(a)), 1, v0=np.ones(3), return_eigenvectors=False), (MATRIX,))],
        "expm_multiply": [(lambda a, b: sparse_linalg.expm_multiply(sparse_of(a / 9), b), (MATRIX, LINE[:3]))],
        "norm": [(lambda a: sparse_linalg.norm(sparse_of(a)), (MATRIX,))],
    },
    "special": {
        **{name: [(getattr(special, name), (test_scipy.X,))] for name in (
            "cbrt", "exp1", "exp2", "expi", "expm1", "gammasgn", "k0e", "k1e", "log1p", "round", "sici", "sinc")},
        **{name: [(getattr(special, name), (2, test_scipy.A))] for name in ("expn", "kve", "yv")},
    },
    "signal": {
        "convolve": [(signal.convolve, (LINE, VALUES))],
        "gausspulse": [(lambda t: signal.gausspulse(t, fc=2), (AT / 9,))],
        "sweep_poly": [(lambda t: signal.sweep_poly(t, [1.0, 2.0]), (AT,))],
    },
    "stats": {
        "gaussian_kde": [(lambda data, x: stats.gaussian_kde(data).logpdf(x), (VALUES, AT))],
    },
}  # fmt: skip


def examples():
    """Return the examples of all modules: lists of (function, arguments), by module and name."""
    found = {(module, name): list(own) for module, table in EXAMPLES.items() for name, own in table.items()}
    for module, name, args in test_scipy.CASES:
        call = lambda *given, module=module, name=name, args=args: test_scipy.function(  # noqa: E731
            "retrograd.scipy", module, name
        )(*[test_scipy.allowed(name, a, x) for a, x in zip(args, given, strict=True)])
        found.setdefault((module, name.split()[0].split(".")[0]), []).append((call, args))
    for module, home, table in (("signal", signal, test_scipy_signal.CASES), ("stats", stats, of_stats.SUMMARIES)):
        for name, args, options in table:
            own = getattr(home, name)
            call = lambda *given, own=own, options=options: own(*given, **options)  # noqa: E731
            found.setdefault((module, name), []).append((call, args))
    for module, home, table in (("optimize", optimize, test_scipy_optimize.CASES),):
        for name, program in table.items():
            case = name.replace(",", " ").split()[0]
            found.setdefault((module, case), []).append((lambda p, program=program, home=home: program(home, p), (P,)))
    # The tests of these tables check both derivatives of each entry.
    for module, table in (("linalg", test_scipy_linalg.CASES), ("ndimage", test_scipy_ndimage.FILTERS)):
        for name, *_ in table:
            found.setdefault((module, name), [])
    found.update({("stats", name): [] for name in (*of_stats.FORMULAS, *CASES_OF_STATS)})
    return found


FOUND = examples()


def test_every_differentiable_name_has_an_example():
    assert [f"{module}.{name}" for module, name in SHOWN if (module, name) not in FOUND] == []


# Their functions run on plain arrays again and again, so dual tensors of `forward_ad` are refused.
ONLY_JVP = ("dblquad", "nquad", "tplquad", "odeint", "solve_ivp")
# Three nested integrals take seconds. The second derivative is that of nquad; test_scipy_boundary_values has the first.
SLOW = "tplquad"


def moving(args):
    """Return the positions of the differentiable arguments."""
    return [i for i, a in enumerate(args) if isinstance(a, (np.ndarray, np.floating)) and a.dtype.kind == "f"]


def check(function, args, dual=True, reverse=True, **options):
    """Check both orders of the derivatives, and forward mode, at some directions; or forward mode by reverse mode."""
    places = moving(args)

    def on_moving(*given):
        filled = list(args)
        for i, x in zip(places, given, strict=True):
            filled[i] = x
        found = function(*filled)
        found = [x for x in (found if isinstance(found, tuple) else (found,)) if isinstance(x, Tensor)]
        return tuple(x for x in found if x.dtype.kind in "fc" and x.numel() and x.requires_grad) or (found[0],)

    given = [rg.tensor(args[i], requires_grad=True) for i in places]
    if reverse:
        assert gradcheck(on_moving, given, check_forward_ad=dual, fast_mode=True, **options)
        assert gradgradcheck(on_moving, given, fast_mode=True, **options)
    if not dual:
        primals = tuple(x.detach() for x in given)
        _, forward = jvp(on_moving, primals, primals)
        for out, tangent in zip(on_moving(*given), forward, strict=True):
            slopes = rg.autograd.grad(out.sum(), given, allow_unused=True)
            along = sum((g * x).sum() for g, x in zip(slopes, primals, strict=True) if g is not None)
            np.testing.assert_allclose(tangent.sum().item(), along.item(), rtol=1e-5)


@group_cases
@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
@pytest.mark.parametrize(("module", "name"), sorted(FOUND))
def test_derivatives_are_right_to_second_order(module, name):
    # A solution is as accurate as the solver's tolerance, so steps of differences must be large.
    options = {"eps": 1e-3, "atol": 1e-3, "rtol": 1e-2} if module == "optimize" else {"atol": 1e-4, "rtol": 1e-3}
    for function, args in FOUND[module, name]:
        if moving(args):
            check(function, args, name not in ONLY_JVP, name != SLOW, **options)


@group_cases
@pytest.mark.parametrize(("module", "name"), REFUSED)
def test_other_names_refuse_tensors_with_a_derivative_by_name(module, name):
    member = getattr(importlib.import_module(f"retrograd.scipy.{module}"), name)
    x = rg.ones(2, 2, dtype=rg.float64, requires_grad=True)
    if hasattr(member, "nin"):
        with pytest.raises(TypeError, match=r"^np\._?\w+: no counterpart for tensors"):
            member(*[x] * member.nin)
        return
    methods = [getattr(member, n) for n in ("logpdf", "logpmf", "rvs") if hasattr(member, n)]
    calls = [member] if inspect.isfunction(member) else methods
    assert calls
    for call in calls:
        with pytest.raises(TypeError, match=rf"{module}\.{name}.*(has no useful derivative|knows no derivative of it)"):
            call(x)


def test_the_page_of_names_is_up_to_date():
    if f"SciPy {scipy.__version__}," not in names.PAGE.read_text():
        pytest.skip("the page is that of another version of SciPy")
    assert names.PAGE.read_text() == names.text(), "run python tools/scipy_names.py"


def test_lists_of_names_are_honest():
    for module, listed in [*names.WITHOUT_DERIVATIVE.items(), *names.BY_NUMPY.items()]:
        known = names.public(module)
        assert [name for name in listed.split() if name not in known] == []
    for module, listed in names.BY_NUMPY.items():
        assert [n for n in listed.split() if n in vars(importlib.import_module(f"retrograd.scipy.{module}"))] == []
