"""Check, before a loop over components, that an operator acts on each component separately."""

from itertools import count as count_from
from typing import Any

from retrograd.backend import allclose
from retrograd.backend.devices import move
from retrograd.backend.ragged import Ragged
from retrograd.core import Op, Tensor, call, current, registry
from retrograd.core.dtype import is_differentiable
from retrograd.core.state import at
from retrograd.core.tensor import unwrap_all
from retrograd.nested.buffer_layout import get_layout, is_nested
from retrograd.nested.dispatch import AcrossComponentsError, NotBatchOfOneError
from retrograd.ops.batch_loop import DataDependent
from retrograd.ops.family import CoreDims
from retrograd.ops.generator import default_generator, fork_rng
from retrograd.ops.view import cat, narrow


def check_dims(op: Op, args: tuple, params: dict) -> None:
    """Refuse an operator that would act along the dimension of the components, since they differ in shape."""
    for i, a in enumerate(args):
        if is_nested(a) and get_layout(a).lead in _acted_dims(op, i, args, params):
            raise AcrossComponentsError(
                f"{op.name}: would act along dimension {get_layout(a).lead}, across the components of a nested tensor, "
                f"whose sizes differ; see to_padded_tensor(), and values() for the rows of all components"
            )


def _acted_dims(op: Op, i: int, args: tuple, params: dict) -> set[int]:
    """Return the dimensions of an input that params name, None meaning all, and those given by the operator's
    family."""
    ndim, most = args[i].ndim, max(a.ndim for a in args if isinstance(a, Tensor))
    if issubclass(op.definition, DataDependent):  # acts on all dimensions
        return set(range(ndim))
    named = [v for k, v in params.items() if k.startswith("dim")]  # a composite interprets None itself
    found = {d % max(most, 1) for v in named for d in (v if isinstance(v, tuple) else (v,)) if isinstance(d, int)}
    if not op.composite and (None in named or () in named):
        found |= set(range(ndim))
    if issubclass(op.definition, CoreDims):
        cores = op.definition.cores
        found |= set(range(max(ndim - cores[min(i, len(cores) - 1)], 0), ndim))
    return found


def check_shapes(op: Op, args: tuple, params: dict) -> None:
    """Apply the shape rule, which refuses some inputs that a kernel accepts."""
    if op.rules is not None and not op.composite and not issubclass(op.definition, DataDependent):
        op.definition.shape(*[a.aval if isinstance(a, Tensor) else a for a in args], **params)


def check_batch(op: Op, example: tuple, batches: list[bool], params: dict, out: Any, lead: int) -> None:
    """Refuse an operator whose result for a component depends on the other components of a batch.

    `example` are the arguments for the component, some of them batches of one, and `out` is the result for it.  The
    operator is run on copies of the component, the last of which has other elements, if it accepts them.
    """
    if op.random or op.definition.impure or op.rules is None:
        return
    count = next(n for n in count_from(3) if all(n not in a.shape for a in example if isinstance(a, Tensor)))
    state = str(default_generator._plain_state())
    with at(current().level, False), fork_rng():
        try:
            found = call(op, _stack_copies(example, batches, count, lead, True), params)
        except (ValueError, TypeError, IndexError, RuntimeError):
            found = _call_on_copies(op, _stack_copies(example, batches, count, lead, False), params)
        draws_random = state != str(default_generator._plain_state())
    pairs = zip(out, found, strict=True) if isinstance(out, tuple) else [(out, found)]
    if not all(_repeats(whole, part, count, lead, draws_random) for part, whole in pairs):
        raise NotBatchOfOneError(
            f"{op.name}: acts across the components of a nested tensor, and can't be mapped over them"
        )


def _stack_copies(example: tuple, batches: list[bool], count: int, lead: int, perturb: bool) -> tuple:
    """Return the arguments for copies of a component, which may be written to."""
    args = [a.clone() if isinstance(a, Tensor) else a for a in example]
    for i, is_batch in enumerate(batches):
        if is_batch:
            last = _perturb(args[i]) if perturb else args[i]
            args[i] = cat([args[i]] * (count - 1) + [last], dim=lead)
    return tuple(args)


def _perturb(x: Tensor) -> Tensor:
    """Return values of the same kind as a tensor's, but different, unless they are all equal."""
    perturb: Tensor = registry["flip"](x, dims=tuple(range(x.ndim)))
    return perturb * 0.75 if is_differentiable(x.dtype) else perturb


def _call_on_copies(op: Op, args: tuple, params: dict) -> Any:
    try:
        return call(op, args, params)
    except (ValueError, TypeError, IndexError) as error:
        text = f"{op.name}: does not take the components of a nested tensor as a batch: {error}"
        raise NotBatchOfOneError(text) from error


def _repeats(whole: Tensor, part: Tensor, count: int, lead: int, draws_random: bool) -> bool:
    """Whether a result repeats `part` along a dimension, except at its last index."""
    if whole.shape != (*part.shape[:lead], count, *part.shape[lead + 1 :]) or whole.dtype != part.dtype:
        return False
    arrays = unwrap_all(narrow(whole, lead, 0, count - 1)), unwrap_all(part)
    if draws_random or any(isinstance(a, Ragged) for a in arrays):
        return True
    return allclose.repeats(*[move(a, None) for a in arrays])
