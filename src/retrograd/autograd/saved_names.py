"""PyTorch's names of the values that a node saved: `_saved_self`, `_saved_other`, `_saved_result`."""

from collections.abc import Callable
from math import prod
from typing import Any

from retrograd.core import Aval, GradFn, Tensor
from retrograd.core.blocks import HookBlock
from retrograd.core.graph import Packed, Snapshot
from retrograd.core.vjp_rule import AVAL
from retrograd.foundation.describe_value import describe


def saved_by_name(fn: GradFn, name: str) -> Any:
    """Return a param of the call, or what the node saved, by the name of an input, `self`, `other` or `result`."""
    if name in fn.params:
        return fn.params[name]
    sizes = saved_sizes(fn)
    if name in sizes:
        return sizes[name]
    index = saved_index(fn, name)
    if fn.saved is None and not fn.freed:
        raise AttributeError(f"{fn.name()!r} saves nothing, so no '_saved_{name}'")
    if index >= 0:
        return fn.value(index)
    return None if fn.saved is not None and fn.saved[-1] is None else fn.output()


def saved_sizes(fn: GradFn) -> dict[str, Any]:
    """Return the shapes and counts of elements of the inputs of which a rule reads no more, by PyTorch's names.

    They are no tensors: they stay when saved tensors are freed.
    """
    if fn.rules is None or fn.avals is None:
        return {}
    read = {key for rule in fn.rules if rule for kind, key in zip(rule.kinds, rule.keys, strict=True) if kind == AVAL}
    found: dict[str, Any] = {}
    for index in sorted(read):
        aval = fn.avals[index]
        if isinstance(aval, Aval):
            name = {0: "self", 1: "other"}.get(index) or fn.op.schema.inputs[index].name
            found[f"{name}_sym_sizes"], found[f"{name}_sym_numel"] = aval.shape, prod(aval.shape)
    return found


def saved_index(fn: GradFn, name: str) -> int:
    """Return the index in `fn.saved` of an input, by its name, `self` or `other`; -1 for the output."""
    inputs = [p.name for p in fn.op.schema.inputs]
    index = inputs.index(name) if name in inputs else {"self": 0, "other": 1}.get(name, len(inputs))
    if name not in ("result", "out") and index >= len(inputs):
        raise AttributeError(f"{fn.name()!r} saves no '_saved_{name}'; its inputs are {inputs}")
    return index if index < len(inputs) else -1


def saved_names(fn: GradFn) -> tuple[list[str], list[str]]:
    """Return the names of all values that a node saved, and those among them of tensors, or of None in their stead."""
    known = [*fn.params, *saved_sizes(fn)]
    if fn.rules is None or fn.saved is None:
        return known, []
    inputs = [p.name for p in fn.op.schema.inputs]
    names = ["self", "other" if len(inputs) == 2 and is_saved_tensor(fn.saved[1]) else "", *inputs[2:]]
    names = [given or name for given, name in zip(names, inputs, strict=False)]
    tensors = [name for name, saved in zip(names, fn.saved, strict=False) if is_saved_tensor(saved)]
    tensors += ["result"] * (fn.saved[-1] is not None)
    others = [name for name, saved in zip(names, fn.saved, strict=False) if not is_saved_tensor(saved)]
    return [*known, *others, *tensors], tensors


def is_saved_tensor(saved: Any) -> bool:
    """Return whether an entry of `fn.saved` is for a tensor, or several; None is for one that no rule reads."""
    return saved is None or isinstance(saved, (Tensor, tuple, Packed, Snapshot))


def raw_saved_by_name(fn: GradFn, name: str) -> Any:
    """Return the `SavedTensor` of an input or the output, by its name; a tuple of them for a list."""
    index = saved_index(fn, name)
    saved = None if fn.saved is None else fn.saved[index]
    if not is_saved_tensor(saved):
        raise AttributeError(
            f"{fn.name()!r} has no '_raw_saved_{name}': it saved {describe(saved)}, which is no tensor"
        )
    if type(saved) is tuple:
        return tuple([SavedTensor(fn, index, member) for member in range(len(saved))])
    return SavedTensor(fn, index)


class SavedTensor:
    """One tensor that a node saved, before it is unpacked; `member` is its index in a saved list.

    >>> import retrograd as rg
    >>> x = rg.tensor([2.0], requires_grad=True)
    >>> y = x.exp()
    >>> y.grad_fn._raw_saved_result.register_hooks(lambda tensor: tensor.numpy(), rg.tensor)
    >>> y.backward()
    >>> x.grad
    tensor([7.3891])
    """

    __slots__ = ("_fn", "_index", "_member")

    def __init__(self, fn: GradFn | None = None, index: int = 0, member: int | None = None) -> None:
        if fn is None:
            raise RuntimeError(
                "Trying to create a SavedTensor object from Python is forbidden: nodes have them, as in "
                "y.grad_fn._raw_saved_self"
            )
        self._fn = fn
        self._index = index
        self._member = member

    @property
    def data(self) -> Any:
        """Return what the node holds: the tensor, or what the pack hook made of it; None after it was freed."""
        entry = self._entry()
        return entry.packed if type(entry) is Packed else None if entry is None else self.unpack()

    @property
    def unpack_hook(self) -> Callable[[Any], Tensor] | None:
        """Return the hook that makes the tensor from `data`; None without hooks."""
        entry = self._entry()
        return entry.hooks.unpack if type(entry) is Packed else None

    def unpack(self) -> Tensor | None:
        """Return the saved tensor, made by the unpack hook if there is one; None for one that no rule reads.

        Raises RuntimeError if the tensor was freed, or was written to since.
        """
        fn = self._fn
        if self._entry() is None and not fn.freed:
            return None
        value = fn.output() if self._index < 0 else fn.value(self._index)
        return value if self._member is None else value[self._member]

    def _entry(self) -> Any:
        """Return the entry of the node for this tensor: itself, a snapshot, packed, or None."""
        saved = None if self._fn.saved is None else self._fn.saved[self._index]
        return saved if saved is None or self._member is None else saved[self._member]

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor] | None = None
    ) -> None:
        """Pass the tensor through `pack_hook` now, and read it back by `unpack_hook` from now on.

        Raises TypeError for hooks that cannot be called; RuntimeError if the tensor has hooks already, was freed or is
        None, or if `pack_hook` writes to it.
        """
        hooks = HookBlock(pack_hook, unpack_hook)
        hooks.check()
        fn, index, member = self._fn, self._index, self._member
        if fn.freed:
            raise RuntimeError(
                f"Calling register_hooks on a saved tensor after it has been freed: the values that {fn.op.name} saved "
                f"are freed when you call .backward() or autograd.grad(). Specify retain_graph=True to keep them."
            )
        saved = self._entry()
        if type(saved) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        if saved is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        value = fn.value(index)  # which checks that it was not written to
        packed: Any = Packed(hooks, value if member is None else value[member])
        if member is not None:
            packed = (*fn.saved[index][:member], packed, *fn.saved[index][member + 1 :])
        entries = list(fn.saved)
        entries[index] = packed
        fn.saved = tuple(entries)
