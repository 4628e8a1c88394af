"""Function transforms: each runs a function at a level of its own, so they nest in any order."""

from retrograd.func.batch import PerformanceWarning, vmap
from retrograd.func.debug import debug_unwrap
from retrograd.func.forward import jvp, linearize
from retrograd.func.jacobians import hessian, jacfwd, jacrev
from retrograd.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from retrograd.func.mutations import functionalize
from retrograd.func.rearrange import rearrange
from retrograd.func.reverse import grad, grad_and_value, vjp
from retrograd.func.sparse import hessian_sparsity, jacobian_sparsity, sparse_hessian, sparse_jacobian
from retrograd.func.sparsity import Sparsity
from retrograd.func.taylor import jet

__all__ = [
    "PerformanceWarning",
    "Sparsity",
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "hessian_sparsity",
    "jacfwd",
    "jacobian_sparsity",
    "jacrev",
    "jet",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "sparse_hessian",
    "sparse_jacobian",
    "stack_module_state",
    "vjp",
    "vmap",
]
