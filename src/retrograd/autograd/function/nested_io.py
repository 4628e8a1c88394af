"""Functions of nested structures: a `Function` whose arguments and results are pytrees."""

from typing import Any

import optree

from retrograd.autograd.function.arguments import find_foreign
from retrograd.autograd.function.base import Function, recording_level
from retrograd.autograd.function.context import FunctionCtx
from retrograd.core import Tensor
from retrograd.core.overrides import override_result


class NestedIOFunction(Function):
    """A Function whose arguments and results may be nested in tuples, lists, dicts and other pytrees.

    Define static `forward_extended(ctx, *args)` and `backward_extended(ctx, *grads)`: the latter gets
    gradients in the structure of the result, and returns one per argument in its structure; None for an argument
    without gradient.

    >>> import retrograd as rg
    >>> class Both(rg.autograd.NestedIOFunction):
    ...     @staticmethod
    ...     def forward_extended(ctx, pair):
    ...         return {"sum": pair["a"] + pair["b"]}
    ...     @staticmethod
    ...     def backward_extended(ctx, grads):
    ...         return ({"a": grads["sum"], "b": grads["sum"]},)
    >>> a, b = rg.ones(1, requires_grad=True), rg.ones(1, requires_grad=True)
    >>> Both.apply({"a": a, "b": b})["sum"].backward()
    >>> a.grad
    tensor([1.])
    """

    @staticmethod
    def forward_extended(ctx: FunctionCtx, *args: Any) -> Any:
        """Compute the nested result."""
        raise NotImplementedError("a NestedIOFunction defines forward_extended")

    @staticmethod
    def backward_extended(ctx: FunctionCtx, *grad_output: Any) -> Any:
        """Compute the nested gradients of the arguments."""
        raise NotImplementedError("a NestedIOFunction defines backward_extended")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward on the nested arguments."""
        leaves, structure = flatten(args)
        foreign = find_foreign(leaves)
        if foreign:
            return override_result(cls._operator, foreign, args, {})
        level = recording_level(leaves)
        if level is not None:
            return level.record_call(cls._operator, args, {})
        *flat, output = _Flat.apply(cls, structure, *leaves)
        return optree.tree_unflatten(output, flat)


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of a pytree, with None as a leaf, and its structure."""
    return optree.tree_flatten(tree, none_is_leaf=True)


class _Flat(Function):
    """A NestedIOFunction on the leaves of its arguments."""

    @staticmethod
    def forward(ctx: FunctionCtx, cls: type[NestedIOFunction], structure: Any, *leaves: Any) -> tuple:
        ctx.cls, ctx.structure = cls, structure  # type: ignore[attr-defined]
        output = cls.forward_extended(ctx, *optree.tree_unflatten(structure, list(leaves)))
        flat, ctx.output = flatten(output)  # type: ignore[attr-defined]
        return (*flat, ctx.output)  # type: ignore[attr-defined]

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor | None) -> tuple:
        cls: type[NestedIOFunction] = ctx.cls  # type: ignore[attr-defined]
        nested = optree.tree_unflatten(ctx.output, list(grads[:-1]))  # type: ignore[attr-defined]
        result = cls.backward_extended(ctx, nested)
        result = result if isinstance(result, tuple) else (result,)
        structures = ctx.structure.children()  # type: ignore[attr-defined]
        if len(result) != len(structures):
            raise RuntimeError(
                f"{cls.__name__}: backward_extended must return a gradient or None for each of the "
                f"arguments of forward_extended: expected {len(structures)}, got {len(result)}"
            )
        flat: list = [None, None]
        for value, structure in zip(result, structures, strict=True):
            flat += [None] * structure.num_leaves if value is None else structure.flatten_up_to(value)
        return tuple(flat)
