"""`rg.compile`: functions and whole training steps as programs of kernel calls, with the results of the eager run."""

from retrograd.compiler.api import compile as compile
from retrograd.compiler.compiled_function import is_compiling as is_compiling
from retrograd.compiler.compiled_function import reset as reset
from retrograd.compiler.disabling import disable as disable
from retrograd.compiler.explanation import explain as explain

__all__ = ["compile", "disable", "explain", "is_compiling", "reset"]
