"""Errors of failed calls: they say which operands were wrong, where a kernel only says that it failed."""

import re
from sys import exc_info

from numpy import iinfo

from retrograd.core.errors import (
    OperandDtypeError,
    OperandIndexError,
    OperandTypeError,
    OperandValueError,
    raise_as_runtime_error,
)
from retrograd.core.level import NotBatchedError
from retrograd.core.op import is_array
from retrograd.core.tensor import TensorBase
from retrograd.foundation.describe_value import tensor_hint

PACKAGE_NAME = __name__.partition(".")[0]
# Errors of the operators that a composition calls, and of Python; others say what they are about.
_NAMELESS = (TypeError, ValueError, OperandTypeError, OperandValueError, OperandIndexError)


def explain(op, args, params):
    """Raise a better error for a failed kernel or composition, which is a RuntimeError too, as in PyTorch."""
    if op.rules is None or op.definition is op:  # a user's Function, whose own error is the best one
        return
    error = exc_info()[1]
    try:
        if op.composite:
            check_composition(op, args, error)
        else:
            check_kernel(op, args, params)
    except (ValueError, TypeError) as better:
        raise_as_runtime_error(better)
        raise
    raise_as_runtime_error(error)


def reraise_as_runtime_error(op):
    """Raise the error that is being handled as one that is a RuntimeError too, unless it is a user's."""
    if op.rules is not None and op.definition is not op:
        raise_as_runtime_error(exc_info()[1])


def check_composition(op, args, error):
    """Raise a better error for a failed composition: about an operand that is no tensor, or one with the name."""
    text = str(error)
    named = op.name.rpartition(".")[2] in re.split(r"\W+", text.partition(":")[0])
    if named and not isinstance(error, AttributeError):  # Python's word `complex` is the name of an operator too
        return
    if type(error) in (TypeError, OperandTypeError, AttributeError):
        check_operands(op, args)
    unnamed = isinstance(error, NotBatchedError) and " " in text.partition(": ")[0]  # it names no operator
    if unnamed or (op.definition.__module__.startswith(PACKAGE_NAME) and type(error) in _NAMELESS):
        raise type(error)(f"{op.name}: {error}") from error


def check_kernel(op, args, params):
    """Raise a better error for a failed kernel: the shape rule's, or one that names the unsupported dtypes."""
    error = exc_info()[1]
    if isinstance(error, OperandTypeError):  # of an operand that is no array
        raise error
    check_operands(op, args)
    try:
        out = op.definition.shape(*[a.aval if isinstance(a, TensorBase) else a for a in args], **params)
    except AttributeError:  # the rule asks a number or None for what only tensors have
        check_operands(op, args)
        raise
    except NotImplementedError:  # sizes that depend on values: the kernel's own error is the better one
        out = ()
    check_sizes(op, out)
    if isinstance(error, TypeError) and str(error).startswith("ufunc"):
        listed = ", ".join([str(a.dtype) for a in args if isinstance(a, TensorBase)])
        raise OperandDtypeError(f"{op.name}: not defined for {listed}") from error
    name = str(error).partition(": ")[0]
    if type(error) in (TypeError, ValueError, IndexError) and (" " in name or name == str(error)):
        # NumPy's message does not name the operator.
        raise type(error)(f"{op.name}: {replace_numpy_words(str(error))}") from error


def wrap_integers(op, args, arrays, params):
    """Return the arrays and params of a kernel that refused a Python integer, with integers that its result can hold.

    As in PyTorch, one of two operands wraps around: in uint8, -3 is 253 and 300 is 44. Other integers must fit; only
    negative ones of unsigned dtypes wrap. To be called while NumPy's OverflowError is handled.
    """
    error = exc_info()[1]
    out = op.definition.shape(*[a.aval if isinstance(a, TensorBase) else a for a in args], **params)
    if out.dtype.kind not in "iu":
        raise error
    limits = iinfo(out.dtype)
    wraps = op.promotes and len(args) == 2

    def wrap(number):
        if type(number) is not int or limits.min <= number <= limits.max:
            return number
        if wraps and not -(2**63) <= number < 2**64:
            raise OverflowError(f"{op.name}: {number} is too big: integers have 64 bits") from error
        if not wraps and not -limits.max <= number < limits.min == 0:
            raise RuntimeError(
                f"{op.name}: {number}: value cannot be converted to type {out.dtype} without overflow"
            ) from error
        return (number - limits.min) % 2**limits.bits + limits.min

    return [wrap(a) for a in arrays], {name: wrap(value) for name, value in params.items()}


def _brackets(match):
    """Return PyTorch's form of the shapes in NumPy's message."""
    shapes = ", ".join(f"[{numbers.rstrip(',')}]" for numbers in re.findall(r"\((.*?)\)", match[1]))
    return f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"


_USE_NOT = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead"
_USE_XOR = "Use the `^` or `logical_xor()` operator instead"
_NUMPY_WORDS = (  # patterns of NumPy's messages, and PyTorch's messages
    (r"index (-?\d+) is out of bounds for axis (\d+) with", r"index \1 is out of bounds for dimension \2 with"),
    (
        r"too many indices for array: array is 0-dimensional, but (\d+) were indexed",
        r"invalid index of a 0-dim tensor. Use `tensor.item()` to convert it to a number: too many indices, \1",
    ),
    (
        r"too many indices for array: array is (\d+)-dimensional, but (\d+) were indexed",
        r"too many indices for tensor of dimension \1: there are \2",
    ),
    (r"shape mismatch: indexing arrays could not be broadcast together with shapes (.*)", _brackets),
    (r"The numpy boolean negative, .*", f"Negation, the `-` operator, on a bool tensor is not supported. {_USE_NOT}"),
    (
        r"numpy boolean subtract, .*",
        f"Subtraction, the `-` operator, with two bool tensors is not supported. {_USE_XOR}",
    ),
)


def replace_numpy_words(message):
    """Return a message of NumPy in PyTorch's words, if there are some for it.

    >>> replace_numpy_words("index 5 is out of bounds for axis 0 with size 3")
    'index 5 is out of bounds for dimension 0 with size 3'
    """
    for pattern, words in _NUMPY_WORDS:
        message = re.sub(pattern, words, message)
    return message


def check_sizes(op, out):
    """Raise if a result has a negative size, which a kernel refuses without naming it."""
    for aval in out if type(out) is tuple else (out,):
        if any(type(size) is int and size < 0 for size in getattr(aval, "shape", ())):
            raise ValueError(
                f"{op.name}: Dimension size must be non-negative. Sizes must not be negative, got {aval.shape}"
            )


def check_operands(op, args):
    """Raise a TypeError if the call failed because an operand is neither a tensor nor an admissible number."""
    error = exc_info()[1]
    inputs = op.schema.inputs
    for i, a in enumerate(args):
        expected = inputs[min(i, len(inputs) - 1)]
        fits = isinstance(a, TensorBase) or is_array(a)
        if not fits and isinstance(a, (bool, int, float, complex)):
            fits = not isinstance(error, AttributeError)
        if not fits and not (a is None and expected.type.endswith("?")):
            text = f"{op.name}: expected a Tensor for {expected.name!r}, got {type(a).__name__}; {tensor_hint(a)}"
            raise TypeError(text) from error
