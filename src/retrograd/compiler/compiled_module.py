"""A module whose calls are compiled."""

from typing import Any

from retrograd.compiler.compiled_function import CompiledFunction
from retrograd.nn.module import Module


class OptimizedModule(Module):
    """A module that has another one, `_orig_mod`, and calls it by a compiled function; attributes are the other's."""

    _orig_mod: Module

    def __init__(self, module: Module, settings: dict[str, Any]) -> None:
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_compiled_call", CompiledFunction(module.__call__, **settings))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the other module."""
        return self._compiled_call(*args, **kwargs)

    def aot_compile(self, example_inputs: tuple[tuple, dict[str, Any]]) -> Any:
        """Return the calls of the module as a function of their own: see `CompiledFunction.aot_compile`."""
        return self._compiled_call._aot_compile(example_inputs, self._orig_mod)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_orig_mod" not in self._kinds:
                raise
            return getattr(self._orig_mod, name)
