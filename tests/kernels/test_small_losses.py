"""Mean class losses of few rows, and gradients, have the bits of several kernels; the rest is left to these."""

import numpy as np
import pytest

from retrograd import kernels

from .layouts import LAYOUTS, plain
from .test_small_products import Recorder, same_bits

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

CALLS = 300
IGNORED = -100
ROWS = [1, 2, 7, 8, 9, 16, 31, 64, 127, 128]
CLASSES = [1, 2, 7, 8, 10, 33, 100]


def kernel_loss(x, target, ignored):
    """Return the loss by the kernel of rows and NumPy's sum, as `mean_class_loss` computes it for many rows."""
    total = np.add.reduce(kernels.class_loss_rows(x, target, np.int64(ignored)), None)
    return np.asarray(total / x.dtype.type(np.count_nonzero(target != ignored)))


def kernel_grad(g, x, target, ignored):
    share = g / x.dtype.type(np.count_nonzero(target != ignored))
    return kernels.class_grad_rows(x, target, np.int64(ignored), share)


def draw(r, dtype, hard):
    """Return logits, with infinities and NaN if they are `hard`, and classes, of which some are ignored."""
    rows, classes = r.choice(ROWS), r.choice(CLASSES)
    x = (3 * r.standard_normal((rows, classes))).astype(dtype)
    if hard:
        x[r.random(x.shape) < 0.05] = r.choice([np.inf, -np.inf, np.nan, 1e30])
    target = r.integers(classes, size=rows)
    target[1:][r.random(rows - 1) < 0.3] = IGNORED
    return x, target


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_of_few_losses_have_the_bits_of_the_kernel_and_numpys_sum(dtype):
    r = np.random.default_rng(0)
    for i in range(CALLS):
        x, target = draw(r, dtype, i % 3 == 2)
        layout = r.choice(np.array(LAYOUTS, object))
        x = layout(x)
        rows = np.ascontiguousarray(x, dtype)
        wrapped = Recorder(lambda *args, rows=rows: kernel_loss(rows, *args[1:]))
        with np.errstate(all="ignore"):
            found = kernels.small_class_loss(wrapped)(x, target, IGNORED)
            assert same_bits(np.asarray(found), kernel_loss(rows, target, IGNORED)), (i, x.shape, layout)
        assert wrapped.calls == 0 or layout is not plain, (i, x.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_of_few_losses_have_the_bits_of_the_kernel(dtype):
    r = np.random.default_rng(1)
    for i in range(CALLS):
        x, target = draw(r, dtype, i % 3 == 2)
        g = np.array(r.standard_normal(), dtype)
        wrapped = Recorder(kernel_grad)
        with np.errstate(all="ignore"):
            found = kernels.small_class_grad(wrapped)(g, x, target, IGNORED)
            assert same_bits(found, kernel_grad(g, x, target, IGNORED)), (i, x.shape)
        assert wrapped.calls == 0, (i, x.shape)


def args_with(**changes):
    given = {"x": np.ones((2, 3)), "target": np.array([0, 2]), "ignored": IGNORED} | changes
    return tuple(given.values())


REFUSED = {
    "above": args_with(target=np.array([0, 3])),
    "below": args_with(target=np.array([-1, 0])),
    "all ignored": args_with(target=np.array([IGNORED, IGNORED])),
    "no rows": args_with(x=np.ones((0, 3)), target=np.zeros(0, int)),
    "many rows": args_with(x=np.ones((129, 3)), target=np.zeros(129, int)),
    "many classes": args_with(x=np.ones((2, 20_000))),
    "other rows": args_with(target=np.array([0, 1, 2])),
    "vector": args_with(x=np.ones(3), target=np.array(0)),
    "images": args_with(x=np.ones((2, 2, 3)), target=np.zeros((2, 2), int)),
    "float16": args_with(x=np.ones((2, 3), np.float16)),
    "int32": args_with(target=np.array([0, 2], np.int32)),
    "subclass": args_with(x=np.ones((2, 3)).view(np.matrix)),
    "large number": args_with(ignored=2**70),
    "float": args_with(ignored=1.0),
}


@pytest.mark.parametrize("args", REFUSED.values(), ids=REFUSED)
def test_other_operands_are_left_to_the_wrapped_functions(args):
    wrapped = Recorder(lambda *args: "refused")
    assert kernels.small_class_loss(wrapped)(*args) == "refused"
    assert kernels.small_class_grad(wrapped)(np.ones(()), *args) == "refused"
    assert kernels.small_class_loss(wrapped)(*args[:2]) == "refused"
    assert kernels.small_class_grad(wrapped)(*args) == "refused"


def test_gradients_of_another_dtype_are_left_to_the_wrapped_function():
    wrapped = Recorder(lambda *args: "refused")
    assert kernels.small_class_grad(wrapped)(np.ones((), np.float32), *args_with()) == "refused"
    assert kernels.small_class_grad(wrapped)(np.ones(1), *args_with()) == "refused"
    assert kernels.small_class_grad(wrapped)(1.0, *args_with()) == "refused"
