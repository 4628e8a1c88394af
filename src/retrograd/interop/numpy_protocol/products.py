"""Products of vectors, matrices and stacks of them, as NumPy defines them; operands are promoted first."""

import numpy as np

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import O, axes, implements, only_default, promote_operands, refuse, tensor

_KNOWN = (Tensor, np.ndarray)


def matmul(a, b):
    """The matrix product over the last two axes; vectors are rows on the left and columns on the right."""
    if type(a) in _KNOWN and type(b) in _KNOWN and a.dtype == b.dtype:
        return O.matmul(a, b)
    return O.matmul(*promote_operands(a, b))


def vecdot(a, b, axis=-1):
    """The sum of conj(a) * b along an axis."""
    a, b = promote_operands(a, b)
    return O.sum(O.conj(a) * b, axis)


def matvec(a, b):
    """Matrices times vectors."""
    return matmul(a, O.unsqueeze(tensor(b), -1))[..., 0]


def vecmat(a, b):
    """Conjugated vectors times matrices."""
    return matmul(O.unsqueeze(O.conj(tensor(a)), -2), b)[..., 0, :]


@implements()
def dot(a, b, out=None):
    """The product of scalars, vectors and matrices; for more axes, over a's last and b's second to last."""
    a, b = promote_operands(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.ndim <= 2 and b.ndim <= 2:
        return O.matmul(a, b)
    return tensordot(a, b, ([-1], [max(b.ndim - 2, 0)]))


@implements()
def vdot(a, b, /):
    """The sum of conj(a) * b over all elements."""
    a, b = promote_operands(a, b)
    a, b = O.reshape(a, (-1,)), O.reshape(b, (-1,))
    return O.matmul(O.conj(a) if a.dtype.kind == "c" else a, b)


@implements()
def inner(a, b, /):
    """The sum over the last axes of both."""
    a, b = promote_operands(a, b)
    return a * b if a.ndim == 0 or b.ndim == 0 else tensordot(a, b, ([-1], [-1]))


@implements()
def outer(a, b, out=None):
    """The products of each element of a with each of b, both flattened."""
    a, b = promote_operands(a, b)
    return O.reshape(a, (-1, 1)) * O.reshape(b, (1, -1))


@implements()
def tensordot(a, b, axes=2):
    """The sum over pairs of axes: over the last of a and the first of b, or over the listed ones."""
    a, b = promote_operands(a, b)
    return O.tensordot(a, b, _pairs_of_axes(axes, a.ndim, b.ndim))


def _pairs_of_axes(pairs, ndim_a, ndim_b):
    """Return the axes of a and those of b that `axes` of tensordot pairs."""
    if isinstance(pairs, (int, np.integer)):
        return tuple(range(ndim_a - pairs, ndim_a)), tuple(range(pairs))
    return axes(pairs[0], ndim_a), axes(pairs[1], ndim_b)


@implements()
def einsum(*operands, out=None, optimize=False, **kwargs):
    """Sums of products by Einstein's notation, as a string or as lists of axis numbers after each operand."""
    only_default("einsum", **{name: (value, None) for name, value in kwargs.items()})
    if isinstance(operands[0], str):
        equation, *rest = operands
    else:
        equation, rest = _equation_of_lists(operands)
    return O.einsum(equation.replace(" ", ""), list(promote_operands(*rest)))


def _equation_of_lists(operands):
    """Convert `einsum(a, [0, 1], b, [1, 2], [0, 2])` to a string and its operands."""
    pairs = len(operands) // 2
    words = [_letters(axes_of) for axes_of in operands[1 : 2 * pairs : 2]]
    equation = ",".join(words) + ("->" + _letters(operands[-1]) if len(operands) % 2 else "")
    return equation, operands[0 : 2 * pairs : 2]


def _letters(numbers):
    """Convert axis numbers to letters in the same order, so that an implied result has its axes sorted."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join("..." if n is Ellipsis else alphabet[n] for n in numbers)


@implements()
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross product of vectors of three components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_operands(a, b)
    a, b = O.movedim(a, axisa, -1), O.movedim(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        refuse("cross", f"vectors must have 3 components, got {a.shape[-1]} and {b.shape[-1]}")
    lead = [(1,) * (max(a.ndim, b.ndim) - x.ndim) for x in (a, b)]
    a, b = (O.reshape(x, (*ones, *x.shape)) if ones else x for x, ones in zip((a, b), lead, strict=True))
    return O.movedim(O.linalg.cross(a, b, dim=-1), -1, axisc)


@implements("linalg.outer")
def _outer(x1, x2, /):
    """`outer` of two vectors."""
    a, b = promote_operands(x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"np.linalg.outer: expected two vectors, got shapes {a.shape} and {b.shape}")
    return outer(a, b)
