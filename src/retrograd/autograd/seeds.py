"""The cotangents at the start of a backward pass: given by the user and checked, or 1 for a scalar loss."""

import math
from collections.abc import Iterable
from typing import Any

from retrograd.autograd.graph import GradientEdge
from retrograd.core import Tensor, registry
from retrograd.core.aval import describe_difference, symbolic
from retrograd.core.dispatch import as_operand
from retrograd.core.engine import ones
from retrograd.core.hooks import conjugate
from retrograd.core.op import is_array
from retrograd.foundation.describe_value import describe


def make_seeds(name: str, roots: list, gradients: Any) -> list:
    """Return the initial cotangents of a pass, in the outputs' shapes and dtypes; 1 for None and a real scalar.

    name: the function that the user called, for errors.  Gradients are PyTorch's, so complex ones are conjugated.

    Raises RuntimeError for gradients that do not fit the outputs, for an output that requires no grad, and for a
    missing gradient of an output that is not one real number; TypeError for what is neither tensor nor array.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> make_seeds("backward", [x.sum(), x * 2], [None, rg.ones(2)])
    [tensor(1.), tensor([1., 1.])]
    """
    given = [None] * len(roots) if gradients is None else gradients_as_list(name, gradients)
    if len(given) != len(roots):
        hint = (
            "; make a tensor of numbers: rg.tensor([...])" if isinstance(next(iter(given), None), float | int) else ""
        )
        raise RuntimeError(f"{name}: got {len(roots)} tensors and {len(given)} gradients for them{hint}")
    return [_seed(name, index, roots[index], g) for index, g in enumerate(given)]


def _seed(name: str, index: int, root: Tensor | GradientEdge, g: Tensor | None) -> Tensor:
    if not isinstance(root, (Tensor, GradientEdge)):
        raise TypeError(f"{name}: output {index} must be a Tensor or GradientEdge, got {type(root).__name__}")
    if isinstance(root, Tensor) and not root.requires_grad:
        raise RuntimeError(
            f"{name}: element {index} of tensors does not require grad and does not have a grad_fn: nothing that "
            f"requires grad went into this output, of shape {root.shape}, or it was made under no_grad() or detached"
        )
    if g is None:
        if symbolic(root.shape) is not None or math.prod(root.shape) != 1:
            raise RuntimeError(
                f"{name}: grad can be implicitly created only for scalar outputs; output {index} has shape "
                f"{root.shape}: give its cotangent, or reduce it, for example with .sum()"
            )
        if root.dtype.kind == "c":
            raise RuntimeError(
                f"{name}: grad can be implicitly created only for real scalar outputs but got {root.dtype} for output "
                f"{index}"
            )
        return ones(root.shape, root.dtype, root if isinstance(root, Tensor) else None)
    g = as_operand(g)
    if not isinstance(g, Tensor):
        raise TypeError(
            f"{name}: gradients can be either Tensors or None, but got {type(g).__name__} for output {index}; see "
            "rg.tensor"
        )
    if g.shape != root.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {g.shape} and output[{index}] has a shape of "
            f"{root.shape}.{describe_difference(root.shape, g.shape)}"
        )
    kind, expected = g.dtype, root.dtype
    if kind is expected and kind.kind == "f":
        return g
    if (kind.kind == "c") != (expected.kind == "c"):
        raise RuntimeError(
            f"{name}: For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch "
            f"in dtype: grad_output[{index}] has a dtype of {kind} and output[{index}] has a dtype of {expected}"
        )
    return conjugate(g if kind == expected else registry["to"](g, expected))


def gradients_as_list(name: str, value: Any) -> list:
    """Return one gradient, or several, as a list; others are refused where the output is known."""
    return as_list(name, value) if _is_iterable(value) else [value]


def as_list(name: str, value: Any) -> list:
    """Return one tensor, array or edge, or several, as a list; a TypeError for what is none of them."""
    if isinstance(value, (Tensor, GradientEdge)) or is_array(value):
        return [value]
    if not _is_iterable(value):
        raise TypeError(f"{name}: expected a Tensor, a GradientEdge or a sequence of them, got {describe(value)}")
    return list(value)


def _is_iterable(value: Any) -> bool:
    """Return whether a value may have several members; a string does not count."""
    return isinstance(value, Iterable) and not isinstance(value, str)
