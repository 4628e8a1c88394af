"""Random programs in both libraries, for a time: python -m tests.parity.fuzz --seconds 120 --seed 1."""

import argparse
import sys
import time
from collections import Counter
from datetime import date

import torch

from .differential import exempted, kind_of, random_program, run, shrunk


def main() -> int:
    """Run programs until the time is over, print what differs, and count."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=date.today().toordinal() * 1_000_000, help="of the first program")
    parser.add_argument("--programs", type=int, default=1_000_000_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    end, tried, exempt, kinds = time.monotonic() + given.seconds, 0, 0, Counter()
    while time.monotonic() < end and tried < given.programs:
        found = run(random_program(given.seed + tried))
        tried += 1
        if found is None:
            continue
        kind = kind_of(found.message)
        kinds[kind] += 1
        if kinds[kind] > 3:  # one of a kind is enough to shrink
            continue
        found = shrunk(found)
        reason = exempted(found)
        exempt += reason is not None
        if reason is None:
            print(f"--- seed {given.seed + tried - 1}\n{found}\n", flush=True)
    print(f"{tried} programs from seed {given.seed}: {kinds.total()} differ")
    return 1 if kinds.total() > exempt else 0


if __name__ == "__main__":
    sys.exit(main())
