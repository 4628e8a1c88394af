"""Benchmark results: samples by row and subject, their medians, and ratios with their spread."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

UNITS = {
    "s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "GiB": 2.0**-30, "MiB": 2.0**-20, "KiB": 2.0**-10, "": 1.0, "1000": 1e-3,
}  # fmt: skip
OURSELVES = ""  # the name under which a row has a budget for our figure itself, in the table's unit


class Spread(NamedTuple):
    """A median between its quartiles."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the quartiles of at least one value.

    >>> spread([4.0, 1.0, 2.0, 3.0, 5.0])
    Spread(median=3.0, low=2.0, high=4.0)
    >>> spread([2.0])
    Spread(median=2.0, low=2.0, high=2.0)
    """
    low, median, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    return Spread(median, low, high)


@dataclass(frozen=True)
class Row:
    """One case: the samples of each subject, by round, in seconds, bytes or numbers.

    A budget is the maximum ratio of our figure to a peer's. `at` is the row's x coordinate if the table is a curve.
    """

    name: str
    samples: Mapping[str, Sequence[float]]
    budgets: Mapping[str, float] = field(default_factory=dict)
    at: float | None = None

    def median(self, subject: str) -> float | None:
        """Return the median of a subject's samples, or None without samples."""
        found = self.samples.get(subject)
        return statistics.median(found) if found else None

    def ratio(self, ours: str, peer: str) -> Spread | None:
        """Return the ratios of our samples to a peer's, round by round, so that disturbances affect both.

        None without samples, and if one of the peer's is zero, as the memory of a step that needs no new pages.
        """
        mine, its = self.samples.get(ours), self.samples.get(peer)
        if not mine or not its or peer == ours or 0 in its:
            return None
        return spread([a / b for a, b in zip(mine, its, strict=True)])


@dataclass
class Table:
    """Rows of one unit; `ours` is the subject that is compared with the others."""

    title: str
    unit: str
    rows: list[Row]
    ours: str = "retrograd"
    threads: int | None = None
    axis: str = ""  # what `Row.at` counts
    notes: list[str] = field(default_factory=list)
    fine: bool = True  # whether all subjects agreed, and the script's other requirements hold

    @property
    def subjects(self) -> list[str]:
        """Return the subjects with results, ours first."""
        found = dict.fromkeys([self.ours, *(name for row in self.rows for name in row.samples)])
        return [name for name in found if any(row.samples.get(name) for row in self.rows)]

    def figure(self, row: Row, subject: str) -> float | None:
        """Return a subject's median in the table's unit."""
        found = row.median(subject)
        return None if found is None else found * UNITS[self.unit]

    def met(self, row: Row, peer: str) -> bool | None:
        """Return whether a row meets a budget; None without the budget, or without results."""
        most = row.budgets.get(peer)
        if peer == OURSELVES:
            found = self.figure(row, self.ours)
        else:
            ratio = row.ratio(self.ours, peer)
            found = ratio.median if ratio else None
        return None if most is None or found is None else found <= most

    @property
    def all_met(self) -> bool:
        """Return whether all budgets are met."""
        return self.fine and all(self.met(row, peer) is not False for row in self.rows for peer in row.budgets)
