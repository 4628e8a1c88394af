"""Random programs in both libraries, for a time: python -m tests.parity.fuzz --seconds 120 --seed 1."""

import argparse
import itertools
import signal
import sys
import time
from collections import Counter
from datetime import date
from math import inf

from .coverage import Coverage
from .exempt import used_exemptions
from .workers import Outcome, outcomes

PROGRESS = 1000  # programs between two lines that say how far a run is


def main() -> int:
    """Run programs until the time is over, print differences, and count; return 1 if one is not exempt."""
    given = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    counts, used, coverage, failed = Counter(), Counter(), Coverage(), []
    print(f"programs from seed {given.seed}", flush=True)
    try:
        end = time.monotonic() + given.seconds
        for outcome in itertools.islice(outcomes(given.seed, given.core), given.programs):
            coverage.count(outcome.lines)
            used.update(outcome.used)
            if not judge(outcome, counts, given.verbose):
                failed.append(outcome.seed)
            if counts["tried"] % PROGRESS == 0:
                print(summary(given.seed, counts), flush=True)
            if time.monotonic() > end:
                break
    except KeyboardInterrupt:
        print("stopped")
    if given.coverage:
        print(coverage)
    print(used_exemptions(used))
    print(summary(given.seed, counts))
    for seed in failed:
        print(f"again: make fuzz ARGS='{'--core ' * given.core}--seed {seed} --programs 1'")
    return int(bool(failed))


def judge(outcome: Outcome, counts: Counter, verbose: bool) -> bool:
    """Count one program, and print its differences; return whether all are exempt."""
    reasons = [reason for _, reason in outcome.judged]
    for found, reason in outcome.judged:
        if reason is None or verbose:
            print(f"--- seed {outcome.seed}\n{found}\n{'' if reason is None else f'exempt: {reason}'}\n", flush=True)
    counts["tried"] += 1
    counts["differ"] += bool(reasons)
    counts["exempt"] += bool(reasons) and None not in reasons
    return None not in reasons


def summary(seed: int, counts: Counter) -> str:
    """Return how many programs were run from a seed on, and how many of them differ."""
    return (
        f"{counts['tried']} programs from seed {seed}: {counts['differ']} differ, {counts['exempt']} of them exempt, "
        f"{counts['differ'] - counts['exempt']} not"
    )


def arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, help="120 unless the number of programs is given")
    parser.add_argument("--seed", type=int, default=date.today().toordinal() * 1_000_000, help="of the first program")
    parser.add_argument("--programs", type=int)
    parser.add_argument("--core", action="store_true", help="only arithmetic, views, indexing, writes and backward")
    parser.add_argument("--coverage", action="store_true", help="print which operators did not occur")
    parser.add_argument("--verbose", action="store_true", help="print exempt differences too")
    given = parser.parse_args()
    if given.seconds is None:
        given.seconds = inf if given.programs else 120.0
    return given


if __name__ == "__main__":
    sys.exit(main())
