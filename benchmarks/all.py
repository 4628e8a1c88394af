"""Run all benchmarks one after the other, and fill in the documentation's pages: `make bench`.

    python benchmarks/all.py [NAME ...] [--keep-pages]

Results are written to build/bench/NAME.json.  Nothing else should run on the machine meanwhile.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import page

FOLDER = Path(__file__).parent
# The benchmarks in the order of the pages, with options for a total of some thirty minutes.  A name may end with the
# vectors that all libraries are limited to.
OPTIONS: dict[str, list[str]] = {
    "steps": ["--rounds", "9"],
    "steps-avx2": ["--rounds", "5"],
    "compile": ["--rounds", "5"],
    "compile-avx2": ["--rounds", "5"],
    "kernels": ["--rounds", "9"],
    "kernels-avx2": ["--rounds", "5"],
    "footprint": [],
    "memory": ["--rounds", "3"],
    "scaling": ["--rounds", "5"],
    "busy": ["--rounds", "5"],
    "overhead": ["--rounds", "9"],
    "instructions": [],
    "autodiff": ["--rounds", "5"],
    "operators": ["--rounds", "5"],
    "convolution": ["--rounds", "3"],
    "transforms": ["--rounds", "7"],
    "sparse": ["--rounds", "5"],
    "jet": ["--rounds", "5"],
    "library": ["--rounds", "9"],
    "nested": ["--rounds", "3"],
    "nested_encoder": ["--rounds", "1"],
    "transport": [],
    "agreement": [],
    "all_reduce": [],
    "data_parallel": ["--rounds", "5"],
    "many_ranks": ["--rounds", "3"],
    "pipelines": ["--rounds", "3"],
    "planning": ["--rounds", "5"],
    "auto_schedule": ["--rounds", "9"],
    "simulator": [],
    "small_calls": ["--rounds", "9"],
    "usual_calls": ["--rounds", "9"],
    "memory_bound": ["--rounds", "5"],
    "memory_bound-avx2": ["--rounds", "5"],
    "post_validation": ["--rounds", "3"],
    "searched_schedules": [],
}


def run(name: str) -> bool:
    """Run one benchmark and print its duration; return whether it succeeded."""
    start = time.perf_counter()
    script, _, level = name.partition("-")
    options = [*OPTIONS[name], *(["--cpu", level] if level else []), "--json", str(page.FIGURES / f"{name}.json")]
    command = [sys.executable, str(FOLDER / f"{script}.py"), *options]
    print(f"== {name}", flush=True)
    status = subprocess.run(command, check=False).returncode
    print(f"== {name}: {time.perf_counter() - start:.0f} s{'' if status == 0 else f', status {status}'}\n", flush=True)
    return status == 0


def main() -> int:
    """Run the chosen benchmarks; return 1 if one of them failed."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(OPTIONS)}; all if none is given")
    options.add_argument("--keep-pages", action="store_true", help="leave the documentation as it is")
    given = options.parse_args()
    if set(given.names) - OPTIONS.keys():
        options.error(f"no benchmark is called {', '.join(sorted(set(given.names) - OPTIONS.keys()))}")
    page.FIGURES.mkdir(parents=True, exist_ok=True)
    well = [run(name) for name in given.names or OPTIONS]
    if not given.keep_pages:
        page.main()
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
