"""Complex tensors: real and imaginary parts are views, and derivatives are those of the real map of the parts."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.testing import assert_close

from ..case_groups import group_cases

Z = [3 + 4j, -1 + 0.5j, 0.25 - 2j]
W = [1 - 1j, 2 + 0.5j, -0.5 - 0.75j]


def leaf(values, dtype="complex128"):
    return rg.tensor(values, dtype=dtype, requires_grad=True)


def plain(values, dtype="complex128"):
    return rg.tensor(values, dtype=dtype)


# ---------------------------------------------------------------------------------------------- derivatives

NAMES = """
    abs acos acosh angle asin asinh atan atanh conj conj_physical cos cosh exp exp2 expm1 imag log log10 log1p log2 mean
    neg norm prod real reciprocal resolve_conj rsqrt sgn sigmoid silu sin sinh sqrt square sum tan tanh view_as_real
"""
ONE = {name: getattr(rg, name) for name in NAMES.split()}
ONE |= {
    "adjoint": lambda z: z[None].mH @ z[None],
    "cumprod": lambda z: z.cumprod(0),
    "cumsum": lambda z: z.cumsum(0),
    "cube": lambda z: z**3,
    "complex power": lambda z: z ** (1.5 - 0.5j),
    "power of a number": lambda z: (-2.0) ** z,
    "where": lambda z: rg.where(z.imag > 0, z, z.real),
    "pairs as numbers": lambda z: rg.view_as_complex(rg.view_as_real(z) * rg.tensor([2.0, 3.0], dtype=rg.float64)),
    "3-norm": lambda z: z.norm(3),
}
MIXED = {
    "add": lambda z, x: x + z,
    "sub": lambda z, x: x - z,
    "mul": lambda z, x: x * z,
    "div": lambda z, x: x / z,
    "div by a real": lambda z, x: z / x,
    "pow": lambda z, x: z**x,
    "pow of a real": lambda z, x: x**z,
    "pow of a negative real": lambda z, x: (-x) ** z,
    "cat": lambda z, x: rg.cat([z, x]),
    "where": lambda z, x: rg.where(z.real > 0, z, x),
    "vdot": lambda z, x: rg.vdot(z, x * z),
    "polar": lambda z, x: rg.polar(x, x * 2) * z,
    "complex": lambda z, x: rg.complex(x, x * x) * z,
    "write to the imaginary part": lambda z, x: written(z * 1, x),
}


def written(z, x):
    z.imag = x
    z.real[0] = x[1] * z.imag[2].clone()
    return z


def check_tangent(f, *inputs):
    """Check that the tangent along some direction agrees with differences of f."""
    at, step = [x.detach() for x in inputs], 1e-6
    along = [plain(W) if x.is_complex() else plain([0.3, -0.5, 0.8], "float64") for x in at]
    ahead, behind = (f(*[x + sign * step * t for x, t in zip(at, along, strict=True)]) for sign in (1, -1))
    out, tangent = rg.func.jvp(f, tuple(at), tuple(along))
    assert tangent.dtype == out.dtype
    assert_close(tangent, (ahead - behind) / (2 * step), rtol=1e-7, atol=1e-7)


@group_cases
@pytest.mark.parametrize("name", ONE)
def test_derivatives_of_functions_of_complex_numbers(name):
    z = leaf(Z)
    assert gradcheck(ONE[name], (z,))
    assert gradgradcheck(ONE[name], (z,))
    check_tangent(ONE[name], z)


@pytest.mark.parametrize("name", MIXED)
def test_derivatives_where_real_numbers_meet_complex_ones(name):
    z, x = leaf(Z), leaf([0.5, 1.25, 2.0], "float64")
    assert gradcheck(MIXED[name], (z, x))
    assert gradgradcheck(MIXED[name], (z, x))
    check_tangent(MIXED[name], z, x)


@pytest.mark.parametrize("f", [rg.abs, rg.angle, rg.sgn], ids=lambda f: f.name)
def test_all_derivatives_at_zero_are_zero(f):
    z = leaf([0j, 1j])
    (g,) = rg.autograd.grad(rg.real(f(z)).sum(), z, create_graph=True)
    (h,) = rg.autograd.grad((g.real * 2 + g.imag * 3).sum(), z)
    assert g.tolist()[0] == h.tolist()[0] == 0


def test_a_norm_curves_where_one_of_its_numbers_is_zero():
    z = leaf([0j, 2 + 0j])
    (g,) = rg.autograd.grad(z.norm(), z, create_graph=True)
    assert rg.autograd.grad(g.real.sum(), z)[0].tolist() == [0.5, 0]


def test_the_slope_of_acosh_is_on_its_branch():
    z = leaf([-2 + 1j])
    (g,) = rg.autograd.grad(rg.acosh(z).real.sum(), z)
    step = 1e-6
    slope = (rg.acosh(plain([-2 + step + 1j])) - rg.acosh(plain([-2 - step + 1j]))).real / (2 * step)
    assert_close(g.real, slope, atol=1e-8)


def test_sigmoid_does_not_overflow_on_either_side():
    out = rg.sigmoid(plain([1000 + 1j, -1000 + 1j]))
    assert out.tolist() == [1, 0]


# ---------------------------------------------------------------------------------------------------- views


def test_parts_share_the_memory():
    z = plain(Z)
    z.real[0], z.imag[1] = 7.0, 8.0
    rg.view_as_real(z)[2, 1] = 9.0
    assert z.tolist() == [7 + 4j, -1 + 8j, 0.25 + 9j]
    assert z.real._base is z


def test_a_view_of_pairs_as_numbers_shares_the_memory():
    x = rg.zeros(2, 2)
    rg.view_as_complex(x)[1] = 3 - 1j
    assert x.tolist() == [[0, 0], [3, -1]]
    assert rg.view_as_complex(x).dtype == rg.complex64


@pytest.mark.parametrize("shown", [lambda z: z.T, lambda z: z[::-1, ::2], lambda z: z[0, 0]], ids=["T", "steps", "0-d"])
def test_parts_of_numbers_in_any_strides_are_views(shown):
    z = shown(plain([Z, W]))
    pairs = rg.view_as_real(z)
    assert pairs[..., 0].tolist() == z.real.tolist()
    z.imag.fill_(5)
    assert pairs[..., 1].tolist() == rg.full(z.shape, 5.0).tolist()


def test_the_real_part_of_a_real_tensor_is_the_tensor():
    x = rg.tensor([1.0, 2.0])
    assert x.real is x
    assert rg.real(x) is x
    x.real = rg.tensor([3.0, 4.0])
    assert x.tolist() == [3, 4]


def test_a_real_tensor_has_no_imaginary_part():
    x = rg.ones(2)
    with pytest.raises(RuntimeError, match=r"imag: .*expected a complex dtype, got float32"):
        _ = x.imag
    with pytest.raises(RuntimeError, match=r"imag: .*expected a complex dtype, got float32"):
        x.imag = 1.0


def test_pairs_that_are_not_contiguous_are_refused():
    x = rg.zeros(2, 3).T
    with pytest.raises(RuntimeError, match=r"stride 1.*contiguous"):
        rg.view_as_complex(x)
    assert rg.view_as_complex(x.contiguous()).shape == (3,)


def test_gradients_of_writes_go_to_what_was_written():
    x = leaf([1.0, 2.0], "float64")
    z = rg.zeros(2, dtype=rg.complex128)
    z.imag.copy_(x)
    ((2 - 3j) * z).real.sum().backward()  # of (2 - 3j) * (x * 1j) the real part is 3 x
    assert x.grad.tolist() == [3, 3]


def test_gradients_of_a_write_through_pairs_go_to_complex_numbers():
    w, x = leaf([1 + 2j]), rg.zeros(1, 2, dtype=rg.float64)
    rg.view_as_complex(x).copy_(w)
    (x * rg.tensor([5.0, 7.0], dtype=rg.float64)).sum().backward()
    assert w.grad.tolist() == [5 + 7j]


def test_a_cotangent_in_other_strides_is_put_together():
    z = leaf(Z)
    (rg.view_as_real(z).T * rg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=rg.float64)).sum().backward()
    assert z.grad.tolist() == [1 + 4j, 2 + 5j, 3 + 6j]


# ---------------------------------------------------------------------------------------------------- values


def test_an_imaginary_number_is_true():
    z = rg.tensor([1j, 0, 2])
    for out in (z.bool(), z.to(rg.bool), z.type_as(rg.tensor(True)), rg.zeros(3, dtype=rg.bool).copy_(z)):
        assert out.tolist() == z.logical_not().logical_not().tolist() == [True, False, True]


def test_an_angle_and_a_size_give_the_number_back():
    z = plain(Z)
    assert_close(rg.polar(z.abs(), z.angle()), z)
    assert_close(z.sgn() * z.abs(), z)


def test_angles_of_real_numbers():
    x = leaf([-2.0, -0.0, 0.0, 3.0], "float64")
    x.angle().sum().backward()
    assert_close(x.angle(), plain([3.141592653589793, 0, 0, 0], "float64"))
    assert x.grad.tolist() == [0, 0, 0, 0]


def test_the_sign_of_zero_is_zero():
    assert rg.sgn(plain([0j, 2j])).tolist() == [0, 1j]
    with pytest.raises(TypeError, match="sign: complex numbers are not supported"):
        rg.sign(plain(Z))


def test_parts_of_every_dtype_make_numbers_of_its_width():
    assert rg.complex(rg.ones(2), rg.ones(2)).dtype == rg.complex64
    assert rg.complex(rg.tensor(float("inf")), rg.tensor(1.0)).item() == complex(float("inf"), 1)
    assert plain(Z, "complex64").real.dtype == plain(Z, "complex64").angle().dtype == rg.float32


def test_conjugate_transposes():
    a = plain([Z, W])
    assert a.H.tolist() == a.mH.tolist() == a.adjoint().tolist() == a.T.conj().tolist()
    assert rg.ones(2, 3).H.shape == (3, 2)
    with pytest.raises(RuntimeError, match=r"H: expected a matrix, got shape \(3,\)"):
        _ = a[0].H


def test_the_scalar_product_conjugates_its_first_vector():
    assert rg.vdot(plain(Z), plain(W)).item() == sum(z.conjugate() * w for z, w in zip(Z, W, strict=True))


def test_which_numbers_are_real():
    assert rg.isreal(plain([1 + 0j, 1j])).tolist() == [True, False]
    assert rg.isreal(rg.tensor([float("nan"), 1.0])).tolist() == [True, True]


@pytest.mark.parametrize(
    "f",
    [
        lambda z: z < z,
        lambda z: z <= 1,
        lambda z: rg.gt(1.0, z),
        lambda z: z >= z,
        lambda z: rg.maximum(z, z),
        lambda z: rg.minimum(z.real, z),
        lambda z: z.clamp(0, 1),
        lambda z: z.max(),
        lambda z: z.amin(0),
        lambda z: z.argmax(),
        lambda z: z.argmin(0),
    ],
)
def test_complex_numbers_have_no_order(f):
    with pytest.raises(TypeError, match=r"complex numbers (are not supported|have no order), got complex128"):
        f(plain(Z))


@pytest.mark.parametrize("name", ["real", "imag", "angle", "sgn", "view_as_real", "adjoint"])
def test_a_trace_gives_the_same(name):
    z = plain([Z, W])
    assert rg.fx.trace(getattr(rg, name), z)(z).tolist() == getattr(rg, name)(z).tolist()


def test_the_angle_of_real_numbers_has_no_slope():
    x = rg.tensor([math.nan, math.inf, -2.0, -0.0], requires_grad=True)
    out = rg.angle(x)
    assert_close(out, [math.nan, 0.0, math.pi, 0.0], equal_nan=True)
    assert rg.autograd.grad(out.sum(), x)[0].tolist() == [0.0] * 4


def test_complex_numbers_at_the_ends_of_the_range():
    largest, smallest = np.finfo(float).max, np.finfo(float).smallest_subnormal
    z = rg.tensor(np.array([complex(0, smallest)])).requires_grad_()
    assert rg.sgn(z).tolist() == [1j]
    z.abs().sum().backward()
    assert z.grad.tolist() == [1j]
    assert rg.pow(rg.tensor(np.array([1e200 + 1e200j])), -2.0).tolist() == [0]
    assert not rg.isclose(rg.tensor(np.array([0j])), rg.tensor(np.array([complex(largest, largest)]))).item()
    assert abs(rg.log1p(rg.tensor(np.array([complex(largest, largest)]))).item().real - 710.1292864836639) < 1e-9
    assert abs(rg.log1p(rg.tensor(np.array([1e-10 + 1e-5j]))).item().real / 1.5e-10 - 1) < 1e-9
