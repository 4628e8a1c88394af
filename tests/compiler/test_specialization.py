"""Specialized kernels: a program calls functions of arrays, not the Python code that chooses them."""

import sys
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels, nn
from retrograd.backend import numpy as xp
from retrograd.backend.kernel_trace import trace_kernel
from retrograd.foundation.source_location import PACKAGE

from .comparison import numbers, observe


def layout(*shape, dtype=np.float32, strides=None):
    array = np.empty(shape, dtype)
    return shape, array.dtype, array.strides if strides is None else strides


def functions_entered(call):
    """Return the names of the library's Python functions that a call enters, by file."""
    entered = set()

    def watch(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.add((frame.f_code.co_filename.removeprefix(PACKAGE), frame.f_code.co_name))

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


@pytest.mark.skipif(not kernels.compiled, reason="the reference kernels are Python code themselves")
def test_a_compiled_call_runs_no_python_code_of_kernels():
    w, b = numbers(8, 6).requires_grad_(), numbers(8).requires_grad_()

    @rg.compile(fullgraph=True)
    def step(x):
        w.grad = b.grad = None
        y = nn.functional.linear(x, w, b).relu().unsqueeze(0).transpose(1, 2)
        loss = (y @ y.mT).mean() + y.mT.softmax(-1).sum()
        loss.backward()
        return loss.detach()

    x = numbers(3, 6)
    for _ in range(3):
        step(x)
    entered = {name for file, name in functions_entered(lambda: step(x)) if file.startswith(("ops", "backend/numpy"))}
    assert entered <= {"_fill"}  # which reads a value


@pytest.mark.parametrize("kernel", [xp.quotient_or_zero, xp.bernoulli_loss, xp.one_hot, xp.logsumexp])
def test_kernels_that_look_at_values_are_not_traced(kernel):
    given = {xp.one_hot: [layout(3, dtype=np.int64), 4], xp.logsumexp: [layout(3, 2), 1, False]}
    assert trace_kernel(kernel, given.get(kernel, [layout(3), layout(3)]), {}) is None


def test_a_kernel_that_switches_warnings_off_is_not_traced():
    def kernel(x):
        with np.errstate(divide="ignore"):
            return np.log(x)

    assert trace_kernel(kernel, [layout(3)], {}) is None
    assert trace_kernel(np.log, [layout(3)], {}) is not None


def test_a_kernel_that_writes_to_its_operand_is_not_traced():
    def kernel(x):
        x += 1
        return x

    def on_a_copy(x):
        out = x * 2
        out += 1
        return out

    assert trace_kernel(kernel, [layout(3)], {}) is None
    assert len(trace_kernel(on_a_copy, [layout(3)], {}).steps) == 2


def test_constants_that_are_equal_but_not_the_same_have_traces_of_their_own():
    def kernel(x, number):
        return x * number

    constants = [trace_kernel(kernel, [layout(3), n], {}).steps[0].operands[1] for n in (0.0, -0.0, 0, 1, 1.0)]
    assert [repr(c) for c in constants] == ["0.0", "-0.0", "0", "1", "1.0"]


# Shapes at which kernels take another way, in other orders of memory too.
PRODUCTS = [((1, 5), (5, 3)), ((4, 1), (1, 3)), ((5,), (5, 3)), ((4, 5), (5,)), ((5,), (5,)), ((2, 4, 5), (5, 3)),
            ((2, 4, 5), (2, 5, 3)), ((1, 4, 5), (2, 5, 3)), ((64, 64), (64, 64)), ((2, 64, 64), (64, 64)),
            ((0, 5), (5, 3)), ((4, 0), (0, 3))]  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
def test_products_of_all_shapes_have_the_eager_bits(turned):
    for one, other in PRODUCTS:
        a, b = numbers(*one), numbers(*other, seed=1)
        if turned:
            a, b = (t.mT.contiguous().mT if t.ndim > 1 else t for t in (a, b))
        compiled = rg.compile(lambda a, b: (a @ b, a.sum(-1), b.mean(0), a.sum(0, keepdim=True)), fullgraph=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            seen = [observe(compiled(a, b)) for _ in range(2)]
        assert seen[0] == seen[1], (one, other)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_recurrent_steps_have_the_eager_bits(name):
    layer = getattr(nn, name)(4, 6)
    parameters = [*layer.parameters()]
    compiled = rg.compile(lambda x: rg.autograd.grad(layer(x)[0].square().sum(), parameters), fullgraph=True)
    x = numbers(5, 3, 4)
    first = observe(compiled(x))
    assert observe(compiled(x)) == first
