"""Measure the seconds and megabytes from a clone to a trained model, as for a newcomer: `make first-run`.

Clones this repository's last commit into an empty folder and runs `make demo` there, with an environment that only
contains the paths of programs and packages.  Packages come from pip's configured index, bypassing its cache.
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ("PATH", "LANG", "SSL_CERT_FILE", "PIP_CERT", "PIP_INDEX_URL", "PIP_FIND_LINKS")


def size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def main() -> None:
    """Clone, run, and print time and size."""
    with tempfile.TemporaryDirectory() as home:
        clone = Path(home, "retrograd")
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {"HOME": home, "PIP_NO_CACHE_DIR": "1"}
        start = time.perf_counter()
        subprocess.run(["git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), clone], check=True, env=environment)
        cloned = time.perf_counter()
        subprocess.run(["make", "demo"], cwd=clone, check=True, env=environment)
        done = time.perf_counter()
        installed, whole = size(clone / ".venv"), size(clone)
    print(f"\nfrom clone to trained model: {done - start:.0f} seconds, {cloned - start:.1f} of them for the clone")
    print(f"on disk: {whole / 1e6:.0f} MB, {installed / 1e6:.0f} of them Python packages")


if __name__ == "__main__":
    main()
