"""`explain`: what a call of a function looks like when it is compiled."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from retrograd.compiler.capture import Capture, Program
from retrograd.compiler.compiled_function import CompiledFunction, reason_to_run_eagerly
from retrograd.compiler.function_in_parts import FunctionInParts
from retrograd.compiler.group_report import GroupReport, name_instruction, report_groups
from retrograd.compiler.program import Call, Eager, FusedCalls, Write
from retrograd.compiler.recorder import CALLED
from retrograd.compiler.report_page import in_bytes, in_time, render_report
from retrograd.compiler.timed_run import TimedRun, run_timed

MOST_LINES = 12  # of the slowest calls in the text


@dataclass(frozen=True)
class ExplainOutput:
    """The report of `explain`; it prints as text. The first fields are those of PyTorch's report.

    `fused_groups` has the operators of each group that runs as one; `merged` is the number of calls that equal earlier
    ones, and `folded` that of calls whose results are constants: neither run. `groups` has a report on each call of the
    program, with its memory traffic, buffers and time; `seconds` is the time of the call, None if the program did not
    run.
    """

    graph_count: int
    graph_break_count: int
    break_reasons: tuple[str, ...]
    op_count: int
    ops_per_graph: tuple[tuple[str, ...], ...]
    out_guards: tuple[str, ...]
    code: str
    fused_groups: tuple[tuple[str, ...], ...] = ()
    merged: int = 0
    folded: int = 0
    groups: tuple[GroupReport, ...] = ()
    seconds: float | None = None

    def __str__(self) -> str:
        return "\n".join([*self.summary(), *self._slowest(), *([self.code] if self.code else [])])

    def summary(self) -> list[str]:
        """Return the lines about the whole program."""
        if not self.graph_count:
            return ["Runs eagerly: " + "; ".join(self.break_reasons)]
        counts = Counter([name for names in self.ops_per_graph for name in names]).most_common()
        programs = "One program" if self.graph_count == 1 else f"{self.graph_count} programs"
        return [
            f"{programs} of {self.op_count} operators: " + ", ".join(f"{n} {name}" for name, n in counts),
            *[f"Graph break: {reason}" for reason in self.break_reasons],
            *self._left_out(),
            *self._fused(),
            *self._memory(),
            f"Guards: {len(self.out_guards)} values and tensors",
            *([] if self.seconds is None else [f"Time: {in_time(self.seconds)}"]),
        ]

    def _left_out(self) -> list[str]:
        """Return the line about calls that do not run, if there are any."""
        counts = ((self.merged, "equal to others"), (self.folded, "constant"))
        shown = ", ".join(f"{count} {reason}" for count, reason in counts if count)
        return [f"Left out: {shown}"] if shown else []

    def _fused(self) -> list[str]:
        """Return the line about fused groups, if there are any."""
        groups, count = len(self.fused_groups), sum(map(len, self.fused_groups))
        return [f"Fused: {count} operators in {groups} group{'s' * (groups > 1)}"] if groups else []

    def _memory(self) -> list[str]:
        """Return the line about the arrays that are read and written."""
        now = sum(group.passes for group in self.groups), sum(group.bytes for group in self.groups)
        eager = sum(group.eager_passes for group in self.groups), sum(group.eager_bytes for group in self.groups)
        shown = [f"{passes} arrays, {in_bytes(size)}" for passes, size in (now, eager)]
        return [f"Read and written: {shown[0]}; one operator at a time: {shown[1]}"]

    def _slowest(self) -> list[str]:
        """Return a line for each of the slowest calls, if they were timed."""
        if self.seconds is None:
            return []
        slowest = sorted(self.groups, key=lambda group: -(group.seconds or 0.0))[:MOST_LINES]
        return [f"{in_time(group.seconds or 0.0):>10}  {group.name}" for group in slowest]

    def to_html(self) -> str:
        """Return the report as a page: a summary, the calls on a time line, their traffic and buffers, and the code.

        >>> import retrograd as rg
        >>> report = rg.compiler.explain(lambda x: (x * 2).sin().sum())(rg.ones(3))
        >>> report.to_html().count("<tr>")
        2
        """
        return render_report(self.summary(), self.groups, self.seconds, self.code)

    def _repr_html_(self) -> str:
        """Return the page, for notebooks."""
        return self.to_html()


def explain(f: Callable[..., Any]) -> Callable[..., ExplainOutput]:
    """Return a function that runs a call of `f` once, and reports the program that compilation makes of it.

    The report says how many operators the program runs, which of them are fused, how much memory they read and write,
    what is guarded, and the code; or why there is no program. If `f` is a compiled function that has a program for the
    call, the program runs, and the report has the time of each of its calls. If it is compiled in parts, the report is
    on all programs that run, with the reasons of the graph breaks. Otherwise the call runs eagerly.

    Source: the names are those of torch._dynamo.explain.

    >>> import retrograd as rg
    >>> report = rg.compiler.explain(lambda x: (x * 2).sum())(rg.ones(3))
    >>> report.graph_count, report.ops_per_graph
    (1, (('mul', 'sum'),))
    >>> rg.compiler.explain(lambda x: (x * 2).sin().sum())(rg.ones(3)).fused_groups
    (('mul', 'sin'),)
    >>> rg.compiler.explain(lambda x: x.sum().item())(rg.ones(3)).graph_count
    0
    >>> compiled = rg.compile(lambda x: (x * 2).sum())
    >>> _ = compiled(rg.ones(3))
    >>> [group.name for group in rg.compiler.explain(compiled)(rg.ones(3)).groups if group.seconds is not None]
    ['plan: mul, sum']
    """

    def report(*args: Any, **kwargs: Any) -> ExplainOutput:
        reason = reason_to_run_eagerly()
        if reason:
            return ExplainOutput(0, 1, (reason,), 0, (), (), "")
        return _run_reported(f, args, kwargs)[1]

    return report


def _run_reported(f: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> tuple[Any, ExplainOutput]:
    """Run a call; return its result and the report."""
    if isinstance(f, CompiledFunction):
        if f.in_parts is not None:
            return _run_parts(f.in_parts, f.refusal(), args, kwargs)
        found = f.find_program(args, kwargs)
        if found is not None:
            times = run_timed(*found)
            return times.result, _report(found[0], times)
        f = f._function
    capture = Capture(f, args, kwargs)
    if capture.program is None:
        return capture.result, ExplainOutput(0, 1, (capture.refusal,), 0, (), (), "")
    return capture.result, _report(capture.program)


def _run_parts(f: FunctionInParts, reason: str, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, ExplainOutput]:
    """Run a call of a function in parts; return its result, and one report for all parts that have run."""
    reports: list[ExplainOutput] = []

    def run_part(part: CompiledFunction, *args: Any, **kwargs: Any) -> Any:
        result, report = _run_reported(part, args, kwargs)
        reports.append(report)
        return result

    with f.calling_by(run_part):
        result = f(*args, **kwargs)
    return result, _join(reason, reports)


def _join(reason: str, reports: list[ExplainOutput]) -> ExplainOutput:
    """Return the report on a function in parts, from those on the parts."""

    def all_of(name: str) -> tuple[Any, ...]:
        return tuple([member for report in reports for member in getattr(report, name)])

    times = [report.seconds for report in reports if report.seconds is not None]
    reasons: dict[str, str] = {}  # each once, with the calls on the way to it
    for each in (reason, *all_of("break_reasons")):
        reasons.setdefault(each.partition(CALLED)[0], each)
    return ExplainOutput(
        graph_count=sum(report.graph_count for report in reports),
        graph_break_count=len(reasons),
        break_reasons=tuple(reasons.values()),
        op_count=sum(report.op_count for report in reports),
        ops_per_graph=all_of("ops_per_graph"),
        out_guards=all_of("out_guards"),
        code="\n".join(report.code for report in reports if report.code),
        fused_groups=all_of("fused_groups"),
        merged=sum(report.merged for report in reports),
        folded=sum(report.folded for report in reports),
        groups=all_of("groups"),
        seconds=sum(times) if times else None,
    )


def _report(program: Program, times: TimedRun | None = None) -> ExplainOutput:
    names = tuple([name_instruction(i) for i in program.instructions if isinstance(i, Call | Write | Eager)])
    guards = tuple([e.name for e in program.guards.entries] + [f"tensor {t.shape}" for t in program.tensors])
    fused = tuple([tuple(map(name_instruction, i.calls)) for i in program.plan if isinstance(i, FusedCalls)])
    seconds = None if times is None else (times.span[1] - times.span[0]) / 1e9
    groups = report_groups(program, times)
    code, merged, folded = program.source.text, program.merged, program.folded
    return ExplainOutput(1, 0, (), len(names), (names,), guards, code, fused, merged, folded, groups, seconds)
