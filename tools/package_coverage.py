"""Print the share of the lines of each package that the tests run: `make coverage`.

Reads the JSON report of coverage.py, by default build/coverage/lines.json.
"""

import json
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]


def package_of(file: str) -> str:
    """Return the package of a source below src/retrograd; files next to the packages are "retrograd" itself."""
    parts = PurePosixPath(file.replace("\\", "/")).parts
    inside = parts[parts.index("retrograd") + 1 :]
    return inside[0] if len(inside) > 1 else "retrograd"


def percentages(report: dict) -> dict[str, float]:
    """Return the percentage of the statements of each package that ran, the lowest first."""
    all_lines: Counter[str] = Counter()
    run: Counter[str] = Counter()
    for file, found in report["files"].items():
        all_lines[package_of(file)] += found["summary"]["num_statements"]
        run[package_of(file)] += found["summary"]["covered_lines"]
    shares = {name: 100 * run[name] / count for name, count in all_lines.items() if count}
    return dict(sorted(shares.items(), key=lambda entry: entry[1]))


def main(path: Path) -> None:
    """Print a line for each package."""
    for name, share in percentages(json.loads(path.read_text())).items():
        print(f"{share:6.1f} %  {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/coverage/lines.json")
