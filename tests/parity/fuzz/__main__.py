"""Random programs in both libraries, for a time: python -m tests.parity.fuzz --seconds 120 --seed 1."""

import argparse
import sys
import time
from collections import Counter
from datetime import date

import torch

from .coverage import Coverage
from .exempt import used_exemptions
from .explore import differences
from .generate import CORE, KINDS


def main() -> int:
    """Run programs until the time is over, print differences, and count; return 1 if one is not exempt."""
    given = arguments()
    torch.set_num_threads(1)
    end, tried, counts, coverage = time.monotonic() + given.seconds, 0, Counter(), Coverage()
    while time.monotonic() < end and tried < given.programs:
        seed = given.seed + tried
        tried += 1
        for found, reason in differences(seed, coverage.count, CORE if given.core else KINDS):
            counts["differ"] += 1
            counts["exempt"] += reason is not None
            if reason is None or given.verbose:
                print(f"--- seed {seed}\n{found}\n{'' if reason is None else f'exempt: {reason}'}\n", flush=True)
    if given.coverage:
        print(coverage)
    print(used_exemptions())
    print(
        f"{tried} programs from seed {given.seed}: {counts['differ']} differences, {counts['exempt']} of them exempt;"
        f" again: --seed {given.seed} --programs {tried}"
    )
    return int(counts["differ"] > counts["exempt"])


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
