"""`explain`: what a call of a function looks like when it is compiled."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from retrograd.compiler.capture import Capture
from retrograd.compiler.compiled_function import CompiledFunction, reason_to_run_eagerly
from retrograd.compiler.program import Call, Eager, FusedCalls, Write


@dataclass(frozen=True)
class ExplainOutput:
    """The report of `explain`; it prints as text. The names are those of PyTorch's report, without `fused_groups`.

    `fused_groups` has the operators of each group that runs as one.
    """

    graph_count: int
    graph_break_count: int
    break_reasons: tuple[str, ...]
    op_count: int
    ops_per_graph: tuple[tuple[str, ...], ...]
    out_guards: tuple[str, ...]
    code: str
    fused_groups: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        if not self.graph_count:
            return "Runs eagerly: " + "; ".join(self.break_reasons)
        counts = Counter(self.ops_per_graph[0]).most_common()
        lines = [
            f"One program of {self.op_count} operators: " + ", ".join(f"{n} {name}" for name, n in counts),
            *self._fused(),
            f"Guards: {len(self.out_guards)} values and tensors",
        ]
        return "\n".join([*lines, self.code])

    def _fused(self) -> list[str]:
        """Return the line about fused groups, if there are any."""
        groups, count = len(self.fused_groups), sum(map(len, self.fused_groups))
        return [f"Fused: {count} operators in {groups} group{'s' * (groups > 1)}"] if groups else []


def explain(f: Callable[..., Any]) -> Callable[..., ExplainOutput]:
    """Return a function that runs a call of `f` once, eagerly, and reports the program that compilation makes of it.

    The report says how many operators the program runs, which of them are fused, what it guards, and its code; or why
    there is no program.

    Source: the names are those of torch._dynamo.explain.

    >>> import retrograd as rg
    >>> report = rg.compiler.explain(lambda x: (x * 2).sum())(rg.ones(3))
    >>> report.graph_count, report.ops_per_graph
    (1, (('mul', 'sum'),))
    >>> rg.compiler.explain(lambda x: (x * 2).sin().sum())(rg.ones(3)).fused_groups
    (('mul', 'sin'),)
    >>> rg.compiler.explain(lambda x: x.sum().item())(rg.ones(3)).graph_count
    0
    """
    function = f._function if isinstance(f, CompiledFunction) else f

    def report(*args: Any, **kwargs: Any) -> ExplainOutput:
        reason = reason_to_run_eagerly()
        if reason:
            return ExplainOutput(0, 1, (reason,), 0, (), (), "")
        return _report(Capture(function, args, kwargs))

    return report


def _report(capture: Capture) -> ExplainOutput:
    program = capture.program
    if program is None:
        return ExplainOutput(0, 1, (capture.refusal,), 0, (), (), "")
    names = tuple([_name(i) for i in program.instructions if isinstance(i, Call | Write | Eager)])
    guards = tuple([e.name for e in program.guards.entries] + [f"tensor {t.shape}" for t in program.tensors])
    groups = tuple([tuple(map(_name, i.calls)) for i in program.plan if isinstance(i, FusedCalls)])
    return ExplainOutput(1, 0, (), len(names), (names,), guards, program.source.text, groups)


def _name(instruction: Any) -> str:
    if isinstance(instruction, Call):
        return instruction.op.name if instruction.op is not None else "array"
    return "write" if isinstance(instruction, Write) else instruction.function.__qualname__
