"""Every entry of PyTorch's operator database with a counterpart here gives the same results, on all of its samples."""

import pytest

from .operator_database.comparison import compare_samples
from .operator_database.entries import counterpart, entries, runs
from .operator_database.exemptions import ABSENT, EXEMPT

RUNS = list(runs())
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("name", "dtype"), RUNS, ids=["-".join(run) for run in RUNS])
def test_every_sample_gives_the_results_of_pytorch(name, dtype):
    found = [
        f"sample {number}, {aspect}: {message}"
        for number, report in compare_samples(name, dtype)
        for aspect, message in report.differences.items()
        if (name, aspect) not in EXEMPT
    ]
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:20])


@pytest.mark.parametrize("name", sorted({name for name, _ in EXEMPT}))
def test_every_exemption_is_needed(name):
    unneeded = {aspect for other, aspect in EXEMPT if other == name}
    for dtype in (dtype for other, dtype in RUNS if other == name):
        for _, report in compare_samples(name, dtype):
            unneeded -= report.differences.keys()
            if not unneeded:
                return
    assert not unneeded, "these do not differ: delete the exemptions"


def test_at_most_25_entries_are_exempt():
    assert len({name for name, _ in EXEMPT}) <= 25


def test_every_entry_without_a_counterpart_is_listed_with_a_reason():
    absent = {name for name, entry in entries().items() if counterpart(entry) is None}
    assert absent == set(ABSENT)
    assert all(ABSENT.values())
