"""Every operator gives the same results and derivatives on the strict device as in host memory."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.devices import strict
from tests.devices.devices import STRICT, is_on_strict, to_strict
from tests.tables import on_tensors, operators_on_arrays

import retrograd as rg
import retrograd.higher_order
import retrograd.implicit
from retrograd.core import Op, Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.core.state import override_state
from retrograd.func import vmap
from retrograd.ops.layout import place
from retrograd.ops.pointwise import real_part
from retrograd.testing import run, samples_of
from retrograd.testing.calculus import as_float_map, directions, gradients, leaf, pull, push

pytestmark = pytest.mark.filterwarnings("ignore")
OPERATORS = [n for n in operators_on_arrays() if hasattr(registry[n].definition, "samples")]

# Operators whose samples mean something else on a device, each with the reason.
EXEMPT = {
    "implicit_solution": "the solver is the user's, or SciPy's: it takes NumPy's arrays",
    "pick": "returns one of its params, a tensor of the caller",
    "solve_factors": "factors on a device are LU always, in host memory a small matrix stands for itself",
    "solved": "takes the result of solve_factors in host memory",
    "to_device": "its sample moves the operand to host memory",
}
# Operators with outputs that are determined up to phases only; their `observe` multiplies by host arrays.
OBSERVED = ("eigh_vectors", "linalg.eigh", "linalg.svd", "svd", "svd_vectors")

# Operators that copy values between the device and host memory, and why; no other one does.
COPYING = {
    "CuPy has no such function, or one that decides by values at each step: computed in host memory": """
        _standard_gamma_grad airy_ai_derivative cholesky_info count_into_bins count_into_boxes ctc_loss
        extreme_eigenpairs gamma_cdf_derivative histc histogram ldl_parts ldl_swaps linalg.cholesky_ex
        linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve linalg.matrix_exp logm solve_sylvester
        special.airy_ai special.iv special.ive special.jv special.kv special.kve special.spherical_bessel_j0
        special.spherical_jn special.yv sqrtm
    """,
    "random numbers are drawn in host memory": """
        bernoulli binomial gumbel_softmax multinomial normal pca_lowrank poisson rand randint randn randperm
        sample_beta sample_chi2 sample_dirichlet sample_student_t sample_von_mises standard_gamma svd_lowrank
    """,
    "a list of numbers, or a table that is copied at the first call": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d corrcoef cov
        interpolate linalg.pinv lp_pool2d lp_pool3d nanquantile pad pinverse quantile resample resample_backward stft
        upsample upsample_bilinear upsample_nearest
    """,
    "the result's shape, or the number of steps, depends on values, which are read": """
        associated_laguerre_polynomial gegenbauer_polynomial guard index_reduce linalg.lstsq masked_put masked_scatter
        masked_take higher_order.cond higher_order.while_loop repeat_indices repeat_interleave scatter scatter_prod
        scatter_reduce
        special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v
        special.chebyshev_polynomial_w special.hermite_polynomial_h special.hermite_polynomial_he
        special.laguerre_polynomial_l special.legendre_polynomial_p special.shifted_chebyshev_polynomial_t
        special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v
        special.shifted_chebyshev_polynomial_w unique unique_consecutive unique_indices
    """,
}


def forward(op: Op, args: tuple, params: dict, move: Callable) -> tuple:
    """Return the results; an operator without operands makes them on the device."""
    if any(isinstance(a, Tensor) for a in args) or move is not to_strict:
        return run(op, args, params)
    with override_state("device", STRICT):
        return run(op, args, params)


def backward(op: Op, args: tuple, params: dict, move: Callable) -> tuple:
    """Return the cotangents of the operands."""
    f, xs = as_float_map(op, args, params)
    return pull(f, xs, move(directions(f(*xs), 2)))


def tangents(op: Op, args: tuple, params: dict, move: Callable) -> tuple:
    """Return the tangents of the results."""
    f, xs = as_float_map(op, args, params)
    return push(f, xs, move(directions(xs, 1)))[1]


def second(op: Op, args: tuple, params: dict, move: Callable) -> tuple:
    """Return the derivatives of <vjp(g), t>."""
    f, xs = as_float_map(op, args, params)
    outs = f(*xs)
    gs, ts = move(directions(outs, 2)), move(directions(xs, 1))
    if not any(out.requires_grad for out in f(*map(leaf, xs))) or all(g is None for g in pull(f, xs, gs)):
        return ()

    def slope(*operands):
        found = gradients(f(*operands), list(operands), gs, create_graph=True)
        terms = [real_part((g * t).sum()) for g, t in zip(found, ts, strict=True) if g is not None]
        return (sum(terms[1:], terms[0]),)

    return pull(slope, xs, move((Tensor(np.ones((), dtypes.real_of(xs[0].dtype))),)))


def batch(op: Op, args: tuple, params: dict, move: Callable) -> tuple:
    """Return the results for two examples at once."""
    f, tensors = on_tensors(op, args, params)
    return tuple(vmap(f, randomness="same")(*[rg.stack([t, t]) for t in tensors])) if tensors else ()


def check_equal(found: tuple, expected: tuple) -> None:
    """Check that tensors on the strict device are those in host memory, except for the rounding of other sums."""
    assert [g is None for g in found] == [e is None for e in expected]
    for on_device, e in zip(found, expected, strict=True):
        if e is not None:
            assert is_on_strict(on_device)
            g = place(on_device, None)
            assert g.aval == e.aval
            single = dtypes.real_of(e.dtype).itemsize < 8
            size = np.abs(e.value[np.isfinite(e.value)]).max(initial=1) if e.dtype.kind in "fc" else 1
            np.testing.assert_allclose(
                g.value, e.value, rtol=1e-3 if single else 1e-9, atol=size * (1e-4 if single else 1e-8)
            )


def compare(law: Callable, name: str) -> None:
    """Compare what a law computes on the device with the same in host memory, for all samples that host memory has."""
    op = registry[name]
    for args, params in samples_of(op):
        try:
            expected = law(op, args, params, lambda tensors: tensors)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            continue  # no such derivative, no such batch: the laws of host memory say so
        check_equal(law(op, to_strict(args), to_strict(params), to_strict), expected)


@pytest.mark.parametrize("law", [forward, backward, tangents, second, batch])
def test_operators_on_a_device_are_those_in_host_memory(law):
    left = {*EXEMPT, *(OBSERVED if law in (backward, tangents, second) else ())}
    failed = {}
    for name in sorted(set(OPERATORS) - left):
        try:
            compare(law, name)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    assert failed == {}


def count_transfers(name: str) -> int:
    """Return how many transfers an operator makes on its samples."""
    total = 0
    for args, params in samples_of(registry[name]):
        moved = to_strict(args), to_strict(params)
        with strict.counting() as found:
            forward(registry[name], *moved, to_strict)
        total += sum(found.values())
    return total


def test_operators_move_no_values_to_or_from_the_device_unless_listed():
    listed = {name for names in COPYING.values() for name in names.split()}
    assert {name for name in OPERATORS if name not in EXEMPT and name not in listed and count_transfers(name)} == set()


def test_operators_that_move_values_are_few():
    assert len(OPERATORS) > 700
    assert sum(len(names.split()) for names in COPYING.values()) < 100
