"""The function `compile`."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from retrograd.compiler.compiled_function import CompiledFunction
from retrograd.compiler.compiled_module import OptimizedModule
from retrograd.nn.module import Module


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "retrograd",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return a function that computes the same as `model`, and after its first call without running its Python code.

    The first call runs as always, and is recorded down to the kernels: forward and backward passes, in-place writes,
    gradients of leaves, random numbers. Later calls with arguments of the same kind run the recorded kernels, and the
    methods of optimizers and schedules, which stay as they are. The results have the bits of the eager run. Guards
    check all that the code reads: shapes, dtypes, strides, numbers, modules, global variables, modes. Where they fail,
    another program is made, up to 8 of them. A function that cannot be recorded runs eagerly, and a warning says why:
    it reads the value of a tensor, prints, changes Python objects, or returns a tensor that is part of a graph.

    - model: a function, or a `Module`, of which a module with the same parameters is returned. None: return the
      decorator.
    - fullgraph: raise RuntimeError in place of running eagerly. The call that finds the reason has run then.
    - dynamic, backend, mode, options: accepted as in PyTorch; there is one way to compile, for fixed sizes.
    - disable: return `model` itself.

    Raises TypeError if `model` cannot be called.

    Source: the names are those of torch.compile.

    >>> import retrograd as rg
    >>> w = rg.ones(3, requires_grad=True)
    >>> optimizer = rg.optim.SGD([w], lr=0.5)
    >>> @rg.compile
    ... def step(x):
    ...     optimizer.zero_grad()
    ...     loss = ((w - x) ** 2).sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss.detach()
    >>> [step(rg.zeros(3)).item() for _ in range(3)]
    [3.0, 0.0, 0.0]
    >>> w
    tensor([0., 0., 0.], requires_grad=True)
    """
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise TypeError(f"compile: expected a function or a Module, got {type(model).__name__}")
    if dynamic:
        warnings.warn("compile: dynamic=True has no effect: each shape gets a program of its own", stacklevel=2)
    if disable:
        return model
    return OptimizedModule(model, fullgraph) if isinstance(model, Module) else CompiledFunction(model, fullgraph)
