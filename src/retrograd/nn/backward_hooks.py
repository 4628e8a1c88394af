"""Backward hooks of modules: functions of the gradients of a call's outputs and inputs, which may replace them."""

from collections.abc import Callable
from typing import Any

from retrograd.autograd.function import Function
from retrograd.core import Tensor
from retrograd.core.state import current
from retrograd.foundation.source_location import warn_user
from retrograd.nn.hooks import Hook


class ModuleCallGradients:
    """The gradients of one call of a module with backward hooks.

    The tensors among the arguments, and those among the results, pass through an identity, whose backward runs the
    hooks: pre-hooks where the gradients of the results arrive, full hooks where those of the arguments are known.
    """

    def __init__(self, module: Any, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self._module = module
        self._hooks, self._pre_hooks = hooks, pre_hooks
        self._grad_output: tuple[Any, ...] | None = None
        self._count = 0
        self._input_requires_grad = False

    def watch_arguments(self, args: tuple) -> tuple:
        """Return the positional arguments, connected to the full hooks where one of them requires grad."""
        self._count = len(args)
        watched = _watch(args, self._run_hooks, zeros=True)
        self._input_requires_grad = watched is not None
        return args if watched is None else watched

    def watch_results(self, results: Any) -> Any:
        """Return the result or the tuple of results, connected to the pre-hooks where one of them requires grad."""
        if not isinstance(results, (Tensor, tuple)):
            warn_user(
                f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(results)}"
            )
            return results
        watched = _watch(results if isinstance(results, tuple) else (results,), self._run_pre_hooks, zeros=False)
        if watched is None:
            return results
        return watched if isinstance(results, tuple) else watched[0]

    def _run_pre_hooks(self, grads: tuple) -> tuple:
        for hook in self._pre_hooks:
            grads = _replacement(
                "pre hook returned an invalid number of grad_output", hook.function(self._module, grads), grads
            )
        if self._input_requires_grad:
            self._grad_output = grads
        else:
            self._run_without_inputs(grads)
        return grads

    def _run_without_inputs(self, grad_output: tuple) -> None:
        if self._hooks:
            warn_user(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients"
            )
        for hook in self._hooks:
            result = hook.function(self._module, (None,) * self._count, grad_output)
            if result is not None and not (isinstance(result, tuple) and all(g is None for g in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )

    def _run_hooks(self, grads: tuple) -> tuple:
        grad_output, self._grad_output = self._grad_output, None
        if grad_output is None:  # the results were not part of this backward pass
            return grads
        for hook in self._hooks:
            grads = _replacement(
                "hook returned an invalid number of grad_input", hook.function(self._module, grads, grad_output), grads
            )
        return grads


def _replacement(kind: str, result: Any, grads: tuple) -> tuple:
    """Return the gradients that a hook returned, or those that it was given if it returned None."""
    if result is None:
        return grads
    replaced = result if isinstance(result, tuple) else (result,)
    if len(replaced) != len(grads):
        raise RuntimeError(f"Backward {kind}, got {len(replaced)}, but expected {len(grads)}")
    return replaced


def _watch(values: tuple, run: Callable[[tuple], tuple], zeros: bool) -> tuple | None:
    """Return values whose tensors pass through an identity with the backward `run`; None if no gradient will flow.

    With `zeros`, missing gradients are zeros, else None.
    """
    indices = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not current().grad_enabled or not any(values[i].requires_grad for i in indices):
        return None

    def backward(grads: tuple) -> tuple:
        given: list[Any] = [None] * len(values)
        for i, grad in zip(indices, grads, strict=True):
            given[i] = grad
        found = run(tuple(given))
        return tuple([found[i] for i in indices])

    watched = list(values)
    for i, tensor in zip(
        indices, BackwardHookFunction.apply(backward, zeros, *[values[i] for i in indices]), strict=True
    ):
        watched[i] = tensor
    return type(values)(*watched) if hasattr(values, "_fields") else tuple(watched)


class BackwardHookFunction(Function):
    """The identity, whose backward passes the gradients through a function."""

    generate_vmap_rule = True

    @staticmethod
    def forward(replace: Any, zeros: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors."""
        return tensors

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        """Save the function of the gradients."""
        ctx.replace = inputs[0]
        ctx.set_materialize_grads(inputs[1])
        pairs = zip(inputs[2:], output, strict=True)
        ctx.mark_non_differentiable(*[result for x, result in pairs if not x.requires_grad])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        """Return the gradients that the function makes of those of the outputs."""
        return None, None, *ctx.replace(grads)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> tuple:
        """Return the tangents of the tensors, which follow two other arguments."""
        return grad_inputs[2:]
