"""HIPS autograd under another name: the modules and names imported by code written for `autograd`.

`import retrograd.hips as autograd` in a program; for unmodified libraries, call `install()` before importing them:
`import autograd` then imports this package everywhere.
"""

from retrograd import numpy, scipy
from retrograd.func.autograd_api import (
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from retrograd.hips import builtins, core, extend, misc, test_util, wrap_util
from retrograd.hips.aliases import install
from retrograd.hips.builtins import dict, isinstance, list, tuple, type
from retrograd.hips.extend import primitive
from retrograd.hips.operators import checkpoint, make_jvp_reversemode

__all__ = [
    "builtins", "checkpoint", "core", "deriv", "dict", "elementwise_grad", "extend", "grad", "grad_and_aux",
    "grad_named", "hessian", "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "install",
    "isinstance", "jacobian", "list", "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp", "misc",
    "multigrad_dict", "numpy", "primitive", "scipy", "tensor_jacobian_product", "test_util", "tuple", "type",
    "value_and_grad", "vector_jacobian_product", "wrap_util",
]  # fmt: skip
