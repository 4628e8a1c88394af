"""The context of one call of a `Function`: what forward saves and marks for backward."""

from collections.abc import Callable
from types import NoneType
from typing import Any

from retrograd.autograd.saved_names import SavedTensor
from retrograd.core import GradFn, Tensor
from retrograd.core.function_node import unpack_saved
from retrograd.foundation.source_location import warn_user


class _DefaultFlags:
    clear_saved_tensors_on_access = False


def flag(cls: Any, name: str) -> bool:
    """Return the value of an attribute that a Function sets to True or False; raise RuntimeError for others."""
    value = getattr(cls, name)
    if not isinstance(value, bool):
        raise RuntimeError(f"{name} must be a bool, got {type(value).__name__}: set it in class {cls.__name__}")
    return value


def explain_unset(ctx: Any, error: AttributeError) -> None:
    """Add to the error of an attribute that ctx lacks how it is set.

    A `__getattr__` of the class would lengthen each access to an attribute that it has.
    """
    if error.obj is ctx:
        error.args = (f"{error}; forward, or setup_context, sets what backward reads: ctx.{error.name} = ...",)


class FunctionCtx:
    """The context passed from forward to backward: saved tensors, marks, and any attributes that the user sets."""

    _forward_cls: Any = _DefaultFlags  # the Function, if it is the ctx of one
    _is_cleared = False  # the saved tensors have been read, and are kept no more
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
        _check_tensors(TypeError, "save_for_backward can only save variables", tensors, (Tensor, NoneType))
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`."""
        _check_tensors(TypeError, "save_for_forward can only save variables", tensors, (Tensor, NoneType))
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Mark inputs that forward has written to; each of them must be returned."""
        _check_tensors(RuntimeError, "mark_dirty can only accept variables", args)
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Warn that this is deprecated, and do nothing: views are tracked without it."""
        warn_user("mark_shared_storage is deprecated: views are tracked without it", FutureWarning)

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Mark outputs that have no gradient."""
        _check_tensors(RuntimeError, "mark_non_differentiable only accepts variable arguments", args)
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
        if fn is None:
            return self.to_save
        return unpack_saved(fn) if self._forward_cls.clear_saved_tensors_on_access is False else self._read_once(fn)

    def _read_once(self, fn: GradFn) -> tuple[Tensor | None, ...]:
        """Return the saved tensors, which the node then keeps no more; raise RuntimeError the second time."""
        flag(self._forward_cls, "clear_saved_tensors_on_access")
        if self._is_cleared:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
                "autograd.Function: keep what the first access returned"
            )
        found: tuple[Tensor | None, ...] = unpack_saved(fn)
        if fn.saved is not None:
            fn.saved, self._is_cleared = (), True
        return found

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The deprecated name of saved_tensors."""
        warn_user("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

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


def _check_tensors(error: type[Exception], rule: str, values: tuple, kinds: Any = Tensor) -> None:
    """Raise an error if a value is of none of these classes."""
    for index, value in enumerate(values):
        if not isinstance(value, kinds):
            raise error(f"{rule}, but argument {index} is of type {type(value).__name__}; set an attribute of ctx")
