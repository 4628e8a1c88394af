"""`autograd.test_util`: derivatives against differences."""

from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.autograd.gradchecks import gradcheck, gradgradcheck
from retrograd.func.plain import differentiable


def check_grads(
    fun: Callable,
    argnum: int | Sequence[int] = 0,
    modes: Sequence[str] = ("fwd", "rev"),
    order: int = 2,
) -> Callable:
    """The function of arguments that raises GradcheckError where derivatives differ from those of differences.

    `modes` are "fwd", forward, and "rev", reverse; `order` is 1 or 2, and the second is that of reverse mode.

    >>> import retrograd.numpy as np
    >>> check_grads(np.sin, modes=["rev"])(np.array([0.5, 1.0]))
    """
    if not {*modes} <= {"fwd", "rev"} or order not in (1, 2):
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', order is 1 or 2, got {modes!r} and {order!r}")
    chosen = {argnum} if isinstance(argnum, int) else {*argnum}

    def check(*args: Any, **kwargs: Any) -> None:
        inputs = tuple([_wanted(a) if i in chosen else a for i, a in enumerate(args)])

        def function(*args: Any) -> Any:
            return fun(*args, **kwargs)

        gradcheck(function, inputs, check_forward_ad="fwd" in modes, check_backward_ad="rev" in modes)
        if order == 2 and "rev" in modes:
            gradgradcheck(function, inputs)

    return check


def _wanted(tree: Any) -> Any:
    """A tree of numbers and arrays as one of tensors that require a gradient."""
    return optree.tree_map(lambda leaf: differentiable("check_grads", leaf).clone().detach().requires_grad_(), tree)
