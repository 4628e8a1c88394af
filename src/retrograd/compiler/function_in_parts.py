"""A function that no program can replace, as its statements with compiled parts among them."""

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from retrograd.compiler.capture import Capture
from retrograd.compiler.function_source import FunctionSource
from retrograd.compiler.graph_breaks import split_function
from retrograd.compiler.surroundings import is_library_code
from retrograd.core.blocks import generator_block
from retrograd.nn.hooks import COMPILED
from retrograd.nn.module import Module


class FunctionInParts:
    """Runs the statements of a function by another one, `split`, that calls the parts in `cells`."""

    def __init__(self, function: Any, split: types.FunctionType, cells: list[types.CellType]) -> None:
        owner = getattr(code_of(function), "__self__", None)
        self._function, self._cells = function, cells
        self._split: Callable[..., Any] = split if owner is None else types.MethodType(split, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _is_module_call(self._function) and _has_hooks(self._function.__self__):
            return self._function(*args, **kwargs)
        return self._split(*args, **kwargs)

    @property
    def parts(self) -> list[Any]:
        """The compiled parts."""
        return [cell.cell_contents for cell in self._cells]

    @generator_block
    def calling_by(self, call: Callable[..., Any]) -> Iterator[None]:
        """Let `call(part, *args)` run in place of each part."""
        parts = self.parts
        try:
            for cell, part in zip(self._cells, parts, strict=True):
                cell.cell_contents = functools.partial(call, part)
            yield
        finally:
            for cell, part in zip(self._cells, parts, strict=True):
                cell.cell_contents = part


def split_captured(
    function: Any, source: FunctionSource | None, capture: Capture, compile_part: Callable[[FunctionSource, str], Any]
) -> FunctionInParts | None:
    """Return a function in parts around the statements that a capture has refused; None if there are no parts."""
    if source is None or is_library_code(source.function.__code__):
        return None
    line = capture.recorder.refused_at.get(source.function.__code__)
    found = split_function(source, set() if line is None else {line}, capture.changes_objects, compile_part)
    return None if found is None else FunctionInParts(function, *found)


def code_of(function: Any) -> Any:
    """Return the function or method of the user that a call runs: `forward` of a module, `__call__` of an object."""
    if _is_module_call(function):
        return function.__self__.forward
    return function if isinstance(function, types.FunctionType | types.MethodType) else function.__call__


def _is_module_call(function: Any) -> bool:
    return getattr(function, "__func__", None) in (Module.__call__, Module._call_impl)


def _has_hooks(module: Module) -> bool:
    return any(hook.kind != COMPILED for hook in module._call_hooks.values())
