"""Random programs in both libraries, for a time: python -m tests.parity.fuzz --seconds 120 --seed 1."""

import argparse
import faulthandler
import signal
import sys
import time
from collections import Counter
from datetime import date

import torch

from .coverage import Coverage
from .exempt import used_exemptions
from .explore import differences
from .generate import CORE, KINDS

PROGRESS = 1000  # programs between two lines that say how far a run is: a crash is in one of the next


def main() -> int:
    """Run programs until the time is over, print differences, and count; return 1 if one is not exempt."""
    given = arguments()
    faulthandler.enable()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    torch.set_num_threads(1)
    counts, coverage, failed = Counter(), Coverage(), []
    print(f"programs from seed {given.seed}", flush=True)
    try:
        end = time.monotonic() + given.seconds
        while time.monotonic() < end and counts["tried"] < given.programs:
            seed = given.seed + counts["tried"]
            if not run(seed, given, counts, coverage):
                failed.append(seed)
            if counts["tried"] % PROGRESS == 0:
                print(summary(given.seed, counts), flush=True)
    except KeyboardInterrupt:
        print("stopped")
    if given.coverage:
        print(coverage)
    print(used_exemptions())
    print(summary(given.seed, counts))
    for seed in failed:
        print(f"again: make fuzz ARGS='{'--core ' * given.core}--seed {seed} --programs 1'")
    return int(bool(failed))


def run(seed: int, given: argparse.Namespace, counts: Counter, coverage: Coverage) -> bool:
    """Run and count one program, and print its differences; return whether all are exempt."""
    judged = []
    for found, reason in differences(seed, coverage.count, CORE if given.core else KINDS):
        judged.append(reason)
        if reason is None or given.verbose:
            print(f"--- seed {seed}\n{found}\n{'' if reason is None else f'exempt: {reason}'}\n", flush=True)
    counts["tried"] += 1
    counts["differ"] += bool(judged)
    counts["exempt"] += bool(judged) and None not in judged
    return None not in judged


def summary(seed: int, counts: Counter) -> str:
    """Return how many programs were run from a seed on, and how many of them differ."""
    return (
        f"{counts['tried']} programs from seed {seed}: {counts['differ']} differ, {counts['exempt']} of them exempt, "
        f"{counts['differ'] - counts['exempt']} not"
    )


def arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=date.today().toordinal() * 1_000_000, help="of the first program")
    parser.add_argument("--programs", type=int, default=1_000_000_000)
    parser.add_argument("--core", action="store_true", help="only arithmetic, views, indexing, writes and backward")
    parser.add_argument("--coverage", action="store_true", help="print which operators did not occur")
    parser.add_argument("--verbose", action="store_true", help="print exempt differences too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
