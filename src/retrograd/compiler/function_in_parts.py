"""A function that no program can replace, as its statements with compiled parts among them."""

import functools
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from retrograd.compiler.capture import Capture
from retrograd.compiler.function_source import FunctionSource
from retrograd.compiler.graph_breaks import CALLEE, Breaks, split_function
from retrograd.compiler.guards import cell_contents
from retrograd.compiler.python_watch import is_program_code
from retrograd.compiler.recorder import Objects
from retrograd.compiler.surroundings import is_library_code
from retrograd.core.blocks import generator_block
from retrograd.nn.hooks import COMPILED, GLOBAL_HOOKS
from retrograd.nn.module import Module

MOST_MODULES = 64  # that have the same forward() and are compiled
MOST_OBJECTS = 8  # the same for other objects, and for functions made again and again


class FunctionInParts:
    """Runs the statements of a function by another one, `split`, that calls the parts in `cells`."""

    def __init__(self, function: Any, split: types.FunctionType, cells: dict[str, types.CellType]) -> None:
        owner = getattr(method_of(function), "__self__", None)
        self._function, self._cells = function, cells
        self._before = _definition_of(function)
        self._split: Callable[..., Any] = split if owner is None else types.MethodType(split, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _definition_of(self._function) != self._before:  # as after `model.forward = ...`
            return self._function(*args, **kwargs)
        if _is_module_call(self._function) and _has_hooks(self._function.__self__):
            return self._function.__self__._run_with_hooks(self._split, args, kwargs)
        return self._split(*args, **kwargs)

    @property
    def parts(self) -> list[Any]:
        """The compiled parts."""
        return [cell.cell_contents for name, cell in self._cells.items() if name != CALLEE]

    @generator_block
    def calling_by(self, call: Callable[..., Any]) -> Iterator[None]:
        """Let `call(f, *args, **kwargs)` run in place of each part or function `f` that is compiled."""
        before = {name: cell.cell_contents for name, cell in self._cells.items()}
        callees = before[CALLEE]
        if not isinstance(callees, Callees):  # the function has called itself
            yield
            return

        def callee(f: Any) -> Any:
            found = callees(f)
            return f if found is f else functools.partial(call, found)

        try:
            for name, cell in self._cells.items():
                cell.cell_contents = callee if name == CALLEE else functools.partial(call, before[name])
            yield
        finally:
            for name, cell in self._cells.items():
                cell.cell_contents = before[name]


class Callees:
    """The compiled functions that run in place of those which statements call that no program can replace."""

    def __init__(self, compile_callee: Callable[[Any], Any]) -> None:
        self._compile = compile_callee
        self._callers: set[types.CodeType] = set()  # functions of libraries that call a function with a break
        self._found: dict[Any, Any] = {}  # the compiled functions, by what is called
        self._counts: Counter[types.CodeType] = Counter()  # how many were found with the same code
        self.warned: set[str] = set()  # the warnings that were given
        # by the grad mode and the code: what callers' captures have found in functions
        self._refusals: dict[tuple[bool, types.CodeType], tuple[set[Objects], str, Breaks]] = {}

    def add(self, function: Any, compiled: Any) -> None:
        """Let a compiled function run in place of a function."""
        called = _called(function)
        if called is not None:
            self._found[_key_of(called)] = compiled

    def note_refusal(self, capture: Capture) -> None:
        """Note what a refused capture has found in the functions that it called: they need not be captured."""
        mode, recorder = capture.modes.grad_enabled, capture.recorder
        innermost = {code for code, _ in recorder.refused_in}
        self._callers.update(code for code in recorder.refused_at if code not in innermost)
        for code, objects in recorder.refused_for.items():
            self._refusals[mode, code] = objects, capture.refusal, capture.breaks_in(code)

    def known_refusal(self, mode: bool, function: Any) -> tuple[str, Breaks] | None:
        """Return why calls of a function cannot be captured, and its breaks; None if that is not known."""
        code = code_of(function)
        known = None if code is None else self._refusals.get((mode, code))
        return known[1:] if known is not None and _is_for(function, known[0]) else None

    def __call__(self, f: Any) -> Any:
        """Return the compiled function that is called in place of an object, or the object itself."""
        called = _called(f)
        if called is None:
            return f
        key = _key_of(called)
        compiled = self._found.get(key)
        if compiled is None:
            code = code_of(called)
            if code is None or not self._is_compiled(f, called, code):
                return f
            compiled = self._found[key] = self._compile(called)
        return f if compiled.is_idle else compiled

    def _is_compiled(self, f: Any, called: Any, code: types.CodeType) -> bool:
        """Return whether an object is compiled; those with the same code are not any more if there are too many."""
        leads_to_break = code in self._callers and (not is_library_code(code) or hasattr(called, "__wrapped__"))
        if not (is_program_code(code) or leads_to_break or (isinstance(f, Module) and f._modules)):
            return False
        most = MOST_MODULES if isinstance(f, Module) else MOST_OBJECTS
        self._counts[code] += 1
        if self._counts[code] == most + 1:  # they may keep much memory
            self._found = {key: g for key, g in self._found.items() if code_of(g._function) is not code}
        return self._counts[code] <= most


def _is_for(function: Any, found: set[Objects]) -> bool:
    """Return whether a function is for one of some objects, as a method, and by the variables around it."""
    method, cells = method_of(function), function_of(function).__closure__ or ()
    around = tuple([id(cell_contents(cell)) for cell in cells])
    if isinstance(method, types.MethodType):
        return (id(method.__self__), around) in found
    return any(around == others for _, others in found)


def _called(f: Any) -> Any:
    """Return the function or method of Python that a call of an object runs; None if there is none."""
    if isinstance(f, types.FunctionType | types.MethodType):
        return f
    return f.__call__ if isinstance(getattr(type(f), "__call__", None), types.FunctionType) else None  # noqa: B004


def _key_of(called: Any) -> Any:
    """Return a key for a function or method, the same for functions that differ in their identity only."""
    if isinstance(called, types.MethodType) or called.__closure__ or called.__defaults__ or called.__kwdefaults__:
        return called
    return id(called.__code__), id(called.__globals__)


def split_refused(
    function: Any, source: FunctionSource | None, breaks: Breaks, compile_part: Callable[[FunctionSource, str], Any],
    callees: Callees,
) -> FunctionInParts | None:  # fmt: skip
    """Return a function in parts around its breaks; None if there are no parts."""
    found = None if source is None else split_function(source, breaks, compile_part, callees)
    return None if found is None else FunctionInParts(function, *found)


def method_of(function: Any) -> Any:
    """Return the function or method of the user that a call runs: `forward` of a module, `__call__` of an object."""
    if _is_module_call(function):
        return function.__self__.forward
    return function if isinstance(function, types.FunctionType | types.MethodType) else function.__call__


def _definition_of(function: Any) -> tuple[Any, ...]:
    """Return the method that a call runs, and the ids of its code and defaults, which the split one keeps alive."""
    method = method_of(function)
    found = getattr(method, "__func__", method)
    return method, *[id(getattr(found, name, None)) for name in ("__code__", "__defaults__", "__kwdefaults__")]


def function_of(function: Any) -> Any:
    """Return the function of the user that a call runs, without the object of a method."""
    method = method_of(function)
    return getattr(method, "__func__", method)


def code_of(function: Any) -> types.CodeType | None:
    """Return the code of the function of the user that a call runs; None if it is not of Python."""
    found = function_of(function)
    return found.__code__ if isinstance(found, types.FunctionType) else None


def _is_module_call(function: Any) -> bool:
    return getattr(function, "__func__", None) in (Module.__call__, Module._call_impl)


def _has_hooks(module: Module) -> bool:
    return any(hook.kind != COMPILED for hook in {**GLOBAL_HOOKS, **module._call_hooks}.values())
