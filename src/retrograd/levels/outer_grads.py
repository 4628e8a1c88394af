"""`.grad` of outer tensors inside a transform: the program there reads the values that it would without the transform.

A backward pass inside adds the sum over the examples to the tensor itself. Each example reads another value: the value
from before the transform, plus its own gradients. That value is computed when the program reads it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from retrograd.core import Level, Tensor, at, current
from retrograd.core.level import grad_at, graph_below, set_grad_at
from retrograd.core.op import compound
from retrograd.core.tensor import count_of, make

UNKNOWN = object()  # a sum that was not computed yet


class OuterGradLevel(Level):
    """A level whose program reads and writes the `.grad` of outer tensors as if there were no transform."""

    grads_differ = False  # for all of its tensors, also before the program changes them
    grad_starts: Any = None  # shared by several levels: these gradients before the first of them
    grads_in_use: Any = None  # `outer_grads`, once the program or a pass has asked for them

    @property
    def outer_grads(self) -> "OuterGrads":
        """The gradients that differ from those of the tensors, since the level was entered."""
        if self.grads_in_use is None:
            self.grads_in_use = OuterGrads(self)
        return self.grads_in_use

    def get_grad(self, tensor: Tensor) -> Tensor | None:
        """Return the `.grad` of an outer tensor at this level."""
        return self.outer_grads.read(tensor)

    def set_grad(self, tensor: Tensor, value: Tensor | None) -> None:
        """Set the `.grad` of an outer tensor at this level."""
        self.outer_grads.write(tensor, value)

    def read_memory(self, tensor: Tensor) -> Tensor:
        """Return the parent's tensor whose memory holds this one: its value."""
        return tensor.value

    def last_example(self, tensor: Tensor | None) -> Tensor | None:
        """Return a tensor one level below as a loop over the examples would leave it; None stays None."""
        return tensor.value if tensor is not None and tensor.level is self else tensor

    def on_exit(self, error: BaseException | None) -> Callable | None:
        """Return the function that stores the gradients that the program assigned or wrote to; None without any."""
        if self.grads_in_use is None:
            return None
        return partial(self._write_back, [] if error is not None else self.grads_in_use.changed())

    def _write_back(self, changed: list) -> None:
        self.grads_in_use = None
        for tensor, value, assigned in changed:
            if assigned or tensor.grad is None:
                tensor.grad = value
            else:
                with at(current().level, False):
                    tensor.grad.copy_(value)


class OuterGrads:
    """The `.grad` of outer tensors at one level, where it differs from the tensors' own."""

    def __init__(self, level):
        self._level = level
        self._entries = {}  # by the id of a tensor

    def read(self, tensor):
        """Return the gradient of a tensor at this level; None if there is none."""
        if id(tensor) in self._entries or self._level.grads_differ:
            return self._entry(tensor).read()
        return grad_at(graph_below(self._level), tensor)

    def write(self, tensor, value):
        """Assign a gradient; it is written to the tensor when the level has ended."""
        below = graph_below(self._level)
        if not self._level.grads_differ and (value is None or value.level is not self._level):
            self._entries.pop(id(tensor), None)
            set_grad_at(below, tensor, value)
            return
        self._entry(tensor).assign(value)
        set_grad_at(below, tensor, None)  # so that passes do not add to the old gradient, which may be used elsewhere

    def entries(self, tensors, all_of_them):
        """Return the entries of tensors to which a pass will add, if their gradients differ at this level."""
        wanted = all_of_them or self._level.grads_differ
        return [self._entry(t) for t in tensors if wanted or id(t) in self._entries]

    def _entry(self, tensor):
        known = self._entries.get(id(tensor))
        if known is None:
            known = self._entries[id(tensor)] = _Entry(self._level, tensor)
        return known

    def changed(self):
        """Return (tensor, gradient below, was it assigned) for each gradient that the program assigned or wrote to."""
        found = [(e, e.read()) for e in self._entries.values() if e.is_changed()]
        with self._level.below():
            return [(e.tensor, self._level.last_example(g), e.assigned) for e, g in found]

    def state(self, tensor):
        """Return the state with which `restore` undoes later changes of a tensor's gradient."""
        known = self._entries.get(id(tensor))
        return self, tensor, None if known is None else known.state()

    def restore(self, tensor, state):
        """Return to an earlier state."""
        self._entries.pop(id(tensor), None)
        if state is not None:
            self._entry(tensor).set_state(state)

    def undo(self):
        """Undo what this level's passes added to outer tensors, and what its program assigned."""
        for known in self._entries.values():
            known.undo()


class _Entry:
    """`.grad` of one tensor inside a level: the gradient at the beginning, and the terms added since."""

    def __init__(self, level, tensor):
        self.tensor = tensor
        self.assigned = False
        self._level = level
        self._before, self._start = _snapshot(graph_below(level), tensor)
        if level.grad_starts is not None:  # without the terms that other chunks of the batch added
            _, self._start = level.grad_starts.setdefault(id(tensor), (tensor, self._start))
        self._terms = []
        self._value = UNKNOWN  # or the tensor that the program received
        self._version = 0  # its version, as long as the program has not written to it
        self._written = False

    def read(self):
        """Return the gradient as a tensor of the level; the same tensor until it is assigned."""
        if self._value is UNKNOWN:
            with at(self._level, any(recorded for _, recorded in self._terms)):
                self._value = self._total()
            self._version = 0 if self._value is None else count_of(self._value)
        return self._value

    def _total(self):
        with self._level.below():
            start = self._start()
        total = None if start is None else make(start, self._level, None)
        for term, _ in self._terms:
            g = term(self.tensor)
            if g is not None:
                total = g if total is None else total + g
        self._terms = []
        return total

    def add(self, term, recorded):
        """Note that a pass added `term(tensor)`, None for nothing; `recorded` says whether the term has a graph."""
        if isinstance(self._value, Tensor):  # the program holds the gradient, so it must see the sum at once
            self._note_write()
            with at(self._level, recorded):
                g = term(self.tensor)
                if g is not None:
                    self._add_to_value(g, recorded)
            self._version = count_of(self._value)
            return
        if self._value is None:
            self._value, self._start = UNKNOWN, _return_none
        self._terms.append((term, recorded))

    def _add_to_value(self, g, recorded):
        if recorded or self.tensor._grad_fn is not None or self._value.level is not self._level:
            self._value = self._value + g
        else:
            self._value.add_(g)

    def _note_write(self):
        if isinstance(self._value, Tensor) and count_of(self._value) != self._version:
            self._written = True

    def assign(self, value):
        """Set the gradient, as the program did."""
        self.assigned = True
        self._value, self._terms = value, []
        self._version = 0 if value is None else count_of(value)

    def is_changed(self):
        """Return whether the program has assigned the gradient, or written to it."""
        self._note_write()
        return self.assigned or self._written

    def snapshot(self):
        """Return a function that returns the gradient as it is now."""
        if isinstance(self._value, Tensor):  # above the ground a value is never overwritten
            value, tag = self._value.value, self._value.tag
            return lambda: make(value, self._level, tag)
        if self._value is None:
            return _return_none
        copy = _Entry.__new__(_Entry)
        copy.tensor, copy._level, copy._start = self.tensor, self._level, self._start
        copy._terms, copy._value = list(self._terms), UNKNOWN
        return copy.read

    def state(self):
        """Return everything that the program can change."""
        return self.assigned, self._written, self._start, list(self._terms), self._value, self._version

    def set_state(self, state):
        """Return to an earlier state."""
        self.assigned, self._written, self._start, self._terms, self._value, self._version = state

    def undo(self):
        """Undo this level's changes to the gradient below it."""
        self._before()


def _return_none():
    return None


def _snapshot(level, tensor):
    """Return a function that restores the present gradient of a tensor at a level, and one that returns it."""
    if level is None or level is tensor.level:
        return _snapshot_of_own(tensor)
    restore_below, read = _snapshot(graph_below(level), tensor)
    if not isinstance(level, OuterGradLevel):
        return restore_below, read
    grads, _, state = level.outer_grads.state(tensor)

    def restore():
        restore_below()
        grads.restore(tensor, state)

    known = grads._entries.get(id(tensor))
    return restore, read if known is None else known.snapshot()


def _snapshot_of_own(tensor):
    """Return `_snapshot` for the gradient of the tensor itself, to which passes add in place."""
    g = tensor._grad
    if g is None or g.level is not None or g._requires_grad:

        def restore_reference():
            tensor._grad = g

        return restore_reference, lambda: g
    array = g.value.copy()

    def restore_value():
        if compound(g) is None:
            g.value[...] = array
            tensor._grad = g
        else:
            tensor._grad = make(array, None, None)

    return restore_value, lambda: make(array, None, None)
