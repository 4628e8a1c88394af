"""For `autograd.functional`: trees of inputs and outputs, checks of arguments, and backward passes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import optree

from retrograd.autograd.backward import grad
from retrograd.core import Tensor, registry
from retrograd.core.aval import describe_difference
from retrograd.core.dispatch import as_operand
from retrograd.core.dtype import is_differentiable
from retrograd.core.views import requires_grad_synced

_FUNCTION = "of the user-provided function is independent of {}"
OUTPUT, JACOBIAN, HESSIAN = [f"The {what} {_FUNCTION}" for what in ("output", "jacobian", "Hessian")]
SLOPE = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to {} is "
    "independent of the input"
)
Grads = Sequence[Tensor | None]
_ARGUMENTS = {"input": "inputs", "output": "outputs of the user-provided function", "entry of v": "v"}
_SINGLE = {"input": "the input to the user-provided function is", "output": "the user-provided function returns"}

# -------------------------------------------------------------------------------------------------- passes backward


def gradients(
    outs: Grads,
    ins: Sequence[Tensor],
    cotangents: Grads,
    create_graph: bool,
    retain_graph: bool | None = None,
    batched: bool = False,
) -> Grads:
    """Return the gradients of the outputs that require grad; None for inputs that they do not depend on."""
    reached = [(out, g) for out, g in zip(outs, cotangents, strict=True) if out is not None and out.requires_grad]
    if not reached or not ins:
        return [None] * len(ins)
    roots, seeds = zip(*reached, strict=True)
    return grad(roots, ins, seeds, retain_graph, create_graph, allow_unused=True, is_grads_batched=batched)


def linear_pullback(outs: Grads, ins: Sequence[Tensor]) -> tuple[Grads, Grads]:
    """Return the inputs' cotangents as functions of the outputs' cotangents, and these: zeros, as it is linear."""
    cotangents = [
        registry["zeros_like"](out.detach()).requires_grad_() if out is not None and out.requires_grad else None
        for out in outs
    ]
    return gradients(outs, ins, cotangents, True), cotangents


def pushforward(back: Grads, cotangents: Grads, vector: Grads, create_graph: bool) -> Grads:
    """Return the derivatives of the outputs along a vector: the transpose of the pullback is the pushforward."""
    found = iter(gradients(back, [g for g in cotangents if g is not None], vector, create_graph))
    return [None if g is None else next(found) for g in cotangents]


def fill_zeros(found: Grads, likes: Sequence[Tensor]) -> list[Tensor]:
    """Return derivatives with zeros, in the shapes of some tensors, for None."""
    return [registry["zeros_like"](x) if g is None else g for g, x in zip(found, likes, strict=True)]


def make_leaf(x: Tensor, create_graph: bool) -> Tensor:
    """Return a tensor that requires grad for an input; a successor of the input in its graph if `create_graph`."""
    out = registry["view_as"](x, x) if create_graph else x.detach()
    return out if requires_grad_synced(out) else out.requires_grad_()  # here, even if it does below a transform


# ------------------------------------------------------------------------------------------- what goes in and out


class Tree(NamedTuple):
    """The tensors in one tensor, or in nested tuples of tensors."""

    kind: str
    leaves: list[Tensor]
    spec: Any

    def like(self, leaves: Sequence[Any]) -> Any:
        """Return the tree's structure with other tensors."""
        return optree.tree_unflatten(self.spec, leaves)

    def with_leaves(self, leaves: list[Tensor]) -> "Tree":
        """Return the tree with other leaves."""
        return self._replace(leaves=leaves)

    @property
    def paths(self) -> list[tuple]:
        """Return the path of each tensor; that of a single tensor is the first position."""
        return [tuple(path) or (0,) for path in self.spec.paths()]

    def label(self, number: int) -> str:
        """Return the name of a tensor for messages: 'input 1', or 'input 1[0]' in a nested tuple."""
        first, *rest = self.paths[number]
        return f"{self.kind} {first}" + "".join(f"[{key}]" for key in rest)


class Call(NamedTuple):
    """The called function and its options."""

    name: str
    create_graph: bool
    strict: bool

    def tree(self, kind: str, value: Any) -> Tree:
        """Return the tensors in an argument or result."""
        leaves, spec = optree.tree_flatten(value, is_leaf=lambda x: not isinstance(x, tuple), none_is_leaf=True)
        if kind != "output":  # an array as result has lost its graph
            leaves = [as_operand(leaf) for leaf in leaves]
        tree = Tree(kind, leaves, spec)
        for i, leaf in enumerate(leaves):
            if not isinstance(leaf, Tensor):
                raise TypeError(
                    f"The {_ARGUMENTS[kind]} given to {self.name} must be either a Tensor or a tuple of Tensors but "
                    f"{self._describe_leaf(tree, i, isinstance(value, tuple))} has type {type(leaf)}; tuples may be "
                    f"nested, and arrays are taken for tensors; see rg.tensor"
                )
        return tree

    @staticmethod
    def _describe_leaf(tree: Tree, number: int, several: bool) -> str:
        """Return PyTorch's name of a wrong value in messages, and its label."""
        if several:
            return f"the value at index {tree.paths[number][0]}, {tree.label(number)},"
        return f"the given {_ARGUMENTS[tree.kind]}"

    def inputs(self, inputs: Any) -> Tree:
        """Return the inputs, all of which must be differentiable."""
        tree = self.tree("input", inputs)
        for i, x in enumerate(tree.leaves):
            if not is_differentiable(x.dtype):
                raise RuntimeError(
                    f"{self.name}: {tree.label(i)} is {x.dtype}, but only floating and complex tensors can require grad"
                )
        return tree

    def make_leaves(self, inputs: Any) -> Tree:
        """Return the inputs for the function's run, ready for backward passes."""
        tree = self.inputs(inputs)
        return tree.with_leaves([make_leaf(x, self.create_graph) for x in tree.leaves])

    def outputs(self, func: Callable, point: Tree) -> Tree:
        """Return the tensors that the function returns."""
        args = point.like(point.leaves)
        outs = self.tree("output", func(*args) if isinstance(args, tuple) else func(args))
        for i, out in enumerate(outs.leaves):
            if self.strict and not out.requires_grad:
                raise RuntimeError(
                    f"{self.name}: {outs.label(i).capitalize()} of the user-provided function does not require "
                    f"gradients. The "
                    f"outputs must be computed in a differentiable manner from the input when running in strict mode"
                )
        return outs

    def scalar_gradient(self, func: Callable, point: Tree) -> tuple[Tree, Grads]:
        """Return the function's scalar result and its gradient, with a graph."""
        outs = self.outputs(func, point)
        if isinstance(outs.like(outs.leaves), tuple):
            raise RuntimeError(f"The function given to {self.name} should return a single Tensor, not a tuple")
        if outs.leaves[0].numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {self.name} should contain a single element, but has "
                f"shape {outs.leaves[0].shape}"
            )
        found = gradients(outs.leaves, point.leaves, [None], True)
        self.check(found, point, SLOPE if self.name == "hessian" else OUTPUT, SLOPE, True)
        return outs, found

    def vector(self, v: Any, tree: Tree) -> Grads:
        """Return the tensors in v, which must match those in the tree."""
        if v is None:
            if len(tree.leaves) != 1 or tree.leaves[0].numel() != 1:
                raise RuntimeError(
                    f"{self.name}: The vector v can only be None if {_SINGLE[tree.kind]} a single Tensor with a single "
                    f"element; got shapes {[x.shape for x in tree.leaves]}"
                )
            return [None]
        given = self.tree("entry of v", v)
        if given.paths != tree.paths:
            count = len(tree.leaves)
            words = "a single Tensor" if tree.paths == [(0,)] else f"{count} Tensors"
            raise RuntimeError(
                f"{self.name}: The given v should contain {words}. v must be one Tensor for each {tree.kind}, in the "
                f"same tuples: at {tree.paths}, but got them at {given.paths}"
            )
        pairs = zip(given.leaves, tree.leaves, strict=True)
        return [self._check_entry(g, x, tree.label(i)) for i, (g, x) in enumerate(pairs)]

    def _check_entry(self, g: Tensor, x: Tensor, label: str) -> Tensor:
        if g.shape != x.shape:
            raise RuntimeError(
                f"{self.name}: v has invalid size: should be {x.shape} but got {g.shape} for {label}"
                f"{describe_difference(x.shape, g.shape)}"
            )
        if (g.dtype.kind == "c") != (x.dtype.kind == "c"):
            raise RuntimeError(f"{self.name}: v is {g.dtype} for {label}, which is {x.dtype}")
        return registry["to"](g, x.dtype)

    def check(self, found: Grads, tree: Tree, missing: str, constant: str, recorded: bool) -> None:
        """Raise what `strict` forbids: missing derivatives, and recorded ones that do not require grad."""
        for i, g in enumerate(found if self.strict else ()):
            if g is None or (recorded and not g.requires_grad):
                why = (missing if g is None else constant).format(tree.label(i))
                raise RuntimeError(f"{self.name}: {why}. This is not allowed in strict mode (strict=True)")

    def fill_missing(self, found: Grads, tree: Tree, missing: str, constant: str) -> list[Tensor]:
        """Return derivatives with respect to a tree's tensors, with zeros for missing ones if that is allowed."""
        self.check(found, tree, missing, constant, self.create_graph)
        return fill_zeros(found, tree.leaves)

    def result(self, tree: Tree, leaves: Sequence[Tensor]) -> Any:
        """Return the result for the caller, a tree like the given one."""
        return tree.like(leaves if self.create_graph else [leaf.detach() for leaf in leaves])
