"""Wrap a C function as an operator with a gradient: `python examples/tasks/c_operator.py`. It needs `cc`."""

import ctypes
import subprocess
import tempfile

import numpy as np

import retrograd as rg

SOURCE = """
#include <math.h>
void logistic(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) y[i] = 1 / (1 + exp(-x[i]));
}
"""
folder = tempfile.mkdtemp()
with open(f"{folder}/f.c", "w") as file:
    file.write(SOURCE)
subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", f"{folder}/f.so", f"{folder}/f.c", "-lm"], check=True)
library = ctypes.CDLL(f"{folder}/f.so")
pointer = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
library.logistic.argtypes = [pointer, pointer, ctypes.c_long]


@rg.library.custom_op("mine::logistic", mutates_args=())
def logistic(x: rg.Tensor) -> rg.Tensor:
    array = np.asarray(x.numpy(), order="C")
    out = np.empty_like(array)
    library.logistic(array, out, array.size)
    return rg.from_numpy(out)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(output)


def backward(ctx, grad):
    (y,) = ctx.saved_tensors
    return grad * y * (1 - y)


logistic.register_autograd(backward, setup_context=setup_context)
x = rg.randn(5, dtype=rg.float64, requires_grad=True)
assert rg.allclose(logistic(x), rg.sigmoid(x))
assert rg.autograd.gradcheck(logistic, (x,))
print(rg.library.opcheck(logistic, (x,)))
print(rg.vmap(rg.func.grad(logistic))(x.detach()))
