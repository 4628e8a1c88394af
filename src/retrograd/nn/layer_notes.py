"""Errors inside a model name the layer, and what it was called with."""

from collections.abc import Iterator
from types import CodeType, TracebackType
from typing import Any

from retrograd.foundation.describe_value import describe


class LayerNote(str):
    """The note on an error that names the layer. Each model around it replaces the note."""

    __slots__ = ()


def note_layer(error: Exception, model: Any, call: CodeType) -> None:
    """Add to an error the name of the innermost layer of a model that was running; the model itself needs no name.

    call: the code of `Module.__call__`, by which the running layers are found in the error's traceback.
    """
    if isinstance(error, RecursionError | MemoryError):  # more calls may fail as well
        return
    names = {id(layer): name for name, layer in model.named_modules()}
    for layer, args, kwargs in _running(error.__traceback__, call):
        name = names.get(id(layer))
        if name:
            given = [*map(describe, args), *(f"{key}={describe(value)}" for key, value in kwargs.items())]
            note = f"in layer {name} ({type(layer).__name__}) of {type(model).__name__}, called with {', '.join(given)}"
            notes = [n for n in getattr(error, "__notes__", ()) if not isinstance(n, LayerNote)]
            error.__notes__ = [*notes, LayerNote(note if given else f"{note}no arguments")]
            return


def _running(traceback: TracebackType | None, call: CodeType) -> Iterator[tuple[Any, tuple, dict[str, Any]]]:
    """Yield the modules whose calls are in a traceback with their arguments, the innermost one first."""
    frames = []
    while traceback is not None:
        if traceback.tb_frame.f_code is call:
            frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    for frame in reversed(frames):
        found = frame.f_locals
        yield found["self"], found["args"], found["kwargs"]
