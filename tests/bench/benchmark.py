"""A benchmark for the tests: subjects that agree, disagree, fail or are missing, and a peer's imports."""

import itertools
import sys

import numpy as np

from retrograd.bench import Case, Subject, Suite, main, parser, run_suite

ROWS = {"all agree": {"peer": 1e9}, "one is wrong": {"wrong": 1e9}, "one fails": {}, "one has none": {}}
SUBJECTS = {name: Subject("") for name in ("retrograd", "peer", "wrong", "failing", "none", "missing")}


def cases(name, threads):
    if name == "missing":
        raise ImportError("no", name="a_library")

    def case(row):
        if (name, row) == ("failing", "one fails"):
            raise ValueError("it can't\nand this is why")
        if (name, row) == ("none", "one has none"):
            return None
        results = [np.arange(5000.0) + (3 if (name, row) == ("wrong", "one is wrong") else 0)]
        endless = (name, row) == ("endless", "all agree")
        return Case(lambda: all(itertools.count(1)) if endless else None, lambda: results, operations=10, once=True)

    return case


def imported(name, threads):
    """Return the modules of retrograd that the process has imported, as a number for each."""
    found = [m for m in sys.modules if m.startswith("retrograd") and not m.startswith("retrograd.bench")]
    assert found == ["retrograd"], found
    return lambda row: Case(lambda: None, once=True)


SUITE = Suite("made up", __file__, ROWS, SUBJECTS, cases)
PEERS = Suite("peers", __file__, {"bare": {}}, {"bare": Subject("numpy")}, cases, ours="bare")

if __name__ == "__main__":
    sys.exit(
        main(
            parser("made up", 2),
            lambda options: [run_suite(SUITE, options)],
            lambda name, threads: (imported if name == "bare" else cases)(name, threads),
        )
    )
