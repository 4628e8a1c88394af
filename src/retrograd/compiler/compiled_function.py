"""Functions that are captured at their first call, and replaced by a program in later calls."""

import functools
import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from retrograd.autograd.profiler.recorder import lone_recorders
from retrograd.compiler.capture import Capture, Program
from retrograd.compiler.function_in_parts import (
    Callees,
    FunctionInParts,
    code_of,
    function_of,
    method_of,
    split_refused,
)
from retrograd.compiler.function_source import FunctionSource, read_source
from retrograd.compiler.graph_breaks import Breaks
from retrograd.compiler.group_report import group_names
from retrograd.compiler.program_kind import MOST_UNUSED, ProgramKind
from retrograd.compiler.recorder import CALLED, Recorder
from retrograd.compiler.stance import current_stance, stances
from retrograd.compiler.surroundings import FunctionHolder
from retrograd.compiler.timed_run import run_timed
from retrograd.core import current
from retrograd.core.guards import NO_MATCH, GuardedCall
from retrograd.core.level import TransparentLevel
from retrograd.core.state import at, override_state
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.foundation.source_location import describe_function, warn_user

LIMIT = 8  # of programs for one function, as in PyTorch
TRIES = 3  # captures of a function that changes Python objects, as it may do so only once, or runs no operator
_functions: "weakref.WeakSet[CompiledFunction]" = weakref.WeakSet()


class CompiledFunction(FunctionHolder):
    """A function that runs by programs, captured from calls of it; where that is not possible, in parts, or eagerly."""

    _is_whole = True  # whether a user has asked to compile it
    _source: FunctionSource | None = None  # of a part

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool = False,
        limit: int = LIMIT,
        name: str | None = None,
        dynamic: bool | None = None,
    ) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._name = name
        self._fullgraph = fullgraph
        self._limit = limit
        self._dynamic = dynamic
        self._lock = threading.Lock()  # one thread captures at a time
        self.reset()
        _functions.add(self)

    def reset(self) -> None:
        """Forget all programs, and the warnings that were given."""
        self.programs: list[Program] = []  # in the order of their captures
        self._latest: GuardedCall | None = None  # of the program that ran last, if it can be called so
        self._recent: list[Program] = []  # the latest one that ran is first; the list is replaced, never changed
        self._refused: dict[bool, str] = {}  # by grad mode: why the function runs eagerly
        self._tries: dict[bool, int] = {}  # by grad mode: the number of captures that were refused
        self._in_parts: FunctionInParts | None = None
        self._state_breaks: Breaks | None = None  # where the latest captured call may replace state outside
        self._idle = 0  # the number of captures in which no operator ran
        if self._is_whole:
            self._callees = Callees(self._compile_callee)
            self._callees.add(self._function, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        latest = self._latest
        if latest is not None and not kwargs and not stances.were_set:
            result = latest.run(args)
            if result is not NO_MATCH:
                return result
        return self._call(args, kwargs)

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call for which the latest program is not known to be right."""
        reason = reason_to_run_eagerly()
        if reason:
            return self._run_observed(reason, args, kwargs)
        stance = current_stance()
        if stance == "force_eager":
            return self._function(*args, **kwargs)
        if self._in_parts is not None and self.in_parts is not None:
            return self._in_parts(*args, **kwargs)
        found = self.find_program(args, kwargs)
        if found is not None:
            program, tensors = found
            program.uses += 1
            if not program.is_planned:
                program.write(program.parts)  # its sizes have come again
            if program is not self._recent[0]:
                self._move_to_front(program)
            self._latest = program.guarded_call() if self._in_parts is None else None
            return program.run(tensors)
        if stance == "fail_on_recompile":
            raise RuntimeError(
                f"compile: {self.name} has no program for this call, and the stance is 'fail_on_recompile': call it "
                f"with such arguments before, or use another stance"
            )
        if stance == "eager_on_recompile":
            return self._function(*args, **kwargs)
        return self._capture(args, kwargs)

    def find_program(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Program, list[Any]] | None:
        """Return the program for a call, and the tensors among its arguments; None if there is none."""
        for program in self._recent:
            tensors = program.match(args, kwargs)
            if tensors is not None:
                return program, tensors
        return None

    def aot_compile(self, example_inputs: tuple[tuple, dict[str, Any]]) -> Any:
        """Return the programs of the function as one that has no Python code.

        It can be saved by its method `save_compiled_function(path)` and loaded by
        `rg.compiler.load_compiled_function`, also in another process, and it can be pickled. It has the program for the
        example, and those of earlier calls whose guards of anything but arguments hold now; only arguments and tensors
        are guarded from now on. `example_inputs` are the positional arguments, and those by name. If there is no
        program for them, the call runs, with all its effects.

        Raises RuntimeError if the function runs in parts or eagerly.

        Source: the names are those of torch.compile.

        >>> import retrograd as rg
        >>> compiled = rg.compile(lambda x: x * 2, fullgraph=True).aot_compile(((rg.ones(2),), {}))
        >>> compiled(rg.ones(2))
        tensor([2., 2.])
        >>> compiled(rg.ones(3))
        Traceback (most recent call last):
        RuntimeError: <lambda> (...): the compiled function has no program for this call: the shape changed from (2,) to
        (3,) of argument 0. Compile it for such arguments, too, before it is saved
        """
        return self._aot_compile(example_inputs, None)

    def _aot_compile(self, example_inputs: tuple[tuple, dict[str, Any]], module: Any) -> Any:
        """Compile ahead of time the call of a module, or of a function if it is None."""
        return lazy_module("retrograd.compiler.saved_function").aot_compile(self, example_inputs, module)

    def __reduce__(self) -> Any:
        """Return how a copy is made: with the function, and without its programs."""
        return type(self), (self._function, self._fullgraph, self._limit, self._name, self._dynamic)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {self.name}: {len(self.programs)} programs>"

    def _capture(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call for which there is no program, and make one if possible."""
        if self.is_idle and not self._is_whole:
            self.programs = self._recent = []
            return self._function(*args, **kwargs)
        mode = current().grad_enabled
        refusal = self._refused.get(mode)
        if refusal is not None:
            return self._run_eagerly(refusal, args, kwargs)
        known = None if self._is_whole or self._source else self._callees.known_refusal(mode, self._function)
        if known is not None:
            self._refuse(mode, *known)
            return self._call(args, kwargs)
        if inspect.isgeneratorfunction(function_of(self._function)):
            self._refuse(mode, "it is a generator", Breaks())
            return self._run_eagerly("it is a generator", args, kwargs)
        if sys.getprofile() is not None:
            return self._run_eagerly("a profiling function is set by sys.setprofile", args, kwargs)
        kind = next((p.kind for p in self.programs if p.is_for_sizes(args, kwargs)), None)
        reason = self._reason_against_program(kind, args, kwargs)
        if reason:
            if self._state_breaks is not None:  # perhaps the state differs each time: parts do without
                self._refuse(mode, reason, self._state_breaks)
            return self._run_eagerly(reason, args, kwargs)
        with self._lock:
            found = self.find_program(args, kwargs)  # that another thread has made meanwhile
            if found is None:
                found = self._make_program(kind, args, kwargs)
            if found is None:
                capture = Capture(self._function, args, kwargs)
                self._keep_capture(capture, kind)
        if found is not None:
            return found[0].run(found[1])
        self._idle += capture.recorder.operators == 0
        if capture.program is None:
            self._note_refusal(capture)
            if self._is_whole or capture.recorder.operators:
                self._report(capture.refusal)
        return capture.result

    def _make_program(
        self, kind: ProgramKind | None, args: tuple, kwargs: dict[str, Any]
    ) -> tuple[Program, list[Any]] | None:
        """Return a program for sizes between captured ones, and the tensors; None if only a capture can make one."""
        program = None if kind is None else kind.symbolic.make(args, kwargs)
        if program is None:
            return None
        program.uses = 1
        self._keep(program)
        return program, program.arguments.tensors

    def _keep_capture(self, capture: Capture, kind: ProgramKind | None) -> None:
        """Keep the program of a capture, if it has one."""
        program = capture.program
        if program is not None:
            self._state_breaks = capture.breaks_in(code_of(self._function)) if program.sets_state else None
            program.kind = kind or ProgramKind(capture.arguments.tensors, self._dynamic)
            self._keep(program)
            program.kind.symbolic.add(program)

    def _keep(self, program: Program) -> None:
        self._recent = [program, *program.kind.drop(self._recent)]
        self.programs = [*[p for p in self.programs if p in self._recent], program]

    def _reason_against_program(self, kind: ProgramKind | None, args: tuple, kwargs: dict[str, Any]) -> str:
        """Return why no program is made for a call; "" if one is."""
        if kind is not None and kind.is_exhausted:
            return f"{MOST_UNUSED} programs were made for sizes that did not come again, and no more are made"
        if kind is not None or len({id(p.kind) for p in self.programs}) < self._limit:
            return ""
        changed = self.programs[-1].find_difference(args, kwargs)
        return f"there are {self._limit} programs already, and no more are made; since the last, {changed}"

    def _move_to_front(self, program: Program) -> None:
        """Let a program be the first one that is tried, unless another thread changes the programs."""
        if self._lock.acquire(blocking=False):
            try:
                if program in self._recent:
                    self._recent = [program, *[p for p in self._recent if p is not program]]
            finally:
                self._lock.release()

    def _note_refusal(self, capture: Capture) -> None:
        """Let later calls run eagerly, unless one of them may be captured after this one has changed objects."""
        mode, recorder = capture.modes.grad_enabled, capture.recorder
        self._tries[mode] = self._tries.get(mode, 0) + 1
        may_pass_later = capture.has_changes or capture.watch.may_pass_later
        if self._tries[mode] == TRIES or (recorder.operators and not may_pass_later):
            self._callees.note_refusal(capture)
            self._refuse(mode, capture.refusal, capture.breaks_in(code_of(self._function)))

    def _refuse(self, mode: bool, reason: str, breaks: Breaks) -> None:
        """Let calls in a grad mode run in parts, if the function has any, or eagerly."""
        self._refused[mode], self._latest = reason, None
        if self._in_parts is None and not self._fullgraph and not self.is_idle:
            source, parts, callees = self._read_source(), self._compile_part, self._callees
            self._in_parts = split_refused(self._function, source, breaks, parts, callees)

    @property
    def is_idle(self) -> bool:
        """Whether it ran no operators in several captures."""
        return self._idle >= TRIES

    def _read_source(self) -> FunctionSource | None:
        return read_source(function_of(self._function))

    def refusal(self) -> str:
        """Return why no program replaces calls in this grad mode; "" if one may."""
        return self._refused.get(current().grad_enabled, "")

    @property
    def in_parts(self) -> FunctionInParts | None:
        """The function in parts, if it is refused in this grad mode; else None."""
        return self._in_parts if current().grad_enabled in self._refused else None

    def _compile_part(self, source: FunctionSource, lines: str) -> "CompiledFunction":
        name = f"{lines} of {self.whole_name}"
        return CompiledPart(source.function, self._callees, self._limit, self._dynamic, name, self.whole_name, source)

    def _compile_callee(self, function: Any) -> "CompiledFunction":
        return CompiledPart(function, self._callees, self._limit, self._dynamic)

    def _run_observed(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call inside of another observer or transform: by its program if there are only profiles, else eagerly.

        The profiles get the calls of the program, and the call as a range.
        """
        if self.in_parts is not None and reason != INSIDE:
            return self.in_parts(*args, **kwargs)
        recorders, found = [] if reason == INSIDE else lone_recorders(), None
        if recorders and current_stance() != "force_eager":
            with at(None, current().grad_enabled), override_state("watchers", None):
                found = None if reason_to_run_eagerly() else self.find_program(args, kwargs)
                run = None if found is None else run_timed(*found)
        if found is None or run is None:
            return self._run_eagerly(reason, args, kwargs)
        program, _ = found
        program.uses += 1
        for recorder in recorders:
            for name, span in zip(group_names(program), run.spans, strict=True):
                recorder.group(name, *span)
            recorder.range(self.name, None, *run.span)
        return run.result

    def _run_eagerly(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        self._report(reason)
        return self._function(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name in messages."""
        return describe_function(method_of(self._function)) if self._name is None else self._name

    @property
    def whole_name(self) -> str:
        """The name of the function of which this may be a part."""
        return self.name

    def _report(self, reason: str) -> None:
        """Raise, or warn once for each reason, that the function runs eagerly."""
        way = "runs eagerly" if self._in_parts is None else "is compiled in parts"
        message = f"compile: {self.name} {way}: {reason}"
        if self._fullgraph and not is_compiling():
            raise RuntimeError(message)
        is_told = self._in_parts is None or self._is_whole
        first, _, _ = reason.partition(CALLED)
        if reason != INSIDE and is_told and first not in self._callees.warned:
            self._callees.warned.add(first)
            warn_user(message)


class CompiledPart(CompiledFunction):
    """A part of a function that has graph breaks, or a function that its statements call."""

    _is_whole = False  # that the function is compiled in parts is known

    def __init__(
        self,
        function: Callable[..., Any],
        callees: Callees,
        limit: int,
        dynamic: bool | None,
        name: str | None = None,
        whole_name: str | None = None,
        source: FunctionSource | None = None,
    ) -> None:
        self._callees, self._whole_name, self._source = callees, whole_name, source
        super().__init__(function, limit=limit, name=name, dynamic=dynamic)

    @property
    def whole_name(self) -> str:
        """The name of the function of which this may be a part."""
        return self._whole_name or self.name

    def _read_source(self) -> FunctionSource | None:
        return self._source or super()._read_source()


INSIDE = "it is called inside another transform, or a function that is being compiled"


def reason_to_run_eagerly() -> str:
    """Return why no call on this thread can run by a program now; "" if one can."""
    state = current()
    if isinstance(state.level, TransparentLevel) and not is_compiling():
        return "a profiler, or another observer of operators, is active"
    if state.level is not None:
        return INSIDE
    if state.watchers is not None:
        return "a profiler or anomaly mode is active"
    if state.saving is not None or state.running is not None or state.overrides_off or state.inference:
        return "saved-tensor hooks, a backward pass or inference mode are active"
    return ""


def is_compiling() -> bool:
    """Return whether the calling function is being captured by `rg.compile`.

    >>> import retrograd as rg
    >>> rg.compiler.is_compiling()
    False
    """
    level = current().level
    while level is not None:
        if isinstance(level, Recorder):
            return True
        level = level.parent
    return False


def reset() -> None:
    """Forget all compiled programs; functions are captured again at their next call.

    >>> import retrograd as rg
    >>> rg.compiler.reset()
    """
    for function in list(_functions):
        function.reset()
