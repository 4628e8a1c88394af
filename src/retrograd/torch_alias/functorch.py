"""The package `functorch`, which PyTorch installs: the transforms of `rg.func`, and modules as functions."""

import copy
from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.func import functional_call as functional_call
from retrograd.func import functionalize as functionalize
from retrograd.func import grad as grad
from retrograd.func import grad_and_value as grad_and_value
from retrograd.func import hessian as hessian
from retrograd.func import jacfwd as jacfwd
from retrograd.func import jacrev as jacrev
from retrograd.func import jvp as jvp
from retrograd.func import stack_module_state
from retrograd.func import vjp as vjp
from retrograd.func import vmap as vmap
from retrograd.fx.experimental.proxy_tensor import make_fx as make_fx
from retrograd.nn import Module
from retrograd.utils._pytree import tree_flatten as tree_flatten
from retrograd.utils._pytree import tree_unflatten as tree_unflatten


class FunctionalModuleWithBuffers(Module):
    """A module as a function of its parameters, its buffers, and its arguments."""

    def __init__(self, module: Module, parameters: Sequence[str], buffers: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = copy.deepcopy(module)
        self.param_names, self.buffer_names = tuple(parameters), tuple(buffers)

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Return what the module returns with these tensors in place of its own."""
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function of its parameters and its arguments."""

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Return what the module returns with these parameters in place of its own."""
        return super().forward(params, (), *args, **kwargs)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return a module as a function, copies of its parameters, and copies of its buffers.

    >>> from retrograd import nn, ones
    >>> norm = nn.BatchNorm1d(2)
    >>> function, parameters, buffers = make_functional_with_buffers(norm)
    >>> function(parameters, buffers, ones(3, 2)).shape, len(buffers)
    ((3, 2), 3)
    """
    copied = copy.deepcopy(model)
    parameters, buffers = dict(copied.named_parameters()), dict(copied.named_buffers())
    if disable_autograd_tracking:
        copied.requires_grad_(False)
    function = FunctionalModuleWithBuffers(model, [*parameters], [*buffers])
    return function, tuple(parameters.values()), tuple(buffers.values())


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """Return a module as a function, and copies of its parameters.

    RuntimeError for a module with buffers.

    >>> from retrograd import nn, ones
    >>> function, parameters = make_functional(nn.Linear(3, 1))
    >>> grad(lambda p, x: function(p, x).sum())(parameters, ones(2, 3))
    (tensor([[2., 2., 2.]]), tensor([2.]))
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    _, parameters, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return FunctionalModule(model, [name for name, _ in model.named_parameters()], []), parameters


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return modules of one class as a function for `vmap`, their stacked parameters, and their stacked buffers.

    >>> from retrograd import nn, ones
    >>> function, parameters, buffers = combine_state_for_ensemble([nn.Linear(3, 1), nn.Linear(3, 1)])
    >>> vmap(function, (0, 0, None))(parameters, buffers, ones(4, 3)).shape
    (2, 4, 1)
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    function, _, _ = make_functional_with_buffers(models[0])
    parameters, buffers = stack_module_state([*models])
    return function, tuple(parameters.values()), tuple(buffers.values())
