"""Hooks on tensors: functions that observe, and may replace, gradients."""

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Tensor, current, registry
from retrograd.core.blocks import Block
from retrograd.core.engine import edge_of
from retrograd.core.hooks import RemovableHandle, add_hook, check_callable, hooks_of, retain
from retrograd.core.views import requires_grad_synced
from retrograd.foundation.read_only import read_only
from retrograd.foundation.suggestions import suggest_in_module, suggest_keywords

Hook = Callable[[Tensor], Tensor | None]


@suggest_keywords
def register_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Call `hook(grad)` whenever the gradient of this tensor is complete; a result other than None replaces it.

    The hook belongs to the present value: after an in-place write it still gets the gradient of the old value.
    Returns a handle whose `remove()` removes the hook.  Raises RuntimeError if the tensor requires no gradient.

    >>> import retrograd as rg
    >>> x = rg.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: 2 * grad)
    >>> x.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    _check_requires_grad("register_hook", self)
    check_callable(hook)
    owner, number = edge_of(self)
    return add_hook(hooks_of(owner).tensor.setdefault(number, {}), hook)


@suggest_keywords
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook(tensor)` when a backward pass has added the complete gradient to `.grad` of this leaf.

    Raises RuntimeError for a tensor that is no leaf, or requires no gradient.

    >>> import retrograd as rg
    >>> x = rg.ones(2, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
    >>> (3 * x).sum().backward()
    tensor([3., 3.])
    """
    _check_requires_grad("register_post_accumulate_grad_hook", self)
    if not self.is_leaf:
        raise RuntimeError(
            f"register_post_accumulate_grad_hook: post accumulate grad hooks cannot be registered on non-leaf tensors, "
            f"and this is the result of {self._grad_fn.op.name}; use register_hook"
        )
    check_callable(hook)
    return add_hook(hooks_of(self).accumulated, hook)


_HOOK_REFUSAL = "cannot register a hook on a tensor that doesn't require gradient"
_REFUSALS = {"retain_grad": "can't retain_grad on Tensor that has requires_grad=False"}


def _check_requires_grad(name: str, tensor: Tensor) -> None:
    if not tensor.requires_grad and tensor.level is not None and tensor.level.traces:
        raise RuntimeError(
            f"{name}: a trace takes down operators only, and would lose the hook on this tensor, of shape "
            f"{tensor.shape}; leave it out of what is traced, and register hooks on what the traced module returns"
        )
    if not tensor.requires_grad:
        raise RuntimeError(
            f"{_REFUSALS.get(name, _HOOK_REFUSAL)}: {name} got one of shape {tensor.shape}, which no gradient will "
            f"reach; call requires_grad_() before it is used"
        )
    if not requires_grad_synced(tensor):
        raise RuntimeError(
            f"{name}: the gradient of this tensor, of shape {tensor.shape}, flows in a graph around "
            f"{type(tensor.level).__name__}, not in the transform's own, and would not arrive here. Use a tensor "
            f"outside of the transform, or take the gradient inside, with respect to x.detach().requires_grad_()"
        )


@suggest_keywords
def retain_grad(self: Tensor) -> None:
    """Store the gradient of this result in its `.grad` in backward passes, as for leaves.

    Raises RuntimeError if the tensor requires no gradient.

    >>> import retrograd as rg
    >>> y = rg.ones(2, requires_grad=True) * 3
    >>> y.retain_grad()
    >>> y.sum().backward()
    >>> y.grad
    tensor([1., 1.])
    """
    _check_requires_grad("retain_grad", self)
    if not self.is_leaf and not self.retains_grad:
        retain(self, _add_retained_grad)


def _add_retained_grad(tensor: Tensor, g: Tensor) -> None:
    old = tensor._grad
    tensor._grad = registry["clone"](g) if old is None else old + g


def _backward_hooks(self: Tensor) -> dict | None:
    """The hooks of `register_hook` by the ids of their handles; None before the first. Can be set, as old code does."""
    owner, number = _owner(self)
    return None if owner._hooks is None else owner._hooks.tensor.get(number)


def _set_backward_hooks(self: Tensor, hooks: dict | None) -> None:
    owner, number = _owner(self)
    if hooks is None:
        hooks_of(owner).tensor.pop(number, None)
    else:
        hooks_of(owner).tensor[number] = hooks


def _refuse_deletion(name: str, remedy: str = "!") -> Callable[[Tensor], None]:
    """Return a deleter that raises."""

    def delete(self: Tensor) -> None:
        raise RuntimeError(f"Deletion of {name} not allowed{remedy}")

    return delete


def _owner(tensor: Tensor) -> tuple[Any, int]:
    return edge_of(tensor) if tensor.requires_grad else (tensor, 0)


def _retains_grad(self: Tensor) -> bool:
    """Return whether `backward()` stores the gradient of this result; False for leaves, which always get theirs."""
    requires_grad_synced(self)  # where that history is refused, the tensor still has the older one
    fn = self._grad_fn
    if fn is None or fn._hooks is None:
        return False
    known = fn._hooks.retaining.get(self.output_nr)
    return known is not None and known[0]() is self


for _function in (register_hook, register_post_accumulate_grad_hook, retain_grad):
    setattr(Tensor, _function.__name__, _function)
setattr(Tensor, "retains_grad", read_only(_retains_grad, "retains_grad"))  # noqa: B010 (a property that another layer adds)
_of_hooks = property(_backward_hooks, _set_backward_hooks, _refuse_deletion("_backwards_hooks"))
setattr(Tensor, "_backward_hooks", _of_hooks)  # noqa: B010 (as above)


class _HandleGroup(Block):
    """Several handles as one."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove all the hooks."""
        for handle in self.handles:
            handle.remove()

    def _enter(self) -> "_HandleGroup":
        """Return the handle."""
        return self

    def _leave(self, *exception: Any) -> None:
        """Remove all the hooks."""
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: str = "all",
) -> _HandleGroup:
    """Call `fn` once per backward pass: with all the gradients when the last of `tensors` has its own, or, in mode
    "any", with the first gradient that any of them gets.

    In mode "all" the gradient of a tensor that the pass does not reach is None.  Raises ValueError for another mode,
    RuntimeError if one of the tensors requires no gradient.

    >>> import retrograd as rg
    >>> x, y = rg.ones(2, requires_grad=True), rg.ones(1, requires_grad=True)
    >>> handle = rg.autograd.graph.register_multi_grad_hook((x, y), lambda grads: print(grads))
    >>> (x.sum() + 2 * y).sum().backward()
    (tensor([1., 1.]), tensor([2.]))
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: Expects mode to be one of ('all', 'any') but got {mode}")
    check_callable(fn)
    for tensor in tensors:  # check all before the first hook is registered
        _check_requires_grad("register_multi_grad_hook", tensor)
    edges = tuple(weakref.ref(edge_of(t)[0]) for t in tensors)  # weak, since the nodes hold the hook
    collector = (_AllGrads if mode == "all" else _AnyGrad)(edges, fn)
    return _HandleGroup([t.register_hook(collector.hook(i)) for i, t in enumerate(tensors)])


class _Collector:
    """The state of a multi-grad hook in each running pass, on any thread."""

    def __init__(self, edges: tuple, fn: Callable) -> None:
        self._edges = edges
        self._fn = fn
        self._lock = threading.Lock()
        self._passes: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


class _AllGrads(_Collector):
    def hook(self, index: int) -> Hook:
        """The hook of one of the tensors."""

        def collect(grad: Tensor) -> None:
            run = current().running
            with self._lock:
                if run not in self._passes:
                    self._passes[run] = sum(run.will_run(edge()) for edge in self._edges), {}
                expected, found = self._passes[run]
                found[index] = grad
                complete = len(found) == expected
            if complete:
                self._fn(tuple(found.get(i) for i in range(len(self._edges))))

        return collect


class _AnyGrad(_Collector):
    def hook(self, index: int) -> Hook:
        """The hook of one of the tensors."""

        def run_once(grad: Tensor) -> None:
            run = current().running
            with self._lock:
                first = run not in self._passes
                self._passes[run] = True
            if first:
                self._fn(grad)

        return run_once


suggest_in_module(globals())
