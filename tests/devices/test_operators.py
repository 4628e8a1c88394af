"""Every operator gives the same results and derivatives on the strict device as in host memory."""

import pytest
from tests.devices import strict
from tests.devices.devices import STRICT
from tests.devices.laws import EXEMPT, LAWS, OPERATORS, Move, failures, forward

import retrograd.higher_order
import retrograd.implicit  # noqa: F401
from retrograd.core import registry
from retrograd.testing import samples_of

pytestmark = pytest.mark.filterwarnings("ignore")
MOVE = Move(STRICT)

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


@pytest.mark.parametrize("law", LAWS)
def test_operators_on_a_device_are_those_in_host_memory(law):
    assert failures(law, MOVE) == {}


def count_transfers(name: str) -> int:
    """Return how many transfers an operator makes on its samples."""
    total = 0
    for args, params in samples_of(registry[name]):
        moved = MOVE(args), MOVE(params)
        with strict.counting() as found:
            forward(registry[name], *moved, MOVE)
        total += sum(found.values())
    return total


def test_operators_move_no_values_to_or_from_the_device_unless_listed():
    listed = {name for names in COPYING.values() for name in names.split()}
    assert {name for name in OPERATORS if name not in EXEMPT and name not in listed and count_transfers(name)} == set()


def test_operators_that_move_values_are_few():
    assert len(OPERATORS) > 700
    assert sum(len(names.split()) for names in COPYING.values()) < 100
