"""SciPy's own functions, without a derivative here: they refuse tensors that have one, by name.

Tensors without a derivative are passed to SciPy as arrays. Classes and ufuncs are SciPy's: NumPy's protocols refuse
there.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.implicit.closures import has_derivative
from retrograd.interop.numpy_protocol.table import SEQUENCES

# Functions whose results are integers, choices or tests, or that take numbers only: they have no useful derivative.
WITHOUT_DERIVATIVE = {
    "integrate": "lebedev_rule newton_cotes",
    "interpolate": "generate_knots",
    "linalg": """
        bandwidth dft find_best_blas_type get_blas_funcs get_lapack_funcs hadamard helmert hilbert invhilbert invpascal
        ishermitian issymmetric pascal
    """,
    "ndimage": """
        binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss binary_opening
        binary_propagation find_objects generate_binary_structure iterate_structure label maximum_position
        minimum_position value_indices watershed_ift
    """,
    "optimize": """
        bracket check_grad isotonic_regression linear_sum_assignment linprog_verbose_callback milp quadratic_assignment
        show_options
    """,
    "signal": """
        argrelextrema argrelmax argrelmin band_stop_obj besselap buttap buttord cheb1ap cheb1ord cheb2ap cheb2ord
        check_COLA check_NOLA choose_conv_method correlation_lags ellipap ellipord find_peaks find_peaks_cwt
        get_window kaiser_atten kaiser_beta kaiserord max_len_seq savgol_coeffs unique_roots unit_impulse
    """,
    "sparse.linalg": "aslinearoperator is_sptriangular spbandwidth spilu use_solver",
    "special": """
        ai_zeros bei_zeros beip_zeros ber_zeros bernoulli berp_zeros bi_zeros erf_zeros euler fresnel_zeros
        fresnelc_zeros fresnels_zeros geterr jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros kei_zeros keip_zeros
        kelvin_zeros ker_zeros kerp_zeros seterr stirling2 y0_zeros y1_zeros y1p_zeros yn_zeros ynp_zeros
    """,
    "stats": """
        binomtest ecdf fisher_exact make_distribution median_test mode percentileofscore quantile_test rankdata
        relfreq cumfreq binned_statistic binned_statistic_2d binned_statistic_dd tiecorrect
    """,
}
# Functions of SciPy that consist of NumPy's and of differentiable ones, so they run on tensors.
BY_NUMPY = {"signal": "gausspulse sweep_poly", "special": "ivp jvp kvp sinc softplus yvp"}


def guarded(path: str, name: str, member: Any) -> Any:
    """Return a member of SciPy: functions and distributions refuse tensors with a derivative, the rest is unchanged."""
    if name in BY_NUMPY.get(path.removeprefix("scipy."), "").split():
        return member
    if any(hasattr(type(member), method) for method in ("rvs", "logpmf")):
        return ConstantDistribution(f"{path}.{name}", member)
    itself = inspect.isclass(member) or hasattr(member, "nin") or not callable(member)
    return member if itself else constants_only(f"{path}.{name}", member)


def constants_only(path: str, function: Callable) -> Callable:
    """Return SciPy's function, which refuses tensors that have a derivative."""

    @functools.wraps(function)
    def on_constants(*args: Any, **kwargs: Any) -> Any:
        if _has_derivative(args) or _has_derivative(tuple(kwargs.values())):
            raise TypeError(refusal(path))
        return function(*args, **kwargs)

    return on_constants


def _has_derivative(value: Any) -> bool:
    """Return whether a value is a tensor with a derivative, or a list or tuple that contains one."""
    if isinstance(value, Tensor):
        return has_derivative(value)
    return isinstance(value, SEQUENCES) and any(map(_has_derivative, value))


def refusal(path: str) -> str:
    """Return the message for a function of SciPy and a tensor that requires grad or belongs to a transform."""
    home, _, name = path.removeprefix("scipy.").rpartition(".")
    if name in WITHOUT_DERIVATIVE.get(home, "").split():
        reason = "its result changes by jumps, or takes no arrays, so it has no useful derivative"
    else:
        reason = "retrograd knows no derivative of it"
    return (
        f"{path}: {reason}, but an argument requires grad or belongs to a transform. Pass x.detach() to use its value "
        f"as a constant, or define the derivative with rg.autograd.Function"
    )


class ConstantDistribution:
    """A distribution of SciPy, whose functions refuse tensors that have a derivative."""

    def __init__(self, path: str, distribution: Any) -> None:
        self._path = path
        self._distribution = distribution

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return guarded(self._path, name, getattr(self._distribution, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return constants_only(self._path, self._distribution)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self._path}, for arrays>"
