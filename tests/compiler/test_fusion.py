"""Fused groups of elementwise kernels: the eager bits, warnings and errors, for large, broadcast and strided arrays."""

import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.compiler.program import FusedCalls
from retrograd.kernels import reference

from ..case_groups import group_cases
from .comparison import assert_same_runs, numbers, observe

LONG = 100_003  # several tiles, two threads, and a rest


def groups(compiled):
    """Return the calls that run fused, by group."""
    fused = [c for c in compiled.programs[-1].plan if isinstance(c, FusedCalls)]
    return [[call.op.name if call.op else "array" for call in group.calls] for group in fused]


def compiled_like_eager(f, *tensors):
    """Check that compiled calls have the eager results; return the compiled function."""
    compiled = rg.compile(f, fullgraph=True)
    for _ in range(3):
        assert observe(compiled(*tensors)) == observe(f(*tensors))
    return compiled


def test_a_chain_runs_as_one_group_and_stores_only_its_result():
    compiled = compiled_like_eager(lambda x: ((x * 1.5 + 0.3).sin() * (x * 0.1).exp()).square(), numbers(LONG))
    assert groups(compiled) == [["mul", "add", "sin", "mul", "exp", "mul", "square"]]
    (group,) = [c for c in compiled.programs[-1].plan if isinstance(c, FusedCalls)]
    assert (len(group.operands), len(group.outs)) == (1, 1)


def test_a_group_that_reads_one_element_everywhere_needs_no_array_of_it():
    w = numbers(LONG).requires_grad_()

    def f():
        w.grad = None
        w.square().mean().backward()
        return w.grad

    compiled = compiled_like_eager(f)
    assert "filled" not in [call.op.name for call in compiled.programs[-1].plan if getattr(call, "op", None)]


@pytest.mark.parametrize("size", [1, 4, 2047, 2049, LONG])
def test_forward_and_backward_of_a_chain(size):
    def make():
        w = numbers(size).requires_grad_()

        def f(x):
            y = ((w * x + 0.3).sin() * (x * 0.1).exp()).sigmoid().tanh() - w / 3
            y.square().sum().backward()
            return y.detach(), (y > 0).logical_not()

        return f, [w]

    assert_same_runs(make, lambda i: (numbers(size, seed=i + 1),))


def backward_of_a_chain(between=lambda x: None):
    """Return a function that makes a step, which calls `between` on its leaf before the backward pass, and the leaf."""

    def make():
        x = numbers(LONG).requires_grad_()

        def step():
            x.grad = None
            y = ((x * 1.5 + 0.3).sin() * (x * 0.1).exp()).square().sum()
            with rg.no_grad():
                between(x)
            y.backward()
            return y.detach()

        return step, [x]

    return make


def test_a_large_backward_group_computes_cheap_values_again_that_only_it_reads():
    step, _ = backward_of_a_chain()()
    compiled = rg.compile(step, fullgraph=True)
    compiled()
    forward, backward = groups(compiled)
    assert forward == ["mul", "add", "sin", "mul", "exp", "mul", "square"]
    assert backward[:3] == ["mul", "add", "mul"]
    stored = next(c.outs for c in compiled.programs[-1].plan if isinstance(c, FusedCalls))
    assert len(stored) == 3  # of sin, exp and square
    assert_same_runs(backward_of_a_chain(), lambda i: ())


def test_a_backward_group_does_not_compute_again_what_a_write_has_changed():
    assert_same_runs(backward_of_a_chain(lambda x: x.mul_(1.01)), lambda i: ())


@pytest.mark.parametrize("shapes", [((300, 70), (70,)), ((300, 70), (300, 1)), ((5, 6, 700), (6, 1)), ((9000,), ())])
def test_broadcast_operands(shapes):
    tensors = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    compiled = compiled_like_eager(lambda x, y: ((x + y) * x - y).cos() / (y * y + x * x), *tensors)
    assert len(groups(compiled)[0]) >= 4


def test_strided_operands_and_results_stay_as_they_are():
    x, y = numbers(40, 30), numbers(30, 40)
    compiled_like_eager(lambda x, y: (x.t() * 2 + y, x.t() * 2 + 1, (x[:, ::2] + 1) * 2), x, y)


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool", "uint8", "float16", "complex64"])
def test_dtypes(dtype):
    x = (numbers(3000) * 10).to(getattr(rg, dtype))
    compiled_like_eager(lambda x: ((x * 2 + x) * x == x, x * x * x), x)


def test_a_write_between_two_kernels_is_between_them():
    def f(x, y):
        a = x * 2 + 1
        x.add_(y)
        b = x * 2 + a
        a.mul_(y)
        return a * 3 - b, b

    assert_same_runs(lambda: (f, []), lambda i: (numbers(50, seed=i), numbers(50, seed=i + 9)))


def test_results_are_in_memory_of_their_own():
    compiled = rg.compile(lambda x: (x * 2 + 1, (x * 2).sin()))
    x = numbers(10)
    compiled(x)
    first, second = compiled(x), compiled(x)
    first[0].zero_()
    assert second[0].tolist() == (x * 2 + 1).tolist()


@pytest.mark.parametrize("size", [3, LONG])
def test_warnings_and_errors_of_numpy_are_those_of_the_eager_call(size):
    def f(x):
        return 1 / (x - 1) + (x - 3).log()

    compiled = rg.compile(f)
    compiled(rg.full((size,), 4.0))
    x = rg.ones(size)
    with np.errstate(all="warn"), warnings.catch_warnings(record=True) as eager:
        warnings.simplefilter("always")
        expected = f(x)
    with np.errstate(all="warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert observe(compiled(x)) == observe(expected)
    assert [str(w.message) for w in caught] == [str(w.message) for w in eager] != []
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(x)


def test_underflow_is_reported_if_numpy_reports_it():
    compiled = rg.compile(lambda x: (x - 100).exp() * x)
    compiled(rg.zeros(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(rg.zeros(5))
    with np.errstate(under="raise"), pytest.raises(FloatingPointError):
        compiled(rg.zeros(5))


def test_random_numbers_are_drawn_once_per_call():
    assert_same_runs(
        lambda: (lambda x: (x * 2 + rg.rand(5) + 1, rg.bernoulli(x * 0 + 0.5)), []), lambda i: (numbers(5),)
    )


UFUNCS = [u for u in vars(np).values() if isinstance(u, np.ufunc) and u.signature is None and u.nout == 1]


def elements(char, size, seed):
    """Return numbers of a dtype, infinities and NaN among them."""
    r = np.random.default_rng(seed)
    if char not in "fd":
        return r.integers(0, 40, size).astype(char)
    found = (r.standard_normal(size) * r.choice([0.1, 1, 10, 1e3], size)).astype(char)
    found[r.integers(0, size, 300)] = r.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40], 300)
    return found


@group_cases
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_no_loop_depends_on_the_position_of_an_element(ufunc):
    """Fusion relies on it: a tile has the bits of the whole array, also if an operand is strided or one number."""
    size = 3 * 2048 + 13
    for types in ufunc.types:
        chars = types.partition("->")[0]
        if set(types) - set("fd?l->"):
            continue
        operands = [elements(char, size, seed) for seed, char in enumerate(chars)]
        with np.errstate(all="ignore"):
            try:
                whole = ufunc(*operands)
            except ValueError:  # a negative power of an integer
                continue
            for tile in (3, 64, 2048):
                parts = [ufunc(*[a[i : i + tile].copy() for a in operands]) for i in range(0, size, tile)]
                assert np.concatenate(parts).tobytes() == whole.tobytes()
            assert ufunc(*[np.repeat(a, 2)[::2] for a in operands]).tobytes() == whole.tobytes()
            first = [a[:1] for a in operands[:-1]]
            full = [np.repeat(a, size) for a in first]
            assert ufunc(*first, operands[-1]).tobytes() == ufunc(*full, operands[-1]).tobytes()


@pytest.mark.parametrize("make", [kernels.fused_group, reference.fused_group], ids=["chosen", "reference"])
def test_a_group_leaves_unexpected_operands_to_the_fallback(make):
    like = np.zeros((3, 4), np.float32)
    group = make((3, 4), (like, like), (), (like,), (like,), ((np.add, 0, 1, 3), (np.sin, 3, 2)), True, lambda *a: a)
    x = np.ones((3, 4), np.float32)
    assert group(x, x)[0].tobytes() == np.sin(x + x).tobytes()
    for other in (x.astype(float), x.T, x[:2], x[:, ::2], np.ones((4, 3), np.float32), 1.0):
        assert group(x, other)[1] is other
    assert group(x) == (x,)


def test_the_reference_plays_tiles_with_the_bits_of_the_compiled_kernel():
    x, row = elements("f", LONG, 1).reshape(1, -1), elements("f", LONG, 2)
    x = np.repeat(x, 3, 0)
    args = ((3, LONG), (x, row), (np.array(2, np.float32),), (x, x), (x,))
    steps = ((np.multiply, 0, 2, 5), (np.add, 5, 1, 3), (np.sin, 3, 5), (None, 5, 4))
    plain = [np.add(x * np.float32(2), row)]
    for make in (kernels.fused_group, reference.fused_group):
        with np.errstate(all="ignore"):
            found = make(*args, steps, True, None)(x, row)
            assert [a.tobytes() for a in found] == [plain[0].tobytes(), np.sin(plain[0]).tobytes()]
