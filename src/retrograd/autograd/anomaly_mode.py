"""Anomaly mode: name the forward line at which a backward pass fails, by a NaN or any other error."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from retrograd.autograd.node_views import as_node
from retrograd.autograd.source_lines import format_stack, line_of, stack
from retrograd.core import Tensor, current
from retrograd.core.blocks import Block
from retrograd.core.state import Watcher
from retrograd.core.views import memory_of
from retrograd.foundation.number_arguments import as_switch
from retrograd.foundation.source_location import warn_user


class Trace(NamedTuple):
    """Where a node was made: the stack, and the node whose backward made it, if any."""

    frames: list
    parent: Any = None

    def describe(self, metadata: dict) -> None:
        """Add the entries of a node's metadata that PyTorch has: the traceback, and the parent if there is one."""
        if "traceback_" not in metadata:
            metadata["traceback_"] = [format_stack([frame]) for frame in reversed(self.frames)]
        if self.parent is not None:
            metadata.setdefault("parent_", as_node(self.parent))


class _AnomalyWatcher(Watcher):
    """A watcher of one thread's nodes: stores where each was made, and checks its results."""

    def __init__(self, check_nan: bool) -> None:
        self.check_nan = check_nan
        self._running: Any = None  # the node that runs now

    def on_node_created(self, fn: Any) -> None:
        """Store where a node was made."""
        fn.trace = Trace(stack(), self._running)

    def run_node(self, proceed: Callable, fn: Any, cotangents: tuple) -> list:
        """Run a node; add to an error where the node was made."""
        outer, self._running = self._running, fn
        try:
            gradients = proceed(fn, cotangents)
        except Exception as error:
            error.add_note(f"In the backward of {fn.name()}. {_describe_forward_line(fn.trace)}")
            _warn_with_traceback(fn, error)
            raise
        finally:
            self._running = outer
        if self.check_nan:
            for number, g in enumerate(gradients):
                if g is not None and has_nan(g):
                    raise _nan_error(fn, number, cotangents)
        return gradients


def _nan_error(fn: Any, number: int, cotangents: tuple) -> RuntimeError:
    text = (
        f"Function '{fn.name()}' returned nan values in its {number}th output. That is the gradient for input "
        f"{number}. {_describe_forward_line(fn.trace)}"
    )
    if any(g is not None and has_nan(g) for g in cotangents):
        text += " The gradient that it was given had nan values already."
    error = RuntimeError(text)
    _warn_with_traceback(fn, error)
    return error


def has_nan(tensor: Any) -> bool:
    """Return whether an element is NaN.

    The sum of squares is the fastest pass over an array. It is NaN only if an element is, except for complex numbers
    with infinite parts; so a NaN is confirmed element by element.
    """
    array = tensor
    while isinstance(array, Tensor):
        array = array.value
    array = memory_of(array)
    if 0 in array.strides:  # expanded: check every element only once
        array = array[tuple([slice(0, 1) if stride == 0 else slice(None) for stride in array.strides])]
    flat = array.ravel("K")
    total = flat.dot(flat)
    return total != total and bool((flat != flat).any())


def _describe_forward_line(trace: Trace | None) -> str:
    if trace is None:
        return "Its forward line is unknown: it was made while anomaly mode was off."
    return f"It was made at {line_of(trace.frames[0] if trace.frames else None)}."


def _warn_with_traceback(fn: Any, error: Exception) -> None:
    """Warn with the forward traceback of a node, and of each node whose backward made it.

    If warnings are errors, the texts are printed, and are notes of the current error.
    """
    trace = fn.trace
    texts = [f"Error detected in {_format_traceback(fn.name(), trace, 'caused the error')}"]
    while trace is not None and trace.parent is not None:
        name, trace = trace.parent.name(), trace.parent.trace
        induced = _format_traceback(name, trace, "induced the previous calculation")
        texts.append(f"\n\nPrevious calculation was induced by {induced}")
    for text in texts:
        try:
            warn_user(text)
        except UserWarning:
            error.add_note(text)
            print(text, file=sys.stderr)


def _format_traceback(name: str, trace: Trace | None, did: str) -> str:
    if trace is None:
        return (
            f"{name}. No forward pass information available: anomaly mode was off then. Enable detect anomaly during "
            f"forward pass for more information."
        )
    return f"{name}. Traceback of forward call that {did}:\n{format_stack(trace.frames)}"


def _active_watcher() -> _AnomalyWatcher | None:
    return next((watcher for watcher in current().watchers or () if type(watcher) is _AnomalyWatcher), None)


def _set_watcher(anomaly: _AnomalyWatcher | None) -> None:
    """Replace the anomaly watcher of this thread; other watchers stay."""
    state = current()
    others = tuple([watcher for watcher in state.watchers or () if type(watcher) is not _AnomalyWatcher])
    state.watchers = (*others, anomaly) if anomaly is not None else others or None


class detect_anomaly(Block):
    """Make errors of backward passes in the block name the forward line that created the failing node.

    With `check_nan` a gradient with a NaN in it is a failure too: a RuntimeError that names the node.  Every
    failure is preceded by a UserWarning with the traceback of the forward call.  Only nodes that were made
    inside know their line, so put the forward pass inside as well.  The mode applies to the thread that enters it.

    Cheap enough to leave on: see docs/profiler.md for figures.

    >>> import retrograd as rg, warnings
    >>> x = rg.tensor([-1.0], requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), rg.autograd.anomaly_mode.detect_anomaly():
    ...     x.sqrt().sum().backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output. That is...
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = bool(check_nan)
        self._previous: list[_AnomalyWatcher | None] = []
        warn_user("Anomaly Detection has been enabled: it slows down the program, and is for debugging.")

    def _enter(self) -> None:
        """Watch the graph of this thread."""
        self._previous.append(_active_watcher())
        _set_watcher(_AnomalyWatcher(self._check_nan))

    def _leave(self, *exception: Any) -> None:
        """Restore the watchers from before."""
        if self._previous:
            _set_watcher(self._previous[-1])
            del self._previous[-1]


class set_detect_anomaly(Block):
    """Switch anomaly mode on this thread on or off at once; as a context manager, restore it at the end.

    >>> with set_detect_anomaly(True, check_nan=False):
    ...     is_anomaly_enabled(), is_anomaly_check_nan_enabled()
    (True, False)
    >>> is_anomaly_enabled()
    False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        enabled = as_switch("set_detect_anomaly: mode", mode)
        watcher = _AnomalyWatcher(as_switch("set_detect_anomaly: check_nan", check_nan))
        self._previous = _active_watcher()
        _set_watcher(watcher if enabled else None)

    def _enter(self) -> None:
        """Do nothing, since the mode is set already."""

    def _leave(self, *exception: Any) -> None:
        """Restore the old mode."""
        _set_watcher(self._previous)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on for this thread."""
    return _active_watcher() is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode checks gradients for NaN on this thread; True while it is off, as in PyTorch."""
    anomaly = _active_watcher()
    return anomaly is None or anomaly.check_nan
