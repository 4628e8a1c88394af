"""Kernels as objects: `get_kernel`, the dispatch keys that name them, and the key that registers none."""

from typing import Any, NoReturn

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.library.custom_ops import find_operator
from retrograd.library.operator import CustomOperator
from retrograd.library.registration import Registration

KERNELS = {  # PyTorch's dispatch keys of kernels: the device type, "default" for all
    "CPU": "cpu",
    "CUDA": "cuda",
    "NestedTensorCPU": "nested",
    "NestedTensorCUDA": "nested",
    "CompositeExplicitAutograd": "default",
}
FIELDS = {  # the dispatch keys of other parts
    "Meta": "abstract",
    "Autograd": "autograd",
    "AutogradCPU": "autograd",
    "AutogradCUDA": "autograd",
    "CompositeImplicitAutograd": "composite",
}


class Kernel:
    """A registered kernel, as `get_kernel` returns it, until the library that registered it ends.

    A registration that replaces it leaves it as it is.
    """

    def __init__(self, part: Registration) -> None:
        self._part = part

    def __repr__(self) -> str:
        return f"Kernel(registered at {self._part.location})"

    def call_boxed(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel on these arguments; the set of dispatch keys, as in PyTorch, is ignored.

        Raises RuntimeError after the end of the library that registered it.
        """
        if self._part.ended:
            raise RuntimeError(
                f"the kernel registered at {self._part.location} has been invalidated: its library has ended"
            )
        return self._part.function(*args, **kwargs)


def get_kernel(op: str | CustomOperator, dispatch_key: str) -> Kernel:
    """Return the kernel of an operator that runs for a dispatch key such as "CPU", to be called by its `call_boxed`.

    A kernel that is registered later for the same key can call this one.  Raises RuntimeError for an unknown operator
    or one without such a kernel, ValueError for an unknown key.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::root", mutates_args=())
    ... def root(x: rg.Tensor) -> rg.Tensor:
    ...     return x.sqrt()
    >>> original = rg.library.get_kernel(root, "CPU")
    >>> @root.register_kernel("cpu")
    ... def root_of_positive(x):
    ...     return original.call_boxed(None, x.clamp(min=0))
    >>> root(rg.tensor([-1.0, 4.0]))
    tensor([0., 2.])
    """
    if not isinstance(op, (str, CustomOperator)):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    operator = find_operator(op)
    if dispatch_key not in KERNELS and dispatch_key not in FIELDS:
        raise ValueError(f"Invalid dispatch key: {dispatch_key}; known are {', '.join((*KERNELS, *FIELDS))}")
    registrations = operator.registrations
    part = (
        getattr(registrations, FIELDS[dispatch_key])
        if dispatch_key in FIELDS
        else registrations.kernel_for(KERNELS[dispatch_key])
    )
    if part is None:
        raise RuntimeError(f"no kernel for {dispatch_key} for {operator.name}")
    return Kernel(part)


def fallthrough_kernel() -> NoReturn:
    """Raise: `Library.impl(name, fallthrough_kernel, key)` registers nothing for the key, and removes its function.

    A call then does what it does without one: another kernel runs, or the gradient formula.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


suggest_in_module(globals())
