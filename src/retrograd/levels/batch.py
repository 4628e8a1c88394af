"""The level of `vmap`: a program for one example runs on all examples at once."""

from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

from retrograd.core import NotBatchedError, Op, Tensor, call, registry
from retrograd.core.aval import SymbolicSize
from retrograd.core.dispatch import call_fast
from retrograd.core.level import tagged_at, values_at, wrap_result
from retrograd.core.tensor import make
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.foundation.source_location import user_line
from retrograd.levels.outer_grads import OuterGradLevel
from retrograd.levels.unwrap import value_at
from retrograd.ops import batch_loop
from retrograd.ops.batching import batch_all, broadcast_batch
from retrograd.ops.generator import resolve_generator

RANDOMNESS = ("error", "different", "same")


class ArgumentTag(str):
    """The tag of an argument of `vmap` whose batch dimension is not the first of the tensor that the caller gave."""

    __slots__ = ("dim", "given", "moved")

    dim: int  # the batch dimension of `given`
    given: Tensor  # the caller's tensor
    moved: Tensor  # its view with the batch dimension first

    @classmethod
    def of(cls, moved: Tensor, given: Tensor, dim: int) -> str:
        """Return the tag of an argument, a plain string if its batch dimension is the first."""
        if dim == 0:
            return "the argument"
        tag = cls("the argument")
        tag.moved, tag.given, tag.dim = moved, given, dim
        return tag


class VmapLevel(OuterGradLevel):
    """A tensor with a tag (the name of its operator) has the examples along the first dimension of its value.

    A tensor without a tag is the same for all examples.
    """

    wrapper = "BatchedTensor"
    own_mode = False
    grads_differ = True

    def __init__(self, size: int, randomness: str = "error", function: Callable | None = None) -> None:
        self.size = size
        self.randomness = randomness
        self.function = function

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the shape of one example."""
        shape: tuple[int, ...] = tensor.value.shape
        return shape if tensor.tag is None else shape[1:]

    def differs(self, x: Any) -> bool:
        """Return whether this is a tensor of this level that differs between examples."""
        return isinstance(x, Tensor) and x.level is self and x.tag is not None

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator on all examples at once, by its batching rule."""
        values = values_at(self, args)
        batched = tagged_at(self, args)
        if op.random:
            return self._process_random(op, values, batched, params)
        if True not in batched and not _has_ragged_shape(params):
            return wrap_result(self, call_fast(op, values, params), None)
        if True not in batched:  # the result differs between the examples, at least in size
            values = tuple(batch_all(values, batched, self.size))
            batched = tuple([isinstance(v, Tensor) for v in values])
        rule = op.definition.batch
        given = {"vmap_operands": VmapOperands(self, args)} if _accepts_operands(rule.__code__) else {}
        try:
            out = rule(batched, self.size, *values, **params, **given)
        except (ValueError, TypeError, IndexError, AttributeError):
            if not given:
                # The shape rule raises an error in terms of one example.
                op.definition.shape(*batch_loop.example_avals(batched, values), **params)
            raise
        return wrap_result(self, out, op.name)

    def _process_random(self, op: Op, values: tuple, batched: tuple[bool, ...], params: dict) -> Any:
        """Draw random numbers for each example: the same or different ones."""
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap: "
                f"{op.name} draws random numbers; pass randomness='different' to draw others for each "
                f"example, or randomness='same'"
            )
        if self.randomness == "different":
            values = tuple(batch_all(values, batched, self.size))
            out = op.definition.batch(tuple([isinstance(v, Tensor) for v in values]), self.size, *values, **params)
        elif True not in batched:
            return wrap_result(self, call(op, values, params), None)
        else:
            out = self._process_random_same(op, values, batched, params)
        return wrap_result(self, out, op.name)

    def _process_random_same(self, op: Op, values: tuple, batched: tuple[bool, ...], params: dict) -> Any:
        """Draw for each example from the same generator state."""
        source = resolve_generator(params.get("generator"))
        before, results = source._plain_state(), []
        for example in batch_loop.iter_examples(batched, self.size, values):
            source._set_plain_state(before)
            results.append(call(op, example, params))
        return batch_loop.stack_results(results) if results else batch_loop.empty_batch(op, batched, values, params)

    def read(self, tensor: Tensor) -> Any:
        """Return the value if it is the same for all examples, else raise."""
        if tensor.tag is None:
            return tensor.value
        if not self.active:
            raise self.escape_error(tensor)
        raise NotBatchedError(
            f"vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow, or to read "
            f"its values, as by calling .item() on a Tensor: at {user_line()} the program asks for the value of a "
            f"tensor that differs between examples: the result of {tensor.tag}, {tensor.aval}. Instead of `if` use "
            f"where(condition, a, b), instead of .item() or float() go on with the tensor; or run example by example, "
            f"by vmap(..., fallback='loop')."
        )

    def escape_error(self, tensor: Tensor) -> RuntimeError:
        """Return the error for a tensor of this level that is used while the level is not current."""
        return RuntimeError(
            f"Either your tensor may have escaped from inside a function being vmapped, or a level is used too early: "
            f"{super().escape_error(tensor)}"
        )

    def lower_write(self, name: str, x: Tensor, operands: tuple) -> list | None:
        """Return the tensors of a write, which is made once for all examples: the same values for each of them."""
        if any(self.differs(t) for t in (x, *operands)):
            random = (
                " Randomness 'different' draws other numbers for each example, and vmap can't do different inplace "
                "randomness on an unbatched tensor."
                if self.randomness == "different"
                else ""
            )
            raise RuntimeError(
                f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
                f"extra_args that has more elements than `self`: {name} would write other values for each example into "
                f"a tensor of shape {x.shape} that all examples share.{random} Use an out-of-place operator, or pass "
                f"the tensor with a batch dimension."
            )
        return [value_at(self, t) for t in (x, *operands)]

    def value_as_given(self, tensor: Tensor) -> tuple[Tensor, int | None]:
        """Return the value of a tensor with its batch dimension where the caller of `vmap` has it, and that dimension.

        The value of an argument is the caller's tensor, so a user's batching rule may write to it.
        """
        tag = tensor.tag
        if not isinstance(tag, ArgumentTag):
            return tensor.value, None if tag is None else 0
        if tensor.value is tag.moved:
            return tag.given, tag.dim
        return registry["movedim"](tensor.value, 0, tag.dim), tag.dim  # it was written to

    def all_examples(self, tensor: Any) -> Tensor:
        """Return all examples of a tensor one level below, along the first dimension."""
        return tensor.value if self.differs(tensor) else broadcast_batch(value_at(self, tensor), self.size)

    def lower(self, tensor: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
        """Return a tensor and its cotangent one level below; a shared tensor gets the sum over the examples."""
        if tensor.tag is not None:
            return tensor.value, self.all_examples(cotangent)
        return tensor.value, registry["sum"](self.all_examples(cotangent), dim=0)

    def lower_passes(self, pairs: list, per_example: bool) -> list:
        """Return one pass for the sum over the examples, or, if `per_example`, one for each, as hooks see in a loop."""
        if not per_example:
            return [[self.lower(x, g) for x, g in pairs]] if self.size else []
        seeds = [self.all_examples(g) for _, g in pairs]
        values = [value_at(self, x) for x, _ in pairs]
        return [
            list(zip(values, self._mask_examples([x for x, _ in pairs], seeds, i), strict=True))
            for i in range(self.size)
        ]

    def last_example(self, tensor: Tensor | None) -> Tensor | None:
        """Return the value of the last example."""
        below: Tensor | None = value_at(self, tensor)
        return below[-1] if below is not None and self.differs(tensor) else below

    def vjp_below(self, pullback: Callable, roots: list, cotangents: list, inputs: list) -> list:
        """Return the cotangents of inputs for each example; those of shared inputs take one pass for each example."""
        # A tensor that differs between the examples gets all of its cotangents from one pass. A shared tensor has one
        # node for all examples, so its cotangent for one example needs a pass with the other examples' seeds set to 0.
        seeds = [self.all_examples(g) for g in cotangents]
        shared = [not self.differs(x) for x in inputs]
        alone = (
            [self._pull_one_example(pullback, roots, seeds, inputs, i) for i in range(self.size)] if any(shared) else []
        )
        together = [] if all(shared) else self._pull_batched(pullback, roots, cotangents, inputs)
        if not self.size:
            together = [registry["zeros"]((0, *x.shape), dtype=x.dtype) for x in inputs]
        found = [
            _stack_cotangents([gs[k] for gs in alone]) if s and alone else together[k] for k, s in enumerate(shared)
        ]
        return [g if g is None else make(g, self, "the gradient") for g in found]

    def _pull_batched(self, pullback: Callable, roots: list, cotangents: list, inputs: list) -> list:
        """Return the cotangents of the inputs that differ between the examples, in one pass."""
        lowered = [self.lower(r, g) for r, g in zip(roots, cotangents, strict=True)]
        found: list = pullback([r for r, _ in lowered], [g for _, g in lowered], [value_at(self, x) for x in inputs])
        return found

    def _pull_one_example(self, pullback: Callable, roots: list, seeds: list, inputs: list, i: int) -> list:
        """Return the cotangents for the i-th example."""
        mine = self._mask_examples(roots, seeds, i)
        return pullback([value_at(self, r) for r in roots], mine, [value_at(self, x) for x in inputs])

    def _mask_examples(self, roots: list, seeds: list, i: int) -> list[Tensor]:
        """Return the cotangents with all examples except the i-th set to zero."""
        return [g[i] if r.tag is None else mask_examples(g, i) for r, g in zip(roots, seeds, strict=True)]


class VmapOperands(NamedTuple):
    """The operands of a call at a level of `vmap`, for the batching rules that users write."""

    level: VmapLevel
    operands: tuple

    def as_given(self, trees: bool = False) -> tuple[list, list]:
        """Return the operands one level below and their batch dimensions, as `VmapLevel.value_as_given`.

        With `trees`, an operand may be a pytree of tensors, and so is its batch dimension then.
        """
        if not trees:
            pairs = [self._as_given(x) for x in self.operands]
            return [x for x, _ in pairs], [d for _, d in pairs]
        tree: Any = list(self.operands)
        optree = lazy_module("optree")  # importing it is slow
        leaves, spec = optree.tree_flatten(tree, none_is_leaf=True)
        found: Any = [self._as_given(x) for x in leaves]
        given: Any = optree.tree_unflatten(spec, [x for x, _ in found])
        dims: Any = optree.tree_unflatten(spec, [d for _, d in found])
        return given, dims

    def _as_given(self, x: Any) -> tuple[Any, int | None]:
        return self.level.value_as_given(x) if isinstance(x, Tensor) and x.level is self.level else (x, None)

    def value_if_given(self, x: Tensor, dim: int | None) -> Tensor | None:
        """Return an operand's value if x is that operand as given, which a rule wrote to and returned; else None."""
        for operand in self.operands:
            tag = operand.tag if isinstance(operand, Tensor) and operand.level is self.level else None
            if isinstance(tag, ArgumentTag) and tag.given is x and tag.dim == dim and operand.value is tag.moved:
                return tag.moved
        return None


@cache
def _accepts_operands(code: CodeType) -> bool:
    """Return whether a batching rule has the argument `vmap_operands`, as those of users' operators."""
    return "vmap_operands" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _has_ragged_shape(params: dict) -> bool:
    """Return whether a param is a shape of one example with a size that differs between the examples."""
    for shape in params.values():
        if type(shape) is tuple:
            for place, size in enumerate(shape):
                if isinstance(size, SymbolicSize):
                    return bool(size.is_example_dim(place))
    return False


def mask_examples(g: Tensor, i: int) -> Tensor:
    """Return zeros except for the i-th entry of g along the first dimension."""
    return registry["index_sum"](g[i : i + 1], registry["full"]((1,), i, dtype="int64"), dim=0, size=g.shape[0])


def _stack_cotangents(gs: list) -> Tensor | None:
    """Return the stacked cotangents of all examples, zeros for None; None if all are None."""
    known = next((g for g in gs if g is not None), None)
    if known is None:
        return None
    return registry["stack"]([registry["zeros_like"](known) if g is None else g for g in gs])
