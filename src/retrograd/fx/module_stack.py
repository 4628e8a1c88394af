"""The stack of modules whose forwards run during tracing, by the paths through which they were called."""

from typing import Any

from retrograd.core.blocks import Block
from retrograd.foundation.source_location import user_frame
from retrograd.nn.module import Module

STACKS = "__module_stacks__"  # in the globals of generated code: line number -> the module stack of its source
Stack = dict[str, tuple[str, str]]


class ModuleCalls(Block):
    """A block in which the calls of a module and its submodules are tracked.

    `stack` maps the paths of the running modules to (path, class), the outermost first.  The key of a module's second
    call is "path@1".  For a module with several paths, the path below its calling module is used; if there are several
    of those, they are used in turn.

    >>> import retrograd as rg
    >>> net = rg.nn.Sequential(rg.nn.ReLU())
    >>> handle = net[0].register_forward_hook(lambda *_: print(list(calls.stack)))
    >>> with ModuleCalls(net) as calls:
    ...     y = net(rg.ones(1))
    ['', '0']
    """

    def __init__(self, root: Any) -> None:
        self.stack: Stack = {}
        self._paths: dict[Module, list[str]] = {}
        self._active: list[tuple[Module, str, Stack]] = []  # with the enclosing stack
        self._calls: dict[str, int] = {}
        self._handles: list[Any] = []
        for path, module in root.named_modules(remove_duplicate=False) if isinstance(root, Module) else ():
            self._paths.setdefault(module, []).append(path)

    def _enter(self) -> "ModuleCalls":
        """Register the hooks that track the calls."""
        for module in self._paths:
            self._handles.append(module.register_forward_pre_hook(self._begin, prepend=True))
            self._handles.append(module.register_forward_hook(self._end))
        return self

    def _leave(self, *exception: Any) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()

    def current_stack(self) -> Stack:
        """The stack at the user's current line.  In code generated from a graph, it is that graph's stack."""
        frame = user_frame(3)
        if not self.stack or frame is None or STACKS not in frame.f_globals:
            return self.stack
        inner: Stack = frame.f_globals[STACKS].get(frame.f_lineno, {})
        caller_path, _ = list(self.stack.values())[-1]
        if not caller_path:
            return inner
        return {
            **self.stack,
            **{f"{caller_path}.{k}": (f"{caller_path}.{path}", kind) for k, (path, kind) in inner.items() if k},
        }

    def _begin(self, module: Module, args: tuple) -> None:
        path = self._call_path(module)
        repetition = self._calls[path] = self._calls.get(path, -1) + 1
        self._active.append((module, path, self.stack))
        kind = f"{type(module).__module__}.{type(module).__qualname__}"
        self.stack = {**self.stack, f"{path}@{repetition}" if repetition else path: (path, kind)}

    def _end(self, module: Module, args: tuple, output: Any) -> None:
        while self._active:  # calls that ended in a caught exception are over too
            ended, _, self.stack = self._active.pop()
            if ended is module:
                return

    def _call_path(self, module: Module) -> str:
        """Return the nearest path below the calling module; of several the one with the fewest calls so far."""
        paths = self._paths[module]
        caller_path = f"{self._active[-1][1]}." if self._active and self._active[-1][1] else ""
        below = [path for path in paths if path.startswith(caller_path)]
        return min(below or paths, key=lambda path: (path.count("."), self._calls.get(path, -1)))


class Scope:
    """The module whose forward runs during symbolic tracing: its qualified name and class; "" and None for the root."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """A context manager that changes a tracer's `Scope` to another, until the end of the block.

    >>> scope = Scope("", None)
    >>> with ScopeContextManager(scope, Scope("layer", int)):
    ...     scope.module_path
    'layer'
    >>> scope.module_path
    ''
    """

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope = scope
        self._previous = scope.module_path, scope.module_type
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        """Return the changed scope."""
        return self._scope

    def __exit__(self, *exception: Any) -> None:
        """Restore the former scope."""
        self._scope.module_path, self._scope.module_type = self._previous
