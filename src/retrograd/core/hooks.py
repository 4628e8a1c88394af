"""Hooks that users register on nodes and leaves, and how the engine runs them.

The engine's cotangents are plain transposes; hooks see PyTorch's gradients, which are their conjugates.
"""

import threading
import weakref
from functools import partial
from itertools import count

from retrograd.core.blocks import Block
from retrograd.core.tensor import TensorBase

_numbers = count()


def check_callable(hook):
    """Raise TypeError unless a hook is callable; return it."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    return hook


class RemovableHandle(Block):
    """The handle that removes a hook: by `remove()`, or at the end of a `with` block.

    A new handle has an `id`, under which its owner adds a hook to `hooks_dict`. `extra_dict`, a dict or a list of
    dicts, is removed from under that id too.

    >>> import retrograd as rg
    >>> x = rg.ones(2, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 10):
    ...     x.sum().backward()
    >>> x.sum().backward()
    >>> x.grad
    tensor([11., 11.])
    """

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = next(_numbers)
        others = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()
        self._dicts = (hooks_dict, *others)

    def remove(self):
        """Remove the hook; doing so twice is no error."""
        for hooks in self._dicts:
            hooks.pop(self.id, None)

    def _enter(self):
        """Return the handle."""
        return self

    def _leave(self, *exception):
        """Remove the hook."""
        self.remove()


def add_hook(hooks, hook):
    """Add a hook to a dict of hooks, and return its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


OF_LEAF = object()  # the default of `grad_dtype`: the dtype of the leaf itself


class Hooks:
    """The hooks of a node or a leaf; each dict maps a handle's id to a function.

    `tensor` holds functions of the gradient of each output. `retaining` holds, for each output, the tensor whose
    `.grad` receives its gradient. `before` and `after` run around the node; those of a leaf run around the accumulation
    into `.grad`. `grad_dtype` is the dtype that a leaf's `.grad` must have, None for any, or OF_LEAF.
    `sequence` is the number that the user has set for `_sequence_nr`.
    """

    __slots__ = (
        "__weakref__",
        "accumulated",
        "after",
        "before",
        "grad_dtype",
        "metadata",
        "retaining",
        "sequence",
        "tensor",
    )

    def __init__(self):
        self.tensor = {}
        self.retaining = {}
        self.before = {}
        self.after = {}
        self.accumulated = {}
        self.metadata = {}
        self.sequence = None
        self.grad_dtype = OF_LEAF

    def any(self):
        """Return whether there is a function to run."""
        return bool(self.before or self.after or self.accumulated or any(self.tensor.values()))

    def see_gradient(self):
        """Return whether a function gets the gradient of a leaf before it is accumulated, and may keep it."""
        return bool(self.before or any(self.tensor.values()))


_hanging = threading.Lock()
of_leaves = {}  # weak references to the `Hooks` of leaves, by their id


def hooks_of(owner):
    """Return the hooks of a node or leaf, created on first use."""
    if owner._hooks is None:
        with _hanging:  # two threads may arrive here at once
            if owner._hooks is None:
                hooks = Hooks()
                if isinstance(owner, TensorBase):
                    of_leaves[id(hooks)] = weakref.ref(hooks, partial(_forget, id(hooks)))
                owner._hooks = hooks
    return owner._hooks


def grad_dtype_of(leaf):
    """Return the dtype that the `.grad` of a tensor must have; None for any."""
    chosen = OF_LEAF if leaf._hooks is None else leaf._hooks.grad_dtype
    return leaf.dtype if chosen is OF_LEAF else chosen


def _forget(key, reference):
    of_leaves.pop(key, None)


def some_leaf_is_watched():
    """Return whether any leaf has a hook: then passes count the edges to leaves, to run hooks as early as possible."""
    # A list, not a tuple: between the begin of an iteration and its end, list() does not allocate what is collected.
    alive = [reference() for reference in list(of_leaves.values())]
    return any(hooks is not None and hooks.any() for hooks in alive)


def retain(tensor, accumulate):
    """Let `tensor`, an output of a node, receive its gradient: the pass calls `accumulate(tensor, g)`."""
    hooks_of(tensor._grad_fn).retaining[tensor._output_nr] = (weakref.ref(tensor), accumulate)


def move_retained(tensor, old, number):
    """Move the `retaining` entry of a tensor that got a new history to its new node."""
    if old is None or old._hooks is None:
        return
    known = old._hooks.retaining.get(number)
    if known is not None and known[0]() is tensor:
        del old._hooks.retaining[number]
        hooks_of(tensor._grad_fn).retaining[tensor._output_nr] = known


def share_tensor_hooks(tensor, old, number):
    """Let a leaf that was output `number` of a node run the hooks of that output: one dict for both, as in PyTorch."""
    if old is not None and old._hooks is not None and number in old._hooks.tensor:
        hooks_of(tensor).tensor[0] = old._hooks.tensor[number]


def run_tensor_hooks(hooks, number, g):
    """Return the gradient of one output after its hooks, whose replacements are checked."""
    for function in list(hooks.tensor.get(number, {}).values()):
        result = function(conjugate(g))
        if result is not None:
            check_replacement(function, result, g)
            g = conjugate(result)
    known = hooks.retaining.get(number)
    if known is not None and g is not None:
        tensor = known[0]()
        if tensor is not None:
            known[1](tensor, conjugate(g))
    return g


def conjugate(g):
    """Convert a cotangent from the engine's convention to that of users, or back."""
    return g if g is None or g.dtype.kind != "c" else g.conj_physical()


def check_replacement(function, result, g):
    """Raise if the gradient that a hook returned differs in shape or dtype from the old one."""
    name = getattr(function, "__name__", type(function).__name__)
    check_result(function, result)
    if g is None:
        return
    if result.dtype != g.dtype:
        raise RuntimeError(f"hook {name!r} has changed the type of value (was {g.dtype} got {result.dtype})")
    if result.shape != g.shape:
        raise RuntimeError(f"hook {name!r} has changed the size of value: got {g.shape}, returned {result.shape}")


def check_result(function, result):
    """Raise if the result of a tensor's hook is neither a tensor nor None."""
    if result is not None and not isinstance(result, TensorBase):
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}': {name!r}")


def check_no_replacement(function, result, leaf):
    """Raise if a post-accumulate hook returned something else than None or the leaf itself."""
    check_result(function, result)
    if result is not None and result is not leaf:
        raise RuntimeError("Tensor post accumulate grad hooks should return None. Assign to .grad instead")


def run_before(hooks, gs):
    """Return the cotangents of a node after its pre-hooks, each of which may replace them all."""
    return _run(hooks.before, gs)


def run_after(hooks, results, gs):
    """Return the gradients of a node's inputs after its hooks, each of which may replace them all."""
    return _run(hooks.after, results, gs)


def _run(functions, values, *others):
    for function in list(functions.values()):
        result = function(_all_conjugate(values), *map(_all_conjugate, others))
        if result is not None:
            values = _replaced(function, result, values)
    return values


def _replaced(function, result, values):
    name = getattr(function, "__name__", type(function).__name__)
    if not isinstance(result, tuple):
        raise TypeError(
            f"expected tuple, but hook returned {type(result).__name__!r}: hook {name!r} must return a tuple of "
            "Tensors and None"
        )
    if len(result) != len(values):
        raise RuntimeError(
            f"hook {name!r} has returned an incorrect number of values (got {len(result)}, but expected {len(values)})"
        )
    for new, old in zip(result, values, strict=True):
        if new is not None:
            check_replacement(function, new, old)
    return _all_conjugate(result)


def _all_conjugate(gs):
    return tuple([conjugate(g) for g in gs])
