"""The context of one call of a `Function`: what forward saves and marks for backward."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from retrograd.autograd.saved_names import SavedTensor
from retrograd.core import GradFn, Tensor, current
from retrograd.core.graph import Packed
from retrograd.core.record import map_saved, saved_output, saved_version
from retrograd.core.tensor import alias, count_of


class FunctionCtx:
    """The context passed from forward to backward: saved tensors, marks, and any attributes that the user sets."""

    needs_input_grad: tuple[bool, ...] = ()
    _inputs: list = []  # noqa: RUF012 (set per call): place, shape and dtype of each tensor among the arguments
    _outputs: list = []  # noqa: RUF012 (set per call): and among what forward returned
    _num_returned = 1  # how many outputs forward returned
    _fixed_outputs: tuple[int, ...] = ()  # the numbers of the outputs that are not differentiable
    to_save: tuple = ()
    _saved_outputs: dict[int, int] = {}  # noqa: RUF012 (never written to): index among the saved -> number of the output
    saved_for_forward: tuple = ()
    dirty_tensors: tuple = ()
    non_differentiable: tuple = ()
    materialize_grads = True
    _materialize_non_diff_grads = True  # if False, outputs that are not differentiable get None instead of zeros
    _node: Callable[[], GradFn | None] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save inputs, outputs or other tensors (or None) for backward, which reads them as `saved_tensors`.

        Unlike attributes they are checked for in-place changes, freed with the graph, and passed to
        `saved_tensors_hooks`.
        """
        for index, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {index} is of type "
                    f"{type(tensor).__name__}; set an attribute of ctx instead"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`."""
        for index, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_forward can only save variables, but argument {index} is of type {type(tensor).__name__}"
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Mark inputs that forward has written to; each of them must be returned."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Warn that this is deprecated, and do nothing: views are tracked without it."""
        warnings.warn(
            "mark_shared_storage is deprecated: views are tracked without it", category=FutureWarning, stacklevel=2
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Mark outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (the default) or None for outputs without cotangent."""
        self.materialize_grads = bool(value)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors of `save_for_backward`, connected to the graph."""
        if self.saved_for_forward:
            return self.saved_for_forward
        fn = None if self._node is None else self._node()
        return self.to_save if fn is None else fn.op.saved(fn)

    saved_variables = saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """The saved tensors before they are unpacked: see `SavedTensor.register_hooks`."""
        fn = None if self._node is None else self._node()
        if fn is None or fn.freed:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                "already been freed): specify retain_graph=True in the first pass to read them after it"
            )
        return tuple([SavedTensor(fn, index) for index in range(len(fn.saved or ()))])


def context_like(ctx: FunctionCtx) -> FunctionCtx:
    """Return a ctx for another node of the same kind: with the same attributes, and without a node."""
    made: FunctionCtx = object.__new__(type(ctx))
    vars(made).update(vars(ctx))
    made._node = None
    return made


def save_tensors(fn: GradFn, ctx: FunctionCtx, outputs: tuple) -> None:
    """Save the tensors of `save_for_backward`; outputs without history, so that the node does not hold itself."""
    saved: list[Any] = []
    versions = []
    for tensor in ctx.to_save:
        number = _output_index(tensor, outputs)
        if number is not None and (tensor._grad_fn is fn or contains_tensor(tensor, ctx.dirty_tensors)):
            ctx._saved_outputs = {**ctx._saved_outputs, len(saved): number}
            versions.append(count_of(tensor))
            tensor = saved_output(tensor)
        else:
            versions.append(0 if tensor is None else saved_version(fn.op, tensor))
        saved.append(tensor)
    state = current()
    fn.saved = (
        tuple(saved) if state.saving is None else map_saved(tuple(saved), functools.partial(Packed, state.saving))
    )
    fn.versions = tuple(versions) if any(versions) else None  # type: ignore[attr-defined]


def _output_index(tensor: Tensor | None, outputs: tuple) -> int | None:
    for number, out in enumerate(outputs):
        if out is tensor:
            return number
    return None


def contains_tensor(tensor: Any, tensors: tuple) -> bool:
    """Return whether one of some tensors is this object."""
    for other in tensors:  # noqa: SIM110 (twice as quick; `in` would compare elements)
        if other is tensor:
            return True
    return False


def unpack_saved(fn: GradFn) -> tuple[Tensor | None, ...]:
    """Return the tensors that a call saved with its ctx, with its outputs connected to its node again."""
    if fn.freed:
        fn.value(0)  # raises the error that it was freed
    if fn.saved is None:
        return ()
    versions, outputs = fn.versions, fn.params["ctx"]._saved_outputs
    found = []
    for index, saved in enumerate(fn.saved):
        tensor = fn.restore(saved, 0 if versions is None else versions[index])
        if index in outputs:
            tensor = alias(tensor, fn)
            tensor._output_nr = outputs[index]
        found.append(tensor)
    return tuple(found)
