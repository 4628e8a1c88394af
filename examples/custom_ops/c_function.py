"""A function of a C library, called by ctypes: `python examples/custom_ops/c_function.py`. It needs a C compiler, `cc`.

The library's function works on arrays of doubles: x / (1 + |x|) of n numbers. Its gradient formula is made of
operators, so derivatives of any order follow, and `vmap`, graphs and pipelines take it as any other operator.
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck

SOURCE = """
#include <math.h>
void softsign(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) y[i] = x[i] / (1 + fabs(x[i]));
}
"""


def load_library() -> ctypes.CDLL:
    """Compile and load the library, and declare the arguments of its function: two arrays and a length."""
    folder = Path(tempfile.mkdtemp())
    (folder / "softsign.c").write_text(SOURCE)
    compile_ = ["cc", "-O2", "-shared", "-fPIC", "-o", folder / "softsign.so", folder / "softsign.c", "-lm"]
    subprocess.run(compile_, check=True)
    library = ctypes.CDLL(str(folder / "softsign.so"))
    array = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
    library.softsign.argtypes, library.softsign.restype = [array, array, ctypes.c_long], None
    return library


LIBRARY = load_library()


@rg.library.custom_op("examples::softsign", mutates_args=())
def softsign(x: rg.Tensor) -> rg.Tensor:
    """Return x / (1 + |x|) of a float64 tensor of any shape."""
    array = np.asarray(x.numpy(), order="C")  # in `ascontiguousarray` a number gets a dimension
    out = np.empty_like(array)
    LIBRARY.softsign(array, out, array.size)
    return rg.as_tensor(out)


def setup_context(ctx, inputs, output):
    """Save the input."""
    ctx.save_for_backward(*inputs)


def backward(ctx, g):
    """Return the gradient: the derivative is 1 / (1 + |x|)^2."""
    (x,) = ctx.saved_tensors
    return g / (1 + x.abs()) ** 2


softsign.register_autograd(backward, setup_context=setup_context)


def main() -> None:
    """Check the operator and its first two derivatives, and run it in `vmap`."""
    x = rg.randn(4, 3, dtype=rg.float64, requires_grad=True)
    print("gradcheck", gradcheck(softsign, x) and gradgradcheck(softsign, x))
    print("opcheck", set(rg.library.opcheck(softsign, (x,)).values()))
    print("gradients of each row", rg.vmap(rg.func.grad(lambda row: softsign(row).sum()))(x.detach()).shape)


if __name__ == "__main__":
    main()
