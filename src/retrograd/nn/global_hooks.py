"""Hooks of all modules, under the names of torch.nn.modules.module: for tools that watch whole programs.

They run before the hooks of a single module, in the order of their registration.
"""

from collections.abc import Callable
from typing import Any

from retrograd.core.hooks import RemovableHandle, add_hook, check_callable
from retrograd.nn import hooks as kinds
from retrograd.nn.hooks import GLOBAL_HOOKS, Hook, register_hook


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, args)` before the forward of every module; its result, unless None, replaces the arguments."""
    return register_hook(GLOBAL_HOOKS, Hook(hook, kinds.FORWARD_PRE))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Run `hook(module, args, output)` after the forward of every module; its result, unless None, replaces the output.

    The keywords are those of `Module.register_forward_hook`.

    >>> import retrograd as rg
    >>> handle = register_module_forward_hook(lambda module, args, output: print(type(module).__name__))
    >>> with handle:
    ...     _ = rg.nn.Sequential(rg.nn.ReLU())(rg.ones(1))
    ReLU
    Sequential
    """
    return register_hook(GLOBAL_HOOKS, Hook(hook, kinds.FORWARD, with_kwargs, always_call))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, grad_input, grad_output)` in backward passes through every module's calls."""
    return register_hook(GLOBAL_HOOKS, Hook(hook, kinds.BACKWARD))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, grad_output)` before the gradients of every module's calls are computed."""
    return register_hook(GLOBAL_HOOKS, Hook(hook, kinds.BACKWARD_PRE))


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run a hook in backward passes: the older name of `register_module_full_backward_hook`."""
    return register_module_full_backward_hook(hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, name, param)` when a parameter is registered; its result, unless None, replaces it."""
    check_callable(hook)
    return add_hook(kinds.PARAMETER_HOOKS, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, name, buffer)` when a buffer is registered; its result, unless None, replaces it."""
    check_callable(hook)
    return add_hook(kinds.BUFFER_HOOKS, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Run `hook(module, name, submodule)` when a module is registered; its result, unless None, replaces it."""
    check_callable(hook)
    return add_hook(kinds.MODULE_HOOKS, hook)
