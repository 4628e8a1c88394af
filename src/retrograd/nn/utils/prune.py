"""Pruning: parameters multiplied by masks of zeros and ones before each call.

A pruned tensor `weight` is the parameter `weight_orig` times the buffer `weight_mask`. Pruning it again, by any method,
prunes what is left.
"""

from collections.abc import Callable, Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

from retrograd.core import operator_named
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.hooks import FORWARD_PRE, of_kind
from retrograd.nn.module import Module
from retrograd.nn.utils.recomputed_weights import remove_hook
from retrograd.ops.create import ones_like
from retrograd.ops.random import rand

_cat = operator_named("cat")
_norm = operator_named("norm")
_topk = operator_named("topk")

M = TypeVar("M", bound=Module)


class BasePruningMethod:
    """Base of pruning methods: a forward pre-hook that multiplies a tensor by its mask.

    A subclass sets `PRUNING_TYPE` to "unstructured", "structured" or "global", and defines `compute_mask`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> from retrograd.nn.utils import prune
    >>> class EveryOther(prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask.view(-1)[::2] = 0
    ...         return mask
    >>> layer = nn.Linear(2, 2)
    >>> method = EveryOther.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[0., 1.],
            [0., 1.]])
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask for a tensor of importances; zeros of the present mask `default_mask` stay zeros."""
        raise NotImplementedError(f"{type(self).__name__} has no compute_mask(); define it")

    def apply_mask(self, module: Any) -> Any:
        """Return the pruned tensor."""
        mask = getattr(module, f"{self._tensor_name}_mask")
        return mask.to(getattr(module, f"{self._tensor_name}_orig").dtype) * getattr(
            module, f"{self._tensor_name}_orig"
        )

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a module's tensor by `cls(*args, **kwargs)`, and return the hook that does.

        importance_scores: a tensor of the same shape, which is compared instead of the values.  Raises ValueError,
        before anything changes, if its shape differs.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        existing = _hook_of(module, name)
        original = getattr(module, name if existing is None else f"{name}_orig")
        _check_scores(importance_scores, original)
        scores = getattr(module, name) if importance_scores is None else importance_scores
        mask = ones_like(original.detach()) if existing is None else getattr(module, f"{name}_mask")
        hook = method if existing is None else PruningContainer(existing, method)
        mask = hook.compute_mask(scores.detach(), mask.detach().clone())
        if existing is None:
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", original)
        else:
            remove_hook(module, existing)
        if existing is None:
            module.register_buffer(f"{name}_mask", mask)
        else:
            setattr(module, f"{name}_mask", mask)
        hook(module, ())
        module.register_forward_pre_hook(hook)
        return hook

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return a pruned copy of a tensor, without a module."""
        _check_scores(importance_scores, t)
        scores = t if importance_scores is None else importance_scores
        mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor a parameter with its present value."""
        name = self._tensor_name
        value, original = self.apply_mask(module).detach(), getattr(module, f"{name}_orig")
        original.detach().copy_(value)
        delattr(module, name)
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        module.register_parameter(name, original)


def _check_scores(scores: Any, tensor: Any) -> None:
    if scores is not None and tuple(scores.shape) != tuple(tensor.shape):
        raise ValueError(
            f"prune: importance_scores must have the shape of the tensor, {tuple(tensor.shape)}, got "
            f"{tuple(scores.shape)}"
        )


def _hook_of(module: Any, name: str | None) -> Any:
    """Return the pruning hook of a module's tensor, or of any tensor for None; None if it is not pruned."""
    for hook in of_kind(module._call_hooks, FORWARD_PRE):
        if isinstance(hook.function, BasePruningMethod) and name in (None, hook.function._tensor_name):
            return hook.function
    return None


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one tensor: each prunes what the earlier ones left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        for method in args:
            for one in method if isinstance(method, PruningContainer) else (method,):
                self.add_pruning_method(one)

    def add_pruning_method(self, method: Any) -> None:
        """Append a method for the same tensor."""
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise TypeError(
                f"add_pruning_method: expected a BasePruningMethod, got {type(method).__name__}, which "
                "is not a BasePruningMethod subclass"
            )
        if getattr(self, "_tensor_name", None) not in (None, method._tensor_name):
            raise ValueError(
                f"add_pruning_method: the methods prune {self._tensor_name!r}, and this one {method._tensor_name!r}"
            )
        self._tensor_name = method._tensor_name
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask by the last method, computed on the elements that the present mask leaves."""
        method = self._pruning_methods[-1]
        part = _left_part(method, t, default_mask)
        mask = default_mask.to(t.dtype, copy=True)
        mask[part] = method.compute_mask(t[part], default_mask[part]).to(mask.dtype)
        return mask


def _left_part(method: BasePruningMethod, t: Any, mask: Any) -> Any:
    """Return the index of the elements, or of the slices along the method's dimension, that a mask has left."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "structured":
        dim = method.dim % t.ndim  # type: ignore[attr-defined]
        others = tuple(d for d in range(t.ndim) if d != dim)
        return (slice(None),) * dim + (mask.sum(others) != 0,)
    return (slice(None),) * t.ndim


# ------------------------------------------------------------------------------------------------------- methods


class Identity(BasePruningMethod):
    """Prune nothing, but register the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the present mask."""
        return default_mask


class _ByAmount(BasePruningMethod):
    """Base of methods that prune an amount: a share from 0 to 1, or a number of elements or slices."""

    def __init__(self, amount: Any) -> None:
        if not isinstance(amount, Real):
            raise TypeError(f"amount must be int or float, got {amount!r}; Invalid type for amount")
        self._is_number = isinstance(amount, Integral)
        self.amount: int | float = int(amount) if self._is_number else float(amount)  # type: ignore[call-overload]
        if self.amount < 0 or (not self._is_number and self.amount > 1):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")

    def _count(self, size: int) -> int:
        """Return how many of `size` units are pruned; ValueError for more than there are."""
        if not self._is_number:
            return round(self.amount * size)
        if self.amount > size:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)


class RandomUnstructured(_ByAmount):
    """Prune elements at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask."""
        return _without_smallest(rand(t.shape, device=t.device), self._count(t.numel()), default_mask)


class L1Unstructured(_ByAmount):
    """Prune the elements of the smallest absolute values."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask."""
        return _without_smallest(t.abs(), self._count(t.numel()), default_mask)


def _without_smallest(importance: Any, count: int, mask: Any) -> Any:
    """Return the mask with zeros at the `count` smallest importances."""
    found = mask.clone()
    if count:
        smallest = _topk(importance.reshape(-1), count, largest=False)[1]
        flat = found.reshape(-1).clone()
        flat[smallest] = 0
        found = flat.reshape(found.shape)
    return found


class _Structured(_ByAmount):
    """Base of methods that prune whole slices along a dimension."""

    PRUNING_TYPE = "structured"
    dim: int

    def _importance(self, t: Any) -> Any:
        """Return the importance of each slice."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask.  Raises ValueError for vectors, IndexError for a dimension that does not exist."""
        if t.ndim < 2:
            raise ValueError(f"structured pruning can only be applied to multidimensional tensors, got shape {t.shape}")
        if not -t.ndim <= self.dim < t.ndim:
            raise IndexError(f"prune: invalid index {self.dim} for tensor of size {t.shape}")
        slices = _without_smallest(self._importance(t), self._count(t.shape[self.dim]), ones_like(self._importance(t)))
        shape = [1] * t.ndim
        shape[self.dim] = -1
        return default_mask * slices.reshape(shape).to(default_mask.dtype)


class RandomStructured(_Structured):
    """Prune slices along `dim` at random."""

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _importance(self, t: Any) -> Any:
        return rand(t.shape[self.dim], device=t.device)


class LnStructured(_Structured):
    """Prune the slices along `dim` of the smallest norms of order `n`."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def _importance(self, t: Any) -> Any:
        others = tuple(d for d in range(t.ndim) if d != self.dim % t.ndim)
        return _norm(t, self.n, others)


class CustomFromMask(BasePruningMethod):
    """Prune by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the present mask times the given one."""
        return default_mask * self.mask.to(default_mask.dtype)


# ----------------------------------------------------------------------------------------------------- functions


def identity(module: M, name: str) -> M:
    """Register a mask of ones for a module's tensor; return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: Any) -> M:
    """Prune elements of a module's tensor at random: a share `amount` from 0 to 1, or a number; return the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: M, name: str, amount: Any, importance_scores: Any = None) -> M:
    """Prune the elements of a module's tensor with the smallest absolute values; return the module.

    amount: a share from 0 to 1, or a number of elements.  importance_scores: compared instead of the values.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> from retrograd.nn.utils import prune
    >>> layer = nn.Linear(3, 1)
    >>> layer.weight = nn.Parameter(rg.tensor([[3.0, -1.0, 2.0]]))
    >>> prune.l1_unstructured(layer, "weight", amount=1).weight.tolist(), list(layer.state_dict())
    ([[3.0, -0.0, 2.0]], ['bias', 'weight_orig', 'weight_mask'])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: Any, dim: int) -> M:
    """Prune slices along `dim` of a module's tensor at random; return the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M, name: str, amount: Any, n: float | str | None, dim: int, importance_scores: Any = None
) -> M:
    """Prune the slices along `dim` of a module's tensor with the smallest norms of order `n`; return the module.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> from retrograd.nn.utils import prune
    >>> layer = nn.Linear(2, 2)
    >>> layer.weight = nn.Parameter(rg.tensor([[3.0, 1.0], [2.0, 1.0]]))
    >>> prune.ln_structured(layer, "weight", amount=0.5, n=2, dim=1).weight.tolist()
    [[3.0, 0.0], [2.0, 0.0]]
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: M, name: str, mask: Any) -> M:
    """Prune a module's tensor by a mask of its shape; return the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Any, str]],
    pruning_method: Callable[..., Any],
    importance_scores: Any = None,
    **kwargs: Any,
) -> None:
    """Prune the elements of several tensors together, as if they were one.

    parameters: pairs of a module and the name of its tensor.  pruning_method: a class whose `PRUNING_TYPE` is
    "unstructured", called with the keywords.  importance_scores: by pair, compared instead of the values.

    Raises TypeError for other pairs or another type of method.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> from retrograd.nn.utils import prune
    >>> layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
    >>> prune.global_unstructured([(layer, "weight") for layer in layers], prune.L1Unstructured, amount=5)
    >>> sum(float(layer.weight_mask.sum()) for layer in layers)
    3.0
    """
    pairs = list(parameters)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise TypeError("global_unstructured: parameters must be pairs (module, name)")
    kind = getattr(pruning_method, "PRUNING_TYPE", "unstructured")
    if kind != "unstructured":
        raise TypeError(
            f"global_unstructured: only unstructured methods prune globally, got {pruning_method.__name__}, "
            f"which is {kind}"
        )
    given = importance_scores or {}
    tensors = [getattr(module, name) for module, name in pairs]
    scores = [given.get(pair, tensor).detach() for pair, tensor in zip(pairs, tensors, strict=True)]
    masks = [
        getattr(module, f"{name}_mask", ones_like(tensor.detach()))
        for (module, name), tensor in zip(pairs, tensors, strict=True)
    ]
    method = PruningContainer()
    method._tensor_name = "all"
    single = pruning_method(**kwargs)
    single._tensor_name = "all"
    method.add_pruning_method(single)
    mask = method.compute_mask(_flat(scores), _flat(masks))
    start = 0
    for (module, name), tensor in zip(pairs, tensors, strict=True):
        end = start + tensor.numel()
        custom_from_mask(module, name, mask[start:end].reshape(tensor.shape))
        start = end


def _flat(tensors: list[Any]) -> Any:
    return _cat([tensor.reshape(-1) for tensor in tensors])


def remove(module: M, name: str) -> M:
    """Make a pruned tensor a parameter with its present value, zeros included; return the module.

    Raises ValueError if it is not pruned.
    """
    hook = _hook_of(module, name)
    if hook is None:
        raise ValueError(f"remove: {name!r} of {type(module).__name__} has to be pruned before pruning can be removed")
    hook.remove(module)
    remove_hook(module, hook)
    return module


def is_pruned(module: Module) -> bool:
    """Return whether a tensor of the module, or of one in it, is pruned.

    >>> from retrograd import nn
    >>> is_pruned(nn.Linear(1, 1))
    False
    """
    return any(_hook_of(one, None) is not None for one in module.modules())


suggest_in_module(globals())
