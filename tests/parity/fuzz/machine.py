"""The tensors of a program in one library, and the execution of its lines."""

import re
from functools import lru_cache, partial
from types import CodeType
from typing import Any

import numpy as np
import torch

import retrograd as rg

TENSORS = (torch.Tensor, rg.Tensor)
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError, ZeroDivisionError)
UNKNOWN = "unknown"  # what PyTorch says of views that were returned together and written to

HOOKED = re.compile(r"v\[(\d+)\]\.(register_|retain_grad)")


@lru_cache(20_000)
def compiled(line: str) -> CodeType:
    """Return the code of a line; both libraries and all shorter programs share it."""
    return compile(line, "<program>", "exec")


@lru_cache(10_000)
def pattern(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return weights that differ from element to element, so that no transposition goes unnoticed."""
    count = int(np.prod(shape))
    values = np.cos(np.arange(1, count + 1) * 1.7).reshape(shape)
    return (values * (1 + 0.5j) if dtype.startswith("complex") else values).astype(dtype)


class Machine:
    """The tensors of a program in one library; lines know it as `L`, the tensors as `v`."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.v: dict[int, Any] = {}
        names = {"W": partial(weights, library), "total": partial(total, library), "inf": float("inf")}
        self.names = {"L": library, "v": self.v, "nan": float("nan"), **names}

    def execute(self, line: str) -> Exception | None:
        """Run one line; return the exception with which the library refuses it."""
        hooked = HOOKED.match(line)
        if hooked and int(hooked[1]) in self.v and recorded(self.v[int(hooked[1])]) == UNKNOWN:
            return RuntimeError("a view that was returned with others and written to: PyTorch crashes")
        try:
            exec(compiled(line), self.names)
        except KeyError as error:
            unknown = error.args and type(error.args[0]) is int
            return KeyError("a tensor that was not made") if unknown else error
        except Exception as error:
            return error
        if self.v and type(last := next(reversed(self.v.values()))) not in TENSORS and not isinstance(last, TENSORS):
            self.v.popitem()
        return None

    def leaves(self) -> list[int]:
        """Return the numbers of the leaves that require grad, each object once."""
        return list({id(t): i for i, t in self.v.items() if recorded(t) == "True, leaf True"}.values())

    def results(self) -> list[int]:
        """Return the numbers of the results that require grad, each object once."""
        return list({id(t): i for i, t in self.v.items() if recorded(t) == "True, leaf False"}.values())


def weights(library: Any, tensor: Any) -> Any:
    """Return a cotangent for a tensor: constants of its shape and dtype."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return library.tensor(pattern(tuple(tensor.shape), dtype))


def total(library: Any, tensor: Any) -> Any:
    """Return a real number that depends on all elements, each with a different weight."""
    if not tensor.is_complex() and not tensor.is_floating_point():
        tensor = tensor.to(library.float64)
    weighted = (tensor * weights(library, tensor)).sum()
    return weighted.real if tensor.is_complex() else weighted


def grad_of(tensor: Any) -> Any:
    """Return `.grad`; views that were returned together refuse it after a write."""
    try:
        return tensor.grad
    except RuntimeError:
        return None


def recorded(tensor: Any) -> str:
    """Return the state of a tensor in the graph; views that were returned together refuse it after a write."""
    try:
        return f"{tensor.requires_grad}, leaf {tensor.is_leaf}"
    except RuntimeError:
        return UNKNOWN
