"""`FSDPModule`: the methods that a module has after `fully_shard`."""

from collections.abc import Iterator
from typing import Any

from retrograd.distributed.fsdp.parameter_block import ParameterBlock

BLOCK = "_sharded_block"  # the attribute of a module that has its block


class UnshardHandle:
    """The handle of `FSDPModule.unshard(async_op=True)`, which has gathered the parameters already."""

    def wait(self) -> None:
        """Return at once."""


class FSDPModule:
    """The class that `fully_shard` adds to that of a module; `isinstance(module, FSDPModule)` is true afterwards.

    Methods that only change when PyTorch exchanges parameters have no effect.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.fsdp import fully_shard
    >>> def script():
    ...     model = fully_shard(rg.nn.Linear(4, 6))
    ...     model.unshard()
    ...     whole = model.weight.shape
    ...     model.reshard()
    ...     return whole, model.weight.to_local().shape
    >>> dist.run_threads(script, 2)[0]
    ((6, 4), (3, 4))
    """

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Let the module have its whole parameters until `reshard`, or until it has run; all ranks must call it."""
        self.__dict__[BLOCK].unshard()
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Free the whole parameters."""
        self.__dict__[BLOCK].reshard()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Set whether backward passes reduce gradients; otherwise the next one that does adds these to its own."""
        for block in self._blocks(recurse):
            block.syncs = requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether the whole parameters are freed after the forward pass."""
        for block in self._blocks(recurse):
            block.keeps = not reshard_after_forward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set by what the sum of the ranks' gradients is divided, instead of their number."""
        self.__dict__[BLOCK].divisor = factor

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Have no effect."""

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """Have no effect."""

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Have no effect."""

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Have no effect: whole parameters are always freed after the backward pass."""

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Have no effect: copies on a mesh of two dimensions are averaged in each backward pass that reduces."""

    def _blocks(self, recurse: bool) -> list[ParameterBlock]:
        return list(blocks_of(self)) if recurse else [self.__dict__[BLOCK]]


def blocks_of(module: Any) -> Iterator[ParameterBlock]:
    """Yield the blocks of a module and of the modules in it."""
    for owner in module.modules():
        if BLOCK in owner.__dict__:
            yield owner.__dict__[BLOCK]
