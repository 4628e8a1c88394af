"""Runs of a program that take the time of each of its calls."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from retrograd.compiler.capture import Program
from retrograd.compiler.player import code_function, explain_error
from retrograd.compiler.program import Add, SetData, SetGrad, Write

_FUNCTIONS = {Write: "assign", Add: "add_into"}  # that the code calls for instructions without a function of their own
Span = tuple[int, int]  # start and end in nanoseconds, as of `time.perf_counter_ns`


@dataclass(frozen=True)
class TimedRun:
    """The result of a run, its span, and those of its calls."""

    result: Any
    span: Span
    spans: list[Span]


class TimedPlayer:
    """Plays a program, and takes the time of each call."""

    def __init__(self, program: Program) -> None:
        source = program.source
        self._source = source
        names = {id(i.function): name for i, name in source.functions(program.played)}
        self._names = [_FUNCTIONS.get(type(i)) or names[id(i.function)] for i in timed_calls(program)]
        timed = {name: self._timed(name, source.objects[name]) for name in {*self._names}}
        self._play = code_function(source, {**source.objects, **timed})
        self._local = threading.local()  # several threads may run the program at a time

    def run(self, tensors: list[Any]) -> TimedRun:
        """Run the program once; errors of kernels are those of the operators."""
        found: dict[str, list[Span]] = {name: [] for name in self._names}
        self._local.spans = found
        start = perf_counter_ns()
        try:
            result = self._play(*tensors)
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            explain_error(self._source, error)
            raise
        end = perf_counter_ns()
        left = {name: iter(spans) for name, spans in found.items()}  # calls of one function ran in their order
        return TimedRun(result, (start, end), [next(left[name]) for name in self._names])

    def _timed(self, name: str, function: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = perf_counter_ns()
            result = function(*args, **kwargs)
            self._local.spans[name].append((start, perf_counter_ns()))
            return result

        return call


def timed_calls(program: Program) -> list[Any]:
    """Return the instructions of a program that call a function."""
    return [i for i in program.played if not isinstance(i, SetGrad | SetData)]


def run_timed(program: Program, tensors: list[Any]) -> TimedRun:
    """Run a program once, with its `TimedPlayer`, which it keeps."""
    if program.timed is None:
        program.timed = TimedPlayer(program)
    run: TimedRun = program.timed.run(tensors)
    return run
