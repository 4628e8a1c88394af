"""Python's operators between a tensor and any other object give PyTorch's results, or raise where PyTorch raises."""

import copy
import operator

import pytest

torch = pytest.importorskip("torch")
import retrograd as rg  # noqa: E402


class Reflected:
    """An object that has only reflected methods."""

    __hash__ = None

    def __radd__(self, other):
        return "radd"

    def __rmul__(self, other):
        return "rmul"

    def __rsub__(self, other):
        return "rsub"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __rlshift__(self, other):
        return "rlshift"

    def __gt__(self, other):
        return "gt"

    def __eq__(self, other):
        return "eq"


class Refusing:
    """An object whose methods leave everything to the other operand."""

    def _refuse(self, other):
        return NotImplemented

    __add__ = __sub__ = __mul__ = __truediv__ = __matmul__ = __pow__ = __mod__ = __and__ = __lshift__ = _refuse


# Numbers are in test_promotion_parity.py.
OTHERS = {
    "text": "ab",
    "bytes": b"ab",
    "bytearray": bytearray(b"ab"),
    "list": [1, 2],
    "tuple": (1, 2),
    "empty list": [],
    "range": range(2),
    "set": {1},
    "dict": {1: 2},
    "object": object(),
    "reflected": Reflected(),
    "refusing": Refusing(),
    "none": None,
}
SYMBOLS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "lt",
    "le",
    "eq",
    "ne",
]
AUGMENTED = [
    "iadd",
    "isub",
    "imul",
    "itruediv",
    "ifloordiv",
    "imod",
    "ipow",
    "imatmul",
    "iand",
    "ior",
    "ixor",
    "ilshift",
    "irshift",
]
TENSORS = {"count": 2, "vector": [0.0, 1.0, 2.0], "integers": [1, 2]}
# PyTorch's `object / tensor` is `tensor.reciprocal() * object`, which asks the object for another operator.
SKIPPED = {("truediv", "reflected"), ("itruediv", "reflected")}


def _plain(value):
    """The value with tensors as lists."""
    if hasattr(value, "tolist"):
        return ("tensor", str(value.dtype).rpartition(".")[2], value.tolist())
    if isinstance(value, (list, tuple)):
        return type(value), [_plain(item) for item in value]
    return value


def _outcome(run):
    try:
        return _plain(run())
    except (TypeError, RuntimeError):
        return "error"


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("symbol", SYMBOLS + AUGMENTED)
def test_operands_of_any_type_give_pytorchs_results(symbol, kind):
    function, different = getattr(operator, symbol), []
    for name, other in OTHERS.items():
        if (symbol, name) in SKIPPED:
            continue
        for tensor_first in (True, False):

            def run(library, other=other, tensor_first=tensor_first):
                tensor, operand = library.tensor(TENSORS[kind]), copy.copy(other)
                return function(tensor, operand) if tensor_first else function(operand, tensor)

            expected, result = _outcome(lambda: run(torch)), _outcome(lambda: run(rg))
            if result != expected:
                different.append((name, tensor_first, expected, result))
    assert not different
