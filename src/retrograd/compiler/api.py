"""The function `compile`."""

import functools
from collections.abc import Callable
from typing import Any

from retrograd.compiler.compiled_function import LIMIT, CompiledFunction
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
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
) -> Any:
    """Return a function that computes the same as `model`, and after its first call without running its Python code.

    The first call runs as always, and is recorded down to the kernels: forward and backward passes, in-place writes,
    gradients of leaves, random numbers. Later calls with arguments of the same kind run the recorded kernels, and the
    methods of optimizers and schedules, which stay as they are. The results have the bits of the eager run. Guards
    check all that the code reads: shapes, dtypes, strides, numbers, modules, global variables, modes. Where they fail,
    another program is made, up to 8 of them, not counting sizes. A result that requires grad is the output of one node
    for the whole call, whose backward pass is recorded when it first runs. Statements that cannot be recorded run
    eagerly between programs for the others, and a warning says why: they read the value of a tensor, print, or change
    Python objects.

    - model: a function, or a `Module`, of which a module with the same parameters is returned. None: return the
      decorator.
    - fullgraph: raise RuntimeError where one program cannot replace the function. The call that finds it has run then.
    - dynamic: each shape has a program of its own, made from those of other sizes where possible. None: programs that
      differ only in the sizes of tensors count as one for the limit, and the latest 64 of them are kept. True: this
      holds for integers, too. False: only for the sizes that `rg.compiler.mark_dynamic` names.
    - backend: "retrograd". The names of PyTorch's backends are accepted and mean the same. A function is refused.
    - mode: one of PyTorch's four modes; all of them mean the same here.
    - options: a dict, whose entries are settings of PyTorch's backends and have no effect. Not with a mode.
    - name: the name of the function in messages.
    - disable: return `model` itself.
    - recompile_limit: how many programs are made; None: 8.

    Raises TypeError if `model` cannot be called, RuntimeError for an unknown mode or backend, or for mode and options.

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
    _check_settings(backend, mode, options)
    limit = LIMIT if recompile_limit is None else recompile_limit
    settings = {"fullgraph": fullgraph, "name": name, "limit": limit, "dynamic": dynamic}
    if model is None:
        return functools.partial(_compile, settings=settings, disable=disable)
    return _compile(model, settings, disable)


MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BACKEND = "retrograd"
_OTHER_BACKENDS = ("inductor", "eager", "aot_eager", "cudagraphs", "openxla", "onnxrt", "tvm")


def list_backends(exclude_tags: tuple[str, ...] = ("debug", "experimental")) -> list[str]:
    """Return the names of the backends of `compile`: there is one.

    >>> import retrograd as rg
    >>> rg.compiler.list_backends()
    ['retrograd']
    """
    return [BACKEND]


def _check_settings(backend: Any, mode: str | None, options: dict[str, Any] | None) -> None:
    if mode is not None and options is not None:
        raise RuntimeError(
            "compile: Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"compile: Unrecognized mode={mode!r}, should be one of: {', '.join(MODES)}")
    if not isinstance(backend, str):
        raise RuntimeError("compile: a function as backend would get a graph of PyTorch's; use fx.symbolic_trace")
    if backend != BACKEND and backend not in _OTHER_BACKENDS:
        raise RuntimeError(f"compile: Invalid backend: {backend!r}; there is {BACKEND!r}")


def _compile(model: Any, settings: dict[str, Any], disable: bool) -> Any:
    if not callable(model):
        raise TypeError(f"compile: expected a function or a Module, got {type(model).__name__}")
    if disable:
        return model
    return OptimizedModule(model, settings) if isinstance(model, Module) else CompiledFunction(model, **settings)
