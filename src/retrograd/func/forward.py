"""Forward mode as function transforms: `jvp`, and `linearize`."""

from collections.abc import Callable
from typing import Any

import optree

from retrograd.core import Op, Tensor, call, registry
from retrograd.core.dtype import is_differentiable
from retrograd.core.level import tags_at, values_at, wrap_result
from retrograd.core.op import compound
from retrograd.core.tensor import make
from retrograd.core.views import is_writable, requires_grad_synced
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.argnums import pytorch_call, split_aux
from retrograd.func.reverse import check_outputs, check_tree
from retrograd.func.vjp_run import unwrap_tree
from retrograd.levels import DualLevel, outputs, value_at
from retrograd.levels.dual import output_tangents, tangent_of
from retrograd.levels.outer_grads import OuterGradLevel
from retrograd.levels.sync_views import sync_views
from retrograd.levels.write_back import was_written, written_value
from retrograd.ops.create import as_tensor
from retrograd.ops.layout import example_strides


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """Return the output of `func` at the primals and its derivative along the tangents, in one forward pass.

    Primals are a tuple of pytrees of tensors; tangents have the same structure.  The derivative has the structure of
    the output; it is zero if the output does not depend on the primals.  With `has_aux` the function returns (output,
    aux), and the result is (output, derivative, aux).  Writes to primals take effect when the function has returned:
    then the caller's primals have the new values, and the caller's tangents the new derivatives.

    Raises RuntimeError for tangents that do not fit, for outputs that are no tensors, and with `strict` for an output
    that does not depend on the primals; ValueError for primals that are not floating.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0])
    >>> rg.func.jvp(lambda x: x * x, (x,), (rg.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    found, written = run_jvp("jvp", func, primals, tangents, strict, has_aux)
    for given, now in written:
        given.copy_(now)
    return found


def run_jvp(
    name: str, func: Callable, primals: tuple, tangents: tuple, strict: bool, has_aux: bool
) -> tuple[tuple, list[tuple[Tensor, Tensor]]]:
    """Run `jvp` for the transform called `name`, which errors mention.

    Return its result, and the primals and tangents that the function wrote to, each with its new value.
    """
    leaves, spec = _check_primals(name, primals)
    ts = check_tree(name, "tangent", tangents, primals, leaves)
    main, aux = split_aux(func, name, has_aux)
    level, duals, out = run_dual(func, lambda args: main(*args), spec, leaves, ts)
    value = unwrap_tree(level, out)
    for o in check_outputs(name, out):
        if strict and (o.level is not level or o.tag is None):
            raise RuntimeError(
                f"jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                f"allowed with strict=True: an output of shape {o.shape} does not depend on the primals"
            )
    tangents_out = optree.tree_map(lambda o: tangent_of(level, o), out)
    found = (value, tangents_out, unwrap_tree(level, aux.pop())) if has_aux else (value, tangents_out)
    return found, _written(level, leaves, ts, duals)


def _written(
    level: DualLevel, primals: list[Tensor], tangents: list[Tensor], duals: list[Tensor]
) -> list[tuple[Tensor, Tensor]]:
    """Return the primals and tangents that the function wrote to, each with its new value."""
    found = []
    for primal, tangent, dual in zip(primals, tangents, duals, strict=True):
        if was_written(dual):
            with level:
                now = written_value(dual)
            found.append((primal, now))
            if dual.shape == tangent.shape and _accepts_write(primal, tangent):
                found.append((tangent, tangent_of(level, dual)))
    return found


def _accepts_write(primal: Tensor, tangent: Tensor) -> bool:
    """Return whether the caller's tangent gets the new derivatives of a primal that was written to, as in PyTorch.

    That is the case if both have their elements in the same memory order; the tangent may be no leaf of a graph.
    """
    if compound(primal) is not None or compound(tangent) is not None:
        return False
    if requires_grad_synced(tangent) and tangent._grad_fn is None:
        return False
    if tangent.level is None and not is_writable(tangent):
        return False
    return example_strides(primal) == example_strides(tangent)


def run_dual(
    function: Callable, of_tree: Callable, spec: Any, leaves: list[Tensor], tangents: list[Tensor]
) -> tuple[DualLevel, list[Tensor], Any]:
    """Return a level, and there the leaves of a tree with tangents and a function's result; errors name `function`."""
    with DualLevel(function) as level:
        duals = [make(x, level, t) for x, t in zip(leaves, tangents, strict=True)]
        return level, duals, sync_views(of_tree(optree.tree_unflatten(spec, duals)))


def _check_primals(name: str, primals: tuple) -> tuple[list[Tensor], Any]:
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: {pytorch_call(name)}: Expected primals to be a tuple: primals must be a tuple of at least one "
            f"argument, got {describe(primals)}"
        )
    tree: Any = primals
    found, spec = optree.tree_flatten(tree)
    if not found:
        raise RuntimeError(
            f"{name}: {pytorch_call(name)}: Expected primals to contain at least one Tensor: primals must be a tuple "
            f"of at least one argument, got {describe(primals)}"
        )
    for leaf in found:
        if not hasattr(leaf, "shape") and not isinstance(leaf, (float, complex)):
            raise RuntimeError(
                f"{name}: {pytorch_call(name)}: Expected primals to only contain Tensors, got {type(leaf)}; use "
                f"rg.tensor({describe(leaf)}), or a closure"
            )
    leaves = [as_tensor(leaf) for leaf in found]
    for leaf in leaves:
        if not is_differentiable(leaf.dtype):
            raise ValueError(
                f"{name}: Expected primal to be floating point or complex, but got: {leaf.dtype}: primals must be "
                f"floating or complex, got {leaf.aval}; convert with .to(dtype)"
            )
    return leaves, spec


# ------------------------------------------------------------------------------------------------- linearised


class TapeLevel(OuterGradLevel):
    """Records the operators that tangents pass through; a tensor's tag is its index on the tape, None is zero."""

    own_mode, forward_mode = False, True
    grads_differ = True

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.steps: list[tuple[Op, tuple, tuple, Any, dict]] = []  # operator, values, indices, result, params
        self.last_uses: list[list[int]] = []  # for each step, the indices that no later one reads
        self.inputs = 0
        self.size = 0

    def input(self, value: Tensor) -> Tensor:
        """Return a tensor whose tangent will be given; all inputs precede the first operator."""
        self.inputs += 1
        return make(value, self, self._next_index())

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator on the values; record it if a tangent can reach it."""
        primals, indices = values_at(self, args), tags_at(self, args)
        out = call(op, primals, params)
        if not op.differentiable or indices is None:
            return wrap_result(self, out, None)
        self.steps.append((op, primals, indices, out, params))
        return outputs(out, self._wrap_output)

    def _wrap_output(self, out: Tensor) -> Tensor:
        """Return an output of an operator on the tape; integer outputs have no index there."""
        index = self._next_index()
        return make(out, self, index if is_differentiable(out.dtype) else None)

    def _next_index(self) -> int:
        self.size += 1
        return self.size - 1

    def finish(self, targets: set[int]) -> None:
        """Finish the tape: only the tangents at some indices are requested."""
        # Walk the tape backwards: an index that no later step reads is used for the last time here, so `run` can free
        # its tangent after this step.
        needed = {None, *targets}
        for _, _, indices, _, _ in reversed(self.steps):
            self.last_uses.append([p for p in set(indices) - needed if p is not None])
            needed.update(indices)
        self.last_uses.reverse()

    def run(self, tangents: list[Tensor]) -> list[Tensor | None]:
        """Return the tangents at all requested indices of the tape."""
        found: list[Tensor | None] = list(tangents)
        for (op, primals, indices, out, params), last_used in zip(self.steps, self.last_uses, strict=True):
            ts = tuple([None if p is None else found[p] for p in indices])
            for p in last_used:
                found[p] = None
            zero = all(t is None for t in ts)
            if not isinstance(out, tuple):
                found.append(None if zero else output_tangents(op, primals, ts, out, params))
                continue
            dots = (None,) * len(out) if zero else output_tangents(op, primals, ts, out, params)
            found += [t for t, o in zip(dots, out, strict=True) if isinstance(o, Tensor)]
        return found


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """Return the output of `func` at the primals, and its derivative there, a linear function of tangents.

    The function runs once; `push(*tangents)` repeats only the operators that tangents pass through, so that many
    tangents are cheap.  Primals and outputs are pytrees of tensors; each tangent has the structure of its primal.

    Raises RuntimeError for tangents that do not fit and for outputs that are no tensors, ValueError for primals that
    are not floating.

    >>> import retrograd as rg
    >>> out, push = rg.func.linearize(rg.sin, rg.zeros(2))
    >>> push(rg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    leaves, spec = _check_primals("linearize", primals)
    with TapeLevel(func) as level:
        out = sync_views(func(*optree.tree_unflatten(spec, [level.input(x) for x in leaves])))
    value = unwrap_tree(level, out)
    check_outputs("linearize", value)
    level.finish({o.tag for o in optree.tree_leaves(out) if o.level is level})

    def push(*tangents: Any) -> Any:
        found = level.run(check_tree("linearize", "tangent", tangents, primals, leaves))

        def tangent_along(o: Tensor) -> Tensor:
            t = found[o.tag] if o.level is level and o.tag is not None else None
            return registry["zeros_like"](value_at(level, o)) if t is None else t

        return optree.tree_map(tangent_along, out)

    return value, push


suggest_in_module(globals())
