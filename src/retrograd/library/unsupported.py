"""Functions of `torch.library` that have no meaning for NumPy's arrays: each raises an error that says why."""

from collections.abc import Callable, Iterable
from typing import NoReturn


def triton_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> NoReturn:
    """Raise NotImplementedError: Triton's kernels run on GPUs; `custom_op` defines an operator with another kernel."""
    raise NotImplementedError(
        f"triton_op: {name}: Triton's kernels run on GPUs, and arrays are NumPy's; define the operator by custom_op"
    )


def wrap_triton(triton_kernel: Callable, /) -> NoReturn:
    """Raise NotImplementedError: Triton's kernels run on GPUs, and arrays are NumPy's."""
    raise NotImplementedError(
        f"wrap_triton: {getattr(triton_kernel, '__name__', triton_kernel)!r}: Triton's kernels run on GPUs, and arrays "
        "are NumPy's; call a function on them from the kernel of a custom_op"
    )
