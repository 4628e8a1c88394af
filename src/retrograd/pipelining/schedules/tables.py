"""Schedules as tables: a grid of time slots, and CSV files, including PyTorch's format."""

import csv
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.atomic_write import atomic_replace, open_regular_file, shorten
from retrograd.pipelining.planning.simulate import Cost, simulate, unit_cost
from retrograd.pipelining.schedules.actions import Action, Kind, Schedule, parse
from retrograd.pipelining.schedules.lowering import Edges, chain
from retrograd.pipelining.timeline.timeline import Event, Timeline

Path = str | os.PathLike[str]


def format_grid(
    plan: Schedule | Timeline,
    costs: Cost | Mapping[Kind, float] = unit_cost,
    *,
    edges: Edges | None = None,
    slot: float | None = None,
) -> str:
    """Draw a schedule as in papers: a line per rank, a column per time slot, so that bubbles are visible.

    plan: a schedule, simulated with `costs` along `edges`; or a timeline, drawn unchanged.
    costs: as for `simulate`, or seconds per kind; missing computations, and messages, cost 0.
    edges: of the stage graph; None: each stage feeds the next.  slot: seconds per column; None: the shortest
    computation.

    A cell names kind and microbatch, prefixed by the stage if a rank has several. Dashes continue the
    computation to their left; a dot is an idle slot.

    >>> from retrograd.pipelining.schedules import make_schedule
    >>> print(format_grid(make_schedule("1f1b", stages=2, micro_batches=2)))
    0: F0 F1 .  .  B0 -- .  B1 --
    1: .  F0 B0 -- F1 B1 -- .  .
    >>> print(format_grid(make_schedule("1f1b", stages=2, micro_batches=2), {Kind.F: 2.0, Kind.B: 2.0}))
    0: F0 F1 .  B0 .  B1
    1: .  F0 B0 F1 B1 .
    """
    timeline = plan if isinstance(plan, Timeline) else _simulated(plan, costs, edges)
    events = [event for event in timeline.events if event.action.kind.is_compute and event.end > event.start]
    slot = slot or min((event.end - event.start for event in events), default=1.0)
    several = any(len(stages) > 1 for stages in _stages_by_rank(events, timeline.ranks))
    rows = [
        _row([event for event in events if event.rank == rank], timeline.start, slot, several)
        for rank in range(timeline.ranks)
    ]
    return _align(rows)


def _simulated(schedule: Schedule, costs: Cost | Mapping[Kind, float], edges: Edges | None) -> Timeline:
    if edges is None:
        edges = chain(1 + max((action.stage for actions in schedule for action in actions), default=-1))
    if not isinstance(costs, Mapping):
        return simulate(schedule, edges, costs)
    seconds = costs
    return simulate(schedule, edges, lambda action: seconds.get(action.kind, 0.0))


def _stages_by_rank(events: Iterable[Event], ranks: int) -> list[set[int]]:
    stages: list[set[int]] = [set() for _ in range(ranks)]
    for event in events:
        stages[event.rank].add(event.action.stage)
    return stages


def _row(events: Sequence[Event], origin: float, slot: float, several: bool) -> list[str]:
    cells: list[str] = []
    for _, action, start, end in events:
        text = f"{action}" if several else f"{action.kind}{action.micro_batch}"
        cells += ["."] * (round((start - origin) / slot) - len(cells))
        cells += [text, *["-" * len(text)] * (round((end - origin) / slot) - len(cells) - 1)]
    return cells


def _align(rows: Sequence[Sequence[str]]) -> str:
    """Align the cells of all rows in columns, filled with idle slots to the longest row."""
    width = max((len(cell) for row in rows for cell in row), default=0)
    columns, tag = max(map(len, rows), default=0), len(str(max(len(rows) - 1, 0)))
    full = ([*row, *["."] * (columns - len(row))] for row in rows)
    lines = (" ".join(f"{cell:<{width}}" for cell in row) for row in full)
    return "\n".join(f"{rank:>{tag}}: {line}".rstrip() for rank, line in enumerate(lines))


def write_csv(schedule: Schedule, path: Path) -> None:
    """Write a schedule, lowered or not, as a CSV file: a line per rank, a cell per action, no header.

    The cells are as PyTorch writes them, such as 0F3, 1I2 and 0SEND_F3 for stage, kind and microbatch, so that
    its schedules can read the file.  A transfer between stages that are not neighbours, which PyTorch does not have,
    is written as it prints, such as SEND_F0.3>2.
    """
    write_rows([[_cell(action) for action in actions] for actions in schedule], path)


def write_rows(rows: Iterable[Iterable[object]], path: Path) -> None:
    """Write rows as a CSV file, each cell as text, and None as an empty cell."""
    with atomic_replace(path) as unfinished, open(unfinished, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["" if cell is None else str(cell) for cell in row] for row in rows])


def _cell(action: Action) -> str:
    kind, stage, micro_batch, peer = action
    if kind.is_reduction:
        return f"{stage}{kind}"
    return f"{stage}{kind}{micro_batch}" if peer == _implied_peer(kind, stage) else str(action)


def _implied_peer(kind: Kind, stage: int) -> int | None:
    """Return the peer stage of a PyTorch send or receive, which its cells leave out."""
    if kind.is_compute:
        return None
    return stage + 1 if kind in (Kind.SEND_F, Kind.RECV_B) else stage - 1


def read_csv(path: Path) -> list[list[Action]]:
    """Read a schedule from a CSV file: a line per rank, its actions in order.

    Cells are as PyTorch writes them or as actions print, in any mixture: 0F3 or F0.3, 0SEND_F3 or SEND_F0.3>1.
    Empty cells are skipped; so are UNSHARD, RESHARD and REDUCE_GRAD, which PyTorch writes for sharded parameters, since
    a `Pipeline` with replicas inserts its reductions itself.
    (0F3;1B2)OVERLAP_F_B is a forward and then a backward.

    Raises ValueError that names line and column, both from 1, for a cell that is not an action, a repeated
    action, and a stage that two ranks compute; and for a damaged or empty file.  `validate` finds missing actions and
    impossible orders once the schedule is lowered.

    >>> import tempfile
    >>> path = tempfile.mktemp(suffix=".csv")
    >>> with open(path, "w") as file: _ = file.write("0F0,0F1,,0B0,0B1\\n,F1.0,B1.0,F1.1,B1.1\\n")
    >>> [" ".join(map(str, actions)) for actions in read_csv(path)]
    ['F0.0 F0.1 B0.0 B0.1', 'F1.0 B1.0 F1.1 B1.1']
    """
    return parse_rows(read_cells(path), os.fspath(path))


def parse_rows(rows: Sequence[Sequence[str]], source: str) -> list[list[Action]]:
    """Return the schedule of a table of texts, a row per rank; errors name the `source` of the table.

    >>> [str(action) for action in parse_rows([["0F0", "", "0B0"], ["", "1F0", "1B0"]], "here")[1]]
    ['F1.0', 'B1.0']
    """
    index = _CellIndex(source)
    schedule = [
        [action for column, cell in enumerate(row) for action in index.read(rank, column, cell)]
        for rank, row in enumerate(rows)
    ]
    if not index.cells_by_action:
        raise ValueError(f"{source}: there are no actions")
    for action, position in index.cells_by_action.items():
        if max(action.stage, action.micro_batch, action.peer or 0) >= len(index.cells_by_action):
            raise ValueError(
                f"{source}, {position}: {action} is of no schedule with {len(index.cells_by_action)} actions: "
                f"stages and microbatches are numbered from 0 on"
            )
    return schedule


def read_cells(path: Path) -> list[list[str]]:
    """Return the cells of a CSV file as texts; ValueError for a damaged one."""
    with open_regular_file(path) as file:
        try:
            return list(csv.reader(io.StringIO(file.read().decode("utf-8-sig"), newline="")))
        except (UnicodeError, csv.Error) as error:
            raise ValueError(f"{os.fspath(path)} is damaged or no CSV file: {shorten(str(error))}") from error


class _CellIndex:
    """The cell of each action read so far, for error messages."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.cells_by_action: dict[Action, str] = {}
        self.rank_of: dict[tuple[int, int], tuple[int, str]] = {}  # by stage, and even or odd microbatches

    def read(self, rank: int, column: int, cell: str) -> list[Action]:
        position = f"line {rank + 1}, column {column + 1}"
        try:
            actions = _parse_cell(cell.strip())
            for action in actions:
                self._record(action, rank, position)
        except ValueError as error:
            raise ValueError(f"{self.source}, {position}: {shorten(str(error))}") from None
        return actions

    def _record(self, action: Action, rank: int, position: str) -> None:
        if action in self.cells_by_action:
            raise ValueError(f"{action} is at {self.cells_by_action[action]} already")
        self.cells_by_action[action] = position
        other, at = self.rank_of.setdefault((action.stage, action.micro_batch % 2), (rank, position))
        if other != rank:
            raise ValueError(f"{action} is on rank {rank}, but stage {action.stage} is on rank {other}, see {at}")


_TORCH = re.compile(r"(\d+)(SEND_[FB]|RECV_[FB]|[FBIWR])(\d+)", re.ASCII)
_OVERLAP = re.compile(r"\(([^();]*);([^();]*)\)OVERLAP_F_B")
_SHARDING = re.compile(r"\d+(UNSHARD|RESHARD|REDUCE_GRAD|WAIT_GRAD)\d*", re.ASCII)


def _parse_cell(cell: str) -> list[Action]:
    if not cell or _SHARDING.fullmatch(cell):
        return []
    if match := _OVERLAP.fullmatch(cell):
        return [action for part in match.groups() for action in _parse_cell(part.strip())]
    if match := _TORCH.fullmatch(cell):
        kind, stage = Kind(match[2]), int(match[1])
        return [Action(kind, stage, int(match[3]), _implied_peer(kind, stage))]
    return [parse(cell)]


suggest_in_module(globals())
