"""Creation operators, dtypes, devices and names: the same calls in both give the same results."""

import warnings

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd.testing import assert_close

# Evaluated twice, `m` being retrograd and torch.
FACTORIES = """
    m.zeros(size=(2, 3)); m.zeros([2]); m.zeros(()); m.ones(2, 3, dtype=m.bool); m.full((2,), 3, dtype=m.float64)
    m.full((), 1j); m.empty(2, 3).shape[0]; m.eye(2, dtype=m.bool); m.eye(3, 2); m.zeros(2, device="cpu")
    m.zeros(2, device=m.device("cpu"), layout=m.strided, pin_memory=False); m.zeros(2, requires_grad=True)
    m.zeros_like(m.ones(2, 3)); m.ones_like(m.arange(3), dtype=m.float64); m.full_like(m.arange(3), 2.5)
    m.full_like(m.ones(2), 2, dtype=m.int32); m.empty_like(m.ones(2, 3)).dim()
    m.zeros_like(m.ones(2, 3).T).stride(); m.zeros_like(m.ones(2, 3).T, memory_format=m.contiguous_format).stride()
    m.arange(end=3); m.arange(start=1, end=4); m.arange(1, 4, step=2); m.arange(0.5, 2)
    m.arange(3, dtype=m.float16); m.arange(5, 5); m.arange(0, -3, -1); m.linspace(0, 10, 4, dtype=m.int64)
    m.linspace(0, -10, 4, dtype=m.int64); m.linspace(0, 1, 0); m.linspace(2, 3, 1); m.linspace(0, 1j, 3)
    m.linspace(m.tensor(1.0), 2, 3); m.logspace(0, 3, 4); m.logspace(0, 3, 4, dtype=m.int64)
    m.logspace(0, 2, 3, base=2); m.logspace(-1, 1, 1); m.empty_strided((2, 3), (1, 2)).stride()
    m.empty_strided((2, 3), (6, 2)).is_contiguous(); m.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
    m.empty_permuted((2, 0), (1, 0)).dim(); m.empty_permuted((), ()).stride(); m.arange(3)[None].stride()
    m.arange(3)[:, None, None].stride(); m.zeros(3, 0, 2).stride(); m.zeros(0).stride(); m.ones(2, 3)[:, None].stride()
    m.scalar_tensor(3); m.scalar_tensor(2.5, dtype=m.float64)
    m.scalar_tensor(True); m.zeros(2, out=m.ones(2)); m.arange(3, out=m.zeros(3))
    m.zeros(2, out=m.ones(2, dtype=m.int64)); m.tensor([1, 2], device="cpu"); m.tensor([[True], [False]])
    m.tensor([m.tensor([1]), m.tensor([2])]); m.tensor([[m.tensor([[1.5]]), m.tensor([[2.5]])]])
    m.as_tensor((m.tensor([1.0]),)); m.asarray([m.tensor([1])]); m.ones(1).new_tensor([m.tensor([3])])
    m.tensor([m.tensor(1), m.tensor(2)]); m.tensor(2**70, dtype=m.float64); m.tensor([2**70, 1], dtype=m.float32)
    m.randperm(256, dtype=m.uint8).sort()[0]; m.randperm(2049, dtype=m.float16).sort()[0]
    m.tensordot(m.ones(2, 3), m.ones(2, 3), m.tensor([[0], [0]])); m.tensordot(m.ones(2, 3), m.ones(3, 2), m.tensor(1))
    m.fft.fftn(m.ones(3), (-1,)); m.tensor([1, 2.5, 3j]); m.tensor(()); m.tensor([1, 2], dtype=m.uint8)
    m.tensor([[1.0]], dtype=m.float16, requires_grad=True); m.as_tensor([1, 2])
    m.as_tensor(m.ones(2), dtype=m.int64); m.as_tensor([1.5], device="cpu"); m.asarray([1.5, 2])
    m.asarray(m.ones(2), dtype=m.float64); m.asarray(m.ones(2), copy=True); m.asarray(2)
    m.asarray(m.ones(2, requires_grad=True)); m.asarray(m.ones(2), requires_grad=True)
    m.frombuffer(bytearray(b"abcd"), dtype=m.uint8); m.frombuffer(bytearray(b"abcd"), dtype=m.int16)
    m.frombuffer(bytearray(b"abcd"), dtype=m.int8, count=2, offset=1); m.from_dlpack(m.arange(3))
    m.ones(2, dtype=m.float64).new_zeros(3); m.arange(2).new_ones(2, 2); m.arange(2).new_full((2,), 7)
    m.ones(2).new_full((2,), 7); m.ones(2).new_tensor([1, 2]); m.ones(2).new_empty(3).dim()
    m.ones(2).new_zeros((2, 3), dtype=m.int32); m.ones(2).new_tensor(3, dtype=m.int64)
    m.ones(2).new_empty_strided((2, 3), (1, 2)).stride(); m.hann_window(5); m.hann_window(5, False)
    m.hann_window(0); m.hann_window(1); m.hann_window(6, dtype=m.float64); m.hamming_window(5)
    m.hamming_window(5, True, 0.5, 0.4); m.blackman_window(6); m.bartlett_window(5)
    m.bartlett_window(4, periodic=False); m.kaiser_window(5); m.kaiser_window(5, False, beta=3.0)
    m.kaiser_window(1); m.kaiser_window(0)
"""
WINDOWS = """
    bartlett(5); bartlett(4, sym=False); blackman(5); blackman(1); cosine(5); cosine(4, sym=False); exponential(5)
    exponential(4, sym=False, center=1.0, tau=2.0); exponential(1, sym=False); gaussian(5)
    gaussian(4, std=0.5, sym=False); general_cosine(5, a=[0.4, 0.5, 0.1]); general_cosine(1, a=[0.4, 0.6])
    general_hamming(5); hamming(4, sym=False); general_hamming(5, alpha=0.7); hann(5); hann(0); kaiser(5)
    kaiser(4, beta=3.0, sym=False); kaiser(1); nuttall(5); nuttall(6, sym=False)
    hann(4, dtype=m.float64, requires_grad=True)
"""
CONVERSIONS = """
    m.arange(2).to(m.float32); m.arange(2).to("cpu"); m.arange(2).to(m.device("cpu"), m.float64)
    m.ones(2).to(m.arange(2)); m.arange(2).to("cpu", m.float16, True, True); m.arange(2).to(dtype=m.int8)
    m.arange(2).to(device="cpu", dtype=m.bool); m.arange(2).to(float); m.arange(2).to(bool)
    m.arange(3).to(m.float32, copy=True); m.tensor([1 + 2j]).to(m.complex128)
    m.ones(2).type() == f"{m.__name__}.FloatTensor"; m.arange(2).type(m.float64); m.ones(2).type("torch.LongTensor")
    m.arange(2).type(m.DoubleTensor); m.ones(2).type_as(m.arange(2)); m.arange(2).short(); m.arange(2).char()
    m.arange(2).byte(); m.arange(2).half(); m.arange(2).cfloat(); m.arange(2).cdouble(); m.arange(2).int()
    m.ones(2).cpu(); m.ones(2).double(); m.FloatTensor([1, 2]); m.FloatTensor(2, 3).dim(); m.LongTensor([1.5])
    m.LongTensor(); m.BoolTensor([0, 2]); m.IntTensor(m.Size([2])).dim(); m.ByteTensor([1])
    m.DoubleTensor(m.ones(1).double()); isinstance(m.ones(1), m.FloatTensor); isinstance(m.ones(1), m.LongTensor)
    isinstance(3, m.LongTensor); m.clone(m.arange(3)); m.ones(2, 3).T.clone().stride()
    m.ones(2, 3).T.clone(memory_format=m.contiguous_format).stride()
    m.ones(2, 3, 4, 5).contiguous(memory_format=m.channels_last).stride()
    m.ones(2, 3, 4, 5, 6).contiguous(memory_format=m.channels_last_3d).stride()
    m.ones(2, 3, 4, 5).to(memory_format=m.channels_last).stride()
    m.empty_like(m.ones(2, 3, 4, 5), memory_format=m.channels_last).is_contiguous(memory_format=m.channels_last)
    m.ones(2, 3, 4, 5).is_contiguous(memory_format=m.channels_last); m.ones(2, 3).T.is_contiguous()
"""
FACTS = """
    m.ones(2, 3).stride(); m.ones(2, 3).stride(1); m.ones(2, 3)[:, 1:].storage_offset(); m.ones(2, 3).T.stride()
    m.ones(2, 3).element_size(); m.ones(2, 3).itemsize; m.ones(2, 3).nbytes; m.ones(2, 3).ndimension()
    m.ones(2, 3).nelement(); m.ones(2).get_device(); m.ones(2).is_cpu; m.ones(2).is_cuda; m.ones(2).is_sparse
    m.ones(2).is_quantized; m.ones(2).is_meta; m.ones(2).is_pinned(); m.ones(2).is_shared(); m.ones(2).device.type
    str(m.ones(2).device); m.ones(2).layout is m.strided; m.numel(m.ones(2, 3)); m.is_tensor(m.ones(1))
    m.is_tensor(3); m.is_floating_point(m.ones(1)); m.is_complex(m.ones(1)); m.is_nonzero(m.tensor([2]))
    m.is_conj(m.ones(1)); m.is_neg(m.ones(1)); m.resolve_neg(m.ones(1)); m.is_inference(m.ones(1))
    m.ones(1).is_signed(); m.tensor([1], dtype=m.uint8).is_signed(); m.is_same_size(m.ones(2), m.zeros(2))
    m.is_signed(m.arange(2)); m.typename(3); m.typename(m.ones(1)) == f"{m.__name__}.FloatTensor"
    str(m.get_default_device()); str(m.device("cuda", 1)); repr(m.device("cuda:1"))
    m.device("cuda:1").index; m.device("cpu") == m.device("cpu"); m.device("cpu").index
    m.device(m.device("cpu")) == m.device("cpu"); m.Size([2, 3]).numel(); tuple(m.Size([2, 3])[1:])
    isinstance(m.Size([2]) + (1,), m.Size); m.Size([2, 3])[0]; isinstance(m.ones(2).shape, m.Size)
    isinstance(m.float32, m.dtype); isinstance(3, m.dtype); m.float is m.float32; m.double is m.float64
    m.half is m.float16; m.int is m.int32; m.long is m.int64; m.short is m.int16; m.cfloat is m.complex64
    m.cdouble is m.complex128; m.finfo(m.float32).eps; m.finfo(m.float16).max; m.finfo().tiny
    m.finfo(m.float64).resolution; m.finfo(m.complex64).bits; m.iinfo(m.int8).min; m.iinfo(m.uint8).max
    m.iinfo(m.int64).max; m.iinfo(m.int32).bits; m.finfo(m.float32).dtype; m.can_cast(m.float, m.int)
    m.can_cast(m.int, m.float); m.can_cast(m.bool, m.int); m.can_cast(m.int, m.bool)
    m.can_cast(m.complex64, m.float); m.arange(3).apply_(lambda v: v + 1)
    m.ones(2).map_(m.arange(2.0), lambda a, b: a + 2 * b); list(reversed(m.arange(3)))[0]; m.arange(3) << 1
    m.arange(3) >> 1; 2 << m.arange(3); 8 >> m.arange(3); m.normal(m.zeros(2, 3), m.ones(3)).shape[0]
    m.normal(m.zeros(2, dtype=m.float64), m.ones(2)).dtype == m.float64
    m.normal(m.zeros(2), m.ones(2, dtype=m.float64)).dtype == m.float32; m.normal(1.0, m.ones(2)).dim()
    m.normal(0.0, 1.0, (2, 3)).dim(); m.normal(0.0, 1.0, size=(2, 3), dtype=m.float64).dtype == m.float64
    m.bernoulli(m.tensor([0.0, 1.0])); m.bernoulli(m.arange(3), 1.0); m.poisson(m.zeros(2))
    m.ones(3).bernoulli(0.0); m.binomial(m.tensor([3.0, 5.0]), m.tensor([0.0, 1.0]))
    m.multinomial(m.tensor([[0.0, 1.0], [2.0, 0.0]]), 1); m.multinomial(m.tensor([0.0, 1.0]), 3, replacement=True)
    m.randperm(1); m.randint(1, (2, 2)); m.randint_like(m.ones(2), 1); m.randint(3, 4, (2,), dtype=m.float32)
    m.rand(2, dtype=m.complex64).dim(); m.randn_like(m.ones(2).cdouble()).dim()
    m.rand_like(m.arange(2), dtype=m.float64).dim(); m.zeros(3).random_(1); m.arange(3).random_(5, 6)
    m.log_(m.ones(2))
"""


def expressions(text):
    return [e for line in text.strip().splitlines() for e in map(str.strip, line.split("; "))]


def evaluated(expression, plain, **names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = eval(expression, names)
    wants = getattr(value, "requires_grad", False)
    value = plain(value)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], np.ndarray):
        return (value[0], wants), value[1]
    return type(value).__name__, value


@pytest.mark.parametrize("expression", expressions(FACTORIES) + expressions(CONVERSIONS) + expressions(FACTS))
def test_same_answer_as_pytorch(expression, plain):
    ours, theirs = (evaluated(expression, plain, m=m) for m in (rg, torch))
    assert ours[0] == theirs[0]
    if isinstance(ours[1], np.ndarray):
        assert_close(ours[1], theirs[1], rtol=1e-5, atol=1e-6)
    else:
        assert ours[1] == theirs[1]


@pytest.mark.parametrize("expression", expressions(WINDOWS))
def test_same_windows_as_pytorch(expression, plain):
    ours, theirs = (evaluated(f"w.{expression}", plain, m=m, w=m.signal.windows) for m in (rg, torch))
    assert ours[0] == theirs[0]
    assert_close(ours[1], theirs[1], rtol=2e-5, atol=1e-6)


REFUSED = """
    m.zeros(2, device="cuda"); m.device("x"); m.hann_window(3, dtype=m.int64); m.hann_window(-3)
    m.ones(2).pin_memory(); m.ones(2).cuda(); m.ones(2, 3).contiguous(memory_format=m.channels_last); m.Size([2.5])
    m.Size(2); m.iinfo(m.float32); m.finfo(m.int32); m.iinfo(m.bool); m.FloatTensor(3.5)
    m.FloatTensor(m.ones(1).double()); m.randint(3, 3, (2,)); m.rand(2, dtype=m.int64); m.normal(0.0, -1.0, (2,))
    m.normal(m.zeros(2), -m.ones(2)); m.normal(m.arange(3), 1.0); m.bernoulli(m.arange(2))
    m.bernoulli(m.tensor([1.5])); m.poisson(-m.ones(2)); m.poisson(m.arange(2)); m.multinomial(m.ones(3), 4)
    m.multinomial(m.zeros(3), 1); m.multinomial(-m.ones(3), 1); m.multinomial(m.ones(3), 0)
    m.multinomial(m.ones(2, 2, 2), 1); m.multinomial(m.arange(3), 1); m.arange(3).exponential_()
    m.ones(3).exponential_(0); m.ones(3).geometric_(1.0); m.arange(3).normal_(); m.arange(3).uniform_()
    m.ones(3).uniform_(2, 1); m.ones(3).random_(5, 5); m.ones(3).normal_(0, -1); m.ones(3).cauchy_(0, -1)
    m.ones(3).log_normal_(0, -1); m.randint(0, 300, (2,), dtype=m.uint8); m.signal.windows.gaussian(3, std=-1.0)
    m.signal.windows.exponential(3, center=1.0); m.linspace(0, 1, -1); m.signal.windows.exponential(5, tau=-1.0)
    m.ones(2, requires_grad=True).apply_(lambda v: v); m.arange(3).requires_grad_(); m.arange(2, requires_grad=True)
    m.ones(2, dtype=m.uint64) + m.ones(2, dtype=m.int64); m.promote_types(m.uint64, m.int64)
    m.ones(2, requires_grad=True).__dlpack__(); m.frombuffer(b"abc", dtype=m.int16, offset=9)
    m.tensor(2**70); m.tensor([2**70], dtype=m.int64); m.randperm(257, dtype=m.uint8); m.randperm(129, dtype=m.int8)
    m.randperm(2051, dtype=m.float16); m.fft.fftfreq(3, dtype=m.int64)
    m.fft.rfftfreq(3, dtype=m.int64); m.fft.fft(m.ones(3), -1); m.fft.rfft(m.ones(3), -1); m.fft.irfft(m.ones(3), -1)
    m.fft.hfft(m.ones(3), -1); m.fft.ihfft(m.ones(3), -1); m.fft.ifft(m.ones(3), n=-1)
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", expressions(REFUSED))
def test_expressions_that_pytorch_refuses_are_refused(expression):
    for m in (torch, rg):
        with pytest.raises((RuntimeError, TypeError, ValueError, AssertionError, BufferError)):
            eval(expression, {"m": m})


DTYPES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]


def test_promotion_is_the_same_table():
    for a in DTYPES:
        for b in DTYPES:
            types = [m.promote_types(getattr(m, a), getattr(m, b)) for m in (rg, torch)]
            if types[1] is not torch.complex32:  # which NumPy does not have
                assert str(types[0]) == str(types[1]).removeprefix("torch."), (a, b)
            assert rg.can_cast(getattr(rg, a), getattr(rg, b)) == torch.can_cast(getattr(torch, a), getattr(torch, b))


@pytest.mark.parametrize(
    "a", ["m.ones(2)", "m.arange(2)", "m.tensor(1.0, dtype=m.float64)", "m.arange(2) > 0", "2", "2.5"]
)
@pytest.mark.parametrize("b", ["m.ones(2).half()", "m.tensor(1)", "3", "1.5"])
def test_result_types_are_the_same(a, b):
    ours, theirs = (str(m.result_type(eval(a, {"m": m}), eval(b, {"m": m}))) for m in (rg, torch))
    assert ours == theirs.removeprefix("torch.")


def test_gamma_draws_move_as_in_pytorch():
    alpha, x = (np.array(v) for v in ([0.1, 0.5, 1.0, 2.5, 7.0, 40.0, 500.0], [0.01, 1.5, 0.3, 2.0, 9.0, 35.0, 520.0]))
    theirs = torch._standard_gamma_grad(torch.tensor(alpha), torch.tensor(x)).numpy()
    assert_close(rg._standard_gamma_grad(rg.tensor(alpha), rg.tensor(x)), theirs, rtol=3e-4, atol=0.0)


MOMENTS = {
    "gamma": lambda m: m._standard_gamma(m.full((N,), 2.5, dtype=m.float64)),
    "dirichlet": lambda m: m._sample_dirichlet(m.tensor([[0.3, 1.0, 2.0]], dtype=m.float64).expand(N, 3))[:, 0],
    "poisson": lambda m: m.poisson(m.full((N,), 2.5, dtype=m.float64)),
    "binomial": lambda m: m.binomial(m.full((N,), 9.0, dtype=m.float64), m.full((N,), 0.3, dtype=m.float64)),
    "multinomial": lambda m: m.multinomial(m.tensor([0.1, 0.6, 0.3]), N, True).double(),
    "distinct": lambda m: m.multinomial(m.tensor([[0.1, 0.6, 0.3, 0.4]]).expand(N, 4), 2).double()[:, 1],
    "exponential_": lambda m: m.zeros(N, dtype=m.float64).exponential_(2.0),
    "log_normal_": lambda m: m.zeros(N, dtype=m.float64).log_normal_(0.0, 0.5),
    "geometric_": lambda m: m.zeros(N, dtype=m.float64).geometric_(0.4),
    "cauchy_": lambda m: m.zeros(N, dtype=m.float64).cauchy_(1.0, 2.0).atan(),
    "uniform_": lambda m: m.zeros(N, dtype=m.float64).uniform_(-1.0, 3.0),
    "random_": lambda m: m.zeros(N, dtype=m.float64).random_(2, 9),
    "complex normal": lambda m: m.randn(N, dtype=m.complex128).abs(),
    "complex uniform": lambda m: m.rand(N, dtype=m.complex128).abs(),
}
N = 40_000


@pytest.mark.parametrize("name", MOMENTS)
def test_draws_have_the_moments_of_pytorchs(name):
    torch.manual_seed(1)
    rg.manual_seed(1)
    ours, theirs = (np.asarray(MOMENTS[name](m).numpy()) for m in (rg, torch))
    error = theirs.std() / N**0.5
    assert abs(ours.mean() - theirs.mean()) < 6 * error
    assert abs(ours.std() / theirs.std() - 1) < 0.05
