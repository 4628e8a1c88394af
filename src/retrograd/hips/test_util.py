"""`autograd.test_util`: check derivatives against finite differences."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import optree

from retrograd import numpy as np
from retrograd.autograd.gradcheck import gradcheck
from retrograd.autograd.gradcheck.backward_mode import random_like
from retrograd.autograd.gradcheck.comparison import DOUBLE_EPSILON
from retrograd.autograd.gradcheck.differences import GradcheckError, coarsest_epsilon
from retrograd.core import Tensor
from retrograd.core.dtype import is_differentiable
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func import jvp, vjp
from retrograd.func.array_vjp import as_differentiable
from retrograd.interop.numpy_protocol.table import values
from retrograd.ops.random import Generator

MODES = ("fwd", "rev")
# HIPS autograd's criterion: |a - b| <= 1e-6 |a + b|, or 1e-6 in all.
DOUBLE_PRECISION = {"atol": 1e-6, "rtol": 2e-6}


def check_grads(
    fun: Callable,
    argnum: int | Sequence[int] = 0,
    modes: Sequence[str] = MODES,
    order: int = 2,
) -> Callable:
    """Return a function that checks derivatives at its arguments against differences, or raises DerivativeError.

    `modes` are "fwd", forward, and "rev", reverse. Up to `order`, derivatives of order k are compared with differences
    of order k - 1, in every sequence of modes. In double precision a relative error of 2e-6 is found, as in HIPS
    autograd; see `rg.autograd.gradcheck` for lower precisions.

    >>> import retrograd.numpy as np
    >>> check_grads(np.sin, modes=["rev"], order=3)(np.array([0.5, 1.0]))
    """
    if not {*modes} <= {*MODES} or not isinstance(order, int) or order < 1:
        raise ValueError(
            f"check_grads: modes are 'fwd' and 'rev', order is a number from 1 on, got {modes!r} and {order!r}"
        )
    chosen = [argnum] if isinstance(argnum, int) else [*argnum]

    def check(*args: Any, **kwargs: Any) -> None:
        chosen_args: Any = [args[i] for i in chosen]
        leaves, spec = optree.tree_flatten(chosen_args)

        def of_leaves(*values: Tensor) -> tuple[Tensor, ...]:
            filled = list(args)
            for i, value in zip(chosen, optree.tree_unflatten(spec, values), strict=True):
                filled[i] = value
            return _differentiable(fun(*filled, **kwargs))

        name = getattr(fun, "__name__", "the function")
        _check(name, of_leaves, tuple([_make_leaf(leaf) for leaf in leaves]), tuple(modes), order)

    return check


def combo_check(fun: Callable, *check_args: Any, **check_kwargs: Any) -> Callable:
    """Return `check_grads(fun, ...)` for every combination of the arguments, each given as a list of choices.

    >>> import retrograd.numpy as np
    >>> combo_check(np.sum, order=1)([np.ones((2, 3))], axis=[0, 1, None])
    """
    check = check_grads(fun, *check_args, **check_kwargs)

    def check_all(*choices: Any, **named: Any) -> None:
        for args in product(*choices):
            for chosen in product(*named.values()):
                check(*args, **dict(zip(named, chosen, strict=True)))

    return check_all


def scalar_close(a: float, b: float) -> bool:
    """Whether two numbers differ by less than 1e-6, absolutely or relative to their sum."""
    return bool(abs(a - b) < 1e-6 or abs(a - b) / abs(a + b) < 1e-6)


def check_equivalent(x: Any, y: Any) -> None:
    """Raise AssertionError unless two trees of arrays have equal structures, shapes and kinds, and close values.

    >>> check_equivalent({"a": [1.0]}, {"a": [1.0 + 1e-9]})
    """
    (ours, spec), (theirs, other) = optree.tree_flatten(x), optree.tree_flatten(y)
    assert spec == other, f"structures differ: {spec} and {other}"
    for a, b in zip(map(values, ours), map(values, theirs), strict=True):
        assert np.shape(a) == np.shape(b), f"shapes differ: {np.shape(a)} and {np.shape(b)}"
        assert np.iscomplexobj(a) == np.iscomplexobj(b), f"only one is complex: {a} and {b}"
        assert np.allclose(a, b, rtol=2e-6, atol=1e-6), f"values differ: {a} and {b}"


def _make_leaf(value: Any) -> Tensor:
    """Return a number or an array as a new leaf tensor that requires grad."""
    return as_differentiable("check_grads", value).clone().detach().requires_grad_()


def _differentiable(out: Any) -> tuple[Tensor, ...]:
    """Return the tensors of a result that can have derivatives."""
    leaves: list = optree.tree_leaves(out)
    return tuple([leaf for leaf in leaves if isinstance(leaf, Tensor) and is_differentiable(leaf.dtype)])


class DerivativeError(GradcheckError, AssertionError):
    """The error of `check_grads`, a subclass of `rg.autograd.gradcheck`'s and HIPS autograd's."""


def _check(name: str, fun: Callable, leaves: tuple[Tensor, ...], modes: tuple[str, ...], order: int) -> None:
    """Check the derivatives of a function of tensors, up to an order, in all sequences of the modes."""
    if not any(out.requires_grad for out in fun(*leaves)):
        return  # the result depends on none of them
    for mode in modes:
        _check_first(name, fun, leaves, mode)
        if order > 1:
            derivative, along = _DERIVATIVES[mode](fun, leaves)
            _check(f"{_WORDS[mode].lower()}_{name}", derivative, leaves + along, modes, order - 1)


def _check_first(name: str, fun: Callable, leaves: tuple[Tensor, ...], mode: str) -> None:
    """Check first derivatives in one mode: by random projections, then entry by entry if these differ."""
    tolerances: dict[str, Any] = DOUBLE_PRECISION if coarsest_epsilon(leaves) == DOUBLE_EPSILON else {}
    forward = mode == "fwd"
    try:
        gradcheck(
            fun,
            leaves,
            check_forward_ad=forward,
            check_backward_ad=not forward,
            check_undefined_grad=False,  # HIPS autograd's rules are never given a missing cotangent
            fast_mode=True,
            **tolerances,
        )
    except GradcheckError as error:
        raise DerivativeError(f"Derivative ({_WORDS[mode]}) check of {name} failed: {error}") from None


_WORDS = {"fwd": "JVP", "rev": "VJP"}


def _jvp_function(fun: Callable, leaves: tuple[Tensor, ...]) -> tuple[Callable, tuple[Tensor, ...]]:
    """Return the jvp as a function of leaves and tangents, and tangents."""

    def tangents(*values: Tensor) -> tuple[Tensor, ...]:
        return _differentiable(jvp(fun, values[: len(leaves)], values[len(leaves) :])[1])

    return tangents, _random(leaves)


def _vjp_function(fun: Callable, leaves: tuple[Tensor, ...]) -> tuple[Callable, tuple[Tensor, ...]]:
    """Return the vjp as a function of leaves and cotangents, and cotangents."""

    def cotangents(*values: Tensor) -> tuple[Tensor, ...]:
        return _differentiable(vjp(fun, *values[: len(leaves)])[1](values[len(leaves) :]))

    return cotangents, _random(fun(*leaves))


_DERIVATIVES = {"fwd": _jvp_function, "rev": _vjp_function}


def _random(like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    generator = Generator()
    generator.manual_seed(0)
    return tuple([random_like(x.detach(), generator).requires_grad_() for x in like])


suggest_in_module(globals())
