"""`explain`: what a call of a function looks like when it is compiled."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from retrograd.compiler.capture import Capture, Program
from retrograd.compiler.compiled_function import CompiledFunction, reason_to_run_eagerly
from retrograd.compiler.group_report import GroupReport, name_instruction, report_groups
from retrograd.compiler.program import Call, Eager, FusedCalls, Write
from retrograd.compiler.recorder import CALLED
from retrograd.compiler.report_page import in_bytes, in_time, render_report
from retrograd.compiler.timed_run import TimedRun, run_timed
from retrograd.foundation.suggestions import suggest_keywords

MOST_LINES = 12  # of the slowest calls in the text


@dataclass(frozen=True)
class ExplainOutput:
    """The report of `explain`; it prints as text. The first fields are those of PyTorch's report.

    `fused_groups` has the operators of each group that runs as one; `merged` is the number of calls that equal earlier
    ones, and `folded` that of calls whose results are constants: neither run. `groups` has a report on each call of the
    program, with its memory traffic, buffers and time; `seconds` is the time of the call, None if the program did not
    run. `runs` has the number of runs of each program, as in a loop; times are the sums of these.
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
    runs: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*self.summary(), *self._slowest(), *([self.code] if self.code else [])])

    def summary(self) -> list[str]:
        """Return the lines about the whole program."""
        if not self.graph_count:
            return ["Runs eagerly: " + "; ".join(self.break_reasons)]
        counts = Counter([name for names in self.ops_per_graph for name in names]).most_common()
        programs = "One program" if self.graph_count == 1 else f"{self.graph_count} programs"
        runs = f", run {sum(self.runs)} times" if sum(self.runs) > self.graph_count else ""
        return [
            f"{programs} of {self.op_count} operators{runs}: " + ", ".join(f"{n} {name}" for name, n in counts),
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


@suggest_keywords
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
            return _no_program(reason)
        explained = _Explained()
        explained.run(f, *args, **kwargs)
        return explained.report()

    return report


class _Explained:
    """The reports on a call: of the runs of each program, and those that are only the reason why there is none."""

    def __init__(self) -> None:
        self._runs: dict[Any, list[ExplainOutput]] = {}

    def run(self, f: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a call, and note the reports; return its result."""
        program, times = None, None
        if isinstance(f, CompiledFunction):
            if f.in_parts is not None:
                self._runs[f] = [_no_program(f.refusal())]
                with f.in_parts.calling_by(self.run):
                    return f.in_parts(*args, **kwargs)
            program, tensors = f.find_program(args, kwargs) or (None, [])
            times = None if program is None else run_timed(program, tensors)
            f = f._function
        if times is None:
            capture = Capture(f, args, kwargs)
            program = capture.program
        report = _no_program(capture.refusal) if program is None else _report(program, times)
        self._runs.setdefault(program or capture, []).append(report)
        return capture.result if times is None else times.result

    def report(self) -> ExplainOutput:
        """Return one report on all programs."""
        reports = [_join_runs(reports) for reports in self._runs.values()]

        def all_of(name: str) -> tuple[Any, ...]:
            return tuple([member for report in reports for member in getattr(report, name)])

        times = [report.seconds for report in reports if report.seconds is not None]
        reasons: dict[str, str] = {}  # each once, with the calls on the way to it
        for each in all_of("break_reasons"):
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
            runs=all_of("runs"),
        )


def _no_program(reason: str) -> ExplainOutput:
    return ExplainOutput(0, 1, (reason,), 0, (), (), "")


def _join_runs(reports: list[ExplainOutput]) -> ExplainOutput:
    """Return one report on the runs of a program, with the sums of their times."""
    first, *rest = reports
    if not rest:
        return first
    times = [sum(each.seconds or 0.0 for each in groups) for groups in zip(*[r.groups for r in reports], strict=True)]
    groups = [replace(group, seconds=seconds) for group, seconds in zip(first.groups, times, strict=True)]
    return replace(first, groups=tuple(groups), seconds=sum(r.seconds or 0.0 for r in reports), runs=(len(reports),))


def _report(program: Program, times: TimedRun | None = None) -> ExplainOutput:
    names = tuple([name_instruction(i) for i in program.instructions if isinstance(i, Call | Write | Eager)])
    entries = [*program.guards.entries, *program.state]
    guards = tuple([e.name for e in entries] + [f"tensor {t.shape}" for t in program.tensors])
    fused = tuple([tuple(map(name_instruction, i.calls)) for i in program.plan if isinstance(i, FusedCalls)])
    seconds = None if times is None else (times.span[1] - times.span[0]) / 1e9
    groups = report_groups(program, times)
    code, merged, folded = program.source.text, program.merged, program.folded
    return ExplainOutput(1, 0, (), len(names), (names,), guards, code, fused, merged, folded, groups, seconds, (1,))
