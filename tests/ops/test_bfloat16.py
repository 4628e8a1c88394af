"""bfloat16: the dtype, conversions and promotion, and arithmetic in float32 that is rounded once."""

import copy
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import retrograd as rg
from retrograd.core import dtype as dtypes

F = rg.nn.functional
EPS = 2.0**-7


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def half(*shape: int, seed: int = 0) -> rg.Tensor:
    return rg.tensor(numbers(*shape, seed=seed), dtype=rg.bfloat16)


def rounded(array: np.ndarray) -> np.ndarray:
    """Return float32 numbers, each rounded to 8 binary digits, ties to even, by arithmetic on its bits."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


# ----------------------------------------------------------------------------------------------- the dtype


def test_the_package_is_imported_when_bfloat16_is_first_used():
    program = (
        "import sys, retrograd as rg\n"
        "(rg.ones(2) * rg.ones(2, dtype='float16')).half().sum()\n"
        "rg.nn.Linear(2, 2)(rg.ones(2)).sum().backward()\n"
        "assert 'ml_dtypes' not in sys.modules\n"
        "assert rg.ones(2, dtype='bfloat16').dtype is rg.bfloat16\n"
        "assert 'ml_dtypes' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_it_is_the_dtype_of_ml_dtypes():
    assert rg.bfloat16 == np.dtype(ml_dtypes.bfloat16)
    assert rg.bfloat16 is dtypes.as_dtype("bfloat16") is dtypes.TABLE["bfloat16"].dtype
    assert pickle.loads(pickle.dumps(rg.bfloat16)) == rg.bfloat16


def test_other_dtypes_of_that_package_are_refused():
    for name in ("float8_e4m3", "uint1", "int1", "complex32"):
        with pytest.raises(TypeError, match=r"dtype .* is not supported: use a boolean, integer, float or complex"):
            rg.tensor(np.zeros(2, getattr(ml_dtypes, name)))


def test_queries_count_it_as_real_and_floating():
    x = half(2)
    assert x.is_floating_point()
    assert rg.is_signed(x)
    assert not x.is_complex()
    assert x.element_size() == 2
    assert x.type() == "retrograd.BFloat16Tensor"
    assert isinstance(x, rg.BFloat16Tensor)
    assert not isinstance(rg.ones(1), rg.BFloat16Tensor)
    assert rg.BFloat16Tensor([1.0, 2.0]).dtype == rg.bfloat16
    assert rg.ones(1).type("torch.BFloat16Tensor").dtype == rg.bfloat16
    assert rg.can_cast(rg.bfloat16, rg.float16)
    assert not rg.can_cast(rg.bfloat16, rg.int64)


def test_limits_are_pytorchs():
    info = rg.finfo(rg.bfloat16)
    assert (info.bits, info.eps, info.resolution, info.dtype) == (16, EPS, 0.01, "bfloat16")
    assert info.max == -info.min == 255 * 2.0**120
    assert info.tiny == info.smallest_normal == 2.0**-126


def test_a_tensor_prints_its_digits_and_its_dtype():
    x = rg.tensor([1.5, 0.1, 300.0], dtype=rg.bfloat16)
    assert repr(x) == "tensor([1.5000e+00, 1.0010e-01, 3.0000e+02], dtype=bfloat16)"
    assert repr(rg.tensor([1.0, 2.0], dtype="bfloat16")) == "tensor([1., 2.], dtype=bfloat16)"


# --------------------------------------------------------------------------------------------- conversions


def test_conversion_rounds_to_the_nearest_ties_to_even():
    x = np.concatenate([numbers(1000), [1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, np.inf, -np.inf, 1e-40, -0.0]])
    x = x.astype(np.float32)
    with np.errstate(over="ignore"):
        expected = rounded(x)
    assert np.array_equal(rg.tensor(x).bfloat16().float().numpy(), expected)
    assert np.array_equal(rg.tensor(x).to("bfloat16").double().numpy(), expected)
    assert np.isnan(rg.tensor([np.nan]).bfloat16().item())


@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "float16", "float64"])
def test_conversions_to_and_from_other_dtypes(dtype):
    x = rg.tensor([0, 1, 2, 100]).to(dtype)
    assert x.bfloat16().dtype == rg.bfloat16
    assert x.bfloat16().to(dtype).tolist() == x.tolist()


def test_a_tensor_of_the_dtype_is_not_converted():
    x = half(2)
    assert x.bfloat16() is x.to(rg.bfloat16) is x.to("bfloat16") is x
    assert x.type_as(rg.ones(1)).dtype == rg.float32


def test_arrays_share_memory_with_tensors():
    x = half(3)
    array = x.numpy()
    assert array.dtype == ml_dtypes.bfloat16
    array[0] = 7
    assert x[0].item() == 7.0
    assert type(x.tolist()[0]) is type(x[0].item()) is float
    assert rg.from_numpy(array).data_ptr() == x.data_ptr()
    assert rg.frombuffer(array.tobytes(), dtype="bfloat16").tolist() == x.tolist()


def test_copies_and_pickles_keep_the_dtype():
    x = half(3)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), rg.zeros_like(x) + x):
        assert other.dtype == rg.bfloat16
        assert other.tolist() == x.tolist()


def test_dlpack_is_refused_with_a_way_out():
    x = half(3)
    with pytest.raises(BufferError, match=r"NumPy exports no bfloat16; x.view\(rg.uint16\) is the same memory"):
        x.__dlpack__()
    assert rg.from_dlpack(x.view(rg.uint16)).view(rg.bfloat16).tolist() == x.tolist()


def test_factories_take_the_dtype():
    kind = {"dtype": rg.bfloat16}
    made = [rg.zeros(2, **kind), rg.ones(2, **kind), rg.full((2,), 0.1, **kind), rg.arange(3, **kind)]
    made += [rg.eye(2, **kind), rg.linspace(0, 1, 3, **kind), rg.empty(2, **kind), rg.randint(0, 5, (3,), **kind)]
    made += [rg.rand(3, **kind), rg.randn(3, **kind), rg.zeros_like(rg.ones(2), **kind), rg.logspace(0, 1, 2, **kind)]
    assert all(x.dtype == rg.bfloat16 for x in made)
    assert made[3].tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [rg.float16, rg.bfloat16])
def test_steps_are_counted_in_float32_and_rounded_once(dtype):
    assert rg.arange(0, 10000, dtype=dtype).tolist() == rg.arange(0.0, 10000.0).to(dtype).tolist()
    assert rg.arange(-0.1, 0.4, 0.1, dtype=dtype).tolist() == rg.arange(-0.1, 0.4, 0.1).to(dtype).tolist()


def test_random_numbers_stay_below_one():
    x = rg.rand(5000, dtype=rg.bfloat16)
    assert 0 <= x.min().item() < x.max().item() == 1 - 2**-8


def test_it_can_be_the_default_dtype():
    rg.set_default_dtype(rg.bfloat16)
    try:
        assert rg.tensor(1.5).dtype == (rg.ones(2, dtype=rg.int64) / 2).dtype == rg.bfloat16
    finally:
        rg.set_default_dtype(rg.float32)


# ----------------------------------------------------------------------------------------------- promotion


def test_float16_and_bfloat16_meet_in_float32():
    assert (half(2) + rg.ones(2, dtype=rg.float16)).dtype == rg.float32
    assert rg.promote_types("bfloat16", "float16") == rg.float32
    assert rg.result_type(half(2), rg.ones((), dtype=rg.float16)) == rg.bfloat16


@pytest.mark.parametrize("other", [2, 0.1, True, rg.tensor(0.1), rg.tensor(0.1, dtype=rg.float64), rg.ones(2).long()])
def test_numbers_tensors_without_dimensions_and_integers_yield(other):
    x = half(2)
    assert (x * other).dtype == (other * x).dtype == rg.bfloat16


def test_python_numbers_take_part_unrounded():
    x = half(1000)
    assert np.array_equal((x * 0.1).float().numpy(), rounded(x.float().numpy() * np.float32(0.1)))
    assert rg.tensor(0.1, dtype=rg.bfloat16) == 0.1  # comparisons round them, as PyTorch's


def test_complex_numbers_make_complex64():
    assert (half(2) * 1j).dtype == rg.complex64
    assert (half(2) * rg.tensor([1j])).dtype == rg.complex64


# ---------------------------------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize("op", [rg.add, rg.sub, rg.mul, rg.div, rg.atan2, rg.maximum, rg.hypot, rg.fmod])
def test_binary_operators_round_once(op):
    a, b = half(1000), half(1000, seed=1)
    exact = op(a.float(), b.float()).numpy()
    assert np.array_equal(op(a, b).float().numpy(), rounded(exact))


@pytest.mark.parametrize("f", [lambda x: x.sum(0), lambda x: x.T @ x, lambda x: rg.softmax(x, 0), lambda x: x.var(0)])
def test_sums_of_many_numbers_round_once(f):
    x = half(3000, 4).abs()
    assert np.array_equal(f(x).float().numpy(), rounded(f(x.float()).numpy()))


def test_a_gradient_is_that_of_float32_rounded():
    x = half(100).requires_grad_()
    y = x.float().detach().requires_grad_()
    F.softplus(x).backward(rg.ones(100, dtype=rg.bfloat16))
    F.softplus(y).backward(rg.ones(100))
    assert x.grad.dtype == rg.bfloat16
    assert np.array_equal(x.grad.float().numpy(), rounded(y.grad.numpy()))


def test_second_derivatives_and_transforms():
    x = rg.tensor([0.5, 1.0], dtype=rg.bfloat16)
    h = rg.func.hessian(lambda x: (x**3).sum())(x)
    assert (h.dtype, h.tolist()) == (rg.bfloat16, [[3.0, 0.0], [0.0, 6.0]])
    out, tangent = rg.func.jvp(rg.exp, (x,), (rg.ones_like(x),))
    assert out.dtype == tangent.dtype == rg.bfloat16
    assert rg.vmap(lambda x: x * 2)(x).tolist() == [1.0, 2.0]
    traced = rg.fx.trace(lambda x: (x * 2.5).exp(), x)
    assert traced(x).tolist() == (x * 2.5).exp().tolist()


def test_writes_in_place_keep_the_dtype_and_the_memory():
    x = half(4)
    address, view, before = x.data_ptr(), x[1:], x.float().numpy().copy()
    x += 1
    x.mul_(0.1)
    view.exp_()
    x[0] = 7.0
    assert x.data_ptr() == address
    assert x.dtype == rg.bfloat16
    steps = rounded(rounded(before + 1) * np.float32(0.1))
    assert np.array_equal(x.float().numpy()[1:], rounded(np.exp(steps[1:])))
    assert rg.add(half(2), 1, out=rg.empty(2, dtype=rg.bfloat16)).dtype == rg.bfloat16
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long: bfloat16 to int64"):
        rg.ones(4, dtype=rg.int64).mul_(x)


def test_writes_in_place_are_recorded():
    x = half(3).requires_grad_()
    y = x * 2
    y.mul_(3)
    y[0] = 1.0
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 6.0, 6.0]


def test_sorting_and_selection():
    x = rg.tensor([3.0, -1.0, float("nan"), 2.0, -0.0], dtype=rg.bfloat16)
    assert x[:2].sort().values.tolist() == [-1.0, 3.0]
    assert x.argmax().item() == 2
    assert x.isnan().tolist() == [False, False, True, False, False]
    assert x.nan_to_num(5.0).topk(2).values.tolist() == [5.0, 3.0]
    assert rg.where(x > 0, x, 0.0).dtype == rg.bfloat16
    assert rg.cat([x, rg.ones(1)]).dtype == rg.float32
    assert x.unique().dtype == x[x > 0].dtype == rg.bfloat16


def test_decompositions_and_transforms_refuse_it_as_pytorch_does():
    with pytest.raises(TypeError, match=r"linalg.solve: bfloat16 is not supported"):
        rg.linalg.solve(rg.eye(2, dtype=rg.bfloat16), half(2))
    with pytest.raises(RuntimeError, match="no transform of bfloat16"):
        rg.fft.fft(half(4))


def test_gradcheck_refuses_it():
    with pytest.raises(ValueError, match="gradcheck: input 0 is bfloat16"):
        rg.autograd.gradcheck(rg.sin, half(2).requires_grad_())


def test_a_users_operator_gets_the_tensors_as_they_are():
    seen = []

    @rg.library.custom_op("bfloat16_test::double", mutates_args=())
    def double(x: rg.Tensor) -> rg.Tensor:
        seen.append(x.dtype)
        return x * 2

    assert double(half(2)).dtype == rg.bfloat16
    assert seen == [rg.bfloat16]
