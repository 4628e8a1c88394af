"""Errors of operators, each a RuntimeError too, because PyTorch's operators raise RuntimeError for most bad operands.

So `except RuntimeError`, written for PyTorch, catches them, and so does `except ValueError`, written for NumPy.
"""


class OperandValueError(RuntimeError, ValueError):
    """The shapes, sizes or values of an operator's arguments do not fit."""


class AssertedValueError(OperandValueError, AssertionError):
    """An argument does not fit, where PyTorch's Python code asserts that it does."""


class OperandTypeError(RuntimeError, TypeError):
    """The dtype or the class of an operator's argument does not fit."""


class OperandDtypeError(OperandTypeError, NotImplementedError):
    """An operator is not defined for a dtype; PyTorch's kernels raise NotImplementedError."""


class OperandZeroDivisionError(RuntimeError, ZeroDivisionError):
    """Integers are divided by 0."""


class OperandIndexError(RuntimeError, IndexError, ValueError):
    """An index or a dimension is out of range; as NumPy's AxisError, it is a ValueError too."""


class AcceleratorError(RuntimeError):
    """An error of an accelerator, for `except`: there is none here."""


class OutOfMemoryError(RuntimeError):
    """A device has no memory left, for `except`: arrays raise Python's MemoryError."""


RUNTIME_CLASSES = {ValueError: OperandValueError, TypeError: OperandTypeError}


def raise_as_runtime_error(error):
    """Raise a built-in error of an operator again as the class that is a RuntimeError too; leave other errors alone."""
    kind = RUNTIME_CLASSES.get(type(error))
    if kind is not None:
        raise kind(*error.args).with_traceback(error.__traceback__) from error.__cause__
