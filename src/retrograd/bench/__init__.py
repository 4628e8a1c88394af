"""The benchmark harness: subjects run in separate processes that take turns, and share one form of results.

A benchmark is a script. It runs itself once per subject, a library or a way of using one. Each such worker answers
requests for rows: first with results, which must agree with ours, then with seconds. `retrograd bench` is the short
form (`retrograd.bench.short`); benchmarks/ in the repository has one script per question.

Only the standard library is imported here, and a peer's process has nothing else of retrograd (`bare`), so that a peer
is measured as its users run it.
"""

from retrograd.bench.figures import Row, Spread, Table, spread
from retrograd.bench.measure import Suite, run_suite
from retrograd.bench.report import as_dict, as_markdown, as_text
from retrograd.bench.script import changed_options, main, parser
from retrograd.bench.subjects import Subject, converter, library, subjects
from retrograd.bench.workers import Case, Worker, digest, present, seconds

__all__ = [
    "Case",
    "Row",
    "Spread",
    "Subject",
    "Suite",
    "Table",
    "Worker",
    "as_dict",
    "as_markdown",
    "as_text",
    "changed_options",
    "converter",
    "digest",
    "library",
    "main",
    "parser",
    "present",
    "run_suite",
    "seconds",
    "spread",
    "subjects",
]
