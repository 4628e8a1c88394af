"""Kinds of arguments, for annotations: an error names the argument of another kind, `suggest_keywords`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from retrograd.core import Tensor
from retrograd.foundation.function_arguments import Array

if TYPE_CHECKING:  # type checkers accept whatever NumPy may convert
    ArrayOrSequence = Any
    ArrayLike = Any
else:
    ArrayOrSequence = Tensor | Array | Sequence[Any]
    ArrayLike = ArrayOrSequence | complex
